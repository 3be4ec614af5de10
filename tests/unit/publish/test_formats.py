"""Each published format: a function of the table's log, complete after any interruption, and trusted with nothing."""

from __future__ import annotations

import pytest
from published_folder import TABLE, DeltaFolder, DyingStore, IcebergFolder, Killed

from dbt.adapters.zlayout.config.table_config import PublishingConfig
from dbt.adapters.zlayout.errors import AlreadyExistsError, CorruptError, StoreError, UnsupportedError
from dbt.adapters.zlayout.publish.formats import publish_formats, what_lags
from dbt.adapters.zlayout.publish.publication import PublishedTable
from dbt.adapters.zlayout.store.local import LocalStore
from dbt.adapters.zlayout.timeline.timeline import Timeline

FOLDERS = {each.name: each for each in (DeltaFolder, IcebergFolder)}


@pytest.fixture(params=FOLDERS.values(), ids=FOLDERS)
def folder(request):
    return request.param


@pytest.fixture
def table(folder, tmp_path):
    return folder(LocalStore(tmp_path / "t"))


def test_a_table_is_published_from_its_newest_version_on(table) -> None:
    table.append()
    table.publish()
    assert table.published().version == 1
    assert table.live() == table.files()


@pytest.mark.parametrize("after", [False, True])
def test_a_publisher_that_dies_anywhere_is_followed_by_one_that_completes_its_work(folder, tmp_path, after) -> None:
    for lives in range(200):
        root = tmp_path / f"{lives}"
        table = folder(LocalStore(root))
        table.publish(0)
        states = []
        for number in range(table.commits_to_see_all):
            table.merge(*(sorted(table.files())[:1] if number % 2 else []))
            states.append(table.files())
            if not number:
                table.publish(0)
        dying = DyingStore(root, lives, after)
        ended = False
        try:
            table.format.catch_up(PublishedTable(dying, Timeline(dying)), TABLE, 0)
            ended = True
        except Killed:
            pass
        assert table.live() in states, lives
        table.append()
        table.publish(0)
        assert table.live() == table.files()
        assert table.published().version == table.timeline.snapshot().version
        if ended:
            break
    assert lives > 10


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
    table.format.catch_up(PublishedTable(table.store, slow), TABLE, 24)
    assert table.live() == table.files()
    assert table.published().version == 2
    assert not table.store.exists(table.path_of(3))


def test_a_version_that_cannot_be_created_nor_seen_is_an_error_and_no_endless_search(table, monkeypatch) -> None:
    def exists(path: str, data: bytes) -> None:
        raise AlreadyExistsError(path)

    table.publish()
    table.append()
    monkeypatch.setattr(table.store, "create", exists)
    with pytest.raises(AlreadyExistsError):
        table.publish()


def test_versions_that_the_log_lost_are_replaced(table) -> None:
    table.publish()
    [lost] = table.append()
    table.publish()
    table.store.delete([f".zlayout/timeline/log/{1:020d}.json"])
    table.timeline = Timeline(table.store)
    table.publish()
    assert table.live() == table.files()
    [kept] = table.append()
    table.publish()
    assert table.live() == table.files()
    assert (lost in table.live(), kept in table.live()) == (False, True)


@pytest.mark.parametrize(
    "content",
    [
        *("", "{}", "[]", "{", "\xff", '{"protocol":{}}', '{"KEY":{}}', '{"KEY":5}'),
        *(f'"zlayout.table_id":"{TABLE}"', f'{{"KEY":{{"zlayout.table_id":"{TABLE}"}}}}'),
    ],
)
def test_what_other_software_wrote_or_damaged_is_named_and_left_alone(table, content) -> None:
    table.publish()
    table.store.put(table.path_of(1), content.replace("KEY", table.key).encode("latin-1"))
    before = table.published_bytes()
    with pytest.raises((CorruptError, UnsupportedError), match=table.path_of(1)):
        table.publish()
    assert table.published_bytes() == before
    assert list(what_lags(table.store, TABLE, PublishingConfig((table.name,)), 0))


def test_a_withdrawal_removes_what_is_damaged_of_the_table(table) -> None:
    table.publish()
    table.store.put(table.path_of(1), b"{")
    table.withdraw()
    assert not table.store.list(table.folder)
    table.publish()
    assert table.live() == table.files()


def test_what_another_table_published_is_left_alone(table) -> None:
    table.publish()
    told = f"was written by another table; move the folder {table.folder} away, or remove '{table.name}' from publish"
    with pytest.raises(UnsupportedError, match=told):
        table.format.catch_up(PublishedTable(table.store, table.timeline), "other", 24)
    table.format.withdraw(table.store, "other")
    assert table.published() is not None


def test_a_format_that_fails_is_named_and_does_not_raise(table, monkeypatch) -> None:
    def fail(*_: object) -> None:
        raise StoreError("no space")

    monkeypatch.setattr(*table.writes, fail)
    failed = publish_formats(table.store, table.timeline, TABLE, PublishingConfig((table.name,)), 24)
    assert [(name, str(error)) for name, error in failed] == [(table.name, "no space")]
    assert list(what_lags(table.store, TABLE, PublishingConfig((table.name,)), 3)) == [
        f"readers of {table.name} see no version instead of version 3"
    ]
