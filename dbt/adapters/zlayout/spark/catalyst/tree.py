"""Reads a Catalyst expression into Python: its nodes in one call, its constants as Arrow scalars.

An expression can have any size, and a shared graph can unfold to a tree larger than memory, so nodes are read in order
until a budget is spent. One call transfers the shape of the tree and its leaves. Columns and constants come as short
texts, and other leaves as JSON: ``TreeNode.toJSON`` takes up to 0.2 ms in the JVM for each leaf. For
inner nodes it is not used at all, because its result doubles in size with each CASE inside a CASE. Types are fetched on
demand, and so are constants that would lose something as text: dates, timestamps, bytes, and members of an ``InSet``.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from urllib.parse import unquote_plus

import pyarrow as pa
from py4j.protocol import Py4JError

from dbt.adapters.zlayout.lazy import cached_property
from dbt.adapters.zlayout.predicate.remedies import Remedy
from dbt.adapters.zlayout.spark.jvm.scala import Jvm
from dbt.adapters.zlayout.spark.schema.types import arrow_type, type_word

_PACKAGE = "org.apache.spark.sql.catalyst.expressions."
_SEPARATOR = "\x01\x02"
# An inner node: number of children, class, and for a struct field its name as in a URL.
_INNER = re.compile(r"(\d+)([^=]+)(?:=(.*))?")
# A column: length of its qualifier, and its name as in a URL.
_COLUMN = re.compile(r"@(\d+)=(.*)")
# A constant that is not null: Spark's name for its type, and its text as in a URL.
_CONSTANT = re.compile(r"([a-z][^=]*)=(.*)")
_TO_TEXT = "(Ljava/lang/Object;)Ljava/lang/String;"
_TO_BOOLEAN = "(Ljava/lang/Object;)Z"
_MOST_SPELLED = 300
# So few nodes are read whatever they take: the time is then that of a garbage collection in a large process.
_FEW_NODES = 200


# Fields of Spark's `_metadata` column. In the conditions of a scan, they are columns with these bare names.
_OF_FILES = frozenset(
    ("file_path", "file_name", "file_size", "file_block_start", "file_block_length", "file_modification_time")
)


class NotUnderstoodError(Exception):
    """The reason why a node cannot skip files.

    Args:
        reason: A clause whose subject is the node.
        remedy: What would help; None if nothing would.
    """

    def __init__(self, reason: str, remedy: Remedy | None = Remedy.STORE_VALUE) -> None:
        super().__init__(reason)
        self.remedy = remedy


def is_of_files(name: str, qualified: bool) -> bool:
    """Returns whether an attribute of a condition may be a field of `_metadata`, and not a column of that name.

    Args:
        qualified: Whether the attribute has a qualifier. Fields of `_metadata` have none.
    """
    return not qualified and name.lower() in _OF_FILES


class OverBudgetError(Exception):
    """The reason why reading a whole condition stops."""


class Budget:
    """Limits for reading the conditions of one scan. Anything beyond them is not understood.

    Args:
        nodes: Nodes of all conditions, plus members of their lists.
        calls: Calls to single nodes in the JVM, about 0.2 ms each.
        seconds: CPU time of this thread. A scan with up to 200 nodes has no such limit.
        depth: Levels of a condition; a chain of ANDs or ORs is one level.
    """

    def __init__(self, nodes: int = 50_000, calls: int = 1_000, seconds: float = 0.3, depth: int = 60) -> None:
        self._nodes, self._calls, self._until = nodes, calls, time.thread_time() + seconds
        self._most_nodes, self._most_calls, self._seconds, self.depth = nodes, calls, seconds, depth

    @property
    def nodes(self) -> int:
        """How many nodes may still be read."""
        return self._nodes

    @property
    def too_large(self) -> OverBudgetError:
        """The error for a condition with more nodes than are left."""
        return OverBudgetError(f"it has more than {self._most_nodes:,} parts, with the conditions before it")

    def spend(self, nodes: int) -> None:
        """Spends nodes.

        Raises:
            OverBudgetError: Fewer nodes are left.
        """
        if nodes > self._nodes:
            raise self.too_large
        self._nodes -= nodes

    def call(self) -> None:
        """Spends one call to a node.

        Raises:
            NotUnderstoodError: No call is left.
        """
        if not self._calls:
            too_many = f"it takes more than {self._most_calls:,} calls to Spark's plan"
            raise NotUnderstoodError(too_many, Remedy.SHORTER_CONDITION)
        self._calls -= 1

    def check_depth(self, level: int) -> None:
        """Checks the limit of levels.

        Raises:
            NotUnderstoodError: The level is deeper.
        """
        if level > self.depth:
            raise NotUnderstoodError(f"it is nested more than {self.depth} levels deep", Remedy.SHORTER_CONDITION)

    def check_time(self) -> None:
        """Checks the time limit.

        Raises:
            OverBudgetError: The time is up.
        """
        if time.thread_time() > self._until and self._most_nodes - self._nodes > _FEW_NODES:
            raise OverBudgetError(f"reading it takes more than {self._seconds:g} s")


class _Handles:
    """JVM functions that read many nodes at once."""

    def __init__(self, jvm: Jvm) -> None:
        self._jvm = jvm
        handles = jvm.lang.invoke.MethodHandles
        kinds = ("LeafExpression", "Literal", "GetStructField", "AttributeReference")
        leaf, literal, struct_field, column = (jvm.type(f"{_PACKAGE}{name}") for name in kinds)
        node, expression = "org.apache.spark.sql.catalyst.trees.TreeNode", f"{_PACKAGE}Expression"
        types = "org.apache.spark.sql.types"
        is_instance = jvm.virtual("java.lang.Class", "isInstance", "(Ljava/lang/Object;)Z")
        text_of = jvm.static("java.lang.String", "valueOf", "(Ljava/lang/Object;)Ljava/lang/String;")

        def either(kind: Any, then: Any, otherwise: Any) -> Any:
            return handles.guardWithTest(is_instance.bindTo(kind), then, otherwise)

        length_text = jvm.then(
            jvm.as_object(jvm.virtual("scala.collection.Seq", "length", "()I"), f"({jvm.seq_type})I"),
            jvm.static("java.lang.String", "valueOf", "(I)Ljava/lang/String;"),
        )
        count = jvm.then(jvm.virtual(node, "children", f"(){jvm.seq_type}"), length_text)
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
        data_type = jvm.virtual(expression, "dataType", "()Lorg/apache/spark/sql/types/DataType;")
        kind = jvm.then(
            data_type, jvm.virtual("org.apache.spark.sql.types.DataType", "typeName", "()Ljava/lang/String;")
        )

        def with_text(first: Any, text: Any) -> Any:
            """Returns the handle for two texts of a node, with '=' between them and the second as in a URL."""
            second = jvm.then(text, jvm.fixed(encode, 1, "UTF-8"), jvm.fixed(concat, 0, "="))
            return jvm.of_one_argument(concat, [jvm.as_object(each, _TO_TEXT) for each in (first, second)], _TO_TEXT)

        encode = jvm.static("java.net.URLEncoder", "encode", "(Ljava/lang/String;Ljava/lang/String;)Ljava/lang/String;")
        reference = f"{_PACKAGE}AttributeReference"
        qualifier = jvm.virtual(reference, "qualifier", f"(){jvm.seq_type}")
        qualified = jvm.then(qualifier, length_text, jvm.fixed(concat, 0, "@"))
        column_text = with_text(qualified, jvm.virtual(reference, "name", "()Ljava/lang/String;"))
        # Types with fields have no short name, so their constants come as JSON. A null is an instance of no class.
        of_type = jvm.as_object(
            is_instance.bindTo(jvm.type(f"{types}.AtomicType")), f"(L{types}.DataType;)Z".replace(".", "/")
        )
        is_atomic = jvm.as_object(jvm.then(data_type, of_type), _TO_BOOLEAN)
        is_value = jvm.then(value, is_instance.bindTo(jvm.type("java.lang.Object")))
        short = with_text(kind, jvm.then(value, text_of))
        constant = handles.guardWithTest(is_value, handles.guardWithTest(is_atomic, short, as_json), as_json)
        leaf_text = either(column, column_text, either(literal, constant, as_json))
        field_of = with_text(inner, _field_name(jvm))
        self.shape = jvm.function(either(leaf, leaf_text, either(struct_field, field_of, inner)))
        integer = handles.guardWithTest(is_value, jvm.then(value, number), nothing)
        self.numbers = jvm.function(either(literal, integer, nothing))
        self.types = jvm.function(kind)
        self._offer = jvm.virtual("java.util.concurrent.ArrayBlockingQueue", "offer", "(Ljava/lang/Object;)Z")
        logical_xor = jvm.static("java.lang.Boolean", "logicalXor", "(ZZ)Z")
        self._not = jvm.fixed(logical_xor, 1, True)
        self._queue: Any = jvm.root.java.util.concurrent.ArrayBlockingQueue
        self._lines: Any = jvm.root.java.util.stream.Collectors.joining("\n")

    def nodes(self, expression: Any, most: int) -> Any:
        """Returns an expression's nodes as a Java collection, parents first; None if there are more than ``most``."""
        queue = self._queue(max(most, 1))
        # `find` offers each node to the queue, and stops at the first node that the full queue rejects.
        full = self._jvm.then(self._offer.bindTo(queue), self._not)
        return None if expression.find(self._jvm.function(full, "scala.Function1")).isDefined() else queue

    def lines(self, nodes: Any, function: Any) -> list[str]:
        """Returns a text for each node. No text may contain a line break."""
        return str(nodes.stream().map(function).collect(self._lines)).split("\n")


