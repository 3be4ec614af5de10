"""The one Spark session of a dbt process: started with the profile's configuration, or the one that already runs."""

from __future__ import annotations

import fcntl
import logging
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from dbt.adapters.zlayout.errors import UnsupportedError
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog
from dbt.adapters.zlayout.spark.jobs.jobs import every_text
from dbt.adapters.zlayout.spark.jobs.workers import worker_line
from dbt.adapters.zlayout.spark.jvm.callbacks import ensure_skipping
from dbt.adapters.zlayout.spark.jvm.lifetime import forget_ended_java
from dbt.adapters.zlayout.spark.read.scan_log import CONSTANTS, SCAN_LOG
from dbt.adapters.zlayout.store import check_place
from dbt.adapters.zlayout.store.uri import without_login
from dbt.include.zlayout import PACKAGE_PATH

_LOCK = threading.Lock()
_APPLIED: list[tuple[str, dict[str, str]]] = []
# Spark puts the default options before the extra ones, which are the user's: theirs stay, and theirs win.
_DEFAULT_OPTIONS, _EXTRA_OPTIONS = "spark.driver.defaultJavaOptions", "spark.driver.extraJavaOptions"
_JAVA_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS", "PYSPARK_SUBMIT_ARGS")
_LOG_CONFIGURATION = Path(PACKAGE_PATH) / "log4j2.properties"
_IN_MEMORY = {"spark.sql.catalogImplementation": "in-memory"}

# Python's default is 5 ms. A thread that computes would make others wait that long after each answer of the JVM.
_SWITCH_SECONDS = 0.0002

OLDEST_JAVA = 17
_VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?[^"]*"')
_ADVICE = (
    f"install Java {OLDEST_JAVA} or 21 (Debian and Ubuntu: `apt-get install openjdk-17-jre-headless`; macOS: "
    "`brew install openjdk@17`) and, where several are installed, set JAVA_HOME to it"
)
# Derby is the database that Spark creates if no metastore is configured. Only one process at a time can open it.
_URL = ("spark.hadoop.javax.jdo.option.ConnectionURL", "javax.jdo.option.ConnectionURL")
_URIS = ("spark.hadoop.hive.metastore.uris", "hive.metastore.uris")
_DERBY = re.compile(r"jdbc:derby:(?P<path>[^;]*)(?:;.*?\bdatabaseName=(?P<name>[^;]+))?")
_DERBY_LOCK = "dbex.lck"
_TAKEN = re.compile(r"XSDB6.*?booted the database (?P<folder>\S.*?)\.?$", re.MULTILINE)


def session_for(parameters: Mapping[str, str]) -> SparkSession:
    """Starts a session, or reuses the running one and applies the settings that can still change.

    If the Java process of the running session has ended, a new one is started.

    Args:
        parameters: The Spark configuration of the profile.

    Returns:
        The session, which is the same for every thread.

    Raises:
        UnsupportedError: Spark has no Java to run on, or another process has the metastore open.
    """
    with _LOCK:
        forget_ended_java()
        running = SparkContext._active_spark_context
        if running is not None and (running.applicationId, parameters) in _APPLIED:
            return SparkSession.builder.getOrCreate()
        wanted = dict(parameters) if running is not None else with_launch_defaults(parameters, os.environ)
        with_hive = not wanted.items() >= _IN_MEMORY.items()
        # A hive-site.xml names the metastore, which then may not be a Derby database.
        named_elsewhere = not with_hive or bool(_in_configuration("hive-site.xml", os.environ))
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
        for key in (SCAN_LOG, CONSTANTS):
            # A running session has the settings of the profile before.
            if key not in wanted:
                session.conf.unset(key)
        sys.setswitchinterval(min(sys.getswitchinterval(), _SWITCH_SECONDS))
        if with_hive and running is None:
            own_log = _LOG_CONFIGURATION.as_uri() in wanted.get(_DEFAULT_OPTIONS, "")
            _open_catalog(session, wanted.get("spark.log.level", "ERROR" if own_log else None), database)
        # Settings are applied once: each further time, Spark would warn about those that can no longer change.
        _APPLIED[:] = [(session.sparkContext.applicationId, dict(parameters))]
        return session


def forget_files() -> None:
    """Drops what the running session, if there is one, knows of the files of tables.

    A process can run dbt more than once, and files may have come since.
    """
    if SparkContext._active_spark_context is not None:
        with suppress(Exception):  # the next command finds out what is wrong with the session
            Catalog(SparkSession.builder.getOrCreate()).forget_relations()


def with_launch_defaults(parameters: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the configuration of a session that dbt starts.

    Args:
        parameters: The configuration of the profile, which takes precedence.
        environment: The variables of the process. A log that the user configures is left as it is.
    """
    wanted = {
        # Without this, Spark 3.5 creates a Hive text table if a statement names no format. Spark 4 does not.
        "spark.sql.legacy.createHiveTableByDefault": "false",
        # Spark's progress bar would overwrite dbt's lines.
        "spark.ui.showConsoleProgress": "false",
        # Text such as "${env:NAME}" in a model or comment stays as it is. Substitution could put a secret into a table.
        "spark.sql.variable.substitute": "false",
        **parameters,
    }
    if not _configures_log(parameters, environment):
        # A level set after the start would come too late for the lines of the start.
        ours = f"-Dlog4j2.configurationFile={_LOG_CONFIGURATION.as_uri()}"
        wanted[_DEFAULT_OPTIONS] = f"{ours} {wanted.get(_DEFAULT_OPTIONS, '')}".strip()
    return wanted


def _configures_log(parameters: Mapping[str, str], environment: Mapping[str, str]) -> bool:
    """Returns whether the user configures Log4j, in any place from which Spark's JVM takes options."""
    if "LOG4J_CONFIGURATION_FILE" in environment or _in_configuration("log4j2.properties", environment):
        return True
    defaults = [file.read_text(errors="replace") for file in _in_configuration("spark-defaults.conf", environment)]
    texts = [parameters.get(key, "") for key in (_DEFAULT_OPTIONS, _EXTRA_OPTIONS)]
    texts += [environment.get(name, "") for name in _JAVA_VARIABLES] + defaults
    # Our default options would replace those of spark-defaults.conf.
    return any("log4j" in text for text in texts) or any(_DEFAULT_OPTIONS in text for text in defaults)


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
        if (sentence := in_use_text_of(every_text(error))) is not None:
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


def _in_configuration(name: str, environment: Mapping[str, str]) -> list[Path]:
    """Returns the files of a name in Spark's configuration folders."""
    folders = [environment.get("SPARK_CONF_DIR")]
    if environment.get("SPARK_HOME"):
        folders.append(str(Path(environment["SPARK_HOME"]) / "conf"))
    return [Path(folder) / name for folder in folders if folder is not None and (Path(folder) / name).is_file()]


def require_java() -> None:
    """Checks the Java that pyspark is going to start.

    Raises:
        UnsupportedError: Java is missing or too old. The message says what to install.
    """
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None:
        raise UnsupportedError(f"Spark needs Java, and there is no `java` on the PATH and no JAVA_HOME: {_ADVICE}")
    try:
        shown = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=60, check=False
        )  # pyspark starts this same executable
    except (OSError, subprocess.SubprocessError) as error:
        raise UnsupportedError(f"Spark needs Java, and {java} does not run ({error}): {_ADVICE}") from error
    version = feature_version(shown.stderr + shown.stdout)
    if version is not None and version < OLDEST_JAVA:
        raise UnsupportedError(f"Spark needs Java {OLDEST_JAVA} or newer, and {java} is Java {version}: {_ADVICE}")


def feature_version(banner: str) -> int | None:
    """Returns 17 for ``openjdk version "17.0.15"`` and 8 for ``java version "1.8.0_392"``; None without a version."""
    match = _VERSION.search(banner)
    if match is None:
        return None
    first, second = int(match[1]), match[2]
    return int(second) if first == 1 and second is not None else first


def derby_folder(parameters: Mapping[str, str], working_directory: Path) -> Path | None:
    """Returns the folder of the Derby database that a session will open, or None if it opens none.

    Args:
        parameters: Spark's configuration.
        working_directory: The folder of the database if the configuration does not name one.
    """
    if any(parameters.get(key) for key in _URIS):
        return None
    url = next((parameters[key] for key in _URL if key in parameters), "jdbc:derby:metastore_db")
    match = _DERBY.match(url)
    name = match and (match["name"] or match["path"])
    if not name or name.startswith(("memory:", "//", "classpath:", "jar:")):
        return None
    return working_directory / name.removeprefix("directory:")


def require_free(folder: Path) -> None:
    """Checks that no other process has the database open.

    Raises:
        UnsupportedError: Another process has the database open.
    """
    # Derby holds a lock on this file while it is open.
    # If the database is new, or its files cannot be opened, Derby will report any problem.
    with suppress(OSError), (folder / _DERBY_LOCK).open("r+b") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError) as error:
            raise UnsupportedError(_in_use_text(str(folder))) from error


