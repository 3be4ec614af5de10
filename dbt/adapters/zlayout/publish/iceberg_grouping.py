"""Which manifests of a published Iceberg table a commit puts together.

Readers open every manifest, so there should be few. A commit writes a manifest again if it loses a file, so none should
be large. Therefore a manifest is full from some size on, and those that are not full are put together. They stay below
twice that size. Iceberg's MergeAppend does the same with fewer, larger manifests, and Hudi compacts its timeline so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt

# pyiceberg spends on opening a manifest what it spends on 35 of the files in it. Some 500 files with the statistics of
# four columns take this size.
_FULL_BYTES = 128 << 10
# How many manifests a commit reads only to put them together. More than one are left when the size of a full one grows.
_MOST_READ = 8


@dataclass(frozen=True)
class Sized:
    """What a commit leaves of a manifest.

    Attributes:
        size_bytes: The size of the entries that stay, about.
        is_written: Whether the commit writes it in any case, since it is new or loses files.
    """

    size_bytes: int
    is_written: bool


def full_bytes(entries_bytes: int, files: int) -> int:
    """Returns the size from which on a manifest is full: a constant, and that of √n files in a table of very many.

    >>> full_bytes(25_000_000, files=100_000), full_bytes(1_000_000_000, files=4_000_000)
    (131072, 500000)

    Args:
        entries_bytes: The size of all entries of the table.
        files: The number of its files.
    """
    return max(_FULL_BYTES, isqrt(files) * entries_bytes // max(files, 1))


def grouped(manifests: Sequence[Sized], full: int) -> list[list[int]]:
    """Returns the positions of manifests that become one each. The others stay as they are.

    At most one manifest of those that the commit reads or writes is not full afterwards.

    >>> grouped([Sized(40, True), Sized(130, False), Sized(50, False), Sized(110, True)], full=100)
    [[3], [0, 2]]

    Args:
        manifests: The table's manifests. Those that the commit leaves without files are not among them.
        full: The size from which on a manifest is full.
    """
    written = [position for position, each in enumerate(manifests) if each.is_written]
    read = [position for position, each in enumerate(manifests) if not each.is_written and each.size_bytes < full]
    groups = [[position] for position in written if manifests[position].size_bytes >= full]
    open_group: list[int] = []
    for position in [*(each for each in written if manifests[each].size_bytes < full), *read[:_MOST_READ]]:
        open_group.append(position)
        if sum(manifests[each].size_bytes for each in open_group) >= full:
            groups.append(open_group)
            open_group = []
    if len(open_group) > 1 or any(manifests[each].is_written for each in open_group):
        groups.append(open_group)
    return groups


def cut(sizes: Sequence[int], full: int) -> list[tuple[int, int]]:
    """Returns ranges of new entries, each for one manifest that stays full if it loses a third of its entries.

    >>> cut([60, 60, 60, 60, 60], full=100)
    [(0, 3), (3, 5)]

    Args:
        sizes: The size of each entry, in their order.
        full: The size from which on a manifest is full.
    """
    ranges, begin, total = [], 0, 0
    for end, size in enumerate(sizes, 1):
        total += size
        if 2 * total >= 3 * full:
            ranges.append((begin, end))
            begin, total = end, 0
    return [*ranges, (begin, len(sizes))] if begin < len(sizes) else ranges
