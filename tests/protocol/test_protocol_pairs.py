"""Two writers: whatever the order of their effects, the end is that of one after the other."""

from __future__ import annotations

import itertools

import pytest
import row_writers
from effort import Effort, in_full
from exploration import Faults
from row_writers import Work
from scenes import BATCHES, KINDS, abandoned, exploration, founded, founded_by_batches
from simulated_store import World

from dbt.adapters.zlayout.spark.commit import commit_files
from dbt.adapters.zlayout.timeline.files.action import Operation
from dbt.adapters.zlayout.timeline.transactions import conflicts, recovery, transaction
from dbt.adapters.zlayout.timeline.transactions.conflicts import Decision, Kind
from dbt.adapters.zlayout.timeline.transactions.pending import Liveness

# Merges that meet in a file, in a key alone, and in nothing: the last two differ from the first only beside each other.
_VARIANTS = {"merge elsewhere", "merge apart"}
PAIRS = list(itertools.combinations_with_replacement(KINDS, 2))
DIFFERENT = [
    pair
    for pair in PAIRS
    if _VARIANTS.isdisjoint(pair) or pair in {("merge", "merge elsewhere"), ("merge", "merge apart")}
]
# One of each kind of meeting; of the others some schedules are walked at random, below, unless `-m ''` runs all.
REPRESENTATIVE = {
    ("append", "overwrite"),
    ("append", "clean"),
    ("append", "indexing"),
    ("append", "build"),
    ("clustering", "build"),
    ("insert_overwrite", "merge"),
    ("merge", "merge"),
    ("merge", "merge elsewhere"),
    ("merge", "rollback"),
    ("delete", "clustering"),
}


def _ids(pair: tuple[str, str]) -> str:
    return " and ".join(pair)


@pytest.mark.parametrize("pair", in_full(PAIRS, REPRESENTATIVE), ids=_ids)
def test_every_order_of_the_effects_of_two_writers_is_serial(effort: Effort, pair: tuple[str, str]) -> None:
    if not effort.full and pair not in DIFFERENT:
        pytest.skip("the same as another pair but for the rows; ZLAYOUT_PROTOCOL=full runs it")
    works = [KINDS[name] for name in pair]
    counts = effort.everything("two writers", exploration(founded(), works, Faults()))
    if all(work.operation in {Operation.APPEND, "clean", Operation.INDEXING} for work in works):
        assert set(counts.outcomes) == {("done", "done")}


@pytest.mark.parametrize("pair", PAIRS, ids=_ids)
def test_a_crash_of_one_of_two_writers_leaves_a_serial_order(effort: Effort, pair: tuple[str, str]) -> None:
    crashing = exploration(founded(), [KINDS[name] for name in pair], Faults(crashes=1))
    effort.everything_or_walks("two writers, one crash", crashing, effort.rng(pair), 4)


@pytest.mark.parametrize("crashes", [0, 1])
def test_an_index_is_built_file_by_file_beside_a_writer_and_a_clustering(effort: Effort, crashes: int) -> None:
    # What a build has committed stays, and no slice tells of a file what the file does not hold, see `judgement`.
    rng = effort.rng("build", crashes)
    for name in ("merge", "append", "delete", "rollback", "overwrite"):
        works = [KINDS[name], KINDS["clustering"], KINDS["build"]]
        built = exploration(founded_by_batches(), works, Faults(crashes=crashes))
        effort.walks("a build beside two others", built, rng, 200 if effort.full else 2)


def test_batches_of_two_spans_of_time_never_conflict(effort: Effort) -> None:
    counts = effort.everything("two batches", exploration(founded_by_batches(), BATCHES, Faults()))
    assert set(counts.outcomes) == {("done", "done")}
    crashing = exploration(founded_by_batches(), BATCHES, Faults(crashes=1))
    effort.everything_or_walks("two batches, one crash", crashing, effort.rng("batches"), 4)


def test_two_runs_of_one_batch_are_serial(effort: Effort) -> None:
    counts = effort.everything("one batch twice", exploration(founded_by_batches(), [BATCHES[0]] * 2, Faults()))
    assert ("conflict", "done") in counts.outcomes


