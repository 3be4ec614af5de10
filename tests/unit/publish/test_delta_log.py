"""The Delta log: a function of the table's log, complete after any interruption, and trusted with nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from dbt.adapters.zlayout.errors import AlreadyExistsError, CorruptError, StoreError, UnsupportedError
from dbt.adapters.zlayout.publish import delta_log
from dbt.adapters.zlayout.publish.delta_log import FOLDER, catch_up, commit_path, shown, withdraw
from dbt.adapters.zlayout.publish.formats import publish_formats, what_lags
from dbt.adapters.zlayout.store.local import LocalStore
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.files.data_files import DataFile, DataFiles
from dbt.adapters.zlayout.timeline.timeline import Timeline
from dbt.adapters.zlayout.timeline.transactions.change import Change
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction

TABLE = "0a0e4a52-0000-4000-8000-000000000000"
SCHEMA = '{"type":"struct","fields":[{"name":"k","type":"long","nullable":true,"metadata":{}}]}'


class Table:
    """A table without rows."""

    def __init__(self, store: LocalStore) -> None:
        self.store, self.timeline, self.count = store, Timeline(store), 0
        self._commit(Action.REPLACECOMMIT, Operation.OVERWRITE, schema_json=SCHEMA)

    def _commit(self, action: Action, operation: Operation, removes: tuple[str, ...] = (), **change: str) -> str:
        self.count += 1
        path = f"{self.count:016x}_20260101000000000.parquet"
        files = DataFiles.of([DataFile(path, (), 1, 10, 1000, "g")])
        with Transaction.begin(self.timeline, action, operation) as transaction:
            transaction.commit(Change(files, removes=removes, **change))
        return path

    def append(self) -> str:
        return self._commit(Action.COMMIT, Operation.APPEND)

    def merge(self, *removes: str) -> str:
        return self._commit(Action.COMMIT, Operation.MERGE, removes)

    def publish(self) -> None:
        catch_up(self.store, self.timeline, TABLE, 24)

    def live(self) -> set[str]:
        """The files that a reader of Delta finds, by its rules."""
        numbers = sorted(
            int(file.path[len(FOLDER) + 1 :][:20]) for file in self.store.list(FOLDER) if file.path.endswith(".json")
        )
        table, _ = delta_log._replayed(self.store, numbers[-1])
        return set(table["path"].to_pylist())

    def files(self) -> set[str]:
        return set(self.timeline.snapshot().files["path"].to_pylist())


@pytest.fixture
def table(tmp_path) -> Table:
    return Table(LocalStore(tmp_path / "t"))


def bytes_of(store: LocalStore) -> dict[str, bytes]:
    return {file.path: store.read(file.path) for file in store.list(FOLDER)}


def test_a_table_is_published_from_its_newest_version_on(table) -> None:
    table.append()
    table.publish()
    assert shown(table.store, TABLE).version == 1
    assert shown(table.store, TABLE).number == 0
    assert table.live() == table.files()


def test_the_same_versions_give_the_same_bytes_however_often_and_late_they_are_published(tmp_path) -> None:
    one = Table(LocalStore(tmp_path / "one"))
    one.publish()
    for _ in range(3):
        one.merge(one.append())
        one.publish()
        one.publish()
    at_once = bytes_of(one.store)
    assert set(at_once) == {commit_path(number) for number in range(7)}
    for path in at_once:
        if path != commit_path(0):
            one.store.delete([path])
    one.publish()
    assert bytes_of(one.store) == at_once
    assert one.live() == one.files()


def test_a_file_that_is_removed_and_added_in_one_commit_is_only_added(table) -> None:
    table.publish()
    (path,) = table.files()
    files = DataFiles.of([DataFile(path, (), 2, 20, 2000, "g")])
    with Transaction.begin(table.timeline, Action.COMMIT, Operation.MERGE) as transaction:
        transaction.commit(Change(files, removes=(path,)))
    table.publish()
    lines = [json.loads(line) for line in table.store.read(commit_path(1)).splitlines()]
    assert [next(iter(line)) for line in lines] == ["commitInfo", "txn", "add"]
    assert table.live() == {path}


def test_columns_are_written_when_they_change_and_only_then(table) -> None:
    def kinds(number: int) -> list[str]:
        return [next(iter(json.loads(line))) for line in table.store.read(commit_path(number)).splitlines()]

    table.publish()
    table.append()
    wider = SCHEMA.replace("}]}", '},{"name":"x","type":"timestamp_ntz","nullable":true,"metadata":{}}]}')
    table._commit(Action.COMMIT, Operation.APPEND, schema_json=wider)
    table.publish()
    assert kinds(0)[:4] == ["commitInfo", "protocol", "metaData", "txn"]
    assert kinds(1) == ["commitInfo", "txn", "add"]
    assert kinds(2) == ["commitInfo", "protocol", "metaData", "txn", "add"]


def test_checkpoints_replace_older_commits_for_readers(table) -> None:
    table.publish()
    first = table.append()
    for number in range(25):
        table.append() if number % 3 else table.merge(first)
        table.publish()
    assert json.loads(table.store.read(f"{FOLDER}/_last_checkpoint"))["version"] == 20
    expected = table.live()
    table.store.delete(commit_path(number) for number in range(20))
    assert table.live() == expected == table.files()
    table.append()
    table.publish()
    assert table.live() == table.files()


def test_columns_that_change_are_followed_by_a_checkpoint_even_if_a_publisher_died_before_it(table) -> None:
    def checkpoints() -> list[int]:
        names = [file.path.rpartition("/")[2] for file in table.store.list(FOLDER)]
        return [int(name[:20]) for name in names if name.endswith(".checkpoint.parquet")]

    table.publish()
    table.append()
    table.publish()
    assert checkpoints() == []
    table._commit(Action.COMMIT, Operation.APPEND, schema_json=SCHEMA.replace("long", "string"))
    table.publish()
    assert checkpoints() == [2]
    table.store.delete([f"{FOLDER}/{2:020d}.checkpoint.parquet", f"{FOLDER}/_last_checkpoint"])
    table.append()
    table.publish()
    assert checkpoints() == [3]
    table.store.delete([f"{FOLDER}/_last_checkpoint"])
    table.append()
    table.publish()
    table.append()
    table.publish()
    assert checkpoints() == [3, 4]
    assert table.live() == table.files()


def test_a_checkpoint_of_many_files_can_be_read_again(table) -> None:
    table.publish()
    names = [f"{number:016x}_20260101000000000.parquet" for number in range(100, 20_100)]
    files = DataFiles.of([DataFile(name, (), 1, 10, 1000, "g") for name in names])
    with Transaction.begin(table.timeline, Action.COMMIT, Operation.APPEND) as transaction:
        transaction.commit(Change(files))
    for _ in range(30):
        table.append()
        table.publish()
    assert json.loads(table.store.read(f"{FOLDER}/_last_checkpoint"))["version"] == 20
    assert table.live() == table.files()


class Killed(BaseException):
    """The end of the process."""


class DyingStore(LocalStore):
    """A store whose process dies before or after the n-th change."""

    def __init__(self, root, lives: int, after: bool) -> None:
        super().__init__(root)
        self.lives, self.after = lives, after

    def _count(self) -> None:
        self.lives -= 1
        if self.lives < 0:
            raise Killed

    def create(self, path: str, data: bytes) -> None:
        if not self.after:
            self._count()
        super().create(path, data)
        if self.after:
            self._count()

    def put(self, path: str, data: bytes) -> None:
        self._count()
        super().put(path, data)

    def delete(self, paths) -> None:
        self._count()
        super().delete(paths)

    def delete_tree(self, prefix: str) -> None:
        self._count()
        super().delete_tree(prefix)


@pytest.mark.parametrize("after", [False, True])
def test_a_publisher_that_dies_anywhere_is_followed_by_one_that_completes_its_work(tmp_path, after) -> None:
    for lives in range(16):
        table = Table(LocalStore(tmp_path / f"{lives}"))
        for _ in range(11):
            table.append()
            if lives % 2:
                table.publish()
        dying = DyingStore(tmp_path / f"{lives}", lives, after)
        ended = False
        try:
            catch_up(dying, Timeline(dying), TABLE, 0)
            ended = True
        except Killed:
            pass
        seen = shown(table.store, TABLE)
        assert seen is None or table.live() <= table.files()
        table.append()
        table.publish()
        assert table.live() == table.files()
        assert shown(table.store, TABLE).version == 12
        if ended and not lives % 2:
            break


def test_a_withdrawal_that_dies_leaves_no_readable_table_and_is_completed(tmp_path) -> None:
    for lives in range(20):
        table = Table(LocalStore(tmp_path / f"{lives}"))
        for _ in range(12):
            table.publish()
            table.append()
        dying = DyingStore(tmp_path / f"{lives}", lives, after=False)
        try:
            withdraw(dying, TABLE)
            break
        except Killed:
            pass
        if lives > 1:
            # The first commit is gone, and so is every checkpoint before any later commit.
            assert not table.store.exists(f"{FOLDER}/_last_checkpoint")
            assert not table.store.exists(commit_path(0))
        withdraw(table.store, TABLE)
        assert not table.store.list(FOLDER)
        table.publish()
        assert table.live() == table.files()
    assert not table.store.list(FOLDER)


def test_a_slow_publisher_does_not_take_a_newer_version_for_one_that_was_lost(table, monkeypatch) -> None:
    table.publish()
    table.append()
    slow, list_files = Timeline(table.store), table.store.list
    slow.snapshot()

    def meanwhile(*given, **how):
        monkeypatch.setattr(table.store, "list", list_files)
        table.append()
        table.publish()
        return list_files(*given, **how)

    monkeypatch.setattr(table.store, "list", meanwhile)
    catch_up(table.store, slow, TABLE, 24)
    assert table.live() == table.files()
    assert shown(table.store, TABLE).version == shown(table.store, TABLE).number == 2


def test_a_commit_that_cannot_be_created_nor_seen_is_an_error_and_no_endless_search(table, monkeypatch) -> None:
    def exists(path: str, data: bytes) -> None:
        raise AlreadyExistsError(path)

    table.publish()
    table.append()
    monkeypatch.setattr(table.store, "create", exists)
    with pytest.raises(AlreadyExistsError):
        table.publish()


def test_versions_that_the_log_lost_are_replaced(table) -> None:
    table.publish()
    lost = table.append()
    table.publish()
    path = f".zlayout/timeline/log/{1:020d}.json"
    table.store.delete([path])
    table.timeline = Timeline(table.store)
    table.publish()
    assert table.live() == table.files()
    kept = table.append()
    table.publish()
    assert table.live() == table.files()
    assert (lost in table.live(), kept in table.live()) == (False, True)


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"{}", b"[]", b"{", b"\xff", b'{"commitInfo":{}}', b'{"commitInfo":5}', b'{"protocol":{}}'),
        *(b'"zlayout.table_id":"%s"' % TABLE.encode(), b'{"commitInfo":{"zlayout.table_id":"%s"}}' % TABLE.encode()),
    ],
)  # fmt: skip
def test_a_log_of_other_software_or_damage_is_named_and_left_alone(table, content) -> None:
    table.publish()
    table.store.put(commit_path(1), content)
    before = bytes_of(table.store)
    with pytest.raises((CorruptError, UnsupportedError), match=commit_path(1)):
        table.publish()
    assert bytes_of(table.store) == before
    assert list(what_lags(table.store, TABLE, ["delta"], 0))


@pytest.mark.parametrize(
    "first", [b'{"protocol":{"minReaderVersion":1}}', b'{"commitInfo":{"operation":"WRITE"}}', b"{"]
)
def test_a_withdrawal_never_touches_the_log_of_other_software(table, first) -> None:
    table.store.put(commit_path(0), first + b'\n{"metaData":{"id":"x"}}\n')
    table.store.put(f"{FOLDER}/_last_checkpoint", b"{}")
    before = bytes_of(table.store)
    withdraw(table.store, TABLE)
    assert bytes_of(table.store) == before


def test_a_withdrawal_removes_a_damaged_log_of_the_table(table) -> None:
    table.publish()
    table.store.put(commit_path(1), b"{")
    withdraw(table.store, TABLE)
    assert not table.store.list(FOLDER)
    table.publish()
    assert table.live() == table.files()


def test_the_log_of_another_table_is_left_alone(table) -> None:
    table.publish()
    with pytest.raises(UnsupportedError, match="another table"):
        catch_up(table.store, table.timeline, "other", 24)
    withdraw(table.store, "other")
    assert shown(table.store, TABLE) is not None


def test_a_damaged_checkpoint_is_named(table) -> None:
    table.publish()
    table.store.put(f"{FOLDER}/{0:020d}.checkpoint.parquet", b"PAR1")
    with pytest.raises(CorruptError, match="is not a Delta checkpoint"):
        delta_log._replayed(table.store, 0)


def test_a_format_that_fails_is_named_and_does_not_raise(table, monkeypatch) -> None:
    def fail(*_: object) -> None:
        raise StoreError("no space")

    monkeypatch.setattr(delta_log, "_commit", fail)
    failed: Iterator[tuple[str, Exception]] = publish_formats(table.store, table.timeline, TABLE, ["delta"], 24)
    assert [(name, str(error)) for name, error in failed] == [("delta", "no space")]
    assert list(what_lags(table.store, TABLE, ["delta"], 3)) == ["readers of delta see no version and not version 3"]
