"""The response of a run in run_results.json and on the terminal."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dbt.adapters.zlayout.adapter.response import ZlayoutAdapterResponse, response_of, with_clustering
from dbt.adapters.zlayout.layout.cluster_plan import ClusterPlan, LayoutState
from dbt.adapters.zlayout.spark.cluster.clustering import ClusterSummary
from dbt.adapters.zlayout.spark.commit.after_commit import CommitSummary


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


@pytest.mark.parametrize(
    ("operation", "counts", "files", "line"),
    [
        ("merge", (120, 880, 0), (3, 3, 100), "v7 +120 ~880 -0 rows, 3 of 100 files rewritten"),
        ("append", (1200, 0, 0), (1, 0, 9), "v7 +1,200 ~0 -0 rows in 1 new file"),
        ("merge", (0, 0, 5), (1, 1, 1), "v7 +0 ~0 -5 rows, 1 of 1 file rewritten"),
    ],
)
def test_the_line_of_a_change_names_version_rows_and_rewritten_files(
    operation: str, counts: tuple[int, int, int], files: tuple[int, int, int], line: str
) -> None:
    inserted, updated, deleted = counts
    added, removed, total = files
    changed = replace(
        commit(),
        version=7,
        operation=operation,
        rows_inserted=inserted,
        rows_updated=updated,
        rows_deleted=deleted,
        files_added=added,
        files_removed=removed,
        files_total=total,
    )
    response = response_of(changed)
    assert str(response) == line
    assert response.rows_affected == inserted + updated + deleted
    assert response.rows_inserted == inserted


@pytest.mark.parametrize(("logs", "told"), [(1, "1 new file"), (1200, "1,200 new files")])
def test_the_line_of_a_delta_commit_counts_its_files(logs: int, told: str) -> None:
    changed = replace(
        commit(files=logs),
        version=7,
        operation="merge",
        rows_inserted=5,
        rows_updated=5,
        files_removed=0,
        groups_touched=1,
        log_bytes=99,
    )
    response = response_of(changed)
    assert str(response) == f"v7 +5 ~5 -0 rows in {told}"
    assert (response.groups_touched, response.log_bytes) == (1, 99)


def test_the_line_names_a_compaction_after_the_write() -> None:
    figures = dict.fromkeys(("groups", "files_added", "files_removed", "bytes_read", "bytes_written"), 2)
    told = {"version": 8, **figures, "seconds": 0.5}
    changed = replace(commit(), operation="merge", files_removed=0, compacted={**told, "plans": ["1"]})
    response = response_of(changed)
    assert str(response).endswith(", 2 file groups compacted")
    assert response.compacted == told


def test_the_line_names_a_clustering_after_the_write() -> None:
    state = LayoutState(6, 1.5, 3.0)
    nothing = ClusterSummary.of_plan(ClusterPlan(3, (), state, state))
    done = nothing.plus(4, files_removed=6, files_added=2, groups_done=1)
    response = response_of(commit(), done)
    assert str(response) == "1,200,000 rows in 34 files, 6 files clustered into 2"
    assert response == with_clustering(response_of(commit()), done.to_dict())
    assert response.clustered is not None
    assert (response.clustered["version"], response.clustered["depth_before"]) == (4, 1.5)
    assert with_clustering(response_of(commit()), nothing.to_dict()) == response_of(commit())


def test_run_results_have_every_figure_of_the_commit() -> None:
    assert response_of(commit()).to_dict(omit_none=True) == {
        "_message": "1,200,000 rows in 34 files",
        "rows_affected": 1_200_000,
        "version": 3,
        "instant": "20240101000000000",
        "rows": 1_200_000,
        "rows_inserted": 1_200_000,
        "rows_updated": 0,
        "rows_deleted": 0,
        "files_added": 34,
        "files_removed": 2,
        "files_total": 0,
        "bytes_added": 1000,
        "bytes_removed": 10,
        "bytes_written": 1000,
        "data_passes": 2,
        "overlap_depth": 1.25,
        "seconds": {"write": 1.235},
    }


def test_the_response_of_a_plain_statement_is_ok() -> None:
    assert ZlayoutAdapterResponse(_message="OK").to_dict(omit_none=True) == {"_message": "OK"}
