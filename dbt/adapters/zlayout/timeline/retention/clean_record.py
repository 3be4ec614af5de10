"""Clean records: the oldest version whose files are complete, written before any file is deleted."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from dbt.adapters.zlayout.errors import AlreadyExistsError, FileMissingError
from dbt.adapters.zlayout.store import Store
from dbt.adapters.zlayout.timeline.files.instant import is_instant, next_instant
from dbt.adapters.zlayout.timeline.files.json_file import from_json_bytes, read_fields, to_json_bytes
from dbt.adapters.zlayout.timeline.files.naming import CLEAN_FOLDER, instants_in_name

_KEPT = 3


@dataclass(frozen=True)
class CleanRecord:
    """The result of one clean, or of several combined.

    Attributes:
        oldest_version: From this version on all files exist; files of older versions may be gone.
        deleted_through: Unneeded files up to this version have been deleted; after an interrupted clean this is less
            than ``oldest_version``.
        cleaned_ms: Time of the clean, milliseconds since the epoch.
        files: Number of files.
        size_bytes: Their size.
        failed: Number of files that could not be deleted.
    """

    oldest_version: int
    deleted_through: int
    cleaned_ms: int = 0
    files: int = 0
    size_bytes: int = 0
    failed: int = 0

    def to_json(self) -> bytes:
        """Returns the bytes of the file."""
        return to_json_bytes(vars(self))


def read_records(store: Store) -> dict[str, CleanRecord]:
    """Returns the records by path, oldest first.

    Raises:
        CorruptError: One of them cannot be understood.
    """
    found: dict[str, CleanRecord] = {}
    paths = [file.path for file in store.list(CLEAN_FOLDER)]
    for path in [path for path in paths if any(map(is_instant, instants_in_name(path)))]:
        with suppress(FileMissingError):  # another clean has just deleted it
            content = from_json_bytes(store.read(path), path)
            # Records of older releases have no field `failed`.
            fields = dict.fromkeys(CleanRecord.__dataclass_fields__, int)
            found[path] = CleanRecord(*read_fields({"failed": 0, **content}, path, **fields))
    return found


def newest_state(records: Sequence[CleanRecord]) -> CleanRecord | None:
    """Returns the combined result of several cleans, or None for none: each may have continued an interrupted one."""
    if not records:
        return None
    last = records[-1]
    return CleanRecord(
        oldest_version=max(each.oldest_version for each in records),
        deleted_through=max(each.deleted_through for each in records),
        cleaned_ms=last.cleaned_ms,
        files=last.files,
        size_bytes=last.size_bytes,
        failed=last.failed,
    )


def create_record(store: Store, record: CleanRecord, after: Sequence[str]) -> str:
    """Writes a record under a new name.

    Args:
        store: The table's files.
        record: The record.
        after: Paths of the previous records.

    Returns:
        Its path.
    """
    last = max((instant for path in after for instant in instants_in_name(path)), default=None)
    while True:
        last = next_instant(last, record.cleaned_ms)
        path = f"{CLEAN_FOLDER}/{last}.json"
        try:
            store.create(path, record.to_json())
        except AlreadyExistsError:
            continue
        return path


def retire_records(store: Store, superseded: Sequence[str]) -> None:
    """Deletes the oldest of the records that a newer record has superseded."""
    store.delete(superseded[: max(0, len(superseded) + 1 - _KEPT)])
