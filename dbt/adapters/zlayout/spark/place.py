"""Where a table lies: the place its catalog entry names, or a new one that nobody else's table occupies."""

from __future__ import annotations

import time
import uuid

from dbt.adapters.zlayout.errors import AlreadyExistsError, TableNotFoundError
from dbt.adapters.zlayout.spark.catalog import Catalog, Entry, TableName
from dbt.adapters.zlayout.store import Store, open_store
from dbt.adapters.zlayout.timeline.table_file import Level, TableFile, create_table_file, read_table_file


def place_for_writing(
    catalog: Catalog, name: TableName, entry: Entry | None, location_root: str | None
) -> tuple[str, Store, TableFile]:
    """The folder of the table that a write creates or replaces, with its identity file in place.

    A table that is managed already stays where it is, unless ``location_root`` now names another place. A folder of
    that
    name which belongs to another table, or holds files of somebody else, is left alone: the table gets one beside it.

    Returns:
        Location as the catalog has it, its store, and the table's identity.
    """
    wanted = _wanted(catalog, name, location_root)
    if entry is not None and entry.table_id is not None and entry.location is not None:
        moved = location_root is not None and not _below(entry.location, wanted)
        table_file = None if moved else read_table_file(open_store(entry.location))
        # A folder that is only indexed belongs to others: the table goes elsewhere, their files stay.
        if table_file is not None and table_file.level is Level.MANAGED:
            return entry.location, open_store(entry.location), table_file
    for location in (wanted, f"{wanted}__{uuid.uuid4().hex[:8]}"):
        store = open_store(location)
        table_file = read_table_file(store)
        if table_file is None and not store.list("", recursive=True):
            table_file = TableFile.new(Level.MANAGED, str(name), int(time.time() * 1000))
            try:
                create_table_file(store, table_file)
            except AlreadyExistsError:
                # Another session creates the same table now; the log decides who is first.
                table_file = read_table_file(store)
        if table_file is not None and table_file.level is Level.MANAGED and _is_ours(table_file, name):
            return location, store, table_file
    raise TableNotFoundError(f"no free folder for {name} at {wanted}; set another location_root")


def forget_old_place(entry: Entry | None, table_id: str) -> None:
    """Removes the folder of a table that has just been rebuilt elsewhere, if it is that table's still.

    Ids decide and not paths: two spellings may name one folder.
    """
    if entry is None or entry.location is None or entry.table_id in (None, table_id):
        return
    old = open_store(entry.location)
    table_file = read_table_file(old)
    if table_file is not None and table_file.table_id == entry.table_id and table_file.level is Level.MANAGED:
        old.delete_tree("")


def _wanted(catalog: Catalog, name: TableName, location_root: str | None) -> str:
    root = location_root or catalog.schema_location(name.schema)
    return catalog.qualified(f"{root.rstrip('/')}/{name.identifier}")


def _below(location: str, wanted: str) -> bool:
    return location.rstrip("/") == wanted or location.startswith(f"{wanted}__")


def _is_ours(table_file: TableFile, name: TableName) -> bool:
    return table_file.name.lower() == str(name).lower()
