"""Evaluates conditions of a query on single values of a column by Spark's interpreter, many values in one call."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dbt.adapters.zlayout.predicate.expr import (
    EXPRESSION,
    Call,
    Column,
    Constant,
    Evaluated,
    Expr,
    Term,
    Unknown,
    leaves,
)
from dbt.adapters.zlayout.predicate.functions import Convert, LocalTime
from dbt.adapters.zlayout.pruning.statistics.validation import is_ordered
from dbt.adapters.zlayout.spark.catalyst.functions import zone_of
from dbt.adapters.zlayout.spark.catalyst.predictable import CODE_OF_USERS
from dbt.adapters.zlayout.spark.catalyst.tree import Node, NotUnderstoodError
from dbt.adapters.zlayout.spark.jvm.scala import Jvm

_LOG = logging.getLogger(__name__)
_EXPRESSION = "org.apache.spark.sql.catalyst.expressions.Expression"
_INTERNAL_ROW = "Lorg/apache/spark/sql/catalyst/InternalRow;"
_WALL, _INSTANT = pa.timestamp("us"), pa.timestamp("us", "UTC")
# The parts of these are evaluated one by one.
_COMPOSED = ("And", "Or", "Not", "If", "CaseWhen", "Coalesce", "Literal", "AttributeReference", "GetStructField")
# Code of users may be slow, and may have effects. Subqueries have no value before the query runs.
_REFUSED = re.compile(rf"{CODE_OF_USERS}|.*(?:Subquery|Exists|DynamicPruning).*")
# Letters of date patterns whose value is the same all day.
_DAY_LETTERS = frozenset("GyYuMLdDEFqQwWec")
_MOST_CONDITIONS = 32


class ValueConditions:
    """Makes the conditions of one scan evaluable on values. Stops after some: each costs a few milliseconds."""

    def __init__(self, jvm: Jvm) -> None:
        self._jvm = jvm
        self._left = _MOST_CONDITIONS

    def of(self, node: Node, read: Expr, column: Column | None) -> Expr:
        """Returns a condition with its evaluation, or as it is where that adds nothing.

        Args:
            read: What rules understand of it.
            column: The only column of the condition; None if it has others, or if statistics do not keep its order.
        """
        if column is None or not self._left or not _can_be_sent(column.type) or _is_plain(read):
            return read
        if calls_users_code(node):
            return read
        self._left -= 1
        by_day = _reads_days(node, column)
        term: Term = column
        if by_day is not None:
            term = Call(Convert(pa.date32()), Call(LocalTime(_WALL, zone_of(by_day.jvm().zoneId())), column))
        return Evaluated(read, term, _ConditionOnValues(self._jvm, node, by_day))


def _can_be_sent(kind: pa.DataType) -> bool:
    return is_ordered(kind) and not pa.types.is_time(kind) and not pa.types.is_duration(kind)


def is_composed(node: Node) -> bool:
    """Returns whether a condition consists of others, or is a column or constant."""
    return node.kind in _COMPOSED


def calls_users_code(node: Node) -> bool:
    """Returns whether an expression calls a function of a user, or has a subquery."""
    return any(_REFUSED.fullmatch(each.kind) for each in node.nodes())


def _is_plain(read: Expr) -> bool:
    """Returns whether the rules on bounds already decide the condition for a single value of the column."""
    operands = [None if isinstance(each, Constant | Unknown) else each.operand for each in leaves(read)]
    unknown = any(isinstance(each, Unknown) for each in leaves(read))
    return not unknown and not any(
        isinstance(each, Call) or (isinstance(each, Column) and each.path[0] == EXPRESSION) for each in operands
    )


def _reads_days(node: Node, column: Column) -> Node | None:
    """Returns a format in a condition on a TIMESTAMP that depends only on its local day; None for other conditions."""
    if column.type != _INSTANT:
        return None
    above = [each for each in node.nodes() for child in each.children if child.kind == "AttributeReference"]
    formats = [each for each in above if each.kind == "DateFormatClass" and _is_of_days(each)]
    return formats[0] if formats and len(formats) == len(above) else None


def _is_of_days(node: Node) -> bool:
    pattern = node.children[1]
    if not pattern.is_literal or pattern.raw["value"] is None:
        return False
    letters = re.sub(r"'[^']*'", "", str(pattern.raw["value"]))
    return "'" not in letters and all(each in _DAY_LETTERS for each in letters if each.isalpha())


@dataclass(eq=False)
class _ConditionOnValues:
    """The evaluation of one condition, which remembers what it has evaluated.

    Attributes:
        by_day: If values are days: the part of the condition that knows the time zone.
    """

    jvm: Jvm
    node: Node
    by_day: Node | None
    _function: Any = None
    _failed: bool = False
    _known: dict[str, int] = field(default_factory=dict)

    def __call__(self, values: pa.Array) -> npt.NDArray[np.int8]:
        lines = _lines(values)
        new = [each for each in dict.fromkeys(lines) if each not in self._known]
        if new and not self._failed:
            try:
                self._known.update(zip(new, self._evaluated(new), strict=True))
            except Exception:  # what cannot be evaluated keeps files
                _LOG.debug("a condition is not evaluated on values", exc_info=True)
                self._failed = True
        return np.array([self._known.get(each, -1) for each in lines], dtype=np.int8)

    def _evaluated(self, lines: list[str]) -> list[int]:
        if self._function is None:
            self._function = self._made()
        answers = str(self.jvm.lines(pa.array(lines, pa.string())).map(self._function).toList().toString())
        return [-1 if each == "null" else int(each) for each in answers[1:-1].split(", ")]

    def _made(self) -> Any:
        """Returns the function from a line to 1, 0 or 2; null where evaluating raises an error."""
        jvm, condition = self.jvm, self.node.jvm()
        expressions, types = jvm.catalyst.expressions, jvm.root.org.apache.spark.sql.types.DataTypes
        references = condition.references().toSeq()
        if references.size() != 1 or not condition.deterministic():
            raise NotUnderstoodError("it depends on more than a column")
        zone = None if self.by_day is None else jvm.some(str(self.by_day.jvm().zoneId().getId()))
        value = _decoded(jvm, references.apply(0).dataType(), zone)
        attributes = getattr(expressions, "package$AttributeSeq")(references)
        bound = expressions.BindReferences.bindReference(condition, attributes, False)

        def number(found: int) -> Any:
            return expressions.Literal.create(found, types.IntegerType)

        def truth(wanted: bool) -> Any:
            return expressions.EqualNullSafe(bound, expressions.Literal.create(wanted, types.BooleanType))

        answer = expressions.TryEval(
            expressions.If(truth(True), number(1), expressions.If(truth(False), number(0), number(2)))
        )
        name = expressions.Literal.create("c0", types.StringType)
        row = jvm.fixed(jvm.once(line_evaluator), 0, expressions.CreateNamedStruct(jvm.seq([name, value])))
        row = jvm.as_object(row, f"(Ljava/lang/String;){_INTERNAL_ROW}")
        return jvm.function(jvm.then(row, _eval(jvm).bindTo(answer)))


def _lines(values: pa.Array) -> list[str]:
    """Returns each value in hexadecimal: bytes, or the text of a number as Spark stores it; "-" for null."""
    kind = values.type
    if pa.types.is_date32(kind):
        values = values.view(pa.int32())
    elif pa.types.is_timestamp(kind):
        values = values.view(pa.int64())
    elif pa.types.is_float32(kind):
        values = values.cast(pa.float64())
    return ["-" if each is None else _bytes_of(each).hex() for each in values.to_pylist()]


def _bytes_of(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, float):
        names = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
        return names.get(repr(value), repr(value)).encode()
    return str(value).encode()


def _decoded(jvm: Jvm, kind: Any, day_zone: Any) -> Any:
    """Returns the expression that makes a value of a type from a line. A day becomes its first instant in a zone."""
    expressions, types = jvm.catalyst.expressions, jvm.root.org.apache.spark.sql.types.DataTypes
    legacy, utc = expressions.EvalMode.LEGACY(), jvm.some("UTC")

    def cast(value: Any, target: Any, zone: Any = utc) -> Any:
        return expressions.Cast(value, target, zone, legacy)

    raw = expressions.Unhex(expressions.BoundReference(0, types.StringType, True))
    text, name = cast(raw, types.StringType), str(kind.typeName())
    if day_zone is not None:
        return cast(expressions.DateFromUnixDate(cast(text, types.IntegerType)), kind, day_zone)
    if name == "date":
        return expressions.DateFromUnixDate(cast(text, types.IntegerType))
    if name in ("timestamp", "timestamp_ntz"):
        return cast(expressions.MicrosToTimestamp(cast(text, types.LongType)), kind)
    if name == "binary":
        return raw
    return cast(cast(text, types.DoubleType), kind) if name == "float" else cast(text, kind)


def _eval(jvm: Jvm) -> Any:
    return jvm.virtual(_EXPRESSION, "eval", f"({_INTERNAL_ROW})Ljava/lang/Object;")


def line_evaluator(jvm: Jvm) -> Any:
    """Returns the method handle that evaluates a Catalyst expression on a line, which is the only column of its row."""
    to_text = jvm.static(
        "org.apache.spark.unsafe.types.UTF8String",
        "fromString",
        "(Ljava/lang/String;)Lorg/apache/spark/unsafe/types/UTF8String;",
    )
    to_row = jvm.collecting(
        jvm.constructor("org.apache.spark.sql.catalyst.expressions.GenericInternalRow", "([Ljava/lang/Object;)V"),
        1,
        f"(Lorg/apache/spark/unsafe/types/UTF8String;){_INTERNAL_ROW}",
    )
    return jvm.with_filters(_eval(jvm), 1, [jvm.then(to_text, to_row)])
