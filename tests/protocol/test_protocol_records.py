"""Two writers of a merge-on-read table, and a compaction or clustering beside them: the end is that of some order."""

from __future__ import annotations

import itertools

import pytest
from effort import Effort, in_full
from exploration import Faults
from record_writers import RecordWork
from scenes import RECORD_KINDS, exploration, founded_with_logs

from dbt.adapters.zlayout.timeline.transactions import conflicts, transaction
from dbt.adapters.zlayout.timeline.transactions.conflicts import Decision, Kind

# Others are those of tables without logs.
_OF_RECORDS = {"upsert", "upsert elsewhere", "delete", "compaction"}
PAIRS = [pair for pair in itertools.combinations_with_replacement(RECORD_KINDS, 2) if not _OF_RECORDS.isdisjoint(pair)]
# One of each kind of meeting; of the others some schedules are walked at random, below, unless `-m ''` runs all.
REPRESENTATIVE = {
    ("upsert", "upsert"),
    ("upsert", "compaction"),
    ("upsert", "clustering"),
    ("delete", "compaction"),
    ("compaction", "rollback"),
}


@pytest.mark.parametrize("pair", in_full(PAIRS, REPRESENTATIVE), ids=" and ".join)
def test_every_order_of_the_effects_of_two_writers_is_serial(effort: Effort, pair: tuple[str, str]) -> None:
    works = [RECORD_KINDS[name] for name in pair]
    counts = effort.everything("two writers of records", exploration(founded_with_logs(), works, Faults()))
    if "compaction" in pair and {"upsert", "upsert elsewhere", "delete"} & set(pair):
        # Neither is in the other's way.
        assert set(counts.outcomes) == {("done", "done")}


@pytest.mark.parametrize("pair", PAIRS, ids=" and ".join)
def test_a_crash_of_one_of_two_writers_leaves_a_serial_order(effort: Effort, pair: tuple[str, str]) -> None:
    crashing = exploration(founded_with_logs(), [RECORD_KINDS[name] for name in pair], Faults(crashes=1))
    effort.everything_or_walks("two writers of records, one crash", crashing, effort.rng(pair), 4)


@pytest.mark.parametrize("third", ["compaction", "clustering", "rollback"])
def test_two_writers_and_a_third_at_once(effort: Effort, third: str) -> None:
    works = [RECORD_KINDS[name] for name in ("upsert", "upsert elsewhere", third)]
    three = exploration(founded_with_logs(), works, Faults(crashes=1))
    effort.walks("three writers of records", three, effort.rng(third), 300 if effort.full else 20)


def test_a_log_that_came_to_rewritten_files_unseen_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transaction, "check_logs_stay", lambda *_: None)
    works = [RECORD_KINDS["upsert elsewhere"], RECORD_KINDS["clustering"]]
    with pytest.raises(AssertionError, match="changed by a compaction"):
        exploration(founded_with_logs(), works, Faults(), fresh=True).everything()


@pytest.mark.parametrize("kind", ["upsert", "upsert elsewhere"])
def test_an_upsert_that_looked_at_no_claims_would_be_found(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RecordWork, "_key_conflict", lambda self, store, added: None)
    with pytest.raises(AssertionError, match="no order of"):
        exploration(founded_with_logs(), [RECORD_KINDS[kind]] * 2, Faults(), fresh=True).everything()


def test_a_compaction_that_followed_a_rollback_unseen_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(conflicts.DECISIONS, (Kind.MAINTENANCE, Kind.OVERWRITE), Decision.REBASE)
    works = [RECORD_KINDS["compaction"], RECORD_KINDS["rollback"]]
    with pytest.raises(AssertionError, match="no order of"):
        exploration(founded_with_logs(), works, Faults(), fresh=True).everything()
