"""The output of the clustering run-operations: text for people, JSON for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dbt.adapters.zlayout.adapter.reports import json_text
from dbt.adapters.zlayout.quantities import counted, number_text, size_text

if TYPE_CHECKING:
    from dbt.adapters.zlayout.layout.plans.cluster_plan import LeftGroup
    from dbt.adapters.zlayout.spark.cluster.summary import ClusterSummary

_MOST_GROUPS = 20


def cluster_line(table: str, done: ClusterSummary) -> str:
    """What a clustering did or would do, in one line, plus a line for each group that stayed as it was.

    A pending plan that could not be read also gets a line.
    """
    problems = [f"  {problem}" for problem in done.problems]
    if not done.groups and not done.groups_dropped and not done.groups_failed:
        return "\n".join([f"{table}: nothing to gain; {_lookup(done)}{_left_out(done)}", *problems])
    if not done.files_removed:
        line = f"{table}: no files rewritten; {_lookup(done)}"
    else:
        files = f"{counted(done.files_removed, 'file')} → {done.files_added:,} ({size_text(done.bytes_rewritten)})"
        line = f"{table}: {'would rewrite ' if done.dry_run else ''}{files}; {_lookup_change(done)}"
    if not done.dry_run:
        line += f"; version {done.version}, {done.seconds:,.1f} s"
    if done.resampled:
        line += f"; new boundaries for {', '.join(done.resampled)}, because the data has outgrown the old ones"
    line += _left_out(done)
    return "\n".join([line, *_stayed("dropped", done.groups_dropped), *failed_lines(done), *problems])


def failed_lines(done: ClusterSummary) -> list[str]:
    """One line for each group that could not be read or written."""
    return _stayed("failed on", done.groups_failed)


def cluster_report(done: Mapping[str, ClusterSummary], *, as_json: bool, scheduled: bool = False) -> str:
    """What a clustering of some tables did or would do. A dry run also lists the groups of its plan."""
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


def _stayed(verb: str, groups: Sequence[LeftGroup]) -> list[str]:
    places = [f" in {each.partition}" if each.partition else "" for each in groups]
    return [
        f"  {verb} a group of {counted(each.files, 'file')}{place}: {each.reason}"
        for each, place in zip(groups, places, strict=True)
    ]


def _lookup(done: ClusterSummary) -> str:
    return f"a point lookup reads {number_text(done.files_read_after)} of {counted(done.after.files, 'file')}"


def _lookup_change(done: ClusterSummary) -> str:
    after, before = counted(done.files_read_after, "file"), number_text(done.files_read_before)
    if done.dry_run:
        return f"a point lookup would read {after} (now {before})"
    return f"a point lookup now reads {after} (was {before})"


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
