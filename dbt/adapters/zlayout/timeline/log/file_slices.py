"""File groups and their newest slices: an optional base file and the log files that came after it.

A slice can also have kept deletes: what a compaction remembers of deleted rows. Readers do not need them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.timeline.files.data_files import DataFile, DataFiles
from dbt.adapters.zlayout.timeline.files.naming import (
    DELETES_NAME,
    LOG_NAME,
    deletes_file_instant,
    is_base_path,
    parse_log_file_name,
)

Partition = tuple[tuple[str, "str | None"], ...]


@dataclass(frozen=True)
class FileSlice:
    """The live files of one file group.

    Attributes:
        partition: The partition of the group, as the folder of its base spells it; together with `group` it identifies
            the slice.
        base: The base file, or None if all rows of the group are in logs.
        logs: Log files, oldest first.
        deletes: Files of kept deletes.
        oldest_record: Instant of the delta commit that wrote the oldest record in the logs; empty without logs. A log
            that a compaction merged from others is younger than its records.
    """

    partition: Partition
    group: str
    base: DataFile | None = None
    logs: tuple[DataFile, ...] = field(default=())
    deletes: tuple[DataFile, ...] = field(default=())
    oldest_record: str = ""

    @property
    def log_instants(self) -> tuple[str, ...]:
        """Instants of the commits that wrote the logs, oldest first: delta commits and log compactions."""
        found = (parse_log_file_name(each.path) for each in self.logs)
        return tuple(dict.fromkeys(each[1] for each in found if each is not None))

    @property
    def log_bytes(self) -> int:
        """Size of the logs."""
        return sum(each.size_bytes for each in self.logs)

    @property
    def size_bytes(self) -> int:
        """Size of base, logs and kept deletes."""
        return sum(each.size_bytes for each in (*self.logs, *self.deletes, *((self.base,) if self.base else ())))

    @property
    def paths(self) -> tuple[str, ...]:
        """Paths of all files of the slice."""
        base = () if self.base is None else (self.base.path,)
        return (*base, *(each.path for each in (*self.logs, *self.deletes)))


def is_log(files: DataFiles) -> pa.BooleanArray:
    """Returns which files are logs, as bool[n]."""
    return pc.match_substring_regex(files["path"].combine_chunks(), LOG_NAME)


def groups_with_logs(files: DataFiles) -> frozenset[str]:
    """Returns the file groups of the logs among some files."""
    return frozenset(log_files(files)["group"].to_pylist()) if len(files) else frozenset()


def without_logs(files: DataFiles) -> DataFiles:
    """Returns the base files of file groups without logs."""
    logged, bases = pa.array(sorted(groups_with_logs(files)), pa.string()), base_files(files)
    return bases.filter(pc.invert(pc.is_in(bases["group"], value_set=logged))) if len(logged) else bases


def base_files(files: DataFiles) -> DataFiles:
    """Returns the base files among some files."""
    return files.filter(pc.invert(pc.or_(is_log(files), is_kept_deletes(files))))


def kept_deletes(files: DataFiles) -> DataFiles:
    """Returns the files of kept deletes among some files."""
    return files.filter(is_kept_deletes(files))


def log_files(files: DataFiles) -> DataFiles:
    """Returns the log files among some files."""
    return files.filter(is_log(files))


def slices_with_logs(files: DataFiles, oldest_records: Mapping[str, str] | None = None) -> list[FileSlice]:
    """Returns the newest slice of each file group with logs, by partition and group; others cost nothing.

    Args:
        files: Files of a snapshot.
        oldest_records: Instant of the oldest record by path of the log, where it is known. A log's records are as old
            as the log where it is not.
    """
    logs = log_files(files)
    if not len(logs):
        return []
    others = files.filter(pc.invert(is_log(files)))
    touched = pc.is_in(others["group"], value_set=logs["group"].combine_chunks())
    slices = sorted(_slices([*others.filter(touched), *logs]), key=lambda each: (str(each.partition), each.group))
    return [replace(each, oldest_record=_oldest_record(each, oldest_records or {})) for each in slices]


def _oldest_record(each: FileSlice, oldest_records: Mapping[str, str]) -> str:
    found = ((parse_log_file_name(log.path), oldest_records.get(log.path)) for log in each.logs)
    # No record is younger than its log, whatever the statistics say.
    return min((min(parsed[1], known or parsed[1]) for parsed, known in found if parsed is not None), default="")


def _slices(files: Iterable[DataFile]) -> list[FileSlice]:
    files = list(files)
    found: dict[tuple[Partition, str], FileSlice] = {}
    # A log is in the folder that its rows' values spell. The folder of its base can spell them otherwise: -0.0 or 01.
    places: dict[str, set[Partition]] = {}
    for each in files:
        if is_base_path(each.path):
            places.setdefault(each.group, set()).add(each.partition)
    for each in sorted(files, key=lambda file: (_order(file), file.path)):
        (partition,) = places[each.group] if len(places.get(each.group, ())) == 1 else {each.partition}
        key = (partition, each.group)
        have = found.get(key, FileSlice(*key))
        if parse_log_file_name(each.path) is not None:
            found[key] = replace(have, logs=(*have.logs, each))
        elif deletes_file_instant(each.path) is not None:
            found[key] = replace(have, deletes=(*have.deletes, each))
        else:
            found[key] = replace(have, base=each)
    return list(found.values())


def is_kept_deletes(files: DataFiles) -> pa.BooleanArray:
    """Returns which files hold kept deletes, as bool[n]."""
    return pc.match_substring_regex(files["path"].combine_chunks(), DELETES_NAME)


def _order(file: DataFile) -> tuple[str, int]:
    parsed = parse_log_file_name(file.path)
    return ("", 0) if parsed is None else parsed[1:]
