"""Tables that are published for other engines: every type, the values that engines spell differently, odd folders."""

import random
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

ROWS = """
    select id k, cast(id % 50 as int) i, cast(id % 100 as tinyint) ty, cast(id as smallint) sm,
      id * 1000000000000 l, cast(id / 3 as float) f,
      case when id % 40 = 5 then double('NaN') when id % 40 = 6 then double('inf') when id % 40 = 7 then -0.0D
        when id % 40 = 8 then 0.0D when id % 40 = 9 then null else id - 100D end n,
      cast(id * 1.25 as decimal(20, 4)) dec,
      cast(id as decimal(38, 0)) * cast('1000000000000000000000000000001' as decimal(38, 0)) big,
      if(id % 7 = 0, null, concat(repeat('é😀', int(id % 14)), 'txt', id)) s,
      timestamp_micros(id * 123456789 - 5000000001) ts,
      timestamp_ntz'1969-12-31 23:59:00.5' + make_interval(0, 0, 0, 0, 0, 0, id * 1.0000005) ntz,
      date_add(date'0001-01-02', int(id * 1000)) d, date_add(date'1995-01-01', int(id * 40)) day,
      id % 2 = 0 b, cast(concat('ab', id) as binary) bin,
      named_struct('a', if(id % 9 = 0, null, id), 'c', concat('x', id)) st, if(id % 11 = 0, null, array(id)) arr,
      map('k', id) m, cast(null as int) nul, if(id = 77, 'only', null) rare, '' empty,
      case id % 4 when 0 then null when 1 then 'a b/%=é' when 2 then 'x:y' else '1' end p
    from range({0}, {1})
"""
CONDITIONS = [
    *("k = 77", "k between 10 and 20", "i = 3", "ty = 5", "sm > 190", "s = 'txt28'", "s > 'éé'", "s < 'u'", "s is null"),
    *("n = 0.0", "n > 50", "n < -90", "n is null", "n >= 100", "n <= 0", "f > 60", "l = 77000000000000", "l > 198000000000000"),
    *("dec = 125.0000", "dec > 240", "dec < 2.5", "d = date '0001-01-02'", "d < date '0010-01-01'", "d > date '0500-01-01'"),
    *("day = date '1995-02-10'", "day < date '1996-01-01'", "day >= date '2016-01-01'"),
    *("b", "not b", "st.a = 50", "st.a is null", "st.c = 'x7'", "nul is null", "nul = 3", "rare = 'only'", "rare is null"),
    *("empty = ''", "empty = 'a'", "ntz < timestamp '1970-01-01 00:00:00'", "k in (1, 150)", "k = 3 or k = 180"),
    *("p = 'a b/%=é'", "p is null and k < 50", "p <> '1'", "s in ('txt14', 'txt42')"),
]  # fmt: skip


@dataclass(frozen=True)
class Published:
    """A table to publish: its query, and the settings of its write."""

    sql: str
    settings: dict = field(default_factory=dict)


