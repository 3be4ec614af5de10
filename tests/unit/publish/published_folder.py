"""A table without rows that is published in one format, its readers, and a store whose process dies."""

from __future__ import annotations

from typing import ClassVar

from pyiceberg.table import StaticTable

from dbt.adapters.zlayout.publish import delta_log, iceberg_metadata, iceberg_publisher
from dbt.adapters.zlayout.publish.formats import FORMATS, PublishedFormat, PublishedVersion
from dbt.adapters.zlayout.publish.publication import PublishedTable
from dbt.adapters.zlayout.store.local import LocalStore
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.files.data_files import DataFile, DataFiles
from dbt.adapters.zlayout.timeline.timeline import Timeline
from dbt.adapters.zlayout.timeline.transactions.change import Change
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction

TABLE = "0a0e4a52-0000-4000-8000-000000000000"
SCHEMA = '{"type":"struct","fields":[{"name":"k","type":"long","nullable":true,"metadata":{}}]}'


class PublishedFolder:
    """The folder of a table.

    Attributes:
        name: The format.
        folder: Where it is published.
        key: The part of a published version that names the table.
        writes: The function that every publisher calls, as its module and name.
        commits_to_see_all: After how many commits a publisher has made every kind of change.
    """

    name: ClassVar[str]
    folder: ClassVar[str]
    key: ClassVar[str]
    writes: ClassVar[tuple[object, str]]
    commits_to_see_all: ClassVar[int]

    def __init__(self, store: LocalStore) -> None:
        self.store, self.timeline, self.count = store, Timeline(store), 0
        self.commit(Action.REPLACECOMMIT, Operation.OVERWRITE, schema_json=SCHEMA)

    @property
    def format(self) -> PublishedFormat:
        return FORMATS[self.name]

    def commit(self, action: Action, operation: Operation, removes=(), files: int = 1, **change) -> list[str]:
        names = [f"{self.count + number:016x}_20260101000000000.parquet" for number in range(1, files + 1)]
        self.count += files
        added = DataFiles.of([DataFile(path, (), 1, 10, 1000, "g") for path in names])
        with Transaction.begin(self.timeline, action, operation) as transaction:
            transaction.commit(Change(added, removes=tuple(removes), **change))
        return names

    def append(self, files: int = 1) -> list[str]:
        return self.commit(Action.COMMIT, Operation.APPEND, files=files)

    def merge(self, *removes: str) -> list[str]:
        return self.commit(Action.COMMIT, Operation.MERGE, removes)

    def publish(self, hours: float = 24) -> None:
        self.format.catch_up(PublishedTable(self.store, self.timeline), TABLE, hours)

    def withdraw(self) -> None:
        self.format.withdraw(self.store, TABLE)

    def published(self) -> PublishedVersion | None:
        return self.format.published(self.store, TABLE)

    def files(self) -> set[str]:
        return set(self.timeline.snapshot().files["path"].to_pylist())

    def published_bytes(self) -> dict[str, bytes]:
        return {file.path: self.store.read(file.path) for file in self.store.list(self.folder)}

    def path_of(self, order: int) -> str:
        """The file that publishes the first version that is published, the second, and so on."""
        raise NotImplementedError

    def live(self) -> set[str]:
        """The files that a reader finds."""
        raise NotImplementedError


class DeltaFolder(PublishedFolder):
    name, folder, key = "delta", delta_log.FOLDER, "commitInfo"
    writes, commits_to_see_all = (delta_log, "_commit"), 11

    def path_of(self, order: int) -> str:
        return delta_log.commit_path(order)

    def live(self) -> set[str]:
        numbers = [int(file.path.rpartition("/")[2][:20]) for file in self.store.list(self.folder) if _is_json(file)]
        table, _ = delta_log._replayed(self.store, max(numbers))
        return set(table["path"].to_pylist())


class IcebergFolder(PublishedFolder):
    name, folder, key = "iceberg", iceberg_metadata.FOLDER, "properties"
    writes, commits_to_see_all = (iceberg_publisher, "new_files"), 3

    def path_of(self, order: int) -> str:
        return iceberg_metadata.metadata_path(order + 1)

    def opened(self) -> StaticTable:
        return StaticTable.from_metadata(self.store.root_uri)

    def live(self, snapshot: int | None = None) -> set[str]:
        tasks = self.opened().scan(snapshot_id=snapshot).plan_files()
        return {each.file.file_path.rpartition("/")[2] for each in tasks}


def _is_json(file) -> bool:
    return file.path.endswith(".json")


class Killed(BaseException):
    """The end of the process."""


class WatchedStore(LocalStore):
    """A store that passes each of its changes through `watched`."""

    def watched(self, access, *given, **how):
        """Makes an access, or something else."""
        raise NotImplementedError

    def create(self, path: str, data: bytes) -> None:
        self.watched(super().create, path, data)

    def put(self, path: str, data: bytes) -> None:
        self.watched(super().put, path, data)

    def delete(self, paths) -> None:
        self.watched(super().delete, list(paths))

    def delete_tree(self, prefix: str) -> None:
        self.watched(super().delete_tree, prefix)


class DyingStore(WatchedStore):
    """A store whose process dies before or after the n-th change."""

    def __init__(self, root, lives: int, after: bool) -> None:
        super().__init__(root)
        self.lives, self.after = lives, after

    def watched(self, access, *given, **how):
        self.lives -= 1
        if self.lives < (-1 if self.after else 0):
            raise Killed
        access(*given, **how)
        if self.lives < 0:
            raise Killed


class PausingStore(WatchedStore):
    """A store that calls a function before its n-th access, once; reading counts, too."""

    def __init__(self, root, accesses: int, meanwhile) -> None:
        super().__init__(root)
        self.accesses, self.meanwhile = accesses, meanwhile

    def watched(self, access, *given, **how):
        self.accesses -= 1
        if self.accesses == -1:
            self.meanwhile()
        return access(*given, **how)

    def list(self, prefix: str, *, recursive: bool = False):
        return self.watched(super().list, prefix, recursive=recursive)

    def read(self, path: str) -> bytes:
        return self.watched(super().read, path)
