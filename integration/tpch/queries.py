"""Five questions to the clustered tables, each also asked of the plain Parquet they were made from."""

from dataclasses import dataclass, field

PARTS_AT_SCALE_1 = 200_000
ORDER = 34_567


@dataclass(frozen=True)
class Query:
    """One question.

    Attributes:
        name: For people.
        sql: With ``{schema}`` where the tables' schema goes.
        conditions: What it asks of each table, for advice.
    """

    name: str
    sql: str
    conditions: dict[str, str] = field(default_factory=dict)


def queries(scale_factor):
    """The questions, with keys that exist at a scale factor."""
    parts = int(PARTS_AT_SCALE_1 * scale_factor)
    low, high = int(parts * 0.40), int(parts * 0.48)
    return (
        Query(
            "two-key range: one month, 8 % of the parts",
            "select count(*) items, sum(l_extendedprice * (1 - l_discount)) revenue from {schema}.lineitem "
            f"where l_shipdate between date'1995-03-01' and date'1995-03-31' and l_partkey between {low} and {high}",
            {
                "lineitem": "l_shipdate between date'1995-03-01' and date'1995-03-31' "
                f"and l_partkey between {low} and {high}"
            },
        ),
        Query(
            "one part",
            "select l_orderkey, l_linenumber, l_quantity, l_shipdate from {schema}.lineitem "
            f"where l_partkey = {parts // 3}",
            {"lineitem": f"l_partkey = {parts // 3}"},
        ),
        Query(
            "one order, by the lookup index",
            "select l_linenumber, l_partkey, l_quantity, l_shipdate from {schema}.lineitem "
            f"where l_orderkey = {ORDER}",
            {"lineitem": f"l_orderkey = {ORDER}"},
        ),
        Query(
            "three weeks",
            "select l_returnflag, l_linestatus, sum(l_quantity) quantity, avg(l_discount) discount, count(*) items "
            "from {schema}.lineitem where l_shipdate >= date'1996-11-01' and l_shipdate < date'1996-11-22' "
            "group by 1, 2",
            {"lineitem": "l_shipdate >= date'1996-11-01' and l_shipdate < date'1996-11-22'"},
        ),
        Query(
            "join: urgent orders of a quarter, shipped in one month",
            "select o.o_orderstatus, count(*) items, sum(l.l_quantity) quantity from {schema}.orders o "
            "join {schema}.lineitem l on l.l_orderkey = o.o_orderkey where o.o_orderpriority = '1-URGENT' "
            "and o.o_orderdate >= date'1997-01-01' and o.o_orderdate < date'1997-04-01' "
            f"and l.l_shipdate between date'1997-03-01' and date'1997-03-31' and l.l_partkey < {parts // 5} group by 1",
            {
                "lineitem": f"l_shipdate between date'1997-03-01' and date'1997-03-31' and l_partkey < {parts // 5}",
                "orders": "o_orderpriority = '1-URGENT' and o_orderdate >= date'1997-01-01' "
                "and o_orderdate < date'1997-04-01'",
            },
        ),
    )