@pytest.mark.parametrize("pair", [("append", "append"), ("append", "overwrite"), ("overwrite", "overwrite")], ids=_ids)
def test_of_two_writers_of_the_first_version_one_fails_and_leaves_nothing(
    effort: Effort, pair: tuple[str, str]
) -> None:
    first = exploration(World(), [KINDS[name] for name in pair], Faults(crashes=1 if effort.full else 0))
    counts = effort.everything("two first writers", first)
    assert ("done", "conflict") in counts.outcomes


@pytest.mark.parametrize("mutations", range(1, 6))
def test_two_writers_tidy_up_behind_a_third_whose_clock_was_ahead(effort: Effort, mutations: int) -> None:
    # Their clocks stand at the instant of the dead one: it must not be taken again while one of them still deletes.
    world = abandoned(founded(), KINDS["append"], mutations)
    tidying = exploration(world, [KINDS["append"], Work("recover", "")], Faults(), clock_step_ms=0)
    if effort.full or mutations in {1, 4}:
        effort.everything("a writer and a recovery behind a dead one", tidying)
    writing = exploration(world, [KINDS["append"], KINDS["merge"]], Faults(crashes=1), clock_step_ms=0)
    effort.walks("two writers behind a dead one", writing, effort.rng(mutations), 300 if effort.full else 3)


@pytest.mark.parametrize("crashes", [0, 1])
def test_two_clocks_that_show_the_same_give_two_instants(
    effort: Effort, crashes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction, "_BEGIN_TRIES", 12)
    same = exploration(founded(), [KINDS["append"], KINDS["merge"]], Faults(crashes=crashes), clock_step_ms=0)
    effort.walks("two equal clocks", same, effort.rng("clocks", crashes), 600 if effort.full else 10)


@pytest.mark.parametrize("pair", [("append", "merge"), ("merge", "overwrite"), ("clustering", "merge")], ids=_ids)
def test_a_writer_that_was_silent_for_an_hour_is_not_lost_and_not_believed(
    effort: Effort, pair: tuple[str, str]
) -> None:
    # On another machine a pause and a death look the same: either may be rolled back while it goes on.
    silent = exploration(founded(), [KINDS[name] for name in pair], Faults(crashes=1, hours=2), remote=True)
    effort.walks("two writers out of sight", silent, effort.rng(pair), 600 if effort.full else 8)


@pytest.mark.parametrize("pair", [("append", "merge"), ("append", "append"), ("merge", "merge")], ids=_ids)
def test_an_entry_that_a_dead_writer_sent_arrives_late_or_never(effort: Effort, pair: tuple[str, str]) -> None:
    cloud = exploration(founded(), [KINDS[name] for name in pair], Faults(crashes=1), cloud=True)
    effort.everything_or_walks("two writers in a cloud", cloud, effort.rng("cloud", pair), 6)


def test_an_overwrite_that_followed_an_append_unseen_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(conflicts.DECISIONS, (Kind.OVERWRITE, Kind.APPEND), Decision.REBASE)
    with pytest.raises(AssertionError, match="no order of"):
        exploration(founded(), [KINDS["append"], KINDS["overwrite"]], Faults(crashes=0), fresh=True).everything()


def test_a_merge_that_looked_at_no_claims_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Work, "_key_conflict", lambda self, store, added: None)
    with pytest.raises(AssertionError, match="no order of"):
        exploration(founded(), [KINDS["merge"], KINDS["merge elsewhere"]], Faults(), fresh=True).everything()


def test_a_build_whose_slices_were_forgotten_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_files.IndexUpdate, "_optional_after", lambda self, head: self._new_optional)
    with pytest.raises(AssertionError, match="forgotten by the index"):
        exploration(founded(), [KINDS["append"], KINDS["build"]], Faults(), fresh=True).everything()


def test_a_build_that_told_too_little_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_writers, "_keys_of", lambda store, path: [])
    with pytest.raises(AssertionError, match="does not have the keys of"):
        exploration(founded(), [KINDS["append"], KINDS["build"]], Faults(), fresh=True).everything()


def test_a_recovery_that_took_a_living_writer_for_dead_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "liveness", lambda pending, store, runtime: Liveness.GONE)
    with pytest.raises(AssertionError, match=r"which is not there|failed with"):
        exploration(founded(), [KINDS["append"], KINDS["append"]], Faults(), fresh=True).everything()
