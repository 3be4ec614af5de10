"""Explains and measures tables for macros, tests and run-operations, as text, JSON or the rows of a test."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import CompilationError

from dbt.adapters.zlayout.adapter.node_lookup import opened_table
from dbt.adapters.zlayout.adapter.operations.arguments import number_between
from dbt.adapters.zlayout.adapter.output import json_text
from dbt.adapters.zlayout.adapter.relation import ZlayoutRelation, whole_table
from dbt.adapters.zlayout.errors import ConfigError
from dbt.adapters.zlayout.layout.depth import LAST_SINGLE_BUCKET
from dbt.adapters.zlayout.layout.table_verdict import TableFigures, verdict_of
from dbt.adapters.zlayout.quantities import aligned_lines, counted, ruled_lines, size_text
from dbt.adapters.zlayout.table.ztable import ZTable, explain_query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dbt.adapters.zlayout.layout.depth import Overlap
    from dbt.adapters.zlayout.layout.table_verdict import TableVerdict
    from dbt.adapters.zlayout.table.explanation import Explanation
    from dbt.adapters.zlayout.table.measures import ClusteringInformation

_LOG = AdapterLogger("Zlayout")
_MOST_FAILURES = 5
Columns = Sequence[str] | str | None
Row = dict[str, Any]
_USAGE = "zlayout_explain needs {sql: '…'} or {model: …, predicate: '…'}"
_MOST_COLUMNS, _LONGEST_BAR = 20, 40
_HEAD = ("column", "depth", "overlaps", "constant", "unknown", "point", "1 %", "10 %")
_NUMBERS = range(1, len(_HEAD))


def depth_problems(session: SparkSession, relation: ZlayoutRelation | str, most: object, columns: Columns) -> list[Row]:
    """Returns the rows of the test zlayout_depth_at_most: one if the average depth is above ``most``, else none."""
    limit = number_between("zlayout_depth_at_most: max", most, 1.0)
    table = opened_table(session, whole_table(relation, "zlayout_depth_at_most"))
    return _failure_rows(table, depth_problem(table.clustering_information(columns), limit))


def pruning_problems(
    session: SparkSession, relation: ZlayoutRelation | str, predicate: str, percent: object
) -> list[Row]:
    """Returns the rows of the test zlayout_prunes_at_least: one if a condition skips too few files, else none."""
    least = number_between("zlayout_prunes_at_least: percent", percent, 0.0, 100.0)
    table = opened_table(session, whole_table(relation, "zlayout_prunes_at_least"))
    return _failure_rows(table, pruning_problem(table.explain(predicate), predicate, least))


def explain_report(
    session: SparkSession,
    *,
    as_json: bool,
    verbose: bool,
    sql: str | None = None,
    table: str | None = None,
    predicate: str | None = None,
) -> str:
    """Explains a query, or a condition on a table."""
    if (sql is None) == (table is None) or (table is None) != (predicate is None):
        raise CompilationError(_USAGE)
    if sql is not None:
        found = explain_query(session, sql)
    else:
        found = [opened_table(session, str(table)).explain(str(predicate))]
    return explanation_text(found, as_json=as_json, verbose=verbose)


def information_report(
    session: SparkSession,
    table: str,
    columns: Columns,
    as_json: bool,
    verbose: bool = False,
    *,
    with_dbt: bool = True,
) -> str:
    """Gives the verdict on a table, its state, and its layout for some columns."""
    opened = opened_table(session, table)
    information, layout = opened.information(), _layout(opened, columns)
    of_keys = layout if columns is None else _layout(opened, None)
    return information_text(
        information,
        layout if as_json or verbose or columns is not None else None,
        verdict_of(TableFigures.of_information(information), of_keys),
        as_json=as_json,
        verbose=verbose,
        with_dbt=with_dbt,
    )


def _layout(table: ZTable, columns: Columns) -> ClusteringInformation | None:
    try:
        return table.clustering_information(columns)
    except ConfigError:
        if columns is not None:
            raise
        return None  # no column of the table has statistics


def log_failures(lines: Iterable[str]) -> None:
    """Logs the first lines on the failure of a test, and how many more there are: dbt itself only counts its rows."""
    lines = list(lines)
    for line in lines[:_MOST_FAILURES]:
        _LOG.info(line)
    if len(lines) > _MOST_FAILURES:
        _LOG.info(f"… and {len(lines) - _MOST_FAILURES:,} more")


def _failure_rows(table: ZTable, row: Row | None) -> list[Row]:
    """Returns the rows of a test: the one that describes its failure, which is also logged, or none."""
    if row is None:
        return []
    _LOG.info(problem_line(table.name, row))
    return [row]


def explanation_text(explanations: Sequence[Explanation], *, as_json: bool, verbose: bool = False) -> str:
    """Returns the explanations of a query's scans: a page for each, in full with ``verbose``, or JSON."""
    if as_json:
        return json_text([explanation.to_dict() for explanation in explanations])
    if not explanations:
        return "The query reads no dbt-zlayout table: nothing to explain."
    return "\n\n".join(explanation.to_text(verbose=verbose) for explanation in explanations)


