"""Settings of incremental models: how new rows are combined with the rows of the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, cast, get_args

from dbt.adapters.zlayout.config import settings
from dbt.adapters.zlayout.config.settings import (
    OnSchemaChangeName,
    PartitionOverwriteName,
    StrategyName,
    declared,
    read_as,
)
from dbt.adapters.zlayout.config.table_type import asks_for_merge_on_read

SOURCE_ALIAS = settings.SOURCE_ALIAS.default_value
TARGET_ALIAS = settings.TARGET_ALIAS.default_value
# The strategies of a merge-on-read table, which has one row per key.
_BY_KEY: tuple[StrategyName, ...] = ("merge", "delete+insert", "microbatch")


@dataclass(frozen=True)
class MergeRules:
    """What a merge does with rows that match and rows that do not; conditions are SQL over the two aliases.

    Attributes:
        unique_key: Columns whose equality makes rows match; null equals nothing. Empty if no key is needed.
        update_columns: Columns that a match updates; None for all.
        exclude_columns: Columns that a match does not update.
        predicates: Additional match conditions.
        matched_condition: Selects the matches to update; None for all.
        not_matched_condition: Selects the unmatched rows to insert; None for all.
        skip_matched_step: Updates nothing.
        skip_not_matched_step: Inserts nothing.
        deleted_when: Selects the incoming rows that are deletes, SQL over their columns; null means not a delete. None
            if no row is a delete.
        source_alias: Name of the incoming rows in conditions.
        target_alias: Name of the table in conditions.
    """

    unique_key: tuple[str, ...] = declared(settings.UNIQUE_KEY)
    update_columns: tuple[str, ...] | None = None
    exclude_columns: tuple[str, ...] = declared(settings.MERGE_EXCLUDE_COLUMNS)
    predicates: tuple[str, ...] = ()
    matched_condition: str | None = declared(settings.MATCHED_CONDITION)
    not_matched_condition: str | None = declared(settings.NOT_MATCHED_CONDITION)
    skip_matched_step: bool = declared(settings.SKIP_MATCHED_STEP)
    skip_not_matched_step: bool = declared(settings.SKIP_NOT_MATCHED_STEP)
    deleted_when: str | None = declared(settings.DELETED_WHEN)
    source_alias: str = declared(settings.SOURCE_ALIAS)
    target_alias: str = declared(settings.TARGET_ALIAS)

    @property
    def unconditional(self) -> bool:
        """Whether every incoming row updates the rows that it matches, or is inserted."""
        conditions = (self.matched_condition, self.not_matched_condition)
        return not (self.predicates or any(conditions) or self.skip_matched_step or self.skip_not_matched_step)

    @property
    def conditions(self) -> tuple[str, ...]:
        """All conditions, SQL over incoming rows and rows of the table."""
        others = self.matched_condition, self.not_matched_condition, self.deleted_when
        return *self.predicates, *(each for each in others if each is not None)

    def delete_problems(self) -> list[str]:
        """Returns a sentence for each rule that makes deletes impossible."""
        if self.deleted_when is None:
            return []
        found = []
        if not self.unique_key:
            found.append("deleted_when: a delete finds its row by the key; set unique_key")
        if self.skip_matched_step:
            found.append("deleted_when: skip_matched_step leaves matching rows unchanged; remove one of the two")
        return found


@dataclass(frozen=True)
class IncrementalConfig(MergeRules):
    """How a run writes its new rows; the merge rules apply to strategies that use a key.

    Attributes:
        strategy: How the new rows are written.
        on_schema_change: What happens when the columns of query and table differ.
        partition_overwrite: ``dynamic`` replaces the partitions of the new rows, ``static`` the whole table.
        event_time: The column that assigns a row to a microbatch.
    """

    strategy: StrategyName = declared(settings.INCREMENTAL_STRATEGY)
    on_schema_change: OnSchemaChangeName = declared(settings.ON_SCHEMA_CHANGE)
    partition_overwrite: PartitionOverwriteName = declared(settings.PARTITION_OVERWRITE)
    event_time: str | None = None

    @property
    def is_by_key(self) -> bool:
        """Whether rows are found by the key, if there is one."""
        return self.strategy in ("merge", "delete+insert")

    @property
    def only_adds(self) -> bool:
        """Whether a run adds its rows and changes no others, even if the table has them already."""
        return self.strategy == "append" or (self.is_by_key and not self.unique_key)

    @property
    def runs_beside_others(self) -> bool:
        """Whether several runs can usually write at once: they only add rows, or each replaces its own span of time."""
        return self.strategy in ("append", "microbatch")

    @property
    def merge_rules(self) -> dict[str, Any]:
        """The merge rules by name, as ``ZTable.merge`` takes them."""
        return {rule.name: getattr(self, rule.name) for rule in fields(MergeRules)}


def parse_incremental(raw: Mapping[str, object], problems: list[str]) -> IncrementalConfig:
    """Reads the settings of an incremental model."""
    strategy = _strategy(raw, problems)
    update_columns = settings.MERGE_UPDATE_COLUMNS.read(raw, problems)
    exclude_columns = settings.MERGE_EXCLUDE_COLUMNS.read(raw, problems)
    if update_columns and exclude_columns:
        problems.append("merge_update_columns: merge_exclude_columns is set too; a model can have one of them")
    config = read_as(
        IncrementalConfig,
        raw,
        problems,
        strategy=strategy,
        predicates=_predicates(raw, problems),
        update_columns=update_columns or None,
        exclude_columns=exclude_columns,
        event_time=_event_time(strategy, raw, problems),
    )
    if config.deleted_when is not None and strategy != "merge":
        problems.append(
            f"deleted_when: incremental_strategy {strategy!r} does not support deletes; set incremental_strategy to"
            " 'merge' and a unique_key, or remove deleted_when"
        )
    else:
        problems += config.delete_problems()
    return config


def _strategy(raw: Mapping[str, object], problems: list[str]) -> StrategyName:
    value = raw.get("incremental_strategy")
    allowed = get_args(StrategyName)
    by_key = asks_for_merge_on_read(raw)
    default: StrategyName = "merge" if by_key else settings.INCREMENTAL_STRATEGY.default_value
    word = (
        default if value in (None, "default") else str(value).strip().lower().replace("delete_insert", "delete+insert")
    )
    if word not in allowed:
        problems.append(f"incremental_strategy: {value!r} is not one of {', '.join(_BY_KEY if by_key else allowed)}")
        return default
    if by_key and word not in _BY_KEY:
        problems.append(
            f"incremental_strategy: {value!r} uses no key, but a table with table_type 'merge_on_read' has one row per"
            f" key; use one of {', '.join(_BY_KEY)} (merge is the default), or remove table_type"
        )
    if word == "microbatch" and raw.get("materialized") == "zordered_table":
        problems.append(
            "incremental_strategy: dbt makes batches only for materialized='incremental'; set that and keep zorder:"
            " the table is still clustered"
        )
    return cast(StrategyName, word)


def _event_time(strategy: StrategyName, raw: Mapping[str, object], problems: list[str]) -> str | None:
    value = raw.get("event_time")
    if strategy == "microbatch" and not (isinstance(value, str) and value.strip()):
        problems.append(
            f"event_time: {value!r} is not a column; microbatch needs the one that assigns a row to a batch"
        )
    return value if isinstance(value, str) else None


def _predicates(raw: Mapping[str, object], problems: list[str]) -> tuple[str, ...]:
    key = "predicates" if raw.get("predicates") else "incremental_predicates"
    value = raw.get(key)
    listed = [value] if isinstance(value, str) else value if value is not None else []
    if not isinstance(listed, Sequence) or not all(isinstance(each, str) and each.strip() for each in listed):
        problems.append(f"{key}: {value!r} is not a list of conditions (write [\"{TARGET_ALIAS}.day > '2024-01-01'\"])")
        return ()
    if listed and asks_for_merge_on_read(raw):
        problems.append(
            f"{key}: a table with table_type 'merge_on_read' has one row per key and matches rows by it alone; remove"
            f" {key}, or table_type"
        )
    return tuple(listed)
