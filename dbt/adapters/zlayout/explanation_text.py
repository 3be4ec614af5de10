"""An explanation as a page for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.text_grid import ruled_lines

if TYPE_CHECKING:
    from dbt.adapters.zlayout.inspect import Explanation

# What leaves a page of about forty lines.
_MOST_FILES, _MOST_CONDITIONS, _MOST_CHARACTERS = 10, 8, 70


def explanation_text(explanation: Explanation, *, verbose: bool) -> str:
    """Renders an explanation.

    Args:
        explanation: Of one scan.
        verbose: All files and all conditions, nothing cut; otherwise what fits a screen.
    """
    return "\n".join(_lines(explanation, _Page(verbose)))


class _Page:
    def __init__(self, verbose: bool) -> None:
        self.verbose = verbose

    def text(self, value: object) -> str:
        """One line, cut where it is long."""
        line = "" if value is None else str(value).replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
        return line if self.verbose or len(line) <= _MOST_CHARACTERS else line[: _MOST_CHARACTERS - 1] + "…"

    def most(self, count: int, limit: int) -> int:
        return count if self.verbose else min(count, limit)


def _lines(explanation: Explanation, page: _Page) -> Iterator[str]:
    total, kept = explanation.total_files, explanation.kept_files
    share = f"{kept / total:.1%}" if total else "-"
    yield explanation.table + (f" (version {explanation.version})" if explanation.version is not None else " (indexed)")
    yield f"  reads {kept:,} of {total:,} files ({share})"
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
        (page.text(row["sql"]), f"{row['skips']:,}" if row["usable"] else "not usable", page.text(row["why_not"]))
        for row in shown
    ]
    yield from _grid(("condition", "skips alone", "why not"), cells)
    yield from _more(len(rows) - len(shown), "conditions")
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
        return "Spark does, by partition, when the query runs"
    return f"zlayout_prune_by('{row['column']}', …) makes a condition of them" if row["skips"] else ""


def _files(files: pa.Table, page: _Page) -> Iterator[str]:
    skipped = pc.equal(files.column("verdict"), "SKIP")
    order = pc.sort_indices(skipped.cast(pa.int8()))
    shown = files.take(order[: page.most(files.num_rows, _MOST_FILES)]).to_pylist()
    rows = [(page.text(row["path"]), row["verdict"], page.text(row["reason"])) for row in shown]
    yield from _grid(("file", "verdict", "reason"), rows)
    yield from _more(files.num_rows - len(shown), "files")


def _more(count: int, what: str) -> Iterator[str]:
    if count > 0:
        yield f"  … and {count:,} more {what} (verbose: true shows them)"


def _grid(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    if rows:
        yield ""
        yield from (f"  {line}" for line in ruled_lines(head, rows))
