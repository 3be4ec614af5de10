"""Why each file is read: the explanation of one scan, as data and as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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


@dataclass(frozen=True)
class Explanation:
    """What a scan of one table reads, and why.

    Attributes:
        table: ``schema.table``.
        version: Of the snapshot that was looked at; None for a table that is only indexed.
        predicate: The filters of the scan as the optimizer left them.
        stages: In their order.
        files: ``path`` string, ``verdict`` string (SKIP, READ, ALL_ROWS), ``reason`` string.
        conjuncts: ``sql`` string, ``usable`` bool, ``skips`` int64 (files that it skips alone), ``why_not`` string.
        problems: What is wrong with the index, if anything; such files are read.
    """

    table: str
    version: int | None
    predicate: str
    stages: tuple[Stage, ...]
    files: pa.Table
    conjuncts: pa.Table
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

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON."""
        return {
            "table": self.table,
            "version": self.version,
            "predicate": self.predicate,
            "total_files": self.total_files,
            "kept_files": self.kept_files,
            "skipped_files": self.skipped_files,
            "stages": [vars(stage) for stage in self.stages],
            "conjuncts": self.conjuncts.to_pylist(),
            "files": self.files.to_pylist(),
            "problems": list(self.problems),
        }

    def to_text(self, most_files: int = 20) -> str:
        """A page for the terminal; the files that are read come first."""
        share = f"{self.kept_files / self.total_files:.1%}" if self.total_files else "-"
        lines = [
            f"{self.table}" + (f" (version {self.version})" if self.version is not None else " (indexed)"),
            f"  reads {self.kept_files:,} of {self.total_files:,} files ({share})",
            f"  where {self.predicate}",
            "",
            *_grid(
                ("stage", "before", "after", "ms"),
                [
                    (each.name, f"{each.files_before:,}", f"{each.files_after:,}", f"{each.seconds * 1000:.1f}")
                    for each in self.stages
                ],
            ),
            "",
            *_grid(
                ("condition", "skips alone", "note"),
                [(row["sql"], f"{row['skips']:,}", row["why_not"] or "") for row in self.conjuncts.to_pylist()],
            ),
            "",
            *_grid(
                ("file", "verdict", "reason"),
                [(row["path"], row["verdict"], row["reason"] or "") for row in self._most_telling(most_files)],
            ),
        ]
        if self.total_files > most_files:
            lines.append(f"  … and {self.total_files - most_files:,} more files (all with json: true)")
        lines += [f"  note: {problem}" for problem in self.problems]
        return "\n".join(lines)

    def _most_telling(self, count: int) -> list[Mapping[str, Any]]:
        skipped = pc.equal(self.files.column("verdict"), "SKIP")
        order = pc.sort_indices(skipped.cast(pa.int8()))
        rows: list[Mapping[str, Any]] = self.files.take(order[:count]).to_pylist()
        return rows


def _grid(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    if not rows:
        return []
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    cells = [head, tuple("-" * width for width in widths), *rows]
    return [
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells
    ]


def explanation_of(scan: ExplainedScan) -> Explanation:
    """The explanation of a scan that the engine has looked at."""
    pruned, plan = scan.plan.pruned, scan.plan
    names = pa.array([verdict.name for verdict in Verdict], pa.string())
    verdicts = np.where(plan.candidates, pruned.verdict, Verdict.SKIP)
    reasons = pa.array(pruned.reason, pa.string())
    return Explanation(
        table=scan.table,
        version=scan.opened.version if scan.opened.managed else None,
        predicate=scan.predicate.sql(),
        stages=tuple(Stage(each.name, each.files_before, each.files_after, each.seconds) for each in plan.stages),
        files=pa.table(
            {
                "path": scan.opened.files.column("path"),
                "verdict": names.take(pa.array(verdicts.astype(np.int64))),
                "reason": reasons,
            }
        ),
        conjuncts=pa.table(
            {
                "sql": pa.array([each.sql for each in pruned.conjuncts], pa.string()),
                "usable": pa.array([each.usable for each in pruned.conjuncts], pa.bool_()),
                "skips": pa.array([each.skips for each in pruned.conjuncts], pa.int64()),
                "why_not": pa.array([each.why_not for each in pruned.conjuncts], pa.string()),
            }
        ),
        problems=tuple(scan.opened.index.problems),
    )


def commit_history(headers: Sequence[CommitHeader]) -> pa.Table:
    """The versions of a table, in the order given, as an Arrow table."""
    return pa.table(
        {
            "version": pa.array([each.version for each in headers], pa.int64()),
            "instant": pa.array([each.instant for each in headers], pa.string()),
            "action": pa.array([each.action.value for each in headers], pa.string()),
            "operation": pa.array([each.operation for each in headers], pa.string()),
            "rows": pa.array([each.summary.get("rows") for each in headers], pa.int64()),
            "files_added": pa.array([each.files_added for each in headers], pa.int64()),
            "files_removed": pa.array([each.files_removed for each in headers], pa.int64()),
            "bytes_added": pa.array([each.summary.get("bytes_added") for each in headers], pa.int64()),
            "committed_at": pa.array([each.committed_ms * 1000 for each in headers], pa.timestamp("us", tz="UTC")),
        }
    )
