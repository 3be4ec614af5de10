"""The output of zlayout_cluster and zlayout_compact, as text or JSON, and the rows of the compaction lag test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dbt.adapters.zlayout.adapter.reports import json_text
from dbt.adapters.zlayout.config.clustering import ALONG_CURVE
from dbt.adapters.zlayout.quantities import counted, number_text, size_text
from dbt.adapters.zlayout.timeline.files.instant import instant_ms

if TYPE_CHECKING:
    from dbt.adapters.zlayout.layout.cluster_plan import LeftGroup
    from dbt.adapters.zlayout.spark.cluster.clustering import ClusterSummary
    from dbt.adapters.zlayout.spark.merge_on_read.compaction import CompactionSummary

_MOST_GROUPS = 20
_MS_PER_HOUR = 3_600_000


def cluster_line(table: str, done: ClusterSummary) -> str:
    """Returns what a clustering did or would do, in one line, plus a line for each group that was not rewritten.

    A pending plan that could not be read also gets a line.
    """
    problems = [f"  {problem}" for problem in done.problems]
    if not done.groups and not done.groups_dropped and not done.groups_failed:
        return "\n".join([f"{table}: nothing to gain; {_lookup(done)}{_left_out(done)}", *problems])
    if not done.files_removed:
        line = f"{table}: no files rewritten; {_lookup(done)}"
    else:
        files = f"{counted(done.files_removed, 'file')} → {done.files_added:,} ({size_text(done.bytes_rewritten)})"
        line = f"{table}: {'would rewrite ' if done.dry_run else ''}{files}{_arranged(done)}{_lookup_change(done)}"
    if not done.dry_run:
        line += f"; version {done.version}, {done.seconds:,.1f} s"
    if done.resampled:
        line += f"; new boundaries for {', '.join(done.resampled)}, because the data has outgrown the old ones"
    line += _left_out(done)
    return "\n".join([line, *_left_lines("dropped", done.groups_dropped), *failed_lines(done), *problems])


def failed_lines(done: ClusterSummary) -> list[str]:
    """Returns one line for each group that could not be read or written."""
    return _left_lines("failed on", done.groups_failed)


def cluster_report(done: Mapping[str, ClusterSummary], *, as_json: bool, scheduled: bool = False) -> str:
    """Returns what a clustering of some tables did or would do. A dry run also lists the groups of its plan."""
    if as_json:
        return json_text([{"table": table, "scheduled": scheduled, **each.to_dict()} for table, each in done.items()])
    lines = []
    for table, each in done.items():
        lines.append(cluster_line(table, each))
        if each.dry_run:
            lines += _groups(each)
        if scheduled and each.groups:
            lines.append("  planned; run zlayout_cluster with execute: true to execute it")
    return "\n".join(lines) or "No dbt-zlayout table to cluster."


def _left_lines(verb: str, groups: Sequence[LeftGroup]) -> list[str]:
    places = [f" in {each.partition}" if each.partition else "" for each in groups]
    return [
        f"  {verb} a group of {counted(each.files, 'file')}{place}: {each.reason}"
        for each, place in zip(groups, places, strict=True)
    ]


def _lookup(done: ClusterSummary) -> str:
    return f"a point lookup reads {number_text(done.files_read_after)} of {counted(done.after.files, 'file')}"


def _arranged(done: ClusterSummary) -> str:
    """Returns how the rows are arranged, unless all follow the curve."""
    found = list(dict.fromkeys(str(each.strategy) for each in done.groups if each.strategy.name != "curve"))
    if found and any(each.strategy.name == "curve" for each in done.groups):
        found.insert(0, str(ALONG_CURVE))
    return f", {' and '.join(found)}" if found else ""


def _lookup_change(done: ClusterSummary) -> str:
    if done.dry_run and any(each.strategy.name == "sort" for each in done.groups):
        return ""  # only the sort itself tells which values of the clustering keys end in which file
    after, before = counted(done.files_read_after, "file"), number_text(done.files_read_before)
    if done.dry_run:
        return f"; a point lookup would read {after} (now {before})"
    return f"; a point lookup now reads {after} (was {before})"


def _left_out(done: ClusterSummary) -> str:
    if not done.files_with_logs:
        return ""
    files = counted(done.files_with_logs, "file")
    return f"; skipped {files} in file groups with logs: run zlayout_compact first"


def _groups(plan: ClusterSummary) -> list[str]:
    lines = [
        f"  {each.reason:<8}{counted(len(each.paths), 'file'):>14} → {each.files_after:,}, {size_text(each.size_bytes)}"
        + (f", queries read {each.saves:.0%} less of them" if each.saves is not None else "")
        + (f", {each.partition}" if each.partition else "")
        for each in plan.groups[:_MOST_GROUPS]
    ]
    if len(plan.groups) > _MOST_GROUPS:
        lines.append(f"  … and {counted(len(plan.groups) - _MOST_GROUPS, 'more group')} (json: true shows all)")
    return lines


def compaction_report(done: Mapping[str, CompactionSummary], *, scheduled: bool, as_json: bool) -> str:
    """Returns what a compaction of some tables did or planned.

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
    """Returns the rows of the test zlayout_compaction_lag_at_most: one for each limit that is exceeded.

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
