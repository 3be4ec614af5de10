"""Packing of files with a wrong size: combines small files with their neighbours and splits large ones."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from dbt.adapters.zlayout.curve.orders import MAX_BITS, interleave
from dbt.adapters.zlayout.layout.measures.key_space import Boxes
from dbt.adapters.zlayout.layout.plans.groups import FileGroup

_BITS = 16


def in_curve_order(boxes: Boxes, files: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Sorts files by the z-order position of their centres; keeps the order in a table without keys.

    Args:
        boxes: Of all files.
        files: Positions.
    """
    keys = len(boxes.low)
    if not keys:
        return files
    bits = min(_BITS, MAX_BITS // keys)
    centres = (boxes.low[:, files] + boxes.high[:, files]) / 2
    codes = [np.minimum(centre * (1 << bits), (1 << bits) - 1).astype(np.uint64) for centre in centres]
    return files[np.argsort(interleave(codes, [bits] * keys), kind="stable")]


def small_file_groups(
    boxes: Boxes,
    size_bytes: npt.NDArray[np.int64],
    files: npt.NDArray[np.int64],
    *,
    min_file_bytes: int,
    target_bytes: int,
    min_input_files: int,
    as_built: npt.NDArray[np.bool_] | None = None,
) -> Iterator[FileGroup]:
    """Yields runs of small neighbours of one partition, each about one file of the target size.

    A run is worth rewriting if it has many files or fills a file, and if it becomes at most half as many files: so the
    result of packing is never packed again by itself. Files of the last build join runs of other small files, but do
    not start one, because they were cut for this size.

    Args:
        boxes: Of all files.
        size_bytes: int64[n], of all files.
        files: Positions of the partition's files.
        min_file_bytes: Files below this size are small.
        target_bytes: Target size of a file.
        min_input_files: Number of files from which on a run is worth it even if it does not fill a file.
        as_built: bool[n], files of the last build; None for no file.
    """
    small = in_curve_order(boxes, files[size_bytes[files] < min_file_bytes])
    if len(small) < 2:
        return
    ends = np.cumsum(size_bytes[small])
    run = (ends - size_bytes[small]) // max(1, target_bytes)
    for members in np.split(small, np.flatnonzero(np.diff(run)) + 1):
        total = int(size_bytes[members].sum())
        becomes = max(1, round(total / target_bytes))
        reasons = len(members) if as_built is None else int((~as_built[members]).sum())
        enough = reasons >= min_input_files or (reasons > 0 and total >= target_bytes)
        if len(members) >= 2 and enough and becomes <= len(members) / 2:
            yield FileGroup(np.sort(members), 0.0, 0.0, "small")


def large_file_groups(
    size_bytes: npt.NDArray[np.int64], files: npt.NDArray[np.int64], *, max_file_bytes: int
) -> Iterator[FileGroup]:
    """Yields each file that is too large as a group of its own.

    Args:
        size_bytes: int64[n], of all files.
        files: Positions of the partition's files.
        max_file_bytes: Files above this size are too large.
    """
    for file in files[size_bytes[files] > max_file_bytes]:
        yield FileGroup(np.array([file]), 0.0, 0.0, "large")


def whole_groups(
    boxes: Boxes, size_bytes: npt.NDArray[np.int64], files: npt.NDArray[np.int64], *, max_group_bytes: int
) -> Iterator[FileGroup]:
    """Yields all files of one partition, in runs along the curve with a limited size.

    Args:
        boxes: Of all files.
        size_bytes: int64[n], of all files.
        files: Positions of the partition's files.
        max_group_bytes: Largest group; a single file may be larger.
    """
    ordered = in_curve_order(boxes, files)
    ends = np.cumsum(size_bytes[ordered])
    run = (ends - 1) // max(1, max_group_bytes)
    for members in np.split(ordered, np.flatnonzero(np.diff(run)) + 1):
        yield FileGroup(np.sort(members), 0.0, 0.0, "all")
