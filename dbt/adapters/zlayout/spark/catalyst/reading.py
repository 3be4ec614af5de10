"""What reading a Catalyst function gives, and what the readers share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from dbt.adapters.zlayout.predicate.terms import Function
from dbt.adapters.zlayout.spark.catalyst.tree import Node, NotUnderstoodError

Chain = Sequence[Function]
"""Functions to apply one after the other."""

Reading = tuple[Node, Chain]
"""The argument, and the functions to apply to it."""


def sides_of(node: Node) -> tuple[Node, Node, bool]:
    """The operand, the constant, and whether the constant is on the left."""
    left, right = node.children
    if right.is_literal:
        return left, right, False
    if left.is_literal:
        return right, left, True
    raise NotUnderstoodError("two columns have no rule")


def unary(function: Callable[[pa.DataType], Function]) -> Callable[[Node], Reading]:
    """A function of one argument that needs to know no more than the type of its result."""
    return lambda node: (node.children[0], [function(node.type())])
