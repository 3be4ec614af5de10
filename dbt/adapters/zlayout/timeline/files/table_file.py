"""`.zlayout/table.json`: marks a folder as a table of ours, with its identity and level."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from enum import Enum

from dbt.adapters.zlayout.errors import CorruptError, FileMissingError
from dbt.adapters.zlayout.store import Store, check_create_if_absent
from dbt.adapters.zlayout.timeline.files.json_file import from_json_bytes, read_fields, to_json_bytes
from dbt.adapters.zlayout.timeline.files.naming import TABLE_FILE


class Level(str, Enum):
    """What we manage: the whole table, or only an index beside files that others write."""

    MANAGED = "managed"
    INDEXED = "indexed"


@dataclass(frozen=True)
class TableFile:
    """The identity of a table.

    Attributes:
        table_id: A UUID, new for every table that is created.
        level: Managed or indexed.
        name: 'schema.table' at the time of creation (the catalog may have renamed it since).
        created_ms: Milliseconds since the epoch.
    """

    table_id: str
    level: Level
    name: str
    created_ms: int

    @classmethod
    def new(cls, level: Level, name: str, created_ms: int) -> TableFile:
        """Return the identity of a newly created table."""
        return cls(str(uuid.uuid4()), level, name, created_ms)

    def to_json(self) -> bytes:
        """Return the bytes of the file."""
        return to_json_bytes(
            {"table_id": self.table_id, "level": self.level.value, "name": self.name, "created_ms": self.created_ms}
        )

    @classmethod
    def from_json(cls, data: bytes, path: str = TABLE_FILE) -> TableFile:
        """Parse the bytes of the file.

        Raises:
            CorruptError: They are not what `to_json` writes.
        """
        table_id, level, name, created_ms = read_fields(
            from_json_bytes(data, path), path, table_id=str, level=str, name=str, created_ms=int
        )
        if level not in {member.value for member in Level}:
            raise CorruptError(f"{path}: level {level!r} is neither 'managed' nor 'indexed'")
        return cls(table_id, Level(level), name, created_ms)


def read_table_file(store: Store) -> TableFile | None:
    """Return the identity of the table, or None if the folder is not a table of ours.

    Raises:
        CorruptError: The file exists but cannot be understood.
    """
    try:
        return TableFile.from_json(store.read(TABLE_FILE))
    except FileMissingError:
        return None


def create_table_file(store: Store, table_file: TableFile) -> None:
    """Make a folder a table.

    Raises:
        AlreadyExistsError: It already is a table.
        UnsupportedError: The store does not support create-if-absent.
    """
    check_create_if_absent(store)
    store.create(TABLE_FILE, table_file.to_json())


def replace_table_file(store: Store, table_file: TableFile) -> None:
    """Change the identity of a table, for example its level."""
    store.put(TABLE_FILE, table_file.to_json())
