"""`.zlayout/table.json`: marks a folder as a table of this package, with its identity and level; tables do not nest.

No table is created inside another. Files of tables that are already nested are ignored. A note in the folder
explains what it is.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from dbt.adapters.zlayout.errors import CorruptError, FileMissingError, StoreError, UnsupportedError
from dbt.adapters.zlayout.store import Store, StoredFile, check_create_if_absent, open_store
from dbt.adapters.zlayout.timeline.files.json_file import from_json_bytes, read_fields, to_json_bytes
from dbt.adapters.zlayout.timeline.files.naming import TABLE_FILE

FOLDER_NOTE = "README.zlayout.txt"
NOTE_BYTES = b"""\
This folder is one table of dbt-zlayout. Its Parquet files belong to several versions of the table at once.
A glob over the files (*.parquet, **/*.parquet) reads WRONG rows: it sees replaced and deleted rows too.
Spark reads it right, by the table's name or by this folder: the list of its files is in _spark_metadata.
Other engines read it as a Delta table if there is a _delta_log, as Iceberg if there is metadata (zlayout publish).
For any other tool, `zlayout files FOLDER` lists the right files. Do not add, change or delete files here by hand.
"""


class ManagementLevel(str, Enum):
    """What this package manages: the whole table, or only an index of files that others write."""

    MANAGED = "managed"
    INDEXED = "indexed"


@dataclass(frozen=True)
class TableFile:
    """The identity of a table.

    Attributes:
        table_id: A UUID, new for every table that is created.
        level: Managed or indexed.
        name: 'schema.table' at the time of creation, or the name by which the table was renamed or registered last.
        created_ms: Milliseconds since the epoch.
    """

    table_id: str
    level: ManagementLevel
    name: str
    created_ms: int

    @classmethod
    def new(cls, level: ManagementLevel, name: str, created_ms: int) -> TableFile:
        """Returns the identity of a newly created table."""
        return cls(str(uuid.uuid4()), level, name, created_ms)

    def to_json(self) -> bytes:
        """Returns the bytes of the file."""
        return to_json_bytes(vars(self))

    @classmethod
    def from_json(cls, data: bytes, path: str = TABLE_FILE) -> TableFile:
        """Parses the bytes of the file.

        Raises:
            CorruptError: They are not what `to_json` writes.
        """
        table_id, level, name, created_ms = read_fields(
            from_json_bytes(data, path), path, table_id=str, level=str, name=str, created_ms=int
        )
        if level not in {member.value for member in ManagementLevel}:
            raise CorruptError(f"{path}: level {level!r} is neither 'managed' nor 'indexed'")
        return cls(table_id, ManagementLevel(level), name, created_ms)


def read_table_file(store: Store) -> TableFile | None:
    """Returns the identity of the table, or None if the folder is not a table of this package.

    Raises:
        CorruptError: The file exists but cannot be understood.
    """
    try:
        return TableFile.from_json(store.read(TABLE_FILE))
    except FileMissingError:
        return None


def create_table_file(store: Store, table_file: TableFile) -> None:
    """Makes a folder a table.

    Raises:
        AlreadyExistsError: It already is a table.
        UnsupportedError: The store does not support create-if-absent.
    """
    check_create_if_absent(store)
    store.create(TABLE_FILE, table_file.to_json())


def replace_table_file(store: Store, table_file: TableFile) -> None:
    """Changes the identity of a table, for example its level."""
    store.put(TABLE_FILE, table_file.to_json())


def put_name(store: Store, name: str) -> None:
    """Changes the name of a table."""
    known = read_table_file(store)
    if known is not None and known.name != name:
        replace_table_file(store, replace(known, name=name))


def _nested_tables(stored: Sequence[StoredFile]) -> list[str]:
    """Returns the folders of other tables among all files of a table, relative to its own folder."""
    ending = f"/{TABLE_FILE}"
    return [file.path.removesuffix(ending) for file in stored if file.path.endswith(ending)]


def without_nested_tables(stored: Sequence[StoredFile]) -> list[StoredFile]:
    """Returns the files that are not in the folder of another table."""
    others = tuple(f"{folder}/" for folder in _nested_tables(stored))
    return [file for file in stored if not file.path.startswith(others)] if others else list(stored)


def check_not_inside_a_table(location: str) -> None:
    """Checks that no folder above a location is a table, which would treat the new table's files as its own.

    Raises:
        UnsupportedError: A folder above is a table.
    """
    if (above := table_above(location)) is not None:
        raise UnsupportedError(
            f"{location} is inside the folder of the table at {above}, and cleaning or dropping that table could "
            "delete its files; set another schema or location_root"
        )


def table_above(location: str) -> str | None:
    """Returns the folder above a location that is a table, None if there is none."""
    return next(filter(_is_table, _folders_above(location)), None)


def _is_table(location: str) -> bool:
    try:
        return open_store(location).exists(TABLE_FILE)
    except (StoreError, UnsupportedError):
        return False  # the folder is not accessible, or is the root of a bucket


def check_removable(location: str) -> None:
    """Checks that a table's folder can be deleted as a whole.

    Raises:
        UnsupportedError: It is a link, or contains another table.
    """
    store = open_store(location)
    local = store.local_path("")
    if local is not None and local.is_symlink():
        raise UnsupportedError(
            f"{location} is a link to {local.resolve()}, which may hold other files; replace the link with the folder "
            "itself, or run DROP TABLE in Spark, which keeps the files, and then delete the files"
        )
    nested = _nested_tables(store.list("", recursive=True))
    if nested:
        raise UnsupportedError(
            f"{location} contains another table in the folder {nested[0]}; drop that table first, or move it"
        )


def _folders_above(location: str) -> Iterator[str]:
    store = open_store(location)
    local = store.local_path("")
    if local is not None:
        # A link may lead into another table, so the resolved path is checked as well.
        yield from dict.fromkeys(str(each) for path in (local, local.resolve()) for each in path.parents)
        return
    parts = urlsplit(store.root_uri)
    for folder in PurePosixPath(parts.path).parents:
        yield f"{parts.scheme}://{parts.netloc}{folder}"


def put_folder_note(store: Store) -> None:
    """Writes the note if it is missing or of another release. Takes one store call if there is nothing to do."""
    try:
        # Every text has another size (`test_table_file.py`), so the content need not be read.
        if store.stat(FOLDER_NOTE).size_bytes == len(NOTE_BYTES):
            return
    except FileMissingError:
        pass
    store.put(FOLDER_NOTE, NOTE_BYTES)
