"""A merge-on-read table in the catalog: the merging view, the read-optimized view, and the table of files below.

The rows are base rows without a newer log record, and each key's newest upsert. The newest record of a key is the one
with the highest instant; no two records of a key share an instant. Writers apply the ordering column (`tagging`), so
readers need not look at it. Keys are matched within their partition only: a row that moves to another partition leaves
a delete behind.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions

from dbt.adapters.zlayout.config.table_type import DELETE, INSTANT, OP, SEQ, TOMBSTONE, UPSERT, TableTypeConfig
from dbt.adapters.zlayout.errors import ConfigError
from dbt.adapters.zlayout.predicate.literals import backquoted
from dbt.adapters.zlayout.spark.catalog.session_catalog import TABLE_ID_PROPERTY, Catalog, Entry, TableName, unescaped
from dbt.adapters.zlayout.spark.read.relations import frame_of, uninstall
from dbt.adapters.zlayout.spark.schema.table_schema import FILE, GROUP, string_literal
from dbt.adapters.zlayout.spark.schema.types import raw_fields
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
# Up to this many log records are broadcast, so that base rows are not shuffled.
_BROADCAST_ROWS = 2_000_000


def files_name(name: TableName) -> TableName:
    """Returns the name of the table that holds the base and log files of a merge-on-read table."""
    return TableName(name.schema, name.identifier + _FILES)


def table_of_files(name: TableName) -> TableName | None:
    """Returns the name of the merge-on-read table whose files have a name; None for any other name."""
    if not name.identifier.endswith(_FILES):
        return None
    return TableName(name.schema, name.identifier.removesuffix(_FILES))


def _read_optimized_name(name: TableName) -> TableName:
    """Returns the name of the read-optimized view, which reads base files only."""
    return TableName(name.schema, name.identifier + _READ_OPTIMIZED)


def physical_name(name: TableName, opened: TableSnapshot) -> TableName:
    """Returns the name under which the catalog has a table's files."""
    return files_name(name) if opened.merges_on_read else name


def check_names_are_free(catalog: Catalog, name: TableName, table_ids: Collection[str | None]) -> None:
    """Checks that the additional catalog names of a merge-on-read table are free, or already belong to the table.

    Args:
        table_ids: The id of the table, and the id that it had until now.

    Raises:
        ConfigError: A relation that does not belong to the table has one of the names.
    """
    for each, key in ((files_name(name), TABLE_ID_PROPERTY), (_read_optimized_name(name), BASE_ROWS_PROPERTY)):
        entry = catalog.find(each)
        if entry is not None and entry.properties.get(key) not in {*table_ids} - {None}:
            why = f"a merge_on_read table needs the name {each}, which another {entry.kind.lower()} relation has"
            raise ConfigError([f"table_type: {why}; rename or drop it, or give this table another name"], str(name))


def table_entry(catalog: Catalog, name: TableName) -> Entry | None:
    """Returns the catalog entry of a table by its name; for a merge-on-read table, the entry of its files."""
    return entry_of_files(catalog, catalog.find(name))


def entry_of_files(catalog: Catalog, entry: Entry | None) -> Entry | None:
    """Returns the entry of the files below the merging view of a merge-on-read table; any other entry itself."""
    return catalog.find(files_name(entry.name)) if entry is not None and is_merging_view(entry) else entry


def is_merging_view(entry: Entry | None) -> bool:
    """Returns whether an entry is the merging view through which a merge-on-read table is read."""
    return entry is not None and entry.kind == "VIEW" and entry.table_id is not None


def record_view(opened: TableSnapshot) -> RecordView:
    """Returns how to query the rows of a version from its files."""
    names = [each["name"] for each in raw_fields(opened.row_schema_json)]
    keys = table_type_of(opened).unique_key
    return RecordView(names, keys, opened.partition_columns, log_files(opened.snapshot.files).total_rows)


