"""The Derby database that Spark makes where no metastore is configured: one process at a time can open it."""

from __future__ import annotations

import fcntl
import re
from collections.abc import Mapping
from pathlib import Path

from dbt.adapters.zlayout.errors import UnsupportedError

_URL = ("spark.hadoop.javax.jdo.option.ConnectionURL", "javax.jdo.option.ConnectionURL")
_URIS = ("spark.hadoop.hive.metastore.uris", "hive.metastore.uris")
_DERBY = re.compile(r"jdbc:derby:(?P<path>[^;]*)(?:;.*?\bdatabaseName=(?P<name>[^;]+))?")
_LOCK = "dbex.lck"
_TAKEN = re.compile(r"XSDB6.*?booted the database (?P<folder>\S.*?)\.?$", re.MULTILINE)


def derby_folder(parameters: Mapping[str, str], working_directory: Path) -> Path | None:
    """The folder of the database that a session will open, or None where it opens none.

    Args:
        parameters: Spark's configuration.
        working_directory: Where the database lies if nothing is said of it.
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
        UnsupportedError: One has.
    """
    # Derby holds a lock on this file while it is open.
    try:
        with (folder / _LOCK).open("r+b") as file:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError) as error:
        raise UnsupportedError(taken(str(folder))) from error
    except OSError:
        return  # It was never opened, or this file system knows no locks: Derby will say.


def taken_database(text: str) -> str | None:
    """The sentence for what Derby says of a database that another process has open; None where it says otherwise."""
    match = _TAKEN.search(text)
    return None if match is None else taken(match["folder"])


def taken(folder: str) -> str:
    """The sentence for a database that another process has open."""
    return (
        f"the metastore {folder} is open in another process, such as a dbt run, and a Derby database can be open in one"
        " at a time; wait until that one ends, start dbt in another folder, or set spark.hadoop.hive.metastore.uris in"
        " server_side_parameters to a Hive metastore, which many can share"
    )
