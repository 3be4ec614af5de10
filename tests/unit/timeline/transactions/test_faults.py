"""A writer killed at every single effect: the table is at the version before or after, and nothing is left over."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import pytest

from dbt.adapters.zlayout.errors import StoreError
from dbt.adapters.zlayout.index.slice_writing import slice_path
from dbt.adapters.zlayout.publish.spark_manifest import catch_up, manifest_bytes, manifest_path, retire
from dbt.adapters.zlayout.store.local import LocalStore
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.retention.cleaning import clean
from dbt.adapters.zlayout.timeline.retention.orphans import orphans
from dbt.adapters.zlayout.timeline.transactions.change import Change
from dbt.adapters.zlayout.timeline.transactions.pending import list_pending
from dbt.adapters.zlayout.timeline.transactions.recovery import recover
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction


class Killed(BaseException):
    """The process is no more: no handler of the product may catch this."""


class FaultyStore:
    """A store that stops working at one of its effects.

    Args:
        store: The store that does the work.
        at: The number of the effect, from 0.
        after: Whether the effect still happens.
        killed: Whether the process dies then (every later effect fails too), or only gets an error once.
    """

    def __init__(self, store: LocalStore, at: int, after: bool, killed: bool) -> None:
        self._store = store
        self.root_uri = store.root_uri
        self.read = store.read
        self.exists = store.exists
        self.list = store.list
        self.stat = store.stat
        self.local_path = store.local_path
        self.local_scratch = store.local_scratch
        self._at = at
        self._after = after
        self._killed = killed
        self.effects = 0

    def _effect(self, act: Callable[[], None]) -> None:
        number = self.effects
        self.effects += 1
        if number < self._at or (number > self._at and not self._killed):
            act()
            return
        if number == self._at and self._after:
            act()
        raise Killed if self._killed else StoreError("the disk is full")

    def create(self, path: str, data: bytes) -> None:
        self._effect(lambda: self._store.create(path, data))

    def put(self, path: str, data: bytes) -> None:
        self._effect(lambda: self._store.put(path, data))

    def put_file(self, path: str, local_file: Path) -> None:
        self._effect(lambda: self._store.put_file(path, local_file))

    def delete(self, paths: Iterable[str]) -> None:
        for path in list(paths):
            self._effect(lambda path=path: self._store.delete([path]))

    def delete_tree(self, prefix: str) -> None:
        self._effect(lambda: self._store.delete_tree(prefix))


def _work(table, store, operation: Operation) -> None:
    """Write two files and a slice, commit, publish, clean: every effect of a run that the store sees."""
    timeline = table.timeline(store)
    action = Action.COMMIT if operation is Operation.APPEND else Action.REPLACECOMMIT
    with Transaction.begin(timeline, action, operation) as transaction:
        files = table.write(transaction, 2, store)
        path = slice_path("files", transaction.instant, b"slice")
        store.put(path, b"x")
        removes = tuple(transaction.base.files["path"].to_pylist()[:1]) if operation is Operation.MERGE else ()
        schema_json = '{"type":"struct","fields":[]}' if operation is Operation.OVERWRITE else None
        transaction.commit(Change(files, removes=removes, schema_json=schema_json), index={"files": (path,)})
    catch_up(store, timeline)
    retire(store)
    clean(timeline, 1, 0, table.now_ms + 10)


def _prepared(table, operation: Operation, first: bool) -> None:
    # Version 9 exists, so that the next one writes a checkpoint; a transaction of a dead writer lies around.
    if first:
        return
    table.overwrite(2)
    for _ in range(8):
        table.append()
    lost = Transaction.begin(table.timeline(), Action.COMMIT, Operation.APPEND)
    table.write(lost)
    lost._close()
    catch_up(table.store, table.timeline())


CASES = [
    (Operation.APPEND, False),
    (Operation.OVERWRITE, False),
    (Operation.MERGE, False),
    (Operation.OVERWRITE, True),
]


# A writer that dies before an effect leaves what one leaves that dies after the effect before it.
@pytest.mark.parametrize(
    ("killed", "after"),
    [pytest.param(True, False, marks=pytest.mark.exhaustive), (True, True), (False, False)],
    ids=["killed_before", "killed_after", "error"],
)
@pytest.mark.parametrize(("operation", "first"), CASES, ids=lambda value: getattr(value, "value", value))
def test_a_fault_at_any_effect_leaves_the_version_before_or_after(table, operation, first, after, killed) -> None:
    folder = table.store.local_path("")
    folder.mkdir()
    _prepared(table, operation, first)
    prepared = shutil.copytree(folder, folder.with_name("prepared"))
    before = None if first else table.live()
    faultless = FaultyStore(table.store, at=10_000, after=False, killed=True)
    _work(table, faultless, operation)
    assert faultless.effects > (8 if first else 12)
    for at in range(faultless.effects):
        shutil.rmtree(folder)
        shutil.copytree(prepared, folder)
        store = FaultyStore(table.store, at, after, killed)
        with suppress(Killed, StoreError):
            _work(table, store, operation)
        assert store.effects > at
        _check(table, before, at)


def _check(table, before: set[str] | None, at: int) -> None:
    timeline = table.timeline()
    version = timeline.latest_version()
    now = None if version is None else table.live()
    new = set() if now is None else now - (before or set())
    assert (now == before) or len(new) == 2, f"effect {at}: neither the version before nor the one after"
    assert now is None or now <= table.on_disk(), f"effect {at}: a live file is gone"

    recover(timeline)
    assert (None if timeline.latest_version() is None else table.live()) == now, f"effect {at}: recovery changed rows"
    assert list_pending(table.store) == [], f"effect {at}: state files are left"
    assert orphans(timeline) == [], f"effect {at}: orphans are left"

    if now is not None:
        published = catch_up(table.store, timeline)
        content = table.store.read(manifest_path(published))
        assert content == manifest_bytes(table.store.root_uri, timeline.snapshot()), f"effect {at}: wrong manifest"
        table.append()
        clean(table.timeline(), 1, 0, table.now_ms + 10)
        assert table.on_disk() == table.live(), f"effect {at}: files are left after cleaning"
    else:
        table.overwrite()
        assert table.on_disk() == table.live(), f"effect {at}: files are left after the first commit"


def test_the_fault_store_fails_at_the_effect_it_was_told(tmp_path) -> None:
    store = FaultyStore(LocalStore(tmp_path), at=1, after=True, killed=True)
    store.put("a", b"x")
    with pytest.raises(Killed):
        store.put("b", b"x")
    with pytest.raises(Killed):
        store.put("c", b"x")
    assert (store.exists("b"), store.exists("c")) == (True, False)
