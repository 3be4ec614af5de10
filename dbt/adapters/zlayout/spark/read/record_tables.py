"""A merge-on-read table in the catalog: the merging view, the read-optimized view, and the table of files below."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions

from dbt.adapters.zlayout.config.table_type import TableTypeConfig
from dbt.adapters.zlayout.errors import ConfigError
from dbt.adapters.zlayout.predicate.literals import backquoted
from dbt.adapters.zlayout.spark.catalog.session_catalog import TABLE_ID_PROPERTY, Catalog, Entry, TableName, unescaped
from dbt.adapters.zlayout.spark.read.record_view import RecordView
from dbt.adapters.zlayout.spark.read.relations import frame_of, uninstall
from dbt.adapters.zlayout.spark.schema.log_columns import FILE, GROUP
from dbt.adapters.zlayout.spark.schema.table_schema import string_literal
from dbt.adapters.zlayout.spark.snapshot.table_layout import config_of
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot
from dbt.adapters.zlayout.timeline.files.naming import GROUP_IN_NAME, group_in_name
from dbt.adapters.zlayout.timeline.log.file_slices import log_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FILES, _READ_OPTIMIZED = "__files", "__ro"
# The read-optimized view has this property instead of the table id, which only the merging view and the table of files
# have.
BASE_ROWS_PROPERTY = "zlayout.base_rows_of"


def files_name(name: TableName) -> TableName:
    """Returns the name of the table that holds the base and log files of a merge-on-read table."""
    return TableName(name.schema, name.identifier + _FILES)


def read_optimized_name(name: TableName) -> TableName:
    """Returns the name of the read-optimized view, which reads base files only."""
    return TableName(name.schema, name.identifier + _READ_OPTIMIZED)


def physical_name(name: TableName, opened: TableSnapshot) -> TableName:
    """Returns the name under which the catalog has a table's files."""
    return files_name(name) if opened.merges_on_read else name


def check_names_are_free(catalog: Catalog, name: TableName, table_ids: Collection[str | None]) -> None:
    """Checks that the additional catalog names of a merge-on-read table are free, or already belong to the table.

    Args:
        catalog: The session's catalog.
        name: The name of the table.
        table_ids: The id of the table, and the id that it had until now.

    Raises:
        ConfigError: A relation that does not belong to the table has one of the names.
    """
    for each, key in ((files_name(name), TABLE_ID_PROPERTY), (read_optimized_name(name), BASE_ROWS_PROPERTY)):
        entry = catalog.find(each)
        if entry is not None and entry.all_properties().get(key) not in {*table_ids} - {None}:
            why = f"a merge_on_read table needs the name {each}, which another {entry.kind.lower()} relation has"
            raise ConfigError([f"table_type: {why}; rename or drop that, or give this table another name"], str(name))


def table_entry(catalog: Catalog, name: TableName) -> Entry | None:
    """Returns the catalog entry of a table by its name; for a merge-on-read table, the entry of its files."""
    entry = catalog.find(name)
    return catalog.find(files_name(name)) if is_merging_view(entry) else entry


def is_merging_view(entry: Entry | None) -> bool:
    """Whether an entry is the merging view through which a merge-on-read table is read."""
    return entry is not None and entry.kind == "VIEW" and entry.table_id is not None


def record_view(opened: TableSnapshot) -> RecordView:
    """Returns how to query the rows of a version from its files."""
    names = [each["name"] for each in json.loads(opened.row_schema_json)["fields"]]
    keys = table_type_of(opened).unique_key
    return RecordView(names, keys, opened.partition_columns, log_files(opened.snapshot.files).total_rows)


def table_type_of(opened: TableSnapshot) -> TableTypeConfig:
    """Returns the table type of a version: how it takes changes of rows."""
    return config_of(opened.snapshot).table_type


def rows_of(catalog: Catalog, opened: TableSnapshot) -> DataFrame:
    """Returns the rows of a version with log files merged. Filters that Spark pushes below the merge skip files."""
    files = frame_of(catalog, opened)
    if not opened.merges_on_read:
        return files
    return queried(files, record_view(opened).merged)


