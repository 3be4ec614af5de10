"""The session's relation cache: which tables plain SQL reads through our file index, and at which version."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import numpy as np
import numpy.typing as npt
from pyspark.sql import Column, DataFrame

from dbt.adapters.zlayout.errors import UnsupportedError
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog, Entry, TableName
from dbt.adapters.zlayout.spark.jvm.callbacks import ensure_skipping
from dbt.adapters.zlayout.spark.jvm.scala import Jvm
from dbt.adapters.zlayout.spark.read.file_index import (
    IndexedFileIndex,
    SnapshotFileIndex,
    SomeFilesIndex,
    ZlayoutFileIndex,
)
from dbt.adapters.zlayout.spark.schema.table_schema import FILE
from dbt.adapters.zlayout.spark.schema.types import split_partition_columns
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SOURCES = "org.apache.spark.sql.execution.datasources."


def install(catalog: Catalog, entry: Entry, opened: TableSnapshot) -> ZlayoutFileIndex:
    """Caches a relation with our file index for a managed table, replacing the cached one.

    Args:
        opened: The table at the version that the session is to read.
    """
    data_json, _ = split_partition_columns(opened.schema_json, opened.partition_columns)
    index = index_of(catalog, opened)
    index.logged_as = str(entry.name)
    _cache(catalog, entry, index, index.partitionSchema(), catalog.data_type(data_json))
    return index


def index_of(catalog: Catalog, opened: TableSnapshot) -> SnapshotFileIndex:
    """Returns the file index of a version of a managed table."""
    _, partition_json = split_partition_columns(opened.schema_json, opened.partition_columns)
    return SnapshotFileIndex(catalog.jvm, opened, catalog.data_type(partition_json))


def install_indexed(catalog: Catalog, entry: Entry, opened: TableSnapshot) -> ZlayoutFileIndex:
    """Caches a relation for an indexed table: Spark's own relation, with its file index wrapped in ours."""
    catalog.forget_relation(entry.name)
    relation = spark_relation(catalog, entry.name)
    index = IndexedFileIndex(catalog.jvm, opened, entry.schema_json, relation.location())
    index.logged_as = str(entry.name)
    _cache(catalog, entry, index, relation.partitionSchema(), relation.dataSchema())
    return index


def frame_of(
    catalog: Catalog,
    opened: TableSnapshot,
    files: npt.NDArray[np.bool_] | None = None,
    *,
    logged_as: str | None = None,
) -> DataFrame:
    """Returns the rows of one version, or of some of its files, as a separate DataFrame.

    The session's relation cache stays as it is. Filters skip files as in plain SQL.

    Args:
        opened: The table at the version.
        files: Mask over ``opened.files``: True for the files to read. None reads all files.
        logged_as: The table's name in the scan log; None if scans are not logged.

    Raises:
        UnsupportedError: Spark cannot call back into this process.
    """
    available, reason = ensure_skipping(catalog.spark)
    if not available:
        raise UnsupportedError(f"{opened.location}: versions cannot be read here: {reason.partition(';')[0]}")
    data_json, _ = split_partition_columns(opened.schema_json, opened.partition_columns)
    index = index_of(catalog, opened)
    partition_schema = index.partitionSchema()
    if files is not None:
        index = SomeFilesIndex(catalog.jvm, opened.with_files(opened.files.filter(files)), partition_schema)
    index.logged_as = logged_as
    jvm = catalog.jvm
    parquet = jvm.datasources.parquet.ParquetFileFormat()
    native: Any = catalog.spark._jsparkSession
    relation = jvm.datasources.HadoopFsRelation(
        index, partition_schema, catalog.data_type(data_json), jvm.none(), parquet, jvm.once(_strict), native
    )
    return DataFrame(native.baseRelationToDataFrame(relation), catalog.spark)


def _strict(jvm: Jvm) -> Any:
    """Returns options with which Spark reads every file and every page as it was written, whatever the session says.

    The rows of others would be lost, or written again as they are.
    """
    return jvm.scala_map(
        {
            "ignoreCorruptFiles": "false",
            "ignoreMissingFiles": "false",
            "parquet.page.verify-checksum.enabled": "true",
        }
    )


