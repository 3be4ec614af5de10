"""The catalog of ``dbt docs generate``: dbt-spark's catalog plus comments, with types spelled as in Spark SQL."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.spark.impl import SparkAdapter

from dbt.adapters.zlayout.adapter.dbt_errors import as_dbt_errors
from dbt.adapters.zlayout.adapter.session.holder import SessionHolder
from dbt.adapters.zlayout.spark.catalog.descriptions import documented


class DocsCatalog(SessionHolder, SparkAdapter):
    """The part of the adapter that dbt calls to generate documentation."""

    def _get_columns_for_catalog(self, relation: BaseRelation) -> Iterable[dict[str, Any]]:
        with as_dbt_errors():
            said = documented(self.session(), str(relation.schema), str(relation.identifier))
        for column in super()._get_columns_for_catalog(relation):
            found = said.columns.get(column["column_name"])
            yield {
                **column,
                "table_comment": said.comment,
                "column_type": found.type_text if found else column["column_type"],
                "column_comment": found.comment if found else None,
            }
