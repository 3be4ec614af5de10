"""Clusters and compacts tables for run-operations and post-hooks, and checks the compaction lag for tests."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from dbt.adapters.events.logging import AdapterLogger

from dbt.adapters.zlayout.adapter.materialize.model_settings import cluster_settings
from dbt.adapters.zlayout.adapter.node_lookup import Nodes, config_of_table, opened_table
from dbt.adapters.zlayout.adapter.operations.diagnostics import problem_line
from dbt.adapters.zlayout.adapter.operations.each_table import report_on_tables
from dbt.adapters.zlayout.adapter.operations.progress import progress_of
from dbt.adapters.zlayout.adapter.output import json_text
from dbt.adapters.zlayout.adapter.relation import ZlayoutRelation, whole_table
from dbt.adapters.zlayout.config.clustering import ALONG_CURVE
from dbt.adapters.zlayout.config.known_keys import settings_among, unknown_settings
from dbt.adapters.zlayout.config.scalars import as_number, parse_boolean, parse_size
from dbt.adapters.zlayout.errors import ConfigError
from dbt.adapters.zlayout.quantities import counted, number_text, size_text
from dbt.adapters.zlayout.spark.cluster.clustering import ClusterSummary
from dbt.adapters.zlayout.table.maintenance import problems_of_execution
from dbt.adapters.zlayout.table.ztable import ZTable
from dbt.adapters.zlayout.timeline.files.instant import HOUR_MS, instant_ms

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dbt.adapters.zlayout.spark.merge_on_read.compaction import CompactionSummary

_LOG = AdapterLogger("Zlayout")
# Settings of a model that would shape a new plan for clustering.
_OF_A_CLUSTERING = ("max_bytes", "rewrite_all")
_CLUSTER_SWITCHES = {"dry_run", "schedule", "execute", "pending"}
_SWITCHES = ("schedule", "execute", "logs_only")
_OF_A_COMPACTION = ("strategy", "max_bytes", "where", "logs_only")
_COMPACT_ARGUMENTS = {"plan", *_SWITCHES, *_OF_A_COMPACTION}
_LAG_TEST = "zlayout_compaction_lag_at_most"
_MOST_GROUPS = 20
_EXECUTE = "run this again with execute instead of schedule"


def cluster(
    session: SparkSession,
    relation: ZlayoutRelation | str,
    config: Mapping[str, Any] | None,
    nodes: Nodes,
    given: Mapping[str, Any],
) -> dict[str, Any]:
    """Clusters a table for a hook, and logs what was done."""
    table = opened_table(session, relation)
    config = config_of_table(table.name, nodes) if config is None else config
    done = _clustered(table, config, _with_switches(given))
    log = _LOG.warning if done.groups_failed or done.problems else _LOG.info
    log(cluster_line(table.name, done))
    return done.to_dict()


def cluster_report(
    session: SparkSession, model: str | None, nodes: Nodes, as_json: bool, given: Mapping[str, Any]
) -> str:
    """Clusters one table, or all managed tables of the project."""
    if given.get("plan") is not None and model is None:
        raise ConfigError(["plan: an instant belongs to one table; give its model too"], "zlayout_cluster")
    if given.get("sort_by") is not None and model is None:
        raise ConfigError(["sort_by: the columns belong to one table; give its model too"], "zlayout_cluster")
    wanted = _with_switches(given)

    def clustered(table: ZTable) -> ClusterSummary:
        return _clustered(table, config_of_table(table.name, nodes), wanted)

    executed = wanted["execute"] or wanted["pending"]
    text = partial(cluster_text, as_json=as_json, scheduled=wanted["schedule"], executed=executed)
    return report_on_tables(session, model, nodes, clustered, text)


def compaction_report(
    session: SparkSession, model: str | None, nodes: Nodes, as_json: bool, given: Mapping[str, Any]
) -> str:
    """Compacts one table, or all merge-on-read tables of the project."""
    keywords = compact_keywords(given, one_table=model is not None)

    def compacted(table: ZTable) -> CompactionSummary:
        return table.compact(progress=progress_of(table), **keywords)

    text = partial(compaction_text, scheduled=keywords["schedule"], as_json=as_json)
    return report_on_tables(session, model, nodes, compacted, text, lambda table: table.merges_on_read)


def compact_keywords(given: Mapping[str, Any], *, one_table: bool) -> dict[str, Any]:
    """Returns the keywords of ``ZTable.compact`` for the arguments of zlayout_compact.

    Args:
        given: The arguments by their names in the operation. None means not given.
        one_table: Whether the operation names a table.

    Raises:
        ConfigError: An argument is unknown, is not true or false, or does not belong to this call. The message names
            every such one.
    """
    present = {name: value for name, value in given.items() if value is not None}
    problems = unknown_settings(present, _COMPACT_ARGUMENTS)
    wanted = {**present, **{name: parse_boolean(name, present.get(name), problems) for name in _SWITCHES}}
    if "plan" in present:
        wanted["plan"] = str(present["plan"])  # YAML parses the digits of an instant as a number
        if not one_table:
            problems.append("plan: an instant belongs to one table; give its model too")
    if wanted["execute"] or "plan" in present:
        problems += problems_of_execution({name: wanted.get(name) for name in _OF_A_COMPACTION})
    if problems:
        raise ConfigError(problems, "zlayout_compact")
    return wanted


def compaction_problems(
    session: SparkSession, relation: ZlayoutRelation | str, commits: object, log_bytes: object, hours: object
) -> list[dict[str, Any]]:
    """Returns the rows of the test zlayout_compaction_lag_at_most: one for each limit that the table's logs exceed."""
    limits = lag_limits(commits, log_bytes, hours)
    table = opened_table(session, whole_table(relation, _LAG_TEST))
    found = exceeded_limits(table.information(), limits, time.time_ns() // 1_000_000)
    for problem in found:
        _LOG.info(problem_line(table.name, problem))
    return found


def lag_limits(commits: object = None, log_bytes: object = None, hours: object = None) -> dict[str, float]:
    """Returns the limits for a table's logs, by measure.

    Args:
        commits: The most delta commits.
        log_bytes: The largest size, such as '1gb'.
        hours: The highest age.

    Raises:
        ConfigError: No limit is given, or a limit is not a number or size. The message names every wrong one.
    """
    problems: list[str] = []
    limits: dict[str, float] = {}
    for name, value in (("commits", commits), ("hours", hours)):
        if value is not None:
            limits[name] = as_number(value)
            if not 0 <= limits[name] < math.inf:
                problems.append(f"{name}: {value!r} is not a number of at least 0")
    if log_bytes is not None:
        limits["log_bytes"] = 0 if str(log_bytes) == "0" else parse_size("log_bytes", log_bytes, problems) or 0
    if not limits:
        problems.append("give at least one limit: commits, log_bytes or hours")
    if problems:
        raise ConfigError(problems, _LAG_TEST)
    return limits


def _with_switches(given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments of zlayout_cluster with its switches as booleans, which Jinja may pass as text.

    Raises:
        ConfigError: A switch is not true or false.
    """
    problems: list[str] = []
    switches = {name: parse_boolean(name, given.get(name), problems) for name in sorted(_CLUSTER_SWITCHES)}
    if problems:
        raise ConfigError(problems, "zlayout_cluster")
    return {**given, **switches}


def _clustered(table: ZTable, config: Mapping[str, Any], given: Mapping[str, Any]) -> ClusterSummary:
    """Clusters a table with the settings of its model, and the arguments from `_with_switches`."""
    settings = cluster_settings(config, given)
    wanted = settings_among(("partition_by",), config).get("partition_by")
    if settings.pop("pending", False):
        _LOG.warning("zlayout_cluster: pending is deprecated; write execute: true")
        settings["execute"] = True
    if "plan" in settings:
        settings["plan"] = str(settings["plan"])  # YAML parses the digits of an instant as a number
    if settings.get("execute") or "plan" in settings:
        # The plan already decides what is rewritten, not the model's config.
        settings = {name: value for name, value in settings.items() if name not in _OF_A_CLUSTERING or name in given}
    elif (
        not settings.get("schedule")
        and wanted is not None
        and "partition_by" not in settings
        and table.other_folders(wanted) is not None
    ):
        if {"where", "max_bytes", "strategy"} & settings.keys():
            _LOG.info(
                f"{table.name}: the model's partition_by differs from the table's; the next run, or a clustering "
                "without where, max_bytes and strategy, will rewrite the table"
            )
        else:
            settings["partition_by"] = wanted
    return table.cluster(progress=progress_of(table), **settings)


def cluster_line(table: str, done: ClusterSummary, *, executed: bool = False) -> str:
    """Returns what a clustering did or would do, in one line, plus a line for each group that was not rewritten.

    A pending plan that could not be read also gets a line. ``executed`` says that it was to execute pending plans.
    """
    problems = [f"  {problem}" for problem in done.problems]
    if not done.groups and not done.groups_dropped and not done.groups_failed:
        if executed and not problems:
            return f"{table}: no plan is pending"
        return "\n".join([f"{table}: nothing to gain{_lookup(done)}{_left_out(done)}", *problems])
    if not done.files_removed:
        line = f"{table}: no files rewritten{_lookup(done)}"
    else:
        files = f"{counted(done.files_removed, 'file')} → {done.files_added:,} ({size_text(done.bytes_rewritten)})"
        line = f"{table}: {'would rewrite ' if done.dry_run else ''}{files}{_arranged(done)}{_lookup_change(done)}"
    if not done.dry_run:
        line += f"; version {done.version}, {done.seconds:,.1f} s"
    if done.resampled:
        line += f"; new boundaries for {', '.join(done.resampled)}, because the data has outgrown the old ones"
    line += _left_out(done)
    return "\n".join([line, *done.dropped_lines(), *done.failed_lines(), *problems])


def cluster_text(
    done: Mapping[str, ClusterSummary], *, as_json: bool, scheduled: bool = False, executed: bool = False
) -> str:
    """Returns what a clustering of some tables did or would do. A dry run also lists the groups of its plan."""
    if as_json:
        return json_text([{"table": table, "scheduled": scheduled, **each.to_dict()} for table, each in done.items()])
    lines = []
    for table, each in done.items():
        lines.append(cluster_line(table, each, executed=executed))
        if each.dry_run:
            lines += _groups(each)
        if scheduled and each.groups:
            lines.append(f"  planned; {_EXECUTE}")
    return "\n".join(lines) or "No dbt-zlayout table to cluster."


def _lookup(done: ClusterSummary) -> str:
    if not done.after.files:
        return ""
    return f"; a point lookup reads {number_text(done.files_read_after)} of {counted(done.after.files, 'file')}"


def _arranged(done: ClusterSummary) -> str:
    """Returns how the rows are arranged, unless all follow the curve."""
    found = list(dict.fromkeys(str(each.strategy) for each in done.groups if each.strategy.name != "curve"))
    if found and any(each.strategy.name == "curve" for each in done.groups):
        found.insert(0, str(ALONG_CURVE))
    return f", {' and '.join(found)}" if found else ""


def _lookup_change(done: ClusterSummary) -> str:
    if done.dry_run and any(each.strategy.name == "sort" for each in done.groups):
        return ""  # only the sort itself shows which values of the clustering keys end up in which file
    after, before = counted(done.files_read_after, "file"), number_text(done.files_read_before)
    if done.dry_run:
        return f"; a point lookup would read {after} (now {before})"
    return f"; a point lookup now reads {after} (was {before})"


def _left_out(done: ClusterSummary) -> str:
    if not done.files_with_logs:
        return ""
    files = counted(done.files_with_logs, "file")
    return f"; skipped {files} in file groups with logs: compact the table first"


def _saving(saves: float | None) -> str:
    return "" if saves is None else f", queries read {abs(saves):.0%} {'less' if saves >= 0 else 'more'}"


def _groups(plan: ClusterSummary) -> list[str]:
    lines = [
        f"  {each.reason:<8}{counted(len(each.paths), 'file'):>14} → {each.files_after:,}, {size_text(each.size_bytes)}"
        + _saving(each.saves)
        + (f", {each.partition}" if each.partition else "")
        for each in plan.groups[:_MOST_GROUPS]
    ]
    if len(plan.groups) > _MOST_GROUPS:
        lines.append(f"  … and {counted(len(plan.groups) - _MOST_GROUPS, 'more group')} (JSON shows all)")
    return lines


def compaction_text(done: Mapping[str, CompactionSummary], *, scheduled: bool, as_json: bool) -> str:
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


def exceeded_limits(information: Mapping[str, Any], limits: Mapping[str, float], now_ms: int) -> list[dict[str, Any]]:
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
        "hours": 0.0 if oldest is None else round((now_ms - instant_ms(oldest)) / HOUR_MS, 4),
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
        f"{_EXECUTE}"
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
