"""Bound propagation: from bounds of a column to bounds of a function of it, one rule per function with its proof."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from dbt.adapters.zlayout.predicate import functions as f
from dbt.adapters.zlayout.predicate.expr import Function
from dbt.adapters.zlayout.pruning.propagation import arithmetic, calendar, numbers, texts
from dbt.adapters.zlayout.pruning.statistics.validation import Facts

_RULES: Mapping[type[Function], Callable[[Any, Facts], Facts | None]] = {
    f.Absolute: arithmetic.absolute,
    f.Convert: numbers.convert,
    f.FoldedCase: texts.folded_case,
    f.FromTicks: calendar.from_ticks,
    f.InstantOf: calendar.instant_of,
    f.LastDay: calendar.last_day,
    f.LocalTime: calendar.local_time,
    f.Negate: arithmetic.negate,
    f.Over: arithmetic.over,
    f.PartOf: calendar.part_of,
    f.Plus: arithmetic.plus,
    f.PlusMonths: calendar.plus_months,
    f.Prefix: texts.prefix,
    f.Prepended: texts.prepended,
    f.Remainder: arithmetic.remainder,
    f.Rounded: numbers.rounded,
    f.Ticks: calendar.ticks,
    f.Times: arithmetic.times,
    f.Truncated: calendar.truncated,
}


def propagate(function: Function, facts: Facts) -> Facts | None:
    """Maps facts about x to facts about f(x).

    Args:
        function: f.
        facts: About x, one entry per file.

    Returns:
        Facts about f(x); None if f has no rule for this type.

    Raises:
        pyarrow.ArrowException: Arrow has no such operation for these values.
    """
    if _has_no_arithmetic(facts.minimum.type) or _has_no_arithmetic(function.type):
        # Only a cast that changes no value says so: to a type with the same Arrow type.
        same = isinstance(function, f.Convert) and function.type == facts.minimum.type
        return facts if same else None
    return _RULES[type(function)](function, facts)


def _has_no_arithmetic(kind: pa.DataType) -> bool:
    return bool(pa.types.is_time64(kind) or pa.types.is_duration(kind))
