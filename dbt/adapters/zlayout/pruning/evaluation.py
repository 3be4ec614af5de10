"""A predicate in normal form over the statistics of many files at once: the leaves' rules, joined by AND and OR."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pyarrow as pa

from dbt.adapters.zlayout.predicate.expr import (
    And,
    Column,
    ColumnLeaf,
    ColumnPath,
    Constant,
    Expr,
    Not,
    Or,
    Unknown,
    columns_of,
)
from dbt.adapters.zlayout.pruning.leaves import match
from dbt.adapters.zlayout.pruning.statistics import ColumnBounds, Statistics
from dbt.adapters.zlayout.pruning.trust import Counts, Facts, counts_contradict, facts_of, row_counts
from dbt.adapters.zlayout.pruning.verdict import Flags, Match, all_of, any_of


class Evaluation:
    """Evaluates parts of one predicate; a column's statistics are judged once.

    Args:
        expr: The whole predicate, in normal form.
        statistics: Of the files.

    Attributes:
        file_count: Number of files.
        may_have_rows: False for files that are known to be empty.
    """

    def __init__(self, expr: Expr, statistics: Statistics) -> None:
        self.file_count = len(statistics.row_count)
        found = {path: statistics.column(path) for path in columns_of(expr)}
        self._bounds: dict[ColumnPath, ColumnBounds] = {path: each for path, each in found.items() if each is not None}
        rows = row_counts(statistics.row_count)
        self._contradicted = {path: counts_contradict(bounds, rows) for path, bounds in self._bounds.items()}
        # Either side of a contradiction may be the wrong one: such a row count proves nothing about any column.
        self._rows = reduce(Counts.without, self._contradicted.values(), rows)
        self._facts: dict[Column, Facts | None] = {}
        self._matches: dict[int, tuple[Expr, Match]] = {}
        self.may_have_rows: Flags = ~(self._rows.known & (self._rows.values == 0))

    def match(self, expr: Expr) -> Match:
        """Returns what the expression, a part of the predicate, says of each file."""
        known = self._matches.get(id(expr))
        if known is None:
            # The expression is kept beside its match, so that its id stays its own.
            known = self._matches[id(expr)] = (expr, self._match(expr))
        return known[1]

    def _match(self, expr: Expr) -> Match:
        match expr:
            case And(children):
                return all_of([self.match(child) for child in children]) if children else self._everywhere()
            case Or(children):
                return any_of([self.match(child) for child in children]) if children else self._nowhere()
            case Constant(value):
                return self._everywhere() if value else self._nowhere()
            case Unknown(text, reason):
                return self._unknown(f"not understood: {text} ({reason})" if reason else f"not understood: {text}")
            case Not():
                return self._unknown(f"not in normal form: {expr.sql()}")
            case _:
                return self._leaf(expr)  # type: ignore[arg-type]  # every other node is a leaf on a column

    def facts(self, column: Column) -> Facts | None:
        """Returns what is believed of a column; None where it has no usable statistics for any file."""
        if column not in self._facts:
            bounds = self._bounds.get(column.path)
            self._facts[column] = None if bounds is None else self._judged(column, bounds)
        return self._facts[column]

    def _judged(self, column: Column, bounds: ColumnBounds) -> Facts | None:
        return facts_of(bounds, column.type, self._rows, self._contradicted[column.path])

    def _leaf(self, leaf: ColumnLeaf) -> Match:
        column, name = leaf.column, ".".join(f"`{part}`" for part in leaf.column.path)
        facts = self.facts(column)
        if facts is None:
            bounds = self._bounds.get(column.path)
            if bounds is None:
                return self._unknown(f"no statistics for column {name}")
            return self._unknown(f"statistics of column {name} are of type {bounds.type}, the column of {column.type}")
        if self.file_count and not facts.informed.any():
            return self._unknown(f"no statistics for column {name}")
        try:
            found = match(leaf, facts)
        except pa.ArrowException as error:
            # A comparison that Arrow does not have, for this type or in this version.
            return self._unknown(f"values of column {name} cannot be compared ({type(error).__name__})")
        return found or self._unknown(f"column {name} of type {column.type} is compared with another type")

    def _everywhere(self) -> Match:
        return Match(self.may_have_rows, np.ones(self.file_count, dtype=np.bool_))

    def _nowhere(self) -> Match:
        nothing = np.zeros(self.file_count, dtype=np.bool_)
        return Match(nothing, nothing)

    def _unknown(self, why_not: str) -> Match:
        return Match(self.may_have_rows, np.zeros(self.file_count, dtype=np.bool_), why_not)
