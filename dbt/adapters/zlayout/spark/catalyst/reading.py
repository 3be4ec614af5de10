"""The result of reading a Catalyst function, and code that the readers share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from dbt.adapters.zlayout.predicate.expr import Function
from dbt.adapters.zlayout.spark.catalyst.tree import Node, NotUnderstoodError

Chain = Sequence[Function]
"""Functions to apply in order."""

Reading = tuple[Node, Chain]
"""The argument of a Catalyst function, and the functions to apply to it."""


def sides_of(node: Node) -> tuple[Node, Node, bool]:
    """Returns the operand, the constant, and whether the constant is on the left.

    Raises:
        NotUnderstoodError: Neither side is a constant.
    """
    left, right = node.children
    if right.is_literal:
        return left, right, False
    if left.is_literal:
        return right, left, True
    raise NotUnderstoodError("two columns have no rule")


def unary(function: Callable[[pa.DataType], Function]) -> Callable[[Node], Reading]:
    """Returns the reader of a function with one argument that only needs the type of its result."""
    return lambda node: (node.children[0], [function(node.type())])
