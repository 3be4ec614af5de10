"""File group selection for clustering: groups of files to rewrite, chosen from the index alone, within a budget."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dbt.adapters.zlayout.config.clustering import ReclusteringConfig
from dbt.adapters.zlayout.layout.measures.cost import CostModel
from dbt.adapters.zlayout.layout.measures.key_space import Boxes
from dbt.adapters.zlayout.layout.plans.groups import FileGroup, overlapping_groups
from dbt.adapters.zlayout.layout.plans.packing import large_file_groups, small_file_groups, whole_groups


@dataclass(frozen=True, eq=False)
class Candidates:
    """The files of a table as planning sees them.

    Attributes:
        boxes: The position of n files in the key space.
        size_bytes: int64[n].
        partition: int64[n], number of each file's partition.
        eligible: bool[n], files that may be rewritten.
        as_built: bool[n], files that the last build cut for the current target size: that they came out smaller or
            larger is no reason to rewrite them, unless limits are set. None for no file.
    """

    boxes: Boxes
    size_bytes: npt.NDArray[np.int64]
    partition: npt.NDArray[np.int64]
    eligible: npt.NDArray[np.bool_]
    as_built: npt.NDArray[np.bool_] | None = None

    def partitions(self, without: npt.NDArray[np.bool_] | None = None) -> Iterator[npt.NDArray[np.int64]]:
        """Returns the positions of the eligible files, partition by partition."""
        wanted = self.eligible if without is None else self.eligible & ~without
        files = np.flatnonzero(wanted)
        ordered = files[np.argsort(self.partition[files], kind="stable")]
        changes = np.flatnonzero(np.diff(self.partition[ordered])) + 1
        return (members for members in np.split(ordered, changes) if len(members))


def plan_groups(candidates: Candidates, model: CostModel, wanted: ReclusteringConfig) -> list[FileGroup]:
    """Chooses the groups to rewrite: overlapping files by gain, then files of a wrong size, within the budget.

    Args:
        candidates: The files.
        model: Weights reads; has the target size and the largest size of a file.
        wanted: What is worth rewriting.

    Returns:
        Disjoint groups, in the order in which they should be rewritten.
    """
    sizes = candidates.size_bytes
    if wanted.rewrite_all:
        every = [
            group
            for files in candidates.partitions()
            for group in whole_groups(candidates.boxes, sizes, files, max_group_bytes=wanted.max_group_bytes)
        ]
        return _affordable(every, sizes, wanted.max_bytes)
    # Explicit limits apply to all files, including those of the last build.
    not_small = candidates.as_built if wanted.min_file_bytes is None else None
    not_large = candidates.as_built if wanted.max_file_bytes is None else None
    chosen = overlapping_groups(candidates.boxes, sizes, list(candidates.partitions()), model, wanted, not_large)
    taken = np.zeros(len(sizes), dtype=bool)
    for group in chosen:
        taken[group.files] = True
    min_file_bytes, _ = wanted.file_limits(model.target_bytes)
    sized = [
        group
        for files in candidates.partitions(without=taken)
        for group in (
            *small_file_groups(
                candidates.boxes,
                sizes,
                files,
                min_file_bytes=min_file_bytes,
                target_bytes=model.target_bytes,
                min_input_files=wanted.min_input_files,
                as_built=not_small,
            ),
            *large_file_groups(
                sizes, files if not_large is None else files[~not_large[files]], max_file_bytes=model.max_file_bytes
            ),
        )
    ]
    return _affordable([*chosen, *sized], sizes, wanted.max_bytes)


def _affordable(
    groups: Sequence[FileGroup], size_bytes: npt.NDArray[np.int64], max_bytes: int | None
) -> list[FileGroup]:
    """Returns the groups in order, without those that do not fit into the budget."""
    found, spent = [], 0
    for group in groups:
        total = int(size_bytes[group.files].sum())
        if max_bytes is None or spent + total <= max_bytes:
            found.append(group)
            spent += total
    return found
