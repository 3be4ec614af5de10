"""Versions, snapshots, checkpoints and the hint to them."""

from __future__ import annotations

import pytest

from dbt.adapters.zlayout.errors import CorruptError, StoreError, TableNotFoundError
from dbt.adapters.zlayout.store.local import LocalStore
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.files.naming import (
    CHECKPOINT_FOLDER,
    CHECKPOINT_HINT,
    LOG_FOLDER,
    checkpoint_path,
    log_path,
)
from dbt.adapters.zlayout.timeline.timeline import Timeline
from dbt.adapters.zlayout.timeline.transactions.change import Change
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction


def test_a_folder_without_log_has_no_version(table) -> None:
    assert table.timeline().latest_version() is None
    assert table.timeline().history() == []
    with pytest.raises(TableNotFoundError, match="no committed version"):
        table.timeline().snapshot()


def test_versions_count_from_zero_and_instants_rise(table) -> None:
    commits = [table.overwrite(), table.append(), table.append()]
    assert [commit.version for commit in commits] == [0, 1, 2]
    assert commits[0].instant < commits[1].instant < commits[2].instant
    assert table.timeline().latest_version() == 2


def test_instants_rise_even_when_the_clock_goes_back(table) -> None:
    first = table.overwrite()
    table.now_ms -= 3_600_000
    assert table.append().instant > first.instant


def test_an_append_adds_and_an_overwrite_replaces(table) -> None:
    first, second = table.overwrite(2), table.append(3)
    assert table.live() == {*first.adds["path"].to_pylist(), *second.adds["path"].to_pylist()}
    third = table.overwrite(1)
    assert table.live() == set(third.adds["path"].to_pylist())
    assert len(third.removes) == 5


def test_an_old_version_is_read_as_it_was(table) -> None:
    commits = [table.overwrite(2), *(table.append() for _ in range(24))]
    for version in (0, 1, 9, 10, 11, 20, 24):
        snapshot = table.timeline().snapshot(version)
        assert snapshot.version == version
        assert snapshot.instant == commits[version].instant
        assert len(snapshot.files) == 2 + version
    with pytest.raises(TableNotFoundError, match="no version 25; the newest is 24"):
        table.timeline().snapshot(25)


def test_an_append_keeps_what_it_does_not_change(table) -> None:
    timeline = table.timeline()
    with Transaction.begin(timeline, Action.REPLACECOMMIT, Operation.OVERWRITE) as transaction:
        transaction.commit(
            Change(
                table.write(transaction),
                schema_json='{"type":"struct","fields":[]}',
                layout={"curve": "hilbert"},
                curve=".zlayout/curve/x.json",
                properties={"owner": "me"},
                summary={"rows": 1},
            ),
            index={"files": (".zlayout/index/files/x.base.parquet",)},
        )
    table.append()
    snapshot = table.timeline().snapshot()
    assert snapshot.schema_json == '{"type":"struct","fields":[]}'
    assert snapshot.layout == {"curve": "hilbert"}
    assert snapshot.curve == ".zlayout/curve/x.json"
    assert snapshot.properties == {"owner": "me"}
    assert snapshot.index == {"files": (".zlayout/index/files/x.base.parquet",)}
    table.overwrite()
    after = table.timeline().snapshot()
    assert (after.curve, after.properties, after.index) == (None, {}, {})


class _CountingStore(LocalStore):
    def __init__(self, root) -> None:
        super().__init__(root)
        self.listed: list[str] = []
        self.reads: list[str] = []

    def list(self, prefix, *, recursive=False):
        self.listed.append(prefix)
        return super().list(prefix, recursive=recursive)

    def read(self, path):
        self.reads.append(path)
        return super().read(path)


