"""The session's relation cache: which tables plain SQL plans on through our file index, and at which version."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import numpy as np
import numpy.typing as npt
from pyspark.sql import Column, DataFrame

from dbt.adapters.zlayout.errors import UnsupportedError
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog, Entry, TableName
from dbt.adapters.zlayout.spark.jvm.callbacks import skipping_status
from dbt.adapters.zlayout.spark.read.file_index import SnapshotFileIndex, SomeFilesIndex, ZlayoutFileIndex
from dbt.adapters.zlayout.spark.read.indexed_file_index import IndexedFileIndex
from dbt.adapters.zlayout.spark.schema.log_columns import FILE
from dbt.adapters.zlayout.spark.schema.types import split_partition_columns
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SOURCES = "org.apache.spark.sql.execution.datasources."


def install(catalog: Catalog, entry: Entry, opened: TableSnapshot) -> ZlayoutFileIndex:
    """Puts a relation on the file index of a managed table into the session's cache, in place of what is there.

    Args:
        catalog: The session's catalog.
        entry: The table's entry.
        opened: The table at the version that the session shall read.
    """
    data_json, partition_json = split_partition_columns(opened.schema_json, opened.partition_columns)
    partition_schema = catalog.data_type(partition_json)
    index = SnapshotFileIndex(catalog.jvm, opened, partition_schema)
    _cache(catalog, entry, index, partition_schema, catalog.data_type(data_json))
    return index


def install_indexed(catalog: Catalog, entry: Entry, opened: TableSnapshot) -> ZlayoutFileIndex:
    """The same for a table that others write: Spark's own relation, with its file index wrapped."""
    catalog.forget_relation(entry.name)
    relation = spark_relation(catalog, entry.name)
    index = IndexedFileIndex(catalog.jvm, opened, entry.schema_json, relation.location())
    _cache(catalog, entry, index, relation.partitionSchema(), relation.dataSchema())
    return index


def frame_of(catalog: Catalog, opened: TableSnapshot, files: npt.NDArray[np.bool_] | None = None) -> DataFrame:
    """The rows of one version, or of some of its files, as a DataFrame of its own.

    The session's relation cache is not touched; filters skip files as in plain SQL.

    Args:
        catalog: The session's catalog.
        opened: The table at the version.
        files: True for each of ``opened.files`` to read; None for all.

    Raises:
        UnsupportedError: Spark cannot call back into this process.
    """
    available, reason = skipping_status(catalog.spark)
    if not available:
        raise UnsupportedError(f"{opened.location}: versions cannot be read here: {reason.partition(';')[0]}")
    data_json, partition_json = split_partition_columns(opened.schema_json, opened.partition_columns)
    partition_schema = catalog.data_type(partition_json)
    index = (
        SnapshotFileIndex(catalog.jvm, opened, partition_schema)
        if files is None
        else SomeFilesIndex(catalog.jvm, opened.with_files(opened.files.filter(files)), partition_schema)
    )
    jvm = catalog.jvm
    parquet = jvm.datasources.parquet.ParquetFileFormat()
    native: Any = catalog.spark._jsparkSession
    relation = jvm.datasources.HadoopFsRelation(
        index, partition_schema, catalog.data_type(data_json), jvm.none(), parquet, jvm.scala_map({}), native
    )
    return DataFrame(native.baseRelationToDataFrame(relation), catalog.spark)


def with_file(frame: DataFrame) -> DataFrame:
    """Rows of `frame_of` with the escaped URI of each row's file in the column `FILE`.

    It is Spark's metadata column, whatever the table calls its own columns: filters go past it to the file index, while
    none goes past ``input_file_name()``.
    """
    native: Any = frame._jdf
    return frame.withColumn(FILE, Column(native.metadataColumn("_metadata").getField("file_path")))


def spark_relation(catalog: Catalog, name: TableName) -> Any:
    """The ``HadoopFsRelation`` that Spark itself makes of a table (Py4J object)."""
    session: Any = catalog.spark._jsparkSession
    return session.table(name.sql).queryExecution().analyzed().collectLeaves().head().relation()


def _cache(catalog: Catalog, entry: Entry, index: ZlayoutFileIndex, partition_schema: Any, data_schema: Any) -> None:
    if not skipping_status(catalog.spark)[0]:
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
    # With the session in it from the start: another thread lets go of sets that are empty.
    _SESSIONS.setdefault(key[0], (WeakSet([catalog.spark]), catalog.relation_cache()))[0].add(catalog.spark)
    _let_go_of_others()


def installed(catalog: Catalog, name: TableName) -> ZlayoutFileIndex | None:
    """The file index that the session's cache holds under a name; None when it holds none or another relation."""
    plan = catalog.cached_relation(name)
    index = _INSTALLED.get(_key(catalog.spark, name))
    if plan is None or index is None:
        return None
    return index if str(plan.relation().location().toString()) == index.toString() else None


def uninstall(catalog: Catalog, name: TableName) -> None:
    """Takes the relation out: the session reads the table as any Spark does."""
    _INSTALLED.pop(_key(catalog.spark, name), None)
    catalog.forget_relation(name)


def _let_go_of_others() -> None:
    """Forgets the relations of sessions that nobody in this process holds any more: the JVM never evicts them.

    A session is held by its Python objects. One that somebody reaches again later reads in full until its next query.
    """
    for session in [each for each, (holders, _) in list(_SESSIONS.items()) if not holders]:
        gone = _SESSIONS.pop(session, None)
        if gone is not None:
            for key in [each for each in list(_INSTALLED) if each[0] == session]:
                _INSTALLED.pop(key, None)
            # The JVM of a session that was stopped is gone, too.
            with suppress(Exception):
                gone[1].invalidateAllCachedTables()


def _key(spark: SparkSession, name: TableName) -> tuple[str, str, str]:
    session: Any = spark._jsparkSession
    return str(session.sessionUUID()), name.schema.lower(), name.identifier.lower()


# By the id of a session: who holds it, and its relation cache (Py4J object).
_SESSIONS: dict[str, tuple[WeakSet[SparkSession], Any]] = {}
# Py4J hands a proxy back as the Python object only while this side holds it: the indexes live as long as their session.
_INSTALLED: dict[tuple[str, str, str], ZlayoutFileIndex] = {}