_OBJECT_TO_OBJECT = "(Ljava/lang/Object;)Ljava/lang/Object;"


def _field_name(jvm: Jvm) -> Any:
    """Returns the method handle that gives the name of a struct field.

    Its position says nothing: it counts in the struct that the query reads, without the fields that it does not need.
    """
    node, types = f"{_PACKAGE}GetStructField", "org/apache/spark/sql/types"
    schema = jvm.virtual(node, "childSchema", f"()L{types}/StructType;")
    ordinal = jvm.virtual(node, "ordinal", "()I")
    at = jvm.virtual("org.apache.spark.sql.types.StructType", "apply", f"(I)L{types}/StructField;")
    found = jvm.of_one_argument(at, [schema, ordinal], f"(L{node.replace('.', '/')};)L{types}/StructField;")
    return jvm.then(found, jvm.virtual("org.apache.spark.sql.types.StructField", "name", "()Ljava/lang/String;"))


class _Tree:
    """An expression, with its nodes held in order in the JVM."""

    def __init__(self, handles: _Handles, nodes: Any, budget: Budget) -> None:
        self.budget = budget
        self._handles, self._nodes = handles, nodes

    @cached_property
    def _listed(self) -> Any:
        return self._nodes.stream().toList()

    def node(self, position: int) -> Any:
        """Returns a node (Py4J object)."""
        self.budget.call()
        return self._listed.get(position)

    def type_name(self, position: int) -> str:
        """Returns Spark's name for the type of a node."""
        if self._types is not None:
            return self._types[position]
        return str(self.node(position).dataType().typeName())

    def integer(self, position: int) -> int:
        """Returns the value of a literal that Spark stores as an integer."""
        return int(self._integers[position])

    @cached_property
    def _types(self) -> list[str] | None:
        try:
            return self._handles.lines(self._nodes, self._handles.types)
        except Py4JError:
            # One of the nodes has no type.
            return None

    @cached_property
    def _integers(self) -> list[str]:
        return self._handles.lines(self._nodes, self._handles.numbers)


