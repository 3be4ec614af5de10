"""Ten appends of 2 % each, clustered after each within a budget: bytes rewritten against rows that queries open."""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
from changes import session

os.environ["PYSPARK_PYTHON"] = sys.executable

# Two keys that do not know of each other. By `time` appended rows lie at the end, by `spread` anywhere.
QUERIES = {
    "time": "select id as t, hash(id, 7) % 100000 as k, cast(hash(id, 9) as string) note from range({}, {})",
    "spread": "select hash(id, 3) as t, hash(id, 7) % 100000 as k, cast(hash(id, 9) as string) note from range({}, {})",
}
APPENDS, SHARE = 10, 0.02


def bounds(table):
    """Smallest and largest value of both keys in each file, from the footers, and the files' rows."""
    root = Path(table.location.removeprefix("file://"))
    found = []
    for path in table.snapshot().files["path"].to_pylist():
        rows = pq.read_table(root / path, columns=["t", "k"])
        ends = [pc.min_max(rows[name]).as_py() for name in ("t", "k")]
        found.append([*(each[side] for each in ends for side in ("min", "max")), rows.num_rows])
    return np.array(found, dtype=float)


def queries(spark, name, count, seed):
    """Points, ranges of 1 % and 5 % of the rows, and boxes of both keys, with constants drawn from the rows."""
    sampled = spark.table(name).select("t", "k").sample(0.02, seed).toArrow()
    rows = np.column_stack([sampled[each].to_numpy() for each in ("t", "k")]).astype(float)
    rng = np.random.default_rng(seed)
    ordered = np.sort(rows, axis=0)
    made = []
    for number in range(count):
        kind, box = number % 4, np.array([-np.inf, np.inf, -np.inf, np.inf])
        for key in (0, 1) if kind == 3 else (number // 4 % 2,):
            share = (0.0, 0.01, 0.05, 0.1)[kind]
            start = int(rng.integers(0, max(1, int(len(ordered) * (1 - share)))))
            box[2 * key], box[2 * key + 1] = (
                ordered[start, key],
                ordered[min(len(ordered) - 1, start + int(share * len(ordered))), key],
            )
        made.append(box)
    return made


def opened(files, boxes):
    """The share of the rows that a reader of bounds opens, on average over queries."""
    meets = [
        (files[:, 0] <= box[1]) & (files[:, 1] >= box[0]) & (files[:, 2] <= box[3]) & (files[:, 3] >= box[2])
        for box in boxes
    ]
    return float(np.mean([files[each, 4].sum() for each in meets]) / files[:, 4].sum())


def run(spark, kind, rows, files, budget):
    from dbt.adapters.zlayout.table.ztable import ZTable

    name, query = f"bench.{kind}_{round(100 * (budget or 0))}", QUERIES[kind]
    spark.sql(f"drop table if exists {name}")
    probe = ZTable.write(spark, name, spark.sql(query.format(0, rows)), zorder=["t", "k"], target_file_size="1gb")
    size = probe.snapshot().files.total_bytes
    spark.sql(f"drop table {name}")
    settings = {"zorder": ["t", "k"], "target_file_size": max(1024, size // files)}
    table = ZTable.write(spark, name, spark.sql(query.format(0, rows)), **settings)
    step, rewritten, seconds = int(rows * SHARE), [], 0.0
    for number in range(APPENDS):
        table.append(spark.sql(query.format(rows + number * step, rows + (number + 1) * step)))
        if budget is not None:
            total = table.snapshot().files.total_bytes
            start = time.perf_counter()
            done = table.cluster(max_bytes=int(budget * total))
            seconds += time.perf_counter() - start
            rewritten.append(done.bytes_rewritten / total)
    boxes = queries(spark, name, 400, 1)
    after = bounds(table)
    full = ZTable.write(spark, f"{name}_full", spark.table(name), **settings)
    ratio = opened(after, boxes) / opened(bounds(full), boxes)
    most, all_of_it = max(rewritten, default=0), sum(rewritten)
    print(
        f"| {kind} | {'none' if budget is None else f'{budget:.0%}'} | {most:.1%} | {all_of_it:.0%} | {len(after)} | "
        f"{opened(after, boxes):.2%} | {ratio:.2f} | {seconds:.0f} |",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--files", type=int, default=100)
    parser.add_argument("--budgets", default="none,0.05,0.1,0.2")
    parser.add_argument("--kinds", default="time,spread")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        spark = session(Path(folder))
        print("| appends | budget | most at once | in all | files | rows opened | against a full rewrite | seconds |")
        print("|---|---|---|---|---|---|---|---|")
        for kind in chosen.kinds.split(","):
            for budget in chosen.budgets.split(","):
                run(spark, kind, chosen.rows, chosen.files, None if budget == "none" else float(budget))


main()
