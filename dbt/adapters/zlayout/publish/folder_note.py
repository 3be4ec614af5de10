"""The note in each table's folder, for people who find it: what the folder is, and how each engine reads it right."""

from __future__ import annotations

from dbt.adapters.zlayout.errors import FileMissingError
from dbt.adapters.zlayout.store import Store

FOLDER_NOTE = "README.zlayout.txt"
NOTE_BYTES = b"""\
This folder is one table of dbt-zlayout. Its Parquet files belong to several versions of the table at once.
A glob over the files (*.parquet, **/*.parquet) reads WRONG rows: it sees replaced and deleted rows too.
Spark reads it right, by the table's name or by this folder: the list of its files is in _spark_metadata.
Other engines read it as a Delta table if there is a _delta_log, as Iceberg if there is metadata (zlayout publish).
For any other tool, `zlayout files FOLDER` lists the right files. Do not add, change or delete files here by hand.
"""


def put_folder_note(store: Store) -> None:
    """Writes the note if it is missing or of another release. Takes one store call if there is nothing to do."""
    try:
        # Every text has another size (`tests/unit/publish/test_folder_note.py`), so the content need not be read.
        if store.stat(FOLDER_NOTE).size_bytes == len(NOTE_BYTES):
            return
    except FileMissingError:
        pass
    store.put(FOLDER_NOTE, NOTE_BYTES)
