"""Settings of incremental models: how new rows are combined with the rows of the table."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, cast, get_args

from dbt.adapters.zlayout.config.column_names import format_column_path, parse_column_list
from dbt.adapters.zlayout.config.merge_rules import SOURCE_ALIAS, TARGET_ALIAS, MergeRules
from dbt.adapters.zlayout.config.scalars import parse_boolean, parse_choice
from dbt.adapters.zlayout.config.table_type import asks_for_merge_on_read

StrategyName = Literal["append", "delete+insert", "insert_overwrite", "merge", "microbatch"]
OnSchemaChangeName = Literal["ignore", "fail", "append_new_columns", "sync_all_columns"]
PartitionOverwriteName = Literal["dynamic", "static"]

# The strategies of a merge-on-read table, which has one row per key.
_BY_KEY: tuple[StrategyName, ...] = ("merge", "delete+insert", "microbatch")
# Outside backquotes, only expressions contain one of these.
_EXPRESSION = re.compile(r"[()|+*/'\"\s]")
_BACKQUOTED = re.compile(r"`(?:[^`]|``)*`")
_BOTH_SIDES = f"{SOURCE_ALIAS}.seen > {TARGET_ALIAS}.seen"
_ALIAS = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True)
class IncrementalConfig(MergeRules):
    """How a run writes its new rows; the merge rules apply to strategies that use a key.

    Attributes:
        strategy: How the new rows are written.
        on_schema_change: What happens when the columns of query and table differ.
        partition_overwrite: ``dynamic`` replaces the partitions of the new rows, ``static`` the whole table.
        event_time: The column that assigns a row to a microbatch.
    """

    strategy: StrategyName = "append"
    on_schema_change: OnSchemaChangeName = "ignore"
    partition_overwrite: PartitionOverwriteName = "dynamic"
    event_time: str | None = None

    @property
    def merge_rules(self) -> dict[str, Any]:
        """The merge rules by name, as ``ZTable.merge`` takes them."""
        return {rule.name: getattr(self, rule.name) for rule in fields(MergeRules)}


def parse_incremental(raw: Mapping[str, object], problems: list[str]) -> IncrementalConfig:
    """Reads the settings of an incremental model.

    Args:
        raw: Values by key, as dbt provides them; None means the default.
        problems: Receives one sentence for each wrong setting.
    """
    strategy = _strategy(raw, problems)
    update_columns = _columns("merge_update_columns", raw, problems)
    exclude_columns = _columns("merge_exclude_columns", raw, problems)
    if update_columns and exclude_columns:
        problems.append("merge_update_columns: merge_exclude_columns is set too; a model can have one of them")
    changes, overwrite = raw.get("on_schema_change"), raw.get("partition_overwrite")
    config = IncrementalConfig(
        strategy=strategy,
        unique_key=_columns("unique_key", raw, problems),
        predicates=_predicates(raw, problems),
        update_columns=update_columns or None,
        exclude_columns=exclude_columns,
        matched_condition=_condition("matched_condition", raw, problems, _BOTH_SIDES),
        not_matched_condition=_condition("not_matched_condition", raw, problems, _BOTH_SIDES),
        skip_matched_step=parse_boolean("skip_matched_step", raw.get("skip_matched_step"), problems),
        skip_not_matched_step=parse_boolean("skip_not_matched_step", raw.get("skip_not_matched_step"), problems),
        deleted_when=_condition("deleted_when", raw, problems, "op = 'D'"),
        source_alias=_alias("source_alias", raw, problems, SOURCE_ALIAS),
        target_alias=_alias("target_alias", raw, problems, TARGET_ALIAS),
        on_schema_change=cast(
            OnSchemaChangeName,
            parse_choice("on_schema_change", changes, problems, default="ignore", allowed=get_args(OnSchemaChangeName)),
        ),
        partition_overwrite=cast(
            PartitionOverwriteName,
            parse_choice(
                "partition_overwrite", overwrite, problems, default="dynamic", allowed=get_args(PartitionOverwriteName)
            ),
        ),
        event_time=_event_time(strategy, raw, problems),
    )
    if config.deleted_when is not None and strategy != "merge":
        problems.append(
            f"deleted_when: incremental_strategy {strategy!r} has no place for deletes; set incremental_strategy to"
            " 'merge' and a unique_key, or leave deleted_when out"
        )
    else:
        problems += config.delete_problems()
    return config


def _strategy(raw: Mapping[str, object], problems: list[str]) -> StrategyName:
    value = raw.get("incremental_strategy")
    allowed = get_args(StrategyName)
    by_key = asks_for_merge_on_read(raw)
    default: StrategyName = "merge" if by_key else "append"
    word = default if value in (None, "default") else str(value).strip().lower().replace("delete_insert", allowed[1])
    if word not in allowed:
        problems.append(f"incremental_strategy: {value!r} is not one of {', '.join(_BY_KEY if by_key else allowed)}")
        return default
    if by_key and word not in _BY_KEY:
        problems.append(
            f"incremental_strategy: {value!r} knows no keys, and a table with table_type 'merge_on_read' has one row a"
            f" key; take one of {', '.join(_BY_KEY)} (merge is the default), or leave table_type out"
        )
    if word == "microbatch" and raw.get("materialized") == "zordered_table":
        problems.append(
            "incremental_strategy: dbt makes batches only of materialized='incremental'; set that and keep zorder,"
            " the table is clustered all the same"
        )
    return cast(StrategyName, word)


def _event_time(strategy: StrategyName, raw: Mapping[str, object], problems: list[str]) -> str | None:
    value = raw.get("event_time")
    if strategy == "microbatch" and not (isinstance(value, str) and value.strip()):
        problems.append(f"event_time: {value!r} is not the column that says to which batch a row belongs")
    return value if isinstance(value, str) else None


def _columns(key: str, raw: Mapping[str, object], problems: list[str]) -> tuple[str, ...]:
    value = raw.get(key)
    listed = [value] if isinstance(value, str) else value if isinstance(value, Sequence) else ()
    if expressions := [each for each in listed if isinstance(each, str) and _is_expression(each)]:
        problems.append(
            f"{key}: {expressions[0]!r} is an expression; name columns, in backquotes where a name is not a plain word,"
            " and compute the expression as a column of the model"
        )
        return ()
    names = []
    for path in parse_column_list(key, value, problems, repeats=True):
        if len(path) == 1:
            names.append(path[0])
        else:
            problems.append(f"{key}: '{format_column_path(path)}' is a field of a struct; only whole columns can serve")
    return tuple(names)


def _is_expression(text: str) -> bool:
    words = _BACKQUOTED.sub("x", text).split(",")
    return any(_EXPRESSION.search(word.strip()) for word in words)


def _predicates(raw: Mapping[str, object], problems: list[str]) -> tuple[str, ...]:
    key = "predicates" if raw.get("predicates") else "incremental_predicates"
    value = raw.get(key)
    listed = [value] if isinstance(value, str) else value if value is not None else []
    if not isinstance(listed, Sequence) or not all(isinstance(each, str) and each.strip() for each in listed):
        problems.append(f"{key}: {value!r} is not a list of conditions (write [\"{TARGET_ALIAS}.day > '2024-01-01'\"])")
        return ()
    if listed and asks_for_merge_on_read(raw):
        problems.append(
            f"{key}: a table with table_type 'merge_on_read' has one row a key, whatever else a row meets; leave {key}"
            " out, or table_type"
        )
    return tuple(listed)


def _condition(key: str, raw: Mapping[str, object], problems: list[str], example: str) -> str | None:
    value = raw.get(key)
    if value is None or (isinstance(value, str) and value.strip()):
        return value
    problems.append(f'{key}: {value!r} is not a condition (write "{example}")')
    return None


def _alias(key: str, raw: Mapping[str, object], problems: list[str], default: str) -> str:
    value = raw.get(key)
    if value is None:
        return default
    if isinstance(value, str) and _ALIAS.fullmatch(value):
        return value
    problems.append(f"{key}: {value!r} is not a plain name")
    return default
