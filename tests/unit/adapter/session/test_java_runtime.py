"""A missing or old Java is told before Spark fails in its own words."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbt.adapters.zlayout.adapter.session.java_runtime import feature_version, require_java
from dbt.adapters.zlayout.errors import UnsupportedError


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


def test_an_old_java_is_named_with_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", java_home(tmp_path, 'openjdk version "11.0.2"'))
    with pytest.raises(UnsupportedError, match=r"is Java 11: install Java 17"):
        require_java()


def test_a_new_enough_java_is_fine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", java_home(tmp_path, 'openjdk version "17.0.15"'))
    require_java()


def test_no_java_at_all_is_told_with_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnsupportedError, match=r"no `java` on the PATH.*install Java 17"):
        require_java()


def test_a_java_home_without_java_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(UnsupportedError, match="does not run"):
        require_java()
