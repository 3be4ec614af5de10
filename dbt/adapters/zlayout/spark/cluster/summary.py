"""The summary of a clustering: what it did, or what a dry run would do."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from dbt.adapters.zlayout.layout.plans.cluster_plan import ClusterPlan, LayoutState, LeftGroup, PlannedGroup


@dataclass(frozen=True)
class ClusterSummary:
    """What one clustering did. For a dry run, what it would do.

    Attributes:
        version: Current version of the table.
        before: Layout before the clustering.
        after: Layout after it, measured. For a dry run, predicted.
        predicted: Layout that the plan predicted.
        groups: The plan's groups.
        files_added: Number of files that the commits added.
        files_removed: Number of files that they removed.
        bytes_rewritten: Size of the replaced files.
        bytes_added: Size of the new files.
        rows: Number of rows in the new files.
        groups_done: Number of groups that were committed.
        groups_dropped: Groups that gave way because another writer changed their files.
        groups_failed: Groups whose rows could not be read or written, and why. They are unchanged.
        resampled: Keys with new boundaries, because the data had outgrown the stored ones.
        files_with_logs: Number of base and log files of a merge-on-read table that need a compaction first.
        dry_run: Whether nothing was written.
        seconds: Wall time.
        unfinished: Steps that failed after the commits and are left to the next writer, one sentence each.
        problems: One sentence for each pending plan that was deleted because it could not be read.
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
    problems: tuple[str, ...] = ()

    @classmethod
    def of_plan(cls, plan: ClusterPlan) -> ClusterSummary:
        """Returns the summary of a plan before anything is done."""
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
        """Returns the summary of what executing a plan would do."""
        return replace(
            cls.of_plan(plan),
            after=plan.after,
            files_added=plan.files_added,
            files_removed=plan.files_removed,
            bytes_rewritten=plan.bytes_rewritten,
        )

    @property
    def depth_before(self) -> float:
        """Overlap depth before the clustering."""
        return self.before.depth

    @property
    def depth_after(self) -> float:
        """Overlap depth after the clustering."""
        return self.after.depth

    @property
    def files_read_before(self) -> float:
        """Average number of files that a point query on a key read before the clustering."""
        return self.before.files_read

    @property
    def files_read_after(self) -> float:
        """Average number of files that a point query on a key reads after the clustering."""
        return self.after.files_read

    def plus(self, version: int, **figures: int) -> ClusterSummary:
        """Returns the summary with one more commit, whose figures are added by name."""
        return replace(self, version=version, **{name: getattr(self, name) + more for name, more in figures.items()})

    def __getitem__(self, name: str) -> Any:
        """Returns a figure by its name, as in `to_dict`."""
        return self.to_dict()[name]

    def to_dict(self) -> dict[str, Any]:
        """Returns the summary as plain values."""
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
            "problems": list(self.problems),
        }
