"""Clusters, compacts and cleans a table, by the keywords that a user gives."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dbt.adapters.zlayout.config.clustering import CLUSTER_SETTINGS, parse_reclustering, parse_strategy
from dbt.adapters.zlayout.config.known_keys import unknown_settings
from dbt.adapters.zlayout.config.scalars import parse_size
from dbt.adapters.zlayout.config.settings import COMPACTION_STRATEGY, PARTITION_BY, RETAIN_HOURS, RETAIN_VERSIONS
from dbt.adapters.zlayout.config.table_config import PartitioningConfig
from dbt.adapters.zlayout.errors import ConfigError
from dbt.adapters.zlayout.predicate.literals import backquoted
from dbt.adapters.zlayout.spark.catalog.session_catalog import TableRef
from dbt.adapters.zlayout.spark.cluster.clustering import Clustering, ClusterSummary
from dbt.adapters.zlayout.spark.commit.after_commit import oldest_published
from dbt.adapters.zlayout.spark.history.time_travel import check_managed
from dbt.adapters.zlayout.spark.merge_on_read.compaction import Compaction, CompactionSummary
from dbt.adapters.zlayout.spark.read.session import newest_managed
from dbt.adapters.zlayout.spark.schema.table_schema import string_literal
from dbt.adapters.zlayout.spark.snapshot.table_layout import TableLayout, config_of
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot
from dbt.adapters.zlayout.timeline.retention.cleaning import CleanResult, clean, store_time_ms
from dbt.adapters.zlayout.timeline.transactions.recovery import recover

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SCHEDULE_OR_EXECUTE = "schedule: makes a new plan, but execute and plan run existing plans; leave them out"


def cluster(  # noqa: PLR0913 - the keywords of ``ZTable.cluster``
    spark: SparkSession,
    name: TableRef,
    opened: TableSnapshot,
    *,
    where: str | None,
    max_bytes: int | str | None,
    rewrite_all: bool,
    dry_run: bool,
    strategy: str | None,
    sort_by: Sequence[str] | str | None,
    partition_by: Sequence[str] | str | None,
    schedule: bool,
    execute: bool,
    plan: str | None,
    progress: Callable[[str], None] | None,
    settings: Mapping[str, Any],
) -> tuple[TableSnapshot, ClusterSummary]:
    """Clusters a table, or plans or schedules it. See ``ZTable.cluster``.

    Returns:
        The table, at its newest version if files were to be rewritten, and what was done.

    Raises:
        ConfigError: A setting is wrong. The message names every wrong one.
    """
    problems = _empty_condition(where)
    word = "execute"
    if "pending" in settings:
        word, old = "pending", {"pending": settings["pending"]}
        settings = {key: value for key, value in settings.items() if key != word}
        execute = execute or "execute" in _renamed_switches("cluster", old, {"pending": "execute"}, problems)
        max_bytes = None if execute else max_bytes  # `pending` has always ignored it
    execute = execute or plan is not None
    of_a_new_plan = (where, max_bytes, rewrite_all or None, dry_run or None, partition_by, strategy, sort_by)
    if execute and any(each is not None for each in of_a_new_plan):
        problems.append(
            f"{word}: where, max_bytes, rewrite_all, dry_run, partition_by, strategy and sort_by belong to a new "
            "plan; leave them out"
        )
    if schedule and (dry_run or partition_by is not None):
        problems.append("schedule: dry_run and partition_by cannot be scheduled; leave them out")
    if schedule and execute:
        problems.append(_SCHEDULE_OR_EXECUTE)
    problems += unknown_settings(settings, CLUSTER_SETTINGS)
    max_bytes = None if max_bytes is None else parse_size("max_bytes", max_bytes, problems)
    raw = {**settings, "cluster_max_bytes": max_bytes, "rewrite_all": rewrite_all}
    config = parse_reclustering(raw, problems)
    arranged = parse_strategy(strategy, sort_by, problems)
    if problems:
        raise ConfigError(problems, str(name))
    work = Clustering(spark, name, config, where, progress, arranged)
    if schedule:
        return opened, ClusterSummary.of_dry_run(work.schedule())
    folders = None if partition_by is None else other_folders(spark, name, partition_by)
    if execute:
        done = work.execute(plan)
    elif folders is not None:
        done = _repartition(work, folders, max_bytes, dry_run)
    else:
        done = ClusterSummary.of_dry_run(work.plan()) if dry_run else work.run()
    return (opened if dry_run else newest_managed(spark, name)), done


def _empty_condition(where: object) -> list[str]:
    """Returns the problem of a condition without any text. Ignored, it would stand for the whole table."""
    is_empty = isinstance(where, str) and not where.strip()
    return ["where: is empty; write a condition, such as \"day = '2024-01-01'\", or leave it out"] if is_empty else []


def _repartition(work: Clustering, folders: tuple[str, ...], max_bytes: object, dry_run: bool) -> ClusterSummary:
    if work.strategy.name != "curve":
        why = (
            f"strategy: '{work.strategy.name}' cannot change partition columns, which rewrites the whole table "
            "along its curve; cluster with partition_by first, then with the strategy"
        )
        raise ConfigError([why], str(work.name))
    if work.where is not None or max_bytes is not None:
        raise ConfigError(
            ["partition_by: other partition columns rewrite the whole table; leave out where and max_bytes"],
            str(work.name),
        )
    return work.repartition(folders, dry_run=dry_run)


def compact(  # noqa: PLR0913 - the keywords of ``ZTable.compact``
    spark: SparkSession,
    name: TableRef,
    opened: TableSnapshot,
    *,
    schedule: bool,
    execute: bool,
    plan: str | None,
    strategy: str | None,
    max_bytes: int | str | None,
    where: str | Mapping[str, object] | None,
    logs_only: bool,
    progress: Callable[[str], None] | None,
    deprecated: Mapping[str, bool],
) -> tuple[TableSnapshot, CompactionSummary]:
    """Compacts a table, or schedules it. See ``ZTable.compact``.

    Returns:
        The table, at its newest version if logs were to be merged, and what was done.

    Raises:
        ConfigError: A setting is wrong. The message names every wrong one.
    """
    problems = _empty_condition(where)
    chosen = None if strategy is None else COMPACTION_STRATEGY.read_value(strategy, problems)
    size = None if max_bytes is None else parse_size("max_bytes", max_bytes, problems)
    names = {"schedule_only": "schedule", "execute_only": "execute"}
    switches = _renamed_switches("compact", deprecated, names, problems)
    schedule, execute = schedule or "schedule" in switches, execute or "execute" in switches
    if execute or plan is not None:
        of_a_new_plan = {"strategy": strategy, "max_bytes": max_bytes, "where": where, "logs_only": logs_only}
        problems += problems_of_execution(of_a_new_plan)
    if schedule and (execute or plan is not None):
        problems.append(_SCHEDULE_OR_EXECUTE)
    condition = _compaction_condition(where, problems)
    if problems:
        raise ConfigError(problems, str(name))
    work = Compaction(spark, name, chosen, size, condition, logs_only, progress)
    if schedule:
        return opened, work.schedule()
    done = work.execute(plan) if execute or plan is not None else work.run()
    return newest_managed(spark, name), done


def problems_of_execution(of_a_new_plan: Mapping[str, object]) -> list[str]:
    """Returns a problem for each argument of a new compaction plan that is given although a call executes others."""
    return [
        f"{name}: only applies to a new plan, and execute and plan run existing plans; leave it out"
        for name, value in of_a_new_plan.items()
        if value not in (None, False)
    ]


def _compaction_condition(where: object, problems: list[str]) -> str | None:
    """Returns the condition of a compaction as SQL, also for its deprecated form: partition values by column."""
    if where is None or isinstance(where, str):
        return where
    if not isinstance(where, Mapping):
        problems.append(f"where: {where!r} is not a condition; write one, such as \"day = '2024-01-01'\"")
        return None
    warnings.warn("where: write a condition, such as \"day = '2024-01-01'\"", DeprecationWarning, stacklevel=4)
    terms = [
        f"{backquoted(name)} is null" if value is None else f"{backquoted(name)} = {string_literal(str(value))}"
        for name, value in where.items()
    ]
    return " and ".join(terms) or None


def _renamed_switches(
    method: str, given: Mapping[str, object], names: Mapping[str, str], problems: list[str]
) -> tuple[str, ...]:
    """Returns the current names of the deprecated switches that are on.

    Args:
        method: The method of ``ZTable`` that was called, for warnings.
        given: The switches by their deprecated names.
        names: Current name by deprecated name.
        problems: Receives a sentence for each unknown name.
    """
    problems += unknown_settings({name: value for name, value in given.items() if name not in names}, names)
    for name in given.keys() & names.keys():
        warnings.warn(f"{method}: {name} is now called {names[name]}", DeprecationWarning, stacklevel=4)
    return tuple(names[name] for name, value in given.items() if value and name in names)


def other_folders(spark: SparkSession, name: TableRef, partition_by: Sequence[str] | str) -> tuple[str, ...] | None:
    """Returns the partition columns as the table spells them, or None if the table is already partitioned by them.

    Raises:
        ConfigError: The table cannot be partitioned by these columns.
    """
    problems: list[str] = []
    partitioning = PartitioningConfig(PARTITION_BY.read_value(partition_by, problems))
    if problems:
        raise ConfigError(problems, str(name))
    opened = newest_managed(spark, name)
    config = replace(config_of(opened.snapshot), partitioning=partitioning)
    folders = TableLayout.of(config, opened.row_schema_json, str(name)).partition_by
    return folders if folders != opened.partition_columns else None


def clean_table(
    name: TableRef, opened: TableSnapshot, dry_run: bool, retain_versions: int | None, retain_hours: float | None
) -> CleanResult:
    """Deletes what no retained version, running reader or pending transaction needs, or with ``dry_run`` only lists it.

    Raises:
        ConfigError: A retention setting is not a valid number.
        UnsupportedError: The table is only indexed.
    """
    check_managed(opened, str(name))
    problems: list[str] = []
    versions = RETAIN_VERSIONS.read_value(retain_versions, problems)
    hours = RETAIN_HOURS.read_value(retain_hours, problems)
    if problems:
        raise ConfigError(problems, str(name))
    timeline = opened.timeline
    if not dry_run:
        recover(timeline)
    # Another session may have switched a format on since the table was opened.
    opened = opened.at_snapshot(timeline.snapshot())
    own = config_of(opened.snapshot).retention
    kept_hours = own.hours if retain_hours is None else hours
    # Asking the store for its time writes a file, and a dry run must not write.
    now_ms = int(time.time() * 1000) if dry_run else store_time_ms(timeline.store)
    return clean(
        timeline,
        own.versions if retain_versions is None else versions,
        kept_hours,
        now_ms,
        dry_run=dry_run,
        orphans=True,
        needed_from=oldest_published(opened, kept_hours, now_ms),
    )
