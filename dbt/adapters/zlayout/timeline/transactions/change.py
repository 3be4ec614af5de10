"""Changes: what a transaction wants to change, and the log entry that applies it to a given version."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dbt.adapters.zlayout.timeline.files.action import Action
from dbt.adapters.zlayout.timeline.files.data_files import IDENTITY, DataFiles
from dbt.adapters.zlayout.timeline.log.entry import Commit, IndexSlices
from dbt.adapters.zlayout.timeline.log.snapshot import Snapshot
from dbt.adapters.zlayout.timeline.transactions.conflicts import Kind, kind_of

# Slices that aggregate all files of a partition: adding a file to the partition makes them stale.
_WHOLE_PARTITION_SLICES = "partition_stats"

IndexPlan = IndexSlices | Callable[[Snapshot | None], IndexSlices]
KeyConflictCheck = Callable[[DataFiles], str | None]
LayoutPlan = Mapping[str, Any] | Callable[[Snapshot | None], Mapping[str, Any]]


@dataclass(frozen=True)
class Change:
    """What a transaction wants to change.

    An overwrite (or rollback) defines the whole table: `adds` are all its files, `removes` is ignored, and nothing that
    is None is inherited. Any other operation adds and removes files, and keeps the current value of what is None.

    Attributes:
        adds: Files to add.
        removes: Paths to remove.
        schema_json: The new schema.
        partition_by: The new partition columns.
        layout: The new layout, or a function of the version that the change follows.
        curve: The new curve model.
        properties: The new properties, or a function of those of the previous version.
        summary: Rows, files, bytes and seconds of the operation, for the history.
        key_conflict: Checks whether files that another rewrite added meanwhile hold rows that this change decides
            about, as a merge does about its keys; returns a description of the conflict, or None if there is none.
    """

    adds: DataFiles
    removes: tuple[str, ...] = ()
    schema_json: str | None = None
    partition_by: tuple[str, ...] | None = None
    layout: LayoutPlan | None = None
    curve: str | None = None
    properties: Mapping[str, Any] | Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None
    summary: Mapping[str, Any] = field(default_factory=dict)
    key_conflict: KeyConflictCheck | None = None


@dataclass(frozen=True)
class Signature:
    """Identifies the committing transaction: the fields of the log entry that do not depend on the change."""

    instant: str
    action: Action
    operation: str
    committed_ms: int


def entry_after(
    head: Snapshot | None, change: Change, signature: Signature, index: IndexPlan | None, base: Snapshot | None
) -> Commit:
    """Returns the log entry that applies a change to a version.

    Args:
        head: The version that the entry will follow.
        signature: The transaction.
        index: The live slices after the change, relative to `base`, or a function of the version that is followed; None
            leaves the index as it is.
        base: The version that the transaction started from.

    Raises:
        ValueError: The first version of a table has no schema.
    """
    whole = kind_of(signature.operation, bool(change.removes)) is Kind.OVERWRITE
    kept = None if whole else head
    schema_json: str | None = _pick(change.schema_json, kept.schema_json if kept else None)
    if schema_json is None:
        raise ValueError(f"{signature.operation}: the change must give the table's schema")
    adds, removes = _files(head, change, whole)
    partition_by = _pick(change.partition_by, kept.partition_by if kept else ())
    layout = change.layout(head) if callable(change.layout) else change.layout
    last_instant = max(signature.instant, head.last_instant) if head else signature.instant
    return Commit(
        version=head.version + 1 if head else 0,
        instant=signature.instant,
        action=signature.action,
        operation=signature.operation,
        # A clock that is behind must not date a version before its predecessor.
        committed_ms=max(signature.committed_ms, head.committed_ms) if head else signature.committed_ms,
        last_instant=last_instant,
        # Another writer may have changed the partition columns since the change was planned.
        adds=adds if len(adds) else DataFiles.empty(partition_by),
        removes=removes,
        schema_json=schema_json,
        partition_by=partition_by,
        layout=_pick(layout, kept.layout if kept else {}),
        curve=_pick(change.curve, kept.curve if kept else None),
        index=_index(index, head, base, whole, adds_files=len(adds) > 0),
        summary=change.summary,
        properties=_properties(change, kept.properties if kept else {}),
    )


def changes_shape(head: Snapshot | None, later: Commit | Change) -> bool:
    """Returns whether a version or change has another schema or partitioning than the version before it."""
    if head is None:
        return False
    return (later.schema_json is not None and later.schema_json != head.schema_json) or (
        later.partition_by is not None and later.partition_by != head.partition_by
    )


def _properties(change: Change, kept: Mapping[str, Any]) -> Mapping[str, Any]:
    wanted = change.properties
    return wanted(kept) if callable(wanted) else kept if wanted is None else wanted


def _pick(wanted: Any, kept: Any) -> Any:
    return kept if wanted is None else wanted


def _files(head: Snapshot | None, change: Change, whole: bool) -> tuple[DataFiles, tuple[str, ...]]:
    if not whole or head is None:
        return change.adds, change.removes
    # Only the difference is logged; a file that stays but has another size or time counts as new.
    if change.adds.partition_by == head.files.partition_by:
        stays = change.adds.filter(change.adds.same_as(head.files, IDENTITY))["path"]
        adds = change.adds.minus(stays)
        removes = head.files.minus(stays)["path"]
    else:
        adds, removes = change.adds, head.files["path"]
    return adds, tuple(removes.to_pylist())


def _index(
    index: IndexPlan | None, head: Snapshot | None, base: Snapshot | None, whole: bool, adds_files: bool
) -> IndexSlices:
    if callable(index):
        return index(head)
    if whole:
        return index or {}
    theirs: IndexSlices = head.index if head else {}
    if index is None:
        return {name: slices for name, slices in theirs.items() if not (adds_files and name == _WHOLE_PARTITION_SLICES)}
    before: IndexSlices = base.index if base else {}
    if head is None or (base is not None and head.version == base.version):
        return index
    # Others committed in the meantime: their slices stay and ours follow. Statistics of whole partitions match neither
    # state any more and are dropped; without them, readers look at each file of the partition.
    merged: dict[str, tuple[str, ...]] = {}
    for name in sorted({*theirs, *index} - {_WHOLE_PARTITION_SLICES}):
        dropped = set(before.get(name, ())) - set(index.get(name, ()))
        stay = tuple(path for path in theirs.get(name, ()) if path not in dropped)
        merged[name] = stay + tuple(path for path in index.get(name, ()) if path not in {*stay, *before.get(name, ())})
    return merged
