"""Statistics of Delta's add actions: bounds are proven, rounded outwards, and spelled as readers expect."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from dbt.adapters.zlayout.index.statistics.column_stats import column_stats_table, stats_type
from dbt.adapters.zlayout.publish.delta_statistics import statistics_texts

UTC = dt.timezone.utc


def stats_of(kind: pa.DataType, low: Any, high: Any, nulls: int | None = 0, nans: int | None = 0) -> pa.StructArray:
    row = {"min": low, "max": high, "min_exact": True, "max_exact": True}
    row |= {"null_count": nulls, "nan_count": nans, "value_count": 10}
    return pa.array([row], stats_type(kind))


def bounds(kind: pa.DataType, low: Any, high: Any, **counts: Any) -> tuple[Any, Any]:
    stats = column_stats_table(pa.array(["f"]), [("c",)], [stats_of(kind, low, high, **counts)])
    (text,) = statistics_texts(pa.array(["f"]), pa.array([10], pa.int64()), stats, {"c"})
    read = json.loads(text, parse_float=str)
    assert read["numRecords"] == 10
    return read.get("minValues", {}).get("c"), read.get("maxValues", {}).get("c")


@pytest.mark.parametrize(
    ("kind", "low", "high", "expected"),
    [
        (pa.int64(), -(2**63), 2**63 - 1, (-(2**63), 2**63 - 1)),
        (pa.int8(), -1, 1, (-1, 1)),
        (pa.float64(), -1.5, 1e300, ("-1.5", "1e+300")),
        (pa.float64(), 0.0, 0.0, ("-0.0", "0.0")),
        (pa.float64(), -0.0, -0.0, ("-0.0", "0.0")),
        (pa.float32(), 0.1, 0.1, ("0.10000000149011612", "0.10000000149011612")),
        (pa.float64(), -1.0, math.inf, (None, None)),
        (pa.float64(), -math.inf, 1.0, (None, None)),
        (pa.decimal128(38, 10), Decimal("1E-10"), Decimal(10) ** 27, ("0.0000000001", f"{10**27}.0000000000")),
        (pa.date32(), dt.date(1, 1, 1), dt.date(9999, 12, 31), ("0001-01-01", "9999-12-31")),
        (pa.bool_(), False, True, (None, None)),
        (pa.binary(), b"a", b"b", (None, None)),
        (pa.string(), 'a"\\\n', "é😀", ('a"\\\n', "é😀")),
        (pa.string(), None, "z", (None, "z")),
    ],
)  # fmt: skip
def test_bounds_are_spelled_as_delta_spells_them(kind: pa.DataType, low: Any, high: Any, expected: Any) -> None:
    assert bounds(kind, low, high) == expected


@pytest.mark.parametrize(
    ("micros", "down", "up"),
    [
        (0, "1970-01-01T00:00:00.000", "1970-01-01T00:00:00.000"),
        (1, "1970-01-01T00:00:00.000", "1970-01-01T00:00:00.001"),
        (999, "1970-01-01T00:00:00.000", "1970-01-01T00:00:00.001"),
        (1000, "1970-01-01T00:00:00.001", "1970-01-01T00:00:00.001"),
        (-1, "1969-12-31T23:59:59.999", "1970-01-01T00:00:00.000"),
        (-1000, "1969-12-31T23:59:59.999", "1969-12-31T23:59:59.999"),
        (-62_135_596_800_000_000, "0001-01-01T00:00:00.000", "0001-01-01T00:00:00.000"),
        (-62_135_596_800_000_001, None, None),
        (253_402_300_799_999_000, "9999-12-31T23:59:59.999", "9999-12-31T23:59:59.999"),
        (253_402_300_799_999_001, None, None),
        (2**63 - 1, None, None),
        (-(2**63), None, None),
    ],
)
@pytest.mark.parametrize("zone", ["UTC", None])
def test_times_have_three_decimals_and_are_rounded_outwards(
    micros: int, down: str | None, up: str | None, zone: str | None
) -> None:
    kind = pa.timestamp("us", zone)
    moment = pa.scalar(micros, pa.int64()).cast(kind)
    mark = "Z" if zone else ""
    expected = tuple(each and each + mark for each in (down, up))
    assert bounds(kind, moment, moment) == expected


@pytest.mark.parametrize("nans", [None, 1])
def test_a_float_column_that_may_hold_nan_has_no_bounds(nans: int | None) -> None:
    assert bounds(pa.float64(), 1.0, 2.0, nans=nans) == (None, None)


def test_fields_of_structs_are_in_objects_and_unknown_files_have_a_row_count() -> None:
    columns = [("s", "a"), ("s", "b.c"), ("t",)]
    one = [stats_of(pa.int32(), 1, 2), stats_of(pa.string(), "x", "y", nulls=3), stats_of(pa.int32(), None, None, None)]
    stats = column_stats_table(pa.array(["known"]), columns, one)
    texts = statistics_texts(pa.array(["new", "known"]), pa.array([5, 10], pa.int64()), stats, {"s", "t"})
    assert [json.loads(each) for each in texts] == [
        {"numRecords": 5},
        {
            "numRecords": 10,
            "minValues": {"s": {"a": 1, "b.c": "x"}},
            "maxValues": {"s": {"a": 2, "b.c": "y"}},
            "nullCount": {"s": {"a": 0, "b.c": 3}},
        },
    ]


def test_without_files_there_are_no_statistics() -> None:
    stats = column_stats_table(pa.array([], pa.string()), [], [])
    assert statistics_texts(pa.array([], pa.string()), pa.array([], pa.int64()), stats, {"c"}) == []
    assert statistics_texts(pa.array(["f"]), pa.array([1], pa.int64()), stats, {"c"}) == ['{"numRecords":1}']


def test_columns_that_the_table_lacks_are_left_out() -> None:
    stats = column_stats_table(pa.array(["f"]), [("c",), ("gone",)], [stats_of(pa.int32(), 1, 2)] * 2)
    (text,) = statistics_texts(pa.array(["f"]), pa.array([10], pa.int64()), stats, {"c"})
    assert json.loads(text)["minValues"] == {"c": 1}
