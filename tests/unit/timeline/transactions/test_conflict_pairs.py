"""Each pair of operations, on two real transactions over a folder: the later one lands, or fails and says why."""

from __future__ import annotations

import itertools
import re

import pytest

from dbt.adapters.zlayout.errors import ConflictError
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles
from dbt.adapters.zlayout.timeline.transactions.change import Change
from dbt.adapters.zlayout.timeline.transactions.conflicts import check_may_follow
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction

ADD = {Operation.APPEND, Operation.ADOPT}
STATE_WHOLE = {Operation.OVERWRITE, Operation.ROLLBACK, Operation.CONVERSION}
REPLACE = {Operation.INSERT_OVERWRITE, Operation.MERGE, Operation.DELETE}
MAINTAIN = {Operation.CLUSTERING, Operation.COMPACTION}
TOUCH_NO_ROW = {Operation.INDEXING, Operation.RECOVERY}
PAIRS = list(itertools.product(Operation, Operation))


def lands(later: Operation, winner: Operation, same_file: bool) -> bool:
    """Whether a commit lands on top of one that it did not know: what users are promised, said apart from the code."""
    if later in TOUCH_NO_ROW or winner in TOUCH_NO_ROW:
        return True
    if winner is Operation.CONVERSION:
        return False
    if later in ADD:
        return True
    if winner in STATE_WHOLE:
        return False
    if later in STATE_WHOLE:
        return winner in MAINTAIN
    return winner in ADD or not same_file


def _begin(table, operation: Operation):
    return Transaction.begin(table.timeline(), Action.REPLACECOMMIT, operation)


def _change(table, transaction, operation: Operation, victim: str) -> Change:
    if operation in TOUCH_NO_ROW:
        return Change(DataFiles.empty())
    removes = (victim,) if operation in REPLACE | MAINTAIN else ()
    schema_json = '{"type":"struct","fields":[]}' if operation in STATE_WHOLE else None
    return Change(table.write(transaction), removes=removes, schema_json=schema_json)


def _unseen(table) -> None:
    # The later one looks as if it had begun after the winner had looked for work under way.
    table.store.delete([file.path for file in table.store.list(".zlayout/timeline")])


def _race(table, later: Operation, winner: Operation, same_file: bool):
    one, two, other = table.overwrite(3).adds["path"].to_pylist()
    second = _begin(table, later)
    _unseen(table)
    first = _begin(table, winner)
    won = first.commit(_change(table, first, winner, one if same_file else two))
    return second, _change(table, second, later, one), won, {"ours": one, "theirs": two, "other": other}


def test_the_groups_hold_every_operation_once() -> None:
    groups = [ADD, STATE_WHOLE, REPLACE, MAINTAIN, TOUCH_NO_ROW]
    assert set.union(*groups) == set(Operation)
    assert sum(len(group) for group in groups) == len(Operation)


@pytest.mark.parametrize("same_file", [False, True], ids=["other_files", "same_file"])
@pytest.mark.parametrize(("later", "winner"), PAIRS, ids=lambda operation: operation.value)
def test_the_later_of_two_operations(table, later, winner, same_file) -> None:
    second, change, won, files = _race(table, later, winner, same_file)
    if not lands(later, winner, same_file):
        with pytest.raises(ConflictError) as raised, second:
            second.commit(change)
        message = str(raised.value)
        assert f"{later.value} {second.instant} began at version 0" in message
        assert f"{winner.value} {won.instant}" in message
        assert "version 1" in message
        expected = f"run the {later.value} again" if later in MAINTAIN else "run the model again"
        assert expected in message
        if same_file and later in REPLACE | MAINTAIN and winner in REPLACE | MAINTAIN:
            assert files["ours"] in message
        assert table.timeline().latest_version() == 1
        assert table.live() <= table.on_disk()
        assert not [path for path in table.on_disk() if second.instant in path]
        return
    with second:
        entry = second.commit(change)
    assert entry.version == 2
    gone = set(won.removes)
    if later in REPLACE | MAINTAIN:
        gone.add(files["ours"])
    mine = set(change.adds["path"].to_pylist())
    theirs = set(won.adds["path"].to_pylist())
    start = set() if winner in STATE_WHOLE else set(files.values())
    assert table.live() == (mine if later in STATE_WHOLE else (start - gone) | mine | theirs)
    assert table.live() <= table.on_disk()


