"""Joins of a query whose other side is small: its values, as a condition on the column that they are joined to.

Spark gives a small side's values to partition columns only (dynamic partition pruning), never to a file index. What
they would skip is told by `explain`; ``zlayout_prune_by`` writes them into the query.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dbt.adapters.zlayout.spark.jvm.scala import Jvm, members

MOST_BYTES = 10 << 20
"""The default of ``spark.sql.autoBroadcastJoinThreshold``: a side that Spark takes for larger is not looked at."""

# By type of the join, the sides whose rows are only wanted where the other side has their key.
_FILTERED = {"inner": ("left", "right"), "leftsemi": ("left",), "leftouter": ("right",), "rightouter": ("left",)}
_PASSED_THROUGH = ("Project", "Filter", "SubqueryAlias")


@dataclass(frozen=True)
class JoinSide:
    """One key of a join.

    Attributes:
        column_id: Spark's id of the column that is joined.
        text: The key of the other side, for people to read.
        key: That key (Catalyst expression).
        plan: The other side (logical plan).
    """

    column_id: int
    text: str
    key: Any
    plan: Any


def join_sides(jvm: Jvm, logical: Any) -> Iterator[JoinSide]:
    """The keys of all joins of an optimized plan whose other side is small.

    Only columns that come from a relation through projections, filters and inner joins: nothing in between may need the
    rows that the join would not.
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
    """Runs the small side.

    Args:
        jvm: The driver's JVM.
        session: The session (Py4J object).
        side: The join's other side.
        column: The column that is joined (Catalyst attribute).

    Returns:
        The number of distinct values and the condition that the column is one of them (Catalyst expression).
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
    """Ids of the columns of relations below a plan whose rows nothing in between counts or orders."""
    name = str(plan.nodeName())
    if str(plan.getClass().getSimpleName()) == "LogicalRelation":
        return {int(each.exprId().id()) for each in members(plan.output())}
    inner = name == "Join" and str(plan.joinType().sql()) == "INNER"
    if name not in _PASSED_THROUGH and not inner:
        return set()
    return {each for child in members(plan.children()) for each in _reached(child)}
