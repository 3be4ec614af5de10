"""What intervals on the z-order would skip besides bounding boxes: files kept, with tree cuts and with equal ones.

usage: python benchmarks/z_intervals.py [--files 64] [--rows 1000000] [--parquet FOLDER KEY KEY …]
Rows are placed by a real curve model. A file is kept by its box if the query's box meets it; by its interval if some
cell of the query's box lies on the curve between the file's first and last (next jump-in: Tropf and Herzog, BIGMIN).
Every file that holds a matching row must be kept by both, or the program stops.
"""

from __future__ import annotations

import argparse

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
from cuts import equal_parts, model_of, tables

from dbt.adapters.zlayout.curve.model import CurveModel
from dbt.adapters.zlayout.curve.orders import interleave

QUERIES = 60
KINDS = ("range", "point", "box", "range and point")


class Curve:
    """The bits of a z-order: which key each belongs to."""

    def __init__(self, model: CurveModel) -> None:
        self.model = model
        self.owner = [0] * sum(model.bits)
        for key, bits in enumerate(model.bits):
            for bit in range(bits):
                codes = [np.array([1 << bit if key == each else 0], np.uint64) for each in range(len(model.bits))]
                self.owner[int(interleave(codes, model.bits)[0]).bit_length() - 1] = key

    def corners(self, low: list[int], high: list[int]) -> tuple[int, int]:
        """Positions of a box's lowest and highest cell."""
        codes = []
        for boundaries, bits, ends in zip(
            self.model.boundaries, self.model.bits, zip(low, high, strict=True), strict=True
        ):
            codes.append(boundaries.codes(boundaries.ranks_of(pa.array(ends))) >> np.uint64(boundaries.bits - bits))
        first, last = interleave(codes, self.model.bits)
        return int(first), int(last)

    def next_inside(self, position: int, low: int, high: int) -> int | None:
        """The first position from here on that lies in the box of two corners; None for none."""
        best: int | None = None
        for bit in reversed(range(len(self.owner))):
            below = sum(1 << each for each in range(bit) if self.owner[each] == self.owner[bit])
            at = ((position >> bit) & 1, (low >> bit) & 1, (high >> bit) & 1)
            upper_half = ((low | 1 << bit) & ~below, (high & ~(1 << bit)) | below)
            if at == (0, 0, 1):
                best, high = upper_half
            elif at == (1, 0, 1):
                low = upper_half[0]
            elif at == (0, 1, 1):
                return low
            elif at == (1, 0, 0):
                return best
        return position


def boxes(columns: list[np.ndarray], rng: np.random.Generator) -> list[tuple[str, list[int], list[int]]]:
    """Queries: 2 % of the first key, one value of the second, 5 % of each key (20 % of more than two), 10 % and one."""
    rows = len(columns[0])

    def span(key: int, share: float) -> tuple[int, int]:
        ordered = np.sort(columns[key][rng.integers(0, rows, 4000)])
        start = int(rng.integers(0, int(4000 * (1 - share))))
        return int(ordered[start]), int(ordered[start + int(4000 * share)])

    def point(key: int) -> tuple[int, int]:
        value = int(columns[key][rng.integers(rows)])
        return value, value

    each = 0.05 if len(columns) == 2 else 0.2
    found = []
    for kind in KINDS * QUERIES:
        ends = [(int(column.min()), int(column.max())) for column in columns]
        if kind.startswith("range"):
            ends[0] = span(0, 0.02 if kind == "range" else 0.1)
        if kind.endswith("point"):
            ends[1] = point(1)
        if kind == "box":
            ends = [span(key, each) for key in range(len(columns))]
        found.append((kind, [low for low, _ in ends], [high for _, high in ends]))
    return found


def compare(name: str, table: pa.Table, files: int, rng: np.random.Generator) -> None:
    """One line for each way of cutting."""
    model = model_of(table, "zorder", files, rng)
    curve, positions = Curve(model), model.curve_values(table.columns)
    columns = [column.to_numpy() for column in table.columns]
    asked = boxes(columns, rng)
    for cuts, part in (("tree", model.place(table.columns).file), ("equal", equal_parts(positions, files))):
        order = np.argsort(part, kind="stable")
        starts = np.flatnonzero(np.r_[True, np.diff(part[order]) != 0])
        number = np.repeat(np.arange(len(starts)), np.diff(np.r_[starts, len(order)]))
        ordered = [column[order] for column in columns]
        bounds = [(np.minimum.reduceat(each, starts), np.maximum.reduceat(each, starts)) for each in ordered]
        ends = [extreme.reduceat(positions[order], starts).tolist() for extreme in (np.minimum, np.maximum)]
        kept = {kind: np.zeros(3) for kind in KINDS}
        for kind, low, high in asked:
            sides = list(zip(low, high, strict=True))
            met = zip(bounds, sides, strict=True)
            by_box = np.logical_and.reduce([(most >= lo) & (least <= hi) for (least, most), (lo, hi) in met])
            corner, last = curve.corners(low, high)
            found = [curve.next_inside(max(each, corner), corner, last) for each in ends[0]]
            by_curve = np.array([each is not None and each <= end for each, end in zip(found, ends[1], strict=True)])
            rows = np.logical_and.reduce([(c >= lo) & (c <= hi) for c, (lo, hi) in zip(ordered, sides, strict=True)])
            matching = np.zeros(len(starts), bool)
            matching[number[rows]] = True
            if (matching & ~(by_box & by_curve)).any():
                raise SystemExit(f"{name}, {cuts}: a file with a matching row is not kept")
            kept[kind] += (by_box.sum(), (by_box & by_curve).sum(), matching.sum())
        cells = " | ".join(" / ".join(f"{count / QUERIES:.2f}" for count in kept[kind]) for kind in KINDS)
        print(f"| {name} | {len(starts)} | {cuts} | {cells} |")


def whole_numbers(table: pa.Table) -> pa.Table:
    """Dates as days."""
    return pa.table(
        {
            name: table[name].cast(pa.int32()) if pa.types.is_date(table[name].type) else table[name]
            for name in table.column_names
        }
    )


def asked(description: str | None, rows: int) -> tuple[int, dict[str, pa.Table], np.random.Generator]:
    """The number of files and the tables that the command line asks for, and random numbers."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=64)
    parser.add_argument("--rows", type=int, default=rows, help="of the synthetic tables")
    parser.add_argument("--parquet", nargs="+", metavar=("FOLDER", "KEY"), help="a real table instead")
    arguments = parser.parse_args()
    rng = np.random.default_rng(7)
    found = tables(arguments.rows, rng)
    if arguments.parquet:
        folder, *keys = arguments.parquet
        found = {", ".join(keys): whole_numbers(ds.dataset(folder).to_table(columns=keys).combine_chunks())}
    return arguments.files, found, rng


def main() -> None:
    files, found, rng = asked(__doc__, 1_000_000)
    print("files kept per query by box / by box and interval / holding a matching row")
    print(f"| table | files | cuts | {' | '.join(KINDS)} |")
    print("|---" * (3 + len(KINDS)) + "|")
    for name, table in found.items():
        compare(name, table, files, rng)


if __name__ == "__main__":
    main()