def information_text(
    information: Mapping[str, Any],
    layout: ClusteringInformation | None,
    verdict: TableVerdict,
    *,
    as_json: bool,
    verbose: bool = False,
    with_dbt: bool = True,
) -> str:
    """Returns the verdict on one table, then its state and the layout of its files.

    Args:
        information: From ``ZTable.information()``.
        layout: The layout of its files. Without ``verbose`` it is shown only if it is given.
        verdict: The verdict on the table.
        as_json: Whether to return everything as JSON.
        verbose: Whether to list the whole state.
        with_dbt: Whether commands are run-operations of dbt; else those of ``zlayout``.
    """
    if as_json:
        clustering = None if layout is None else layout.to_dict()
        return json_text({**information, "clustering": clustering, "verdict": verdict.to_dict()})
    lines = list(_verdict_lines(verdict, with_dbt))
    if verbose:
        width = max(map(len, information), default=0)
        lines += ["", *(f"{key.replace('_', ' '):<{width}}  {_readable(each)}" for key, each in information.items())]
    else:
        lines += [_state_line(information)]
    if layout is not None:
        lines += ["", clustering_text(layout)]
    if not verbose:
        lines += [f"{'verbose: true' if with_dbt else '--verbose'} shows the whole state"]
    return "\n".join(lines)


def _verdict_lines(verdict: TableVerdict, with_dbt: bool) -> Iterator[str]:
    yield verdict.sentence
    for problem in verdict.problems:
        if problem.text != verdict.sentence.partition(": ")[2]:
            yield f"  {problem.text}"
        if problem.remedy is not None:
            yield f"  {problem.remedy.text(with_dbt=with_dbt)}"


def _state_line(information: Mapping[str, Any]) -> str:
    keys = ", ".join(information["zorder"])
    return (
        f"{information['name']} ({information['level']}, version {information['version']:,}): "
        f"{counted(information['rows'], 'row')} in {counted(information['files'], 'file')}, "
        f"{size_text(information['bytes'])}, {f'clustered by {keys}' if keys else 'no clustering keys'}"
    )


def clustering_text(found: ClusteringInformation) -> str:
    """Returns a page with figures for each column and for all columns together, then the number of files by depth."""
    return "\n".join(_lines(found))


def depth_problem(found: ClusteringInformation, most: float) -> dict[str, Any] | None:
    """Returns the row of the test zlayout_depth_at_most, or None if the test passes.

    Args:
        found: The layout for the test's columns.
        most: The highest average depth that passes.
    """
    if found.average_depth <= most:
        return None
    columns = ", ".join(found.columns)
    if not found.managed:
        advice = f"other tools write this table: have them sort by {columns}, or build a model on it with zorder"
    elif set(found.columns) <= set(found.zorder):
        advice = "cluster the table: dbt run-operation zlayout_cluster, or clustering='inline' in the model"
    else:
        advice = f"list {columns} in zorder and cluster the table with zlayout_cluster, or test only the keys"
    return {"columns": columns, "average_depth": round(found.average_depth, 4), "at_most": most, "what_to_do": advice}


