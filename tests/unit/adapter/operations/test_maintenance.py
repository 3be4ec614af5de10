"""What zlayout_cluster and zlayout_compact say, what zlayout_compact takes, and the test of the compaction lag."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from dbt.adapters.zlayout.adapter.operations.maintenance import (
    cluster_line,
    cluster_text,
    compact_keywords,
    compaction_text,
    exceeded_limits,
    lag_limits,
)
from dbt.adapters.zlayout.config.clustering import ClusterStrategy
from dbt.adapters.zlayout.errors import ConfigError
from dbt.adapters.zlayout.layout.cluster_plan import ClusterPlan, LayoutState, LeftGroup, PlannedGroup
from dbt.adapters.zlayout.spark.cluster.clustering import ClusterSummary
from dbt.adapters.zlayout.spark.merge_on_read.compaction import CompactionSummary
from dbt.adapters.zlayout.timeline.files.instant import instant_ms

_DONE = CompactionSummary(8, ("20240101000000000",), 2, 0, 2, 7, 3 << 20, 2 << 20, 1.5)
_OLDEST = "20240101000000000"
_LATER_MS = instant_ms(_OLDEST) + 90 * 60_000
_INFORMATION = {"unmerged_commits": 7, "log_bytes": 5000, "oldest_log": _OLDEST, "pending_compactions": []}
STATE = LayoutState(6, 1.5, 3.0)
FAILED = LeftGroup("day=3", 2, "day=3/a.parquet is not there")
PLANNED = ClusterSummary.of_plan(ClusterPlan(3, (), STATE, STATE, groups_failed=(FAILED,)))


@pytest.mark.parametrize(
    ("given", "keywords"),
    [
        ({}, {"schedule": False, "execute": False, "logs_only": False}),
        ({"schedule": "true", "plan": None}, {"schedule": True, "execute": False, "logs_only": False}),
        (
            {"plan": 20240101000000000},
            {"schedule": False, "execute": False, "logs_only": False, "plan": "20240101000000000"},
        ),
        (
            {"strategy": "age", "max_bytes": "1gb", "where": {"day": 1}, "logs_only": True},
            {
                "schedule": False,
                "execute": False,
                "logs_only": True,
                "strategy": "age",
                "max_bytes": "1gb",
                "where": {"day": 1},
            },
        ),
    ],
)
def test_arguments_of_the_operation_become_keywords_of_compact(given: dict[str, Any], keywords: dict[str, Any]) -> None:
    assert compact_keywords(given, one_table=True) == keywords


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"shedule": True}, "`shedule` is not a setting; allowed are execute, logs_only, max_bytes, plan"),
        ({"execute": True, "max_bytes": "1gb"}, "max_bytes: only applies to a new plan"),
        ({"plan": "20240101000000000", "logs_only": True}, "logs_only: only applies to a new plan"),
        ({"plan": "20240101000000000"}, "plan: an instant belongs to one table; give its model too"),
        ({"execute": "maybe"}, "execute: 'maybe' is not true or false"),
    ],
)
def test_the_error_names_arguments_that_do_not_go_together(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        compact_keywords(given, one_table=False)
    assert told in str(caught.value)


def test_the_report_has_a_line_for_each_table() -> None:
    done = {
        "s.a": _DONE,
        "s.b": CompactionSummary(3),
        "s.c": replace(_DONE, groups=1, groups_dropped=1),
    }
    dropped = "; skipped 1 file group, because another writer replaced the files"
    assert compaction_text(done, scheduled=False, as_json=False).splitlines() == [
        "s.a: merged the logs of 2 file groups: 7 files (3.0 MiB) → 2 (2.0 MiB); version 8, 1.5 s",
        "s.b: nothing to merge",
        f"s.c: merged the logs of 1 file group: 7 files (3.0 MiB) → 2 (2.0 MiB); version 8, 1.5 s{dropped}",
    ]
    assert compaction_text({}, scheduled=False, as_json=False) == "No merge-on-read table to compact."


def test_the_report_of_a_plan_says_how_to_execute_it() -> None:
    found = compaction_text({"s.a": _DONE, "s.b": CompactionSummary(3)}, scheduled=True, as_json=False)
    how = "run this again with execute instead of schedule"
    assert found.splitlines() == [
        f"s.a: planned 20240101000000000: 2 file groups, 7 files (3.0 MiB); {how}",
        "s.b: nothing to plan; all logs are merged or already in a plan",
    ]


def test_the_json_report_has_every_figure() -> None:
    (found,) = json.loads(compaction_text({"s.a": _DONE}, scheduled=True, as_json=True))
    assert found == {"table": "s.a", "scheduled": True, **_DONE.to_dict()}


@pytest.mark.parametrize(
    ("given", "limits"),
    [
        ({"commits": "5"}, {"commits": 5.0}),
        ({"log_bytes": "1gb", "hours": 0.5}, {"log_bytes": 1 << 30, "hours": 0.5}),
        ({"log_bytes": 0}, {"log_bytes": 0}),
    ],
)
def test_limits_are_numbers_and_sizes(given: dict[str, Any], limits: dict[str, float]) -> None:
    assert lag_limits(**given) == limits


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "give at least one limit: commits, log_bytes or hours"),
        ({"commits": "few"}, "commits: 'few' is not a number of at least 0"),
        ({"hours": -1}, "hours: -1 is not a number of at least 0"),
        ({"log_bytes": "much"}, "log_bytes: 'much' is not a size"),
    ],
)
def test_the_error_for_a_wrong_limit_names_the_test(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match="zlayout_compaction_lag_at_most") as caught:
        lag_limits(**given)
    assert told in str(caught.value)


def test_each_exceeded_limit_is_a_row() -> None:
    found = exceeded_limits(_INFORMATION, {"commits": 5, "log_bytes": 4999, "hours": 1}, _LATER_MS)
    assert [(row["measure"], row["found"], row["at_most"]) for row in found] == [
        ("commits", 7, 5),
        ("log_bytes", 5000, 4999),
        ("hours", 1.5, 1),
    ]
    assert all("compact the table" in row["what_to_do"] for row in found)


def test_a_table_at_the_limit_or_without_logs_passes() -> None:
    assert exceeded_limits(_INFORMATION, {"commits": 7, "log_bytes": 5000, "hours": 1.5}, _LATER_MS) == []
    limits = {"commits": 0, "log_bytes": 0, "hours": 0}
    assert exceeded_limits({"table_type": "copy_on_write"}, limits, _LATER_MS) == []
    assert exceeded_limits({**_INFORMATION, "unmerged_commits": 0, "log_bytes": 0, "oldest_log": None}, limits, 0) == []


def test_the_advice_is_to_execute_pending_plans_if_there_are_any() -> None:
    (row,) = exceeded_limits({**_INFORMATION, "pending_compactions": [_OLDEST]}, {"commits": 5}, _LATER_MS)
    assert "execute: true" in row["what_to_do"]


def test_failed_groups_are_listed_with_the_reason() -> None:
    done = replace(PLANNED.plus(4, files_removed=4, files_added=2, groups_done=2), dry_run=False)
    first, last = cluster_line("main.events", done).splitlines()
    assert first == "main.events: 4 files → 2 (0 bytes); a point lookup now reads 3 files (was 3); version 4, 0.0 s"
    assert last == "  failed on a group of 2 files in day=3: day=3/a.parquet is not there"
    (told,) = json.loads(cluster_text({"main.events": done}, as_json=True))
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
        PlannedGroup("day=4", ("d",), 10, 1, "all", 1, -0.12),
    )
    plan = ClusterPlan(4, groups, before, after)
    assert cluster_text({"main.events": ClusterSummary.of_dry_run(plan)}, as_json=False).splitlines() == [
        "main.events: would rewrite 4 files → 4 (17.6 KiB); a point lookup would read 2.9 files (now 3.3)",
        "  overlap        2 files → 1, 17.6 KiB, queries read 25% less",
        "  large           1 file → 2, 1 byte, day=3",
        "  all             1 file → 1, 1 byte, queries read 12% more, day=4",
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
        shown = compaction_text({"main.events": summary}, scheduled=False, as_json=False)
        assert shown.splitlines()[1:] == [f"  {sentence}"]


def test_a_table_without_a_better_layout_says_so() -> None:
    nothing = ClusterSummary.of_plan(ClusterPlan(3, (), STATE, STATE, files_with_logs=1))
    assert cluster_line("main.events", nothing) == (
        "main.events: nothing to gain; a point lookup reads 3 of 6 files; skipped 1 file in file groups with logs: "
        "compact the table first"
    )
