"""Writes what changed since a snapshot's last run to its table, in one commit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from dbt.adapters.zlayout.adapter.materialize.incremental_write import kept_settings
from dbt.adapters.zlayout.adapter.materialize.model_write import ModelWrite
from dbt.adapters.zlayout.config.incremental import SOURCE_ALIAS, TARGET_ALIAS
from dbt.adapters.zlayout.predicate.literals import backquoted
from dbt.adapters.zlayout.table.ztable import ZTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from dbt.adapters.zlayout.spark.files.write_summary import CommitSummary

_CHANGE_TYPE = "dbt_change_type"
_UNIQUE_KEY = "dbt_unique_key"


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
    wanted: ModelWrite,
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
        progress: Receives a sentence now and then during the write.

    Raises:
        ConflictError: Another writer committed first.
        WriteError: The query failed, or its keys are not unique. The table is unchanged.
    """
    valid_to = backquoted(columns["dbt_valid_to"])
    still_valid = _is_current(f"{TARGET_ALIAS}.{valid_to}", valid_to_current)
    begins = _is_current(f"{SOURCE_ALIAS}.{valid_to}", valid_to_current)
    return table.merge(
        rows,
        [columns["dbt_scd_id"]],
        update_columns=[columns["dbt_valid_to"]],
        matched_condition=f"{still_valid} and not {begins}",
        not_matched_condition=begins,
        on_schema_change="append_new_columns",
        **kept_settings(wanted),
        progress=progress,
    )


def _is_working_column(name: str) -> bool:
    folded = name.lower()
    return folded in (_CHANGE_TYPE, _UNIQUE_KEY) or folded.startswith(f"{_UNIQUE_KEY}_")


def _is_current(valid_to: str, valid_to_current: str | None) -> str:
    return f"({valid_to} is null or {valid_to} = {valid_to_current})" if valid_to_current else f"({valid_to} is null)"