def with_file(frame: DataFrame) -> DataFrame:
    """Adds the escaped URI of each row's file to a DataFrame of `frame_of`, as the column `FILE`.

    The URI comes from Spark's metadata column, which cannot clash with the table's own columns. Filters are pushed
    through it to the file index, but not through ``input_file_name()``.
    """
    native: Any = frame._jdf
    return frame.withColumn(FILE, Column(native.metadataColumn("_metadata").getField("file_path")))


def with_file_and_row(frame: DataFrame, row: str) -> DataFrame:
    """Adds what `with_file` adds, and the number of each row in its file as another column."""
    native: Any = frame._jdf
    metadata = native.metadataColumn("_metadata")
    return frame.withColumns(
        {FILE: Column(metadata.getField("file_path")), row: Column(metadata.getField("row_index"))}
    )


def spark_relation(catalog: Catalog, name: TableName) -> Any:
    """Returns the ``HadoopFsRelation`` that Spark itself creates for a table (Py4J object)."""
    session: Any = catalog.spark._jsparkSession
    return session.table(name.sql).queryExecution().analyzed().collectLeaves().head().relation()


def _cache(catalog: Catalog, entry: Entry, index: ZlayoutFileIndex, partition_schema: Any, data_schema: Any) -> None:
    if not ensure_skipping(catalog.spark)[0]:
        return
    jvm = catalog.jvm
    session: Any = catalog.spark._jsparkSession
    no_options = jvm.root.org.apache.spark.sql.util.CaseInsensitiveStringMap.empty()
    options = jvm.companion(_SOURCES + "DataSourceUtils").generateDatasourceOptions(no_options, entry.native)
    parquet = jvm.datasources.parquet.ParquetFileFormat()
    relation = jvm.datasources.HadoopFsRelation(
        index, partition_schema, data_schema, jvm.none(), parquet, options, session
    )
    catalog.cache_relation(entry.name, jvm.companion(_SOURCES + "LogicalRelation").apply(relation, entry.native))
    key = _key(catalog.spark, entry.name)
    _INSTALLED[key] = index
    # The set holds the session from the start, because another thread removes empty sets.
    _SESSIONS.setdefault(key[0], (WeakSet([catalog.spark]), catalog.relation_cache()))[0].add(catalog.spark)
    _drop_unreferenced()


def installed(catalog: Catalog, name: TableName) -> ZlayoutFileIndex | None:
    """Returns the file index that the session caches for a name; None if it caches no relation, or another one."""
    plan = catalog.cached_relation(name)
    index = _INSTALLED.get(_key(catalog.spark, name))
    if plan is None or index is None:
        return None
    return index if str(plan.relation().location().toString()) == index.toString() else None


def uninstall(catalog: Catalog, name: TableName) -> None:
    """Removes the relation from the cache. The session then reads the table as plain Spark does."""
    _INSTALLED.pop(_key(catalog.spark, name), None)
    catalog.forget_relation(name)


def _drop_unreferenced() -> None:
    """Drops the relations of sessions that no Python object references any more: the JVM never evicts them.

    If such a session is used again, it skips no files until its next query.
    """
    for session in [each for each, (holders, _) in list(_SESSIONS.items()) if not holders]:
        gone = _SESSIONS.pop(session, None)
        if gone is not None:
            for key in [each for each in list(_INSTALLED) if each[0] == session]:
                _INSTALLED.pop(key, None)
            # This fails if the session was stopped, because its JVM is gone.
            with suppress(Exception):
                gone[1].invalidateAllCachedTables()


def _key(spark: SparkSession, name: TableName) -> tuple[str, str, str]:
    session: Any = spark._jsparkSession
    return str(session.sessionUUID()), name.schema.lower(), name.identifier.lower()


# Session id → the Python objects that reference the session, and its relation cache (Py4J object).
_SESSIONS: dict[str, tuple[WeakSet[SparkSession], Any]] = {}
# Py4J maps a proxy back to its Python object only while Python references it, so file indexes live as long as their
# session.
_INSTALLED: dict[tuple[str, str, str], ZlayoutFileIndex] = {}
