"""The one Spark session of a dbt process: started with the profile's configuration, or taken over where one runs."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Mapping
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession

from dbt.adapters.zlayout.java_runtime import require_java

_LOCK = threading.Lock()
_APPLIED: list[tuple[str, dict[str, str]]] = []
_IN_MEMORY = {"spark.sql.catalogImplementation": "in-memory"}


def session_for(parameters: Mapping[str, str]) -> SparkSession:
    """Starts a session, or takes the running one and sets what can be set of it.

    Args:
        parameters: Spark configuration of the profile.

    Returns:
        The session; the same for every thread.

    Raises:
        UnsupportedError: There is no Java that Spark can run on.
    """
    with _LOCK:
        running = SparkContext._active_spark_context
        if running is not None and (running.applicationId, parameters) in _APPLIED:
            return SparkSession.builder.getOrCreate()
        if SparkContext._gateway is None:
            require_java()
            _hush_statement_loggers()
        wanted = dict(parameters) if running is not None else {**launch_defaults(os.environ), **parameters}
        builder = SparkSession.builder
        if not wanted.items() >= _IN_MEMORY.items():
            builder = builder.enableHiveSupport()
        for key, value in wanted.items():
            builder = builder.config(key, value)
        session = builder.getOrCreate()
        # Once is enough: Spark warns at every further time of what can no longer be set.
        _APPLIED[:] = [(session.sparkContext.applicationId, dict(parameters))]
        return session


def launch_defaults(environment: Mapping[str, str]) -> dict[str, str]:
    """Configuration of a session that dbt starts itself, where the profile says nothing.

    Args:
        environment: Variables of the process; a log4j2.properties in Spark's configuration folder is left in charge.
    """
    defaults = {
        # Spark 3.5 would make text tables of Hive where a statement names no format; Spark 4 no longer does.
        "spark.sql.legacy.createHiveTableByDefault": "false",
        # Spark's progress bar would write over dbt's lines.
        "spark.ui.showConsoleProgress": "false",
    }
    if not _has_own_logging(environment):
        defaults["spark.log.level"] = "ERROR"
    return defaults


def _hush_statement_loggers() -> None:
    """Keeps pyspark 4 from logging a page of JSON for every statement that fails: dbt tells of it itself."""
    try:
        from pyspark.logger import PySparkLogger  # noqa: PLC0415 # Spark 3.5 has none
    except ImportError:
        return
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)


def _has_own_logging(environment: Mapping[str, str]) -> bool:
    folders = [environment.get("SPARK_CONF_DIR")]
    if environment.get("SPARK_HOME"):
        folders.append(str(Path(environment["SPARK_HOME"]) / "conf"))
    return any(folder is not None and (Path(folder) / "log4j2.properties").is_file() for folder in folders)
