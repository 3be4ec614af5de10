"""A Derby metastore that another process has open is told in one sentence, before Spark starts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dbt.adapters.zlayout.adapter.session.derby_metastore import derby_folder, require_free, taken_database
from dbt.adapters.zlayout.errors import UnsupportedError

_URL = "spark.hadoop.javax.jdo.option.ConnectionURL"
_HOLDS = """
import fcntl, sys
file = open(sys.argv[1], "r+b")
fcntl.lockf(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(
    ("parameters", "folder"),
    [
        ({}, "/here/metastore_db"),
        ({_URL: "jdbc:derby:;databaseName=/data/catalog;create=true"}, "/data/catalog"),
        ({_URL: "jdbc:derby:catalog;create=true"}, "/here/catalog"),
        ({_URL: "jdbc:derby:memory:mine;create=true"}, None),
        ({_URL: "jdbc:derby://server:1527/mine"}, None),
        ({_URL: "jdbc:postgresql://server/hive"}, None),
        ({"spark.hadoop.hive.metastore.uris": "thrift://metastore:9083"}, None),
    ],
)
def test_the_folder_is_where_the_session_will_open_its_database(parameters: dict[str, str], folder: str | None) -> None:
    assert derby_folder(parameters, Path("/here")) == (Path(folder) if folder else None)


def test_a_database_that_another_process_holds_is_named_with_what_to_do(tmp_path: Path) -> None:
    require_free(tmp_path)
    lock = tmp_path / "dbex.lck"
    lock.touch()
    require_free(tmp_path)
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDS, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(
            UnsupportedError, match=rf"metastore {tmp_path} is open in another process.*hive.metastore.uris"
        ):
            require_free(tmp_path)
        other.communicate()
    require_free(tmp_path)


def test_what_derby_says_of_it_becomes_the_same_sentence() -> None:
    said = "ERROR XSDB6: Another instance of Derby may have already booted the database /w/metastore_db."
    assert (taken_database(said) or "").startswith("the metastore /w/metastore_db is open in another process")
    assert taken_database("ERROR XJ040: Failed to start database") is None
