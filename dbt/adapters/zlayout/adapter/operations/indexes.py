"""The adapter methods that refresh and verify indexes, for post-hooks, tests and run-operations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt.adapters.base.meta import available
from dbt.adapters.events.logging import AdapterLogger

from dbt.adapters.zlayout.adapter.dbt_errors import as_dbt_errors
from dbt.adapters.zlayout.adapter.node_lookup import table_of, tables_of
from dbt.adapters.zlayout.adapter.relation import ZlayoutRelation, whole_table
from dbt.adapters.zlayout.adapter.reports.indexes import refresh_line, refresh_report, verify_report
from dbt.adapters.zlayout.adapter.session.holder import SessionHolder
from dbt.adapters.zlayout.adapter.sql_literals import quoted_identifier
from dbt.adapters.zlayout.errors import TableNotFoundError
from dbt.adapters.zlayout.spark.index.refresh import Refreshed
from dbt.adapters.zlayout.table.ztable import ZTable

_LOG = AdapterLogger("Zlayout")
Nodes = Mapping[str, Mapping[str, Any]]


class IndexOperations(SessionHolder):
    """Index refresh and verification. A mixin of the adapter, which provides the session."""

    @available.parse_none
    def refresh_index(
        self, relation: ZlayoutRelation | str, take_orphans: bool = False, drop_missing: bool = False
    ) -> dict[str, Any]:
        """Brings the index of a Parquet table up to date with its live files. Creates the index if there is none."""
        with as_dbt_errors():
            name = relation if isinstance(relation, str) else relation.catalog_name
            table, done = self._refreshed(name, take_orphans, drop_missing)
            _LOG.info(refresh_line(table, done))
            return vars(done)

    @available.parse_none
    def refresh_report(
        self, model: str | None, nodes: Nodes, sources: Nodes, take_orphans: bool, drop_missing: bool, as_json: bool
    ) -> str:
        """Refreshes one index, or all in the project. Returns the text that zlayout_refresh_index prints."""
        with as_dbt_errors():
            if model is not None:
                names = [table_of(model, nodes)]
            else:
                names = [table.name for table in self._indexed(nodes, sources)]
            return refresh_report(
                dict(self._refreshed(name, take_orphans, drop_missing) for name in names), as_json=as_json
            )

    @available.parse_list
    def verify_index(self, relation: ZlayoutRelation | str, data: bool = False) -> list[dict[str, Any]]:
        """The wrong cells of a table's index: ``path``, ``column``, ``cell``, ``stored``, ``found``."""
        with as_dbt_errors():
            name = whole_table(relation, "zlayout_index_exact")
            rows: list[dict[str, Any]] = ZTable.for_name(self.session(), name).verify(data).to_pylist()
            return rows

    @available.parse_none
    def verify_report(self, model: str | None, nodes: Nodes, sources: Nodes, data: bool, as_json: bool) -> str:
        """Verifies one index, or all in the project. Returns the text that zlayout_verify prints."""
        with as_dbt_errors():
            if model is not None:
                tables = [ZTable.for_name(self.session(), table_of(model, nodes))]
            else:
                tables = self._indexed(nodes, sources)
            return verify_report({table.name: table.verify(data).to_pylist() for table in tables}, as_json=as_json)

    def _refreshed(self, name: str, take_orphans: bool, drop_missing: bool) -> tuple[str, Refreshed]:
        spark = self.session()
        try:
            table = ZTable.for_name(spark, name)
        except TableNotFoundError:
            # A Parquet table gets an index. For anything else `adopt` raises an error that says why it cannot.
            table = ZTable.adopt(spark, name)
            return table.name, Refreshed(table.version, files_added=len(table.snapshot().files))
        return table.name, table.refresh_index(take_orphans, drop_missing)

    def _indexed(self, nodes: Nodes, sources: Nodes) -> list[ZTable]:
        loaded = [
            f"{quoted_identifier(each['schema'])}.{quoted_identifier(each['identifier'])}"
            for _, each in sorted(sources.items())
        ]
        return self.tables_with_index(dict.fromkeys([*tables_of(nodes), *loaded]))
