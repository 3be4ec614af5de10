"""The adapter methods that compact tables, for run-operations, and measure compaction lag, for tests."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from dbt.adapters.base.meta import available
from dbt.adapters.events.logging import AdapterLogger

from dbt.adapters.zlayout.adapter.dbt_errors import as_dbt_errors
from dbt.adapters.zlayout.adapter.node_lookup import table_of, tables_of
from dbt.adapters.zlayout.adapter.operations.compaction_request import LAG_TEST, compact_keywords, lag_limits
from dbt.adapters.zlayout.adapter.relation import ZlayoutRelation, whole_table
from dbt.adapters.zlayout.adapter.reports.compaction import compaction_problems, compaction_report
from dbt.adapters.zlayout.adapter.reports.layout import problem_line
from dbt.adapters.zlayout.adapter.session.holder import SessionHolder
from dbt.adapters.zlayout.spark.merge_on_read.compaction import CompactionSummary
from dbt.adapters.zlayout.table.ztable import ZTable

_LOG = AdapterLogger("Zlayout")
Nodes = Mapping[str, Mapping[str, Any]]


class CompactionOperations(SessionHolder):
    """Compaction. A mixin of the adapter, which provides the session."""

    @available.parse_none
    def compaction_report(self, model: str | None, nodes: Nodes, as_json: bool, **given: Any) -> str:
        """Compacts one table, or all merge-on-read tables. Returns the text that zlayout_compact prints."""
        with as_dbt_errors():
            keywords = compact_keywords(given, one_table=model is not None)
            if model is None:
                tables = [each for each in self.tables_with_index(tables_of(nodes)) if each.merges_on_read]
            else:
                tables = [ZTable.for_name(self.session(), table_of(model, nodes))]
            done = {table.name: _compacted(table, keywords) for table in tables}
            return compaction_report(done, scheduled=keywords["schedule_only"], as_json=as_json)

    @available.parse_list
    def compaction_problems(
        self, relation: ZlayoutRelation | str, commits: object = None, log_bytes: object = None, hours: object = None
    ) -> list[dict[str, Any]]:
        """The rows of the test zlayout_compaction_lag_at_most: one for each limit that the table's logs exceed."""
        with as_dbt_errors():
            limits = lag_limits(commits, log_bytes, hours)
            table = ZTable.for_name(self.session(), whole_table(relation, LAG_TEST))
            found = compaction_problems(table.information(), limits, time.time_ns() // 1_000_000)
            for problem in found:
                _LOG.info(problem_line(table.name, problem))
            return found


def _compacted(table: ZTable, keywords: Mapping[str, Any]) -> CompactionSummary:
    return table.compact(progress=lambda line: _LOG.info(f"{table.name}: {line}"), **keywords)
