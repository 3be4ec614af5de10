"""Advises layouts for the tables of a project, from what its queries ask."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from dbt.adapters.zlayout.adapter.node_lookup import Nodes, chosen_tables, config_of_table
from dbt.adapters.zlayout.adapter.operations.arguments import number_between
from dbt.adapters.zlayout.adapter.operations.compiled_queries import CompiledQuery, analysed_queries
from dbt.adapters.zlayout.adapter.reports.advising import TableAdvice, advice_report
from dbt.adapters.zlayout.advice.advice import MIN_GAIN
from dbt.adapters.zlayout.config.workload import WeightedCondition, merged, parse_workload
from dbt.adapters.zlayout.errors import ConfigError
from dbt.adapters.zlayout.predicate.literals import folded_name
from dbt.adapters.zlayout.spark.read.conditions import QueryScan
from dbt.adapters.zlayout.spark.read.scan_log import SCANS_FOLDER, condition_text, logged_workload, read_scans
from dbt.adapters.zlayout.table.ztable import ZTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NOTHING = "no query of it is known: run or compile the models that read it, or give predicates"


class ProjectWorkload:
    """What the queries of a project ask, table by table.

    Args:
        nodes: ``graph.nodes``, or the nodes of a manifest.
        target: The target folder of the project, with compiled SQL and the scan log; None without one.
        scans: The folder of the scan log; None for the one in the target folder.
    """

    def __init__(self, session: SparkSession, nodes: Nodes, target: Path | None, scans: Path | None = None) -> None:
        self._session = session
        self._nodes = nodes
        self._target = target
        folder = scans or (None if target is None else target / SCANS_FOLDER)
        self._scans = [] if folder is None else read_scans(folder)

    @cached_property
    def queries(self) -> Sequence[tuple[CompiledQuery, Sequence[QueryScan]]]:
        """The compiled queries of the project with their scans."""
        return list(analysed_queries(self._session, self._nodes, self._target))

    def of(self, table: ZTable) -> tuple[WeightedCondition, ...]:
        """Returns the conditions on a table: its model's ``workload``, logged scans, and compiled SQL."""
        declared = config_of_table(table.name, self._nodes).get("workload")
        given = parse_workload(declared, table.name) if declared else ()
        logged = logged_workload(self._scans, table.names)
        return merged([*given, *logged, *self._compiled.get(folded_name(table.name), ())])

    @cached_property
    def _compiled(self) -> dict[str, list[WeightedCondition]]:
        found: dict[str, list[WeightedCondition]] = {}
        for query, scans in self.queries:
            for scan in scans:
                condition = WeightedCondition(condition_text(scan.predicate) or "true", 1.0, query.name)
                found.setdefault(folded_name(scan.table), []).append(condition)
        return found


def table_advice(table: ZTable, workload: Sequence[WeightedCondition], min_gain: float = MIN_GAIN) -> TableAdvice:
    """Advises one table. Says why if nothing can be advised.

    Args:
        workload: Conditions on it; may be empty.
        min_gain: As for `ZTable.advise`.
    """
    if not workload:
        return TableAdvice(table.name, table.version, None, _NOTHING)
    try:
        return TableAdvice(table.name, table.version, table.advise(workload, min_gain=min_gain))
    except ConfigError as error:
        return TableAdvice(table.name, table.version, None, "; ".join(error.problems))


def advise_report(
    session: SparkSession,
    model: str | None,
    nodes: Nodes,
    target: Path | None,
    predicates: object = None,
    min_gain: object = None,
    as_json: bool = False,
    scans: Path | None = None,
) -> str:
    """Advises the table of a model, or all tables of the project.

    Args:
        model: The model; None for all.
        nodes: ``graph.nodes``, or the nodes of a manifest.
        target: As for `ProjectWorkload`.
        predicates: Conditions in place of what is known of the project's queries.
        min_gain: The gain that a change must have; None for the default.
        scans: As for `ProjectWorkload`.

    Raises:
        ConfigError: An argument is wrong, or a condition does not fit the table.
    """
    gain = MIN_GAIN if min_gain is None else number_between(min_gain, 0.0, 1.0, "zlayout_advise: min_gain")
    tables = chosen_tables(session, model, nodes, lambda _: True)
    if predicates:
        if len(tables) != 1:
            raise ConfigError(["predicates: conditions belong to one table; give its model too"], "zlayout_advise")
        given = parse_workload(predicates, tables[0].name, "predicates")
        found = [TableAdvice(tables[0].name, tables[0].version, tables[0].advise(given, min_gain=gain))]
    else:
        workload = ProjectWorkload(session, nodes, target, scans)
        found = [table_advice(table, workload.of(table), gain) for table in tables]
    return advice_report(found, as_json=as_json)
