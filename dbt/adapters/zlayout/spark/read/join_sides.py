"""Finds the joins of a query that have a small side, and turns its values into a condition on the joined column.

Spark uses the values of a small side for partition columns only (dynamic partition pruning) and never passes them to a
file index. `explain` reports what they would skip; ``zlayout_prune_by`` writes them into the query.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dbt.adapters.zlayout.spark.jvm.scala import Jvm, members

MOST_BYTES = 10 << 20
"""The default of ``spark.sql.autoBroadcastJoinThreshold``. Sides that Spark estimates to be larger are ignored."""

# For each join type, the sides whose rows survive only if the other side has their key.
_FILTERED = {"inner": ("left", "right"), "leftsemi": ("left",), "leftouter": ("right",), "rightouter": ("left",)}
_PASSED_THROUGH = ("Project", "Filter", "SubqueryAlias")


@dataclass(frozen=True)
class JoinSide:
    """One key of a join.

    Attributes:
        column_id: Spark's id of the joined column.
        text: The key of the other side as SQL, for display.
        key: The same key as a Catalyst expression.
        plan: The other side (logical plan).
    """

    column_id: int
    text: str
    key: Any
    plan: Any


def join_sides(jvm: Jvm, logical: Any) -> Iterator[JoinSide]:
    """Yields the keys of all joins of an optimized plan that have a small other side.

    Only columns that reach the join from a relation through projections, filters and inner joins count: no other node
    in between may depend on the rows that the join drops.
    """
    extract = jvm.companion("org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys")
    for join in _nodes(logical, "Join"):
        found = extract.unapply(join)
        filtered = _FILTERED.get(str(join.joinType().sql()).replace(" ", "").lower(), ())
        if not found.isDefined() or not filtered:
            continue
        keys = {"left": found.get()._2(), "right": found.get()._3()}
        for side in filtered:
            other = "right" if side == "left" else "left"
            plan = getattr(join, other)()
            if int(plan.stats().sizeInBytes()) > MOST_BYTES:
                continue
            reached = _reached(getattr(join, side)())
            for column, key in zip(members(keys[side]), members(keys[other]), strict=True):
                if str(column.nodeName()) == "AttributeReference" and int(column.exprId().id()) in reached:
                    yield JoinSide(int(column.exprId().id()), str(key.sql()), key, plan)


def values_as_filter(jvm: Jvm, session: Any, side: JoinSide, column: Any) -> tuple[int, Any]:
    """Runs the small side of a join and turns its keys into a condition.

    Args:
        jvm: The driver's JVM.
        session: The session (Py4J object).
        side: The join's other side.
        column: The joined column (Catalyst attribute).

    Returns:
        The number of distinct values, and the condition that the column equals one of them (Catalyst expression).
    """
    expressions = jvm.catalyst.expressions
    collected = expressions.aggregate.CollectSet(side.key).toAggregateExpression()
    identity = jvm.companion("org.apache.spark.sql.catalyst.expressions.NamedExpression").newExprId()
    named = expressions.Alias(collected, "key_values", identity, jvm.seq([]), jvm.none(), jvm.seq([]))
    query = jvm.case_class(
        "org.apache.spark.sql.catalyst.plans.logical.Aggregate", [jvm.seq([]), jvm.seq([named]), side.plan]
    )
    state = session.sessionState()
    plan = state.executePlan(query, getattr(state, "executePlan$default$2")()).executedPlan()
    array = plan.executeCollect()[0].getArray(0)
    found = jvm.root.java.util.Arrays.asList(array.toObjectArray(side.key.dataType()))
    return int(array.numElements()), expressions.InSet(column, jvm.seq_of(found).toSet())


def _nodes(plan: Any, name: str) -> Iterator[Any]:
    if str(plan.nodeName()) == name:
        yield plan
    for child in members(plan.children()):
        yield from _nodes(child, name)


def _reached(plan: Any) -> set[int]:
    """Returns the ids of the relation columns that reach a plan through projections, filters and inner joins only."""
    name = str(plan.nodeName())
    if str(plan.getClass().getSimpleName()) == "LogicalRelation":
        return {int(each.exprId().id()) for each in members(plan.output())}
    inner = name == "Join" and str(plan.joinType().sql()) == "INNER"
    if name not in _PASSED_THROUGH and not inner:
        return set()
    return {each for child in members(plan.children()) for each in _reached(child)}
