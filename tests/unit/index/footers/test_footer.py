"""What is believed of a Parquet footer."""

from __future__ import annotations

import datetime as dt
import io
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt.adapters.zlayout.index.footers.footer import footer_statistics, footer_table
from dbt.adapters.zlayout.index.footers.parquet_values import Bounds, writer_rules
from dbt.adapters.zlayout.index.statistics.tracked import TrackedColumn

# Rows 1, NaN and 2, written by parquet-java itself.
PARQUET_JAVA = Path(__file__).parents[3] / "fixtures" / "parquet_java"
MODERN = {b"org.apache.spark.version": b"4.0.1"}


def read(table: pa.Table, path: tuple[str, ...], column_type: pa.DataType, **options: Any) -> dict[str, Any]:
    sink = io.BytesIO()
    absent_is_null = options.pop("absent_is_null", True)
    metadata = options.pop("metadata", MODERN)
    pq.write_table(table.replace_schema_metadata(metadata), sink, **options)
    tracked = [TrackedColumn(path, column_type, absent_is_null)]
    statistics = [footer_statistics(pq.read_metadata(sink), tracked)]
    row: dict[str, Any] = footer_table(["f"], statistics, tracked).column("c0").to_pylist()[0]
    return row


def bounds(row: dict[str, Any]) -> tuple[Any, Any]:
    return row["min"], row["max"]


def test_row_groups_are_merged() -> None:
    row = read(pa.table({"a": [3, None, 1, 9, None, None]}), ("a",), pa.int64(), row_group_size=2)
    assert row == {
        "min": 1,
        "max": 9,
        "min_exact": True,
        "max_exact": True,
        "null_count": 3,
        "nan_count": 0,
        "value_count": 6,
    }


def test_a_row_group_without_statistics_leaves_the_column_unknown() -> None:
    row = read(pa.table({"a": [1, 2]}), ("a",), pa.int64(), write_statistics=False)
    assert bounds(row) == (None, None)
    assert (row["null_count"], row["value_count"]) == (None, 2)


def test_int96_timestamps_have_no_bounds() -> None:
    table = pa.table({"t": pa.array([1, 2], pa.timestamp("us"))})
    row = read(table, ("t",), pa.timestamp("us"), use_deprecated_int96_timestamps=True)
    assert bounds(row) == (None, None)


def test_a_column_that_the_file_lacks_is_null_in_all_rows() -> None:
    row = read(pa.table({"a": [1, 2]}), ("b",), pa.string())
    assert bounds(row) == (None, None)
    assert (row["null_count"], row["nan_count"], row["value_count"]) == (2, 0, 2)


def test_an_absent_column_with_a_default_is_unknown() -> None:
    assert read(pa.table({"a": [1, 2]}), ("b",), pa.string(), absent_is_null=False)["null_count"] is None


@pytest.mark.parametrize("path", [("B",), ("b", "x"), ("S", "x"), ("s",), ("l", "element")])
def test_a_column_of_another_case_or_shape_is_unknown(path: tuple[str, ...]) -> None:
    table = pa.table({"b": [1, 2], "s": [{"x": 1}, {"x": 2}], "l": [[1], [2]]})
    row = read(table, path, pa.int64())
    assert bounds(row) == (None, None)
    assert row["null_count"] is None


def test_struct_fields_are_told_from_names_with_dots() -> None:
    table = pa.table({"a.b": [1, 2], "a": [{"b": 7}, None], "l": [[0], [9]]})
    assert bounds(read(table, ("a.b",), pa.int64())) == (1, 2)
    nested = read(table, ("a", "b"), pa.int64())
    assert bounds(nested) == (7, 7)
    assert nested["null_count"] == 1


def test_a_footer_does_not_count_nan() -> None:
    row = read(pa.table({"x": [1.0, float("nan"), None, -2.0]}), ("x",), pa.float64())
    assert (bounds(row), row["nan_count"], row["null_count"]) == ((-2.0, 1.0), None, 1)


def test_a_row_group_of_nan_leaves_the_bounds_unknown() -> None:
    table = pa.table({"x": [float("nan"), 1.0]})
    assert bounds(read(table, ("x",), pa.float64(), row_group_size=1)) == (None, None)


@pytest.mark.parametrize("precision", [5, 15, 38])
@pytest.mark.parametrize("as_integer", [True, False])
def test_decimals_of_every_physical_type(precision: int, as_integer: bool) -> None:
    kind = pa.decimal128(precision, 2)
    table = pa.table({"d": pa.array([Decimal("-1.25"), Decimal("3.50")], kind)})
    options = {"store_decimal_as_integer": True} if as_integer and int(pa.__version__.split(".")[0]) >= 18 else {}
    assert bounds(read(table, ("d",), kind, **options)) == (Decimal("-1.25"), Decimal("3.50"))
    assert bounds(read(table, ("d",), pa.decimal128(precision, 1), **options)) == (None, None)


