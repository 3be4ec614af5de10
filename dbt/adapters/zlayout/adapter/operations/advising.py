"""Advice on the layouts of a project's tables, from the conditions of its queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbt.adapters.zlayout.adapter.node_lookup import Nodes, chosen_tables, config_of_table
from dbt.adapters.zlayout.adapter.operations.arguments import number_between
from dbt.adapters.zlayout.adapter.operations.compiled_queries import CompiledQuery, analysed_queries, pruning_conditions
from dbt.adapters.zlayout.adapter.operations.each_table import report_on_tables
from dbt.adapters.zlayout.adapter.output import json_text
from dbt.adapters.zlayout.advice.advice import MIN_GAIN, Advice
from dbt.adapters.zlayout.config.workload import WeightedCondition, heaviest, merged, parse_workload
from dbt.adapters.zlayout.errors import ConfigError
from dbt.adapters.zlayout.lazy import cached_property
from dbt.adapters.zlayout.predicate.expr import And, expressions_of
from dbt.adapters.zlayout.predicate.literals import folded_name
from dbt.adapters.zlayout.quantities import aligned_lines, counted, ruled_lines, size_text
from dbt.adapters.zlayout.spark.read.query_scans import JoinedColumn, QueryScan
from dbt.adapters.zlayout.spark.read.scan_log import SCANS_FOLDER, condition_text, logged_workload, read_scans
from dbt.adapters.zlayout.table.ztable import ZTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MOST_NOTES = 3
_WHOLE_TABLE = "true"
_NOTHING = "no query on this table is known: run or compile the models that read it, or pass predicates"
_MOST_CONDITIONS = 10
_LONGEST = 70


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
        return analysed_queries(self._session, self._nodes, self._target).scanned

    def of(self, table: ZTable) -> tuple[WeightedCondition, ...]:
        """Returns the conditions on a table: its model's ``workload``, logged scans, and compiled SQL."""
        declared = config_of_table(table.name, self._nodes).get("workload")
        given = parse_workload(declared, table.name) if declared else ()
        logged = logged_workload(self._scans, table.names)
        return merged([*given, *logged, *self._compiled.get(folded_name(table.name), ())])

    def foremost(self, table: ZTable, most: int) -> tuple[WeightedCondition, ...]:
        """Returns the conditions on a table that matter most: those of tests, then the heaviest of the workload.

        Each is there once, with the sum of its weights.

        Args:
            most: The most conditions. Those of tests are all included, even if they are more.
        """
        tests = pruning_conditions(table.name, self._nodes)
        tested = [WeightedCondition(sql, source=test) for sql, test in tests.items()]
        queried = merged(
            WeightedCondition(each.sql, each.weight, each.source)
            for each in self.of(table)
            if each.sql.strip().lower() != _WHOLE_TABLE
        )
        return merged([*tested, *heaviest(queried, len(queried))])[: max(most, len(tested))]

    def join_notes(self, table: ZTable) -> list[str]:
        """Returns a sentence for each column on which queries join a small table without skipping files."""
        found: dict[str, tuple[int, str]] = {}
        for query, scans in self.queries:
            for scan in scans:
                for join in scan.joins:
                    if folded_name(scan.table) == folded_name(table.name) and not join.by_partition:
                        skipped, text = _of_join(query.name, scan, join)
                        found[join.column] = max(found.get(join.column, (-1, "")), (skipped, text))
        return [text for _, text in sorted(found.values(), reverse=True)][:_MOST_NOTES]

    @cached_property
    def _compiled(self) -> dict[str, list[WeightedCondition]]:
        found: dict[str, list[WeightedCondition]] = {}
        for query, scans in self.queries:
            for scan in scans:
                joined = tuple(each.column for each in scan.joins if each.by_partition)
                sql = condition_text(scan.pruning) or _WHOLE_TABLE
                if sql == _WHOLE_TABLE and not query.runs:
                    continue
                helpful = expressions_of(scan.predicate)
                condition = WeightedCondition(sql, query.weight, query.name, joined, helpful)
                found.setdefault(folded_name(scan.table), []).append(condition)
        return found


def _of_join(query: str, scan: QueryScan, join: JoinedColumn) -> tuple[int, str]:
    """Returns how many files the values of a join's other side would skip, and a sentence."""
    now = int(scan.opened.scan(scan.predicate).candidates.sum())
    then = now if join.values is None else int(scan.opened.scan(And((scan.predicate, join.values))).candidates.sum())
    after = f", with which {query} reads at most {then:,} of {counted(now, 'file')}" if then < now else ""
    return now - then, (
        f"{query} joins {join.column} with a small table, which does not let Spark skip files; zlayout_prune_by "
        f"turns the small table's values into a condition{after or '; zlayout_explain says what it would skip'}"
    )


def table_advice(
    table: ZTable,
    workload: Sequence[WeightedCondition],
    min_gain: float = MIN_GAIN,
    notes: Sequence[str] = (),
) -> TableAdvice:
    """Returns the advice for one table, or why there is none.

    Args:
        workload: Conditions on it; may be empty.
        min_gain: As for `ZTable.advise`.
        notes: Further notes on the workload.
    """
    if not workload:
        return TableAdvice(table.name, table.version, None, _NOTHING)
    try:
        found = table.advise(workload, min_gain=min_gain)
        return TableAdvice(table.name, table.version, replace(found, notes=(*found.notes, *notes)))
    except ConfigError as error:
        return TableAdvice(table.name, table.version, None, "; ".join(error.problems))


