"""The expression tree: frozen nodes with SQL's three-valued logic and Spark's order of values.

Its leaves are conditions on terms: columns, constants and functions of either.

Spark's order: NaN equals NaN and is above every number, -0.0 equals 0.0, strings are ordered by their UTF-8 bytes,
false is below true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dbt.adapters.zlayout.predicate.literals import column_name, literal, literals
from dbt.adapters.zlayout.predicate.remedies import Remedy

ColumnPath = tuple[str, ...]
"""``('a',)`` is a top-level column, ``('a', 'b')`` field b of struct a; a column named "a.b" is ``('a.b',)``."""


EXPRESSION = "\0expression"
"""First part of the path of an expression that has statistics of its own. It goes on with the expression as the
settings spell it, and with what its values depend on besides the row. No column has such a name."""


@dataclass(frozen=True)
class Column:
    """A column in a condition, or an expression that has statistics as columns have.

    Attributes:
        path: Its path in the table's schema.
        type: Arrow type as Spark stores it: bool, int8 to int64, float32, float64, decimal128, date32,
            ``timestamp('us', 'UTC')`` for TIMESTAMP, ``timestamp('us')`` for TIMESTAMP_NTZ, string or binary.
    """

    path: ColumnPath
    type: pa.DataType

    def sql(self) -> str:
        """Returns the name, with backquotes where needed; of an expression its text."""
        return self.path[1] if self.path[0] == EXPRESSION else column_name(self.path)


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
class Function:
    """A function of one argument whose other arguments are constants; the result for null is null.

    Attributes:
        TEMPLATE: The function in SQL: ``{x}`` is the argument, ``{f}`` the function.
        type: Arrow type of the result.
    """

    TEMPLATE: ClassVar[str]
    type: pa.DataType

    def sql(self, argument: str) -> str:
        """Returns a call of the function as SQL."""
        return self.TEMPLATE.format(f=self, x=argument)


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


class Op(Enum):
    """A comparison of a term with a constant; the enum value is its SQL."""

    EQ = "="
    NE = "<>"
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    EQ_NULL_SAFE = "<=>"
    NE_NULL_SAFE = "IS DISTINCT FROM"


class Expr:
    """A condition on one row: TRUE, FALSE or NULL."""

    # Not an ABC: planning asks for classes a hundred thousand times, and an ABC answers ten times more slowly.
    def sql(self) -> str:
        """Returns readable Spark SQL."""
        raise NotImplementedError


@dataclass(frozen=True)
class Compare(Expr):
    """``operand op value``; the value has the operand's type and may be null."""

    op: Op
    operand: Term
    value: pa.Scalar

    def sql(self) -> str:
        """Returns ``operand op value``."""
        return f"{self.operand.sql()} {self.op.value} {literal(self.value)}"


@dataclass(frozen=True)
class In(Expr):
    """``operand IN (values)``.

    Attributes:
        values: Values of the operand's type, without nulls.
        has_null: Whether the list also has NULL.
    """

    operand: Term
    values: pa.Array
    has_null: bool = False

    def sql(self) -> str:
        """Returns ``operand IN (…)``; a long list is abbreviated."""
        return f"{self.operand.sql()} IN ({literals(self.values, self.has_null)})"


@dataclass(frozen=True)
class NotIn(Expr):
    """``operand NOT IN (values)``, with the attributes of `In`; never TRUE if the list has NULL."""

    operand: Term
    values: pa.Array
    has_null: bool

    def sql(self) -> str:
        """Returns ``operand NOT IN (…)``; a long list is abbreviated."""
        return f"{self.operand.sql()} NOT IN ({literals(self.values, self.has_null)})"


@dataclass(frozen=True)
class IsNull(Expr):
    """``operand IS NULL``."""

    operand: Term

    def sql(self) -> str:
        """Returns ``operand IS NULL``."""
        return f"{self.operand.sql()} IS NULL"


@dataclass(frozen=True)
class IsNotNull(Expr):
    """``operand IS NOT NULL``."""

    operand: Term

    def sql(self) -> str:
        """Returns ``operand IS NOT NULL``."""
        return f"{self.operand.sql()} IS NOT NULL"


@dataclass(frozen=True)
class StartsWith(Expr):
    """``startswith(operand, prefix)``, the same as ``LIKE 'prefix%'``; compares the bytes of strings and binary."""

    operand: Term
    prefix: pa.Scalar

    def sql(self) -> str:
        """Returns ``startswith(operand, prefix)``."""
        return f"startswith({self.operand.sql()}, {literal(self.prefix)})"


@dataclass(frozen=True)
class NotStartsWith(Expr):
    """``NOT startswith(operand, prefix)``."""

    operand: Term
    prefix: pa.Scalar

    def sql(self) -> str:
        """Returns ``NOT startswith(operand, prefix)``."""
        return f"NOT startswith({self.operand.sql()}, {literal(self.prefix)})"


@dataclass(frozen=True)
class Constant(Expr):
    """TRUE, FALSE or, if the value is None, NULL."""

    value: bool | None

    def sql(self) -> str:
        """Returns ``TRUE``, ``FALSE`` or ``NULL``."""
        return "NULL" if self.value is None else str(self.value).upper()


@dataclass(frozen=True)
class And(Expr):
    """TRUE if all children are; no children is TRUE."""

    children: tuple[Expr, ...]

    def sql(self) -> str:
        """Returns the children joined by AND."""
        parts = [f"({child.sql()})" if isinstance(child, Or) else child.sql() for child in self.children]
        return " AND ".join(parts) or "TRUE"


