"""What publishing costs: a commit beside the same one unpublished, and opening beside a table that the reader wrote.

    make bench-publishing ARGS="--files 10000 100000"

Logs, indexes and published logs are real, on this machine's disk; data files are only named. A format is one line of
`FORMATS`. What a small model's run costs is in small_model.py.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable, Schema
from deltalake.transaction import AddAction, create_table_with_add_actions
from planning import bounds_of
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.table import StaticTable

from dbt.adapters.zlayout.config.table_config import PublishingConfig
from dbt.adapters.zlayout.index.slice_writing import slice_path, write_slices
from dbt.adapters.zlayout.publish.formats import publish_formats
from dbt.adapters.zlayout.store.local import LocalStore
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles
from dbt.adapters.zlayout.timeline.files.naming import data_file_path
from dbt.adapters.zlayout.timeline.timeline import Timeline
from dbt.adapters.zlayout.timeline.transactions.change import Change
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction

TABLE_ID = "0a0e4a52-0000-4000-8000-000000000000"
COLUMNS = {"day": "date", "key": "long", "city": "string", "rate": "double"}
SCHEMA_JSON = json.dumps(
    {
        "type": "struct",
        "fields": [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in COLUMNS.items()],
    }
)
TOUCHED = (10, 100, 1_000)
ROUNDS = 15
# Readers open a table after so many commits of one file. A small table has then seen more commits than a third of its
# files.
COMMITS, SMALL = 110, 300


@dataclass(frozen=True)
class Format:
    """How a reader of a published format opens a table, and how it writes one like it.

    Attributes:
        open: Opens the table in a folder and returns the number of its files.
        write: Writes the table of one folder to another, as its own.
    """

    open: Callable[[Path], int]
    write: Callable[[Path, Path], None]


def open_delta(folder: Path) -> int:
    return len(DeltaTable(str(folder)).file_uris())


def write_delta(published: Path, own: Path) -> None:
    """The same files and statistics by delta-rs: one commit, and a checkpoint if the published table has one."""
    table = DeltaTable(str(published))
    adds = [json.loads(line)["add"] for line in _lines(published / "_delta_log") if line.startswith('{"add"')]
    live = set(pa.table(table.get_add_actions())["path"].to_pylist())
    actions = [
        AddAction(each["path"], each["size"], {}, each["modificationTime"], True, each["stats"])
        for each in adds
        if each["path"] in live
    ]
    create_table_with_add_actions(str(own), Schema.from_json(table.schema().to_json()), actions)
    if (published / "_delta_log" / "_last_checkpoint").exists():
        DeltaTable(str(own)).create_checkpoint()


def _lines(log: Path) -> list[str]:
    return [line for path in sorted(log.glob("*.json")) for line in path.read_text().splitlines()]


def open_iceberg(folder: Path) -> int:
    return len(list(_static_table(folder).scan().plan_files()))


def write_iceberg(published: Path, own: Path) -> None:
    """The same files and statistics by pyiceberg, appended in one commit."""
    table = _static_table(published)
    manifests = table.current_snapshot().manifests(table.io)
    entries = [entry for each in manifests for entry in each.fetch_manifest_entry(table.io, discard_deleted=True)]
    catalog = InMemoryCatalog("own")
    catalog.create_namespace("own")
    made = catalog.create_table("own.table", table.schema(), location=own.as_uri())
    with made.transaction() as transaction, transaction.update_snapshot().fast_append() as append:
        for entry in entries:
            append.append_data_file(entry.data_file)


def _static_table(folder: Path) -> StaticTable:
    if (folder / "metadata" / "version-hint.text").exists():
        return StaticTable.from_metadata(folder.as_uri())
    newest = max((folder / "metadata").glob("*.metadata.json"), key=lambda path: path.stat().st_mtime_ns)
    return StaticTable.from_metadata(newest.as_uri())


FORMATS = {"delta": Format(open_delta, write_delta), "iceberg": Format(open_iceberg, write_iceberg)}


class Table:
    """A table of files that are only named, with the real index of four columns."""

    def __init__(self, folder: Path, files: int) -> None:
        self.folder, self.store, self.chance = folder, LocalStore(folder), np.random.default_rng(0)
        self.timeline, self.index = Timeline(self.store), {}
        self._number = 0
        self.commit(Operation.OVERWRITE, files)

    def commit(self, operation: Operation, count: int) -> None:
        """Adds some files; a merge replaces as many, anywhere in the table."""
        with Transaction.begin(self.timeline, Action.COMMIT, operation) as transaction:
            replaced = operation is Operation.MERGE
            gone = []
            if replaced:
                names = self.timeline.snapshot().files["path"].to_pylist()
                gone = [names[each] for each in self.chance.choice(len(names), count, replace=False)]
            files = self._files(count, transaction.instant)
            for partition, content in write_slices(files, bounds_of(files, len(COLUMNS))).items():
                path = slice_path(partition, transaction.instant, content)
                self.store.create(path, content)
                self.index[partition] = [*self.index.get(partition, []), path]
            schema_json = None if replaced else SCHEMA_JSON
            transaction.commit(Change(files, removes=tuple(gone), schema_json=schema_json), dict(self.index))

    def publish(self, *names: str) -> None:
        for _, error in publish_formats(self.store, self.timeline, TABLE_ID, PublishingConfig(names), 24):
            raise error

    def _files(self, count: int, instant: str) -> DataFiles:
        groups = [f"{self._number + each:016x}" for each in range(count)]
        self._number += count
        return DataFiles.from_columns(
            (),
            path=[data_file_path("", group, instant) for group in groups],
            partition_values=[],
            row_count=pa.array(np.full(count, 1_000_000)),
            size_bytes=pa.array(np.full(count, 128 << 20)),
            modified_ms=pa.array(np.full(count, 1_700_000_000_000)),
            group=groups,
        )


def measured(action: Callable[[], object]) -> np.ndarray:
    """Milliseconds on the clock and of the processor, which other work on the machine hardly changes."""
    # Objects of earlier measurements would be collected in this one.
    gc.collect()
    gc.disable()
    start = np.array([time.perf_counter(), time.process_time()])
    action()
    spent = 1000 * (np.array([time.perf_counter(), time.process_time()]) - start)
    gc.enable()
    return spent


def shown(spent: np.ndarray) -> str:
    clock, processor = spent
    return f"{clock:,.0f} ms (processor {processor:,.0f})"


def told(spent: Sequence[np.ndarray]) -> str:
    """The mean, and the most."""
    return f"{shown(np.mean(spent, axis=0))}, at most {shown(np.max(spent, axis=0))}"


def commits(names: Sequence[str], files: int) -> None:
    """Merges of some files, each published: what the commit takes, and what publishing adds."""
    with tempfile.TemporaryDirectory() as folder:
        table = Table(Path(folder), files)
        first = measured(lambda: table.publish(*names))
        print(f"{' and '.join(names)}: {files:,} files are published for the first time in {shown(first)}")
        for touched in TOUCHED:
            commit, published = [], []
            for _ in range(ROUNDS):
                commit.append(measured(lambda touched=touched: table.commit(Operation.MERGE, touched)))
                published.append(measured(lambda: table.publish(*names)))
            print(
                f"  a commit that replaces {touched:,} files: {told(commit)}; published {told(published)}", flush=True
            )


def openings(name: str, files: int) -> None:
    """Opening a published table beside one that the reader wrote: after one commit, and after more."""
    with tempfile.TemporaryDirectory() as folder:
        published, own = Path(folder) / "published", Path(folder) / "own"
        table, reader = Table(published, files), FORMATS[name]
        table.publish(name)
        rounds = 15 if files == SMALL else 3
        for more in (0, COMMITS):
            spent = []
            for _ in range(more):
                table.commit(Operation.MERGE, 1)
                spent.append(measured(lambda: table.publish(name)))
            if spent:
                print(f"{name}: {files:,} files, {more} commits that replace one: published {told(spent)}", flush=True)
            there = own / str(more)
            reader.write(published, there)
            times = {place: [] for place in (published, there)}
            for _ in range(rounds):
                for place, found in times.items():
                    found.append(measured(lambda place=place: reader.open(place)))
            if reader.open(published) != reader.open(there):
                raise SystemExit(f"{name}: the tables have other files")
            ours, theirs = (np.median(each, axis=0) for each in times.values())
            ratios = ours / theirs
            print(
                f"{name}: {files:,} files after {more} commits: opened in {shown(ours)}, its own table in "
                f"{shown(theirs)}, ratio {ratios[0]:.2f} ({ratios[1]:.2f})",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--formats", nargs="+", default=list(FORMATS), choices=list(FORMATS))
    given = parser.parse_args()
    os.fsync = lambda _: None  # making the tables is not measured
    together = [given.formats] if len(given.formats) > 1 else []
    for names in [*([name] for name in given.formats), *together]:
        for files in given.files:
            commits(names, files)
    for name in given.formats:
        for files in (SMALL, max(given.files)):
            openings(name, files)


if __name__ == "__main__":
    main()