@dataclass(frozen=True)
class RecordView:
    """Builds the queries that return the rows of one table from its files.

    Attributes:
        columns: Columns of the table, in order.
        keys: Columns of the record key.
        partition_by: Partition columns.
        log_rows: Number of records in the log files.
    """

    columns: Sequence[str]
    keys: Sequence[str]
    partition_by: Sequence[str]
    log_rows: int = 0

    def merged(self, files: str) -> str:
        """Returns the query for the rows of the table.

        Args:
            files: The table of base and log files, as SQL names it.
        """
        # No union and no window: with one scan of all files, any condition on rows skips both base and log files.
        return f"{self._latest(files, _listed(self.columns, 'f.'))} where f.{OP} is null or f.{OP} = '{UPSERT}'"

    def newest(self, files: str) -> str:
        """Returns the query for the newest log record of each key, whether an upsert or a delete."""
        return f"{self._latest(files, 'f.*')} where f.{OP} is not null"

    def kept_deletes(self, files: str, ordering: str, since: str, *further: str) -> str:
        """Returns the query for the deletes that a compaction keeps: key, partition, ordering value and instant.

        Args:
            files: The table of log files and kept deletes, as SQL names it.
            ordering: The ordering column. A delete without a value in it blocks no row and is dropped.
            since: Deletes from this instant on are kept.
            further: More columns of the files to select.
        """
        kept = {*self.within, ordering}
        # The other columns become null, in their type.
        columns = [
            f"f.{backquoted(name)}" if name in kept else f"if(false, f.{backquoted(name)}, null) {backquoted(name)}"
            for name in self.columns
        ]
        columns += [f"'{TOMBSTONE}' {OP}", f"f.{INSTANT}", f"f.{SEQ}", *(f"f.{each}" for each in further)]
        newest = self._latest(files, ", ".join(columns), f"{OP} is not null")
        return (
            f"{newest} where f.{OP} <> '{UPSERT}' and f.{backquoted(ordering)} is not null and f.{INSTANT} >= {since}"
        )

    def _latest(self, files: str, columns: str, replaces: str = f"{OP} in ('{UPSERT}', '{DELETE}')") -> str:
        """Returns the query for the base rows and log records that no later log record replaces."""
        within = self.within
        same = " and ".join(
            f"f.{backquoted(name)} {'=' if name in self.keys else '<=>'} l.{backquoted(name)}" for name in within
        )
        hint = "/*+ broadcast(l) */ " if self.log_rows <= _BROADCAST_ROWS else ""
        return (
            f"select {hint}{columns} from {files} f"
            f" left anti join (select {_listed(within)}, {INSTANT} from {files} where {replaces}) l"
            f" on {same} and l.{INSTANT} > coalesce(f.{INSTANT}, 0)"
        )

    def base_rows(self, files: str) -> str:
        """Returns the query for the rows of base files only."""
        return f"select {_listed(self.columns)} from {files} where {OP} is null"

    @property
    def within(self) -> tuple[str, ...]:
        """The columns that identify a record: key and partition."""
        return tuple(dict.fromkeys([*self.keys, *self.partition_by]))


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
    with view_of(files) as name:
        return files.sparkSession.sql(query(name))


# Of the views of `view_of`.
VIEW_PREFIX = "_zl_"


@contextmanager
def view_of(frame: DataFrame) -> Iterator[str]:
    """Gives a DataFrame a name that SQL can use inside of the context."""
    # A view name instead of a parameter of `sql`: column names may contain braces.
    name = f"{VIEW_PREFIX}{uuid.uuid4().hex}"
    frame.createTempView(name)
    try:
        yield name
    finally:
        frame.sparkSession.catalog.dropTempView(name)


