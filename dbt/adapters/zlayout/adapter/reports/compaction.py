"""The output of zlayout_compact, as text or JSON, and the rows of the compaction lag test."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dbt.adapters.zlayout.adapter.reports import json_text
from dbt.adapters.zlayout.quantities import counted, size_text
from dbt.adapters.zlayout.timeline.files.instant import instant_ms

if TYPE_CHECKING:
    from dbt.adapters.zlayout.spark.merge_on_read.compaction import CompactionSummary

_MS_PER_HOUR = 3_600_000


def compaction_report(done: Mapping[str, CompactionSummary], *, scheduled: bool, as_json: bool) -> str:
    """What a compaction of some tables did or planned.

    Args:
        done: The summaries by table.
        scheduled: Whether plans were only written, not executed.
        as_json: Whether to return JSON for programs.
    """
    if as_json:
        return json_text([{"table": table, "scheduled": scheduled, **each.to_dict()} for table, each in done.items()])
    line = _planned_line if scheduled else _done_line
    return "\n".join(line(table, each) for table, each in done.items()) or "No merge-on-read table to compact."


def compaction_problems(
    information: Mapping[str, Any], limits: Mapping[str, float], now_ms: int
) -> list[dict[str, Any]]:
    """The rows of the test zlayout_compaction_lag_at_most: one for each limit that is exceeded.

    Args:
        information: From ``ZTable.information()``. A table without logs has no rows.
        limits: From `lag_limits`.
        now_ms: The current time in milliseconds since the epoch.
    """
    oldest = information.get("oldest_log")
    found = {
        "commits": information.get("unmerged_commits", 0),
        "log_bytes": information.get("log_bytes", 0),
        "hours": 0.0 if oldest is None else round((now_ms - instant_ms(oldest)) / _MS_PER_HOUR, 4),
    }
    if information.get("pending_compactions"):
        advice = "execute the pending plans: dbt run-operation zlayout_compact with execute: true"
    else:
        advice = "compact the table: dbt run-operation zlayout_compact"
    return [
        {"measure": measure, "found": found[measure], "at_most": limit, "what_to_do": advice}
        for measure, limit in limits.items()
        if found[measure] > limit
    ]


def _planned_line(table: str, planned: CompactionSummary) -> str:
    if not planned.groups:
        return f"{table}: nothing to plan; all logs are merged or already in a plan"
    return (
        f"{table}: planned {', '.join(planned.plans)}: {counted(planned.groups, 'file group')}, "
        f"{counted(planned.files_removed, 'file')} ({size_text(planned.bytes_read)}); "
        "run zlayout_compact with execute: true to execute it"
    )


def _done_line(table: str, done: CompactionSummary) -> str:
    problems = [f"  {problem}" for problem in done.problems]
    if not done.plans:
        return "\n".join([f"{table}: nothing to merge", *problems])
    line = (
        f"{table}: merged the logs of {counted(done.groups, 'file group')}: {counted(done.files_removed, 'file')} "
        f"({size_text(done.bytes_read)}) → {done.files_added:,} ({size_text(done.bytes_written)}); "
        f"version {done.version}, {done.seconds:,.1f} s"
    )
    if done.groups_dropped:
        line += f"; skipped {counted(done.groups_dropped, 'file group')}, because another writer replaced the files"
    return "\n".join([line, *problems])
