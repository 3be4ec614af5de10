"""What run_results.json and the terminal get."""

from __future__ import annotations

import pytest

from dbt.adapters.zlayout.response import ZlayoutAdapterResponse, response_of
from dbt.adapters.zlayout.spark.summary import CommitSummary


def commit(rows: int = 1_200_000, files: int = 34) -> CommitSummary:
    return CommitSummary(
        version=3,
        instant="20240101000000000",
        operation="replace",
        rows=rows,
        files_added=files,
        files_removed=2,
        bytes_added=1000,
        bytes_removed=10,
        data_passes=2,
        overlap_depth=1.25,
        phases={"write": 1.23456},
    )


@pytest.mark.parametrize(
    ("rows", "files", "line"),
    [(1_200_000, 34, "1,200,000 rows in 34 files"), (1, 1, "1 row in 1 file"), (0, 0, "0 rows in 0 files")],
)
def test_the_line_on_the_terminal_names_rows_and_files(rows: int, files: int, line: str) -> None:
    assert str(response_of(commit(rows, files))) == line


def test_run_results_get_every_number_of_the_commit() -> None:
    assert response_of(commit()).to_dict(omit_none=True) == {
        "_message": "1,200,000 rows in 34 files",
        "rows_affected": 1_200_000,
        "version": 3,
        "instant": "20240101000000000",
        "rows": 1_200_000,
        "files_added": 34,
        "files_removed": 2,
        "bytes_added": 1000,
        "bytes_removed": 10,
        "data_passes": 2,
        "overlap_depth": 1.25,
        "seconds": {"write": 1.235},
    }


def test_a_plain_statement_says_no_more_than_ok() -> None:
    assert ZlayoutAdapterResponse(_message="OK").to_dict(omit_none=True) == {"_message": "OK"}