@dataclass
class Node:
    """One node of a Catalyst expression.

    Attributes:
        raw: The ``class``, as in ``kind``; of a column the ``name`` and whether it is ``qualified``, of a constant its
            ``dataType`` and ``value``, of a struct field the ``field``, its name. For other leaves: Spark's JSON.
        tree: The tree that has the node.
        position: Position of the node in the tree.
        size: Number of nodes in this subtree.
    """

    raw: Mapping[str, Any]
    tree: _Tree
    position: int
    children: list[Node] = field(default_factory=list)
    size: int = 1

    @property
    def kind(self) -> str:
        """The class name, without Catalyst's package."""
        return str(self.raw["class"])

    @property
    def is_literal(self) -> bool:
        """Whether the node is a constant."""
        return self.kind == "Literal"

    @property
    def is_of_files(self) -> bool:
        """Whether the node may be a field of `_metadata`, and not a column of that name."""
        if self.kind != "AttributeReference":
            return False
        return is_of_files(str(self.raw["name"]), bool(self.raw["qualified"]))

    def nodes(self) -> Iterator[Node]:
        """Yields the node and all nodes below it."""
        pending = [self]
        while pending:
            each = pending.pop()
            yield each
            pending.extend(each.children)

    def column_names(self) -> set[str]:
        """Returns the names of the columns in the expression."""
        return {str(each.raw["name"]) for each in self.nodes() if each.kind == "AttributeReference"}

    def path(self) -> tuple[str, ...] | None:
        """Returns the name of a column, or of a column and the fields down to a field of it; None for other nodes."""
        if self.kind == "AttributeReference":
            return (str(self.raw["name"]),)
        if self.kind == "GetStructField" and (parent := self.children[0].path()) is not None:
            return (*parent, str(self.raw["field"]))
        return None

    def jvm(self) -> Any:
        """Returns the node itself (Py4J object)."""
        return self.tree.node(self.position)

    def text(self) -> str:
        """Returns the node as SQL. For a long expression, returns only its class and size."""
        if self.size > _MOST_SPELLED:
            return f"{self.kind} of {self.size:,} parts"
        try:
            return str(self.jvm().sql())
        except Exception:
            return f"{self.kind} …"

    def type_name(self) -> str:
        """Returns Spark's name for the type of the result."""
        return self.tree.type_name(self.position)

    def type(self) -> pa.DataType:
        """Returns the Arrow type of the result.

        Raises:
            NotUnderstoodError: The type has no Arrow form, or it is text with a collation.
        """
        name = self.tree.type_name(self.position)
        if "collate" in name:
            raise NotUnderstoodError("it has a collation, whose order statistics do not keep", Remedy.NO_COLLATION)
        found = arrow_type(name)
        if found is None:
            raise NotUnderstoodError(f"type {name} has no statistics", Remedy.ORDERED_TYPE)
        return found