def queried(files: DataFrame, query: Callable[[str], str]) -> DataFrame:
    """Runs a query of `RecordView` on the rows of some files.

    Args:
        files: Rows of base and log files.
        query: Takes the name of a table with these rows and returns the query.
    """
    # A view name instead of a parameter of `sql`: column names may contain braces.
    name = f"_zl_{uuid.uuid4().hex}"
    files.createTempView(name)
    try:
        return files.sparkSession.sql(query(name))
    finally:
        files.sparkSession.catalog.dropTempView(name)


def file_groups(catalog: Catalog, opened: TableSnapshot, rows: DataFrame) -> DataFrame:
    """Replaces the file URI of each row by the file group.

    Args:
        catalog: The session's catalog.
        opened: The version that lists the files.
        rows: Rows with the URI of their file in the column `FILE`.
    """
    paths, groups_told = (opened.files[name].to_pylist() for name in ("path", "group"))
    if all(group_in_name(path) == group for path, group in zip(paths, groups_told, strict=True)):
        return rows.withColumn(GROUP, functions.regexp_extract(FILE, GROUP_IN_NAME, 1)).drop(FILE)
    # The names of adopted files do not contain their file group.
    pairs = list(zip(map(unescaped, opened.file_uris()), groups_told, strict=True))
    groups = functions.broadcast(catalog.spark.createDataFrame(pairs, f"{FILE} string, {GROUP} string"))
    # Same result as `unescaped`; `url_decode` alone would turn a plus sign into a blank.
    decoded = f"url_decode(replace({FILE}, '+', '%2B'))"
    spelled = rows.withColumn(FILE, functions.expr(f"regexp_replace({decoded}, '^file:/+', 'file:///')"))
    return spelled.join(groups, FILE).drop(FILE)


def put_views(
    catalog: Catalog, name: TableName, opened: TableSnapshot, comment: str | None, properties: Mapping[str, str]
) -> None:
    """Creates the two views of a merge-on-read table, or updates them to the columns of a version."""
    view, files = record_view(opened), files_name(name).sql
    found = {**properties, TABLE_ID_PROPERTY: opened.table_id}
    _put_view(catalog, name, opened, view.merged(files), comment, found)
    _put_view(
        catalog,
        read_optimized_name(name),
        opened,
        view.base_rows(files),
        comment,
        {BASE_ROWS_PROPERTY: opened.table_id},
    )


def remove_views(catalog: Catalog, name: TableName) -> None:
    """Removes both views from the catalog. Views that are not ours stay."""
    if is_merging_view(catalog.find(name)):
        catalog.remove(name)
    base_rows = catalog.find(read_optimized_name(name))
    if base_rows is not None and base_rows.kind == "VIEW" and BASE_ROWS_PROPERTY in base_rows.all_properties():
        catalog.remove(base_rows.name)


def _put_view(
    catalog: Catalog,
    name: TableName,
    opened: TableSnapshot,
    query: str,
    comment: str | None,
    properties: Mapping[str, str],
) -> None:
    entry = catalog.find(name)
    fields = json.loads(opened.row_schema_json)["fields"]
    if entry is not None and entry.kind != "VIEW":
        # The name was a table until now; its files stay and live on below the view.
        uninstall(catalog, name)
        catalog.remove(name)
    elif entry is not None and _same(catalog, entry, query, fields, comment, properties):
        return
    listed = ", ".join(
        backquoted(each["name"]) + _comment((each.get("metadata") or {}).get("comment")) for each in fields
    )
    told = ", ".join(f"{string_literal(key)} = {string_literal(value)}" for key, value in properties.items())
    catalog.spark.sql(
        f"create or replace view {name.sql} ({listed}){_comment(comment)}"
        + (f" tblproperties ({told})" if told else "")
        + f" as {query}"
    )


def _same(
    catalog: Catalog, entry: Entry, query: str, fields: list[Any], comment: str | None, properties: Mapping[str, str]
) -> bool:
    have = json.loads(entry.schema_json)["fields"]
    then = entry.native.comment()
    known = entry.all_properties()
    return (
        catalog.view_text(entry) == query
        and [_shown(each) for each in have] == [_shown(each) for each in fields]
        and (str(then.get()) if then.isDefined() else None) == comment
        and all(known.get(key) == value for key, value in properties.items())
    )


def _shown(field: Mapping[str, Any]) -> tuple[Any, ...]:
    return field["name"], json.dumps(field["type"], sort_keys=True), (field.get("metadata") or {}).get("comment")


def _comment(text: str | None) -> str:
    return f" comment {string_literal(text)}" if text else ""
