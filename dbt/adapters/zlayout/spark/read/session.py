"""In-session skipping: before a statement runs, every table that it reads gets the newest file index."""

from __future__ import annotations

import functools
import logging
import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrameReader
from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

from dbt.adapters.zlayout.errors import ConfigError, TableLostError, TableNotFoundError, UnsupportedError, ZlayoutError
from dbt.adapters.zlayout.predicate.literals import backquoted
from dbt.adapters.zlayout.spark.catalog.session_catalog import (
    Catalog,
    Entry,
    TableName,
    TablePath,
    TableRef,
    session_zone,
)
from dbt.adapters.zlayout.spark.jvm.callbacks import ensure_skipping
from dbt.adapters.zlayout.spark.read.record_tables import table_entry
from dbt.adapters.zlayout.spark.read.relations import install, install_indexed, installed
from dbt.adapters.zlayout.spark.read.scan_log import CONSTANTS, SCAN_LOG, start_for_session
from dbt.adapters.zlayout.spark.read.skipping_stages import ALL, KEY, parse_stages
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot, managed_in_folder
from dbt.adapters.zlayout.store import open_store
from dbt.adapters.zlayout.timeline.files.table_file import read_table_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG = logging.getLogger(__name__)
_RELATION = re.compile(r"UnresolvedRelation \[((?:[^\[\]])*)\]")
_ENABLED = "_zlayout_enabled"
_DEEPEST_VIEW = 32


def enable(spark: SparkSession, *, scan_log: str | os.PathLike[str] | None = None) -> None:
    """Makes ``spark.sql``, ``spark.table`` and ``spark.read.table`` of a session skip files.

    Results are the same as in plain Spark. A second call has no effect, except for the scan log. A stream that Spark
    would write into a table is refused, because it would lose rows, and so is one that reads a table, because it would
    take rows twice.

    Args:
        spark: A session with its own JVM (not Spark Connect).
        scan_log: A local folder in which each scan of this session leaves a line, for `ZTable.advise`; 'off' ends the
            log. It becomes the session's ``spark.zlayout.scanLog``, and None leaves that setting as it is.

    Raises:
        UnsupportedError: The session cannot skip; the message says why.
        ConfigError: The session's ``spark.zlayout.skipping`` names no stage, or the scan log is no local folder.
    """
    parse_stages(str(spark.conf.get(KEY, ALL)))
    if not (scan_log is None or isinstance(scan_log, str | os.PathLike)):
        raise ConfigError([f"scan_log: {scan_log!r} is not the path of a local folder, or 'off'"])
    folder = spark.conf.get(SCAN_LOG, "") if scan_log is None else os.fspath(scan_log)
    start_for_session(str(folder), str(spark.conf.get(CONSTANTS, "")))
    available, reason = ensure_skipping(spark)
    if not available:
        raise UnsupportedError(f"file skipping cannot be enabled: {reason}")
    _wrap(type(spark), "sql", lambda session: session, prepare)
    _wrap(type(spark), "table", lambda session: session, prepare_table)
    _wrap(DataFrameReader, "table", lambda reader: reader._spark, prepare_table)
    for method, refuse in (("toTable", _refuse_stream_of_table), ("start", _refuse_stream_of_folder)):
        _wrap(DataStreamWriter, method, lambda writer: writer._df.sparkSession, partial(refuse, _INTO))
    for method, refuse in (
        ("table", _refuse_stream_of_table),
        ("load", _refuse_stream_of_folder),
        ("parquet", _refuse_stream_of_folder),
    ):
        _wrap(DataStreamReader, method, lambda reader: reader._spark, partial(refuse, _FROM))
    setattr(spark, _ENABLED, True)
    if scan_log is not None:
        spark.conf.set(SCAN_LOG, os.fspath(scan_log))


def prepare(spark: SparkSession, sql: str) -> None:
    """Installs the file index of every table that a statement names, directly or through views. Never raises.

    Args:
        spark: The session that will run the statement.
        sql: The statement. If it cannot be parsed, Spark reports the error later.
    """
    _quietly(spark, lambda catalog: _refresh_all(catalog, _names_in(spark, sql), _DEEPEST_VIEW))


