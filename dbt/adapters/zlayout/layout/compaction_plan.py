"""Which file slices a compaction merges: the ones a strategy puts first, within a budget."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbt.adapters.zlayout.config.table_type import CompactionStrategy
from dbt.adapters.zlayout.timeline.file_slices import FileSlice, Partition

_FIRST: Mapping[CompactionStrategy, Callable[[FileSlice], Any]] = {
    "log_size": lambda each: -each.log_bytes,
    "log_ratio": lambda each: -each.log_bytes / max(1, each.size_bytes - each.log_bytes),
    "commits": lambda each: -len(each.log_instants),
    "age": lambda each: each.log_instants,
}


@dataclass(frozen=True)
class CompactionOperation:
    """One file slice whose logs and base become one file.

    Attributes:
        partition: Column and raw value, outermost first.
        group: The file group.
        base: The base file, or None.
        logs: Log files, oldest first.
        logs_only: Whether its logs become one log, and the base stays.
        size_bytes: Of all that it reads.
    """

    partition: Partition
    group: str
    base: str | None
    logs: tuple[str, ...]
    logs_only: bool
    size_bytes: int

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that it replaces."""
        return self.logs if self.base is None or self.logs_only else (self.base, *self.logs)

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for the plan on the timeline."""
        return {**vars(self), "partition": [list(pair) for pair in self.partition], "logs": list(self.logs)}

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> CompactionOperation:
        """From what `to_dict` gave."""
        partition = tuple((str(name), value) for name, value in told["partition"])
        return cls(**{**told, "partition": partition, "logs": tuple(told["logs"])})


def choose(
    slices: Iterable[FileSlice],
    strategy: CompactionStrategy,
    *,
    taken: Collection[str] = (),
    max_bytes: int | None = None,
    logs_only: bool = False,
) -> list[CompactionOperation]:
    """The slices to merge, most wanted first.

    Args:
        slices: Those with logs.
        strategy: What comes first.
        taken: File groups that a plan has already.
        max_bytes: Most bytes to read; the first slice is taken in any case. None for no limit.
        logs_only: Merge logs into one and leave the base: slices of one log are done already.
    """
    wanted = [each for each in slices if each.group not in taken and len(each.logs) > (1 if logs_only else 0)]
    found: list[CompactionOperation] = []
    total = 0
    for each in sorted(wanted, key=lambda each: (_FIRST[strategy](each), each.group)):
        size = each.log_bytes if logs_only else each.size_bytes
        if found and max_bytes is not None and total + size > max_bytes:
            continue
        total += size
        base = each.base.path if each.base is not None else None
        logs = tuple(log.path for log in each.logs)
        found.append(CompactionOperation(each.partition, each.group, base, logs, logs_only, size))
    return found


def still_whole(
    operations: Iterable[CompactionOperation], live: Collection[str]
) -> tuple[list[CompactionOperation], list[CompactionOperation]]:
    """Parts the operations whose files are all there from those that somebody has replaced since."""
    whole: list[CompactionOperation] = []
    stale: list[CompactionOperation] = []
    for each in operations:
        (whole if all(path in live for path in each.paths) else stale).append(each)
    return whole, stale


def groups_of(plans: Iterable[Mapping[str, Any]]) -> set[str]:
    """File groups that plans on the timeline have taken."""
    return {str(told["group"]) for plan in plans for told in _operations(plan)}


def operations_of(plan: Mapping[str, Any]) -> list[CompactionOperation]:
    """The operations of a plan on the timeline."""
    return [CompactionOperation.from_dict(told) for told in _operations(plan)]


def _operations(plan: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    found: Sequence[Mapping[str, Any]] = plan.get("operations", ())
    return found
