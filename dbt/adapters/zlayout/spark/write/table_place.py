"""Finds the folder of a table: the one in its catalog entry, or a new one that no other table occupies."""

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
from dbt.adapters.zlayout.publish.spark_manifest import check_log_not_lost
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog, Entry, TableName, check_table_name
from dbt.adapters.zlayout.spark.commit.catalog_entries import other_name_of
from dbt.adapters.zlayout.spark.snapshot.table_layout import config_of
from dbt.adapters.zlayout.store import open_store
from dbt.adapters.zlayout.store.opening import place_problem
from dbt.adapters.zlayout.store.uri import without_login
from dbt.adapters.zlayout.timeline.files.table_file import (
    ManagementLevel,
    TableFile,
    check_not_inside_a_table,
    check_removable,
    create_table_file,
    put_name,
    read_table_file,
)
from dbt.adapters.zlayout.timeline.timeline import Timeline


@dataclass(frozen=True)
class Place:
    """Where a write puts a table.

    Attributes:
        location: URI of the folder, as the catalog has it.
        timeline: The timeline in that folder.
        table_file: The table's identity.
        set_aside: Why the present content of the table's folder stays and the table goes elsewhere; None if the table
            stays.
    """

    location: str
    timeline: Timeline
    table_file: TableFile
    set_aside: str | None = None


def place_for_writing(catalog: Catalog, name: TableName, entry: Entry | None, location_root: str | None) -> Place:
    """Returns the folder of the table that a write creates or replaces, with its identity file in place.

    A managed table stays where it is, unless ``location_root`` now names another place. If the folder of that name
    belongs to another table, holds files that are not ours, or has damaged metadata, it is left alone and the table
    gets a new folder beside it.

    Raises:
        ConfigError: The catalog or a folder cannot have this name.
        NewerFormatError: A newer release wrote the metadata.
        TableNotFoundError: No folder is free.
        UnsupportedError: The place lies inside another table.
    """
    check_table_name(name)
    set_aside = None
    wanted = _wanted(catalog, name, location_root)
    if entry is not None and entry.table_id is not None and entry.location is not None:
        moved = location_root is not None and not _below(entry.location, wanted)
        timeline = Timeline(open_store(entry.location))
        table_file, set_aside = _sound_table_file(timeline)
        # An indexed folder belongs to others: the table goes elsewhere and their files stay.
        if table_file is not None and table_file.level is ManagementLevel.MANAGED and not moved and set_aside is None:
            return Place(entry.location, timeline, table_file)
    for location in (wanted, f"{wanted}__{uuid.uuid4().hex[:8]}"):
        timeline = Timeline(open_store(location))
        store = timeline.store
        table_file, damage = _sound_table_file(timeline)
        if damage is not None:
            set_aside = set_aside or damage
            continue
        if table_file is None and not store.list("", recursive=True):
            check_not_inside_a_table(location)
            table_file = TableFile.new(ManagementLevel.MANAGED, str(name), int(time.time() * 1000))
            try:
                create_table_file(store, table_file)
            except AlreadyExistsError:
                # Another session is creating the same table; the log decides who is first.
                table_file = read_table_file(store)
            else:
                return Place(location, timeline, table_file, set_aside)
        if (
            table_file is not None
            and table_file.level is ManagementLevel.MANAGED
            and table_file.name.lower() == str(name).lower()
        ):
            # SQL's ALTER TABLE … RENAME changes the entry only: the folder may be that of a table that was renamed.
            other_name = other_name_of(catalog, name, table_file.table_id, location)
            if other_name is None:
                return Place(location, timeline, table_file, set_aside)
            put_name(store, str(other_name))
    raise TableNotFoundError(f"no free folder for {name} at {wanted}; set another location_root")


def _sound_table_file(timeline: Timeline) -> tuple[TableFile | None, str | None]:
    """Returns the identity of the table in a folder, or None, and the damage to its metadata, or None.

    Raises:
        NewerFormatError: A newer release wrote the metadata.
    """
    table_file = None
    try:
        table_file = read_table_file(timeline.store)
        newest = timeline.newest() if table_file is not None else None
        if newest is None:
            check_log_not_lost(timeline.store)
        else:
            config_of(newest)
    except NewerFormatError:
        raise
    except CorruptError as error:
        return table_file, str(error)
    return table_file, None


def forget_old_place(entry: Entry | None, table_id: str) -> None:
    """Removes the old folder of a table that was just rebuilt elsewhere, if the folder still belongs to that table.

    So does the folder of a table that Spark managed, which Spark would have deleted with its entry. Compares ids
    instead of paths, because two spellings may name one folder.
    """
    if entry is None or entry.location is None or entry.table_id == table_id:
        return
    old = open_store(entry.location)
    table_file = read_table_file(old)
    if table_file is None:
        is_its_own = entry.table_id is None and entry.kind == "MANAGED"
    else:
        is_its_own = table_file.table_id == entry.table_id and table_file.level is ManagementLevel.MANAGED
    if is_its_own:
        # A folder that must not be deleted stays. The table itself has already moved.
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
