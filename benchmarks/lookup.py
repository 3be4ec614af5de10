"""What a lookup index costs and saves: its size, searches in it, builds with it, and upserts of random keys.

    make bench-lookup ARGS="index --rows 100000000"
    make bench-lookup ARGS="table --lab /somewhere/with/20/GB"

`index` needs no Spark: files of random keys of which only the entries exist, made by the writer's own functions, and
one real file, whose key column is measured; bytes are those that the store was asked for. `table` writes real tables,
upserts 1,000 random keys at a time and asks for one key, with this adapter with and without the index, with Delta and
Iceberg without one, and with Hudi and its record index, each in a process of its own on Spark 3.5.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from clustering import ROOT, answer_of

from dbt.adapters.zlayout.index.lookup.lookup_key import HashCollector, LookupKey, run_bytes
from dbt.adapters.zlayout.index.lookup.lookup_slices import LookupSlice
from dbt.adapters.zlayout.index.lookup.table_lookups import TableLookups
from dbt.adapters.zlayout.index.statistics.tracked import TrackedColumn
from dbt.adapters.zlayout.predicate.expr import Column
from dbt.adapters.zlayout.spark.commit.optional_slices import NewLookups
from dbt.adapters.zlayout.store.local import LocalStore
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles

INSTANT = "20260131235959999"
KINDS = {"bigint": pa.int64(), "text": pa.string()}
SEARCHES = 9
ENGINES = ["without", "with", "delta", "iceberg", "hudi"]


class Counting(LocalStore):
    """A folder that counts the bytes that are read."""

    read_bytes = 0

    def read_tail(self, path: str, most_bytes: int) -> bytes:
        content = super().read_tail(path, most_bytes)
        self.read_bytes += len(content)
        return content

    def read_ranges(self, path, starts, lengths):
        self.read_bytes += sum(lengths)
        return super().read_ranges(path, starts, lengths)


def keys_of(kind, rows, rng):
    """Random keys of one file; texts are 32 hexadecimal digits."""
    if kind == "bigint":
        return pa.array(rng.integers(0, 1 << 62, rows))
    digits = np.frombuffer(rng.bytes(16 * rows).hex().encode(), np.uint8)
    offsets = pa.py_buffer(np.arange(0, 32 * (rows + 1), 32, dtype=np.int32))
    return pa.Array.from_buffers(pa.string(), rows, [None, offsets, pa.py_buffer(digits)])


def index(given):
    key = LookupKey.of([TrackedColumn(("k",), KINDS[given.kind])])
    column, rows = Column(("k",), KINDS[given.kind]), given.rows // given.files
    rng, folder = np.random.default_rng(1), Path(tempfile.mkdtemp(dir=given.lab))
    store, pieces, asked, hashing = Counting(folder), [], [], 0.0
    for number in range(given.files):
        values = keys_of(given.kind, rows, rng)
        asked += values.take(pa.array(rng.integers(0, rows, 1 + 9_000 // given.files))).to_pylist()
        if not number:
            pq.write_table(pa.table({"k": values}), folder / "k.parquet", compression="zstd", use_dictionary=False)
        start = time.process_time()
        collector = HashCollector(key)
        collector.add([values])
        content = run_bytes(f"f{number:04}", {key: collector.hashes()})
        hashing += time.process_time() - start
        pieces.append(f"{number}.runs")
        store.put(pieces[-1], content)
    names = [f"f{number:04}" for number in range(given.files)]
    ones = [1] * given.files
    files = DataFiles.from_columns(
        (), path=names, partition_values=[], row_count=ones, size_bytes=ones, modified_ms=ones, group=names
    )
    start = time.process_time()
    paths = NewLookups(tuple(pieces)).put(store, INSTANT, files)
    putting = time.process_time() - start
    size = sum(store.stat(path).size_bytes for path in paths)
    column_bytes = (folder / "k.parquet").stat().st_size * given.files
    rng.shuffle(asked)
    print(f"| {given.rows:,} {given.kind} keys in {given.files:,} files | |")
    print("|---|---|")
    print(f"| index | {size / 1e6:,.0f} MB, {size / given.rows:.1f} bytes a key, {len(paths)} slices |")
    print(f"| key column | {column_bytes / 1e6:,.0f} MB |")
    print(f"| hashing in tasks | {hashing:.1f} s of processor time |")
    print(f"| merging by the driver | {putting:.1f} s of processor time |")
    for count in (1, 1_000):
        seconds, read, opened = [], [], []
        for number in range(SEARCHES):
            some = asked[number * count : (number + 1) * count]
            store.read_bytes = 0
            start = time.process_time()
            # A process that has not seen the table: slices are opened.
            found = TableLookups(paths, lambda path: LookupSlice(store, path), print).of(files)
            flags = found.may_hold(column, pa.array(some, KINDS[given.kind]))
            seconds.append(time.process_time() - start)
            read.append(store.read_bytes)
            opened.append(given.files if flags is None else int(flags.sum()))
            store.read_bytes = 0
            start = time.process_time()
            found._answers.clear()
            found.may_hold(column, pa.array(some, KINDS[given.kind]))
            warm, warm_read = time.process_time() - start, store.read_bytes
        cold = sorted(seconds)[SEARCHES // 2]
        share = 100 * read[0] / column_bytes
        cold_ms, warm_ms = 1e3 * cold, 1e3 * warm
        warm_share = 100 * warm_read / column_bytes
        print(
            f"| {count:,} keys | cold {read[0] / 1e6:.2f} MB ({share:.2f} % of the column), {cold_ms:.0f} ms of "
            f"processor time; then {warm_read / 1e6:.2f} MB ({warm_share:.2f} %), {warm_ms:.0f} ms; opens at most "
            f"{max(opened):,} files |"
        )
    shutil.rmtree(folder)


def table(given):
    print("| | build s | an upsert s | one key s |\n|---|---|---|---|", flush=True)
    sums = set()
    for engine in given.engines:
        found = answer_of("lookup_engines.py", engine, lab=given.lab, rows=given.rows, upserts=given.upserts)
        upsert, query = (statistics.median(found[part]) for part in ("upserts", "queries"))
        print(f"| {engine} | {found['build']:.1f} | {upsert:.2f} | {query:.2f} |", flush=True)
        sums.add(tuple(found["sums"]))
    if len(sums) > 1:
        raise SystemExit(f"the tables differ: {sums}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=["index", "table"])
    parser.add_argument("--lab", type=Path, default=ROOT / "build" / "bench-lookup")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--files", type=int, default=1_000, help="of which `index` has entries")
    parser.add_argument("--kind", choices=list(KINDS), default="text", help="of the keys of `index`")
    parser.add_argument("--upserts", type=int, default=7)
    parser.add_argument("--engines", nargs="+", default=ENGINES, choices=ENGINES)
    given = parser.parse_args()
    given.lab = given.lab.absolute()
    given.lab.mkdir(parents=True, exist_ok=True)
    (index if given.part == "index" else table)(given)


if __name__ == "__main__":
    sys.exit(main())
