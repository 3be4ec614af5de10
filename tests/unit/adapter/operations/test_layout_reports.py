"""What a layout report asks for."""

from __future__ import annotations

from typing import Any

import pytest

from dbt.adapters.zlayout.adapter.operations.layout_reports import layout_report
from dbt.adapters.zlayout.errors import ConfigError

_NO_SESSION: Any = None


def test_a_report_needs_a_file_or_json() -> None:
    with pytest.raises(ConfigError, match=r"path: report\.html"):
        layout_report(_NO_SESSION, "p", None, {}, None, False)


def test_a_project_without_tables_has_a_report(tmp_path: Any) -> None:
    told = layout_report(_NO_SESSION, "p", None, {}, str(tmp_path / "r.html"), False)
    assert "the report of 0 tables" in told
    assert "no dbt-zlayout table yet" in (tmp_path / "r.html").read_text("utf-8")
