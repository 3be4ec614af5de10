"""Laws of the index: footers against brute force, merging, and whatever a damaged index may say."""

from __future__ import annotations

import datetime as dt
import io
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from dbt.adapters.zlayout.index.footers.footer import footer_statistics, footer_table
from dbt.adapters.zlayout.index.statistics.column_stats import cut_bounds, stats_type
from dbt.adapters.zlayout.index.statistics.merge import merge_statistics
from dbt.adapters.zlayout.index.statistics.tracked import TrackedColumn

UTC = dt.timezone.utc
VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.bool_(): st.booleans(),
    pa.int8(): st.integers(-128, 127),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats(),
    pa.decimal128(7, 2): st.decimals(-99999, 99999, places=2),
    pa.decimal128(16, 3): st.decimals(-(10**12), 10**12, places=3),
    pa.decimal128(38, 0): st.integers(-(10**37), 10**37).map(Decimal),
    pa.date32(): st.dates(),
    pa.timestamp("us", tz="UTC"): st.datetimes(timezones=st.just(UTC)),
    pa.timestamp("us"): st.datetimes(),
    pa.time64("us"): st.times(),
    pa.duration("us"): st.timedeltas(dt.timedelta(microseconds=-(2**62)), dt.timedelta(microseconds=2**62)),
    pa.string(): st.text(st.characters(exclude_categories=("Cs",)), max_size=5),
    pa.binary(): st.binary(max_size=5),
}
MODERN = {b"org.apache.spark.version": b"3.5.0"}


def order(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


def is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


@st.composite
def typed_columns(draw: st.DrawFn) -> pa.Array:
    kind = draw(st.sampled_from(list(VALUES)))
    return pa.array(draw(st.lists(st.none() | VALUES[kind], max_size=12)), kind)


@settings(deadline=None, max_examples=150)
@given(typed_columns(), st.integers(1, 5), st.booleans())
def test_footer_statistics_equal_brute_force(column: pa.Array, rows: int, nested: bool) -> None:
    values = column.to_pylist()
    table = pa.table({"s": pa.StructArray.from_arrays([column], ["x"])} if nested else {"x": column})
    path = ("s", "x") if nested else ("x",)
    sink = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(MODERN), sink, row_group_size=rows)
    tracked = [TrackedColumn(path, column.type)]
    found = footer_statistics(pq.read_metadata(sink), tracked)
    (row,) = footer_table(["f"], [found], tracked).column("c0").to_pylist()

    comparable = [value for value in values if value is not None and not is_nan(value)]
    assert (row["null_count"], row["value_count"]) == (values.count(None), len(values))
    counted = not pa.types.is_floating(column.type) or values.count(None) == len(values)
    assert row["nan_count"] == (0 if counted else None)
    if row["min"] is not None:
        assert (row["min"], row["max"]) == (min(comparable, key=order), max(comparable, key=order))
        assert row["min_exact"]
        assert row["max_exact"]
    else:
        # A row group of NaN only has no bounds, which a footer cannot tell from unknown ones.
        assert not comparable or any(map(is_nan, values))


@st.composite
def statistics_rows(draw: st.DrawFn) -> list[dict[str, Any] | None]:
    unknown_or = lambda strategy: st.none() | strategy  # noqa: E731 - one strategy, used thrice
    row = st.fixed_dictionaries(
        {
            "min": unknown_or(st.sampled_from(["a", "b", "c"])),
            "max": unknown_or(st.sampled_from(["c", "d", "é"])),
            "min_exact": st.booleans(),
            "max_exact": st.booleans(),
            "null_count": unknown_or(st.integers(0, 3)),
            "nan_count": st.just(0),
            "value_count": unknown_or(st.integers(3, 6)),
        }
    ).map(lambda row: {**row, **{f"{s}_exact": row[s] is not None and row[f"{s}_exact"] for s in ("min", "max")}})
    without_values = st.integers(0, 3).map(
        lambda n: {
            "min": None,
            "max": None,
            "min_exact": False,
            "max_exact": False,
            "null_count": n,
            "nan_count": 0,
            "value_count": n,
        }
    )
    return draw(st.lists(row | without_values, max_size=8))


KIND = stats_type(pa.string())


def merged(rows: list[Any], groups: list[int], count: int) -> list[dict[str, Any]]:
    stats = pa.array(rows, KIND)
    result: list[dict[str, Any]] = merge_statistics(stats, np.array(groups, np.int64), count).to_pylist()
    return result


@settings(deadline=None)
@given(statistics_rows(), st.data())
def test_merging_in_any_grouping_and_order_gives_the_same(rows: list[Any], data: st.DataObject) -> None:
    groups = data.draw(st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows)))
    shuffled = data.draw(st.permutations(rows))
    at_once = merged(rows, [0] * len(rows), 1)
    assert merged(merged(rows, groups, 4), [0] * 4, 1) == at_once
    assert merged(shuffled, [0] * len(rows), 1) == at_once


@settings(deadline=None)
@given(
    st.sampled_from(list(VALUES)).flatmap(
        lambda kind: st.tuples(st.just(kind), st.lists(st.lists(VALUES[kind], min_size=1, max_size=3), min_size=1))
    )
)
def test_merged_bounds_are_those_of_all_values(typed_files: tuple[pa.DataType, list[list[Any]]]) -> None:
    kind, files = typed_files
    files = [[pa.scalar(value, kind).as_py() for value in file if not is_nan(value)] for file in files]
    rows = [
        {
            "min": min(file, key=order, default=None),
            "max": max(file, key=order, default=None),
            "min_exact": bool(file),
            "max_exact": bool(file),
            "null_count": 0,
            "nan_count": 0,
            "value_count": len(file),
        }
        for file in files
    ]
    stats = pa.array(rows, stats_type(kind))
    (whole,) = merge_statistics(stats, np.zeros(len(rows), np.int64), 1).to_pylist()
    values = [value for file in files for value in file]
    assert whole["min"] == min(values, key=order, default=None)
    assert whole["max"] == max(values, key=order, default=None)
    assert whole["value_count"] == len(values)


@settings(deadline=None)
@given(
    st.lists(st.lists(st.text("ab\U0010ffff\x7f", max_size=30), min_size=1), min_size=1, max_size=4),
    st.integers(1, 4),
    st.integers(1, 40),
)
def test_cut_bounds_still_enclose_all_values(files: list[list[str]], limit: int, most: int) -> None:
    exact = {"min_exact": True, "max_exact": True, "null_count": 0, "nan_count": 0, "value_count": 9}
    stats = pa.array([{"min": min(each), "max": max(each), **exact} for each in files], KIND)
    for values, cut in zip(files, cut_bounds(stats, limit, most).to_pylist(), strict=True):
        assert cut["min"] <= min(values)
        assert cut["max"] is None or cut["max"] >= max(values)
        assert cut["min_exact"] == (cut["min"] == min(values))
        assert cut["max_exact"] == (cut["max"] == max(values))
        assert all(len(cut[side].encode()) <= max(limit, most) for side in ("min", "max") if cut[side] is not None)
