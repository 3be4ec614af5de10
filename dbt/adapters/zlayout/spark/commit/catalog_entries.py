"""Registers, renames and drops existing tables: its catalog entries, and its folder.

A registration or a change of name that crashed is completed by a second call. A drop that crashed may leave the folder
of a table that the catalog no longer has.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from dbt.adapters.zlayout.config.table_config import PublishingConfig
from dbt.adapters.zlayout.errors import UnsupportedError
from dbt.adapters.zlayout.publish import iceberg_table
from dbt.adapters.zlayout.publish.catalog_registration import forget_registrations
from dbt.adapters.zlayout.publish.formats import publish_formats
from dbt.adapters.zlayout.spark.catalog.session_catalog import (
    Catalog,
    Entry,
    TableName,
    TablePath,
    check_table_name,
    session_zone,
    unescaped,
)
from dbt.adapters.zlayout.spark.commit.after_commit import AfterCommit
from dbt.adapters.zlayout.spark.commit.publish import Description, follow_name, leave_catalogs, publish
from dbt.adapters.zlayout.spark.read.record_tables import (
    check_names_are_free,
    files_name,
    is_merging_view,
    put_views,
    remove_views,
    table_entry,
)
from dbt.adapters.zlayout.spark.read.relations import uninstall
from dbt.adapters.zlayout.spark.read.session import open_entry
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot, managed_in_folder
from dbt.adapters.zlayout.store import open_store
from dbt.adapters.zlayout.timeline.files.table_file import (
    ManagementLevel,
    TableFile,
    check_removable,
    put_name,
    read_table_file,
    replace_table_file,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NEXT_STEP = "run ZTable.register again: it completes the missing steps"


def register_table(spark: SparkSession, name: TableName, folder: TablePath) -> TableSnapshot:
    """Makes the entry of a table, or corrects it. See ``ZTable.register``.

    Returns:
        The table at its newest version.
    """
    catalog = Catalog(spark)
    check_table_name(name)
    catalog.schema_location(name.schema)  # raises if there is no such schema
    opened = managed_in_folder(folder.location, session_zone(spark), str(folder))
    entry = table_entry(catalog, name) or _files_alone(catalog, name, opened)
    view = catalog.find(name)
    if view is not None and view.kind == "VIEW" and view.table_id != opened.table_id:
        raise UnsupportedError(f"{name} is a view of something else; drop it, or register the table under another name")
    _check_name(name, entry, opened, folder)
    if _is_copy(catalog, name, opened, folder):
        # Two folders with one id would be taken for one table.
        opened = _with_new_id(opened, name)
    else:
        put_name(opened.store, str(name))
    if opened.merges_on_read:
        check_names_are_free(catalog, name, (opened.table_id, entry.table_id if entry is not None else None))
    if entry is not None and entry.kind == "MANAGED":
        # Dropping an entry that owns its folder would delete the table.
        catalog.disown(entry)
        entry = catalog.find(entry.name)
    if entry is not None:
        uninstall(catalog, entry.name)
    after = AfterCommit(opened.version, next_step=_NEXT_STEP)
    with after.useful("readers of Iceberg still find the old folder"):
        iceberg_table.withdraw_if_moved(opened.store, opened.table_id)
    publish(catalog, name, entry, opened, Description.of(entry), after)
    return opened


def _files_alone(catalog: Catalog, name: TableName, opened: TableSnapshot) -> Entry | None:
    """Returns the entry of a merge-on-read table's files, if a crash left it without the view of the table."""
    entry = catalog.find(files_name(name)) if opened.merges_on_read else None
    here = entry is not None and entry.location is not None and _same_place(entry.location, opened.location)
    return entry if here else None


def _check_name(name: TableName, entry: Entry | None, opened: TableSnapshot, folder: TablePath) -> None:
    """Checks that a name is free, or that its entry is of this table.

    Raises:
        UnsupportedError: It is not. The message says what has the name.
    """
    if entry is None:
        return
    if entry.location is None or entry.provider != "parquet":
        raise UnsupportedError(
            f"{name} is a table of another format ({entry.provider}); drop it, or register under another name"
        )
    if _same_place(entry.location, opened.location):
        return
    there = TablePath(entry.location)
    if entry.table_id != opened.table_id:
        raise UnsupportedError(
            f"{name} is another table, in {there}; drop it first, or register the table in {folder} under another name"
        )
    if _holds(entry.location, opened.table_id):
        raise UnsupportedError(
            f"{name} is in {there}, which still holds the table, so {folder} is a copy of it; register the copy under "
            "another name. If the table has moved, delete the old folder first"
        )


def _is_copy(catalog: Catalog, name: TableName, opened: TableSnapshot, folder: TablePath) -> bool:
    """Returns whether the folder is a copy of a table that this catalog has under another name, in another folder.

    An entry whose folder no longer holds the table does not count: the table has moved.

    Raises:
        UnsupportedError: The catalog has this folder under another name.
    """
    others = _entries_of_other_names(catalog, name, opened.table_id)
    if (other_name := _name_of_folder(others, opened.location)) is not None:
        raise UnsupportedError(
            f"the table in {folder} is {other_name} in this catalog, and with two names for one folder, dropping one "
            f"would delete the other's files; use that name instead of {name}, or rename the table"
        )
    return any(other.location is not None and _holds(other.location, opened.table_id) for other in others)


def other_name_of(catalog: Catalog, name: TableName, table_id: str, location: str) -> TableName | None:
    """Returns another name by which the catalog has the table in a folder, None if there is none."""
    return _name_of_folder(_entries_of_other_names(catalog, name, table_id), location)


def _name_of_folder(entries: Sequence[Entry], location: str) -> TableName | None:
    here = (each for each in entries if each.location is not None and _same_place(each.location, location))
    return next(map(_table_of, here), None)


