"""Who wrote what lies in the folder of a published format: this table, another one, or other software.

Every file that publishes a version names the table, the version and its instant by the keys here.
"""

from __future__ import annotations

import json

from dbt.adapters.zlayout.errors import FileMissingError, UnsupportedError
from dbt.adapters.zlayout.store import Store

TABLE_ID, VERSION, INSTANT = "zlayout.table_id", "zlayout.version", "zlayout.instant"


def mark(table_id: str) -> bytes:
    """Returns the bytes by which every file that publishes a version of a table is known."""
    return f'"{TABLE_ID}":{json.dumps(table_id)}'.encode()


def check_written_by(table_id: str, path: str, content: bytes, format_name: str) -> None:
    """Checks that a file is one of the table.

    Args:
        table_id: The table's id.
        path: The file, in the format's folder.
        content: What it holds.
        format_name: The format, as the setting `publish` names it.

    Raises:
        UnsupportedError: Another table or other software wrote it.
    """
    if mark(table_id) not in content:
        raise foreign(path, "another table" if f'"{TABLE_ID}"'.encode() in content else "other software", format_name)


def foreign(path: str, writer: str, format_name: str) -> UnsupportedError:
    """Returns the refusal to publish where another writer has written a file."""
    folder = path.partition("/")[0]
    return UnsupportedError(
        f"{path} was written by {writer}; move the folder {folder} away, or take '{format_name}' out of publish"
    )


def read_if_there(store: Store, path: str) -> bytes:
    """Returns the content of a file, empty if there is none. Another process may be withdrawing the format."""
    try:
        return store.read(path)
    except FileMissingError:
        return b""
