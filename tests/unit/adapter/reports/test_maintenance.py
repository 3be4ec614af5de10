"""The output of clusterings and compactions."""

from __future__ import annotations

import json
from dataclasses import replace

from dbt.adapters.zlayout.adapter.reports.maintenance import cluster_line, cluster_report, compaction_report
from dbt.adapters.zlayout.config.clustering import ClusterStrategy
from dbt.adapters.zlayout.layout.cluster_plan import ClusterPlan, LayoutState, LeftGroup, PlannedGroup
from dbt.adapters.zlayout.spark.cluster.clustering import ClusterSummary
from dbt.adapters.zlayout.spark.merge_on_read.compaction import CompactionSummary

STATE = LayoutState(6, 1.5, 3.0)
FAILED = LeftGroup("day=3", 2, "day=3/a.parquet is not there")
PLANNED = ClusterSummary.of_plan(ClusterPlan(3, (), STATE, STATE, groups_failed=(FAILED,)))


def test_failed_groups_are_listed_with_the_reason() -> None:
    done = replace(PLANNED.plus(4, files_removed=4, files_added=2, groups_done=2), dry_run=False)
    first, last = cluster_line("main.events", done).splitlines()
    assert first == "main.events: 4 files → 2 (0 bytes); a point lookup now reads 3 files (was 3); version 4, 0.0 s"
    assert last == "  failed on a group of 2 files in day=3: day=3/a.parquet is not there"
    (told,) = json.loads(cluster_report({"main.events": done}, as_json=True))
    assert told["groups_failed"] == [{"partition": "day=3", "files": 2, "reason": "day=3/a.parquet is not there"}]


def test_a_plan_lists_groups_that_cannot_be_read() -> None:
    assert cluster_line("main.events", PLANNED).splitlines() == [
        "main.events: no files rewritten; a point lookup reads 3 of 6 files",
        "  failed on a group of 2 files in day=3: day=3/a.parquet is not there",
    ]


def test_a_plan_shows_what_a_lookup_would_read_and_each_group() -> None:
    before, after = LayoutState(6, 1.5714, 3.3125), LayoutState(5, 1.0, 2.9444)
    groups = (
        PlannedGroup("", ("a", "b"), 10, 18_022, "overlap", 1, 0.25),
        PlannedGroup("day=3", ("c",), 10, 1, "large", 2, None),
    )
    plan = ClusterPlan(3, groups, before, after)
    assert cluster_report({"main.events": ClusterSummary.of_dry_run(plan)}, as_json=False).splitlines() == [
        "main.events: would rewrite 3 files → 3 (17.6 KiB); a point lookup would read 2.9 files (now 3.3)",
        "  overlap        2 files → 1, 17.6 KiB, queries read 25% less of them",
        "  large           1 file → 2, 1 byte, day=3",
    ]


def test_the_line_says_how_rows_were_arranged_unless_all_follow_the_curve() -> None:
    strategies = [ClusterStrategy(), ClusterStrategy("binpack"), ClusterStrategy("sort", (("a",), ("b", "c")))]
    groups = [PlannedGroup("", ("a", "b"), 10, 18_022, "small", 1, None, each) for each in strategies]
    plan = ClusterPlan(3, tuple(groups[1:2]), STATE, STATE)
    lookup = "a point lookup would read 3 files (now 3)"
    line = cluster_line("t", ClusterSummary.of_dry_run(plan))
    assert line == f"t: would rewrite 2 files → 1 (17.6 KiB), packed; {lookup}"
    # Nobody knows yet what a sort does to the clustering keys.
    line = cluster_line("t", ClusterSummary.of_dry_run(replace(plan, groups=tuple(groups[2:]))))
    assert line == "t: would rewrite 2 files → 1 (17.6 KiB), sorted by a, b.c"
    line = cluster_line("t", ClusterSummary.of_dry_run(replace(plan, groups=tuple(groups[:2]))))
    assert line == f"t: would rewrite 4 files → 2 (35.2 KiB), along the curve and packed; {lookup}"


def test_a_plan_that_could_not_be_read_is_named() -> None:
    sentence = "plan 20240101000000000 was deleted"
    nothing = replace(ClusterSummary.of_plan(ClusterPlan(3, (), STATE, STATE)), dry_run=False, problems=(sentence,))
    assert cluster_line("main.events", nothing).splitlines()[1:] == [f"  {sentence}"]
    done = replace(nothing, groups_failed=(FAILED,))
    assert cluster_line("main.events", done).splitlines()[2:] == [f"  {sentence}"]
    nothing = CompactionSummary(3, problems=(sentence,))
    merged = replace(nothing, plans=("20240101000000001",))
    for summary in (nothing, merged):
        shown = compaction_report({"main.events": summary}, scheduled=False, as_json=False)
        assert shown.splitlines()[1:] == [f"  {sentence}"]


def test_a_table_without_a_better_layout_says_so() -> None:
    nothing = ClusterSummary.of_plan(ClusterPlan(3, (), STATE, STATE, files_with_logs=1))
    assert cluster_line("main.events", nothing) == (
        "main.events: nothing to gain; a point lookup reads 3 of 6 files; skipped 1 file in file groups with logs: run"
        " zlayout_compact first"
    )
