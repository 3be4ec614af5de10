"""What a clustering prints of groups that stay as they are."""

from __future__ import annotations

import json
from dataclasses import replace

from dbt.adapters.zlayout.adapter.reports.clustering import cluster_line, cluster_report
from dbt.adapters.zlayout.layout.plans.cluster_plan import ClusterPlan, LayoutState, LeftGroup
from dbt.adapters.zlayout.spark.cluster.summary import ClusterSummary

STATE = LayoutState(6, 1.5, 3.0)
FAILED = LeftGroup("day=3", 2, "day=3/a.parquet is not there")
PLANNED = ClusterSummary.of_plan(ClusterPlan(3, (), STATE, STATE, groups_failed=(FAILED,)))


def test_groups_that_failed_are_told_with_the_reason() -> None:
    done = replace(PLANNED.plus(4, files_removed=4, files_added=2, groups_done=2), dry_run=False)
    first, last = cluster_line("main.events", done).splitlines()
    assert first.startswith("main.events: rewrote 4 files (0 bytes) as 2; depth 1.5")
    assert last == "  failed on a group of 2 files of day=3: day=3/a.parquet is not there"
    (told,) = json.loads(cluster_report({"main.events": done}, as_json=True))
    assert told["groups_failed"] == [{"partition": "day=3", "files": 2, "reason": "day=3/a.parquet is not there"}]


def test_a_plan_tells_what_it_could_not_read() -> None:
    assert "failed on a group of 2 files of day=3" in cluster_line("main.events", PLANNED)
