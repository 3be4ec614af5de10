"""A Catalyst expression in Python: its nodes from one text, its constants as Arrow scalars.

An expression can be of any size, and a graph whose tree is larger than any memory: nodes are taken in their order until
a budget is spent. The tree's shape and its leaves come over in one call, JSON for the leaves (``TreeNode.toJSON`` of
what is above them doubles with each CASE inside a CASE); types, and constants whose text would lose something (dates,
timestamps, bytes, the members of an ``InSet``), are fetched when they are asked for.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa
from py4j.protocol import Py4JError

from dbt.adapters.zlayout.spark.jvm.scala import Jvm
from dbt.adapters.zlayout.spark.schema.types import arrow_type, type_word

_PACKAGE = "org.apache.spark.sql.catalyst.expressions."
_SEPARATOR = "\x01\x02"
# Children, class, and of a struct's field its position.
_INNER = re.compile(r"(\d+)(.+?)(?:(?<=GetStructField)(\d+))?")
_TO_TEXT = "(Ljava/lang/Object;)Ljava/lang/String;"
_MOST_SPELLED = 300


class NotUnderstoodError(Exception):
    """The reason why a node says nothing about files."""


class OverBudgetError(Exception):
    """Why a whole condition is not read any further."""


class Budget:
    """What reading the conditions of one scan may take; what is beyond it is not understood.

    Args:
        nodes: Nodes of all conditions, and members of their lists.
        calls: Looks at single nodes in the JVM, of some 0.2 ms each.
        seconds: Of this thread's work.
        depth: Levels of a condition; a chain of ANDs, or of ORs, is one.
    """

    def __init__(self, nodes: int = 50_000, calls: int = 1_000, seconds: float = 0.5, depth: int = 60) -> None:
        self._nodes, self._calls, self._until = nodes, calls, time.thread_time() + seconds
        self._most_nodes, self._most_calls, self._seconds, self.depth = nodes, calls, seconds, depth

    @property
    def nodes(self) -> int:
        """How many may still be read."""
        return self._nodes

    @property
    def too_large(self) -> OverBudgetError:
        """What to raise where nodes do not suffice."""
        return OverBudgetError(f"it has more than {self._most_nodes:,} parts, with the conditions before it")

    def spend(self, nodes: int) -> None:
        """Takes nodes.

        Raises:
            OverBudgetError: There are not so many left.
        """
        if nodes > self._nodes:
            raise self.too_large
        self._nodes -= nodes

    def call(self) -> None:
        """Takes a look at one node.

        Raises:
            NotUnderstoodError: None is left.
        """
        if not self._calls:
            raise NotUnderstoodError(f"it takes more than {self._most_calls:,} looks at Spark's plan")
        self._calls -= 1

    def check_time(self) -> None:
        """Checks the time.

        Raises:
            OverBudgetError: It is over.
        """
        if time.thread_time() > self._until:
            raise OverBudgetError(f"reading it takes more than {self._seconds:g} s")


class _Handles:
    """The functions of the JVM that read many nodes at once."""

    def __init__(self, jvm: Jvm) -> None:
        self._jvm = jvm
        handles = jvm.lang.invoke.MethodHandles
        kinds = ("LeafExpression", "Literal", "GetStructField")
        leaf, literal, struct_field = (jvm.type(f"{_PACKAGE}{name}") for name in kinds)
        node, expression = "org.apache.spark.sql.catalyst.trees.TreeNode", f"{_PACKAGE}Expression"
        is_instance = jvm.virtual("java.lang.Class", "isInstance", "(Ljava/lang/Object;)Z")
        text_of = jvm.static("java.lang.String", "valueOf", "(Ljava/lang/Object;)Ljava/lang/String;")

        def either(kind: Any, then: Any, otherwise: Any) -> Any:
            return handles.guardWithTest(is_instance.bindTo(kind), then, otherwise)

        count = jvm.then(
            jvm.virtual(node, "children", f"(){jvm.seq_type}"),
            jvm.as_object(jvm.virtual("scala.collection.Seq", "length", "()I"), f"({jvm.seq_type})I"),
            jvm.static("java.lang.String", "valueOf", "(I)Ljava/lang/String;"),
        )
        name = jvm.then(
            jvm.virtual("java.lang.Object", "getClass", "()Ljava/lang/Class;"),
            jvm.virtual("java.lang.Class", "getName", "()Ljava/lang/String;"),
        )
        concat = jvm.virtual("java.lang.String", "concat", "(Ljava/lang/String;)Ljava/lang/String;")
        inner = jvm.of_one_argument(concat, [jvm.as_object(each, _TO_TEXT) for each in (count, name)], _TO_TEXT)
        as_json = jvm.as_object(jvm.virtual(node, "toJSON", "()Ljava/lang/String;"), _TO_TEXT)
        none_of_it = jvm.fixed(jvm.virtual("java.lang.String", "substring", "(II)Ljava/lang/String;"), 1, 0, 0)
        nothing = jvm.as_object(jvm.then(name, none_of_it), _TO_TEXT)
        value = jvm.as_object(jvm.virtual(f"{_PACKAGE}Literal", "value", "()Ljava/lang/Object;"), _OBJECT_TO_OBJECT)
        number = either(jvm.type("java.lang.Number"), text_of, nothing)
        kind = jvm.then(
            jvm.virtual(expression, "dataType", "()Lorg/apache/spark/sql/types/DataType;"),
            jvm.virtual("org.apache.spark.sql.types.DataType", "typeName", "()Ljava/lang/String;"),
        )
        ordinal = jvm.then(
            jvm.virtual(f"{_PACKAGE}GetStructField", "ordinal", "()I"),
            jvm.static("java.lang.String", "valueOf", "(I)Ljava/lang/String;"),
        )
        field_of = jvm.of_one_argument(concat, [inner, jvm.as_object(ordinal, _TO_TEXT)], _TO_TEXT)
        self.shape = jvm.function(either(leaf, as_json, either(struct_field, field_of, inner)))
        self.numbers = jvm.function(either(literal, jvm.then(value, number), nothing))
        self.types = jvm.function(kind)
        self._offer = jvm.virtual("java.util.concurrent.ArrayBlockingQueue", "offer", "(Ljava/lang/Object;)Z")
        logical_xor = jvm.static("java.lang.Boolean", "logicalXor", "(ZZ)Z")
        self._not = jvm.fixed(logical_xor, 1, True)
        self._queue: Any = jvm.root.java.util.concurrent.ArrayBlockingQueue
        self._lines: Any = jvm.root.java.util.stream.Collectors.joining("\n")

    def nodes(self, expression: Any, most: int) -> Any:
        """The nodes of an expression, each before its children, as a Java collection; None where there are more."""
        queue = self._queue(max(most, 1))
        # A full queue takes no more: the search ends where its condition holds.
        full = self._jvm.then(self._offer.bindTo(queue), self._not)
        return None if expression.find(self._jvm.function(full, "scala.Function1")).isDefined() else queue

    def lines(self, nodes: Any, function: Any) -> list[str]:
        """A text of each node, none of which may hold a line break."""
        return str(nodes.stream().map(function).collect(self._lines)).split("\n")


_OBJECT_TO_OBJECT = "(Ljava/lang/Object;)Ljava/lang/Object;"
_HANDLES: WeakKeyDictionary[Jvm, _Handles] = WeakKeyDictionary()


class _Tree:
    """An expression whose nodes are at hand in the JVM, in their order."""

    def __init__(self, handles: _Handles, nodes: Any, budget: Budget) -> None:
        self.budget = budget
        self._handles, self._nodes = handles, nodes

    @cached_property
    def _listed(self) -> Any:
        return self._nodes.stream().toList()

    def node(self, position: int) -> Any:
        """A node (Py4J object)."""
        self.budget.call()
        return self._listed.get(position)

    def type_name(self, position: int) -> str:
        """Spark's word for a node's type."""
        if self._types is not None:
            return self._types[position]
        return str(self.node(position).dataType().typeName())

    def integer(self, position: int) -> int:
        """The value of a literal that is a whole number inside Spark."""
        return int(self._integers[position])

    @cached_property
    def _types(self) -> list[str] | None:
        try:
            return self._handles.lines(self._nodes, self._handles.types)
        except Py4JError:
            # One of the nodes has none.
            return None

    @cached_property
    def _integers(self) -> list[str]:
        return self._handles.lines(self._nodes, self._handles.numbers)


@dataclass
class Node:
    """One node.

    Attributes:
        raw: Of a leaf Spark's JSON, of others the ``class``, and the ``ordinal`` of a struct's field.
        tree: Where it is from.
        position: Its number there.
        children: Its own.
        size: Nodes from here down.
    """

    raw: Mapping[str, Any]
    tree: _Tree
    position: int
    children: list[Node] = field(default_factory=list)
    size: int = 1

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
        return self.tree.node(self.position)

    def text(self) -> str:
        """Its SQL; of what is long only how long it is."""
        if self.size > _MOST_SPELLED:
            return f"{self.kind} of {self.size:,} parts"
        try:
            return str(self.jvm().sql())
        except Exception:
            return f"{self.kind} …"

    def type(self) -> pa.DataType:
        """Arrow type of its result.

        Raises:
            NotUnderstoodError: Arrow has none, or it is a text with a collation.
        """
        name = self.tree.type_name(self.position)
        if "collate" in name:
            raise NotUnderstoodError("it has a collation, whose order statistics do not keep")
        found = arrow_type(name)
        if found is None:
            raise NotUnderstoodError(f"type {name} has no statistics")
        return found


def tree_of(jvm: Jvm, expression: Any, budget: Budget) -> Node:
    """Reads a Catalyst ``Expression`` (Py4J object).

    Raises:
        OverBudgetError: It has more nodes than the budget.
    """
    if jvm not in _HANDLES:
        _HANDLES[jvm] = _Handles(jvm)
    handles = _HANDLES[jvm]
    nodes = handles.nodes(expression, budget.nodes)
    if nodes is None:
        raise budget.too_large
    lines = handles.lines(nodes, handles.shape)
    budget.spend(len(lines))
    return _linked(lines, _Tree(handles, nodes, budget))


def _linked(lines: Sequence[str], tree: _Tree) -> Node:
    """Each node with its children: read from the end, these are the last ones before it."""
    pending: list[Node] = []
    # A program's condition names few columns thousands of times.
    leaves: dict[str, Mapping[str, Any]] = {}
    for position in range(len(lines) - 1, -1, -1):
        line = lines[position]
        inner = _INNER.fullmatch(line)
        if inner is None:
            if line not in leaves:
                leaves[line] = json.loads(line)[0]
            pending.append(Node(leaves[line], tree, position))
        else:
            children = [pending.pop() for _ in range(int(inner[1]))]
            size = 1 + sum(each.size for each in children)
            pending.append(Node({"class": inner[2], "ordinal": inner[3]}, tree, position, children, size))
    (root,) = pending
    return root


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
        if pa.types.is_binary(kind):
            return pa.scalar(bytes(node.jvm().value()), kind)
        return _of_integer(node.tree.integer(node.position), kind)
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
    node.tree.budget.spend(int(members.size()))
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