def tree_of(jvm: Jvm, expression: Any, budget: Budget) -> Node:
    """Reads a Catalyst ``Expression`` (Py4J object).

    Raises:
        OverBudgetError: The expression has more nodes than the budget has left.
    """
    handles: _Handles = jvm.once(_Handles)
    nodes = handles.nodes(expression, budget.nodes)
    if nodes is None:
        raise budget.too_large
    lines = handles.lines(nodes, handles.shape)
    budget.spend(len(lines))
    return _linked(lines, _Tree(handles, nodes, budget))


def _linked(lines: Sequence[str], tree: _Tree) -> Node:
    """Links nodes to their children and returns the root. Read from the end, children come just before their parent."""
    pending: list[Node] = []
    # Cached, because generated conditions repeat a few operators and columns thousands of times.
    parsed: dict[str, tuple[int, Mapping[str, Any]]] = {}
    for position in range(len(lines) - 1, -1, -1):
        line = lines[position]
        if line not in parsed:
            parsed[line] = _parsed(line)
        count, raw = parsed[line]
        children = [pending.pop() for _ in range(count)]
        pending.append(Node(raw, tree, position, children, 1 + sum(each.size for each in children)))
    (root,) = pending
    return root


def _parsed(line: str) -> tuple[int, Mapping[str, Any]]:
    """Returns the number of children of a node, and what `Node.raw` holds of it."""
    if (inner := _INNER.fullmatch(line)) is not None:
        name = None if inner[3] is None else unquote_plus(inner[3])
        return int(inner[1]), {"class": inner[2].removeprefix(_PACKAGE), "field": name}
    if (column := _COLUMN.fullmatch(line)) is not None:
        return 0, {"class": "AttributeReference", "name": unquote_plus(column[2]), "qualified": column[1] != "0"}
    if (constant := _CONSTANT.fullmatch(line)) is not None:
        return 0, {"class": "Literal", "dataType": constant[1], "value": unquote_plus(constant[2])}
    fields = json.loads(line)[0]
    return 0, {**fields, "class": str(fields["class"]).removeprefix(_PACKAGE)}