# Values at which Julian days, years of five digits, and 64-bit numbers begin or end.
_LIMITS = """
    select k, cast(day as date) day, cast(moment as timestamp) ts, cast(moment as timestamp_ntz) ntz,
      cast(small as decimal(1, 0)) d1, cast(small * 123456789 as decimal(9, 0)) d9, cast(small * 1.25 as decimal(10, 2)) d10,
      cast(concat(small, '23456789012345.678') as decimal(18, 3)) d18, cast(concat(small, '234567890123456789') as decimal(19, 0)) d19,
      cast(concat('0.', repeat('9', 38)) as decimal(38, 38)) * small / abs(small) d38,
      if(small > 0, 127Y, cast(-128 as tinyint)) ty, if(small > 0, 32767S, cast(-32768 as smallint)) sm,
      if(small > 0, 2147483647, -2147483647 - 1) i, if(small > 0, 9223372036854775807, -9223372036854775807 - 1) l,
      cast(if(small > 0, '3.4028235E38', '-1.4E-45') as float) f, cast(if(small > 0, '1.7976931348623157E308', '-4.9E-324') as double) n
    from values (1, '0001-01-01', '0001-01-01 00:00:00', 1), (2, '1582-10-04', '1582-10-04 23:59:59.999999', -1),
      (3, '1582-10-15', '1582-10-15 00:00:00.000001', 3), (4, '1899-12-31', '1899-12-31 23:59:59.999999', -4),
      (5, '1900-01-01', '1900-01-01 00:00:00', 5), (6, '1969-12-31', '1969-12-31 23:59:59.999999', -6),
      (7, '9999-12-31', '9999-12-31 23:59:59.999999', 7), (8, null, null, null) as t(k, day, moment, small)
"""
# Texts of which the first 64 bytes end within a character, before one, after one; the highest characters; controls.
_TEXTS = """
    select id k, case id when 0 then concat(repeat('a', 63), 'é') when 1 then concat(repeat('a', 62), '😀', 'z')
        when 2 then repeat('é', 32) when 3 then concat(repeat('é', 32), 'a') when 4 then repeat('😀', 17)
        when 5 then repeat('\\U0010FFFF', 20) when 6 then concat(repeat('a', 61), '\\U0010FFFF', '\\U0010FFFF')
        when 7 then '' when 8 then null when 9 then ' ' when 10 then 'a\\tb\\nc\\r' when 11 then '"\\\\/\\''
        when 12 then concat('a', char(1), char(31), char(127), 'b') when 13 then '\\u2028\\uFEFF' when 14 then 'NaN'
        else 'null' end s
    from range(16)
"""
_NESTED = """
    select id k, named_struct('a', named_struct('b', if(id % 3 = 0, null, id), 't', concat('t', id)), 'l', array(id, null)) st,
      if(id % 4 = 0, null, array(named_struct('x', id, 'y', array('é', null)))) structs,
      map(concat('k', id), named_struct('v', id, 'm', map(1, if(id % 2 = 0, null, 'x')))) maps,
      if(id % 5 = 0, array(), array(map('a', id), map())) lists, array(array(id), array(), null) deep,
      named_struct('when', timestamp_micros(id * 86400000000), 'price', cast(id as decimal(12, 3))) event
    from range(40)
"""
_FOLDER_NAMES = (
    *("a b", "a%b", "100%25", "a=b", "a/b", "é😀", "a'b", 'a"b', "a\\\\b", "a:b", "#?[]{}^~+&;*|<>", " a ", "."),
    *("..", "a\\tb\\nc", "\\u0001\\u007F", "__HIVE_DEFAULT_PARTITION__2", "null", "NaN", "1", "", None),
)
_ODD_FOLDERS = "select k, p, p v, cast(k % 3 as int) q from values {} as t(k, p)".format(
    ", ".join(
        f"({number}, {'null' if name is None else chr(34) + name.replace(chr(34), chr(92) + chr(34)) + chr(34)})"
        for number, name in enumerate(_FOLDER_NAMES)
    )
)
TABLES = {
    "every_type": Published(
        ROWS.format(0, 200), {"zorder": ["k", "s"], "target_file_size": "4kb", "stats_columns": 100}
    ),
    "limits": Published(_LIMITS, {"zorder": ["day", "k"], "stats_columns": 100}),
    "texts": Published(_TEXTS, {"zorder": ["s"], "target_file_size": "1kb"}),
    "nested": Published(_NESTED, {"zorder": ["k"], "target_file_size": "4kb", "stats_columns": 100}),
    "odd_folders": Published(_ODD_FOLDERS, {"partition_by": ["p", "q"]}),
    "empty": Published(ROWS.format(0, 0), {"zorder": ["k"], "partition_by": ["p"]}),
}


def folder_of(table):
    """The local folder of a table."""
    return Path(table.location.removeprefix("file://"))


def changes(spark, table):
    """Commits of every kind, on a table of the columns k, v and p that is partitioned by p; each is made when asked for."""
    yield table.append(spark.sql("select id k, 1 v, id % 3 p from range(100, 120)"))
    yield table.merge(spark.sql("select id k, 2 v, id % 3 p from range(90, 130)"), "k")
    yield table.delete("k < 10")
    yield table.cluster(rewrite_all=True)
    wider = spark.sql("select id k, 1099511627776L v, 'x' more, id % 3 p from range(200, 203)")
    yield table.append(wider, on_schema_change="sync_all_columns")
    yield table.rollback(version=1)
    yield table.clean(retain_versions=1, retain_hours=0)
    yield table.append(spark.sql("select id k, 1 v, id % 3 p from range(300, 303)"))