def in_use_text_of(text: str) -> str | None:
    """Returns the message if Derby's error says that another process has the database open; otherwise None."""
    match = _TAKEN.search(text)
    return None if match is None else _in_use_text(match["folder"])


def _in_use_text(folder: str) -> str:
    """Returns the message for a database that another process has open."""
    return (
        f"the metastore {folder} is open in another process, such as a dbt run, and only one process at a time can open"
        " a Derby database; wait until that process ends, or set"
        " spark.hadoop.hive.metastore.uris in server_side_parameters to a Hive metastore, which many can share"
    )


def session_lines(session: SparkSession, location_root: str | None) -> list[str]:
    """Returns the versions, folders and capabilities of a session, one line each.

    Args:
        session: The session that models run in.
        location_root: The folder that the profile sets for tables, or None.

    Raises:
        UnsupportedError: Python workers do not start, or they cannot import this package.
        StoreError: The profile's folder is not writable.
    """
    context = session.sparkContext
    jvm: Any = context._jvm
    warehouse = session.conf.get("spark.sql.warehouse.dir")
    in_warehouse = " (Spark's warehouse)"
    available, reason = ensure_skipping(session)
    if location_root is not None:
        check_place(location_root)
    return [
        f"Spark version: {session.version}",
        f"Java version: {jvm.System.getProperty('java.version')}",
        f"master: {context.master}",
        worker_line(session),
        f"catalog: {session.conf.get('spark.sql.catalogImplementation')}",
        f"data goes to: {location_root or without_login(str(warehouse)) + in_warehouse}",
        f"file skipping in this session: {'available' if available else f'not available: {reason}'}",
    ]