def advise_report(
    session: SparkSession,
    model: str | None,
    nodes: Nodes,
    target: Path | None,
    *,
    predicates: object = None,
    min_gain: object = None,
    as_json: bool = False,
    scans: Path | None = None,
) -> str:
    """Returns the advice for the table of a model, or for all tables of the project.

    Args:
        model: The model; None for all.
        nodes: ``graph.nodes``, or the nodes of a manifest.
        target: As for `ProjectWorkload`.
        predicates: Conditions in place of what is known of the project's queries.
        min_gain: The gain that a change must have; None for the default.
        scans: As for `ProjectWorkload`.

    Raises:
        ConfigError: An argument is wrong, or a condition does not fit the table.
        DbtRuntimeError: Tables failed. The message names them. The advice for the others is printed.
    """
    gain = MIN_GAIN if min_gain is None else number_between("zlayout_advise: min_gain", min_gain, 0.0, 1.0)
    if predicates:
        tables = chosen_tables(session, model, nodes)
        if len(tables) != 1:
            raise ConfigError(["predicates: conditions belong to one table; give its model too"], "zlayout_advise")
        given = parse_workload(predicates, tables[0].name, "predicates")
        found = [TableAdvice(tables[0].name, tables[0].version, tables[0].advise(given, min_gain=gain))]
        return advice_text(found, as_json=as_json)
    workload = ProjectWorkload(session, nodes, target, scans)

    def advice(table: ZTable) -> TableAdvice:
        return table_advice(table, workload.of(table), gain, workload.join_notes(table))

    def text(found: Mapping[str, TableAdvice]) -> str:
        return advice_text(list(found.values()), as_json=as_json)

    return report_on_tables(session, model, nodes, advice, text, fits=lambda _: True)


@dataclass(frozen=True)
class TableAdvice:
    """The advice for one table.

    Attributes:
        table: ``schema.table``.
        version: The version that was judged.
        advice: The advice; None if nothing can be advised.
        why_not: Why nothing can be advised.
    """

    table: str
    version: int
    advice: Advice | None
    why_not: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Returns the advice as plain values for JSON. docs/advice.md lists the fields."""
        found = {"table": self.table, "version": self.version, "why_not": self.why_not}
        return {**found, **({} if self.advice is None else self.advice.to_dict())}


def advice_text(found: Sequence[TableAdvice], *, as_json: bool) -> str:
    """Returns the advice for some tables, those that would save most bytes first."""
    ordered = sorted(found, key=lambda each: (-(each.advice.saved_bytes if each.advice else -1), each.table))
    if as_json:
        return json_text([each.to_dict() for each in ordered])
    if not ordered:
        return "The project has no dbt-zlayout table: nothing to advise."
    return "\n\n".join("\n".join(_lines(each)) for each in ordered)


def _lines(found: TableAdvice) -> Iterator[str]:
    advice = found.advice
    if advice is None:
        yield f"{found.table}: no advice: {found.why_not}"
        return
    yield f"{found.table}: {advice.why}"
    yield from (f"  {line}" for line in aligned_lines(list(_facts(advice))))
    yield ""
    shown = advice.predicates[:_MOST_CONDITIONS]
    rows = [
        (_cut(each.predicate), f"{each.weight:g}", each.source, f"{each.opened_now:.1%}", f"{each.opened_then:.1%}")
        for each in shown
    ]
    head = ("condition", "weight", "from", "opens now", "then")
    yield from (f"  {line}" for line in ruled_lines(head, rows, right=(1, 3, 4)))
    if len(advice.predicates) > len(shown):
        yield f"  … and {counted(len(advice.predicates) - len(shown), 'more condition')} (JSON shows all)"
    yield from (f"  {each.setting}: {each.why}" for each in advice.settings)
    yield from (f"  note: {note}" for note in advice.notes)


def _facts(advice: Advice) -> Iterator[tuple[str, str]]:
    yield "zorder", _change(advice.zorder_now, advice.zorder)
    if advice.by_workload:
        yield "cuts", "follow the workload, which they need in the config: workload: […], or zorder: auto"
    if advice.partition_by or advice.partition_by_now:
        yield "partition by", _change(advice.partition_by_now, advice.partition_by)
    if advice.bloom:
        yield "bloom", _change(advice.bloom_now, advice.bloom)
    if advice.lookup:
        yield "lookup", f"{', '.join(advice.lookup)} (better than a Bloom filter)"
    if advice.files != advice.files_then:
        yield "files", f"{advice.files:,} -> {advice.files_then:,}"
    before, after = (size_text(round(each * advice.size_bytes)) for each in (advice.opened_now, advice.opened_then))
    yield "reads", f"{before if before == after else f'{before} -> {after}'} of {size_text(advice.size_bytes)} a query"
    if advice.rewrite_bytes:
        paid = "never pays off"
        if advice.payback_queries is not None:
            paid = f"pays off after {counted(advice.payback_queries, 'query')}"
        yield "cost", f"{size_text(advice.rewrite_bytes)} to read and write; {paid}"
    gains = ", ".join(f"{each:.0%}" for each in advice.gains)
    yield "gain", f"{gains} with rows and constants that the search has not seen (needed: {advice.min_gain:.0%})"


def _change(now: Sequence[str], then: Sequence[str]) -> str:
    before, after = (", ".join(each) or "none" for each in (now, then))
    return after if before == after else f"{before} -> {after}"


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
