"""Compaction plan: the file slices to merge, ordered by a strategy, within a budget."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.config.settings import CompactionStrategy
from dbt.adapters.zlayout.config.table_type import DELETE, INSTANT, OP, SEQ
from dbt.adapters.zlayout.errors import CorruptError
from dbt.adapters.zlayout.pruning.statistics.column_bounds import Statistics
from dbt.adapters.zlayout.timeline.files.data_files import DataFile, DataFiles
from dbt.adapters.zlayout.timeline.files.instant import is_instant
from dbt.adapters.zlayout.timeline.files.naming import data_paths
from dbt.adapters.zlayout.timeline.log.file_slices import FileSlice, Partition

_ORDER: Mapping[CompactionStrategy, Callable[[FileSlice], Any]] = {
    "log_size": lambda each: -each.log_bytes,
    "log_ratio": lambda each: -each.log_bytes / max(1, each.size_bytes - each.log_bytes),
    "commits": lambda each: -len(each.log_instants),
    "age": lambda each: each.oldest_record,
}


@dataclass(frozen=True)
class MergeThresholds:
    """Thresholds above which merging a slice pays off, for automatic compactions.

    Attributes:
        min_log_ratio: Log bytes per byte of base file from which on base and logs are merged into a new base file.
        max_logs: Below that ratio, a slice with more logs than this gets its logs merged into one.
        max_deleted_share: Deletes in logs per row of the base file above which base and logs are merged.
        deletes: Deletes in each log, by path; see `deletes_in_logs`.
        logs_before: The instant before which a log record is so old that its slice is merged in any case. None for no
            limit.
    """

    min_log_ratio: float
    max_logs: int
    max_deleted_share: float = 1.0
    deletes: Mapping[str, int] = field(default_factory=dict)
    logs_before: str | None = None

    def merge_pays(self, each: FileSlice) -> bool:
        """Returns whether a slice's base and logs should become a new base file."""
        if each.log_bytes >= self.min_log_ratio * (each.size_bytes - each.log_bytes):
            return True
        if self.logs_before is not None and each.oldest_record < self.logs_before:
            return True
        deleted = sum(self.deletes.get(log.path, 0) for log in each.logs)
        return each.base is not None and deleted > self.max_deleted_share * each.base.row_count


@dataclass(frozen=True)
class CompactionOperation:
    """The merge of one file slice: its base and logs become one file.

    Attributes:
        partition: Column and raw value, outermost first.
        base: The base file, or None.
        logs: Log files, oldest first.
        logs_only: Whether only the logs are merged into one, and the base stays.
        size_bytes: Size of all files that it reads.
        deletes: Files of kept deletes.
    """

    partition: Partition
    group: str
    base: str | None
    logs: tuple[str, ...]
    logs_only: bool
    size_bytes: int
    deletes: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that the merge replaces."""
        if self.logs_only:
            return self.logs
        return (*(() if self.base is None else (self.base,)), *self.changes)

    @property
    def changes(self) -> tuple[str, ...]:
        """Logs and kept deletes."""
        return (*self.logs, *self.deletes)

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values, for the plan on the timeline."""
        lists = {"logs": list(self.logs), "deletes": list(self.deletes)}
        return {**vars(self), "partition": [list(pair) for pair in self.partition], **lists}

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> CompactionOperation:
        """Reads what `to_dict` returned."""
        partition = tuple((str(name), value) for name, value in raw["partition"])
        return cls(
            **{**raw, "partition": partition, "logs": tuple(raw["logs"]), "deletes": tuple(raw.get("deletes", ()))}
        )


def is_due(unplanned: Sequence[FileSlice], every: int, logs_before: str | None = None) -> bool:
    """Returns whether a compaction is due: enough commits have been made, or a log record is old.

    Args:
        unplanned: Slices with logs that are not in a plan yet.
        every: Number of commits with logs in these slices.
        logs_before: The instant before which a log record is old; None if age does not count.
    """
    if not unplanned:
        return False
    if logs_before is not None and any(each.oldest_record < logs_before for each in unplanned):
        return True
    return len({instant for each in unplanned for instant in each.log_instants}) % every == 0


def oldest_records(files: DataFiles, statistics: Statistics) -> dict[str, str]:
    """Returns the instant of the oldest record of each log, by path; omits logs for which the index does not have it.

    Args:
        files: Files of a snapshot.
        statistics: Their statistics, with the column that holds the instants of log records.
    """
    bounds = statistics.column((INSTANT,))
    if bounds is None:
        return {}
    texts = zip(files["path"].to_pylist(), bounds.minimum.cast(pa.string()).to_pylist(), strict=True)
    return {path: text for path, text in texts if text is not None and is_instant(text)}