@pytest.mark.parametrize("winner", sorted(REPLACE))
@pytest.mark.parametrize("later", sorted(REPLACE))
def test_a_rewrite_that_claims_rows_of_the_winner_fails_and_says_which(table, later, winner) -> None:
    second, change, won, _ = _race(table, later, winner, same_file=False)
    seen: list[list[str]] = []

    def key_conflict(files: DataFiles) -> str:
        seen.append(files["path"].to_pylist())
        return "it wrote the key 7 too"

    with pytest.raises(ConflictError, match=f"{winner.value} {won.instant}.*it wrote the key 7 too"), second:
        second.commit(Change(change.adds, removes=change.removes, key_conflict=key_conflict))
    assert seen == [won.adds["path"].to_pylist()]


@pytest.mark.parametrize("winner", sorted({*ADD, *MAINTAIN}))
def test_claims_are_not_asked_about_rows_that_were_added_blindly_or_only_moved(table, winner) -> None:
    second, change, _, _ = _race(table, Operation.MERGE, winner, same_file=False)

    def key_conflict(files: DataFiles) -> str:
        pytest.fail(f"asked about {files['path'].to_pylist()}")

    assert second.commit(Change(change.adds, removes=change.removes, key_conflict=key_conflict)).version == 2


@pytest.mark.parametrize("operation", sorted({*STATE_WHOLE, *REPLACE}))
def test_maintenance_gives_way_to_user_writes_under_way(table, operation) -> None:
    (old,) = table.overwrite().adds["path"].to_pylist()
    user = _begin(table, operation)
    with (
        pytest.raises(ConflictError, match=f"gives way to {operation.value} {user.instant}"),
        _begin(table, Operation.CLUSTERING) as clustering,
    ):
        clustering.commit(_change(table, clustering, Operation.CLUSTERING, old))
    assert user.commit(_change(table, user, operation, old)).version == 1


@pytest.mark.parametrize("operation", sorted(REPLACE))
def test_a_user_write_that_begins_while_maintenance_commits_starts_from_its_version(table, operation) -> None:
    # Between the look for user writes and the entry: whoever begins there waits, and does not work on files that go.
    (old,) = table.overwrite().adds["path"].to_pylist()
    clustering = _begin(table, Operation.CLUSTERING)
    change = _change(table, clustering, Operation.CLUSTERING, old)
    pauses: list[float] = []

    def commit_meanwhile(seconds: float) -> None:
        pauses.append(seconds)
        clustering._timeline.append(entry, clustering.base)
        clustering._finish(entry)

    entry = _entry_at_the_moment_of_its_commit(clustering, change)
    user = Transaction.begin(table.timeline(sleep=commit_meanwhile), Action.COMMIT, operation)
    assert pauses
    assert user.base.version == 1
    (new,) = change.adds["path"].to_pylist()
    assert user.commit(_change(table, user, operation, new)).version == 2


def _entry_at_the_moment_of_its_commit(transaction, change: Change):
    # Stops the commit where it would create its entry, and leaves the transaction as it is then.
    class Now(BaseException):
        pass

    taken = []

    def append(entry, before):
        taken.append(entry)
        raise Now

    timeline = transaction._timeline
    real, timeline.append = timeline.append, append
    with pytest.raises(Now):
        transaction.commit(change)
    timeline.append = real
    return taken[0]


def test_the_tries_to_follow_are_bounded_and_pause_longer_each_time(table) -> None:
    table.overwrite()
    pauses: list[float] = []

    def append_again(seconds: float) -> None:
        pauses.append(seconds)
        table.append()

    late = Transaction.begin(table.timeline(sleep=append_again), Action.COMMIT, Operation.APPEND)
    files = table.write(late)
    table.append()
    with (
        pytest.raises(ConflictError, match=re.escape("20 times in a row; nothing of it is visible; run it again")),
        late,
    ):
        late.commit(Change(files))
    assert len(pauses) == 20
    # A pause is random up to a bound, 0.02 s at first, twice as long each time, 2 s at most.
    assert all(0 <= pause <= min(0.02 * 2**number, 2) for number, pause in enumerate(pauses))
    assert max(pauses[8:]) > 0.04
    assert late.instant not in " ".join(table.on_disk())


def test_an_attempt_is_judged_by_each_version_it_did_not_know(table, monkeypatch) -> None:
    table.overwrite()
    late = _begin(table, Operation.APPEND)
    for _ in range(3):
        table.append()
    judged: list[int] = []

    def watch(attempt, winner, changes_shape) -> None:
        judged.append(winner.version)
        check_may_follow(attempt, winner, changes_shape)

    monkeypatch.setattr("dbt.adapters.zlayout.timeline.transactions.transaction.check_may_follow", watch)
    assert late.commit(Change(table.write(late))).version == 4
    assert judged == [1, 2, 3]