def test_decimals_of_38_digits_keep_all_their_digits() -> None:
    kind, huge = pa.decimal128(38, 10), Decimal("1234567890123456789012345678.0123456789")
    table = pa.table({"d": pa.array([huge, -huge], kind)})
    assert bounds(read(table, ("d",), kind)) == (-huge, huge)
    wide = pa.table({"d": pa.array([Decimal("1234.50")], pa.decimal128(6, 2))})
    assert bounds(read(wide, ("d",), pa.decimal128(5, 2))) == (None, None)
    assert bounds(read(wide, ("d",), pa.decimal128(20, 2))) == (Decimal("1234.50"),) * 2


@pytest.mark.parametrize("unit", ["ms", "us"])
def test_timestamps_are_taken_in_microseconds(unit: str) -> None:
    moment = dt.datetime(2024, 5, 6, 7, 8, 9, 123_000, tzinfo=dt.timezone.utc)
    table = pa.table({"t": pa.array([moment], pa.timestamp(unit, tz="UTC"))})
    assert bounds(read(table, ("t",), pa.timestamp("us", tz="UTC"))) == (moment, moment)
    assert bounds(read(table, ("t",), pa.timestamp("us"))) == (None, None)


def test_nanoseconds_are_widened_outward() -> None:
    table = pa.table({"t": pa.array([-1, 1_001], pa.timestamp("ns"))})
    row = read(table, ("t",), pa.timestamp("us"))
    epoch = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - a timestamp without zone
    assert bounds(row) == (epoch - dt.timedelta(microseconds=1), epoch + dt.timedelta(microseconds=2))
    assert not row["min_exact"]
    assert not row["max_exact"]


def test_unsigned_integers_count_only_where_the_type_can_hold_them() -> None:
    table = pa.table({"u": pa.array([1, 2**32 - 1], pa.uint32()), "v": pa.array([1, 2**64 - 1], pa.uint64())})
    assert bounds(read(table, ("u",), pa.int64())) == (1, 2**32 - 1)
    assert bounds(read(table, ("u",), pa.int32())) == (None, None)
    assert bounds(read(table, ("v",), pa.int64())) == (None, None)


@pytest.mark.parametrize(
    ("column", "column_type"),
    [
        (pa.array([1, 2]), pa.string()),
        (pa.array(["1"]), pa.int64()),
        (pa.array([1.5]), pa.float32()),
        (pa.array([1], pa.date32()), pa.int32()),
        (pa.array([1], pa.int32()), pa.date32()),
        (pa.array([b"a"]), pa.string()),
        (pa.array([1]), pa.float64()),
        (pa.array([1], pa.timestamp("us")), pa.int64()),
        (pa.array([1], pa.timestamp("us")), pa.duration("us")),
        (pa.array([1], pa.int32()), pa.duration("us")),
        (pa.array([1], pa.time64("ns")), pa.time64("us")),
        (pa.array([1], pa.int64()), pa.time64("us")),
        (pa.array([-1], pa.int64()).view(pa.time64("us")), pa.time64("us")),
        (pa.array([86_400_000_000], pa.int64()).view(pa.time64("us")), pa.time64("us")),
    ],
)
def test_a_file_of_another_type_has_counts_but_no_bounds(column: pa.Array, column_type: pa.DataType) -> None:
    row = read(pa.table({"a": column}), ("a",), column_type)
    assert bounds(row) == (None, None)
    assert row["null_count"] == 0


def test_integers_and_floats_may_be_narrower_than_the_table() -> None:
    table = pa.table({"i": pa.array([-3, 4], pa.int8()), "f": pa.array([0.5, 1.5], pa.float32())})
    assert bounds(read(table, ("i",), pa.int64())) == (-3, 4)
    assert bounds(read(table, ("f",), pa.float64())) == (0.5, 1.5)


def test_old_dates_count_only_if_the_file_says_which_calendar_wrote_them() -> None:
    old = [dt.date(1200, 1, 1), dt.date(2000, 1, 1)]
    table = pa.table({"d": old, "t": pa.array(old, pa.date32()).cast(pa.timestamp("us"))})
    legacy = {**MODERN, b"org.apache.spark.legacyDateTime": b""}
    for path, kind in ((("d",), pa.date32()), (("t",), pa.timestamp("us"))):
        assert None not in bounds(read(table, path, kind))
        assert bounds(read(table, path, kind, metadata=None)) == (None, None)
        assert bounds(read(table, path, kind, metadata=legacy)) == (None, None)
        assert None not in bounds(read(table.slice(1), path, kind, metadata=None))


