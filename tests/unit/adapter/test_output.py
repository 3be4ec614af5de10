"""A file that an operation writes is there as a whole."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from dbt.adapters.zlayout.adapter.output import write_whole
from dbt.adapters.zlayout.errors import ConfigError


def test_the_file_is_replaced_in_one_step_and_a_folder_is_made(tmp_path: Path) -> None:
    path = tmp_path / "target" / "r.html"
    assert write_whole(path, "é") == 2
    assert write_whole(path, "new") == 3
    assert path.read_text("utf-8") == "new"
    assert [each.name for each in path.parent.iterdir()] == ["r.html"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_a_file_that_cannot_be_written_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "r.html").mkdir()
    with pytest.raises(ConfigError, match=r"r\.html cannot be written"):
        write_whole(tmp_path / "r.html", "x")
    assert [each.name for each in tmp_path.iterdir()] == ["r.html"]
