"""Which version is meant, whether it is still there, and that no clean takes it from under a rollback."""

from __future__ import annotations

import pytest

from dbt.adapters.zlayout.errors import VersionNotFoundError
from dbt.adapters.zlayout.store.local import LocalStore
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.files.naming import CLEAN_FOLDER
from dbt.adapters.zlayout.timeline.retention.cleaning import clean
from dbt.adapters.zlayout.timeline.retention.orphans import orphans
from dbt.adapters.zlayout.timeline.retention.past import (
    CleanRecord,
    create_record,
    last_clean,
    missing_files,
    read_records,
    snapshot_of,
    version_at_time,
    version_of_instant,
)
from dbt.adapters.zlayout.timeline.transactions.change import Change
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction

HOUR_MS = 3_600_000


def _cleaned(table, **options):
    return clean(table.timeline(), 1, 0, table.now_ms + HOUR_MS, **options)


def _oldest_whole(table):
    """The oldest version whose files every clean left whole; 0 without a clean."""
    return last_clean(table.store).oldest_version


def test_a_version_is_found_by_its_instant_and_by_its_time(table) -> None:
    commits = [table.overwrite(), table.append(), table.append()]
    for commit in commits:
        assert version_of_instant(table.timeline(), commit.instant, "t") == commit.version
        assert version_at_time(table.timeline(), commit.committed_ms, "t") == commit.version
    assert version_at_time(table.timeline(), commits[2].committed_ms - 1, "t") == 1
    with pytest.raises(VersionNotFoundError, match="the first, version 0, is of 2023-11-14 22:13:20"):
        version_at_time(table.timeline(), commits[0].committed_ms - 1, "t")


def test_a_transaction_that_began_first_and_ended_last_is_found_by_its_instant(table) -> None:
    table.overwrite()
    with Transaction.begin(table.timeline(), Action.COMMIT, Operation.APPEND) as slow:
        table.append()
        table.append()
        slow.commit(Change(table.write(slow)))
    assert version_of_instant(table.timeline(), slow.instant, "t") == 3


def test_an_instant_that_is_none_is_told_with_the_one_before(table) -> None:
    table.overwrite()
    last = table.append()
    with pytest.raises(
        VersionNotFoundError, match=f"version 1 of {last.instant} is the last before it; versions 0 to 1"
    ):
        version_of_instant(table.timeline(), "2" + last.instant[1:][::-1].replace("0", "9"), "t")
    with pytest.raises(VersionNotFoundError, match="17 digits"):
        version_of_instant(table.timeline(), "0", "t")


def test_a_version_whose_files_were_cleaned_is_told_with_those_that_are_whole(table) -> None:
    for _ in range(4):
        table.overwrite()
    clean(table.timeline(), 2, 0, table.now_ms + HOUR_MS)
    assert snapshot_of(table.timeline(), 2, "t").version == 2
    with pytest.raises(VersionNotFoundError, match="t: the files of version 1 were cleaned; versions 2 to 3"):
        snapshot_of(table.timeline(), 1, "t")
    with pytest.raises(VersionNotFoundError, match="no version 4; versions 2 to 3 can be read"):
        snapshot_of(table.timeline(), 4, "t")


def test_versions_of_appends_stay_whole(table) -> None:
    table.overwrite()
    table.append()
    _cleaned(table)
    first = snapshot_of(table.timeline(), 0, "t")
    assert missing_files(table.timeline(), first.files) == []
    assert _oldest_whole(table) == 0


@pytest.mark.parametrize("count", [1, 300])
def test_files_that_are_gone_or_cut_are_missing(table, count) -> None:
    table.overwrite(count + 2)
    paths = table.timeline().snapshot().files["path"].to_pylist()
    table.store.delete([paths[0]])
    table.store.put(paths[1], b"x")
    assert missing_files(table.timeline(), table.timeline().snapshot().files) == paths[:2]


def test_a_version_that_a_rollback_turns_to_stays(table) -> None:
    for _ in range(3):
        table.overwrite()
    with Transaction.begin(table.timeline(), Action.ROLLBACK, Operation.ROLLBACK, reads_version=0) as rollback:
        assert _cleaned(table).files == 0
        target = snapshot_of(table.timeline(), 0, "t")
        rollback.commit(Change(target.files, schema_json='{"type":"struct","fields":[]}'))
    assert _cleaned(table).oldest_version == 3
    assert table.on_disk() == table.live() == set(target.files["path"].to_pylist())