def prepare_table(spark: SparkSession, name: str) -> None:
    """Installs the file indexes of one table or view, like `prepare` for a statement. Never raises."""
    _quietly(spark, lambda catalog: _refresh_all(catalog, iter([name]), _DEEPEST_VIEW))


# A stream takes the manifest for its own log, so it skips or loses batches. A stream that reads takes each new file.
_INTO = "would lose rows of a stream into it; write each batch with foreachBatch and ZTable.append or ZTable.upsert"
_FROM = "would take rows of its rewritten files again; read ZTable.changes, or zlayout_changes in a model, not a stream"


def _refuse_stream_of_table(why: str, spark: SparkSession, name: str) -> None:
    if spark.catalog.currentCatalog() != "spark_catalog":
        return
    try:
        entry = Catalog(spark).find_named(name)
    except Exception:
        return  # a table of another catalog, or Spark says what is wrong
    if entry is not None and entry.location is not None:
        _refuse_stream(why, TablePath(entry.location))


def _refuse_stream_of_folder(why: str, spark: SparkSession, path: str) -> None:
    try:
        folder = Catalog(spark).folder(path)
    except Exception:
        return  # no table can be there, or Spark says what is wrong
    _refuse_stream(why, folder)


def _refuse_stream(why: str, folder: TablePath) -> None:
    if holds_table(folder.location):
        raise UnsupportedError(f"{folder} holds a dbt-zlayout table, and Spark {why}")


def _quietly(spark: SparkSession, work: Callable[[Catalog], None]) -> None:
    # No error here may stop a query that plain Spark can answer.
    try:
        if ensure_skipping(spark)[0]:
            work(Catalog(spark))
    except Exception:
        _LOG.debug("a statement runs without file skipping", exc_info=True)


def _names_in(spark: SparkSession, sql: str) -> Iterator[str]:
    session: Any = spark._jsparkSession
    plan = session.sessionState().sqlParser().parsePlan(sql)
    for match in _RELATION.finditer(str(plan.treeString())):
        yield ".".join(backquoted(part) for part in match.group(1).split(", "))


def _refresh_all(catalog: Catalog, names: Iterator[str], depth: int) -> None:
    for text in dict.fromkeys(names):
        try:
            _refresh(catalog, text, depth)
        except Exception:  # noqa: PERF203 # one table must not turn off skipping for the others of the statement
            _LOG.debug("%s is read without file skipping", text, exc_info=True)


def _refresh(catalog: Catalog, text: str, depth: int) -> None:
    name = catalog.name(text)
    index = installed(catalog, name)
    if index is not None and index.opened.is_current() and _in_zone(catalog.spark, index.opened):
        return
    entry = catalog.find(name)
    if entry is None:
        return
    if entry.kind == "VIEW":
        view = entry.view_text
        if view and depth:
            _refresh_all(catalog, _names_in(catalog.spark, view), depth - 1)
        return
    opened = open_entry(catalog.spark, entry)
    if opened is not None:
        (install if opened.managed else install_indexed)(catalog, entry, opened)


def _in_zone(spark: SparkSession, opened: TableSnapshot) -> bool:
    """Returns whether local times in folder names mean the same to the session as when the table was opened."""
    return not opened.partition_columns or opened.timezone == session_zone(spark)


def open_entry(spark: SparkSession, entry: Entry) -> TableSnapshot | None:
    """Returns the newest version of the table or index behind a catalog entry; None if it has neither."""
    if entry.provider != "parquet" or entry.location is None or entry.table_id is None:
        return None
    return TableSnapshot.newest(entry.location, session_zone(spark))


def open_named(spark: SparkSession, name: TableName) -> tuple[Entry, TableSnapshot]:
    """Returns the catalog entry and the newest version of a table by its name.

    Raises:
        TableNotFoundError: The table does not exist, or is neither managed nor indexed.
    """
    entry = table_entry(Catalog(spark), name)
    opened = open_entry(spark, entry) if entry is not None else None
    if entry is None or opened is None:
        raise _not_a_table(name, entry)
    return entry, opened