def random_conditions(count):
    """Conditions of two terms, the same each time."""
    rnd = random.Random(5)
    texts = ["txt", "txt28", "é", "é😀é😀", "é😀txt1", "z", "é😀" * 13 + "txt13"]
    made = []
    for _ in range(count):
        terms = []
        for _ in range(2):
            column = rnd.choice(["k", "i", "n", "s", "dec", "d", "day", "l", "st.a"])
            value = {
                "s": f"'{rnd.choice(texts)}'",
                "d": f"date '{rnd.randrange(1, 600):04d}-03-04'",
                "day": f"date '{rnd.randrange(1995, 2018)}-03-04'",
            }.get(column)
            value = value or (rnd.randrange(200) * 10**12 if column == "l" else rnd.choice([-100, 0, 50, 99, 177]))
            terms.append(f"{column} {rnd.choice(['=', '<', '>', '<=', '>=', '<>'])} {value}")
        made.append(rnd.choice([" and ", " or "]).join(terms))
    return made


def assert_conditions_mean_the_same(spark, engine, source, but=frozenset()):
    """Another engine finds plain Spark's rows in the table `every_type` for each condition; `source` is its name there.

    Each condition of `but` has other rows there.
    """
    conditions = [*CONDITIONS, *random_conditions(25)]
    columns = ", ".join(f"coalesce({each}, false)" for each in conditions)
    answers = spark.sql(f"select k, array({columns}) met from ({ROWS.format(0, 200)})").collect()
    wanted = sorted((number, row.k) for row in answers for number, met in enumerate(row.met) if met)
    # Many in one query: each alone takes most of a second.
    scans = [f"select {number} n, k from {source} where {each}" for number, each in enumerate(conditions)]
    found = [
        (row["n"], row["k"])
        for start in range(0, len(scans), 12)
        for row in engine.ask(query=" union all ".join(scans[start : start + 12])).to_pylist()
    ]
    assert {conditions[number] for number, _ in set(found) ^ set(wanted)} == but
    assert len(found) == len(set(found))


def assert_skips_files(engine, source, files, conditions):
    """Another engine keeps at most half of the files for each condition, and all of them without one."""

    def kept(query):
        return engine.ask(query=query, files=True)["files"][0].as_py()

    assert kept(f"select k from {source}") == files
    for condition in conditions:
        assert 0 < kept(f"select k from {source} where {condition}") <= files / 2, condition


def assert_follows_commits(spark, engine, table, source):
    """Another engine finds plain Spark's rows after each of `changes`; `source` is the table's name there."""
    for _ in changes(spark, table):
        wanted = sorted(map(tuple, spark.table(table.name).select("k", "v", "p").collect()))
        found = engine.ask(query=f"select k, v, p from {source}")
        assert sorted(tuple(row.values()) for row in found.to_pylist()) == wanted


def rows_of(table, columns):
    """The rows of some columns, in an order of their own; unlike `==`, this tells -0.0 from 0.0 and finds NaN."""
    return sorted(map(repr, table.select(columns).to_pylist()))


def kind_of(kind):
    """A type without what is only its layout in memory, or a spelling of UTC."""
    if pa.types.is_struct(kind):
        return {each.name: kind_of(each.type) for each in kind}
    if pa.types.is_map(kind):
        return ["map", kind_of(kind.key_type), kind_of(kind.item_type)]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_list_view(kind):
        return ["list", kind_of(kind.value_type)]
    if pa.types.is_timestamp(kind):
        return f"timestamp {kind.unit} {'' if kind.tz is None else 'with zone'}"
    return re.sub(r"large_|_view", "", str(kind))


def as_arrow(rows):
    """A DataFrame of Spark as an Arrow table; Spark 3.5 has no public way."""
    if hasattr(rows, "toArrow"):
        return rows.toArrow()
    from pyspark.sql.pandas.types import to_arrow_schema

    batches = rows._collect_as_arrow()
    return pa.Table.from_batches(batches, None if batches else to_arrow_schema(rows.schema))


def output_of(python, lines):
    """What a script prints in a process of its own.

    The process ends without Python's own end: threads of delta-rs now and then abort it there, after its answer.
    """
    ended = f"{lines}\nimport os, sys\nsys.stdout.flush()\nos._exit(0)\n"
    done = subprocess.run([python, "-c", ended], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