class _StoreWithAMoment(LocalStore):
    """Calls back once, at the moment when a clean has written down what it is about to do."""

    def __init__(self, root, moment) -> None:
        super().__init__(root)
        self._moment = moment

    def create(self, path: str, data: bytes) -> None:
        if not path.startswith(CLEAN_FOLDER):
            return super().create(path, data)
        if self._before:
            self._once()
        super().create(path, data)
        if not self._before:
            self._once()
        return None

    _before = False

    def _once(self) -> None:
        moment, self._moment = self._moment, lambda: None
        moment()


@pytest.mark.parametrize("before_the_record", [True, False])
def test_a_clean_that_a_rollback_comes_in_between_keeps_its_version_or_the_rollback_sees_it(
    table, before_the_record
) -> None:
    for _ in range(3):
        table.overwrite()
    begun = []
    refused = []

    def begin_a_rollback() -> None:
        begun.append(Transaction.begin(table.timeline(), Action.ROLLBACK, Operation.ROLLBACK, reads_version=0))
        try:
            snapshot_of(table.timeline(), 0, "t")
        except VersionNotFoundError:
            refused.append(True)

    store = _StoreWithAMoment(table.store.local_path(""), begin_a_rollback)
    store._before = before_the_record
    result = clean(table.timeline(store), 1, 0, table.now_ms + HOUR_MS)
    assert result.files == 0
    assert refused == ([] if before_the_record else [True])
    begun[0].rollback()
    assert missing_files(table.timeline(), table.timeline().snapshot(0).files) == []
    assert _oldest_whole(table) == 0
    assert _cleaned(table).files == 2


def test_a_transaction_that_has_only_been_requested_keeps_what_it_may_begin_with(table) -> None:
    table.overwrite()
    transaction = Transaction.begin(table.timeline(), Action.COMMIT, Operation.APPEND)
    (requested,) = [file.path for file in table.store.list(".zlayout/timeline") if file.path.endswith("requested")]
    (inflight,) = [file.path for file in table.store.list(".zlayout/timeline") if file.path.endswith("inflight")]
    table.store.delete([inflight])
    table.overwrite()
    assert table.store.exists(requested)
    assert _cleaned(table).files == 0
    transaction.rollback()


def test_a_clean_that_died_is_finished_by_the_next_and_leaves_no_orphans(table) -> None:
    for _ in range(3):
        table.overwrite()
    create_record(table.store, CleanRecord(2, 0, table.now_ms), ())
    assert orphans(table.timeline()) == []
    with pytest.raises(VersionNotFoundError, match="cleaned"):
        snapshot_of(table.timeline(), 0, "t")
    assert _cleaned(table).files == 2
    assert table.on_disk() == table.live()


def test_a_clean_that_retains_more_does_not_bring_back_what_an_earlier_one_took(table) -> None:
    for _ in range(4):
        table.overwrite()
    clean(table.timeline(), 2, 0, table.now_ms + HOUR_MS)
    table.overwrite()
    result = clean(table.timeline(), 4, 0, table.now_ms + HOUR_MS)
    assert (result.files, result.oldest_version) == (0, 2)
    assert _oldest_whole(table) == 2


def test_two_records_of_one_moment_have_names_of_their_own(table) -> None:
    first = create_record(table.store, CleanRecord(1, 1, 5), ())
    second = create_record(table.store, CleanRecord(0, 0, 5), ())
    assert list(read_records(table.store)) == [first, second]
    assert _oldest_whole(table) == 1


def test_lost_files_of_this_format_go_when_they_are_old_and_others_stay(table) -> None:
    table.overwrite()
    lost = "0123456789abcdef_20200101000000000.parquet"
    for path in (lost, "part-0.parquet"):
        table.store.put(path, b"x")
    modified_ms = table.store.stat(lost).modified_ms
    timeline = table.timeline()
    assert clean(timeline, 1, 1, modified_ms + HOUR_MS, orphans=True).files == 0
    assert clean(timeline, 1, 1, modified_ms + HOUR_MS + 1, dry_run=True, orphans=True).paths == (lost,)
    assert clean(timeline, 1, 1, modified_ms + HOUR_MS + 1, orphans=True).paths == (lost,)
    assert [file.path for file in orphans(timeline)] == ["part-0.parquet"]


def test_files_that_a_transaction_writes_are_not_lost(table) -> None:
    table.overwrite()
    with Transaction.begin(table.timeline(), Action.COMMIT, Operation.APPEND) as transaction:
        files = table.write(transaction)
        later_ms = table.store.stat(files["path"][0].as_py()).modified_ms + HOUR_MS
        assert clean(table.timeline(), 1, 0, later_ms, orphans=True).files == 0