def open_managed(spark: SparkSession, name: TableName) -> tuple[Entry, TableSnapshot]:
    """Returns the catalog entry and the newest version of a table that will be written.

    Raises:
        TableNotFoundError: The table does not exist, or is neither managed nor indexed.
        UnsupportedError: The table is not managed.
    """
    entry, opened = open_named(spark, name)
    if not opened.managed:
        raise UnsupportedError(
            f"{name} is only indexed: other tools write it; make it managed with `zlayout adopt {name} --manage`, or "
            f"ZTable.adopt(spark, '{name}', managed=True)"
        )
    return entry, opened


def newest_managed(spark: SparkSession, table: TableRef) -> TableSnapshot:
    """Returns the newest version of a managed table, by its name or its folder.

    Raises:
        TableNotFoundError: The table does not exist, or is not a dbt-zlayout table.
        UnsupportedError: The table is not managed.
    """
    if isinstance(table, TableName):
        return open_managed(spark, table)[1]
    return managed_in_folder(table.location, session_zone(spark), str(table))


def _not_a_table(name: TableName, entry: Entry | None) -> TableNotFoundError:
    """Returns the error for a name that is not a dbt-zlayout table. It says what the name is, and what to do."""
    if entry is None:
        return TableNotFoundError(
            f"there is no table {name}; build its model or load its source first, or check the schema name"
        )
    if entry.provider == "parquet" and entry.location is not None and holds_table(entry.location):
        where = TablePath(entry.location)
        return TableNotFoundError(
            f"{name} is a plain Parquet table in the catalog, and its folder {where} holds a dbt-zlayout table; give "
            f"the table its entry with ZTable.register(spark, '{name}', '{where}') or `zlayout register`"
        )
    if entry.table_id is not None and entry.location is not None:
        where = TablePath(entry.location)
        if _holds_files(entry.location):
            return TableLostError(
                f"{name} was overwritten by another tool: its folder {where} holds files, but no dbt-zlayout table any "
                "more, nor its history; rebuild its model with --full-refresh, or adopt the files: "
                f"`zlayout adopt {name} --manage`"
            )
        return TableLostError(
            f"the catalog has {name} as a dbt-zlayout table, but its folder {where} holds no table any more; if it was "
            f"moved, run `zlayout register {name} NEW_FOLDER`, otherwise rebuild its model with --full-refresh"
        )
    if entry.view_text is not None:
        return TableNotFoundError(f"{name} is a view, which has no files; name a table that it reads")
    return TableNotFoundError(
        f"{name} is not a dbt-zlayout table; build it as zordered_table, or index it with zlayout_refresh_index or "
        "ZTable.adopt"
    )


def holds_table(location: str) -> bool:
    """Returns whether a folder holds a table of this package, as far as it can be reached."""
    try:
        return read_table_file(open_store(location)) is not None
    except ZlayoutError:
        return False  # no table of this package can be there, or it cannot be reached


def _holds_files(location: str) -> bool:
    try:
        return bool(open_store(location).list("", recursive=True))
    except ZlayoutError:
        return False


def _wrap(
    owner: type,
    method: str,
    session_of: Callable[[Any], SparkSession],
    before: Callable[[SparkSession, str], None],
) -> None:
    """Patches a Spark method so that it first calls ``before``, but only for enabled sessions. It may raise."""
    original: Callable[..., Any] = getattr(owner, method)
    if getattr(original, _ENABLED, False):
        return

    @functools.wraps(original)
    def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
        session = session_of(self)
        text = args[0] if args else next(iter(kwargs.values()), None)
        if getattr(session, _ENABLED, False) and isinstance(text, str):
            before(session, text)
        return original(self, *args, **kwargs)

    setattr(wrapped, _ENABLED, True)
    setattr(owner, method, wrapped)