def test_text_bounds_of_pyarrow_are_exact_and_those_of_unknown_writers_are_not_believed() -> None:
    assert writer_rules("parquet-cpp-arrow version 26.0.1", {}).text_exact
    spark = writer_rules("parquet-mr version 1.13.1 (build x)", {})
    assert spark.text_bounds
    assert not spark.text_exact
    assert not writer_rules("parquet-mr version 1.9.0", {}).text_bounds
    assert not writer_rules("impala version 3.4", {}).text_bounds
    assert not writer_rules("", {b"org.apache.spark.version": b"2.4.8"}).text_bounds
    assert writer_rules("", {b"org.apache.spark.version": b"3.0.0"}).text_bounds


def test_bounds_from_a_dictionary_of_arrow_may_be_values_that_no_row_has() -> None:
    words = pa.array(["x", "zzz", "x", None])
    plain, coded = pa.table({"v": words[2:]}), pa.table({"v": words.dictionary_encode()[2:]})
    found = read(plain, ("v",), pa.string())
    assert (bounds(found), found["max_exact"]) == (("x", "x"), True)
    found = read(coded, ("v",), pa.string())
    assert (bounds(found), found["max_exact"], found["null_count"]) == (("x", "zzz"), False, 1)


@pytest.mark.parametrize(
    ("created_by", "proves"),
    [
        ("parquet-mr version 1.9.0", False),
        ("parquet-mr version 1.10.0", True),
        ("parquet-mr version 1.13.1 (build x)", True),
        ("parquet-mr version 1.17.0 (build x)", True),
        ("parquet-mr version 1.17.1", False),
        ("parquet-mr version 1.18.0 (build x)", False),
        ("parquet-mr version 2.0.0", False),
        ("parquet-cpp-arrow version 1.17.0", False),
        ("parquet-mr version 1.17", True),
    ],
)
def test_only_writers_that_are_known_to_drop_bounds_for_nan_prove_that_there_is_none(
    created_by: str, proves: bool
) -> None:
    assert writer_rules(created_by, {}).nan_drops_bounds is proves


@pytest.mark.parametrize("file", ["1.17.0", "1.18.0", "1.18.0-type-defined"])
def test_no_release_of_parquet_java_is_taken_to_say_that_a_column_with_nan_has_none(file: str) -> None:
    tracked = [TrackedColumn(("x",), pa.float64(), True), TrackedColumn(("y",), pa.float32(), True)]
    columns = footer_statistics(pq.read_metadata(PARQUET_JAVA / f"{file}.parquet"), tracked).columns
    assert [(each.nan_count, each.null_count, each.value_count) for each in columns] == [(None, 0, 3)] * 2


def test_a_file_whose_bounds_leave_nan_out_keeps_its_bounds_for_numbers() -> None:
    tracked = [TrackedColumn(("x",), pa.float64(), True)]
    (column,) = footer_statistics(pq.read_metadata(PARQUET_JAVA / "1.18.0-type-defined.parquet"), tracked).columns
    assert column.bounds == Bounds(1.0, 2.0)


class FakeStatistics:
    has_min_max = has_null_count = True

    def __init__(self, low: Any, high: Any, nulls: int) -> None:
        self.min_raw, self.max_raw, self.null_count = low, high, nulls


@pytest.mark.parametrize(
    ("low", "high", "nulls", "expected_nulls"),
    [(5, 1, 0, None), (1, 5, 9, None), (1, 5, 4, None), (1, 5, -1, None), (1, 5, 3, 3)],
)
def test_statistics_that_contradict_themselves_are_not_believed(
    low: int, high: int, nulls: int, expected_nulls: int | None
) -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"a": np.arange(4)}), sink)
    real = pq.read_metadata(sink)

    class Chunk:
        statistics, num_values = FakeStatistics(low, high, nulls), 4

    class RowGroup:
        def column(self, _: int) -> Chunk:
            return Chunk()

    class Footer:
        schema, created_by, metadata = real.schema, real.created_by, None
        num_rows, num_row_groups, num_columns = 4, 1, 1

        def row_group(self, _: int) -> RowGroup:
            return RowGroup()

    (column,) = footer_statistics(Footer(), [TrackedColumn(("a",), pa.int64())]).columns
    assert column.null_count == expected_nulls
    assert (column.bounds is None) == (expected_nulls is None)
