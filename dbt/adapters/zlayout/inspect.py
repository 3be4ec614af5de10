"""Why each file is read: the explanation of one scan, as data and as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.explanation_text import explanation_text
from dbt.adapters.zlayout.pruning.advice import advice_for
from dbt.adapters.zlayout.pruning.verdict import Verdict
from dbt.adapters.zlayout.spark.explain import ExplainedScan
from dbt.adapters.zlayout.timeline.entry import CommitHeader


@dataclass(frozen=True)
class Stage:
    """One step of pruning.

    Attributes:
        name: 'partition_stats', 'files' or 'column_stats'.
        files_before: Files that came in.
        files_after: Files that were left.
        seconds: Wall time.
    """

    name: str
    files_before: int
    files_after: int
    seconds: float


_JOINS = pa.schema(
    [
        ("column", pa.string()),
        ("key", pa.string()),
        ("values", pa.int64()),
        ("skips", pa.int64()),
        ("by_partition", pa.bool_()),
    ]
)


def skipped_percent(kept: int, total: int) -> float:
    """Share of files that are not opened, 0 … 100; 100 where there are none."""
    return 100.0 * (total - kept) / total if total else 100.0


@dataclass(frozen=True)
class Explanation:
    """What a scan of one table reads, and why.

    Attributes:
        table: ``schema.table``.
        version: Of the snapshot that was looked at; None for a table that is only indexed.
        predicate: The filters of the scan as the optimizer left them.
        stages: In their order.
        files: ``path`` string, ``verdict`` string (SKIP, READ, ALL_ROWS), ``stage`` string (the step that skipped it),
            ``reason`` string (the statistic that decided).
        conjuncts: ``sql`` string, ``usable`` bool, ``skips`` int64 (files that it skips alone), ``why_not`` string,
            ``advice`` string (what to change).
        joins: ``column`` string, ``key`` string, ``values`` int64 (distinct ones of the small side), ``skips`` int64
            (files that are read and hold none of them), ``by_partition`` bool (Spark skips these by itself).
        problems: What is wrong with the index, if anything; such files are read.
    """

    table: str
    version: int | None
    predicate: str
    stages: tuple[Stage, ...]
    files: pa.Table
    conjuncts: pa.Table
    joins: pa.Table = field(default_factory=_JOINS.empty_table)
    problems: tuple[str, ...] = ()

    @property
    def total_files(self) -> int:
        """Files of the snapshot."""
        return int(self.files.num_rows)

    @property
    def skipped_files(self) -> int:
        """Files that are not opened."""
        return int(pc.sum(pc.equal(self.files.column("verdict"), "SKIP")).as_py() or 0)

    @property
    def kept_files(self) -> int:
        """Files that are read."""
        return self.total_files - self.skipped_files

    @property
    def skipped_percent(self) -> float:
        """Share of the files that are not opened, 0 … 100; 100 for a table without files."""
        return skipped_percent(self.kept_files, self.total_files)

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON; docs/skipping.md has the schema."""
        return {
            "table": self.table,
            "version": self.version,
            "predicate": self.predicate,
            "total_files": self.total_files,
            "kept_files": self.kept_files,
            "skipped_files": self.skipped_files,
            "stages": [vars(stage) for stage in self.stages],
            "conjuncts": self.conjuncts.to_pylist(),
            "joins": self.joins.to_pylist(),
            "files": self.files.to_pylist(),
            "problems": list(self.problems),
        }

    def to_text(self, *, verbose: bool = False) -> str:
        """A page for the terminal, the files that are read first; ``verbose`` for all files and conditions in full."""
        return explanation_text(self, verbose=verbose)


def explanation_of(scan: ExplainedScan) -> Explanation:
    """The explanation of a scan that the engine has looked at."""
    plan, report = scan.filters.plan, scan.filters.report
    names = pa.array([verdict.name for verdict in Verdict], pa.string())

    def short(text: str) -> str:
        # Spark spells columns that it shows itself with catalog, schema and table.
        return text.replace(f"spark_catalog.{scan.table}.", "")

    return Explanation(
        table=scan.table,
        version=scan.opened.version if scan.opened.managed else None,
        predicate=short(scan.filters.predicate.sql()),
        stages=tuple(Stage(each.name, each.files_before, each.files_after, each.seconds) for each in plan.stages),
        files=pa.table(
            {
                "path": scan.opened.files.column("path"),
                "verdict": names.take(pa.array(report.verdict.astype(np.int64))),
                "stage": report.stage,
                "reason": report.reason,
            }
        ),
        conjuncts=pa.table(
            {
                "sql": pa.array([short(each.sql) for each in report.conjuncts], pa.string()),
                "usable": pa.array([each.usable for each in report.conjuncts], pa.bool_()),
                "skips": pa.array([each.skips for each in report.conjuncts], pa.int64()),
                "why_not": pa.array([each.why_not and short(each.why_not) for each in report.conjuncts], pa.string()),
                "advice": pa.array([advice_for(each.why_not) for each in report.conjuncts], pa.string()),
            }
        ),
        joins=pa.Table.from_pylist([vars(each) for each in scan.joins], _JOINS),
        problems=tuple(scan.opened.index.problems),
    )


def explanation_of_table(scans: Sequence[ExplainedScan]) -> Explanation:
    """What the scans of one table read together.

    Args:
        scans: All of one version: that of a table, or those of a merge-on-read table, that of its rows first.

    Returns:
        The first one's, except that files are read which any of them reads.
    """
    first, *others = map(explanation_of, scans)
    files = first.files
    for other in others:
        besides = pc.and_(pc.equal(files["verdict"], "SKIP"), pc.not_equal(other.files["verdict"], "SKIP"))
        columns = {name: pc.if_else(besides, other.files[name], files[name]) for name in files.column_names}
        files = pa.table(columns)
    return replace(first, files=files)


def commit_history(headers: Sequence[CommitHeader]) -> pa.Table:
    """The versions of a table, in the order given, as an Arrow table."""
    return pa.table(
        {
            "version": pa.array([each.version for each in headers], pa.int64()),
            "instant": pa.array([each.instant for each in headers], pa.string()),
            "action": pa.array([each.action.value for each in headers], pa.string()),
            "operation": pa.array([each.operation for each in headers], pa.string()),
            **{
                name: pa.array([_number(each, name) for each in headers], pa.int64())
                for name in ("rows", "rows_inserted", "rows_updated", "rows_deleted")
            },
            "files_added": pa.array([each.files_added for each in headers], pa.int64()),
            "files_removed": pa.array([each.files_removed for each in headers], pa.int64()),
            "bytes_added": pa.array([_number(each, "bytes_added") for each in headers], pa.int64()),
            "committed_at": pa.array([each.committed_ms * 1000 for each in headers], pa.timestamp("us", tz="UTC")),
        }
    )


def _number(header: CommitHeader, name: str) -> int | None:
    found = header.summary.get(name)
    return found if type(found) is int and abs(found) < 2**63 else None
