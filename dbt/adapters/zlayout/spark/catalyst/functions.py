"""Maps Catalyst's functions to chains of our functions, innermost first; each entry reads one Catalyst class."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import Decimal

import pyarrow as pa

from dbt.adapters.zlayout.predicate import functions as f
from dbt.adapters.zlayout.predicate.functions import Rounding, Zone
from dbt.adapters.zlayout.spark.catalyst.reading import Chain, Reading, sides_of, unary
from dbt.adapters.zlayout.spark.catalyst.times import TIME_FUNCTIONS, from_instant, to_instant, zone_at
from dbt.adapters.zlayout.spark.catalyst.tree import Node, NotUnderstoodError, integer_of, scalar_of

_DATE, _INSTANT, _TEXT = pa.date32(), pa.timestamp("us", "UTC"), pa.string()


def _cast(node: Node) -> Reading:
    child = node.children[0]
    source, target = child.type(), node.type()
    return child, _conversion(source, target, lambda: zone_at(node))


def _conversion(source: pa.DataType, target: pa.DataType, zone: Callable[[], Zone]) -> Chain:
    kinds = pa.types
    if source == _INSTANT:
        return from_instant(target, zone)
    if target == _INSTANT:
        return to_instant(source, zone)
    from_text = kinds.is_string(source) and not kinds.is_binary(target)
    if kinds.is_boolean(target) or from_text or (kinds.is_string(target) and source != _DATE):
        raise NotUnderstoodError(f"casting {f.type_name(source)} to {f.type_name(target)} does not keep an order")
    return [f.Convert(target)]


def _number(node: Node) -> f.Number:
    value: object = scalar_of(node, node.type()).as_py()
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise NotUnderstoodError(f"`{node.kind}` is no constant number")
    if isinstance(value, float) and not math.isfinite(value):
        raise NotUnderstoodError("arithmetic with infinity or NaN has no rule")
    return value


def _factor(node: Node) -> f.Number:
    found = _number(node)
    if found == 0:
        raise NotUnderstoodError("a product with 0, or a quotient by it, has no rule")
    return found


def _add(node: Node) -> Reading:
    operand, constant, _ = sides_of(node)
    return operand, [f.Plus(node.type(), _number(constant))]


def _subtract(node: Node) -> Reading:
    operand, constant, swapped = sides_of(node)
    amount = _number(constant)
    if swapped:
        return operand, [f.Negate(operand.type()), f.Plus(node.type(), amount)]
    return operand, [f.Plus(node.type(), -amount)]


def _multiply(node: Node) -> Reading:
    operand, constant, _ = sides_of(node)
    return operand, [f.Times(node.type(), _factor(constant))]


def _divide(node: Node) -> Reading:
    operand, constant, swapped = sides_of(node)
    if swapped:
        raise NotUnderstoodError("a quotient by a column goes two ways at 0")
    return operand, [f.Over(node.type(), _factor(constant))]


def _modulo(node: Node) -> Reading:
    operand, constant, swapped = sides_of(node)
    divisor = 0 if swapped else integer_of(constant)
    if divisor <= 0:
        raise NotUnderstoodError("a remainder by a column, or by no positive number, has no rule")
    return operand, [f.Remainder(node.type(), divisor, node.kind == "Pmod")]


def _rounded(rounding: Rounding) -> Callable[[Node], Reading]:
    def read(node: Node) -> Reading:
        digits = integer_of(node.children[1]) if len(node.children) > 1 else 0
        return node.children[0], [f.Rounded(node.type(), rounding, digits)]

    return read


def _substring(node: Node) -> Reading:
    text, start, length = node.children
    if integer_of(start) not in (0, 1) or integer_of(length) < 1:
        raise NotUnderstoodError("only the beginning of a text keeps the order")
    return text, [f.Prefix(node.type(), integer_of(length))]


def _case(upper: bool) -> Callable[[Node], Reading]:
    return lambda node: (node.children[0], [f.FoldedCase(node.type(), upper)])


def _concat(node: Node) -> Reading:
    if node.type() != _TEXT or len(node.children) != 2 or not node.children[0].is_literal:
        raise NotUnderstoodError("only a constant before a text keeps the order")
    head = scalar_of(node.children[0], _TEXT)
    if not head.is_valid:
        raise NotUnderstoodError("it is always null")
    return node.children[1], [f.Prepended(_TEXT, head)]


FUNCTIONS: Mapping[str, Callable[[Node], Reading]] = {
    **TIME_FUNCTIONS,
    "Abs": unary(f.Absolute),
    "Add": _add,
    "BRound": _rounded(Rounding.HALF_EVEN),
    "Cast": _cast,
    "Ceil": _rounded(Rounding.CEILING),
    "Concat": _concat,
    "Divide": _divide,
    "Floor": _rounded(Rounding.FLOOR),
    "IntegralDivide": _divide,
    "Lower": _case(upper=False),
    "Multiply": _multiply,
    "Pmod": _modulo,
    "Remainder": _modulo,
    "Round": _rounded(Rounding.HALF_UP),
    "RoundCeil": _rounded(Rounding.CEILING),
    "RoundFloor": _rounded(Rounding.FLOOR),
    "Substring": _substring,
    "Subtract": _subtract,
    "UnaryMinus": unary(f.Negate),
    "Upper": _case(upper=True),
}
