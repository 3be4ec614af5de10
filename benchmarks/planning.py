"""What planning a scan costs: tables of many files, an index written by the real writer, four conditions.

usage: python benchmarks/planning.py [files, default 10000 100000 1000000] [--columns 8]
The choice of files alone, without Spark, for tables without partitions and of 1,000; the files are only named. 'cold'
opens the index's slices on this machine's disk, 'warm' has them. 'held' is what Arrow keeps for later scans, 'peak' the
most that the process had, the making of the table and its index included. planning_spark.py has Spark around it.
"""

from __future__ import annotations

import argparse
import datetime as dt
import gc
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from dbt.adapters.zlayout.index.slices import slice_path, write_slices
from dbt.adapters.zlayout.index.statistics.column_stats import column_stats_table, stats_type
from dbt.adapters.zlayout.index.table_index import CachedStatistics, TableIndex
from dbt.adapters.zlayout.predicate.expr import And, Column, Compare, Expr, In, Op, StartsWith
from dbt.adapters.zlayout.pruning.scan import plan_scan
from dbt.adapters.zlayout.store.local import LocalStore
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles
from dbt.adapters.zlayout.timeline.files.instant import instant_of

RUNS = 9
ROWS_PER_FILE = 1_000_000
START_MS = 1_700_000_000_000
DAY = Column(("day",), pa.date32())
KEY = Column(("key",), pa.int64())
CITY = Column(("city",), pa.string())
RATE = Column(("rate",), pa.float64())
FOUR_CONDITIONS: Expr = And(
    (
        Compare(Op.GE, DAY, pa.scalar(dt.date(2021, 3, 1))),
        In(KEY, pa.array(range(1_000, 900_000, 30_011), pa.int64())),
        StartsWith(CITY, pa.scalar("city 00")),
        Compare(Op.LT, RATE, pa.scalar(0.25)),
    )
)


def files_of(count: int, partitions: int = 0) -> DataFiles:
    """Files by name only."""
    number = np.arange(count)
    groups = [f"{each:016x}" for each in number]
    instant = instant_of(START_MS)
    parts = [f"p{each * partitions // count:05d}" for each in number] if partitions else []
    folders = [f"part={each}/" for each in parts] or [""] * count
    return DataFiles.from_columns(
        ("part",) if partitions else (),
        path=[f"{folder}{group}_{instant}.parquet" for folder, group in zip(folders, groups, strict=True)],
        partition_values=[parts] if partitions else [],
        row_count=pa.array(np.full(count, ROWS_PER_FILE)),
        size_bytes=pa.array(np.full(count, 128 << 20)),
        modified_ms=pa.array(START_MS + number),
        group=groups,
    )


def bounds_of(files: DataFiles, columns: int) -> pa.Table:
    """Statistics as a clustered table has them: narrow in the keys, wide elsewhere."""
    count, rng = len(files), np.random.default_rng(7)
    starts = {
        DAY: pa.array(rng.integers(18_000, 19_000, count), pa.int32()).cast(pa.date32()),
        KEY: pa.array(rng.integers(0, 1_000_000, count)),
        CITY: pa.array([f"city {each:05d}" for each in rng.integers(0, 20_000, count)]),
        RATE: pa.array(rng.random(count)),
    }
    ends = {
        DAY: pa.array(starts[DAY].cast(pa.int32()).to_numpy() + 30, pa.int32()).cast(pa.date32()),
        KEY: pa.array(starts[KEY].to_numpy() + 20_000),
        CITY: pa.array([f"{each}9" for each in starts[CITY].to_pylist()]),
        RATE: pa.array(starts[RATE].to_numpy() + 0.1),
    }
    for number in range(len(starts), columns):
        more = Column((f"c{number}",), pa.int64())
        starts[more] = pa.array(rng.integers(0, 1 << 40, count))
        ends[more] = pa.array(starts[more].to_numpy() + (1 << 20))
    return column_stats(files, starts, ends)


def column_stats(files: DataFiles, starts: Mapping[Column, pa.Array], ends: Mapping[Column, pa.Array]) -> pa.Table:
    """A row a file, as the index keeps it: exact bounds, no nulls."""
    count = len(files)
    yes, none, rows = pa.repeat(True, count), pa.array(np.zeros(count, np.int64)), files.column("row_count")
    structs = [
        pa.StructArray.from_arrays(
            [starts[each], ends[each], yes, yes, none, none, rows.combine_chunks()], fields=list(stats_type(each.type))
        )
        for each in starts
    ]
    return column_stats_table(files.column("path").combine_chunks(), [each.path for each in starts], structs)


def write_index(store: LocalStore, files: DataFiles, columns: int) -> dict[str, list[str]]:
    """The slices of one commit of all files."""
    paths = {}
    for partition, content in write_slices(files, bounds_of(files, columns)).items():
        path = slice_path(partition, instant_of(START_MS), content)
        store.create(path, content)
        paths[partition] = [path]
    return paths


def milliseconds(action: Callable[[], object], runs: int = RUNS) -> str:
    """Median of some runs, the least, and the least processor time, which other work on the machine hardly changes."""
    times, processor = [], []
    for _ in range(runs):
        gc.collect()
        start, start_processor = time.perf_counter(), time.process_time()
        action()
        times.append(1000 * (time.perf_counter() - start))
        processor.append(1000 * (time.process_time() - start_processor))
    return f"{statistics.median(times):.0f} | {min(times):.0f} | {min(processor):.0f}"


def plan(count: int, columns: int, partitions: int) -> str:
    """One line of the table of planning, in this process."""
    with tempfile.TemporaryDirectory() as folder:
        store, files = LocalStore(Path(folder)), files_of(count, partitions)
        slices = write_index(store, files, columns)
        index_bytes = sum((Path(folder) / path).stat().st_size for each in slices.values() for path in each)
        types = {"part": pa.string()} if partitions else {}

        def opened() -> CachedStatistics:
            return CachedStatistics(TableIndex(store, slices, partition_types=types, timezone="UTC"), files)

        before = pa.total_allocated_bytes()
        index = opened()
        kept = plan_scan(FOUR_CONDITIONS, files, index)
        held = pa.total_allocated_bytes() - before
        cold = milliseconds(lambda: plan_scan(FOUR_CONDITIONS, files, opened()))
        warm = milliseconds(lambda: plan_scan(FOUR_CONDITIONS, files, index))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    kept_files = int(kept.candidates.sum())
    return (
        f"| {count:,} | {partitions:,} | {kept_files:,} | {cold} | {warm} | {held / 2**20:.0f} "
        f"| {index_bytes / 2**20:.1f} | {peak:.0f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--columns", type=int, default=8, help="columns with statistics")
    parser.add_argument("--partitions", type=int, default=None)
    arguments = parser.parse_args()
    if arguments.partitions is not None:
        print(plan(arguments.files[0], arguments.columns, arguments.partitions))
        return
    print(
        "| files | partitions | kept | cold ms | least | processor | warm ms | least | processor "
        "| held MiB | index MiB | peak MiB |"
    )
    print("|---" * 12 + "|")
    for count in arguments.files:
        for partitions in (0, 1_000):
            # A process each, so that the peak is its own.
            size = [str(count), "--columns", str(arguments.columns), "--partitions", str(partitions)]
            subprocess.run([sys.executable, __file__, *size], check=True, env=os.environ)


if __name__ == "__main__":
    main()