def _entries_of_other_names(catalog: Catalog, name: TableName, table_id: str) -> list[Entry]:
    return [each for each in catalog.entries_of(table_id) if _folded(_table_of(each)) != _folded(name)]


def _with_new_id(opened: TableSnapshot, name: TableName) -> TableSnapshot:
    """Gives a table another id, and withdraws what is published under the old one.

    Raises:
        UnsupportedError: A format could not be withdrawn. The table keeps its id.
    """
    # The entries in catalogs are the original's.
    forget_registrations(opened.store)
    # A published log holds the table's id. It goes first, because no later step would touch a log of another id.
    withdrawn = publish_formats(opened.store, opened.timeline, opened.table_id, PublishingConfig(()), 0)
    for other_format, error in list(withdrawn):
        raise UnsupportedError(
            f"{opened.location}: the {other_format} log of the copied table cannot be removed: {error}; remove it by "
            "hand and run this again"
        ) from error
    fresh = TableFile.new(ManagementLevel.MANAGED, str(name), int(time.time() * 1000))
    replace_table_file(opened.store, fresh)
    return replace(opened, table_id=fresh.table_id)


def _table_of(entry: Entry) -> TableName:
    """Returns the table whose view or files an entry is: a merge-on-read table has two entries with its id."""
    if is_merging_view(entry):
        return entry.name
    suffix = files_name(TableName("", "")).identifier
    return TableName(entry.name.schema, entry.name.identifier.removesuffix(suffix))


def _folded(name: TableName) -> tuple[str, str]:
    return name.schema.lower(), name.identifier.lower()


def _same_place(left: str, right: str) -> bool:
    if unescaped(left).rstrip("/") == unescaped(right).rstrip("/"):
        return True
    one, other = (open_store(each).local_path("") for each in (left, right))
    # A link and its target are one folder.
    return one is not None and other is not None and one.resolve() == other.resolve()


def _holds(location: str, table_id: str) -> bool:
    """Returns whether a folder still holds the table of an id."""
    known = read_table_file(open_store(location))
    return known is not None and known.table_id == table_id


def drop_table(spark: SparkSession, schema: str, identifier: str, location_root: str | None = None) -> None:
    """Drops a table or view, and removes its folder if this adapter wrote it, or dbt did under its root.

    For a merge-on-read table, its views and the table of its files are dropped. Any other external table keeps its
    files, as in Spark.

    Args:
        schema: Schema of the relation.
        identifier: Identifier of the relation. If the relation does not exist, nothing happens.
        location_root: Where dbt puts tables. An external table exactly at ``<location_root>/<identifier>`` belongs to
            dbt.

    Raises:
        UnsupportedError: The folder is a link, or holds another table. The catalog is unchanged.
    """
    catalog = Catalog(spark)
    name = TableName(schema, identifier)
    entry = catalog.find(name)
    if entry is None:
        return
    beneath = _files_of(catalog, entry)
    folder = _own_folder(catalog, beneath or entry, location_root)
    if folder is not None:
        check_removable(folder)
    if beneath is not None:
        uninstall(catalog, beneath.name)
        catalog.remove(beneath.name)
    if is_merging_view(entry):
        remove_views(catalog, name)
    else:
        uninstall(catalog, name)
        catalog.remove(name)
    if folder is not None:
        leave_catalogs(folder)
        open_store(folder).delete_tree("")


def rename_table(spark: SparkSession, schema: str, identifier: str, new_schema: str, new_identifier: str) -> None:
    """Renames a table or view. The folder of an external table stays where it is.

    Raises:
        ConfigError: The catalog does not accept the name, or a merge-on-read table needs a name that is already taken.
    """
    catalog = Catalog(spark)
    old, new = TableName(schema, identifier), TableName(new_schema, new_identifier)
    check_table_name(new)
    entry = catalog.find(old)
    beneath = None if entry is None else _files_of(catalog, entry) or _files_of(catalog, entry, new)
    if beneath is not None:
        check_names_are_free(catalog, new, (beneath.table_id,))
    uninstall(catalog, old)
    renamed = beneath or entry
    if renamed is not None and renamed.table_id is not None and renamed.location is not None:
        # This comes first: whoever takes the old name next must never take the folder for the old table's.
        put_name(open_store(renamed.location), str(new))
    if beneath is None:
        catalog.rename(old, new)
        follow_name(entry)
        return
    # A view cannot be renamed: its query names the table of files.
    opened = open_entry(spark, beneath)
    uninstall(catalog, beneath.name)
    if beneath.name != files_name(new):
        catalog.rename(beneath.name, files_name(new))
    if opened is not None:
        description = Description.of(beneath)
        put_views(catalog, new, opened, description.comment, description.properties)
    remove_views(catalog, old)
    follow_name(beneath)


def _files_of(catalog: Catalog, entry: Entry, name: TableName | None = None) -> Entry | None:
    """Returns the entry of a merge-on-read table's table of files, for its current or given name. None for others."""
    found = catalog.find(files_name(name or entry.name)) if is_merging_view(entry) else None
    return found if found is not None and found.table_id == entry.table_id else None


def _own_folder(catalog: Catalog, entry: Entry, location_root: str | None) -> str | None:
    if entry.kind != "EXTERNAL" or entry.location is None:
        return None
    if entry.table_id is not None:
        known = read_table_file(open_store(entry.location))
        if known is not None and known.level is ManagementLevel.MANAGED and known.table_id == entry.table_id:
            return entry.location
    if location_root is not None:
        expected = catalog.qualified(f"{location_root.rstrip('/')}/{entry.name.identifier}")
        if unescaped(expected).rstrip("/") == unescaped(entry.location).rstrip("/"):
            return entry.location
    return None
