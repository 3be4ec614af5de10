"""Opens the table in a folder without the catalog, and says what is in a folder that holds no table."""

from __future__ import annotations

from dbt.adapters.zlayout.errors import TableNotFoundError, UnsupportedError
from dbt.adapters.zlayout.publish import delta_log
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot
from dbt.adapters.zlayout.store import Store, open_store
from dbt.adapters.zlayout.timeline.files.naming import METADATA_FOLDER, is_data_path
from dbt.adapters.zlayout.timeline.files.table_file import table_above


def managed_in_folder(location: str, timezone: str, subject: str) -> TableSnapshot:
    """Returns the newest version of the managed table in a folder.

    Args:
        location: URI of the folder.
        timezone: The session's time zone.
        subject: The folder, for error messages.

    Raises:
        TableNotFoundError: The folder holds no table, or a table without a version.
        UnsupportedError: The table is only indexed, or no table can be there.
        CorruptError: The log is damaged or missing.
    """
    store = open_store(location)
    local = store.local_path("")
    if local is not None and local.is_file():
        raise TableNotFoundError(f"{subject} is a file; give the folder of a table")
    opened = TableSnapshot.newest(location, timezone)
    if opened is None:
        raise TableNotFoundError(f"{subject} holds no dbt-zlayout table: {_content(location, store)}")
    if not opened.managed:
        raise UnsupportedError(
            f"{subject} is only indexed: other tools write it, and the catalog knows its columns; open it by its name "
            "with ZTable.for_name"
        )
    return opened


def _content(location: str, store: Store) -> str:
    if (above := table_above(location)) is not None:
        return f"it is inside the table at {above}; give that folder"
    local = store.local_path("")
    if local is not None and not local.exists():
        return "there is no such folder; check the path"
    stored = [each.path for each in store.list("", recursive=True)]
    if any(path.startswith(f"{delta_log.FOLDER}/") for path in stored):
        return "it is a Delta table of other software; read it with a reader of Delta"
    below = sorted(path.partition(f"/{METADATA_FOLDER}/")[0] for path in stored if f"/{METADATA_FOLDER}/" in path)
    if below:
        return f"it is above the table in {below[0]}; give the table's own folder"
    if any(map(is_data_path, stored)):
        return (
            "it holds Parquet files that other tools wrote; give it a catalog entry (create table … using parquet "
            "location …), and index it with ZTable.adopt"
        )
    return f"it holds other files, such as {min(stored)}; check the path" if stored else "it is empty; check the path"
