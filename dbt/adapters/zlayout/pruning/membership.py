"""Membership test: which files' intervals contain a value of a list, for lists of any length."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.pruning.statistics.validation import valid
from dbt.adapters.zlayout.pruning.statistics.verdict import Flags


def holds_member(minimum: pa.Array, maximum: pa.Array, members: pa.Array) -> Flags:
    """Returns for each file whether some member lies in [minimum, maximum].

    Each member is tested on its own: a list whose ends enclose a file but which has no value inside it skips the file.

    Args:
        minimum: Lower bounds, one per file; null is unbounded.
        maximum: Upper bounds; null is unbounded.
        members: Of the bounds' type, without nulls and NaN.
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
    """Returns numbers that compare as the values do; entries for nulls are arbitrary."""
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
    # Strings, bytes and decimals have no numpy order: uses their ranks among all given values instead.
    together = pa.concat_arrays([minimum, maximum, members])
    rank = pc.rank(together, tiebreaker="dense").to_numpy(zero_copy_only=False)
    count = len(minimum)
    return rank[:count], rank[count : 2 * count], rank[2 * count :]
