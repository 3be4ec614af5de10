"""The response of a run: its line in the terminal and its fields in run_results.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Dict, List, Optional  # noqa: UP035 # mashumaro reads the annotations at run time

from dbt.adapters.contracts.connection import AdapterResponse

from dbt.adapters.zlayout.quantities import counted

if TYPE_CHECKING:
    from dbt.adapters.zlayout.spark.cluster.clustering import ClusterSummary
    from dbt.adapters.zlayout.spark.commit.after_commit import CommitSummary

_WHOLE = ("create", "replace")
_CLUSTERED = (
    "version",
    "files_added",
    "files_removed",
    "bytes_rewritten",
    "depth_before",
    "depth_after",
    "files_read_before",
    "files_read_after",
    "seconds",
)
# Figures of a commit that a response has as they are.
_COPIED = (
    "version",
    "instant",
    "rows",
    "rows_updated",
    "rows_deleted",
    "files_added",
    "files_removed",
    "files_total",
    "bytes_added",
    "bytes_removed",
    "bytes_written",
    "data_passes",
    "overlap_depth",
)
_COMPACTED = ("version", "groups", "files_added", "files_removed", "bytes_read", "bytes_written", "seconds")


# ruff: noqa: UP006, UP045 # mashumaro, as above
@dataclass
class ZlayoutAdapterResponse(AdapterResponse):
    """The response of a statement. The fields below are set for tables that this adapter wrote.

    Attributes:
        seconds: Wall-clock seconds by phase.
        clustered: What a clustering after the write did, by the names in `_CLUSTERED`.
        compacted: What a compaction after the write did, by the names in `_COMPACTED`.

    The other fields are those of `CommitSummary`.
    """

    version: Optional[int] = None
    instant: Optional[str] = None
    rows: Optional[int] = None
    rows_inserted: Optional[int] = None
    rows_updated: Optional[int] = None
    rows_deleted: Optional[int] = None
    files_added: Optional[int] = None
    files_removed: Optional[int] = None
    files_total: Optional[int] = None
    bytes_added: Optional[int] = None
    bytes_removed: Optional[int] = None
    bytes_written: Optional[int] = None
    groups_touched: Optional[int] = None
    log_bytes: Optional[int] = None
    data_passes: Optional[int] = None
    overlap_depth: Optional[float] = None
    seconds: Optional[Dict[str, float]] = None
    clustered: Optional[Dict[str, float]] = None
    compacted: Optional[Dict[str, float]] = None
    unfinished: Optional[List[str]] = None


def response_of(commit: CommitSummary, clustered: ClusterSummary | None = None) -> ZlayoutAdapterResponse:
    """Returns the response for a commit and the clustering after it."""
    whole = commit.operation in _WHOLE
    changed = commit.rows_inserted + commit.rows_updated + commit.rows_deleted
    created = f"{counted(commit.rows, 'row')} in {counted(commit.files_added, 'file')}"
    message = created if whole else _change_message(commit)
    if commit.compacted:
        message += f", {counted(commit.compacted['groups'], 'file group')} compacted"
    response = ZlayoutAdapterResponse(
        _message=message + _left_over(commit.unfinished),
        rows_affected=commit.rows if whole else changed,
        **{name: getattr(commit, name) for name in _COPIED},
        rows_inserted=commit.rows if whole else commit.rows_inserted,
        groups_touched=commit.groups_touched or None,
        log_bytes=commit.log_bytes or None,
        seconds={phase: round(seconds, 3) for phase, seconds in commit.phases.items()},
        compacted={name: commit.compacted[name] for name in _COMPACTED} if commit.compacted else None,
        unfinished=list(commit.unfinished) or None,
    )
    return response if clustered is None else with_clustering(response, clustered.to_dict())


def with_clustering(response: ZlayoutAdapterResponse, done: Mapping[str, Any]) -> ZlayoutAdapterResponse:
    """Adds the clustering that followed a commit to the response of the run.

    Args:
        response: The response of the run.
        done: `ClusterSummary.to_dict`.
    """
    unfinished = [*(response.unfinished or ()), *done["unfinished"]] or None
    response = replace(response, _message=f"{response._message}{_left_over(done['unfinished'])}", unfinished=unfinished)
    if not done["groups_done"]:
        return response
    message = f"{response._message}, {counted(done['files_removed'], 'file')} clustered into {done['files_added']:,}"
    return replace(response, _message=message, clustered={name: done[name] for name in _CLUSTERED})


def _left_over(unfinished: Sequence[str]) -> str:
    return f", {counted(len(unfinished), 'step')} left to the next writer" if unfinished else ""


def _change_message(commit: CommitSummary) -> str:
    """Returns the version, the rows inserted (+), updated (~) and deleted (-), and how many files that took."""
    rows = f"+{commit.rows_inserted:,} ~{commit.rows_updated:,} -{commit.rows_deleted:,} rows"
    if not commit.files_removed:
        return f"v{commit.version} {rows} in {counted(commit.files_added, 'new file')}"
    return f"v{commit.version} {rows}, {commit.files_removed:,} of {counted(commit.files_total, 'file')} rewritten"