def scalar_of(node: Node, kind: pa.DataType) -> pa.Scalar:
    """Returns a ``Literal`` as a scalar of a type.

    Raises:
        NotUnderstoodError: The literal has another type.
    """
    spark_type, text = node.raw["dataType"], node.raw["value"]
    if text is None:
        return pa.scalar(None, kind)
    if arrow_type(spark_type) != kind:
        raise NotUnderstoodError(f"the constant has type {type_word(spark_type)}", Remedy.ORDERED_TYPE)
    if pa.types.is_string(kind):
        return pa.scalar(_valid(str(text)), kind)
    if pa.types.is_binary(kind):
        return pa.scalar(bytes(node.jvm().value()), kind)
    if pa.types.is_temporal(kind):
        return _of_integer(node.tree.integer(node.position), kind)
    return pa.scalar(_internal(str(text), kind), kind)


def integer_of(node: Node) -> int:
    """Returns a ``Literal`` as an integer: a whole number, or an interval in months or microseconds.

    Raises:
        NotUnderstoodError: The node is not such a literal, or is null.
    """
    if not node.is_literal:
        raise NotUnderstoodError(f"`{node.kind}` is not a constant", Remedy.WRITE_CONSTANTS)
    kind = str(node.raw["dataType"])
    whole = kind in ("byte", "short", "integer", "long") or kind.startswith("interval ")
    if not whole or node.raw["value"] is None:
        raise NotUnderstoodError("a constant that is not a whole number has no rule")
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
        raise NotUnderstoodError("the list holds more than constants", Remedy.WRITE_CONSTANTS)
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
        raise NotUnderstoodError("a member of the list holds a control character", remedy=None)
    if has_null:
        if pa.types.is_string(kind) and pieces.count("null") > 1:
            raise NotUnderstoodError("the list holds both NULL and the text 'null'", remedy=None)
        pieces.remove("null")
    found = [_internal(piece, kind) for piece in pieces]
    scalars = [_of_integer(each, kind) if pa.types.is_temporal(kind) else pa.scalar(each, kind) for each in found]
    return scalars + ([pa.scalar(None, kind)] if has_null else [])


def _array(scalars: Sequence[pa.Scalar], kind: pa.DataType) -> pa.Array:
    if not pa.types.is_temporal(kind):
        return pa.array([each.as_py() for each in scalars], kind)
    # Through integers: Python's dates end in the year 9999, and its datetimes lose time zone transitions.
    width = pa.int32() if pa.types.is_date32(kind) else pa.int64()
    return pa.array([each.value for each in scalars], width).cast(kind)


def _of_integer(value: int, kind: pa.DataType) -> pa.Scalar:
    """Returns a date, timestamp, time or interval from Spark's days, microseconds or, of a time, nanoseconds.

    Dates and timestamps may exceed Python's range.
    """
    if pa.types.is_time64(kind):
        value, below = divmod(value, 1_000)
        if below:
            raise NotUnderstoodError("the constant is finer than a microsecond", remedy=None)
    width = pa.int32() if pa.types.is_date32(kind) else pa.int64()
    return pa.scalar(value, width).cast(kind)


def _internal(text: str, kind: pa.DataType) -> Any:
    """Returns a value from the text of Spark's internal form, in which dates and timestamps are integers."""
    if pa.types.is_boolean(kind):
        return text.lower() == "true"
    if pa.types.is_floating(kind):
        return float(text)
    if pa.types.is_decimal(kind):
        return Decimal(text)
    if pa.types.is_string(kind):
        return _valid(text)
    return int(text)


def _valid(text: str) -> str:
    """Returns a text, whose bytes are those of the constant.

    Raises:
        NotUnderstoodError: It has the character in whose place other bytes than UTF-8 may have been.
    """
    if "\ufffd" in text:
        raise NotUnderstoodError("the constant may hold bytes that are not UTF-8", remedy=None)
    return text