def deletes_in_logs(files: DataFiles, statistics: Statistics) -> dict[str, int]:
    """Returns the number of deletes in each log that holds some, by path.

    Earlier releases gave deletes a place, too, so of their logs only those without upserts count.

    Args:
        files: Files of a snapshot.
        statistics: Their statistics, with the columns `OP` and `SEQ`.
    """
    operations, places = statistics.column((OP,)), statistics.column((SEQ,))
    if operations is None:
        return {}
    least, greatest = (each.cast(pa.string()) for each in (operations.minimum, operations.maximum))
    has_deletes = pc.equal(least, DELETE)
    without_place = pa.scalar(0, pa.int64()) if places is None else places.null_count
    counts = pc.if_else(pc.equal(greatest, DELETE), files["row_count"], without_place)
    counts = pc.fill_null(pc.if_else(has_deletes, counts, 0), 0).to_pylist()
    return {path: count for path, count in zip(files["path"].to_pylist(), counts, strict=True) if count}


def choose(
    slices: Iterable[FileSlice],
    strategy: CompactionStrategy,
    *,
    taken: Collection[str] = (),
    max_bytes: int | None = None,
    logs_only: bool = False,
    thresholds: MergeThresholds | None = None,
) -> list[CompactionOperation]:
    """Returns the merges to run, most urgent first.

    Args:
        slices: Slices with logs.
        strategy: The order of the slices.
        taken: File groups that are already in a plan.
        max_bytes: Most bytes to read; the first slice is always taken. None for no limit.
        logs_only: Merges logs into one and keeps the base; slices with one log need nothing.
        thresholds: Takes only slices whose merge pays off; None for all.
    """
    free = sorted(
        (each for each in slices if each.group not in taken), key=lambda each: (_ORDER[strategy](each), each.group)
    )
    found: list[CompactionOperation] = []
    total = 0
    for each in free:
        wanted = _operation(each, logs_only, thresholds)
        if wanted is None or (found and max_bytes is not None and total + wanted.size_bytes > max_bytes):
            continue
        total += wanted.size_bytes
        found.append(wanted)
    return found


def _operation(each: FileSlice, logs_only: bool, thresholds: MergeThresholds | None) -> CompactionOperation | None:
    """Returns the merge of one slice; None if there is nothing to merge or it does not pay off."""
    if logs_only:
        return _logs_alone(each, each.logs)
    if thresholds is None or thresholds.merge_pays(each):
        return _whole(each)
    return _logs_alone(each, _without_large_logs(each.logs)) if len(each.logs) > thresholds.max_logs else None


def _without_large_logs(logs: Sequence[DataFile]) -> tuple[DataFile, ...]:
    """Returns the logs without those that are larger than all smaller ones together, oldest first.

    The large logs are results of earlier merges. Merging them again with each batch of small logs would rewrite the
    same rows over and over.
    """
    by_size = sorted(logs, key=lambda log: (log.size_bytes, log.path))
    smaller = list(itertools.accumulate((log.size_bytes for log in by_size), initial=0))
    while len(by_size) > 1 and by_size[-1].size_bytes > smaller[len(by_size) - 1]:
        by_size.pop()
    kept = {log.path for log in by_size}
    return tuple(log for log in logs if log.path in kept)


def _whole(each: FileSlice) -> CompactionOperation | None:
    if not each.logs:
        return None
    base = each.base.path if each.base is not None else None
    logs = tuple(log.path for log in each.logs)
    deletes = tuple(kept.path for kept in each.deletes)
    return CompactionOperation(each.partition, each.group, base, logs, False, each.size_bytes, deletes)


def _logs_alone(each: FileSlice, logs: Sequence[DataFile]) -> CompactionOperation | None:
    if len(logs) < 2:
        return None
    base = each.base.path if each.base is not None else None
    size = sum(log.size_bytes for log in logs)
    return CompactionOperation(
        each.partition, each.group, base, tuple(log.path for log in logs), logs_only=True, size_bytes=size
    )


def still_whole(
    operations: Iterable[CompactionOperation], live: Collection[str]
) -> tuple[list[CompactionOperation], list[CompactionOperation]]:
    """Splits operations into those whose files are all still live and those with files replaced since."""
    whole: list[CompactionOperation] = []
    stale: list[CompactionOperation] = []
    for each in operations:
        (whole if all(path in live for path in each.paths) else stale).append(each)
    return whole, stale


def groups_of(plans: Iterable[Mapping[str, Any]]) -> set[str]:
    """Returns the file groups in plans on the timeline."""
    return {each.group for plan in plans for each in operations_of(plan)}


def operations_of(plan: Mapping[str, Any]) -> list[CompactionOperation]:
    """Returns the operations of a plan on the timeline. A damaged plan has none."""
    try:
        found = [CompactionOperation.from_dict(raw) for raw in plan.get("operations", ())]
        for each in found:
            base = () if each.base is None else (each.base,)
            data_paths([*base, *each.changes], "a plan")
            hash(each)  # raises TypeError if a field holds a list or an object
    except (KeyError, TypeError, ValueError, CorruptError):
        return []
    return found if all(each.logs for each in found) else []
