"""Writes to a table in one commit: a model's rows in place of all, rows by its strategy, changes of a snapshot."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dbt.adapters.zlayout.adapter.dbt_errors import warn
from dbt.adapters.zlayout.adapter.materialize.model_settings import ModelSettings
from dbt.adapters.zlayout.adapter.node_lookup import table_if_there
from dbt.adapters.zlayout.config.column_names import format_column_path
from dbt.adapters.zlayout.config.incremental import SOURCE_ALIAS, TARGET_ALIAS
from dbt.adapters.zlayout.errors import WriteError
from dbt.adapters.zlayout.predicate.literals import backquoted
from dbt.adapters.zlayout.spark.catalog.schema_evolution import aligned, widened
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog
from dbt.adapters.zlayout.spark.commit.publish import Description
from dbt.adapters.zlayout.spark.schema.table_schema import string_literal
from dbt.adapters.zlayout.spark.write.incoming_rows import ChangeFeed
from dbt.adapters.zlayout.spark.write.replace import Replacement, replace_table
from dbt.adapters.zlayout.table.advice import with_chosen_keys
from dbt.adapters.zlayout.table.ztable import ZTable
from dbt.adapters.zlayout.timeline.log.positions import ChangesTaken

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from dbt.adapters.zlayout.spark.commit.after_commit import CommitSummary

_CHANGE_TYPE = "dbt_change_type"
_UNIQUE_KEY = "dbt_unique_key"


def write_model(
    name: str,
    dataframe: DataFrame,
    wanted: ModelSettings,
    *,
    progress: Callable[[str], None],
    made_from: Mapping[str, Any] | None = None,
    changes_taken: Sequence[ChangesTaken] = (),
) -> CommitSummary:
    """Replaces a table with a model's rows, in a new version. Warns about documented columns that the query lacks.

    Args:
        name: ``schema.identifier``, in backquotes.
        dataframe: The model's query, not run yet.
        wanted: From `read_model`.
        progress: Receives a line every few seconds.
        made_from: What the rows were made from, `Origin.to_dict`.
        changes_taken: The tables that the query reads as changes.
    """
    spark, how = dataframe.sparkSession, wanted.incremental
    feed = None if how.deleted_when is None else ChangeFeed(how.deleted_when, how.unique_key, wanted.column_names)
    table = Catalog(spark).name(name)
    comments = _in_case_of(dataframe.columns, wanted, name)
    with with_chosen_keys(spark, table, dataframe, wanted.table_config, progress) as (rows, config):
        replacement = Replacement(
            name=table,
            frame=rows,
            config=config,
            description=Description(wanted.comment, wanted.properties),
            column_comments=comments,
            not_null=wanted.not_null,
            feed=feed,
            progress=progress,
            made_from=made_from,
            changes_taken=changes_taken,
        )
        _, done = replace_table(spark, replacement)
    return done


def managed_table(session: SparkSession, name: str, wanted: ModelSettings, progress: Callable[[str], None]) -> ZTable:
    """Opens the table that new rows go to. Takes over a plain Parquet table first.

    Args:
        session: The session whose catalog knows the table.
        name: ``schema.identifier``, in backquotes.
        wanted: Gives the clustering keys and statistics columns of a table that is taken over.
        progress: Receives a sentence when a table is taken over.

    Raises:
        TableLostError: The folder of the table no longer holds it.
        UnsupportedError: The table has another format.
    """
    found = table_if_there(session, name)
    if found is not None and found.is_managed:
        return found
    zorder = list(wanted.table_config.clustering.names)
    columns = wanted.table_config.statistics.columns
    stats_columns = columns if isinstance(columns, int) else list(map(format_column_path, columns))
    table = ZTable.adopt(session, name, managed=True, zorder=zorder, stats_columns=stats_columns)
    progress("the plain Parquet table is now managed; other tools must no longer write to it")
    return table


def write_increment(
    table: ZTable,
    rows: DataFrame,
    wanted: ModelSettings,
    *,
    batch: Mapping[str, Any] | None,
    progress: Callable[[str], None],
    made_from: Mapping[str, Any] | None = None,
    changes_taken: Sequence[ChangesTaken] = (),
) -> CommitSummary:
    """Writes the rows of a run to the table.

    Args:
        table: From `managed_table`.
        rows: The model's query, not run yet.
        wanted: From `read_model`.
        batch: The microbatch, with ``event_time_start`` and ``event_time_end``; None for other strategies.
        made_from: What the rows were made from, `Origin.to_dict`.
        changes_taken: The changes of other tables that the rows were made from.

    Raises:
        ConflictError: Another writer committed first.
        ConfigError: The columns of the query do not fit those of the table.
        WriteError: The query failed. The table is unchanged.
    """
    how = wanted.incremental
    common: dict[str, Any] = {
        "on_schema_change": how.on_schema_change,
        **kept_settings(wanted),
        "progress": progress,
        "made_from": made_from,
        # The version says what was read, so that the next run is skipped, unless that could not be determined.
        "commit_empty": wanted.skip_unchanged and made_from is not None and not made_from["unknown"],
        "changes_taken": changes_taken,
    }
    if how.strategy == "insert_overwrite":
        return table.overwrite(rows, "all" if how.partition_overwrite == "static" else None, **common)
    if how.strategy == "microbatch":
        return table.replace_where(rows, batch_predicate(str(how.event_time), batch), **common)
    if how.only_adds:
        return table.append(rows, **common)
    if how.strategy == "delete+insert":
        return table.delete_insert(rows, list(how.unique_key), predicates=how.predicates, **common)
    return table.merge(rows, **how.merge_rules, stored_columns=wanted.column_names, **common)


def kept_settings(wanted: ModelSettings) -> dict[str, Any]:
    """Returns the settings that each run applies again to an existing table: layout, descriptions, not-null columns."""
    described = wanted.comment is not None or wanted.properties
    return {
        "settings": wanted.table_config,
        "description": Description(wanted.comment, wanted.properties) if described else None,
        "column_comments": wanted.column_comments,
        "not_null": wanted.not_null,
    }


def batch_predicate(event_time: str, batch: Mapping[str, Any] | None) -> str:
    """Returns the condition for the rows of a microbatch. It equals the filter that dbt puts on the model's inputs.

    Raises:
        WriteError: dbt ran the model without batches.
    """
    start, end = (batch or {}).get("event_time_start"), (batch or {}).get("event_time_end")
    if start is None or end is None:
        raise WriteError(
            "incremental_strategy microbatch: dbt gave the run no batch; remove the macro"
            " get_incremental_microbatch_sql from the project, or set the flag"
            " require_batched_execution_for_custom_microbatch_strategy"
        )
    low, high = string_literal(str(start)), string_literal(str(end))
    return f"{event_time} >= {low} and {event_time} < {high}"


def rows_to_merge(staged: DataFrame, columns: Mapping[str, str]) -> DataFrame:
    """Returns the rows of the staging query to merge, without dbt's working columns.

    A new row with the same id as the row it replaces is left out, as in dbt's merge: an id stands for one state of a
    key.

    Args:
        staged: dbt's staging query, not run yet.
        columns: The names of dbt's own columns.
    """
    scd_id = backquoted(columns["dbt_scd_id"])
    closes = f"max({_CHANGE_TYPE} <> 'insert') over (partition by {scd_id})"
    kept = [backquoted(name) for name in staged.columns if not _is_working_column(name)]
    return (
        staged.selectExpr("*", f"{closes} as dbt_closes")
        .where(f"not dbt_closes or {_CHANGE_TYPE} <> 'insert'")
        .selectExpr(*kept)
    )


def write_changes(
    table: ZTable,
    rows: DataFrame,
    wanted: ModelSettings,
    *,
    columns: Mapping[str, str],
    valid_to_current: str | None,
    progress: Callable[[str], None],
) -> CommitSummary:
    """Closes the rows that changed or were deleted, and adds the new ones.

    Args:
        table: The snapshot's table.
        rows: From `rows_to_merge`. A row that closes another one has that row's id and end time.
        wanted: From `read_model`.
        columns: The names of dbt's own columns.
        valid_to_current: The expression that means "still valid". Null means it too.

    Raises:
        ConflictError: Another writer committed first.
        WriteError: The query failed, or its keys are not unique. The table is unchanged.
    """
    valid_to = backquoted(columns["dbt_valid_to"])
    still_valid = _is_current(f"{TARGET_ALIAS}.{valid_to}", valid_to_current)
    begins = _is_current(f"{SOURCE_ALIAS}.{valid_to}", valid_to_current)
    before = table.snapshot()
    # No key of dbt says what to do with types. In the old type, a value could look like a new one in every run.
    columns_json = widened(Catalog(rows.sparkSession), before.schema_json, rows.schema.json(), before.partition_by)
    if columns_json is not None:
        rows = aligned(rows, columns_json, table.name)
    return table.merge(
        rows,
        [columns["dbt_scd_id"]],
        update_columns=[columns["dbt_valid_to"]],
        matched_condition=f"{still_valid} and not {begins}",
        not_matched_condition=begins,
        on_schema_change="append_new_columns" if columns_json is None else "sync_all_columns",
        **kept_settings(wanted),
        progress=progress,
    )


def _is_working_column(name: str) -> bool:
    folded = name.lower()
    return folded in (_CHANGE_TYPE, _UNIQUE_KEY) or folded.startswith(f"{_UNIQUE_KEY}_")


def _is_current(valid_to: str, valid_to_current: str | None) -> str:
    return f"({valid_to} is null or {valid_to} = {valid_to_current})" if valid_to_current else f"({valid_to} is null)"


def _in_case_of(names: Sequence[str], wanted: ModelSettings, table: str) -> dict[str, str]:
    """Returns the comments, keyed by the column names as the query spells them."""
    any_case = {name.lower(): name for name in names}
    found = {
        name: name if name in names else None if name in wanted.exact_names else any_case.get(name.lower())
        for name in wanted.column_comments
    }
    if missing := [name for name, column in found.items() if column is None]:
        warn(
            f"In relation {table}: The following columns are specified in the schema but are not present in the"
            f" database: {', '.join(missing)}"
        )
    return {column: wanted.column_comments[name] for name, column in found.items() if column is not None}
