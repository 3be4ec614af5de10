"""Writers of a merge-on-read table: changed rows come as logs beside files, and compactions merge them.

A log record is a row with what becomes of its key; the instant is that of its file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from row_writers import PARTITION_BY, SCHEMA_JSON, Work, merged_rows, read_rows, rows_of, write_files

from dbt.adapters.zlayout.store.protocol import Store
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.files.data_files import DataFile, DataFiles
from dbt.adapters.zlayout.timeline.files.naming import data_file_path, log_file_path
from dbt.adapters.zlayout.timeline.log.file_slices import groups_with_logs, without_logs
from dbt.adapters.zlayout.timeline.log.snapshot import Snapshot
from dbt.adapters.zlayout.timeline.timeline import Timeline
from dbt.adapters.zlayout.timeline.transactions.change import Change
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction

Record = tuple[str, int, str, str]


@dataclass(frozen=True)
class RecordWork(Work):
    """What one writer of a merge-on-read table does.

    Attributes:
        many: Whether the keys that it inserts stand for so many that they become a base file in place of log records.
    """

    many: bool = False

    @property
    def changes_rows(self) -> bool:
        return super().changes_rows and self.operation != Operation.COMPACTION

    def _action(self) -> Action:
        match self.operation:
            case Operation.COMPACTION:
                return Action.COMPACTION
            case Operation.MERGE | Operation.DELETE:
                return Action.DELTACOMMIT
        return super()._action()

    def _change(self, timeline: Timeline, transaction: Transaction) -> Change:
        store, base, pid = timeline.store, transaction.base, timeline.runtime.writer.pid
        assert base is not None
        match self.operation:
            case Operation.MERGE | Operation.DELETE:
                records, instant = list(self._records(store, base, pid)), transaction.instant
                there = {row[1] for file in base.files for row in read_rows(store, file.path)} if self.many else ()
                new = tuple(record[:3] for _, record in records if self.many and record[1] not in there)
                logs = write_logs(store, instant, (each for each in records if each[1][:3] not in new))
                files = logs.plus(write_files(store, pid, instant, new)) if new else logs
                return Change(files, key_conflict=lambda added: self._key_conflict(store, added))
            case Operation.COMPACTION:
                return _compaction(store, base, transaction.instant)
            case Operation.CLUSTERING:
                files = without_logs(base.files)
                rows = tuple(row for file in files for row in read_rows(store, file.path))
                removes = tuple(files["path"].to_pylist())
                return Change(write_files(store, pid, transaction.instant, rows), removes=removes)
            case Operation.OVERWRITE:
                rows = self.alone(rows_of(store, base), lambda _: ())
                files = write_files(store, pid, transaction.instant, rows)
                return Change(files, schema_json=SCHEMA_JSON, partition_by=PARTITION_BY)
        return super()._change(timeline, transaction)

    def _records(self, store: Store, base: Snapshot, pid: int) -> Iterator[tuple[str, Record]]:
        """Yield what comes to which file group."""
        before = {row[1]: row for row in rows_of(store, base)}
        groups = {row[1]: file.group for file in base.files for row in read_rows(store, file.path)}
        smallest = min(base.files, key=lambda file: file.size_bytes, default=None)
        elsewhere = smallest.group if smallest is not None else f"{pid:08x}{ord('a'):08x}"
        for key in self.keys:
            row = before.get(key)
            if self.operation == Operation.MERGE:
                new = self._marked(row) if row is not None else ("a", key, self.tag)
                yield groups.get(key, elsewhere), (*new, "upsert")
            elif row is not None:
                yield groups[key], (*row, "delete")


def _compaction(store: Store, base: Snapshot, instant: str) -> Change:
    adds, removes = [], []
    for group in sorted(groups_with_logs(base.files)):
        files = [file for file in base.files if file.group == group]
        rows = merged_rows(store, files)
        removes += [file.path for file in files]
        if rows:
            content = json.dumps(rows).encode()
            path = data_file_path("p=a", group, instant)
            store.put(path, content)
            adds.append(DataFile(path, (("p", "a"),), len(rows), len(content), 1, group))
    return Change(DataFiles.of(adds, PARTITION_BY), removes=tuple(removes))


def write_logs(store: Store, instant: str, records: Iterable[tuple[str, Record]]) -> DataFiles:
    """Write a log a file group."""
    by_group: dict[str, list[Record]] = {}
    for group, record in records:
        by_group.setdefault(group, []).append(record)
    files = []
    for group, some in by_group.items():
        content = json.dumps(some).encode()
        path = log_file_path("p=a", group, instant, 0)
        store.put(path, content)
        files.append(DataFile(path, (("p", "a"),), len(some), len(content), 1, group))
    return DataFiles.of(files, PARTITION_BY)
