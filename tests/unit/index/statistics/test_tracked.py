"""Which columns are tracked."""

from __future__ import annotations

import pyarrow as pa

from dbt.adapters.zlayout.index.statistics.tracked import TrackedColumn, canonical_type, tracked_columns

SCHEMA = pa.schema(
    [
        ("day", pa.date32()),
        ("a", pa.large_string()),
        ("s", pa.struct([("x", pa.int32()), ("tags", pa.list_(pa.int32())), ("t", pa.struct([("y", pa.float64())]))])),
        ("m", pa.map_(pa.string(), pa.int32())),
        ("a.b", pa.timestamp("ns", tz="Europe/Berlin")),
        ("z", pa.dictionary(pa.int32(), pa.string())),
    ]
)


def paths(*arguments: object) -> list[tuple[str, ...]]:
    return [column.path for column in tracked_columns(SCHEMA, *arguments)]


def test_the_first_leaves_count_nested_ones_and_skip_lists_maps_and_partitions() -> None:
    assert paths(3, [], ["day"]) == [("a",), ("s", "x"), ("s", "t", "y")]
    assert paths(0, [], []) == []
    assert len(paths(32, [], [])) == 6


def test_keys_are_tracked_always_and_come_first() -> None:
    assert paths(1, [("z",), ("s", "x")], ["day"]) == [("z",), ("s", "x"), ("a",)]


def test_a_list_of_columns_is_taken_as_written_and_a_struct_stands_for_its_leaves() -> None:
    assert paths(["s", "`a.b`", "nowhere", "m"], [], []) == [("s", "x"), ("s", "t", "y"), ("a.b",)]
    assert paths([("s", "t")], [], []) == [("s", "t", "y")]


def test_types_are_those_that_spark_stores() -> None:
    found = {column.path: column.type for column in tracked_columns(SCHEMA, 32, [])}
    assert found[("a",)] == found[("z",)] == pa.string()
    assert found[("a.b",)] == pa.timestamp("us", tz="UTC")
    assert canonical_type(pa.large_binary()) == pa.binary()


def test_a_column_with_a_default_is_not_null_where_it_is_absent() -> None:
    assert tracked_columns(SCHEMA, ["s.x"], [], defaulted=[("s",)]) == (TrackedColumn(("s", "x"), pa.int32(), False),)
