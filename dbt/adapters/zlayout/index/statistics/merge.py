"""Merging of file statistics by partition: associative and commutative; unknown values stay unknown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.index.statistics.column_stats import COUNT_TYPE
from dbt.adapters.zlayout.pruning.statistics.validation import valid

Groups = npt.NDArray[np.int64]


@dataclass(frozen=True)
class RowGroups:
    """Groups of rows with equal values.

    Attributes:
        group_of_row: The group of each row; groups are numbered by first appearance.
        first_rows: The first row of each group.
    """

    group_of_row: npt.NDArray[np.int64]
    first_rows: npt.NDArray[np.int64]

    @property
    def group_count(self) -> int:
        """Number of groups."""
        return len(self.first_rows)


def group_rows(columns: Sequence[pa.Array], row_count: int) -> RowGroups:
    """Groups rows by equal values; nulls are equal to each other.

    Args:
        columns: Partition columns as text; without columns all rows form one group.
        row_count: Length of each.

    >>> group_rows([pa.array(["ch", "de", "ch", None])], 4).group_of_row.tolist()
    [0, 1, 0, 2]
    """
    codes = np.zeros(row_count, np.int64)
    for column in columns:
        encoded = pc.dictionary_encode(column, null_encoding="encode")
        codes = codes * max(len(encoded.dictionary), 1) + encoded.indices.to_numpy()
        # Renumbered for each column, so that many columns do not overflow.
        codes = np.unique(codes, return_inverse=True)[1].reshape(-1)
    _, first, group = np.unique(codes, return_index=True, return_inverse=True)
    by_appearance = np.argsort(first)
    number = np.empty_like(by_appearance)
    number[by_appearance] = np.arange(len(by_appearance))
    return RowGroups(number[group.reshape(-1)].astype(np.int64), first[by_appearance].astype(np.int64))


def merge_statistics(stats: pa.StructArray, groups: Groups, group_count: int) -> pa.StructArray:
    """Merges rows of one column's statistics.

    Args:
        stats: Array of `stats_type`.
        groups: The group of each row, from 0.
        group_count: Number of groups; a group without rows becomes the neutral element (counts 0, no bounds).

    Returns:
        One row per group. A bound is known if it is known in every row of the group that has values; it is exact if it
        is exact in a row that has it. A count is known if it is known in all rows.
    """
    without_values = _without_values(stats)
    low, low_exact = _extreme(stats, "min", without_values, groups, group_count)
    high, high_exact = _extreme(stats, "max", without_values, groups, group_count)
    counts = [
        merge_counts(stats.field(name), groups, group_count) for name in ("null_count", "nan_count", "value_count")
    ]
    return pa.StructArray.from_arrays([low, high, low_exact, high_exact, *counts], fields=list(stats.type))


def merge_counts(counts: pa.Array, groups: Groups, group_count: int) -> pa.Array:
    """Sums counts per group; a null makes the sum of its group null."""
    sums = np.zeros(group_count, np.int64)
    np.add.at(sums, groups, pc.fill_null(counts, 0).to_numpy(zero_copy_only=False))
    return pa.array(sums, COUNT_TYPE, mask=_any_of(~valid(counts), groups, group_count))


def _without_values(stats: pa.StructArray) -> npt.NDArray[np.bool_]:
    """Returns which rows are known to hold only nulls and NaN, so that missing bounds are not unknown."""
    present = pc.subtract(stats.field("value_count"), pc.add(stats.field("null_count"), stats.field("nan_count")))
    known: npt.NDArray[np.bool_] = pc.fill_null(pc.equal(present, 0), False).to_numpy(zero_copy_only=False)
    return known


def _extreme(
    stats: pa.StructArray, side: str, without_values: npt.NDArray[np.bool_], groups: Groups, group_count: int
) -> tuple[pa.Array, pa.Array]:
    values, exact = stats.field(side), pc.fill_null(stats.field(f"{side}_exact"), False)
    unknown = _any_of(~valid(values) & ~without_values, groups, group_count)
    sortable = values.cast(pa.int8()) if pa.types.is_boolean(values.type) else values
    keyed = pa.table({"group": groups, "value": sortable, "inexact": pc.cast(pc.invert(exact), pa.int8())})
    direction = "ascending" if side == "min" else "descending"
    # Nulls sort last by default, in either direction.
    order = pc.sort_indices(
        keyed,
        sort_keys=[("group", "ascending"), ("value", direction), ("inexact", "ascending")],
    ).to_numpy()
    chosen = np.full(group_count, -1, np.int64)
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    chosen[groups[order[starts]]] = order[starts]
    taken = pa.array(chosen, mask=(chosen < 0) | unknown)
    bound = values.take(taken)
    return bound, pc.and_(pc.fill_null(exact.take(taken), False), pc.is_valid(bound))


def _any_of(flags: npt.NDArray[np.bool_], groups: Groups, group_count: int) -> npt.NDArray[np.bool_]:
    marked = np.zeros(group_count, np.bool_)
    marked[groups[flags]] = True
    return marked


def merge_known(stats: pa.StructArray, groups: npt.NDArray[np.int64], known: pa.Array) -> pa.Array:
    """Merges statistics of rows that may belong to no group; groups that are not known become null.

    Args:
        stats: Statistics of n rows.
        groups: int64[n], -1 for none.
        known: For each group, whether its rows describe it completely.
    """
    inside = np.flatnonzero(groups >= 0)
    merged = merge_statistics(fields_of(stats.take(pa.array(inside))), groups[inside], len(known))
    return pc.if_else(known, merged, pa.scalar(None, merged.type))


def fields_of(stats: pa.StructArray) -> pa.StructArray:
    """Returns the struct with its own nulls pushed down into its fields."""
    return pa.StructArray.from_arrays(stats.flatten(), fields=list(stats.type))
