"""Which files' intervals hold a value of a list, for lists of any length."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.pruning.statistics.validation import valid
from dbt.adapters.zlayout.pruning.statistics.verdict import Flags


def holds_member(minimum: pa.Array, maximum: pa.Array, members: pa.Array) -> Flags:
    """Tells for each file whether some member lies in [minimum, maximum].

    Every member counts by itself: a list whose ends span a file but which has nothing inside it does not keep the file.

    Args:
        minimum: Lower bounds, one a file; null is open.
        maximum: Upper bounds; null is open.
        members: Without nulls and NaN, of the bounds' type.
    """
    lowest, highest, ordered = _comparable(minimum, maximum, members)
    ordered = np.sort(ordered)
    first_inside = np.where(valid(minimum), np.searchsorted(ordered, lowest, side="left"), 0)
    first_above = np.where(valid(maximum), np.searchsorted(ordered, highest, side="right"), len(ordered))
    result: Flags = first_above > first_inside
    return result


def _comparable(
    minimum: pa.Array, maximum: pa.Array, members: pa.Array
) -> tuple[npt.NDArray[np.generic], npt.NDArray[np.generic], npt.NDArray[np.generic]]:
    """Numbers that compare as the values do; what stands for null is arbitrary."""
    kind = minimum.type
    if pa.types.is_boolean(kind):
        kind = pa.uint8()
        minimum, maximum, members = (each.cast(kind) for each in (minimum, maximum, members))
    elif pa.types.is_date32(kind) or pa.types.is_timestamp(kind):
        kind = pa.int32() if pa.types.is_date32(kind) else pa.int64()
        minimum, maximum, members = (each.view(kind) for each in (minimum, maximum, members))
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        zero = pa.scalar(0, kind)
        lowest, highest, ordered = (
            pc.fill_null(each, zero).to_numpy(zero_copy_only=False) for each in (minimum, maximum, members)
        )
        return lowest, highest, ordered
    # Strings, bytes and decimals have no numpy order: ranks among all values at hand stand for them.
    together = pa.concat_arrays([minimum, maximum, members])
    rank = pc.rank(together, tiebreaker="dense").to_numpy(zero_copy_only=False)
    count = len(minimum)
    return rank[:count], rank[count : 2 * count], rank[2 * count :]