def pruning_problem(explained: Explanation, predicate: str, percent: float) -> dict[str, Any] | None:
    """Returns the row of the test zlayout_prunes_at_least, or None if the test passes.

    Args:
        explained: The explanation of the condition.
        predicate: The condition, as written in the test.
        percent: The lowest share of skipped files that passes, 0 … 100. A table without files passes.
    """
    if explained.skipped_percent >= percent:
        return None
    advice = list(dict.fromkeys(each for each in explained.conjuncts.column("advice").to_pylist() if each))
    advice += explained.problems or [_pruning_advice(explained.total_files, percent)]
    return {
        "predicate": predicate,
        "skipped_percent": round(explained.skipped_percent, 4),
        "at_least": percent,
        "kept_files": explained.kept_files,
        "total_files": explained.total_files,
        "what_to_do": "; ".join(advice),
    }


def _pruning_advice(files: int, percent: float) -> str:
    # If any row meets the condition, at least one file is read.
    most = 100 * (files - 1) / files
    if most >= percent:
        return (
            "cluster the table by the columns of the condition, without partitions on others; zlayout_explain says why "
            "each file is read"
        )
    share = "cannot skip it" if files == 1 else f"can skip at most {math.floor(10 * most) / 10:g} percent of them"
    return (
        f"the table has {counted(files, 'file')}, and a condition that matches a row {share}; lower target_file_size to"
        " get more files, or add the test when the table has grown"
    )


def problem_line(table: str, problem: Mapping[str, Any]) -> str:
    """Returns the row of a failing test, in one line that ends with what to do."""
    figures = {name.replace("_", " "): value for name, value in problem.items() if name != "what_to_do"}
    return f"{table}: {', '.join(f'{name} {value}' for name, value in figures.items())}; {problem['what_to_do']}"


def _readable(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"
    if isinstance(value, Mapping):
        nested = any(isinstance(each, Mapping) for each in value.values())
        parts = [f"{key}{': ' if nested else '='}{_readable(each)}" for key, each in value.items()]
        return ("; " if nested else ", ").join(parts) or "-"
    if isinstance(value, Iterable) and not isinstance(value, str):
        return ", ".join(map(_readable, value)) or "-"
    return "-" if value is None else str(value)


def _lines(found: ClusteringInformation) -> Iterator[str]:
    yield f"layout for {', '.join(found.columns)}"
    shown = found.by_column[:_MOST_COLUMNS]
    rows = [
        _row(each.column, each.overlap, each.constant_files, each.unknown_files, each.expected_files) for each in shown
    ]
    if len(found.columns) > 1:
        rows.append(_row("all together", found.overlap, found.constant_files, None, found.expected_files))
    yield from (f"  {line}" for line in ruled_lines(_HEAD, rows, right=_NUMBERS))
    if len(found.by_column) > len(shown):
        yield f"  … and {counted(len(found.by_column) - len(shown), 'more column')} (JSON shows all)"
    yield "  point, 1 %, 10 %: expected files read for one value, and for ranges of 1 % and 10 % of the rows"
    yield from _histogram(found)
    yield from (f"  note: {problem}" for problem in found.problems)


def _row(
    name: str, overlap: Overlap, constant: int | None, unknown: int | None, expected: Mapping[str, float]
) -> tuple[str, ...]:
    reads = [expected.get(condition) for condition in ("point", "range_1_percent", "range_10_percent")]
    figures = (overlap.average_depth, overlap.average_overlaps, constant, unknown, *reads)
    return (name, *map(_number, figures))


def _histogram(found: ClusteringInformation) -> Iterator[str]:
    counts = {top: count for top, count in found.depth_histogram.items() if count}
    if not counts:
        return
    yield ""
    files = f"{found.overlap.measured_files:,} of {counted(found.files, 'file')}"
    error = f", averages accurate to ±{found.overlap.depth_error:,.2f}" if found.overlap.depth_error else ""
    yield f"  depth of {files}{error}"
    longest = max(counts.values())
    rows = [
        (
            f"{top:,}" if top <= LAST_SINGLE_BUCKET else f"… {top:,}",
            f"{count:,}",
            "#" * -(-count * _LONGEST_BAR // longest),
        )
        for top, count in counts.items()
    ]
    yield from (f"  {line}" for line in aligned_lines(rows, right=(0, 1)))


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"