@dataclass(frozen=True)
class Or(Expr):
    """TRUE if any child is; no children is FALSE."""

    children: tuple[Expr, ...]

    def sql(self) -> str:
        """Returns the children joined by OR."""
        parts = [f"({child.sql()})" if isinstance(child, And) else child.sql() for child in self.children]
        return " OR ".join(parts) or "FALSE"


@dataclass(frozen=True)
class Not(Expr):
    """The negation of the child; NULL stays NULL."""

    child: Expr

    def sql(self) -> str:
        """Returns ``NOT (child)``."""
        return f"NOT ({self.child.sql()})"


@dataclass(frozen=True)
class Unknown(Expr):
    """A part that pruning does not understand: TRUE, FALSE or NULL for any row.

    Attributes:
        reason: Why it cannot prune files.
        remedy: What would help; None if nothing would.
        expression: The expression whose statistics would let it prune files; None if there is none.
    """

    text: str
    reason: str
    remedy: Remedy | None = None
    expression: str | None = None

    def sql(self) -> str:
        """Returns the original SQL."""
        return self.text


@dataclass(frozen=True)
class IsTrue(Expr):
    """TRUE where the child is TRUE, FALSE where it is FALSE or NULL."""

    child: Expr

    def sql(self) -> str:
        """Returns ``(child) IS TRUE``."""
        return f"({self.child.sql()}) IS TRUE"


@dataclass(frozen=True)
class IsNotTrue(Expr):
    """FALSE where the child is TRUE, TRUE where it is FALSE or NULL."""

    child: Expr

    def sql(self) -> str:
        """Returns ``(child) IS NOT TRUE``."""
        return f"({self.child.sql()}) IS NOT TRUE"


Evaluator = Callable[[pa.Array], npt.NDArray[np.int8]]
"""The engine's evaluation of a condition: for each value of a term 1 (TRUE), 0 (FALSE), 2 (NULL) or -1 (unknown)."""


@dataclass(frozen=True)
class Evaluated(Expr):
    """A condition that the engine can evaluate on single values of a term. Nothing else of a row decides about it.

    Attributes:
        child: The same condition, as far as rules understand it.
        term: A column, or the local day of one.
        evaluate: The evaluation of the condition, without the negation.
        negated: Whether the node is the negation of what is evaluated. ``child`` is negated already.
    """

    child: Expr
    term: Term
    evaluate: Evaluator = field(compare=False)
    negated: bool = False

    def sql(self) -> str:
        """Returns the condition as rules understand it."""
        return self.child.sql()


@dataclass(frozen=True)
class Same(Expr):
    """One condition, read in several ways. Each child has the same truth value for every row."""

    children: tuple[Expr, ...]

    def sql(self) -> str:
        """Returns the first reading."""
        return self.children[0].sql()


ColumnLeaf = Compare | In | NotIn | IsNull | IsNotNull | StartsWith | NotStartsWith
"""A condition on one term."""


def if_else(condition: Expr, then: Expr, otherwise: Expr) -> Expr:
    """Returns ``IF(condition, then, otherwise)``: ``then`` where the condition is TRUE, else ``otherwise``.

    >>> day = Column(("day",), pa.date32())
    >>> print(if_else(Unknown("f(x)", "no rule"), IsNull(day), IsNotNull(day)).sql())
    ((f(x)) IS TRUE AND day IS NULL) OR ((f(x)) IS NOT TRUE AND day IS NOT NULL)
    """
    return Or((And((IsTrue(condition), then)), And((IsNotTrue(condition), otherwise))))


def leaves(expr: Expr) -> Iterator[ColumnLeaf | Constant | Unknown]:
    """Yields conditions, constants and unknown parts, from left to right."""
    pending = [expr]
    while pending:
        node = pending.pop()
        if isinstance(node, And | Or | Same):
            pending.extend(reversed(node.children))
        elif isinstance(node, Not | IsTrue | IsNotTrue | Evaluated):
            pending.append(node.child)
        elif isinstance(node, ColumnLeaf | Constant | Unknown):
            yield node


def columns_of(expr: Expr) -> frozenset[ColumnPath]:
    """Returns the columns that the expression refers to; columns inside ``Unknown`` parts are not included."""
    operands = [leaf.operand for leaf in leaves(expr) if not isinstance(leaf, Constant | Unknown)]
    operands += [each.term for each in _evaluated_parts(expr)]
    return frozenset(column.path for column in map(column_of, operands) if column is not None)


def expressions_of(expr: Expr) -> tuple[str, ...]:
    """Returns the expressions whose statistics would let unknown parts of a predicate skip files, each once."""
    found = [leaf.expression for leaf in leaves(expr) if isinstance(leaf, Unknown) and leaf.expression is not None]
    return tuple(dict.fromkeys(found))


def _evaluated_parts(expr: Expr) -> Iterator[Evaluated]:
    """Yields the parts that the engine can evaluate on single values."""
    pending = [expr]
    while pending:
        node = pending.pop()
        if isinstance(node, Evaluated):
            yield node
        if isinstance(node, And | Or | Same):
            pending.extend(node.children)
        elif isinstance(node, Not | IsTrue | IsNotTrue | Evaluated):
            pending.append(node.child)
