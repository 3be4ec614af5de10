"""The output of the clustering run-operations: text for people, JSON for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dbt.adapters.zlayout.adapter.reports.output import json_text

if TYPE_CHECKING:
    from dbt.adapters.zlayout.layout.plans.cluster_plan import LeftGroup
    from dbt.adapters.zlayout.spark.cluster.summary import ClusterSummary

_MOST_GROUPS = 20
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


def cluster_line(table: str, done: ClusterSummary) -> str:
    """What a clustering did or would do, in one line, plus a line for each group that stayed as it was."""
    if not done.groups and not done.groups_dropped and not done.groups_failed:
        return f"{table}: nothing to gain; {_layout(done)}{_left_out(done)}"
    verb = "would rewrite" if done.dry_run else "rewrote"
    line = (
        f"{table}: {verb} {done.files_removed:,} files ({size_text(done.bytes_rewritten)}) as {done.files_added:,}; "
        f"depth {done.depth_before:g} → {done.depth_after:g}, "
        f"files read by a point query {done.files_read_before:g} → {done.files_read_after:g}"
    )
    if not done.dry_run:
        line += f"; version {done.version}, {done.seconds:g} s"
    if done.resampled:
        line += f"; new boundaries, since the data has outgrown those of {', '.join(done.resampled)}"
    line += _left_out(done)
    return "\n".join([line, *_stayed("dropped", done.groups_dropped), *failed_lines(done)])


def failed_lines(done: ClusterSummary) -> list[str]:
    """One line for each group that could not be read or written."""
    return _stayed("failed on", done.groups_failed)


def cluster_report(done: Mapping[str, ClusterSummary], *, as_json: bool) -> str:
    """What a clustering of some tables did or would do. A dry run also lists the groups of its plan."""
    if as_json:
        return json_text([{"table": table, **each.to_dict()} for table, each in done.items()])
    lines = []
    for table, each in done.items():
        lines.append(cluster_line(table, each))
        if each.dry_run:
            lines += _groups(each)
    return "\n".join(lines) or "No table of dbt-zlayout to cluster."


def size_text(size_bytes: float) -> str:
    """A size in a readable unit, such as '1.5 GiB'."""
    for unit in _UNITS:
        if size_bytes < 1024 or unit == _UNITS[-1]:
            break
        size_bytes /= 1024
    return f"{size_bytes:,.0f} {unit}" if unit == "bytes" else f"{size_bytes:,.1f} {unit}"


def _stayed(verb: str, groups: Sequence[LeftGroup]) -> list[str]:
    places = [f" of {each.partition}" if each.partition else "" for each in groups]
    return [
        f"  {verb} a group of {each.files:,} files{place}: {each.reason}"
        for each, place in zip(groups, places, strict=True)
    ]


def _layout(done: ClusterSummary) -> str:
    return (
        f"{done.after.files:,} files, depth {done.depth_after:g}, a point query reads {done.files_read_after:g} of them"
    )


def _left_out(done: ClusterSummary) -> str:
    if not done.files_with_logs:
        return ""
    return f"; left out {done.files_with_logs:,} files of groups that have logs: run zlayout_compact first"


def _groups(plan: ClusterSummary) -> list[str]:
    lines = [
        f"  {each.reason:<8}{len(each.paths):>8,} files → {each.files_after:,}, {size_text(each.size_bytes)}"
        + (f", saves {each.saves:.0%} of what queries read of them" if each.saves is not None else "")
        + (f", {each.partition}" if each.partition else "")
        for each in plan.groups[:_MOST_GROUPS]
    ]
    if len(plan.groups) > _MOST_GROUPS:
        lines.append(f"  … and {len(plan.groups) - _MOST_GROUPS:,} more groups (all with json: true)")
    return lines
