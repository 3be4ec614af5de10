"""What footers leave open, what data says of it, and whose data is believed."""

from __future__ import annotations

import datetime as dt
import io
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt.adapters.zlayout.index.footers.footer import ColumnFooter, footer_statistics
from dbt.adapters.zlayout.index.footers.from_data import (
    columns_to_read,
    completed,
    entries_of,
    readable_columns,
    stats_of_values,
)
from dbt.adapters.zlayout.index.footers.parquet_values import Bounds
from dbt.adapters.zlayout.index.statistics.tracked import TrackedColumn

INSTANT = pa.timestamp("us", tz="UTC")
OLD = dt.datetime(1500, 1, 1, tzinfo=dt.timezone.utc)
NEW = dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc)
MODERN = {b"org.apache.spark.version": b"3.5.0"}


def written(
    columns: dict[str, pa.Array], metadata: dict[bytes, bytes] | None = None, **options: Any
) -> pq.FileMetaData:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns).replace_schema_metadata(metadata), sink, **options)
    return pq.read_metadata(sink)


def left_open(metadata: pq.FileMetaData, *columns: TrackedColumn) -> list[str]:
    return [".".join(each.path) for each in columns_to_read(metadata, columns, footer_statistics(metadata, columns))]


@pytest.mark.parametrize(
    ("values", "table_type"),
    [
        (pa.array([1, None], pa.int32()), pa.int64()),
        (pa.array([1.5]), pa.float64()),
        (pa.array(["a"]), pa.string()),
        (pa.array([b"a"]), pa.binary()),
        (pa.array([True]), pa.bool_()),
        (pa.array([Decimal("1.50")], pa.decimal128(5, 2)), pa.decimal128(5, 2)),
        (pa.array([dt.date(2024, 1, 1)]), pa.date32()),
        (pa.array([NEW], INSTANT), INSTANT),
        (pa.array([NEW.replace(tzinfo=None)], pa.timestamp("us")), pa.timestamp("us")),
        (pa.array([dt.time(1)], pa.time64("us")), pa.time64("us")),
        (pa.array([dt.timedelta(1)], pa.duration("us")), pa.duration("us")),
    ],
    ids=str,
)
def test_a_column_without_statistics_is_read(values: pa.Array, table_type: pa.DataType) -> None:
    metadata = written({"x": values}, write_statistics=False)
    assert left_open(metadata, TrackedColumn(("x",), table_type)) == ["x"]


@pytest.mark.parametrize(
    ("values", "table_type"),
    [
        (pa.array([1], pa.int64()), pa.string()),
        (pa.array([1], pa.uint64()), pa.decimal128(20, 0)),
        (pa.array(["a"]), pa.binary()),
        (pa.array([Decimal("1.50")], pa.decimal128(5, 2)), pa.decimal128(5, 1)),
        (pa.array([1.5]), pa.float32()),
        (pa.array([NEW], INSTANT), pa.timestamp("us")),
        (pa.array([NEW.replace(tzinfo=None)], pa.timestamp("us")), INSTANT),
        (pa.array([1], pa.int64()), INSTANT),
    ],
    ids=str,
)
def test_a_column_of_another_kind_of_type_stays_unknown(values: pa.Array, table_type: pa.DataType) -> None:
    assert left_open(written({"x": values}, write_statistics=False), TrackedColumn(("x",), table_type)) == []


def test_what_footers_tell_is_not_read_and_nan_is() -> None:
    columns = {"i": pa.array([1, None]), "f": pa.array([1.0, 2.0]), "nothing": pa.array([None, None], pa.int64())}
    tracked = [TrackedColumn((name,), values.type) for name, values in columns.items()]
    assert left_open(written(columns), *tracked) == ["f"]


def test_timestamps_of_96_bits_are_read_for_columns_with_a_zone_only() -> None:
    metadata = written({"at": pa.array([NEW], INSTANT)}, use_deprecated_int96_timestamps=True)
    assert left_open(metadata, TrackedColumn(("at",), INSTANT)) == ["at"]
    assert left_open(metadata, TrackedColumn(("at",), pa.timestamp("us"))) == []


