"""Commit conflicts: the table of cases that decides whether a commit that lost the race may follow the winner."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.errors import ConflictError
from dbt.adapters.zlayout.timeline.files.action import Operation
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles
from dbt.adapters.zlayout.timeline.log.entry import Commit
from dbt.adapters.zlayout.timeline.log.file_slices import groups_with_logs
from dbt.adapters.zlayout.timeline.timeline import Timeline


class Kind(Enum):
    """What a commit does to the rows and files."""

    APPEND = "append"  # adds rows without reading any
    OVERWRITE = "overwrite"  # replaces the whole table
    REWRITE = "rewrite"  # replaces some files after reading their rows
    MAINTENANCE = "maintenance"  # moves the same rows to other files
    METADATA = "metadata"  # changes no data file


class Decision(Enum):
    """What the later commit does."""

    REBASE = "rebase"  # follows the winner
    DISJOINT = "disjoint"  # follows the winner unless it removed a file that this commit replaces
    FAIL = "fail"


_KINDS = {
    Operation.APPEND: Kind.APPEND,
    Operation.ADOPT: Kind.APPEND,
    Operation.OVERWRITE: Kind.OVERWRITE,
    Operation.ROLLBACK: Kind.OVERWRITE,
    Operation.CONVERSION: Kind.OVERWRITE,
    Operation.INSERT_OVERWRITE: Kind.REWRITE,
    Operation.MERGE: Kind.REWRITE,
    Operation.DELETE: Kind.REWRITE,
    Operation.CLUSTERING: Kind.MAINTENANCE,
    Operation.COMPACTION: Kind.MAINTENANCE,
    Operation.INDEXING: Kind.METADATA,
    Operation.RECOVERY: Kind.METADATA,
}

# (this commit, the winner) -> what this commit does.
DECISIONS = {
    (Kind.APPEND, Kind.APPEND): Decision.REBASE,
    (Kind.APPEND, Kind.OVERWRITE): Decision.REBASE,  # as if the append had started after the overwrite
    (Kind.APPEND, Kind.REWRITE): Decision.REBASE,
    (Kind.APPEND, Kind.MAINTENANCE): Decision.REBASE,
    (Kind.APPEND, Kind.METADATA): Decision.REBASE,
    (Kind.OVERWRITE, Kind.APPEND): Decision.FAIL,  # would drop rows that its query never saw
    (Kind.OVERWRITE, Kind.OVERWRITE): Decision.FAIL,
    (Kind.OVERWRITE, Kind.REWRITE): Decision.FAIL,
    (Kind.OVERWRITE, Kind.MAINTENANCE): Decision.REBASE,  # the rows are unchanged
    (Kind.OVERWRITE, Kind.METADATA): Decision.REBASE,
    (Kind.REWRITE, Kind.APPEND): Decision.REBASE,  # as if the append had started after the rewrite
    (Kind.REWRITE, Kind.OVERWRITE): Decision.FAIL,
    (Kind.REWRITE, Kind.REWRITE): Decision.DISJOINT,
    (Kind.REWRITE, Kind.MAINTENANCE): Decision.DISJOINT,
    (Kind.REWRITE, Kind.METADATA): Decision.REBASE,
    (Kind.MAINTENANCE, Kind.APPEND): Decision.REBASE,
    (Kind.MAINTENANCE, Kind.OVERWRITE): Decision.FAIL,
    (Kind.MAINTENANCE, Kind.REWRITE): Decision.DISJOINT,
    (Kind.MAINTENANCE, Kind.MAINTENANCE): Decision.DISJOINT,
    (Kind.MAINTENANCE, Kind.METADATA): Decision.REBASE,
    (Kind.METADATA, Kind.APPEND): Decision.REBASE,
    (Kind.METADATA, Kind.OVERWRITE): Decision.REBASE,
    (Kind.METADATA, Kind.REWRITE): Decision.REBASE,
    (Kind.METADATA, Kind.MAINTENANCE): Decision.REBASE,
    (Kind.METADATA, Kind.METADATA): Decision.REBASE,
}


@dataclass(frozen=True)
class Attempt:
    """A commit that wants to follow others.

    Attributes:
        kind: What it does.
        operation: What the user asked for.
        base_version: The version that it started from; None if there was no table.
        adds: Paths that it adds.
        removes: Paths that it removes.
        changes_shape: Whether it changes the schema or the partitioning.
        key_conflict: The check of files that another rewrite added, see `Change`; None for no check.
        log_groups: File groups to which it adds logs.
    """

    kind: Kind
    operation: str
    instant: str
    base_version: int | None
    adds: frozenset[str]
    removes: frozenset[str]
    changes_shape: bool
    key_conflict: Callable[[DataFiles], str | None] | None = None
    log_groups: frozenset[str] = frozenset()


def kind_of(operation: str, removes_files: bool) -> Kind:
    """Returns what an operation does; an unknown operation counts as an overwrite, the strictest kind."""
    try:
        kind = _KINDS[Operation(operation)]
    except ValueError:
        return Kind.OVERWRITE
    return Kind.REWRITE if kind is Kind.APPEND and removes_files else kind


def check_may_follow(attempt: Attempt, winner: Commit, winner_changes_shape: bool) -> None:
    """Checks whether a commit may follow a version that it did not know when it started.

    Raises:
        ConflictError: It may not; the message names the other instant and the next step.
    """
    theirs = kind_of(winner.operation, bool(winner.removes))
    if attempt.base_version is None:
        raise conflict(attempt, winner, "it created the table first")
    converts = winner.operation == Operation.CONVERSION
    if (winner_changes_shape or converts) and attempt.kind is not Kind.METADATA:
        raise conflict(attempt, winner, f"it changed the table's {'type' if converts else 'columns or partitions'}")
    if attempt.changes_shape and theirs in {Kind.APPEND, Kind.REWRITE}:
        raise conflict(attempt, winner, "it wrote rows with the columns that this commit changes")
    twice = sorted(attempt.adds.intersection(winner.adds["path"].to_pylist()) - attempt.removes) if attempt.adds else []
    if twice:
        raise conflict(attempt, winner, f"it added {twice[0]}{_more(twice)} too")
    decision = DECISIONS[attempt.kind, theirs]
    if decision is Decision.FAIL:
        raise conflict(attempt, winner, "it changed rows that this commit would overwrite without having read them")
    if decision is Decision.DISJOINT:
        gone = sorted(attempt.removes.intersection(winner.removes))
        if gone:
            raise conflict(attempt, winner, f"it replaced {gone[0]}{_more(gone)} too")
    # Files of an append count as added after this commit. Files of a rewrite, which read the table first, are checked.
    if theirs is Kind.REWRITE and attempt.key_conflict is not None and len(winner.adds):
        claimed = attempt.key_conflict(winner.adds)
        if claimed is not None:
            raise conflict(attempt, winner, claimed)


def _more(paths: list[str]) -> str:
    return f" and {len(paths) - 1} more files" if len(paths) > 1 else ""


def conflict(attempt: Attempt, winner: Commit, reason: str) -> ConflictError:
    """Returns the error of a commit that may not follow a version: names both, the reason and the next step."""
    began = "no version" if attempt.base_version is None else f"version {attempt.base_version}"
    if attempt.kind is Kind.MAINTENANCE:
        again = f"run the {attempt.operation} again if it is still useful"
        then = f"the table stays as the other writer left it; {again}"
    else:
        then = "nothing of this commit is visible; run the model again; it will start from the new version"
    return ConflictError(
        f"{attempt.operation} {attempt.instant} began at {began}, but {winner.operation} {winner.instant} "
        f"({winner.action.value}) made version {winner.version} in the meantime and {reason}",
        then,
    )


def check_logs_stay(timeline: Timeline, attempt: Attempt, winner: Commit) -> None:
    """Checks that no log is added to a file group whose rows a clustering moves to other groups.

    A compaction keeps rows in their group, so logs may come before and after it.

    Raises:
        ConflictError: One is: its rows and those that they replace would be in different groups.
    """
    if winner.operation == Operation.CLUSTERING and attempt.log_groups:
        if not attempt.log_groups.isdisjoint(_groups_of(timeline, winner.removes, winner.version - 1)):
            raise conflict(attempt, winner, "it rewrote files that this commit adds logs to")
    elif attempt.operation == Operation.CLUSTERING and attempt.base_version is not None:
        logged = groups_with_logs(winner.adds)
        if logged and not logged.isdisjoint(_groups_of(timeline, attempt.removes, attempt.base_version)):
            raise conflict(attempt, winner, "it added logs to files that this commit rewrites")


def _groups_of(timeline: Timeline, paths: Iterable[str], version: int) -> frozenset[str]:
    files = timeline.snapshot(version).files
    found = files.filter(pc.is_in(files["path"], value_set=pa.array(list(paths), pa.string())))
    return frozenset(found["group"].to_pylist())
