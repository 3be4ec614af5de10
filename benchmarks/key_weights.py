"""Rows that queries open when further keys weigh less in the cuts, and when all keys weigh alike. No Spark needed."""

import argparse
import tempfile
from pathlib import Path
from unittest import mock

import clustering
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dbt.adapters.zlayout.curve import cuts
from dbt.adapters.zlayout.curve.model import CurveModel

SAMPLE, ROW_BYTES = 1 << 18, 25
KEYS = clustering.KEYS["events"][0]


def events(count):
    with tempfile.TemporaryDirectory() as lab:
        folder = clustering.make_events(Path(lab), count)
        return pq.read_table(folder, columns=KEYS), clustering.queries(folder, KEYS, 600, seed=3)


def even(count):
    """Four independent keys; each query asks for 2 % of one of them, all equally often."""
    rng = np.random.default_rng(5)
    rows = pa.table({name: rng.integers(0, 1 << 30, count) for name in "abcd"})
    starts = rng.integers(0, int(0.98 * (1 << 30)), 600)
    return rows, [[(number % 4, int(low), int(low) + (1 << 30) // 50)] for number, low in enumerate(starts)]


def undeserving(count):
    """Keys of which no query asks for the second, which follows the first, and the fourth, which is nearly constant."""
    rng = np.random.default_rng(6)
    a, b = rng.integers(0, 1 << 30, count), rng.integers(0, 1 << 30, count)
    rare = np.where(rng.random(count) < 0.01, rng.integers(0, 1 << 30, count), 0)
    rows = pa.table({"a": a, "follows": a + rng.integers(0, 1 << 20, count), "b": b, "constant": rare})
    starts = rng.integers(0, int(0.98 * (1 << 30)), 600)
    return rows, [[(2 * (number % 2), int(low), int(low) + (1 << 30) // 50)] for number, low in enumerate(starts)]


def deserving(count):
    """The same without the second and the fourth key."""
    rows, wanted = undeserving(count)
    return rows.select(["a", "b"]), [[(key // 2, low, high)] for [(key, low, high)] in wanted]


def opened(rows, part, wanted):
    """The share of the rows that a reader of bounds opens in each kind of query."""
    order = np.argsort(part, kind="stable")
    sizes = np.bincount(part)
    pieces = [rows.take(pa.array(piece)) for piece in np.split(order, np.cumsum(sizes)[:-1])]
    ends = [[pc.min_max(piece.column(name)).as_py() for name in rows.column_names] for piece in pieces]
    bounds = [([(each["min"], each["max"]) for each in piece], size) for piece, size in zip(ends, sizes, strict=True)]
    return clustering.opened(bounds, wanted)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--files", type=int, nargs="+", default=[8, 20, 32, 45, 100, 300])
    given = parser.parse_args()
    ways = (lambda keys: (1.0,) * keys, cuts.key_weights)
    print("| rows | files | keys alike | 1, 1, 1/2, 1/3 |\n|---|---|---|---|")
    sets = {
        "events": events,
        "four keys, one at a time": even,
        "two keys": deserving,
        "the same, with one that follows and one that is near constant": undeserving,
    }
    for name, make in sets.items():
        rows, wanted = make(given.rows)
        rng = np.random.default_rng(1)
        sample = rows.take(pa.array(np.sort(rng.choice(len(rows), min(SAMPLE, len(rows)), replace=False))))
        keys = tuple((each,) for each in rows.column_names)
        for files in given.files:
            shares = []
            for weights in ways:
                with mock.patch.object(cuts, "key_weights", weights):
                    model = CurveModel.build(
                        sample,
                        keys,
                        "zorder",
                        total_rows=len(rows),
                        bytes_per_row=ROW_BYTES,
                        target_file_bytes=len(rows) * ROW_BYTES // files,
                        row_group_rows=None,
                    )
                shares.append(opened(rows, model.place(rows.columns, ()).file, wanted))
            print(f"| {name} | {files} | " + " | ".join(f"{100 * each:.1f} %" for each in shares) + " |", flush=True)


main()
