"""Where a table lies: the place its catalog entry names, or a new one that nobody else's table occupies."""

from __future__ import annotations

import time
import uuid
from contextlib import suppress
from dataclasses import dataclass

from dbt.adapters.zlayout.errors import (
    AlreadyExistsError,
    CorruptError,
    NewerFormatError,
    TableNotFoundError,
    UnsupportedError,
)
from dbt.adapters.zlayout.publish.lost_log import check_log_not_lost
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog, Entry, TableName, check_table_name
from dbt.adapters.zlayout.spark.snapshot.table_layout import config_of
from dbt.adapters.zlayout.store import Store, open_store
from dbt.adapters.zlayout.store.opening import place_problem
from dbt.adapters.zlayout.store.uri import without_login
from dbt.adapters.zlayout.timeline.files.nested_tables import check_not_inside_a_table, check_removable
from dbt.adapters.zlayout.timeline.files.table_file import Level, TableFile, create_table_file, read_table_file
from dbt.adapters.zlayout.timeline.timeline import Timeline


@dataclass(frozen=True)
class Place:
    """Where a write puts a table.

    Attributes:
        location: As the catalog has it.
        store: Of the location.
        table_file: The table's identity.
        set_aside: Why what is at the table's place so far stays there, and the table goes elsewhere; None if it does
            not.
    """

    location: str
    store: Store
    table_file: TableFile
    set_aside: str | None = None


def place_for_writing(catalog: Catalog, name: TableName, entry: Entry | None, location_root: str | None) -> Place:
    """The folder of the table that a write creates or replaces, with its identity file in place.

    A table that is managed already stays where it is, unless ``location_root`` now names another place. A folder of
    that name which belongs to another table, or holds files of somebody else, is left alone: the table gets one beside
    it. So it does where the metadata in the folder is damaged.

    Raises:
        ConfigError: The name is none that a folder and the catalog can have.
        NewerFormatError: A newer release has written the metadata.
        UnsupportedError: The place lies inside of another table.
    """
    check_table_name(name)
    set_aside = None
    wanted = _wanted(catalog, name, location_root)
    if entry is not None and entry.table_id is not None and entry.location is not None:
        moved = location_root is not None and not _below(entry.location, wanted)
        store = open_store(entry.location)
        table_file, set_aside = _sound_table_file(store)
        # A folder that is only indexed belongs to others: the table goes elsewhere, their files stay.
        if table_file is not None and table_file.level is Level.MANAGED and not moved and set_aside is None:
            return Place(entry.location, store, table_file)
    for location in (wanted, f"{wanted}__{uuid.uuid4().hex[:8]}"):
        store = open_store(location)
        table_file, damage = _sound_table_file(store)
        if damage is not None:
            set_aside = set_aside or damage
            continue
        if table_file is None and not store.list("", recursive=True):
            check_not_inside_a_table(location)
            table_file = TableFile.new(Level.MANAGED, str(name), int(time.time() * 1000))
            try:
                create_table_file(store, table_file)
            except AlreadyExistsError:
                # Another session creates the same table now; the log decides who is first.
                table_file = read_table_file(store)
        if table_file is not None and table_file.level is Level.MANAGED and _is_ours(table_file, name):
            return Place(location, store, table_file, set_aside)
    raise TableNotFoundError(f"no free folder for {name} at {wanted}; set another location_root")


def _sound_table_file(store: Store) -> tuple[TableFile | None, str | None]:
    """The identity of the table in a folder, None for no table; and what is wrong with its metadata, None for nothing.

    Raises:
        NewerFormatError: A newer release has written the metadata.
    """
    table_file = None
    try:
        table_file = read_table_file(store)
        timeline = Timeline(store)
        if table_file is None or timeline.latest_version() is None:
            check_log_not_lost(store)
        else:
            config_of(timeline.snapshot())
    except NewerFormatError:
        raise
    except CorruptError as error:
        return table_file, str(error)
    return table_file, None


def forget_old_place(entry: Entry | None, table_id: str) -> None:
    """Removes the folder of a table that has just been rebuilt elsewhere, if it is that table's still.

    Ids decide and not paths: two spellings may name one folder.
    """
    if entry is None or entry.location is None or entry.table_id in (None, table_id):
        return
    old = open_store(entry.location)
    table_file = read_table_file(old)
    if table_file is not None and table_file.table_id == entry.table_id and table_file.level is Level.MANAGED:
        # What may not be deleted stays: the table itself has moved already.
        with suppress(UnsupportedError):
            check_removable(entry.location)
            old.delete_tree("")


def _wanted(catalog: Catalog, name: TableName, location_root: str | None) -> str:
    root = location_root or catalog.schema_location(name.schema)
    if (problem := place_problem(root)) is not None:
        raise UnsupportedError(f"location {without_login(root)!r} {problem}")
    return catalog.qualified(f"{root.rstrip('/')}/{name.identifier}")


def _below(location: str, wanted: str) -> bool:
    return location.rstrip("/") == wanted or location.startswith(f"{wanted}__")


def _is_ours(table_file: TableFile, name: TableName) -> bool:
    return table_file.name.lower() == str(name).lower()
