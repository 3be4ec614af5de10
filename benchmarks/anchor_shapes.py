"""Which filters Delta, Iceberg and Hudi make use of, by the shape that Spark's optimizer leaves.

The rules are read from their sources; docs/comparison.md names file and function of each. A rule says whether the shape
is translated into a condition on a file's bounds and counts at all, for a column that has them; what the answer is for
a file is not asked.
"""

# ruff: noqa: PLR0911 - one return a rule
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from dbt.adapters.zlayout.spark.catalyst.tree import Node, NotUnderstoodError

COMPARISONS = {"EqualTo", "EqualNullSafe", "LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual"}
_YEAR_FIRST = {"yyyy", "yyyy-MM", "yyyy-MM-dd", "yyyy-MM-dd HH:mm:ss", "yyyyMMdd", "yyyy/MM/dd"}
_KEPT_ORDER = {
    "Add", "DateAdd", "DateSub", "Exp", "Expm1", "Log", "Log10", "Log1p", "Log2", "ShiftLeft", "ShiftRight",
    "FromUnixTime", "ToUnixTimestamp",
}  # fmt: skip
_BROKEN_ORDER = {"Lower", "Upper", "BitwiseOr", "DateDiff", "DateFormatClass", "FromUTCTimestamp", "ToUTCTimestamp"}


def delta(node: Node) -> str:
    """'yes' or 'no'; what is usable only in files of a single value, and only if that is switched on, is 'no'."""
    return _yes(_delta(node))


def iceberg(node: Node) -> str:
    """'yes' or 'no'."""
    return _yes(any(_iceberg(each) for each in top_conjuncts(node)))


def hudi(node: Node) -> str:
    """'yes', 'no', or 'wrong' for a function whose order the bounds of the column do not keep."""
    return _hudi(node)


def top_conjuncts(node: Node) -> list[Node]:
    """The members of a conjunction."""
    return [part for each in node.children for part in top_conjuncts(each)] if node.kind == "And" else [node]


def is_column(node: Node) -> bool:
    """Whether it is a column or a field of one, nothing more."""
    if node.kind.endswith("GetStructField"):
        return is_column(node.children[0])
    return node.kind.endswith("AttributeReference")


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _type(node: Node) -> pa.DataType | None:
    try:
        return node.type()
    except NotUnderstoodError:
        return None


def _sides(node: Node) -> tuple[Node, Node] | None:
    """What is compared, and the constant it is compared with."""
    left, right = node.children
    if right.is_literal:
        return left, right
    return (right, left) if left.is_literal else None


def _inverted(
    node: Node, usable: Callable[[Node], Any], both: Callable[[list[Any]], Any], one: Callable[[list[Any]], Any]
) -> Any:
    """A negated AND or OR, each part negated."""
    parts = [usable(_not(each)) for each in node.children]
    return one(parts) if node.kind == "And" else both(parts)


def _not(node: Node) -> Node:
    negated = Node({"class": "Not"}, node.root, node.route)
    negated.children = [node]
    return node.children[0] if node.kind == "Not" else negated


def _delta(node: Node) -> bool:
    kind = node.kind
    if kind == "And":
        return any(_delta(each) for each in node.children)
    if kind == "Or":
        return all(_delta(each) for each in node.children)
    if kind in COMPARISONS:
        sides = _sides(node)
        return sides is not None and _has_bounds_in_delta(sides[0])
    if kind in ("In", "InSet"):
        return _has_bounds_in_delta(node.children[0]) and all(each.is_literal for each in node.children[1:])
    if kind == "StartsWith":
        return is_column(node.children[0]) and _type(node.children[0]) == pa.string()
    if kind == "IsNotNull":
        return is_column(node.children[0]) and _is_leaf(node.children[0])
    if kind == "IsNull":
        return _delta_is_null(node.children[0])
    if kind == "Not":
        return _delta_not(node.children[0])
    return False


def _delta_not(inner: Node) -> bool:
    if inner.kind in ("And", "Or"):
        return bool(_inverted(inner, _delta, any, all))
    if inner.kind == "IsNull":
        return is_column(inner.children[0]) and _is_leaf(inner.children[0])
    return inner.kind in COMPARISONS and _delta(inner)


def _delta_is_null(inner: Node) -> bool:
    if is_column(inner):
        return _is_leaf(inner)
    if inner.kind in COMPARISONS - {"EqualNullSafe"} or inner.kind in ("Not", "StartsWith", "And", "Or"):
        return all(each.is_literal or _delta_is_null(each) for each in inner.children)
    return False


def _has_bounds_in_delta(node: Node) -> bool:
    found = _type(node) if is_column(node) else None
    return found is not None and not (pa.types.is_boolean(found) or pa.types.is_binary(found))


