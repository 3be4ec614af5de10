"""Assigns new rows to file groups: many rows become base files, a few fill small groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dbt.adapters.zlayout.curve.model import PartitionKey
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles
from dbt.adapters.zlayout.timeline.files.naming import new_group

# Assumed size of a record while the table has no files to measure it from.
_UNKNOWN_RECORD_BYTES = 256
# New rows of a partition become base files if they fill at least this share of a file.
_SHARE_OF_A_FILE = 1 / 8
_SLOTS_PER_BUCKET = 16
_MOST_SLOTS = 4096


@dataclass(frozen=True)
class Bucket:
    """New rows that go to one file group.

    Attributes:
        group: Id of the file group.
        rows: Approximate number of rows.
    """

    group: str
    rows: int


def assign(
    rows_by_partition: Mapping[PartitionKey, int], files: DataFiles, small_file_bytes: int, target_file_bytes: int
) -> dict[PartitionKey, list[Bucket]]:
    """Assigns new rows to file groups as log records.

    Many rows of one partition are better written as a base file at once. As log records, they would be written twice,
    and the base files of the small groups that they fill would be rewritten as well.

    Args:
        rows_by_partition: Number of new rows in each partition.
        files: All files of the table. The average size of a record comes from them.
        small_file_bytes: A group smaller than this is filled up to this size.
        target_file_bytes: Target size of a base file.

    Returns:
        The groups of each partition. Partitions whose rows become base files are left out.
    """
    record_bytes = max(1.0, files.total_bytes / files.total_rows) if files.total_rows else _UNKNOWN_RECORD_BYTES
    file_bytes = _SHARE_OF_A_FILE * target_file_bytes
    rows_by_partition = {key: rows for key, rows in rows_by_partition.items() if rows * record_bytes < file_bytes}
    room: dict[PartitionKey, dict[str, int]] = {}
    for each in files:
        key = tuple(value for _, value in each.partition)
        if key in rows_by_partition:
            sizes = room.setdefault(key, {})
            sizes[each.group] = sizes.get(each.group, 0) + each.size_bytes
    found: dict[PartitionKey, list[Bucket]] = {}
    for key, rows in rows_by_partition.items():
        buckets, left = [], rows
        for group, size_bytes in sorted(room.get(key, {}).items(), key=lambda pair: (pair[1], pair[0])):
            fits = min(left, int((small_file_bytes - size_bytes) / record_bytes))
            if fits <= 0:
                break
            buckets.append(Bucket(group, fits))
            left -= fits
        if left:
            buckets.append(Bucket(new_group(), left))
        found[key] = buckets
    return found


def slots_of(buckets: Mapping[PartitionKey, Sequence[Bucket]]) -> tuple[int, list[tuple[PartitionKey, int, str]]]:
    """Spreads the slots of each partition over its file groups, in proportion to their rows.

    Returns:
        The number of slots, and a list of ``(partition, slot, group)``. The hash of a row's key gives its slot.
    """
    most = max((len(each) for each in buckets.values()), default=1)
    count = 1 if most <= 1 else min(_MOST_SLOTS, most * _SLOTS_PER_BUCKET)
    found = []
    for key, listed in buckets.items():
        total, passed, position = sum(each.rows for each in listed), 0, 0
        for slot in range(count):
            while position < len(listed) - 1 and passed + listed[position].rows <= (slot + 0.5) * total / count:
                passed += listed[position].rows
                position += 1
            found.append((key, slot, listed[position].group))
    return count, found
