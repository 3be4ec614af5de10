"""The one Spark session of a dbt process: started with the profile's configuration, or the one that already runs."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Mapping
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession

from dbt.adapters.zlayout.adapter.session.prerequisites import derby_folder, require_free, require_java, taken_database
from dbt.adapters.zlayout.errors import UnsupportedError
from dbt.adapters.zlayout.spark.jobs.jobs import every_text

_LOCK = threading.Lock()
_APPLIED: list[tuple[str, dict[str, str]]] = []
_IN_MEMORY = {"spark.sql.catalogImplementation": "in-memory"}


def session_for(parameters: Mapping[str, str]) -> SparkSession:
    """Starts a session, or reuses the running one and applies the settings that can still change.

    Args:
        parameters: The Spark configuration of the profile.

    Returns:
        The session, which is the same for every thread.

    Raises:
        UnsupportedError: Spark has no Java to run on, or another process has the metastore open.
    """
    with _LOCK:
        running = SparkContext._active_spark_context
        if running is not None and (running.applicationId, parameters) in _APPLIED:
            return SparkSession.builder.getOrCreate()
        wanted = dict(parameters) if running is not None else {**launch_defaults(os.environ), **parameters}
        with_hive = not wanted.items() >= _IN_MEMORY.items()
        # A hive-site.xml names the metastore, which then may not be a Derby database.
        named_elsewhere = not with_hive or _is_in_configuration("hive-site.xml", os.environ)
        database = None if named_elsewhere else derby_folder(wanted, Path.cwd())
        if SparkContext._gateway is None:
            require_java()
            if database is not None:
                require_free(database)
            _hush_statement_loggers()
        builder = SparkSession.builder
        if with_hive:
            builder = builder.enableHiveSupport()
        for key, value in wanted.items():
            builder = builder.config(key, value)
        session = builder.getOrCreate()
        if with_hive and running is None:
            _open_catalog(session, wanted.get("spark.log.level"), database)
        # Settings are applied once: each further time, Spark would warn about those that can no longer change.
        _APPLIED[:] = [(session.sparkContext.applicationId, dict(parameters))]
        return session


def launch_defaults(environment: Mapping[str, str]) -> dict[str, str]:
    """The default configuration of a session that dbt starts. The profile overrides it.

    Args:
        environment: The variables of the process. If Spark's configuration folder has a log4j2.properties, the log
            level is left to it.
    """
    defaults = {
        # Without this, Spark 3.5 creates a Hive text table if a statement names no format. Spark 4 does not.
        "spark.sql.legacy.createHiveTableByDefault": "false",
        # Spark's progress bar would overwrite dbt's lines.
        "spark.ui.showConsoleProgress": "false",
        # Text such as "${env:NAME}" in a model or comment stays as it is. Substitution could put a secret into a table.
        "spark.sql.variable.substitute": "false",
    }
    if not _is_in_configuration("log4j2.properties", environment):
        defaults["spark.log.level"] = "ERROR"
    return defaults


def _open_catalog(session: SparkSession, log_level: str | None, database: Path | None) -> None:
    """Opens the metastore with Spark's log off. If it fails, Spark would log thousands of lines for one problem.

    Args:
        session: The session that was just started.
        log_level: Spark's log level afterwards. None leaves the log to the user's own configuration.
        database: The folder of the metastore's Derby database, or None.

    Raises:
        UnsupportedError: Another process has opened the metastore since the check.
    """
    context = session.sparkContext
    try:
        if log_level is not None:
            context.setLogLevel("OFF")
        session.catalog.databaseExists("default")
    except Exception as error:
        context.stop()
        if database is not None:
            require_free(database)
        if (sentence := taken_database(every_text(error))) is not None:
            raise UnsupportedError(sentence) from error
        raise
    if log_level is not None:
        context.setLogLevel(log_level)


def _hush_statement_loggers() -> None:
    """Stops pyspark 4 from logging a page of JSON for each failed statement. dbt reports the failure itself."""
    try:
        from pyspark.logger import PySparkLogger  # noqa: PLC0415 # Spark 3.5 has none
    except ImportError:
        return
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)


def _is_in_configuration(file: str, environment: Mapping[str, str]) -> bool:
    folders = [environment.get("SPARK_CONF_DIR")]
    if environment.get("SPARK_HOME"):
        folders.append(str(Path(environment["SPARK_HOME"]) / "conf"))
    return any(folder is not None and (Path(folder) / file).is_file() for folder in folders)
