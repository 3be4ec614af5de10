"""Curve intervals: the interval of the curve that contains each file's rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.curve.model import CurveModel
from dbt.adapters.zlayout.layout.measures.spans import ranked
from dbt.adapters.zlayout.pruning.statistics.validation import Facts

_BOUNDED_BY_CORNERS = ("zorder", "linear")


def curve_intervals(
    model: CurveModel, keys: Sequence[Facts]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] | None:
    """Returns the curve intervals of n files.

    A position on a z-order or linear curve increases with each key, so the corners of a box bound those of its rows.

    Args:
        model: The curve.
        keys: The validated statistics of each key.

    Returns:
        Ranks of the lowest and the highest position, int64[n] each; None for a curve that corners do not bound.
    """
    if model.curve not in _BOUNDED_BY_CORNERS or not keys:
        return None
    first = model.curve_values([_lowest(each) for each in keys])
    last = model.curve_values([_highest(each) for each in keys])
    open_above = [each.may_be_number & _is_null(each.maximum) & ~each.may_be_nan for each in keys]
    last[np.logical_or.reduce(open_above)] = np.iinfo(last.dtype).max
    _, positions = ranked(first, last)
    return positions[: len(first)], positions[len(first) :]


def _lowest(key: Facts) -> pa.Array:
    """Returns the smallest value; null, which sorts first, where it is unknown."""
    only_nan = ~key.may_be_number & key.may_be_nan
    low = pc.if_else(pa.array(only_nan), _nan(key), key.minimum) if only_nan.any() else key.minimum
    return pc.if_else(pa.array(key.may_be_null), pa.scalar(None, low.type), low)


def _highest(key: Facts) -> pa.Array:
    """Returns the largest value; NaN sorts last."""
    return pc.if_else(pa.array(key.may_be_nan), _nan(key), key.maximum) if key.may_be_nan.any() else key.maximum


def _nan(key: Facts) -> pa.Scalar:
    return pa.scalar(float("nan"), key.maximum.type)


def _is_null(array: pa.Array) -> npt.NDArray[np.bool_]:
    flags: npt.NDArray[np.bool_] = array.is_null().to_numpy(zero_copy_only=False)
    return flags
