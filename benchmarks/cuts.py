"""What file cuts are worth: rows that a min/max reader opens with tree cuts and equal ones; and what placing costs.

usage: python benchmarks/cuts.py [rows, default 2000000] [files, default 64]
Synthetic two-key tables with the same boundaries for both ways; queries are drawn from the rows themselves.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from dbt.adapters.zlayout.curve.model import CurveModel
from dbt.adapters.zlayout.curve.orders import hilbert_positions, interleave

GROUPS_PER_FILE = 8
QUERIES = 100
ROW_BYTES = 64


def tables(rows: int, rng: np.random.Generator) -> dict[str, pa.Table]:
    day = rng.integers(0, 2500, rows)
    ids = rng.integers(0, rows // 30, rows)
    zipf = np.minimum(rng.zipf(1.3, rows), rows // 30)
    recent = (2500 * rng.beta(4, 1, rows)).astype(np.int64)
    follows = day * 400 + rng.integers(0, 40_000, rows)
    return {
        "uniform days x ids": pa.table({"0": day, "1": ids}),
        "recent days x zipf ids": pa.table({"0": recent, "1": zipf}),
        "days x ids that follow them": pa.table({"0": day, "1": follows}),
    }


def queries(table: pa.Table, rng: np.random.Generator) -> list[list[tuple[int, int, int]]]:
    """Five kinds: a range of either key, one value of the second, a box, a range and one value."""
    columns = [column.to_numpy() for column in table.columns]
    ordered = [np.sort(rng.choice(column, 50_000)) for column in columns]

    def span(key: int, share: float) -> tuple[int, int, int]:
        start = int(rng.integers(0, int(50_000 * (1 - share))))
        return key, ordered[key][start], ordered[key][start + int(50_000 * share)]

    def point(key: int) -> tuple[int, int, int]:
        value = columns[key][rng.integers(0, len(columns[key]))]
        return key, value, value

    kinds: list[Callable[[], list[tuple[int, int, int]]]] = [
        lambda: [span(0, 0.02)],
        lambda: [span(1, 0.01)],
        lambda: [point(1)],
        lambda: [span(0, 0.05), span(1, 0.05)],
        lambda: [span(0, 0.1), point(1)],
    ]
    return [kind() for kind in kinds for _ in range(QUERIES)]


def opened(table: pa.Table, part: np.ndarray, asked: list[list[tuple[int, int, int]]]) -> float:
    """Mean share of the rows that lie in parts whose min and max a query cannot rule out."""
    order = np.argsort(part, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(part[order]) != 0])
    weight = np.diff(np.r_[starts, len(part)]) / len(part)
    columns = [column.to_numpy()[order] for column in table.columns]
    low = [np.minimum.reduceat(column, starts) for column in columns]
    high = [np.maximum.reduceat(column, starts) for column in columns]
    read = 0.0
    for query in asked:
        kept = np.logical_and.reduce([(high[key] >= first) & (low[key] <= last) for key, first, last in query])
        read += float(weight[kept].sum())
    return read / len(asked)


def model_of(table: pa.Table, curve: str, files: int, rng: np.random.Generator) -> CurveModel:
    rows = table.num_rows
    sample = table.take(pa.array(rng.choice(rows, min(rows, 1 << 18), replace=False)))
    size = rows * ROW_BYTES // files
    groups = -(-rows // (files * GROUPS_PER_FILE))
    columns = [(name,) for name in table.column_names]
    return CurveModel.build(
        sample, columns, curve, total_rows=rows, bytes_per_row=ROW_BYTES, target_file_bytes=size, row_group_rows=groups
    )


def equal_parts(values: np.ndarray, parts: int) -> np.ndarray:
    """Parts of equal row counts along a curve, as a range partitioner makes them."""
    bounds = np.sort(values)[np.linspace(0, len(values), parts + 1).astype(int)[1:-1]]
    return np.searchsorted(bounds, values, side="right")


def seconds(work: Callable[[], object]) -> float:
    times = []
    for _ in range(3):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def compare_cuts(rows: int, files: int) -> None:
    rng = np.random.default_rng(7)
    print(
        f"rows opened by min/max, {rows:,} rows, {files} files of {GROUPS_PER_FILE} row groups, {5 * QUERIES} queries"
    )
    print(f"{'table':30s}{'curve':10s}{'files: equal':>14s}{'tree':>8s}{'groups: equal':>16s}{'tree':>8s}")
    for name, table in tables(rows, rng).items():
        asked = queries(table, rng)
        for curve in ("zorder", "hilbert", "linear"):
            model = model_of(table, curve, files, rng)
            placed, values = model.place(table.columns), model.curve_values(table.columns)
            shares = [
                opened(table, part, asked)
                for part in (
                    equal_parts(values, files),
                    placed.file,
                    equal_parts(values, files * GROUPS_PER_FILE),
                    placed.leaf,
                )
            ]
            print(f"{name:30s}{curve:10s}{shares[0]:14.1%}{shares[1]:8.1%}{shares[2]:16.1%}{shares[3]:8.1%}")


def compare_costs() -> None:
    rng = np.random.default_rng(8)
    rows = 1_000_000
    numbers = rng.integers(0, 10**9, rows)
    columns = {
        "int64": pa.array(numbers),
        "float64": pa.array(rng.normal(size=rows)),
        "decimal(38, 0)": pa.array(numbers).cast(pa.decimal128(38, 0)),
        "string of 9": pa.array(numbers).cast(pa.string()),
        "dictionary of 1,000 strings": pa.array(numbers % 1000).cast(pa.string()).dictionary_encode(),
    }
    print("\nseconds for 1,000,000 rows on one core")
    for name, column in columns.items():
        model = CurveModel.build(
            pa.table({"0": column.slice(0, 1 << 17)}), [("a",)], "zorder",
            total_rows=rows, bytes_per_row=8, target_file_bytes=1 << 20, row_group_rows=None,
        )  # fmt: skip
        print(f"  ranks, {name:44s}{seconds(lambda c=column, m=model: m.boundaries[0].ranks_of(c)):8.3f}")
    table = pa.table({"0": columns["int64"], "1": columns["float64"]})
    for files in (32, 250, 1000):
        start = time.perf_counter()
        model = model_of(table, "zorder", files, rng)
        built = time.perf_counter() - start
        ranks = [each.ranks_of(column) for each, column in zip(model.boundaries, table.columns, strict=True)]
        took = seconds(lambda m=model, r=ranks: m.tree.leaf_of(r))
        what = f"leaf of {model.tree.leaf_count} (built in {built:.2f} s, stored in {len(model.to_bytes()):,} bytes)"
        print(f"  {what:51s}{took:8.3f}")
    for count, bits in ((2, 10), (4, 10), (8, 7)):
        codes = [rng.integers(0, 1 << bits, rows).astype(np.uint64) for _ in range(count)]
        zorder_seconds = seconds(lambda c=codes, b=bits: interleave(c, [b] * len(c)))
        hilbert_seconds = seconds(lambda c=codes, b=bits: hilbert_positions(c, b))
        print(f"  {f'zorder, {count} keys of {bits} bits':51s}{zorder_seconds:8.3f}")
        print(f"  {f'hilbert, {count} keys of {bits} bits':51s}{hilbert_seconds:8.3f}")


if __name__ == "__main__":
    arguments = [int(each) for each in sys.argv[1:]]
    compare_cuts(*[*arguments, *[2_000_000, 64][len(arguments) :]])
    compare_costs()
