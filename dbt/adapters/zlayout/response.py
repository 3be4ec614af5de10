"""What a run did, as run_results.json and the line on the terminal tell it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Dict, Optional  # noqa: UP035 # mashumaro reads the annotations at run time

from dbt.adapters.contracts.connection import AdapterResponse

if TYPE_CHECKING:
    from dbt.adapters.zlayout.spark.summary import CommitSummary


# ruff: noqa: UP006, UP045 # the same
@dataclass
class ZlayoutAdapterResponse(AdapterResponse):
    """Response of a statement; the fields below are set for tables that this adapter wrote.

    Attributes:
        version: Version of the table that the run made.
        instant: Its instant, 17 digits in UTC.
        rows: Rows of the table.
        files_added: Data files that the version brought.
        files_removed: Data files that it took away.
        bytes_added: Size of the files it brought.
        bytes_removed: Size of the files it took away.
        data_passes: How often the rows went through Spark.
        overlap_depth: Files that hold a point of the key space, on average; 1 is perfect.
        seconds: Wall-clock seconds by phase.
    """

    version: Optional[int] = None
    instant: Optional[str] = None
    rows: Optional[int] = None
    files_added: Optional[int] = None
    files_removed: Optional[int] = None
    bytes_added: Optional[int] = None
    bytes_removed: Optional[int] = None
    data_passes: Optional[int] = None
    overlap_depth: Optional[float] = None
    seconds: Optional[Dict[str, float]] = None


def response_of(commit: CommitSummary) -> ZlayoutAdapterResponse:
    """Shapes what a commit did into dbt's response."""
    return ZlayoutAdapterResponse(
        _message=f"{_counted(commit.rows, 'row')} in {_counted(commit.files_added, 'file')}",
        rows_affected=commit.rows,
        version=commit.version,
        instant=commit.instant,
        rows=commit.rows,
        files_added=commit.files_added,
        files_removed=commit.files_removed,
        bytes_added=commit.bytes_added,
        bytes_removed=commit.bytes_removed,
        data_passes=commit.data_passes,
        overlap_depth=commit.overlap_depth,
        seconds={phase: round(seconds, 3) for phase, seconds in commit.phases.items()},
    )


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
