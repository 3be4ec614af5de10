"""Catalyst → predicate: the one front end through which every filter enters, as Spark's optimizer left it.

Spark has analysed, cast and simplified the expression, so each node here has exact types. A node that is not listed
below becomes ``Unknown``, which keeps every file. The tree's shape comes over in one call as JSON; constants whose text
would lose something (dates, timestamps, bytes, the members of an ``InSet``) are fetched from the node itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow as pa

from dbt.adapters.zlayout.predicate.expr import (
    And,
    Column,
    Compare,
    Constant,
    Expr,
    In,
    IsNotNull,
    IsNull,
    Not,
    Op,
    Or,
    StartsWith,
    Unknown,
)
from dbt.adapters.zlayout.spark.types import SparkField, arrow_type, fields_of

_PACKAGE = "org.apache.spark.sql.catalyst.expressions."
_SEPARATOR = "\x01\x02"
_COMPARISONS: Mapping[str, tuple[Op, Op]] = {
    # class: (operator as written, operator with the sides swapped)
    "EqualTo": (Op.EQ, Op.EQ),
    "EqualNullSafe": (Op.EQ_NULL_SAFE, Op.EQ_NULL_SAFE),
    "LessThan": (Op.LT, Op.GT),
    "LessThanOrEqual": (Op.LE, Op.GE),
    "GreaterThan": (Op.GT, Op.LT),
    "GreaterThanOrEqual": (Op.GE, Op.LE),
}


class _NotUnderstoodError(Exception):
    """The reason why a node says nothing about files."""


@dataclass
class _Node:
    """One node of the JSON, with where it is, so that the JVM's own node can be reached."""

    raw: Mapping[str, Any]
    route: tuple[int, ...]
    children: list[_Node] = field(default_factory=list)

    @property
    def kind(self) -> str:
        name = str(self.raw["class"])
        return name.removeprefix(_PACKAGE)


def to_predicate(expression: Any, schema_json: str) -> Expr:
    """Converts one filter.

    Args:
        expression: A Catalyst ``Expression`` (Py4J object).
        schema_json: ``StructType.json()`` of the filter's relation, partition columns included.

    Returns:
        An expression of equal truth value for every row, with ``Unknown`` where a part is not understood. Never raises.
    """
    try:
        nodes = iter(json.loads(expression.toJSON()))
        root = _tree(nodes, ())
        return _Converter(expression, fields_of(schema_json)).expr(root)
    except Exception as error:
        return Unknown(_text(expression), f"could not be read from Spark's plan ({type(error).__name__})")


def _tree(nodes: Any, route: tuple[int, ...]) -> _Node:
    raw = next(nodes)
    node = _Node(raw, route)
    node.children = [_tree(nodes, (*route, position)) for position in range(int(raw["num-children"]))]
    return node


def _text(expression: Any) -> str:
    try:
        return str(expression.sql())
    except Exception:
        return "an expression"


