"""Lists relations for dbt. A merge-on-read table is one relation, though the catalog holds two views and a table."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.contracts.relation import RelationType
from dbt.adapters.spark.impl import SparkAdapter

from dbt.adapters.zlayout.adapter.session.holder import SessionHolder
from dbt.adapters.zlayout.spark.catalog.session_catalog import TABLE_ID_PROPERTY, TableName
from dbt.adapters.zlayout.spark.read.record_tables import BASE_ROWS_PROPERTY, files_name

_BASE_ROWS_OF, _TABLE_ID = (
    re.compile(rf"^Table Properties: \[.*\b{re.escape(each)}=([\w-]+)", re.MULTILINE)
    for each in (BASE_ROWS_PROPERTY, TABLE_ID_PROPERTY)
)


class RecordRelations(SessionHolder, SparkAdapter):
    """The part of the adapter that lists relations."""

    def _build_spark_relation_list(self, row_list: Any, relation_info_func: Callable[..., Any]) -> list[BaseRelation]:
        return as_dbt_sees_them(super()._build_spark_relation_list(row_list, relation_info_func))


def as_dbt_sees_them(relations: Sequence[Any]) -> list[BaseRelation]:
    """The relations of one schema, with each merge-on-read table listed once, as a table.

    Args:
        relations: The relations as dbt-spark lists them. ``information`` holds the catalog's description of each.
    """
    ids = {each.identifier: _property(each, _TABLE_ID) for each in relations}
    merging = {each.identifier: ids[each.identifier] for each in relations if each.is_view and ids[each.identifier]}
    beneath = {(files_name(TableName("", name)).identifier, table_id) for name, table_id in merging.items()}
    return [
        each.incorporate(type=RelationType.Table) if each.identifier in merging else each
        for each in relations
        if (each.identifier, ids[each.identifier]) not in beneath
        and _property(each, _BASE_ROWS_OF) not in merging.values()
    ]


def _property(relation: Any, pattern: re.Pattern[str]) -> str | None:
    found = pattern.search(relation.information or "")
    return found[1] if found else None
