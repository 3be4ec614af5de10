"""What must hold before Spark starts: a Java that it can run on, and a metastore that no other process has open."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from dbt.adapters.zlayout.errors import UnsupportedError

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
_LOCK = "dbex.lck"
_TAKEN = re.compile(r"XSDB6.*?booted the database (?P<folder>\S.*?)\.?$", re.MULTILINE)


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
    """The 17 of ``openjdk version "17.0.15"`` and the 8 of ``java version "1.8.0_392"``; None without a version."""
    match = _VERSION.search(banner)
    if match is None:
        return None
    first, second = int(match[1]), match[2]
    return int(second) if first == 1 and second is not None else first


def derby_folder(parameters: Mapping[str, str], working_directory: Path) -> Path | None:
    """The folder of the Derby database that a session will open, or None if it opens none.

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
    try:
        with (folder / _LOCK).open("r+b") as file:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError) as error:
        raise UnsupportedError(taken(str(folder))) from error
    except OSError:
        return  # The database is new, or the file system has no locks. Derby will report any problem.


def taken_database(text: str) -> str | None:
    """The message if Derby's error says that another process has the database open; otherwise None."""
    match = _TAKEN.search(text)
    return None if match is None else taken(match["folder"])


def taken(folder: str) -> str:
    """The message for a database that another process has open."""
    return (
        f"the metastore {folder} is open in another process, such as a dbt run, and only one process at a time can open"
        " a Derby database; wait until that process ends, start dbt in another folder, or set"
        " spark.hadoop.hive.metastore.uris in server_side_parameters to a Hive metastore, which many can share"
    )
