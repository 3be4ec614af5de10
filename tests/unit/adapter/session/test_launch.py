"""A missing or old Java, or a metastore in use, is one sentence before Spark starts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dbt.adapters.zlayout.adapter.session.launch import (
    derby_folder,
    feature_version,
    in_use_text_of,
    require_free,
    require_java,
)
from dbt.adapters.zlayout.errors import UnsupportedError

_URL = "spark.hadoop.javax.jdo.option.ConnectionURL"
_HOLDS = """
import fcntl, sys
file = open(sys.argv[1], "r+b")
fcntl.lockf(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def java_home(folder: Path, banner: str) -> str:
    java = folder / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho '{banner}' >&2\n")
    java.chmod(0o755)
    return str(folder)


@pytest.mark.parametrize(
    ("banner", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ('openjdk version "22-ea" 2024-03-19', 22),
        ("what is this", None),
    ],
)
def test_the_feature_version_is_read_from_every_banner(banner: str, version: int | None) -> None:
    assert feature_version(banner) == version


def test_the_error_for_an_old_java_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", java_home(tmp_path, 'openjdk version "11.0.2"'))
    with pytest.raises(UnsupportedError, match=r"is Java 11: install Java 17"):
        require_java()


def test_a_new_enough_java_is_fine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", java_home(tmp_path, 'openjdk version "17.0.15"'))
    require_java()


def test_the_error_for_a_missing_java_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnsupportedError, match=r"no `java` on the PATH.*install Java 17"):
        require_java()


def test_a_java_home_without_java_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(UnsupportedError, match="does not run"):
        require_java()


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


def test_the_error_for_a_database_in_use_says_what_to_do(tmp_path: Path) -> None:
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


def test_derbys_own_error_becomes_the_same_sentence() -> None:
    said = "ERROR XSDB6: Another instance of Derby may have already booted the database /w/metastore_db."
    assert (in_use_text_of(said) or "").startswith("the metastore /w/metastore_db is open in another process")
    assert in_use_text_of("ERROR XJ040: Failed to start database") is None
