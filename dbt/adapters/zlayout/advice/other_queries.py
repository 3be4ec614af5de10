"""Queries of the same shapes with other constants: a layout must not suit only yesterday's constants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.advice.sample import Sample, SampledColumn
from dbt.adapters.zlayout.predicate.expr import (
    And,
    Column,
    ColumnPath,
    Compare,
    Expr,
    In,
    IsNotTrue,
    IsTrue,
    Not,
    NotIn,
    NotStartsWith,
    Op,
    Or,
    StartsWith,
    leaves,
)
from dbt.adapters.zlayout.pruning.statistics.validation import widened


def redrawn(predicate: Expr, sample: Sample, seed: int) -> Expr:
    """Returns a predicate of the same shape whose constants lie elsewhere among the rows.

    The constants of one column move together, so that a range keeps its share of the rows; where they come to lie is
    uniformly random over the rows. Lists get random values. Conditions on functions of columns stay as they are.

    Args:
        sample: Rows of the table. Columns that it does not have keep their constants.
        seed: The seed of the random numbers.
    """
    random = np.random.default_rng(seed)
    moves = {
        path: _Move.of(column, positions, random)
        for path, positions in sorted(_constants(predicate, sample).items())
        if len((column := sample.columns[path]).values)
    }
    return _moved(predicate, moves)


def ranges_of(sample: Sample, paths: Iterable[ColumnPath], share: float, seed: int) -> list[Expr]:
    """Returns a range for each column, which holds a share of its rows and lies anywhere among them.

    Args:
        sample: Rows of the table.
        paths: Columns of the sample. One without values gets no range.
        share: The share of the rows, 0 … 1.
        seed: The seed of the random numbers.
    """
    random = np.random.default_rng(seed)
    found: list[Expr] = []
    for path in paths:
        column = sample.columns[path]
        ordered = np.sort(column.rank[(column.rank >= 0) & (column.rank < len(column.values))])
        if not len(ordered):
            continue
        wide = int(share * len(ordered))
        first = int(random.integers(0, len(ordered) - wide))
        name = Column(path, column.values.type)
        low, high = (column.values[int(ordered[each])] for each in (first, first + wide))
        found.append(And((Compare(Op.GE, name, low), Compare(Op.LE, name, high))))
    return found


@dataclass(frozen=True)
class _Move:
    """How the constants of one column move: by a number of rows in the order of its values.

    Attributes:
        ordered: int64[n], ranks of the rows in ascending order.
        by: Rows by which constants move up or, if negative, down.
        random: Draws the values of lists.
    """

    column: SampledColumn
    ordered: npt.NDArray[np.int64]
    by: int
    random: np.random.Generator

    @classmethod
    def of(cls, column: SampledColumn, constants: list[pa.Scalar], random: np.random.Generator) -> _Move:
        rank = column.rank
        ordered = np.sort(rank[(rank >= 0) & (rank < len(column.values))])
        if not len(ordered):
            return cls(column, ordered, 0, random)
        found = [_row_of(column, ordered, each) for each in constants]
        lowest, highest = min(found), max(found)
        room = max(0, len(ordered) - 1 - (highest - lowest))
        return cls(column, ordered, int(random.integers(0, room + 1)) - lowest, random)

    def value(self, constant: pa.Scalar) -> pa.Scalar:
        if not len(self.ordered):
            return constant
        row = min(max(_row_of(self.column, self.ordered, constant) + self.by, 0), len(self.ordered) - 1)
        return self._at(row, constant)

    def values(self, members: pa.Array) -> pa.Array:
        if not len(self.ordered) or not len(members):
            return members
        rows = self.random.integers(0, len(self.ordered), len(members))
        taken = self.column.values.take(pa.array(self.ordered[rows]))
        return pc.unique(taken if taken.type == members.type else taken.cast(members.type))

    def _at(self, row: int, constant: pa.Scalar) -> pa.Scalar:
        found = self.column.values[int(self.ordered[row])]
        return found if found.type == constant.type else found.cast(constant.type)


def _row_of(column: SampledColumn, ordered: npt.NDArray[np.int64], constant: pa.Scalar) -> int:
    """Returns how many of the ordered rows lie below a constant."""
    typed = widened(constant, column.values.type)
    if typed is None or not len(column.values):
        return 0
    below = int(pc.sum(pc.less(column.values, typed)).as_py() or 0)
    return int(np.searchsorted(ordered, below))


def _constants(predicate: Expr, sample: Sample) -> Mapping[ColumnPath, list[pa.Scalar]]:
    found: dict[ColumnPath, list[pa.Scalar]] = {}
    for leaf in leaves(predicate):
        constants: Iterable[pa.Scalar] = ()
        match leaf:
            case Compare(_, Column(path), value) if value.is_valid:
                constants = [value]
            case In(Column(path)) | NotIn(Column(path)) | StartsWith(Column(path)) | NotStartsWith(Column(path)):
                constants = ()
            case _:
                continue
        if path in sample.columns:
            found.setdefault(path, []).extend(constants)
    return {
        path: constants or [sample.columns[path].values[0]]
        for path, constants in found.items()
        if len(sample.columns[path].values)
    }


def _moved(expr: Expr, moves: Mapping[ColumnPath, _Move]) -> Expr:  # noqa: PLR0911 - one return per kind of node
    try:
        match expr:
            case And(children):
                return And(tuple(_moved(child, moves) for child in children))
            case Or(children):
                return Or(tuple(_moved(child, moves) for child in children))
            case Not(child) | IsTrue(child) | IsNotTrue(child):
                return replace(expr, child=_moved(child, moves))
            case Compare(_, Column(path), value) if path in moves and value.is_valid:
                return replace(expr, value=moves[path].value(value))
            case In(Column(path), values) | NotIn(Column(path), values) if path in moves:
                return replace(expr, values=moves[path].values(values))
            case StartsWith(Column(path), prefix) | NotStartsWith(Column(path), prefix) if path in moves:
                return replace(expr, prefix=_prefix(moves[path], prefix))
    except pa.ArrowException:  # the column's values are not values of the constant's type
        return expr
    return expr


def _prefix(move: _Move, prefix: pa.Scalar) -> pa.Scalar:
    drawn = move.values(pa.array([prefix.as_py()], prefix.type))[0].as_py()
    return pa.scalar(drawn[: len(prefix.as_py())], prefix.type)
