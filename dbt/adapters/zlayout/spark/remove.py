"""Dropping and renaming: the catalog's entry and the folder that belongs to it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

from dbt.adapters.zlayout.spark.catalog import Catalog, Entry, TableName
from dbt.adapters.zlayout.spark.relations import uninstall
from dbt.adapters.zlayout.store import open_store
from dbt.adapters.zlayout.timeline.table_file import Level, TableFile, read_table_file, replace_table_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def drop_table(spark: SparkSession, schema: str, identifier: str, location_root: str | None = None) -> None:
    """Drops a table or view and removes the folder of a table that this adapter, or dbt under its root, wrote.

    Anybody else's external table keeps its files, as in Spark.

    Args:
        spark: The session.
        schema: Of the relation.
        identifier: Of the relation; one that is not there is no error.
        location_root: Where dbt puts tables; an external table exactly at ``<location_root>/<identifier>`` is dbt's
            own.
    """
    catalog = Catalog(spark)
    name = TableName(schema, identifier)
    entry = catalog.find(name)
    if entry is None:
        return
    folder = _own_folder(catalog, entry, location_root)
    uninstall(catalog, name)
    catalog.remove(name)
    if folder is not None:
        open_store(folder).delete_tree("")


def rename_table(spark: SparkSession, schema: str, identifier: str, new_schema: str, new_identifier: str) -> None:
    """Renames a table or view; the folder of an external table stays where it is."""
    catalog = Catalog(spark)
    old, new = TableName(schema, identifier), TableName(new_schema, new_identifier)
    entry = catalog.find(old)
    uninstall(catalog, old)
    if entry is not None and entry.table_id is not None and entry.location is not None:
        store = open_store(entry.location)
        known = read_table_file(store)
        if known is not None:
            # First: the folder must never look like the old table's to whoever takes the old name next.
            replace_table_file(store, TableFile(known.table_id, known.level, str(new), known.created_ms))
    catalog.rename(old, new)


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
