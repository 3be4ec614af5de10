"""Explains why a scan reads each file, as data and as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.config.table_config import OptionalIndexes
from dbt.adapters.zlayout.predicate.expr import Expr, columns_of
from dbt.adapters.zlayout.pruning.reasons import ConjunctReport, explained_verdicts, without_condition
from dbt.adapters.zlayout.pruning.scan import ScanStage
from dbt.adapters.zlayout.pruning.statistics.verdict import Verdict
from dbt.adapters.zlayout.quantities import counted, ruled_lines, size_text
from dbt.adapters.zlayout.spark.catalog.session_catalog import TableRef
from dbt.adapters.zlayout.spark.index.lacking_indexes import lacking_expressions, lacking_parts
from dbt.adapters.zlayout.spark.read.conditions import predicates_that_fit
from dbt.adapters.zlayout.spark.read.explain import ExplainedScan, empty_scan, explain_predicate
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# These limits keep a page to about forty lines.
_MOST_FILES, _MOST_CONDITIONS, _MOST_CHARACTERS = 10, 8, 70


_JOINS = pa.schema(
    [
        ("column", pa.string()),
        ("key", pa.string()),
        ("values", pa.int64()),
        ("skips", pa.int64()),
        ("by_partition", pa.bool_()),
    ]
)


@dataclass(frozen=True)
class Explanation:
    """The files that a scan of one table reads, and why.

    Attributes:
        table: ``schema.table``.
        version: The version of the snapshot; None for a table that is only indexed.
        predicate: The scan's filters after Spark's optimizer.
        stages: The pruning steps in order: 'partition_stats', 'files', 'column_stats', 'expression_stats', 'lookup' and
            'bloom', as far as they were needed.
        files: ``path`` string, ``verdict`` string (SKIP, READ, ALL_ROWS), ``stage`` string (the step that skipped it),
            ``reason`` string (the statistic that decided), ``rows`` int64, ``bytes`` int64.
        conjuncts: ``sql`` string, ``usable`` bool, ``skips`` int64 (files that this condition alone skips),
            ``why_not`` string (why it is not usable), ``advice`` string (what to change).
        joins: ``column`` string, ``key`` string, ``values`` int64 (distinct values of the small side), ``skips`` int64
            (files that are read but contain none of the values), ``by_partition`` bool (Spark skips these itself).
        problems: Problems of the index. The files they concern are read.
    """

    table: str
    version: int | None
    predicate: str
    stages: tuple[ScanStage, ...]
    files: pa.Table
    conjuncts: pa.Table
    joins: pa.Table = field(default_factory=_JOINS.empty_table)
    problems: tuple[str, ...] = ()

    @property
    def total_files(self) -> int:
        """The number of files in the snapshot."""
        return int(self.files.num_rows)

    @property
    def skipped_files(self) -> int:
        """The number of files that are not opened."""
        return int(pc.sum(pc.equal(self.files.column("verdict"), "SKIP")).as_py() or 0)

    @property
    def kept_files(self) -> int:
        """The number of files that are read."""
        return self.total_files - self.skipped_files

    @property
    def read(self) -> pa.ChunkedArray:
        """Whether each file is read, bool[n]."""
        return pc.not_equal(self.files["verdict"], "SKIP")

    @property
    def total_rows(self) -> int:
        """The rows of all files."""
        return _total(self.files, "rows")

    @property
    def kept_rows(self) -> int:
        """The rows of the files that are read."""
        return _total(self.files.filter(self.read), "rows")

    @property
    def total_bytes(self) -> int:
        """The size of all files."""
        return _total(self.files, "bytes")

    @property
    def kept_bytes(self) -> int:
        """The size of the files that are read."""
        return _total(self.files.filter(self.read), "bytes")

    @property
    def skipped_percent(self) -> float:
        """The share of the files that are not opened, 0 … 100; 100 for a table without files."""
        return 100.0 * self.skipped_files / self.total_files if self.total_files else 100.0

    def to_dict(self) -> dict[str, Any]:
        """Returns the explanation as plain values for JSON. docs/skipping.md has the schema."""
        return {
            "table": self.table,
            "version": self.version,
            "predicate": self.predicate,
            "total_files": self.total_files,
            "kept_files": self.kept_files,
            "skipped_files": self.skipped_files,
            "kept_rows": self.kept_rows,
            "skipped_rows": self.total_rows - self.kept_rows,
            "kept_bytes": self.kept_bytes,
            "skipped_bytes": self.total_bytes - self.kept_bytes,
            "stages": [vars(stage) for stage in self.stages],
            "conjuncts": self.conjuncts.to_pylist(),
            "joins": self.joins.to_pylist(),
            "files": self.files.to_pylist(),
            "problems": list(self.problems),
        }

    def to_text(self, *, verbose: bool = False) -> str:
        """Returns a page for the terminal, with read files first; ``verbose`` lists every file and full conditions."""
        return "\n".join(_lines(self, _Page(verbose)))


def explanation_of(spark: SparkSession, scan: ExplainedScan) -> Explanation:
    """Returns the explanation of a scan that the engine has analyzed."""
    plan, report = scan.filters.plan, scan.filters.report
    managed = scan.opened.managed
    names = pa.array([verdict.name for verdict in Verdict], pa.string())

    def short(text: str) -> str:
        # In its own output Spark qualifies columns with catalog, schema and table.
        return text.replace(f"spark_catalog.{scan.table}.", "")

    return Explanation(
        table=scan.table,
        version=scan.opened.version if managed else None,
        predicate=short(scan.filters.predicate.sql()),
        stages=tuple(plan.stages),
        files=pa.table(
            {
                "path": scan.opened.files.column("path"),
                "verdict": names.take(pa.array(report.verdict.astype(np.int64))),
                "stage": report.stage,
                "reason": report.reason,
                "rows": scan.opened.files.column("row_count"),
                "bytes": scan.opened.files.column("size_bytes"),
            }
        ),
        conjuncts=pa.table(
            {
                "sql": pa.array([short(each.sql) for each in report.conjuncts], pa.string()),
                "usable": pa.array([each.usable for each in report.conjuncts], pa.bool_()),
                "skips": pa.array([each.skips for each in report.conjuncts], pa.int64()),
                "why_not": pa.array([each.why_not and short(each.why_not) for each in report.conjuncts], pa.string()),
                "advice": pa.array([each.advice(managed=managed) for each in report.conjuncts], pa.string()),
            }
        ),
        joins=pa.Table.from_pylist([vars(each) for each in scan.joins], _JOINS),
        problems=(*scan.opened.index.problems, *lacking_parts(scan.opened), *lacking_expressions(spark, scan.opened)),
    )


def explain(spark: SparkSession, table: TableRef, opened: TableSnapshot, predicate_sql: str) -> Explanation:
    """Explains ``select * … where <predicate>``. See ``ZTable.explain``.

    A merge-on-read table has several scans, and the scan of its rows comes first: the explanation is that of the first
    scan, in which a file is read if any of the scans reads it.
    """
    scans = explain_predicate(spark, table, opened, predicate_sql) or [empty_scan(table, opened)]
    first, *others = (explanation_of(spark, scan) for scan in scans)
    files = first.files
    for other in others:
        only_in_other = pc.and_(pc.equal(files["verdict"], "SKIP"), pc.not_equal(other.files["verdict"], "SKIP"))
        columns = {name: pc.if_else(only_in_other, other.files[name], files[name]) for name in files.column_names}
        files = pa.table(columns)
    return replace(first, files=files)


class _Page:
    def __init__(self, verbose: bool) -> None:
        self.verbose = verbose

    def text(self, value: object) -> str:
        """Returns the value on one line. A long line is cut unless the page is verbose."""
        line = "" if value is None else str(value).replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
        return line if self.verbose or len(line) <= _MOST_CHARACTERS else line[: _MOST_CHARACTERS - 1] + "…"

    def most(self, count: int, limit: int) -> int:
        return count if self.verbose else min(count, limit)


def _lines(explanation: Explanation, page: _Page) -> Iterator[str]:
    total, kept = explanation.total_files, explanation.kept_files
    share = f" ({kept / total:.1%})" if total else ""
    yield explanation.table + (f" (version {explanation.version})" if explanation.version is not None else " (indexed)")
    yield f"  reads {kept:,} of {counted(total, 'file')}{share}"
    if total:
        rows, size = explanation.total_rows, explanation.total_bytes
        yield (
            f"  skips {rows - explanation.kept_rows:,} of {counted(rows, 'row')}, "
            f"{size_text(size - explanation.kept_bytes)} of {size_text(size)}"
        )
    yield f"  where {page.text(explanation.predicate)}"
    stages = [
        (each.name, f"{each.files_before:,}", f"{each.files_after:,}", f"{each.seconds * 1000:.1f}")
        for each in explanation.stages
    ]
    yield from _grid(("stage", "before", "after", "ms"), stages)
    yield from _conditions(explanation.conjuncts, page)
    yield from _joins(explanation.joins, page)
    yield from _files(explanation.files, page)
    yield from (f"  note: {problem}" for problem in explanation.problems)


def _conditions(conjuncts: pa.Table, page: _Page) -> Iterator[str]:
    rows = conjuncts.to_pylist()
    shown = rows[: page.most(len(rows), _MOST_CONDITIONS)]
    cells = [
        (
            page.text(row["sql"]),
            f"{row['skips']:,}" if row["usable"] else "not usable",
            page.text(without_condition(row["why_not"] or "", row["sql"])),
        )
        for row in shown
    ]
    yield from _grid(("condition", "skips alone", "why not"), cells)
    yield from _more(len(rows) - len(shown), "condition")
    for row in shown:
        if row["advice"]:
            yield f"  `{page.text(row['sql'])}`: {row['advice']}"


def _joins(joins: pa.Table, page: _Page) -> Iterator[str]:
    rows = joins.to_pylist()
    yield from _grid(
        ("join", "values", "would skip", "note"),
        [
            (page.text(f"{row['column']} = {row['key']}"), f"{row['values']:,}", f"{row['skips']:,}", _join_note(row))
            for row in rows
        ],
    )


def _join_note(row: Mapping[str, Any]) -> str:
    if row["by_partition"]:
        return "Spark skips these by partition when the query runs"
    return f"zlayout_prune_by('{row['column']}', …) makes a condition of these values" if row["skips"] else ""


def _files(files: pa.Table, page: _Page) -> Iterator[str]:
    lines = files.select(["path", "verdict", "reason"]) if page.verbose else _by_folder(files)
    skipped = pc.equal(lines.column("verdict"), "SKIP")
    order = pc.array_sort_indices(skipped.cast(pa.int8()).combine_chunks())
    shown = lines.take(order[: page.most(lines.num_rows, _MOST_FILES)]).to_pylist()
    rows = [(page.text(row["path"]), row["verdict"], page.text(row["reason"])) for row in shown]
    yield from _grid(("file", "verdict", "reason"), rows)
    yield from _more(lines.num_rows - len(shown), "line" if lines.num_rows < files.num_rows else "file")


def _by_folder(files: pa.Table) -> pa.Table:
    """Returns one line for the files of a partition that have the same verdict; other files have a line each."""
    folder = pc.replace_substring_regex(files.column("path"), r"[^/]*$", "")
    if not pc.any(pc.not_equal(folder, "")).as_py():
        return files.select(["path", "verdict", "reason"])
    # A file outside of all folders is a group of its own.
    group = pc.if_else(pc.equal(folder, ""), files.column("path"), folder)
    grouped = (
        pa.table({"group": group, **{name: files.column(name) for name in ("path", "verdict", "reason")}})
        .group_by(["group", "verdict"], use_threads=False)
        .aggregate([("path", "count"), ("path", "first"), ("reason", "first"), ("reason", "count_distinct")])
    )
    count = grouped["path_count"]
    counts = pc.binary_join_element_wise(grouped["group"], "  ", count.cast(pa.string()), " files", "")
    more = pc.if_else(pc.greater(grouped["reason_count_distinct"], 1), " …", "")
    return pa.table(
        {
            "path": pc.if_else(pc.equal(count, 1), grouped["path_first"], counts),
            "verdict": grouped["verdict"],
            "reason": pc.binary_join_element_wise(pc.fill_null(grouped["reason_first"], ""), more, ""),
        }
    )


def _total(files: pa.Table, column: str) -> int:
    return int(pc.sum(files[column], min_count=0).as_py())


def _more(count: int, noun: str) -> Iterator[str]:
    if count > 0:
        yield f"  … and {counted(count, f'more {noun}')} (verbose shows all)"


def _grid(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    if rows:
        yield ""
        yield from (f"  {line}" for line in ruled_lines(head, rows))


@dataclass(frozen=True)
class ConditionReads:
    """What a condition reads.

    Attributes:
        rows_read: Rows in the files that it reads.
        bytes_read: Size of the files that it reads.
        parts: What each of its parts that AND joins does by itself.
    """

    condition: str
    files_read: int
    files_total: int
    rows_read: int
    rows_total: int
    bytes_read: int
    parts: tuple[ConjunctReport, ...]

    @property
    def opened(self) -> float:
        """The share of the rows that lie in files which it reads, 0 … 1."""
        return self.rows_read / self.rows_total if self.rows_total else 0.0


def reads_of(opened: TableSnapshot, predicate: Expr, condition: str) -> ConditionReads:
    """Returns what a predicate reads of a version."""
    kept = opened.scan(predicate).candidates
    rows, sizes = (np.asarray(opened.files.column(name).to_numpy()) for name in ("row_count", "size_bytes"))
    parts = conjunct_reports(opened, predicate)
    return ConditionReads(
        condition,
        int(kept.sum()),
        len(kept),
        int(rows[kept].sum()),
        int(rows.sum()),
        int(sizes[kept].sum()),
        parts,
    )


def conjunct_reports(opened: TableSnapshot, predicate: Expr) -> tuple[ConjunctReport, ...]:
    """Returns what each conjunct of a predicate does by itself, by the statistics of a version's files."""
    statistics = opened.statistics.statistics(opened.files, columns_of(predicate))
    return explained_verdicts(predicate, statistics).conjuncts


def reads_of_conditions(
    spark: SparkSession, opened: TableSnapshot, conditions: Sequence[str]
) -> list[ConditionReads | None]:
    """Returns what conditions read of a version; None for each that does not fit its columns."""
    expressions = OptionalIndexes.of_stored(opened.snapshot.layout).expressions
    predicates = predicates_that_fit(spark, opened.row_schema_json, conditions, expressions)
    return [
        None if predicate is None else reads_of(opened, predicate, condition)
        for condition, predicate in zip(conditions, predicates, strict=True)
    ]
