"""What advice costs for a table of many files: seconds, processor time and memory. No Spark, no rows: index only.

usage: python benchmarks/advice_costs.py [files, default 1000 10000 100000] [--queries 100]
The index lies on this machine's disk, written by the real writer. The sample of rows, which Spark reads from at most
256 files, is made up: 65,536 rows that lie in the bounds of the files.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import planning
import pyarrow as pa

from dbt.adapters.zlayout.advice.advice import Present, Query, TableSize, advise
from dbt.adapters.zlayout.advice.sample import Layout, Sample
from dbt.adapters.zlayout.config.workload import WeightedCondition
from dbt.adapters.zlayout.index.table_index import CachedStatistics, TableIndex
from dbt.adapters.zlayout.predicate.expr import And, Compare, Expr, Op
from dbt.adapters.zlayout.pruning.scan import plan_scan
from dbt.adapters.zlayout.store.local import LocalStore
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles

SAMPLED = 1 << 16


def sample_of(files: int, paths: list[tuple[str, ...]]) -> Sample:
    """Rows spread evenly between the bounds of random files, as `planning.bounds_of` draws them."""
    random, start = np.random.default_rng(1), np.random.default_rng(7)
    file = random.integers(0, files, SAMPLED)
    days = start.integers(18_000, 19_000, files)[file] + random.integers(0, 30, SAMPLED)
    keys = start.integers(0, 1_000_000, files)[file] + random.integers(0, 20_000, SAMPLED)
    rates = random.random(SAMPLED)
    columns = [pa.array(days, pa.int32()).cast(pa.date32()), pa.array(keys), pa.array(rates)]
    return Sample.of(pa.table(columns, names=[path[0] for path in paths]), paths)


def queries(count: int) -> list[Query]:
    """Days, keys and rates, a range of each in turn, or of two."""
    random = np.random.default_rng(2)

    def drawn() -> Expr:
        day, key, rate = int(random.integers(18_000, 19_000)), int(random.integers(0, 10**6)), float(random.random())
        parts = [
            (
                planning.DAY,
                pa.scalar(day, pa.int32()).cast(pa.date32()),
                pa.scalar(day + 7, pa.int32()).cast(pa.date32()),
            ),
            (planning.KEY, pa.scalar(key), pa.scalar(key)),
            (planning.RATE, pa.scalar(rate), pa.scalar(rate + 0.01)),
        ]
        chosen = random.choice(3, random.integers(1, 3), replace=False, p=[0.5, 0.3, 0.2])
        limits = [(parts[each][0], *parts[each][1:]) for each in chosen]
        return And(tuple(Compare(op, c, v) for c, low, high in limits for op, v in ((Op.GE, low), (Op.LE, high))))

    return [Query(WeightedCondition(str(number)), drawn()) for number in range(count)]


def measure(folder: Path, asked: int) -> None:
    """Prints a line for the table that lies in a folder."""
    files = DataFiles(pa.ipc.open_file(folder / "files.arrow").read_all())
    slices, _ = json.loads((folder / "slices.json").read_text(encoding="utf-8"))
    statistics = CachedStatistics(TableIndex(LocalStore(folder), slices, partition_types={}, timezone="UTC"), files)
    paths = [planning.DAY.path, planning.KEY.path, planning.RATE.path]
    sample, given = sample_of(len(files), paths), queries(asked)
    before, started, processor = planning.peak_bytes(), time.perf_counter(), time.process_time()
    present = Present(
        Layout((planning.DAY.path, planning.KEY.path)),
        opened=lambda predicate: float(plan_scan(predicate, files, statistics).candidates.mean()),
    )
    size = TableSize(len(files) * planning.ROWS_PER_FILE, len(files), len(files) * (128 << 20), 128 << 20)
    found = advise(sample, given, size, present)
    seconds, processor = time.perf_counter() - started, time.process_time() - processor
    more = (planning.peak_bytes() - before) / 2**20
    print(f"| {len(files):,} | {asked} | {seconds:.1f} | {processor:.1f} | {more:.0f} | {found.change} |", flush=True)


def main() -> None:
    """Prints a table; each line in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=int, nargs="*", default=[1_000, 10_000, 100_000])
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--folder", type=Path, help="measure what lies there, in this process")
    arguments = parser.parse_args()
    if arguments.folder is not None:
        measure(arguments.folder, arguments.queries)
        return
    print("| files | queries | seconds | processor | MiB more | change |\n|---|---|---|---|---|---|", flush=True)
    for count in arguments.files:
        with tempfile.TemporaryDirectory() as folder:
            planning.run(str(count), "--columns", "8", "--folder", folder, "--partitions", "0")
            options = ["--folder", folder, "--queries", str(arguments.queries)]
            subprocess.run([sys.executable, __file__, *options], check=True)


if __name__ == "__main__":
    main()