class _Converter:
    def __init__(self, root: Any, fields: tuple[SparkField, ...]) -> None:
        self._root = root
        self._fields = fields
        self._rules: Mapping[str, Callable[[_Node], Expr]] = {
            "And": lambda node: And((self.expr(node.children[0]), self.expr(node.children[1]))),
            "Or": lambda node: Or((self.expr(node.children[0]), self.expr(node.children[1]))),
            "Not": lambda node: Not(self.expr(node.children[0])),
            "IsNull": lambda node: IsNull(self._column(node.children[0])),
            "IsNotNull": lambda node: IsNotNull(self._column(node.children[0])),
            "IsNaN": self._is_nan,
            "StartsWith": self._starts_with,
            "In": self._in,
            "InSet": self._in_set,
            "Literal": self._constant,
            "AttributeReference": self._boolean_column,
            "GetStructField": self._boolean_column,
        }

    def expr(self, node: _Node) -> Expr:
        """The node as an expression; what is not understood is ``Unknown`` with the reason."""
        try:
            if node.kind in _COMPARISONS:
                return self._comparison(node)
            rule = self._rules.get(node.kind)
            if rule is None:
                raise _NotUnderstoodError(f"`{node.kind}` has no rule")
            return rule(node)
        except _NotUnderstoodError as error:
            return Unknown(_text(self._jvm_node(node)), str(error))

    def _comparison(self, node: _Node) -> Expr:
        straight, swapped = _COMPARISONS[node.kind]
        left, right = node.children
        if right.kind == "Literal":
            column, op, literal = self._column(left), straight, right
        elif left.kind == "Literal":
            column, op, literal = self._column(right), swapped, left
        else:
            raise _NotUnderstoodError("neither side is a constant")
        return Compare(op, column, self._scalar(literal, column.type))

    def _is_nan(self, node: _Node) -> Expr:
        column = self._column(node.children[0])
        # isnan(null) is false, not null: the conjunction keeps that under NOT.
        return And((IsNotNull(column), Compare(Op.EQ, column, pa.scalar(float("nan"), column.type))))

    def _starts_with(self, node: _Node) -> Expr:
        column, prefix = self._column(node.children[0]), node.children[1]
        if prefix.kind != "Literal":
            raise _NotUnderstoodError("the prefix is not a constant")
        value = self._scalar(prefix, column.type)
        return StartsWith(column, value) if value.is_valid else Constant(None)

    def _in(self, node: _Node) -> Expr:
        column = self._column(node.children[0])
        if any(child.kind != "Literal" for child in node.children[1:]):
            raise _NotUnderstoodError("the list holds more than constants")
        values = [self._scalar(child, column.type) for child in node.children[1:]]
        known = [value for value in values if value.is_valid]
        return In(column, _array(known, column.type), len(known) < len(values))

    def _in_set(self, node: _Node) -> Expr:
        column = self._column(node.children[0])
        members = self._jvm_node(node).hset()
        if pa.types.is_binary(column.type):
            iterator = members.iterator()
            values: list[Any] = []
            while iterator.hasNext():
                value = iterator.next()
                values.append(None if value is None else bytes(value))
        else:
            size, text = int(members.size()), str(members.mkString(_SEPARATOR))
            pieces = text.split(_SEPARATOR)
            has_null = bool(members.contains(None))
            if len(pieces) != size:
                raise _NotUnderstoodError("a member of the list holds a control character")
            if has_null:
                if pa.types.is_string(column.type) and pieces.count("null") > 1:
                    raise _NotUnderstoodError("the list holds both NULL and the text 'null'")
                pieces.remove("null")
            values = [_internal(piece, column.type) for piece in pieces] + ([None] if has_null else [])
        known = [value for value in values if value is not None]
        integers = pa.types.is_temporal(column.type)
        scalars = [_of_integer(int(each), column.type) if integers else pa.scalar(each, column.type) for each in known]
        return In(column, _array(scalars, column.type), len(known) < len(values))

    def _constant(self, node: _Node) -> Expr:
        if node.raw["value"] is None:
            return Constant(None)
        if node.raw["dataType"] != "boolean":
            raise _NotUnderstoodError("a constant that is no condition")
        return Constant(str(node.raw["value"]).lower() == "true")

    def _boolean_column(self, node: _Node) -> Expr:
        column = self._column(node)
        if not pa.types.is_boolean(column.type):
            raise _NotUnderstoodError("a column that is no condition")
        return Compare(Op.EQ, column, pa.scalar(True))

    def _column(self, node: _Node) -> Column:
        path, found = self._field(node)
        if found.collated:
            raise _NotUnderstoodError(f"column `{'.'.join(path)}` has a collation, whose order statistics do not keep")
        if found.arrow_type is None:
            raise _NotUnderstoodError(f"column `{'.'.join(path)}` has type {found.spark_type}, which has no statistics")
        return Column(path, found.arrow_type)

    def _field(self, node: _Node) -> tuple[tuple[str, ...], SparkField]:
        if node.kind == "AttributeReference":
            found = _by_name(self._fields, str(node.raw["name"]))
            return (found.name,), found
        if node.kind == "GetStructField":
            parent_path, parent = self._field(node.children[0])
            child = parent.fields[int(node.raw["ordinal"])]
            return (*parent_path, child.name), child
        raise _NotUnderstoodError(f"`{node.kind}` of a column has no rule")

    def _scalar(self, node: _Node, type_: pa.DataType) -> pa.Scalar:
        spark_type, text = node.raw["dataType"], node.raw["value"]
        if text is None:
            return pa.scalar(None, type_)
        if arrow_type(spark_type) != type_:
            raise _NotUnderstoodError(f"the constant has type {spark_type}")
        if pa.types.is_string(type_):
            return pa.scalar(str(text), type_)
        if pa.types.is_temporal(type_) or pa.types.is_binary(type_):
            value = self._jvm_node(node).value()
            return pa.scalar(bytes(value), type_) if pa.types.is_binary(type_) else _of_integer(int(value), type_)
        return pa.scalar(_internal(str(text), type_), type_)

    def _jvm_node(self, node: _Node) -> Any:
        current = self._root
        for position in node.route:
            current = current.children().apply(position)
        return current


def _by_name(fields: Sequence[SparkField], name: str) -> SparkField:
    exact = [each for each in fields if each.name == name]
    matches = exact or [each for each in fields if each.name.lower() == name.lower()]
    if len(matches) != 1:
        raise _NotUnderstoodError(f"`{name}` is no column of the table")
    return matches[0]


def _array(scalars: Sequence[pa.Scalar], type_: pa.DataType) -> pa.Array:
    if not pa.types.is_temporal(type_):
        return pa.array([each.as_py() for each in scalars], type_)
    # Python's dates end in the year 9999 and its datetimes forget the zone's jumps; the integers beneath do neither.
    width = pa.int32() if pa.types.is_date32(type_) else pa.int64()
    return pa.array([each.value for each in scalars], width).cast(type_)


def _of_integer(value: int, type_: pa.DataType) -> pa.Scalar:
    """A date or timestamp from Spark's days or microseconds since 1970, which Python's types may not reach."""
    width = pa.int32() if pa.types.is_date32(type_) else pa.int64()
    return pa.scalar(value, width).cast(type_)


def _internal(text: str, type_: pa.DataType) -> Any:
    """A value from the text of Spark's internal form (dates and timestamps are integers there)."""
    if pa.types.is_boolean(type_):
        return text.lower() == "true"
    if pa.types.is_floating(type_):
        return float(text)
    if pa.types.is_decimal(type_):
        return Decimal(text)
    if pa.types.is_string(type_):
        return text
    return int(text)
