"""What planning a scan costs: tables of many files, an index written by the real writer, one filter and four.

usage: python benchmarks/planning.py [files, default 10000 100000 1000000] [--columns 8]
The choice of files alone, without Spark, for tables without partitions and of 1,000; the files are only named. 'cold'
opens the index's slices on this machine's disk, 'warm' has them. 'read' is what a cold scan reads of the index, and
'append' what a scan reads after one more file was committed. 'held' is what Arrow keeps for later scans, 'peak' the
most that planning adds to a process that has the list of files. planning_spark.py has Spark around it. To compare with
another version of this package, set PYTHONPATH to it.
"""

from __future__ import annotations

import argparse
import datetime as dt
import gc
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from dbt.adapters.zlayout.index.slice_reading import SliceCache, read_slice
from dbt.adapters.zlayout.index.slice_writing import slice_path, write_slices
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


ONE_CONDITION: Expr = In(KEY, pa.array(range(1_000, 900_000, 30_011), pa.int64()))
TYPES = {"part": pa.string()}


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


class CountingStore(LocalStore):
    """Counts what is read."""

    bytes_read = 0

    def read(self, path: str) -> bytes:
        found = super().read(path)
        self.bytes_read += len(found)
        return found

    def read_tail(self, path: str, most_bytes: int) -> bytes:
        found = super().read_tail(path, most_bytes)
        self.bytes_read += len(found)
        return found

    def read_ranges(self, path: str, starts: Sequence[int], lengths: Sequence[int]) -> list[bytes]:
        self.bytes_read += sum(lengths)
        return super().read_ranges(path, starts, lengths)


def save(files: DataFiles, path: Path) -> None:
    with pa.ipc.new_file(path, files.arrow.schema) as writer:
        writer.write_table(files.arrow)


def write(folder: Path, count: int, columns: int, partitions: int) -> None:
    """Puts the list of files, their index, and the index of one more file into a folder."""
    files = files_of(count, partitions)
    save(files, folder / "files.arrow")
    more = files_of(count + 1, partitions)[count:]
    store = LocalStore(folder)
    paths = [write_index(store, each, columns) for each in (files, more)]
    save(more, folder / "more.arrow")
    (folder / "slices.json").write_text(json.dumps(paths), encoding="utf-8")


def plan(folder: Path, condition: str) -> str:
    """One line of the table of planning, in this process."""
    files, more = (DataFiles(pa.ipc.open_file(folder / f"{name}.arrow").read_all()) for name in ("files", "more"))
    slices, appended = json.loads((folder / "slices.json").read_text(encoding="utf-8"))
    index_bytes = sum((folder / path).stat().st_size for each in slices.values() for path in each)
    store, partitioned = CountingStore(folder), bool(files.partition_by)
    expr = {"one": ONE_CONDITION, "four": FOUR_CONDITIONS}.get(condition)
    if expr is None:
        part = Compare(Op.EQ, Column(("part",), pa.string()), pa.scalar("p00500"))
        expr = And((part, ONE_CONDITION))
    cache = SliceCache(read_slice)

    def opened(cache: SliceCache[Any], live: DataFiles, paths: dict[str, list[str]]) -> CachedStatistics:
        types, read = TYPES if partitioned else {}, partial(cache.read, store)
        return CachedStatistics(TableIndex(store, paths, partition_types=types, timezone="UTC", read=read), live)

    gc.collect()
    before, resident = pa.total_allocated_bytes(), peak_bytes()
    index = opened(cache, files, slices)
    kept = plan_scan(expr, files, index)
    held, cold_bytes = pa.total_allocated_bytes() - before, store.bytes_read
    peak = peak_bytes() - resident
    both, after = files.plus(more), {name: [*paths, *appended[name]] for name, paths in slices.items()}
    plan_scan(expr, both, opened(cache, both, after))
    append_bytes = store.bytes_read - cold_bytes
    cold = milliseconds(lambda: plan_scan(expr, files, opened(SliceCache(read_slice), files, slices)))
    warm = milliseconds(lambda: plan_scan(expr, files, index))
    kept_files = int(kept.candidates.sum())
    return (
        f"| {len(files):,} | {'1,000' if partitioned else '0'} | {condition} | {kept_files:,} | {cold} | {warm} "
        f"| {cold_bytes / 2**20:.2f} | {append_bytes / 2**20:.2f} | {held / 2**20:.0f} | {peak / 2**20:.0f} "
        f"| {index_bytes / 2**20:.1f} |"
    )


def peak_bytes() -> int:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--columns", type=int, default=8, help="columns with statistics")
    parser.add_argument("--folder", type=Path, help="plan over what lies there already")
    parser.add_argument("--partitions", type=int, help="write so many partitions to the folder")
    parser.add_argument("--condition", choices=("one", "four", "partition"))
    arguments = parser.parse_args()
    if arguments.partitions is not None:
        write(arguments.folder, arguments.files[0], arguments.columns, arguments.partitions)
        return
    if arguments.condition is not None:
        print(plan(arguments.folder, arguments.condition))
        return
    print(
        "| files | partitions | conditions | kept | cold ms | least | processor | warm ms | least | processor "
        "| read MiB | append MiB | held MiB | peak MiB | index MiB |"
    )
    print("|---" * 15 + "|", flush=True)
    for count in arguments.files:
        for partitions in (0, 1_000):
            with tempfile.TemporaryDirectory() as folder:
                # A process each, so that the peak is its own.
                run(
                    str(count), "--columns", str(arguments.columns), "--folder", folder, "--partitions", str(partitions)
                )
                for condition in ("one", "four", *(["partition"] if partitions else [])):
                    run("--folder", folder, "--condition", condition)


def run(*options: str) -> None:
    subprocess.run([sys.executable, __file__, *options], check=True, env=os.environ)


if __name__ == "__main__":
    main()