def test_opening_reads_a_checkpoint_and_what_came_after_it_and_lists_nothing(table) -> None:
    table.overwrite()
    for _ in range(33):
        table.append()
    store = _CountingStore(table.store.local_path(""))
    assert len(Timeline(store).snapshot().files) == 34
    assert store.listed == []
    assert [path for path in store.reads if path.startswith(LOG_FOLDER)] == [log_path(v) for v in (31, 32, 33)]


def test_a_snapshot_is_read_once_by_a_timeline_that_stays_open(table) -> None:
    table.overwrite()
    store = _CountingStore(table.store.local_path(""))
    timeline = Timeline(store)
    timeline.snapshot()
    store.reads.clear()
    timeline.snapshot()
    assert store.reads == []
    table.append()
    assert timeline.snapshot().version == 1
    assert store.reads == [log_path(1)]


def test_a_table_that_was_dropped_and_built_again_is_not_remembered(table) -> None:
    table.overwrite(3)
    timeline = table.timeline()
    assert len(timeline.snapshot().files) == 3
    table.store.delete_tree("")
    assert timeline.latest_version() is None
    table.overwrite(1)
    assert len(timeline.snapshot().files) == 1


@pytest.mark.parametrize(
    "damage",
    [
        lambda store: store.delete([CHECKPOINT_HINT]),
        lambda store: store.put(CHECKPOINT_HINT, b"\x00garbage"),
        lambda store: store.put(CHECKPOINT_HINT, b'{"version": 10}'),
        lambda store: store.put(CHECKPOINT_HINT, b'{"version": 4000}'),
        lambda store: store.put(CHECKPOINT_HINT, b'{"version": 3}'),
        lambda store: store.put(CHECKPOINT_HINT, b"[]"),
        lambda store: store.put(checkpoint_path(50), b"garbage"),
        lambda store: store.delete([checkpoint_path(50), checkpoint_path(40)]),
        lambda store: store.put(checkpoint_path(50), store.read(checkpoint_path(10))),
        lambda store: store.delete_tree(CHECKPOINT_FOLDER),
    ],
)
def test_damage_to_checkpoints_changes_nothing(table, damage) -> None:
    table.overwrite()
    for _ in range(54):
        table.append()
    whole = table.timeline().snapshot()
    damage(table.store)
    timeline = table.timeline()
    assert timeline.latest_version() == 54
    assert timeline.snapshot() == whole
    assert len(table.timeline().snapshot(45).files) == 46
    assert table.append().version == 55


def test_damage_to_the_log_names_the_file(table) -> None:
    table.overwrite()
    table.append()
    for garbage in (b"", b"{", b"[]", b'{"format_version": 99}', b'{"format_version": 1}'):
        table.store.put(log_path(1), garbage)
        with pytest.raises(CorruptError, match=log_path(1)):
            table.timeline().snapshot()


def test_a_gap_in_the_log_is_told(table) -> None:
    table.overwrite()
    table.append()
    table.append()
    table.store.delete([log_path(1)])
    with pytest.raises(CorruptError, match="gap"):
        table.timeline().snapshot(2)


def test_a_checkpoint_that_cannot_be_written_does_not_fail_the_commit(table, monkeypatch) -> None:
    def refuse(*_):
        raise StoreError("No space left on device")

    table.overwrite()
    for _ in range(9):
        table.append()
    put = table.store.put
    monkeypatch.setattr(
        table.store, "put", lambda path, data: refuse() if path.startswith(CHECKPOINT_FOLDER) else put(path, data)
    )
    assert table.append().version == 10
    assert len(table.timeline().snapshot().files) == 11


def test_the_history_is_newest_first(table) -> None:
    table.overwrite(2)
    table.append()
    table.overwrite(1)
    headers = table.timeline().history()
    assert [(h.version, h.operation, h.files_added, h.files_removed) for h in headers] == [
        (2, "overwrite", 1, 3),
        (1, "append", 1, 0),
        (0, "overwrite", 2, 0),
    ]
    assert [header.version for header in table.timeline().history(limit=2)] == [2, 1]
