"""The text of partition values and statistics in an add action of Delta."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from published_folder import DeltaFolder

from dbt.adapters.zlayout.errors import UnsupportedError
from dbt.adapters.zlayout.index.statistics.column_stats import column_stats_table, stats_type
from dbt.adapters.zlayout.publish.delta_log import commit_path
from dbt.adapters.zlayout.publish.delta_values import partition_texts, statistics_texts
from dbt.adapters.zlayout.store.local import LocalStore
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.files.data_files import DataFile, DataFiles
from dbt.adapters.zlayout.timeline.transactions.change import Change
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction

UTC = dt.timezone.utc


@pytest.mark.parametrize(
    ("kind", "texts", "written"),
    [
        ("decimal(10,2)", ["1", "1.5", "-0.25", "100", None], ["1.00", "1.50", "-0.25", "100.00", None]),
        ("decimal(38,38)", ["0.00000000000000000000000000000000000001"], ["0.00000000000000000000000000000000000001"]),
        *(("integer", ["007", "-1"], ["7", "-1"]), ("date", ["2024-1-5", "0001-01-01"], ["2024-01-05", "0001-01-01"])),
        *(("boolean", ["True", "false"], ["true", "false"]), ("string", ["1.50", "é"], ["1.50", "é"])),
        ("timestamp_ntz", ["2024-01-05 10:00:00.500", "1969-12-31 23:59:59.123456"],
         ["2024-01-05 10:00:00.5", "1969-12-31 23:59:59.123456"]),
        ("double", ["1.0E20", "NaN", "-Infinity", "0.1"], ["1.0E20", "NaN", "-Infinity", "0.1"]),
    ],
)  # fmt: skip
def test_values_are_written_as_readers_understand_them(kind, texts, written) -> None:
    assert partition_texts(pa.array(texts, pa.string()), "p", kind) == written


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        *(("timestamp_ntz", "2024-01-05T10:00:00"), ("decimal(4,2)", "1.125"), ("integer", "1e3"), ("byte", "300")),
        *(("date", "2024-02-30"), ("boolean", "yes"), ("double", "1,5")),
    ],
)
def test_a_folder_that_is_no_value_of_the_column_is_named(kind, text) -> None:
    with pytest.raises(UnsupportedError, match=f"'p={text}' is not spelled as a value of type .*readers of delta"):
        partition_texts(pa.array([None, text]), "p", kind)


def test_the_log_has_the_values_so(tmp_path) -> None:
    table = DeltaFolder(LocalStore(tmp_path / "t"))
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, kind in (("k", "long"), ("p", "decimal(9,2)"))
    ]
    file = DataFile("p=1/0000000000000009_20260101000000000.parquet", (("p", "1"),), 1, 10, 1000, "g")
    with Transaction.begin(table.timeline, Action.REPLACECOMMIT, Operation.OVERWRITE) as transaction:
        schema_json = json.dumps({"type": "struct", "fields": fields})
        transaction.commit(Change(DataFiles.of([file], ("p",)), schema_json=schema_json, partition_by=("p",)))
    table.publish()
    (added,) = [json.loads(each)["add"] for each in table.store.read(commit_path(0)).splitlines() if b'"add"' in each]
    assert added["partitionValues"] == {"p": "1.00"}


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
