"""Conversion of bounds between Arrow and numpy; nulls pass through."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.pruning.propagation.monotone import Bound, within
from dbt.adapters.zlayout.pruning.statistics.validation import valid
from dbt.adapters.zlayout.pruning.statistics.verdict import Flags

DAY_US = 86_400_000_000
FARTHEST_US = 2**62
"""Instants and wall-clock times farther from 1970 than this are not evaluated: sums with them may overflow."""


def numbers(values: pa.Array) -> npt.NDArray[Any]:
    """Returns numbers, or the integers underlying dates and timestamps; 0 for null."""
    kind = values.type
    if pa.types.is_date32(kind):
        values = values.view(pa.int32())
    elif pa.types.is_timestamp(kind):
        values = values.view(pa.int64())
    elif pa.types.is_boolean(kind):
        values = values.cast(pa.int8())
    result: npt.NDArray[Any] = pc.fill_null(values, pa.scalar(0, values.type)).to_numpy(zero_copy_only=False)
    return result


def arrow(values: npt.NDArray[Any], kind: pa.DataType, like: pa.Array) -> pa.Array:
    """Returns numpy values as an Arrow array, null where ``like`` is null; temporal types are given as integers."""
    if pa.types.is_date32(kind):
        made = pa.array(values.astype(np.int32)).view(kind)
    elif pa.types.is_timestamp(kind):
        made = pa.array(values.astype(np.int64)).view(kind)
    else:
        made = pa.array(values).cast(kind)
    return pc.if_else(pc.is_valid(like), made, pa.scalar(None, kind))


def bound(values: npt.NDArray[Any], kind: pa.DataType, like: pa.Array, known: Flags) -> Bound:
    """Returns f of a bound; where ``like`` is null there is nothing to map, which counts as known."""
    known = known | ~valid(like)
    if not known.all():
        values = np.where(known, values, np.zeros(1, values.dtype))
    return within(arrow(values, kind, like), known)


def integer_limits(kind: pa.DataType) -> tuple[int, int]:
    """Returns the least and greatest value of a signed integer, date or timestamp type."""
    bits = kind.bit_width
    return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1


def near(values: pa.Array) -> Flags:
    """Returns which dates or timestamps are so near to 1970 that microseconds plus an offset do not overflow."""
    found = numbers(values)
    limit = FARTHEST_US // DAY_US if pa.types.is_date32(values.type) else FARTHEST_US
    result: Flags = (found >= -limit) & (found <= limit)
    return result
