"""What a clustering run rewrites: groups of files, chosen from the index alone, within a budget."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dbt.adapters.zlayout.layout.cost import CostModel
from dbt.adapters.zlayout.layout.groups import FileGroup, GroupLimits, overlapping_groups
from dbt.adapters.zlayout.layout.key_space import Boxes
from dbt.adapters.zlayout.layout.packing import large_file_groups, small_file_groups, whole_groups


@dataclass(frozen=True)
class Knobs:
    """What a clustering run may do.

    Attributes:
        target_bytes: Wanted size of a file.
        min_file_bytes: Files below this are small.
        max_file_bytes: Files above this are too large.
        max_group_bytes: Largest group of files that are rewritten together.
        min_input_files: So many small files are put together even if they fill no file.
        min_gain: Share of the bytes that queries read of a group that its rewrite must save, 0 … 1.
        max_bytes: Bytes that a run may rewrite; None for no limit.
        rewrite_all: Rewrite every file, gain or not.
    """

    target_bytes: int
    min_file_bytes: int
    max_file_bytes: int
    max_group_bytes: int
    min_input_files: int
    min_gain: float
    max_bytes: int | None = None
    rewrite_all: bool = False


@dataclass(frozen=True, eq=False)
class Candidates:
    """The files of a table, as a plan sees them.

    Attributes:
        boxes: Where n files lie.
        size_bytes: int64[n].
        partition: int64[n], number of each file's partition.
        eligible: bool[n], files that may be rewritten.
    """

    boxes: Boxes
    size_bytes: npt.NDArray[np.int64]
    partition: npt.NDArray[np.int64]
    eligible: npt.NDArray[np.bool_]

    def partitions(self, without: npt.NDArray[np.bool_] | None = None) -> Iterator[npt.NDArray[np.int64]]:
        """Positions of the files that may be rewritten, partition by partition."""
        wanted = self.eligible if without is None else self.eligible & ~without
        files = np.flatnonzero(wanted)
        ordered = files[np.argsort(self.partition[files], kind="stable")]
        changes = np.flatnonzero(np.diff(self.partition[ordered])) + 1
        return (members for members in np.split(ordered, changes) if len(members))


def plan_groups(candidates: Candidates, model: CostModel, knobs: Knobs) -> list[FileGroup]:
    """Chooses what to rewrite: overlapping files by gain, then files of a wrong size, as far as the budget goes.

    Returns:
        Groups without a file in common, in the order in which they should be rewritten.
    """
    sizes = candidates.size_bytes
    if knobs.rewrite_all:
        every = [
            group
            for files in candidates.partitions()
            for group in whole_groups(candidates.boxes, sizes, files, max_group_bytes=knobs.max_group_bytes)
        ]
        return _affordable(every, sizes, knobs.max_bytes)
    limits = GroupLimits(knobs.min_gain, knobs.max_group_bytes, knobs.max_bytes)
    chosen = overlapping_groups(candidates.boxes, sizes, list(candidates.partitions()), model, limits)
    taken = np.zeros(len(sizes), dtype=bool)
    for group in chosen:
        taken[group.files] = True
    sized = [
        group
        for files in candidates.partitions(without=taken)
        for group in _of_wrong_size(candidates.boxes, sizes, files, knobs)
    ]
    return _affordable([*chosen, *sized], sizes, knobs.max_bytes)


def _of_wrong_size(
    boxes: Boxes, size_bytes: npt.NDArray[np.int64], files: npt.NDArray[np.int64], knobs: Knobs
) -> Iterator[FileGroup]:
    yield from small_file_groups(
        boxes,
        size_bytes,
        files,
        min_file_bytes=knobs.min_file_bytes,
        target_bytes=knobs.target_bytes,
        min_input_files=knobs.min_input_files,
    )
    yield from large_file_groups(size_bytes, files, max_file_bytes=knobs.max_file_bytes)


def _affordable(
    groups: Sequence[FileGroup], size_bytes: npt.NDArray[np.int64], max_bytes: int | None
) -> list[FileGroup]:
    """Groups in their order, without those that the budget has no room for."""
    found, spent = [], 0
    for group in groups:
        total = int(size_bytes[group.files].sum())
        if max_bytes is None or spent + total <= max_bytes:
            found.append(group)
            spent += total
    return found
