"""Writers as the engine's are, on files that hold a few rows; and what each does to the rows when it is alone.

A row is (partition, key, value). A value tells its lineage: 'm(x)' is what writer m made of 'x'. So rows that were
lost, doubled, or changed from a state that nobody was to see, show in the end.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from unittest import mock

from lookup_index import ASKED_FOR, covered, entries_of, index_after
from simulated_store import LiveScript, Script, ScriptedStore, World

from dbt.adapters.zlayout.errors import ConflictError, VersionNotFoundError
from dbt.adapters.zlayout.index.slice_reading import SliceCache
from dbt.adapters.zlayout.index.slice_writing import slice_path
from dbt.adapters.zlayout.store.protocol import Store
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.files.data_files import DataFile, DataFiles
from dbt.adapters.zlayout.timeline.files.naming import data_file_path, parse_log_file_name
from dbt.adapters.zlayout.timeline.log.runtime import Runtime, Writer
from dbt.adapters.zlayout.timeline.log.snapshot import Snapshot
from dbt.adapters.zlayout.timeline.retention.cleaning import clean
from dbt.adapters.zlayout.timeline.retention.past import missing_files, snapshot_of
from dbt.adapters.zlayout.timeline.timeline import Timeline
from dbt.adapters.zlayout.timeline.transactions.change import Change, IndexPlan
from dbt.adapters.zlayout.timeline.transactions.recovery import recover
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction

Row = tuple[str, int, str]
Rows = tuple[Row, ...]
PARTITION_BY = ("p",)
SCHEMA_JSON = json.dumps({"type": "struct", "fields": [{"name": name, "type": "long"} for name in "pkv"]})


@dataclass(frozen=True)
class Outcome:
    """How a writer ended.

    Attributes:
        kind: 'done', 'conflict', 'refused' (its version was cleaned), or 'failed' with an error that nobody may see.
        message: Of the error.
    """

    kind: str
    message: str = ""


@dataclass(frozen=True)
class Process:
    """One writer's process.

    Attributes:
        pid: Process id.
        clock_ms: How far its clock is ahead.
        remote: Whether others run on another machine, so that only its silence tells that it died.
        cloud: Whether a failed request may arrive late.
    """

    pid: int
    clock_ms: int = 0
    remote: bool = False
    cloud: bool = False

    def timeline(self, script: Script | LiveScript) -> Timeline:
        # Every run is a process of its own: what it holds open is told apart by the root.
        store = ScriptedStore(script, f"memory://{self.pid}/{next(_RUNS)}", self.cloud)
        machine = f"machine {self.pid}" if self.remote else "one machine"
        runtime = Runtime(
            now_ms=lambda: script.ask(("now", self.clock_ms)),
            sleep=lambda _: script.ask(("sleep",)),
            writer=Writer("host", machine, self.pid, "start"),
            heartbeat_seconds=None,
        )
        timeline = Timeline(store, runtime)
        script.known = lambda: _identity(timeline)
        running.script = script
        return timeline


def _identity(timeline: Timeline) -> Hashable:
    # The one thing that a timeline keeps between two calls.
    known = timeline._cached
    if known is None:
        return None
    snapshot, _ = known
    # Two histories may differ in a version between that changed nothing but the index.
    index = tuple(sorted((part, tuple(paths)) for part, paths in snapshot.index.items()))
    return snapshot.version, snapshot.instant, tuple(snapshot.files["path"].to_pylist()), index


@contextmanager
def simulated_processes() -> Iterator[None]:
    """Let the world, not this machine's process table, tell which writers exist no more.

    Slices are read whenever they are needed: what is in the memory of a process must not change what it does.
    """

    def lives(writer: Writer, observer: Writer) -> bool | None:
        return not running.script.ask(("gone", writer.pid)) if writer.machine == observer.machine else None

    opened = mock.patch.object(SliceCache, "read", lambda cache, store, path: cache.opens(store, path))
    with mock.patch.object(Writer, "lives", lives), opened:
        yield


@dataclass
class _Running:
    script: Script | LiveScript


_RUNS = itertools.count()
running = _Running(LiveScript(World()))


@dataclass(frozen=True)
class Work:
    """What one writer does.

    Attributes:
        operation: What the timeline is told.
        tag: Marks the values that it writes.
        keys: The keys that a merge or delete is about, the key that an append adds.
        version: That a rollback goes back to.
    """

    operation: str
    tag: str
    keys: tuple[int, ...] = ()
    version: int | None = None

    def __str__(self) -> str:
        keys = f"[{','.join(map(str, self.keys))}]" if self.keys else ""
        return f"{str.__str__(self.operation)}{keys}"

    @property
    def changes_rows(self) -> bool:
        return self.operation not in {Operation.CLUSTERING, Operation.INDEXING, "clean"}

    @property
    def commits_once(self) -> bool:
        return self.operation not in {"clean", "recover"}

    def run(self, process: Process, script: Script | LiveScript) -> Outcome:
        """Do it, through the real timeline."""
        timeline = process.timeline(script)
        try:
            self._does(timeline)
            return Outcome("done")
        except ConflictError as error:
            return Outcome("conflict", str(error))
        except VersionNotFoundError as error:
            return Outcome("refused", str(error))
        except Exception as error:
            return Outcome("failed", f"{type(error).__name__}: {error}")

    def _does(self, timeline: Timeline) -> None:
        if self.operation == "clean":
            clean(timeline, 1, 0, timeline.runtime.now_ms())
        elif self.operation == "recover":
            recover(timeline)
        else:
            with Transaction.begin(timeline, self._action(), self.operation, reads_version=self.version) as transaction:
                change = self._change(timeline, transaction)
                transaction.commit(*self._indexed(timeline.store, transaction, change))

    def alone(self, rows: Rows, versions: Callable[[int], Rows]) -> Rows:
        """Return what is left of rows after this work, when nobody else is there.

        Args:
            rows: The rows before.
            versions: Returns the rows of a version that was there before all writers.
        """
        after = rows
        match self.operation:
            case Operation.APPEND:
                after = (*rows, *self._appended())
            case Operation.OVERWRITE:
                after = tuple(map(self._marked, rows)) or self._appended()
            case Operation.INSERT_OVERWRITE:
                after = tuple(self._marked(row) if row[0] == "a" else row for row in rows)
            case Operation.MERGE:
                found = {row[1] for row in rows}
                inserted = tuple(("a", key, self.tag) for key in self.keys if key not in found)
                after = (*(self._marked(row) if row[1] in self.keys else row for row in rows), *inserted)
            case Operation.DELETE:
                after = tuple(row for row in rows if row[1] not in self.keys)
            case Operation.ROLLBACK:
                assert self.version is not None
                after = versions(self.version)
        return after

    def _action(self) -> Action:
        match self.operation:
            case Operation.APPEND:
                return Action.COMMIT
            case Operation.ROLLBACK:
                return Action.ROLLBACK
            case Operation.INDEXING:
                return Action.INDEXING
        return Action.REPLACECOMMIT

    def _indexed(self, store: Store, transaction: Transaction, change: Change) -> tuple[Change, IndexPlan]:
        """Return the change and its index: a slice of statistics, and entries where the table has a lookup index."""
        path, base = slice_path("files", transaction.instant, b"slice"), transaction.base
        store.put(path, b"slice")
        if base is None or not base.layout:
            before = () if self._is_whole() or base is None else base.index.get("files", ())
            return change, {"files": (*before, path)}
        entries = entries_of(change.adds, partial(_keys_of, store))
        if self._is_whole():
            slices = entries.put(store, transaction.instant, change.adds)
            return replace(change, layout=base.layout), {"files": (path,), **slices}
        lookups = index_after(store, transaction.instant, change.adds, change.removes, entries)
        return change, lambda head: {"files": (*(head.index.get("files", ()) if head else ()), path), **lookups(head)}

    def _is_whole(self) -> bool:
        return self.operation in {Operation.OVERWRITE, Operation.ROLLBACK}

    def _marked(self, row: Row) -> Row:
        return row[0], row[1], f"{self.tag}({row[2]})"

    def _appended(self) -> Rows:
        return tuple(("a", key, self.tag) for key in self.keys)

    def _change(self, timeline: Timeline, transaction: Transaction) -> Change:
        store, base, pid = timeline.store, transaction.base, timeline.runtime.writer.pid
        if self.operation == Operation.ROLLBACK:
            assert self.version is not None
            old = snapshot_of(timeline, self.version, "t")
            if lost := missing_files(timeline, old.files):
                raise VersionNotFoundError(f"{lost} are gone")
            return Change(old.files, schema_json=old.schema_json, partition_by=old.partition_by)
        if self.operation == Operation.INDEXING:
            return Change(DataFiles.empty(PARTITION_BY))
        if self.operation == Operation.APPEND:
            shape = SCHEMA_JSON if base is None else None
            return Change(
                write_files(store, pid, transaction.instant, self._appended()),
                schema_json=shape,
                partition_by=PARTITION_BY if base is None else None,
            )
        rows_of_file = {file: read_rows(store, file.path) for file in _files_of(base)}
        replaced = [file for file, rows in rows_of_file.items() if self._concerns(file, rows)]
        kept = [row for file, rows in rows_of_file.items() if file not in replaced for row in rows]
        after = self.alone((*kept, *(row for file in replaced for row in rows_of_file[file])), lambda _: ())
        whole = self._is_whole()
        return Change(
            write_files(store, pid, transaction.instant, after[len(kept) :]),
            removes=() if whole else tuple(file.path for file in replaced),
            schema_json=SCHEMA_JSON if whole else None,
            partition_by=PARTITION_BY if whole else None,
            key_conflict=None if whole or not self.changes_rows else lambda added: self._key_conflict(store, added),
        )

    def _concerns(self, file: DataFile, rows: Rows) -> bool:
        if self.operation == Operation.INSERT_OVERWRITE:
            return file.partition == (("p", "a"),)
        if self.operation in {Operation.MERGE, Operation.DELETE}:
            return any(row[1] in self.keys for row in rows)
        return True

    def _key_conflict(self, store: Store, added: DataFiles) -> str | None:
        found = [file.path for file in added if self._concerns(file, read_rows(store, file.path))]
        return f"it wrote rows of this {self.operation} to {found[0]}" if found else None


class SpanWork(Work):
    """Replaces the rows of some keys, as a batch replaces the rows of its span of time."""

    def alone(self, rows: Rows, versions: Callable[[int], Rows]) -> Rows:
        del versions
        return (*(row for row in rows if row[1] not in self.keys), *self._appended())


class BuildWork(Work):
    """Builds a lookup index on a table that may have none yet, in a commit for each file."""

    @property
    def commits_once(self) -> bool:
        return False

    def __str__(self) -> str:
        return "build"

    def _does(self, timeline: Timeline) -> None:
        while self._step(timeline):
            pass

    @staticmethod
    def _step(timeline: Timeline) -> bool:
        """Adds one file to the index, if there is one that it lacks. Returns whether there was another."""
        store = timeline.store
        with Transaction.begin(timeline, Action.INDEXING, Operation.INDEXING) as transaction:
            base = transaction.base
            assert base is not None
            lacking = base.files.minus(tuple(covered(store, base)))
            entries = entries_of(lacking[:1], partial(_keys_of, store), existing=True)
            change = Change(DataFiles.empty(PARTITION_BY), layout=ASKED_FOR, summary={"step": len(lacking)})
            lookups = index_after(store, transaction.instant, change.adds, (), entries)
            transaction.commit(change, lambda head: {**(head.index if head else {}), **lookups(head)})
        return len(lacking) > 1


def _keys_of(store: Store, path: str) -> list[int]:
    return [row[1] for row in read_rows(store, path)]


def read_rows(store: Store, path: str) -> Rows:
    """Return the rows of a file; of a log those of its records."""
    return tuple((p, k, v) for p, k, v, *_ in json.loads(store.read(path)))


def write_files(store: Store, pid: int, instant: str, rows: Rows) -> DataFiles:
    """Write a file a partition, in groups that no other process uses."""
    files = []
    for partition in sorted({row[0] for row in rows}):
        content = json.dumps([row for row in rows if row[0] == partition]).encode()
        group = f"{pid:08x}{ord(partition):08x}"
        path = data_file_path(f"p={partition}", group, instant)
        store.put(path, content)
        files.append(DataFile(path, (("p", partition),), 1, len(content), 1, group))
    return DataFiles.of(files, PARTITION_BY)


def rows_of(store: Store, snapshot: Snapshot) -> Rows:
    """Return the rows of a version, sorted."""
    return merged_rows(store, snapshot.files)


def compacted(store: Store, snapshot: Snapshot) -> Rows:
    """Return the rows that a compaction of every file group would leave, which looks at no other group."""
    by_group: dict[str, list[DataFile]] = {}
    for file in snapshot.files:
        by_group.setdefault(file.group, []).append(file)
    return tuple(sorted(row for files in by_group.values() for row in merged_rows(store, files)))


def merged_rows(store: Store, files: Iterable[DataFile]) -> Rows:
    """Return rows of base files without a log record, and of each key the newest record if it is no delete."""
    rows: list[Row] = []
    newest: dict[tuple[str, int], tuple[str, Row, str]] = {}
    for file in files:
        parsed = parse_log_file_name(file.path)
        if parsed is None:
            rows += read_rows(store, file.path)
            continue
        for p, k, v, op in json.loads(store.read(file.path)):
            if (p, k) not in newest or newest[p, k][0] < parsed[1]:
                newest[p, k] = (parsed[1], (p, k, v), op)
    rows = [row for row in rows if row[:2] not in newest]
    return tuple(sorted([*rows, *(row for _, row, op in newest.values() if op != "delete")]))


def _files_of(base: Snapshot | None) -> Iterable[DataFile]:
    return base.files if base is not None else ()
