"""The expression tree: frozen nodes with SQL's three-valued logic and Spark's order of values.

Spark's order: NaN equals NaN and is above every number, -0.0 equals 0.0, strings go by their UTF-8 bytes, false
before true.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

import pyarrow as pa

from dbt.adapters.zlayout.predicate.literals import column_name, literal, literals

ColumnPath = tuple[str, ...]
"""``('a',)`` is a top-level column, ``('a', 'b')`` field b of struct a; a column named "a.b" is ``('a.b',)``."""


class Op(Enum):
    """A comparison of a column with a constant; the value is its SQL."""

    EQ = "="
    NE = "<>"
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    EQ_NULL_SAFE = "<=>"
    NE_NULL_SAFE = "IS DISTINCT FROM"


class Expr(ABC):
    """A condition on one row: TRUE, FALSE or NULL."""

    @abstractmethod
    def sql(self) -> str:
        """Returns readable Spark SQL."""


@dataclass(frozen=True)
class Column:
    """A column that a condition looks at.

    Attributes:
        path: Where it is in the table's schema.
        type: Arrow type as Spark stores it: bool, int8 to int64, float32, float64, decimal128, date32,
            ``timestamp('us', 'UTC')`` for TIMESTAMP, ``timestamp('us')`` for TIMESTAMP_NTZ, string or binary.
    """

    path: ColumnPath
    type: pa.DataType

    def sql(self) -> str:
        """Returns the name, backquoted where it must be."""
        return column_name(self.path)


@dataclass(frozen=True)
class Compare(Expr):
    """``column op value``; the value is typed as the column and may be null."""

    op: Op
    column: Column
    value: pa.Scalar

    def sql(self) -> str:
        """Returns ``column op value``."""
        return f"{self.column.sql()} {self.op.value} {literal(self.value)}"


@dataclass(frozen=True)
class In(Expr):
    """``column IN (values)``; the values are typed as the column, not null; has_null says that NULL was listed too."""

    column: Column
    values: pa.Array
    has_null: bool = False

    def sql(self) -> str:
        """Returns ``column IN (…)``, a long list abbreviated."""
        return f"{self.column.sql()} IN ({literals(self.values, self.has_null)})"


@dataclass(frozen=True)
class NotIn(Expr):
    """``column NOT IN (values)``; with a NULL in the list it is never TRUE."""

    column: Column
    values: pa.Array
    has_null: bool = False

    def sql(self) -> str:
        """Returns ``column NOT IN (…)``, a long list abbreviated."""
        return f"{self.column.sql()} NOT IN ({literals(self.values, self.has_null)})"


@dataclass(frozen=True)
class IsNull(Expr):
    """``column IS NULL``."""

    column: Column

    def sql(self) -> str:
        """Returns ``column IS NULL``."""
        return f"{self.column.sql()} IS NULL"


@dataclass(frozen=True)
class IsNotNull(Expr):
    """``column IS NOT NULL``."""

    column: Column

    def sql(self) -> str:
        """Returns ``column IS NOT NULL``."""
        return f"{self.column.sql()} IS NOT NULL"


@dataclass(frozen=True)
class StartsWith(Expr):
    """``startswith(column, prefix)``, which is ``LIKE 'prefix%'``; on strings and binary, by bytes."""

    column: Column
    prefix: pa.Scalar

    def sql(self) -> str:
        """Returns ``startswith(column, prefix)``."""
        return f"startswith({self.column.sql()}, {literal(self.prefix)})"


@dataclass(frozen=True)
class NotStartsWith(Expr):
    """``NOT startswith(column, prefix)``."""

    column: Column
    prefix: pa.Scalar

    def sql(self) -> str:
        """Returns ``NOT startswith(column, prefix)``."""
        return f"NOT startswith({self.column.sql()}, {literal(self.prefix)})"


@dataclass(frozen=True)
class Constant(Expr):
    """TRUE, FALSE, or NULL where the value is None."""

    value: bool | None

    def sql(self) -> str:
        """Returns ``TRUE``, ``FALSE`` or ``NULL``."""
        return "NULL" if self.value is None else str(self.value).upper()


@dataclass(frozen=True)
class And(Expr):
    """All of the children; no children is TRUE."""

    children: tuple[Expr, ...]

    def sql(self) -> str:
        """Returns the children joined by AND."""
        parts = [f"({child.sql()})" if isinstance(child, Or) else child.sql() for child in self.children]
        return " AND ".join(parts) or "TRUE"


@dataclass(frozen=True)
class Or(Expr):
    """Any of the children; no children is FALSE."""

    children: tuple[Expr, ...]

    def sql(self) -> str:
        """Returns the children joined by OR."""
        parts = [f"({child.sql()})" if isinstance(child, And) else child.sql() for child in self.children]
        return " OR ".join(parts) or "FALSE"


@dataclass(frozen=True)
class Not(Expr):
    """The opposite of the child; NULL stays NULL."""

    child: Expr

    def sql(self) -> str:
        """Returns ``NOT (child)``."""
        return f"NOT ({self.child.sql()})"


@dataclass(frozen=True)
class Unknown(Expr):
    """Something that is not understood: TRUE, FALSE or NULL for any row.

    Attributes:
        text: Its SQL.
        reason: Why it says nothing about files.
    """

    text: str
    reason: str

    def sql(self) -> str:
        """Returns the SQL as it was given."""
        return self.text


ColumnLeaf = Compare | In | NotIn | IsNull | IsNotNull | StartsWith | NotStartsWith
"""A condition on one column."""


def leaves(expr: Expr) -> Iterator[ColumnLeaf | Constant | Unknown]:
    """Yields the parts that are not And, Or or Not, from left to right."""
    pending = [expr]
    while pending:
        node = pending.pop()
        if isinstance(node, And | Or):
            pending.extend(reversed(node.children))
        elif isinstance(node, Not):
            pending.append(node.child)
        elif isinstance(node, ColumnLeaf | Constant | Unknown):
            yield node


def columns_of(expr: Expr) -> frozenset[ColumnPath]:
    """Returns the columns that the expression looks at; those inside ``Unknown`` parts are not known."""
    return frozenset(leaf.column.path for leaf in leaves(expr) if not isinstance(leaf, Constant | Unknown))