def _is_leaf(node: Node) -> bool:
    found = _type(node)
    return found is not None and not pa.types.is_nested(found)


def _iceberg(node: Node) -> bool:
    kind = node.kind
    if kind in ("And", "Or"):
        return all(_iceberg(each) for each in node.children)
    if kind in COMPARISONS:
        sides = _sides(node)
        if sides is None or not is_column(sides[0]) or not _is_leaf(sides[0]):
            return False
        return kind in ("EqualTo", "EqualNullSafe") or not _is_nan(sides[1])
    if kind in ("In", "InSet"):
        members = node.children[1:]
        return is_column(node.children[0]) and all(each.is_literal and not _is_nan(each) for each in members)
    if kind == "StartsWith":
        return is_column(node.children[0]) and node.children[1].is_literal
    if kind in ("IsNull", "IsNotNull"):
        return is_column(node.children[0]) and _is_leaf(node.children[0])
    if kind == "Not":
        return _iceberg(node.children[0])
    return is_column(node) and _type(node) == pa.bool_()


def _is_nan(literal: Node) -> bool:
    kind = _type(literal)
    return kind is not None and pa.types.is_floating(kind) and math.isnan(float(literal.raw["value"] or 0))


def _hudi(node: Node) -> str:
    kind = node.kind
    if kind in ("And", "Or"):
        return (_best if kind == "And" else _worst)([_hudi(each) for each in node.children])
    if kind in COMPARISONS - {"EqualNullSafe"}:
        sides = _sides(node)
        return "no" if sides is None else _transformed(sides[0])
    if kind in ("In", "InSet"):
        return _transformed(node.children[0])
    if kind == "StartsWith":
        return "no" if _transformed(node.children[0]) == "no" else "wrong"
    if kind in ("IsNull", "IsNotNull"):
        return _yes(node.children[0].kind.endswith("AttributeReference") and _is_leaf(node.children[0]))
    if kind == "Not":
        inner = node.children[0]
        if inner.kind in ("And", "Or"):
            return str(_inverted(inner, _hudi, _best, _worst))
        if inner.kind in ("EqualTo", "In"):
            return _hudi(inner)
        if inner.kind == "StartsWith":
            return _transformed(inner.children[0])
    return "no"


def _best(parts: list[str]) -> str:
    """Of a conjunction: one part is enough, and one wrong part spoils it."""
    return next((each for each in ("wrong", "yes") if each in parts), "no")


def _worst(parts: list[str]) -> str:
    return next((each for each in ("no", "wrong") if each in parts), "yes")


def _transformed(node: Node) -> str:
    """A column under functions that are held to keep its order."""
    if node.kind.endswith("AttributeReference"):
        return _yes(_is_leaf(node))
    columns = [each for each in node.children if not each.is_literal]
    if len(columns) != 1:
        return "no"
    inner = _transformed(columns[0])
    if inner == "no":
        return "no"
    if node.kind in ("Multiply", "Divide"):
        factor = next(each for each in node.children if each.is_literal)
        below = node.kind == "Divide" and node.children[1] is columns[0]
        return "no" if below or float(factor.raw["value"]) <= 0 else inner
    if node.kind == "Cast":
        return _worst([inner, _cast(_type(columns[0]), _type(node))])
    if node.kind == "DateDiff":
        return inner if node.children[0] is columns[0] else "wrong"
    if node.kind == "DateFormatClass":
        return inner if str(node.children[1].raw["value"]) in _YEAR_FIRST else "wrong"
    if node.kind == "GetTimestamp":
        return inner if str(node.children[1].raw["value"]) in _YEAR_FIRST else "no"
    if node.kind in _BROKEN_ORDER:
        return "wrong"
    return inner if node.kind in _KEPT_ORDER else "no"


def _cast(old: pa.DataType | None, new: pa.DataType | None) -> str:
    if old is None or new is None:
        return "no"
    numeric = [
        pa.types.is_integer(each) or pa.types.is_floating(each) or pa.types.is_decimal(each) for each in (old, new)
    ]
    if all(numeric):
        wider = (
            pa.types.is_decimal(new)
            if pa.types.is_decimal(old)
            else pa.types.is_floating(new) or new.bit_width > old.bit_width
        )
        narrowed = pa.types.is_floating(old) and not pa.types.is_floating(new)
        return _yes((wider and not narrowed and new != pa.float32()) or old == new)
    if pa.types.is_string(old) or (pa.types.is_string(new) and any(numeric)):
        return "no" if any(numeric) or pa.types.is_string(new) else "wrong"
    return "yes"
