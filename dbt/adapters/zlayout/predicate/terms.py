"""The operands of conditions: columns, constants and functions of either."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import pyarrow as pa

from dbt.adapters.zlayout.predicate.literals import column_name, literal

ColumnPath = tuple[str, ...]
"""``('a',)`` is a top-level column, ``('a', 'b')`` field b of struct a; a column named "a.b" is ``('a.b',)``."""


@dataclass(frozen=True)
class Column:
    """A column in a condition.

    Attributes:
        path: Its path in the table's schema.
        type: Arrow type as Spark stores it: bool, int8 to int64, float32, float64, decimal128, date32,
            ``timestamp('us', 'UTC')`` for TIMESTAMP, ``timestamp('us')`` for TIMESTAMP_NTZ, string or binary.
    """

    path: ColumnPath
    type: pa.DataType

    def sql(self) -> str:
        """Returns the name, with backquotes where needed."""
        return column_name(self.path)


@dataclass(frozen=True)
class Value:
    """A constant; may be null."""

    scalar: pa.Scalar

    @property
    def type(self) -> pa.DataType:
        """Arrow type of the value."""
        return self.scalar.type

    def sql(self) -> str:
        """Returns the value as a literal."""
        return literal(self.scalar)


@dataclass(frozen=True)
class Function(ABC):
    """A function of one argument whose other arguments are constants; the result for null is null.

    Attributes:
        type: Arrow type of the result.
    """

    type: pa.DataType

    @abstractmethod
    def sql(self, argument: str) -> str:
        """Returns a call of the function as SQL."""


@dataclass(frozen=True)
class Call:
    """A function applied to a term."""

    function: Function
    argument: Term

    @property
    def type(self) -> pa.DataType:
        """Arrow type of the result."""
        return self.function.type

    def sql(self) -> str:
        """Returns the call as SQL."""
        return self.function.sql(self.argument.sql())


Term = Column | Value | Call


def column_of(term: Term) -> Column | None:
    """Returns the column inside a term; None for a constant."""
    while isinstance(term, Call):
        term = term.argument
    return term if isinstance(term, Column) else None
