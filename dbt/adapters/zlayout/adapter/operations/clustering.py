"""The adapter methods that cluster tables, for post-hooks and run-operations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt.adapters.base.meta import available
from dbt.adapters.events.logging import AdapterLogger

from dbt.adapters.zlayout.adapter.dbt_errors import as_dbt_errors
from dbt.adapters.zlayout.adapter.materialize.recluster import cluster_settings
from dbt.adapters.zlayout.adapter.node_lookup import config_of_table, table_of, tables_of
from dbt.adapters.zlayout.adapter.relation import ZlayoutRelation
from dbt.adapters.zlayout.adapter.reports.clustering import cluster_line, cluster_report
from dbt.adapters.zlayout.adapter.response import ZlayoutAdapterResponse, with_clustering
from dbt.adapters.zlayout.adapter.session.holder import SessionHolder
from dbt.adapters.zlayout.spark.cluster.summary import ClusterSummary
from dbt.adapters.zlayout.table.ztable import ZTable

_LOG = AdapterLogger("Zlayout")
Nodes = Mapping[str, Mapping[str, Any]]


class ClusterOperations(SessionHolder):
    """Clustering. A mixin of the adapter, which provides the session."""

    @available.parse_none
    def cluster(
        self, relation: ZlayoutRelation | str, config: Mapping[str, Any] | None = None, **given: Any
    ) -> dict[str, Any]:
        """Clusters a table where it pays off.

        Args:
            relation: The table.
            config: The config of its model. Its clustering settings apply unless the call overrides them.
            **given: Keywords of ``ZTable.cluster``.

        Returns:
            `ClusterSummary.to_dict`.
        """
        with as_dbt_errors():
            name = relation if isinstance(relation, str) else relation.catalog_name
            table = ZTable.for_name(self.session(), name)
            done = self._cluster(table, config or {}, given)
            tell = _LOG.warning if done.groups_failed else _LOG.info
            tell(cluster_line(table.name, done))
            return done.to_dict()

    @available
    def with_clustering(self, response: ZlayoutAdapterResponse, done: Mapping[str, Any]) -> ZlayoutAdapterResponse:
        """The response of a run whose hook clustered its table. The macro zlayout_cluster calls it."""
        return with_clustering(response, done)

    @available.parse_none
    def cluster_report(self, model: str | None, nodes: Nodes, as_json: bool, **given: Any) -> str:
        """Clusters one table, or all managed tables of the project. Returns the text that zlayout_cluster prints."""
        with as_dbt_errors():
            names = tables_of(nodes) if model is None else [table_of(model, nodes)]
            if model is None:
                tables = [table for table in self.tables_with_index(names) if table.is_managed]
            else:
                tables = [ZTable.for_name(self.session(), names[0])]
            done = {table.name: self._cluster(table, config_of_table(table.name, nodes), given) for table in tables}
            return cluster_report(done, as_json=as_json)

    def _cluster(self, table: ZTable, config: Mapping[str, Any], given: Mapping[str, Any]) -> ClusterSummary:
        settings = cluster_settings(config, given)
        wanted = config.get("partition_by")
        if settings.get("pending"):
            # The plan already decides what is rewritten.
            settings.pop("rewrite_all", None)
        elif wanted is not None and "partition_by" not in settings and table.other_folders(wanted) is not None:
            if {"where", "max_bytes"} & settings.keys():
                _LOG.info(
                    f"{table.name}: the model's partition_by is not the table's; the next run, or a clustering without "
                    "where and max_bytes, will rewrite the table"
                )
            else:
                settings["partition_by"] = wanted
        return table.cluster(progress=lambda line: _LOG.info(f"{table.name}: {line}"), **settings)
