"""A Catalyst expression in Python: its nodes from one JSON, its constants as Arrow scalars.

The tree's shape comes over in one call as JSON; constants whose text would lose something (dates, timestamps, bytes,
the members of an ``InSet``) are fetched from the node itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow as pa

from dbt.adapters.zlayout.spark.types import arrow_type, type_word

_PACKAGE = "org.apache.spark.sql.catalyst.expressions."
_SEPARATOR = "\x01\x02"


class NotUnderstoodError(Exception):
    """The reason why a node says nothing about files."""


@dataclass
class Node:
    """One node of the JSON, with where it is, so that the JVM's own node can be reached."""

    raw: Mapping[str, Any]
    root: Any
    route: tuple[int, ...]
    children: list[Node] = field(default_factory=list)

    @property
    def kind(self) -> str:
        """The class, without its package where that is Catalyst's."""
        return str(self.raw["class"]).removeprefix(_PACKAGE)

    @property
    def is_literal(self) -> bool:
        """Whether it is a constant."""
        return self.kind == "Literal"

    def jvm(self) -> Any:
        """The node itself (Py4J object)."""
        current = self.root
        for position in self.route:
            current = current.children().apply(position)
        return current

    def text(self) -> str:
        """Its SQL."""
        try:
            return str(self.jvm().sql())
        except Exception:
            return "an expression"

    def type(self) -> pa.DataType:
        """Arrow type of its result.

        Raises:
            NotUnderstoodError: Arrow has none, or it is a text with a collation.
        """
        spark_type = self.jvm().dataType()
        if "collate" in str(spark_type.simpleString()):
            raise NotUnderstoodError("it has a collation, whose order statistics do not keep")
        found = arrow_type(json.loads(spark_type.json()))
        if found is None:
            raise NotUnderstoodError(f"type {spark_type.simpleString()} has no statistics")
        return found


def tree_of(expression: Any) -> Node:
    """Reads a Catalyst ``Expression`` (Py4J object)."""
    return _tree(iter(json.loads(expression.toJSON())), expression, ())


def _tree(nodes: Any, root: Any, route: tuple[int, ...]) -> Node:
    raw = next(nodes)
    node = Node(raw, root, route)
    node.children = [_tree(nodes, root, (*route, position)) for position in range(int(raw["num-children"]))]
    return node


def scalar_of(node: Node, kind: pa.DataType) -> pa.Scalar:
    """Returns a ``Literal`` as a scalar of a type.

    Raises:
        NotUnderstoodError: It has another type.
    """
    spark_type, text = node.raw["dataType"], node.raw["value"]
    if text is None:
        return pa.scalar(None, kind)
    if arrow_type(spark_type) != kind:
        raise NotUnderstoodError(f"the constant has type {type_word(spark_type)}")
    if pa.types.is_string(kind):
        return pa.scalar(str(text), kind)
    if pa.types.is_temporal(kind) or pa.types.is_binary(kind):
        value = node.jvm().value()
        return pa.scalar(bytes(value), kind) if pa.types.is_binary(kind) else _of_integer(int(value), kind)
    return pa.scalar(_internal(str(text), kind), kind)


def integer_of(node: Node) -> int:
    """Returns a ``Literal`` of a number, or of an interval in months or microseconds, as an integer.

    Raises:
        NotUnderstoodError: It is none, or null.
    """
    whole = str(node.raw.get("dataType")) in ("byte", "short", "integer", "long")
    interval = str(node.raw.get("dataType")).startswith("interval ")
    if not node.is_literal or not (whole or interval) or node.raw["value"] is None:
        raise NotUnderstoodError(f"`{node.kind}` is no constant number")
    return int(node.raw["value"])


def members_of(node: Node, kind: pa.DataType) -> tuple[pa.Array, bool]:
    """Returns the constants of an ``In`` or ``InSet`` without nulls, and whether NULL is among them.

    Raises:
        NotUnderstoodError: The list holds more than constants of the type.
    """
    scalars = _scalars_of_set(node, kind) if node.kind == "InSet" else _scalars_of_list(node, kind)
    known = [value for value in scalars if value.is_valid]
    return _array(known, kind), len(known) < len(scalars)


def _scalars_of_list(node: Node, kind: pa.DataType) -> list[pa.Scalar]:
    if not all(child.is_literal for child in node.children[1:]):
        raise NotUnderstoodError("the list holds more than constants")
    return [scalar_of(child, kind) for child in node.children[1:]]


def _scalars_of_set(node: Node, kind: pa.DataType) -> list[pa.Scalar]:
    members = node.jvm().hset()
    if pa.types.is_binary(kind):
        iterator = members.iterator()
        values: list[Any] = []
        while iterator.hasNext():
            value = iterator.next()
            values.append(None if value is None else bytes(value))
        return [pa.scalar(each, kind) for each in values]
    size, text = int(members.size()), str(members.mkString(_SEPARATOR))
    pieces = text.split(_SEPARATOR)
    has_null = bool(members.contains(None))
    if len(pieces) != size:
        raise NotUnderstoodError("a member of the list holds a control character")
    if has_null:
        if pa.types.is_string(kind) and pieces.count("null") > 1:
            raise NotUnderstoodError("the list holds both NULL and the text 'null'")
        pieces.remove("null")
    found = [_internal(piece, kind) for piece in pieces]
    scalars = [_of_integer(each, kind) if pa.types.is_temporal(kind) else pa.scalar(each, kind) for each in found]
    return scalars + ([pa.scalar(None, kind)] if has_null else [])


def _array(scalars: Sequence[pa.Scalar], kind: pa.DataType) -> pa.Array:
    if not pa.types.is_temporal(kind):
        return pa.array([each.as_py() for each in scalars], kind)
    # Python's dates end in the year 9999 and its datetimes forget the zone's jumps; the integers beneath do neither.
    width = pa.int32() if pa.types.is_date32(kind) else pa.int64()
    return pa.array([each.value for each in scalars], width).cast(kind)


def _of_integer(value: int, kind: pa.DataType) -> pa.Scalar:
    """A date or timestamp from Spark's days or microseconds since 1970, which Python's types may not reach."""
    width = pa.int32() if pa.types.is_date32(kind) else pa.int64()
    return pa.scalar(value, width).cast(kind)


def _internal(text: str, kind: pa.DataType) -> Any:
    """A value from the text of Spark's internal form (dates and timestamps are integers there)."""
    if pa.types.is_boolean(kind):
        return text.lower() == "true"
    if pa.types.is_floating(kind):
        return float(text)
    if pa.types.is_decimal(kind):
        return Decimal(text)
    if pa.types.is_string(kind):
        return text
    return int(text)