def test_names_that_a_reader_may_take_otherwise_stay_unknown() -> None:
    metadata = written({"A": pa.array([1]), "a.b": pa.array([1]), "l": pa.array([[1]])}, write_statistics=False)
    asked = [TrackedColumn(path, pa.int64()) for path in (("a",), ("a", "b"), ("l",), ("gone",))]
    assert readable_columns(metadata, asked) == ()
    assert readable_columns(metadata, [TrackedColumn(("a.b",), pa.int64())]) != ()


def entry(low: dt.datetime, high: dt.datetime, rows: int = 1) -> ColumnFooter:
    return ColumnFooter(Bounds(*(int(pa.scalar(each, INSTANT).value) for each in (low, high))), 0, 0, rows)


def times(metadata: pq.FileMetaData, seen: ColumnFooter) -> Bounds | None:
    tracked = [TrackedColumn(("at",), INSTANT)]
    found = footer_statistics(metadata, tracked)
    return completed(metadata, tracked, found, {("at",): seen}).columns[0].bounds


def test_old_times_are_believed_of_writers_that_say_their_calendar() -> None:
    values = {"at": pa.array([OLD], INSTANT)}
    modern = written(values, MODERN, write_statistics=False)
    assert times(modern, entry(OLD, NEW)) == entry(OLD, NEW).bounds
    silent = written(values, write_statistics=False)
    assert times(silent, entry(OLD, NEW)) is None
    assert times(silent, entry(NEW, NEW)) == entry(NEW, NEW).bounds


@pytest.mark.parametrize(
    ("version", "believed"), [(b"2.4.8", False), (b"3.0.3", False), (b"3.1.0", True), (b"4.0.0", True)]
)
def test_old_times_of_96_bits_are_believed_from_the_release_on_that_wrote_them_so(
    version: bytes, believed: bool
) -> None:
    values = {"at": pa.array([OLD], INSTANT)}
    metadata = written(values, {b"org.apache.spark.version": version}, use_deprecated_int96_timestamps=True)
    assert (times(metadata, entry(OLD, OLD)) is not None) == believed
    legacy = {b"org.apache.spark.version": version, b"org.apache.spark.legacyINT96": b""}
    assert times(written(values, legacy, use_deprecated_int96_timestamps=True), entry(OLD, OLD)) is None


def test_times_of_96_bits_that_a_reader_may_move_by_its_zone_are_wide() -> None:
    metadata = written({"at": pa.array([NEW], INSTANT)}, use_deprecated_int96_timestamps=True)
    bounds = times(metadata, entry(NEW, NEW))
    exact = entry(NEW, NEW).bounds
    assert bounds is not None
    assert exact is not None
    assert bounds.minimum <= exact.minimum - 16 * 3_600_000_000
    assert bounds.maximum >= exact.maximum + 16 * 3_600_000_000
    assert not bounds.minimum_exact
    assert not bounds.maximum_exact


def test_a_read_that_saw_another_number_of_rows_is_not_believed() -> None:
    metadata = written({"at": pa.array([NEW], INSTANT)}, write_statistics=False)
    assert times(metadata, entry(NEW, NEW, rows=2)) is None


def test_values_become_statistics_in_sparks_order() -> None:
    numbers = pa.array([0.0, -0.0, math.nan, None, -1.5, math.inf])
    (found,) = entries_of(stats_of_values(numbers, pa.float64()))
    assert found == ColumnFooter(Bounds(-1.5, math.inf), 1, 1, 6)
    (found,) = entries_of(stats_of_values(pa.array([math.nan, None]), pa.float64()))
    assert found == ColumnFooter(None, 1, 1, 2)
    (found,) = entries_of(stats_of_values(pa.array(["z", "é", "\U0001f600", "\uffff", None]), pa.string()))
    assert found == ColumnFooter(Bounds("z", "\U0001f600"), 1, 0, 5)


def test_texts_that_are_no_utf8_have_no_bounds() -> None:
    raw = pa.StringArray.from_buffers(1, pa.py_buffer(b"\x00\x00\x00\x00\x02\x00\x00\x00"), pa.py_buffer(b"\xff\xfe"))
    (found,) = entries_of(stats_of_values(raw, pa.string()))
    assert found == ColumnFooter(None, 0, 0, 1)
