"""What is to be known of files that other tools cut along their z-order: files kept, by what the intervals come from.

usage: python benchmarks/adopted_intervals.py [--files 64] [--rows 300000] [--parquet FOLDER KEY KEY …]
Iceberg, and Hudi's direct curve, interleave eight bytes of each key; Hudi's sampled curve and Delta interleave ranks
(here 10 bits). Rows are cut at equal counts along one of these. A file is kept by its box, and by an interval on

* box: the curve, from the corners of the file's box;
* order: the curve, from the boxes of its neighbours, if the files are known to be stretches in this order;
* guess: the same, in the order of their boxes. Where that is not the order of the stretches, rows are missed;
* rows: the curve, from all rows of the keys;
* other: the other curve, from all rows of the keys.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from cuts import equal_parts
from z_intervals import KINDS, QUERIES, asked, boxes

WAYS = ("box", "order", "guess", "rows", "other")


@dataclass
class Interleaved:
    """A z-order over order-preserving codes of all keys, with as many bits of each."""

    name: str
    bits: int
    marks: list[np.ndarray] | None

    def codes(self, key: int, values: np.ndarray) -> np.ndarray:
        if self.marks is None:
            return values.astype(np.int64).view(np.uint64) ^ np.uint64(1 << 63)
        return np.searchsorted(self.marks[key], values, side="right").astype(np.uint64)

    def positions(self, columns: list[np.ndarray]) -> list[int]:
        every = [
            self.codes(key, column).astype(">u8").view(np.uint8).reshape(-1, 8) for key, column in enumerate(columns)
        ]
        bits = np.stack([np.unpackbits(each, axis=1)[:, 64 - self.bits :] for each in every], axis=2)
        packed = np.packbits(bits.reshape(len(columns[0]), -1), axis=1)
        spare = packed.shape[1] * 8 - self.bits * len(columns)
        return [int.from_bytes(row.tobytes(), "big") >> spare for row in packed]

    def next_inside(self, keys: int, position: int, low: int, high: int) -> int | None:
        """The first position from here on in the box of two corners (Tropf and Herzog, BIGMIN)."""
        best: int | None = None
        for bit in reversed(range(self.bits * keys)):
            below = sum(1 << each for each in range(bit % keys, bit, keys))
            at = ((position >> bit) & 1, (low >> bit) & 1, (high >> bit) & 1)
            if at == (0, 0, 1):
                best, high = (low | 1 << bit) & ~below, (high & ~(1 << bit)) | below
            elif at == (1, 0, 1):
                low = (low | 1 << bit) & ~below
            elif at == (0, 1, 1):
                return low
            elif at == (1, 0, 0):
                return best
        return position


def intervals(
    curve: Interleaved,
    positions: list[int],
    other: list[int],
    part: np.ndarray,
    bounds: list[tuple[np.ndarray, np.ndarray]],
) -> dict[str, list[tuple[int, int]]]:
    count, keys = len(bounds[0][0]), range(len(bounds))
    found: dict[str, list[tuple[int, int]]] = {}
    corners = list(zip(*(curve.positions([side[which] for side in bounds]) for which in (0, 1)), strict=True))
    found["box"] = corners
    # Some row of a file has the greatest value of a key, and no value of any key below the least one.
    reaches = [max(curve.positions([(high if k == key else low)[[f]] for k, (low, high) in enumerate(bounds)])[0]
                   for key in keys) for f in range(count)]  # fmt: skip
    begins = [min(curve.positions([(low if k == key else high)[[f]] for k, (low, high) in enumerate(bounds)])[0]
                  for key in keys) for f in range(count)]  # fmt: skip
    for way, by_order in (
        ("order", list(range(count))),
        ("guess", sorted(range(count), key=lambda each: corners[each])),
    ):
        narrowed: list[tuple[int, int]] = [(0, 0)] * count
        for place, file in enumerate(by_order):
            low, high = corners[file]
            if place:
                low = max(low, reaches[by_order[place - 1]])
            if place + 1 < count:
                high = min(high, begins[by_order[place + 1]])
            narrowed[file] = (low, high)
        found[way] = narrowed
    for way, each in (("rows", positions), ("other", other)):
        ends = [[1 << 999, -1] for _ in range(count)]
        for file, position in zip(part.tolist(), each, strict=True):
            ends[file][0], ends[file][1] = min(ends[file][0], position), max(ends[file][1], position)
        found[way] = [(low, high) for low, high in ends]
    return found


def compare(name: str, columns: list[np.ndarray], files: int, rng: np.random.Generator) -> None:
    keys = len(columns)
    marks = [np.unique(np.quantile(column, np.linspace(0, 1, 1024)[1:-1], method="lower")) for column in columns]
    curves = [Interleaved("bytes", 64, None), Interleaved("ranks", 10, marks)]
    positions = [curve.positions(columns) for curve in curves]
    asked = boxes(columns, rng)
    for number, curve in enumerate(curves):
        _, places = np.unique(np.array(positions[number], object), return_inverse=True)
        _, part = np.unique(equal_parts(places, files), return_inverse=True)
        order = np.argsort(part, kind="stable")
        starts = np.flatnonzero(np.r_[True, np.diff(part[order]) != 0])
        bounds = [(np.minimum.reduceat(c[order], starts), np.maximum.reduceat(c[order], starts)) for c in columns]
        ends = intervals(curve, positions[number], positions[1 - number], part, bounds)
        kept, missed = {kind: np.zeros(2 + len(WAYS)) for kind in KINDS}, 0
        for kind, low, high in asked:
            sides = list(zip(low, high, strict=True))
            by_box = np.logical_and.reduce(
                [(most >= lo) & (least <= hi) for (least, most), (lo, hi) in zip(bounds, sides, strict=True)]
            )
            matching = np.zeros(len(starts), bool)
            rows = np.logical_and.reduce([(c >= lo) & (c <= hi) for c, (lo, hi) in zip(columns, sides, strict=True)])
            matching[part[rows]] = True
            counts = [by_box.sum()]
            for way in WAYS:
                asks = curves[1 - number] if way == "other" else curve
                first, last = asks.positions([np.array([lo, hi]) for lo, hi in sides])
                by_curve = by_box.copy()
                for file in np.flatnonzero(by_box):
                    begin, end = ends[way][file]
                    place = asks.next_inside(keys, max(begin, first), first, last)
                    by_curve[file] = place is not None and place <= end
                wrong = int((matching & ~by_curve).sum())
                if wrong and way != "guess":
                    raise SystemExit(f"{name}, {curve.name}, {way}: a file with a matching row is not kept")
                missed += wrong
                counts.append(by_curve.sum())
            kept[kind] += (*counts, matching.sum())
        cells = " | ".join(" / ".join(f"{count / QUERIES:.2f}" for count in kept[kind]) for kind in KINDS)
        print(f"| {name} | {len(starts)} | {curve.name} | {cells} | {missed} |", flush=True)


def main() -> None:
    files, found, rng = asked(__doc__, 300_000)
    print(f"files kept per query by box / {' / '.join(WAYS)} / holding a matching row; and files missed by guess")
    print(f"| table | files | curve | {' | '.join(KINDS)} | missed |")
    print("|---" * (4 + len(KINDS)) + "|")
    for name, table in found.items():
        compare(name, [column.to_numpy() for column in table.columns], files, rng)


if __name__ == "__main__":
    main()
