"""Renders Python values and names as text for a Spark statement."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

from dbt.adapters.zlayout.predicate.literals import backquoted as quoted_identifier
from dbt.adapters.zlayout.spark.schema.table_schema import string_literal

__all__ = ["literal", "quoted_identifier", "string_literal"]


def literal(value: object) -> str:
    """The SQL literal of a seed's value. Numbers keep all their digits."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Decimal) and value.is_finite():
        return format(value, "f")
    if isinstance(value, float) and math.isfinite(value):
        return f"{value!r}d"
    if isinstance(value, dt.datetime):
        return string_literal(value.isoformat(sep=" "))
    return string_literal(str(value))
