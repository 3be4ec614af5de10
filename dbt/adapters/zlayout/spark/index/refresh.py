"""Bringing an index to the live files, as an action on the timeline that gives way to every write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.errors import ConflictError
from dbt.adapters.zlayout.index.gaps import Gaps, gaps_of, news_in
from dbt.adapters.zlayout.index.statistics.tracked import TrackedColumn
from dbt.adapters.zlayout.pruning.statistics.validation import contiguous
from dbt.adapters.zlayout.spark.commit.index_update import IndexUpdate, Renewed
from dbt.adapters.zlayout.spark.files.listing import same_files, wait_a_tick
from dbt.adapters.zlayout.spark.index.collected_statistics import Collected, Examine, collect
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles
from dbt.adapters.zlayout.timeline.files.table_file import Level, read_table_file
from dbt.adapters.zlayout.timeline.log.snapshot import Snapshot
from dbt.adapters.zlayout.timeline.log.state import IndexSlices
from dbt.adapters.zlayout.timeline.timeline import Timeline
from dbt.adapters.zlayout.timeline.transactions.change import Change
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction

_TRIES = 5
_ROUNDS = 3


@dataclass(frozen=True)
class Goal:
    """What an index shall describe.

    Attributes:
        tracked: Columns with statistics, of a version.
        listed: The files of the folder, for a table that others write; None where the versions say what the files are.
        schema_json: The table's columns, for the same; None where the versions say it.
    """

    tracked: Callable[[Snapshot], tuple[TrackedColumn, ...]]
    listed: Callable[[], DataFiles] | None = None
    schema_json: str | None = None


@dataclass(frozen=True)
class Refreshed:
    """What a refresh did.

    Attributes:
        version: Of the table now.
        files_added: Files that the index did not list.
        files_removed: Files that it listed and that are gone.
        files_changed: Files whose size or time is another.
        files_rebuilt: Other files whose statistics were missing, damaged or not complete.
        data_files: Files of which more than the footer was read.
        repaired: Whether slices were damaged or missing, and all were written anew.
        unreadable: Files that are no Parquet files, or could not be read; queries read them always.
        missing: Files that a managed table lists and that are gone from its folder: queries that need them fail.
        files_dropped: Such files that were taken out of the table, with their rows.
    """

    version: int
    files_added: int = 0
    files_removed: int = 0
    files_changed: int = 0
    files_rebuilt: int = 0
    data_files: int = 0
    repaired: bool = False
    unreadable: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    files_dropped: int = 0


@dataclass(frozen=True)
class _Work:
    """What is to be done on top of one version."""

    snapshot: Snapshot
    added: DataFiles
    changed: DataFiles
    removed: tuple[str, ...]
    gaps: Gaps
    schema_json: str | None

    @property
    def is_none(self) -> bool:
        nothing_new = not (len(self.added) or len(self.changed) or self.removed)
        return nothing_new and self.gaps.is_none and self.schema_json is None

    @property
    def new_paths(self) -> pa.Array:
        return _paths(self.added.plus(self.changed))

    @property
    def outdated(self) -> tuple[str, ...]:
        """Files that the version lists as they are not, or not any more."""
        return (*self.removed, *self.changed["path"].to_pylist())

    @property
    def to_read(self) -> DataFiles:
        old = self.snapshot.files.minus(self.outdated)
        return self.added.plus(self.changed).plus(old.filter(pc.is_in(old["path"], value_set=self.gaps.paths)))

    @property
    def known(self) -> pa.Table:
        """What the index has of files that are as they were."""
        stored = self.gaps.known
        return stored.filter(pc.invert(pc.is_in(stored.column("path"), value_set=pa.array(self.outdated, pa.string()))))


@dataclass(frozen=True)
class Refresh:
    """One refresh of one table's index.

    Attributes:
        timeline: The table's timeline.
        goal: What the index shall describe.
        examine: Reads data where footers do not suffice.
    """

    timeline: Timeline
    goal: Goal
    examine: Examine

    def run(self) -> Refreshed:
        """Does what is to be done; nothing to do makes no version.

        Raises:
            ConflictError: Other writers were in the way several times in a row.
        """
        return self._run(_TRIES)

    def _run(self, tries: int) -> Refreshed:
        try:
            return self._once()
        except ConflictError:
            if tries == 1:
                raise
        return self._run(tries - 1)

    def _once(self) -> Refreshed:
        work = self._work(self.timeline.snapshot())
        if work.is_none:
            return Refreshed(work.snapshot.version)
        with Transaction.begin(self.timeline, Action.INDEXING, Operation.INDEXING) as transaction:
            self._check_whose()
            work, collected = self._caught_up()
            unchanged = collected.only(self._is_unchanged(collected.files))
            is_new = pc.is_in(unchanged.files["path"], value_set=work.new_paths)
            fresh, renewed = unchanged.only(is_new), unchanged.only(pc.invert(is_new))
            news = renewed.column_stats.filter(news_in(renewed.column_stats, work.known)).column("path")
            renewed = renewed.only(pc.is_in(renewed.files["path"], value_set=contiguous(news)))
            done = Refreshed(
                version=work.snapshot.version,
                files_added=len(work.added.filter(pc.is_in(work.added["path"], value_set=_paths(fresh.files)))),
                files_removed=len(work.removed),
                files_changed=len(work.changed),
                files_rebuilt=len(renewed.files),
                data_files=collected.data_files,
                repaired=work.gaps.damaged,
                unreadable=collected.unreadable,
            )
            rebuilds = len(renewed.files) > 0 or work.gaps.damaged
            if not (len(fresh.files) or work.outdated or rebuilds or work.schema_json):
                return done
            update = IndexUpdate(
                store=self.timeline.store,
                instant=transaction.instant,
                adds=fresh.files,
                column_stats=fresh.column_stats,
                removes=work.outdated,
                renewed=Renewed(renewed.files, renewed.column_stats) if rebuilds else None,
            )
            summary = {
                "rows": fresh.files.total_rows,
                "files_added": len(fresh.files),
                "files_removed": len(work.outdated),
                "files_rebuilt": len(renewed.files),
                "bytes_added": 0,
            }
            change = Change(fresh.files, work.outdated, schema_json=work.schema_json, summary=summary)
            commit = transaction.commit(change, index=partial(self._index, work.snapshot.version, update))
        return replace(done, version=commit.version)

    def _check_whose(self) -> None:
        table_file = read_table_file(self.timeline.store)
        if self.goal.listed is not None and table_file is not None and table_file.level is Level.MANAGED:
            raise ConflictError(f"{table_file.name} was taken under management meanwhile; open it again")

    def _index(self, looked_at: int, update: IndexUpdate, head: Snapshot | None) -> IndexSlices:
        # Others may refresh, too, or take the table over: what the folder holds must then be looked at again.
        if self.goal.listed is not None and head is not None and head.version != looked_at:
            raise ConflictError("another session refreshed the index at the same time; run it again")
        return update(head)

    def _caught_up(self) -> tuple[_Work, Collected]:
        """What is to be done on top of the newest version, and what was learned for it."""
        work = self._work(self.timeline.snapshot())
        collected = self._collected(work, work.to_read)
        for _ in range(_ROUNDS):
            if self.timeline.latest_version() == work.snapshot.version:
                break
            # The commit would follow those versions anyhow; their files, too, shall not wait for the next refresh.
            work = self._work(self.timeline.snapshot())
            wanted = work.to_read
            more = self._collected(work, wanted.filter(pc.invert(same_files(wanted, collected.files))))
            collected = collected.plus(more).only(same_files(collected.files.plus(more.files), wanted))
        return work, collected

    def _collected(self, work: _Work, files: DataFiles) -> Collected:
        if self.goal.listed is not None:
            wait_a_tick(self.timeline.store, files)
        return collect(self.timeline.store, files, self.goal.tracked(work.snapshot), self.examine, work.known)

    def _is_unchanged(self, files: DataFiles) -> pa.Array:
        """Which files are now what they were before they were read."""
        if self.goal.listed is None or not len(files):
            return pa.repeat(True, len(files))
        return same_files(files, self.goal.listed())

    def _work(self, snapshot: Snapshot) -> _Work:
        gaps = gaps_of(self.timeline.store, snapshot, self.goal.tracked(snapshot))
        files = snapshot.files
        if self.goal.listed is None:
            return _Work(snapshot, files[:0], files[:0], (), gaps, None)
        listed = self.goal.listed()
        is_new = pc.invert(pc.is_in(listed["path"], value_set=_paths(files)))
        is_other = pc.invert(pc.or_(is_new, same_files(listed, files)))
        gone = pc.invert(pc.is_in(files["path"], value_set=_paths(listed)))
        return _Work(
            snapshot=snapshot,
            added=listed.filter(is_new),
            changed=listed.filter(is_other),
            removed=tuple(files.filter(gone)["path"].to_pylist()),
            gaps=gaps,
            schema_json=self.goal.schema_json if self.goal.schema_json != snapshot.schema_json else None,
        )


def _paths(files: DataFiles) -> pa.Array:
    return contiguous(files["path"])
