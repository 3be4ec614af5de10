"""Drops and renames tables and views: their entries in the catalog and the folder that belongs to them."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog, Entry, TableName, check_table_name
from dbt.adapters.zlayout.spark.commit.publish import Description
from dbt.adapters.zlayout.spark.commit.published_formats import follow_name, leave_catalogs
from dbt.adapters.zlayout.spark.read.record_tables import (
    check_names_are_free,
    files_name,
    is_merging_view,
    put_views,
    remove_views,
)
from dbt.adapters.zlayout.spark.read.relations import uninstall
from dbt.adapters.zlayout.spark.read.session import open_entry
from dbt.adapters.zlayout.store import open_store
from dbt.adapters.zlayout.timeline.files.table_file import Level, check_removable, put_name, read_table_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def drop_table(spark: SparkSession, schema: str, identifier: str, location_root: str | None = None) -> None:
    """Drops a table or view, and removes its folder if this adapter wrote it, or dbt did under its root.

    For a merge-on-read table, its views and the table of its files are dropped. Any other external table keeps its
    files, as in Spark.

    Args:
        spark: The session.
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
    _rename_folder(beneath or entry, new)
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


def _rename_folder(entry: Entry | None, new: TableName) -> None:
    if entry is not None and entry.table_id is not None and entry.location is not None:
        # This comes first: whoever takes the old name next must never take the folder for the old table's.
        put_name(open_store(entry.location), str(new))


def _own_folder(catalog: Catalog, entry: Entry, location_root: str | None) -> str | None:
    if entry.kind != "EXTERNAL" or entry.location is None:
        return None
    if entry.table_id is not None:
        known = read_table_file(open_store(entry.location))
        if known is not None and known.level is Level.MANAGED and known.table_id == entry.table_id:
            return entry.location
    if location_root is not None:
        expected = catalog.qualified(f"{location_root.rstrip('/')}/{entry.name.identifier}")
        if unquote(expected).rstrip("/") == unquote(entry.location).rstrip("/"):
            return entry.location
    return None
