"""Partial rows: a null in an incoming row keeps the value that the table has."""

import itertools

import pytest

from dbt.adapters.zlayout.errors import WriteError
from dbt.adapters.zlayout.table.ztable import ZTable

COLUMNS = "k long, o int, a string, b long, p string"
DELETED = "op = 'D'"


def frame(spark, rows, columns=COLUMNS):
    return spark.createDataFrame(rows, columns).coalesce(1)


def made(spark, name, rows, **settings):
    given = {"table_type": "merge_on_read", "unique_key": ["k"], "ordering": "o", "payload": "partial"}
    given |= {"zorder": ["k"], "compaction": "off", **settings}
    return ZTable.write(spark, f"z.partial_{name}", frame(spark, rows), **given)


def held(table):
    return sorted(map(tuple, table._spark.sql(f"select k, o, a, b, p from {table.name}").collect()), key=repr)


def counts(done):
    return done.rows_inserted, done.rows_updated, done.rows_deleted


# Of one key: ordering value, two values, a partition.
EVENTS = [(1, "a1", None, "x"), (2, None, 2, "x"), (3, None, None, None), (4, "a4", None, "y"), (5, None, 5, None)]


def in_order(events):
    """The row after all events, in order."""
    row = (None, None, None, None)
    for event in events:
        row = tuple(old if new is None else new for new, old in zip(event, row, strict=True))
    return row


@pytest.mark.slow
def test_every_split_of_events_into_batches_ends_the_same(spark):
    splits = list(itertools.product([False, True], repeat=len(EVENTS) - 1))
    table = made(spark, "splits", [(-1, 9, "other", 9, "x")], partition_by="p")
    # Each way to split is a key of its own: event n of a key is in the batch of its number of cuts before it.
    batches: dict[int, list[tuple[object, ...]]] = {}
    for key, cuts in enumerate(splits):
        for number, event in enumerate(EVENTS):
            batches.setdefault(sum(cuts[:number]), []).append((key, *event))
    for number in sorted(batches):
        table.upsert(frame(spark, batches[number][::-1]))
    wanted = [(key, *in_order(EVENTS)) for key in range(len(splits))]
    assert held(table) == sorted([*wanted, (-1, 9, "other", 9, "x")], key=repr)
    table.compact()
    assert held(table) == sorted([*wanted, (-1, 9, "other", 9, "x")], key=repr)


def test_a_late_value_replaces_nothing_even_if_a_newer_row_comes_with_it(spark):
    table = made(spark, "late_value", [(1, 4, "o4", None, "x"), (2, 4, "o4", 4, "x"), (3, None, None, 1, "x")])
    table.upsert(
        frame(spark, [(1, 2, "o2", 2, None), (1, 6, None, None, None), (2, 6, None, 6, None), (2, 5, "o5", 5, None)])
    )
    assert held(table) == [(1, 6, "o4", 2, "x"), (2, 6, "o5", 6, "x"), (3, None, None, 1, "x")]
    # A null is the least value of the ordering.
    table.upsert(frame(spark, [(3, None, "new", 2, None), (1, None, "late", None, None), (1, 7, None, None, None)]))
    assert held(table) == [(1, 7, "o4", 2, "x"), (2, 6, "o5", 6, "x"), (3, None, "new", 2, "x")]


def test_a_late_row_fills_nulls_only(spark):
    table = made(spark, "late", [(1, 5, "a", None, None), (2, 5, "a", 2, "x"), (3, None, None, 3, None)])
    done = table.upsert(frame(spark, [(1, 4, "late", 1, None), (2, 4, "late", 9, "late"), (3, 1, "a", None, None)]))
    assert counts(done) == (0, 2, 0)
    assert held(table) == [(1, 5, "a", 1, None), (2, 5, "a", 2, "x"), (3, 1, "a", 3, None)]
    before = table.version
    assert counts(table.upsert(frame(spark, [(2, 1, "later", 1, "z")]))) == (0, 0, 0)
    assert ZTable.for_name(spark, table.name).version == before