def file_groups(catalog: Catalog, opened: TableSnapshot, rows: DataFrame) -> DataFrame:
    """Adds the file group of each row, as the column `GROUP`.

    Args:
        opened: The version that lists the files.
        rows: Rows with the URI of their file in the column `FILE`.
    """
    paths, group_ids = (opened.files[name].to_pylist() for name in ("path", "group"))
    if all(group_in_name(path) == group for path, group in zip(paths, group_ids, strict=True)):
        return rows.withColumn(GROUP, functions.regexp_extract(FILE, GROUP_IN_NAME, 1))
    # The names of adopted files do not contain their file group.
    pairs = list(zip(map(unescaped, opened.file_uris()), group_ids, strict=True))
    return joined_by_file(catalog, rows, pairs, f"{GROUP} string")


def joined_by_file(catalog: Catalog, rows: DataFrame, facts: Sequence[tuple[Any, ...]], columns: str) -> DataFrame:
    """Adds facts about its file to each row. Rows of other files are left out.

    Args:
        rows: Rows with the URI of their file in the column `FILE`.
        facts: For each file its URI, as `unescaped` spells it, and the values of further columns.
        columns: Names and types of these columns, as in SQL.
    """
    by_file = functions.broadcast(catalog.spark.createDataFrame(list(facts), f"{FILE} string, {columns}"))
    # Same result as `unescaped`; `url_decode` alone would turn a plus sign into a blank.
    decoded = f"url_decode(replace({FILE}, '+', '%2B'))"
    spelled = rows.withColumn(FILE, functions.expr(f"regexp_replace({decoded}, '^file:/+', 'file:///')"))
    return spelled.join(by_file, FILE)


def put_views(
    catalog: Catalog, name: TableName, opened: TableSnapshot, comment: str | None, properties: Mapping[str, str]
) -> None:
    """Creates the two views of a merge-on-read table, or updates them to the columns of a version."""
    view, files = record_view(opened), files_name(name).sql
    with_id = {**properties, TABLE_ID_PROPERTY: opened.table_id}
    _put_view(catalog, name, opened, view.merged(files), comment, with_id)
    base_rows_of = {BASE_ROWS_PROPERTY: opened.table_id}
    _put_view(catalog, _read_optimized_name(name), opened, view.base_rows(files), comment, base_rows_of)


def remove_views(catalog: Catalog, name: TableName) -> None:
    """Removes both views from the catalog. Views that are not ours stay."""
    if is_merging_view(catalog.find(name)):
        catalog.remove(name)
    base_rows = catalog.find(_read_optimized_name(name))
    if base_rows is not None and base_rows.kind == "VIEW" and BASE_ROWS_PROPERTY in base_rows.properties:
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
    fields = raw_fields(opened.row_schema_json)
    if entry is not None and entry.kind != "VIEW":
        # The name was a table until now. Its files stay, and the view reads them.
        uninstall(catalog, name)
        if entry.kind == "MANAGED":
            catalog.disown(entry)
        catalog.remove(name)
    elif entry is not None and _same(entry, query, fields, comment, properties):
        return
    columns = ", ".join(
        backquoted(each["name"]) + _comment((each.get("metadata") or {}).get("comment")) for each in fields
    )
    tags = ", ".join(f"{string_literal(key)} = {string_literal(value)}" for key, value in properties.items())
    catalog.spark.sql(
        f"create or replace view {name.sql} ({columns}){_comment(comment)} tblproperties ({tags}) as {query}"
    )


def _same(entry: Entry, query: str, fields: list[Any], comment: str | None, properties: Mapping[str, str]) -> bool:
    current_fields = raw_fields(entry.schema_json)
    current_properties = entry.properties
    return (
        entry.view_text == query
        and [_shown(each) for each in current_fields] == [_shown(each) for each in fields]
        and entry.comment == comment
        and all(current_properties.get(key) == value for key, value in properties.items())
    )


def _shown(field: Mapping[str, Any]) -> tuple[Any, ...]:
    return field["name"], json.dumps(field["type"], sort_keys=True), (field.get("metadata") or {}).get("comment")


def _comment(text: str | None) -> str:
    return f" comment {string_literal(text)}" if text else ""


def _listed(names: Sequence[str], prefix: str = "") -> str:
    return ", ".join(f"{prefix}{backquoted(name)}" for name in names)
