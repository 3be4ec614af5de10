"""What a clustering did, or would do."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from dbt.adapters.zlayout.layout.plans.cluster_plan import ClusterPlan, LayoutState, LeftGroup, PlannedGroup


@dataclass(frozen=True)
class ClusterSummary:
    """What one clustering did; of a dry run what it would do.

    Attributes:
        version: Of the table now.
        before: The layout before.
        after: The layout after, measured; of a dry run predicted.
        predicted: The layout that the plan predicted.
        groups: The plan's groups.
        files_added: Files that the versions brought.
        files_removed: Files that they took away.
        bytes_rewritten: Size of the files that were read and replaced.
        bytes_added: Size of the files in their place.
        rows: Rows in them.
        groups_done: Groups that were committed.
        groups_dropped: Groups whose files another writer changed, which won.
        groups_failed: Groups whose rows could not be read or written, and why; they stay as they are.
        resampled: Keys that got new boundaries, since the data had outgrown the stored ones.
        files_with_logs: Base and log files of a merge-on-read table that a compaction has to merge first.
        dry_run: Whether nothing was written.
        seconds: Wall time.
        unfinished: What failed after the commits and is left to the next writer, a sentence each.
    """

    version: int
    before: LayoutState
    after: LayoutState
    predicted: LayoutState
    groups: tuple[PlannedGroup, ...] = ()
    files_added: int = 0
    files_removed: int = 0
    bytes_rewritten: int = 0
    bytes_added: int = 0
    rows: int = 0
    groups_done: int = 0
    groups_dropped: tuple[LeftGroup, ...] = ()
    groups_failed: tuple[LeftGroup, ...] = ()
    resampled: tuple[str, ...] = ()
    files_with_logs: int = 0
    dry_run: bool = True
    seconds: float = 0.0
    unfinished: tuple[str, ...] = ()

    @classmethod
    def of_plan(cls, plan: ClusterPlan) -> ClusterSummary:
        """Before anything is done."""
        return cls(
            plan.version,
            plan.before,
            plan.before,
            plan.after,
            plan.groups,
            groups_failed=plan.groups_failed,
            resampled=plan.resampled,
            files_with_logs=plan.files_with_logs,
        )

    @classmethod
    def of_dry_run(cls, plan: ClusterPlan) -> ClusterSummary:
        """What a run would do."""
        return replace(
            cls.of_plan(plan),
            after=plan.after,
            files_added=plan.files_added,
            files_removed=plan.files_removed,
            bytes_rewritten=plan.bytes_rewritten,
        )

    @property
    def depth_before(self) -> float:
        """Overlap depth before."""
        return self.before.depth

    @property
    def depth_after(self) -> float:
        """Overlap depth after."""
        return self.after.depth

    @property
    def files_read_before(self) -> float:
        """Files that a point query on a key read on average, before."""
        return self.before.files_read

    @property
    def files_read_after(self) -> float:
        """The same after."""
        return self.after.files_read

    def plus(self, version: int, **figures: int) -> ClusterSummary:
        """With one more commit, whose figures are added to those of the same name."""
        return replace(self, version=version, **{name: getattr(self, name) + more for name, more in figures.items()})

    def __getitem__(self, name: str) -> Any:
        """A figure by its name, as in `to_dict`."""
        return self.to_dict()[name]

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            **vars(self),
            "before": vars(self.before),
            "after": vars(self.after),
            "predicted": vars(self.predicted),
            "depth_before": self.depth_before,
            "depth_after": self.depth_after,
            "files_read_before": self.files_read_before,
            "files_read_after": self.files_read_after,
            "groups": [each.to_dict() for each in self.groups],
            "groups_dropped": [vars(each) for each in self.groups_dropped],
            "groups_failed": [vars(each) for each in self.groups_failed],
            "resampled": list(self.resampled),
            "unfinished": list(self.unfinished),
        }