def test_nothing_from_before_a_delete_comes_back(spark):
    table = made(spark, "feed", [(k, 2, "old", k, "x") for k in range(5)])
    batch = [
        (0, 3, None, None, None, "D"),
        (0, 4, None, 40, None, "U"),  # after a delete: nothing of the old row
        (1, 1, None, None, None, "D"),  # older than the table's row: nothing is deleted
        (1, 4, None, 41, None, "U"),
        (2, 3, "before", 42, "y", "U"),
        (2, 4, None, None, None, "D"),
        (2, 5, "after", None, None, "U"),
        (3, 3, None, 43, None, "U"),
        (3, 4, None, None, None, "D"),  # the last event: the row is gone
        (9, 1, "new", None, None, "U"),
        (9, 2, None, 49, None, None),
    ]
    table.merge(frame(spark, batch, COLUMNS + ", op string"), "k", deleted_when=DELETED)
    wanted = [(0, 4, None, 40, None), (1, 4, "old", 41, "x"), (2, 5, "after", None, None), (4, 2, "old", 4, "x")]
    assert held(table) == [*wanted, (9, 2, "new", 49, None)]
    table.merge(frame(spark, [(3, 3, "late", 1, None, "U")], COLUMNS + ", op string"), "k", deleted_when=DELETED)
    assert held(table) == [*wanted, (9, 2, "new", 49, None)]


@pytest.mark.slow
def test_values_of_every_type_are_kept(spark):
    columns = {
        "f": ("double", "double('NaN')"),
        "z": ("double", "-0.0D"),
        "d": ("decimal(30,5)", "12345.00001BD"),
        "t": ("timestamp", "timestamp'1900-01-01 00:00:00.123456'"),
        "n": ("timestamp_ntz", "timestamp_ntz'2024-02-29 12:00:00'"),
        "s": ("struct<x:int,`y.z`:array<string>>", "named_struct('x', 1, 'y.z', array('ü', null))"),
        "m": ("map<string,int>", "map('a', 1)"),
        "b": ("binary", "X'00ff'"),
        "e": ("string", "''"),
        "`ä ``x`": ("boolean", "false"),
    }
    full = ", ".join(f"cast({value} as {kind}) {name}" for name, (kind, value) in columns.items())
    empty = ", ".join(f"cast(null as {kind}) {name}" for name, (kind, _) in columns.items())
    before = spark.sql(f"select 1L k, {full} union all select 2L, {', '.join('null' for _ in columns)}")
    table = ZTable.write(
        spark, "z.partial_types", before, table_type="merge_on_read", unique_key="k", payload="partial"
    )
    table.upsert(spark.sql(f"select 1L k, {empty} union all select 2L k, {full} union all select 3L k, {full}"))
    shown = ", ".join(f"to_json(struct({name})) as c{number}" for number, name in enumerate(columns))
    rows = spark.sql(f"select k, {shown} from z.partial_types").collect()
    same = spark.sql(f"select {shown} from (select {full})").head()
    assert {row.k: tuple(row)[1:] for row in rows} == {key: tuple(same) for key in (1, 2, 3)}
    # A batch may lack columns: they count as null.
    table.upsert(spark.sql("select 1L k, 'new' e"), on_schema_change="append_new_columns")
    row = spark.sql("select e, d from z.partial_types where k = 1").head()
    assert (row.e, str(row.d)) == ("new", "12345.00001")


@pytest.mark.slow
def test_without_ordering_keys_are_unique_and_a_first_build_fills_too(spark):
    table = made(spark, "first", [(1, 1, "a", None, None), (1, 3, None, 3, None), (1, 2, None, 2, "y")])
    assert held(table) == [(1, 3, "a", 3, "y")]
    plain = made(spark, "unordered", [(1, 1, "a", 1, None)], ordering=None)
    with pytest.raises(WriteError, match="several rows with the same unique_key"):
        plain.upsert(frame(spark, [(1, 2, None, 2, None), (1, 3, "b", None, None)]))
    plain.upsert(frame(spark, [(1, 0, None, 2, "z")]))
    assert held(plain) == [(1, 0, "a", 2, "z")]
