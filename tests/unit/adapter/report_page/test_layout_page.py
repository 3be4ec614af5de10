"""The text of the layout report: order, verdicts, commands, numbers, escapes, JSON, and the file it is in."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import pytest
from made_tables import MadeTable, grid, scattered

from dbt.adapters.zlayout.adapter.report_page import layout_page
from dbt.adapters.zlayout.adapter.report_page.layout_page import (
    Section,
    Unreadable,
    most_files,
    report_json,
    report_page,
    report_text,
    vega_script,
    worst_first,
)
from dbt.adapters.zlayout.errors import UnsupportedError
from dbt.adapters.zlayout.layout.table_verdict import unreadable
from dbt.adapters.zlayout.timeline.files.action import Operation

_NOW = dt.datetime(2026, 11, 25, 17, 0, tzinfo=dt.timezone.utc)
_KEYS = {"a": "long", "b": "long"}


@pytest.fixture(autouse=True)
def _no_vega(monkeypatch):
    """The plots have tests of their own."""
    monkeypatch.setattr(layout_page, "vega_script", lambda: "/* vega */")


def poor(folder: Path) -> MadeTable:
    x, y = scattered(40)
    return MadeTable(folder, _KEYS, list(_KEYS)).commit({"a": x, "b": y})


def good(folder: Path) -> MadeTable:
    x, y = grid(4, 4)
    return MadeTable(folder, _KEYS, list(_KEYS)).commit({"a": x, "b": y})


def test_tables_come_worst_first_and_each_problem_has_its_command(tmp_path):
    lost = Unreadable("s.lost", unreadable("s.lost", "the log is damaged"))
    tables = [good(tmp_path / "good").report(), poor(tmp_path / "poor").report(), lost]
    page = report_page("shop", tables, _NOW)
    places = [page.index(f"<strong>{name}</strong>") for name in ("s.lost", tmp_path / "poor", tmp_path / "good")]
    assert places == sorted(places)
    assert "1 broken" in page
    assert "1 poor" in page
    assert f"dbt run-operation zlayout_cluster --args &#39;{{model: {tmp_path}/poor}}&#39;" in page
    assert f"zlayout cluster {tmp_path}/poor" in report_page("shop", tables, _NOW, with_dbt=False)
    assert "a lookup on a reads 4 of 16 files, on b reads 4" in page


def test_the_page_may_ask_for_nothing(tmp_path):
    page = report_page("shop", [good(tmp_path / "good").report()], _NOW)
    assert "default-src 'none'" in page
    assert "src=" not in page.replace("default-src", "").replace("script-src", "").replace("style-src", "")


def test_before_and_after_the_last_clustering_are_compared(tmp_path):
    x, y = scattered(16)
    gx, gy = grid(4, 4)
    table = MadeTable(tmp_path / "t", _KEYS, list(_KEYS)).commit({"a": x, "b": y})
    table.commit({"a": gx, "b": gy}, Operation.CLUSTERING, replaces=True)
    report = table.report()
    assert (report.before.average_depth, report.after.average_depth, report.clustered) == (16.0, 1.0, 1)
    assert "Average depth: 16.00 before, 1.00 now" in report_page("shop", [report], _NOW)
    table.commit({"a": x[:4], "b": y[:4]})
    assert "before, 1.00 after version 1, " in report_page("shop", [table.report()], _NOW)
    assert [each.rows for each in report.versions] == [16_000, 16_000]
    assert report.storage.retained == report.storage.live == 16 * 40_000


def test_a_version_whose_index_was_cleaned_is_not_compared(tmp_path):
    x, y = scattered(16)
    table = MadeTable(tmp_path / "t", _KEYS, list(_KEYS)).commit({"a": x, "b": y})
    lost = [path for paths in table.index.values() for path in paths]
    table.index = {}
    gx, gy = grid(4, 4)
    table.commit({"a": gx, "b": gy}, Operation.CLUSTERING, replaces=True)
    for path in lost:
        (table.folder / path).unlink()
    report = table.report()
    assert report.before is None
    assert report.verdict.sentence.startswith("Good")


def test_files_that_are_gone_or_of_others_or_left_behind_are_problems(tmp_path):
    table = good(tmp_path / "t")
    first, second = table.opened().files["path"].to_pylist()[:2]
    (table.folder / first).unlink()
    (table.folder / "of_spark.parquet").write_bytes(b"x" * 5000)
    (table.folder / second.replace("0000", "ffff", 1)).write_bytes(b"x" * 7000)
    report = table.report()
    assert report.verdict.sentence.startswith("Broken: 1 file of the table is not in its folder")
    assert (report.storage.foreign, report.storage.left_behind) == (5000, 7000)
    assert [each.remedy.operation for each in report.verdict.problems] == ["verify", "refresh_index", "clean"]


def test_a_damaged_index_is_a_problem_and_the_report_is_made(tmp_path):
    table = good(tmp_path / "t")
    for path in table.folder.rglob("*column_stats*"):
        for each in [path] if path.is_file() else path.iterdir():
            each.write_bytes(b"damaged")
    report = table.report()
    assert "the index does not fit 16 files" in report_page("shop", [report], _NOW)


def test_a_damaged_entry_of_an_old_version_costs_the_picture_of_versions_alone(tmp_path):
    x, y = grid(4, 4)
    table = good(tmp_path / "t")
    for _ in range(11):
        table.commit({"a": x, "b": y}, replaces=True)
    assert len(table.report().versions) == 12
    (entry,) = table.folder.rglob("log/*3.json")
    entry.write_bytes(b"{")
    report = table.report()
    assert report.versions == ()
    assert report.verdict.sentence == "Good: a lookup on a reads 4 of 16 files, on b reads 4"
    page = report_page("shop", [report], _NOW)
    assert "the versions cannot be listed" in page
    assert "Versions: rows" not in page
    assert "Bytes on disk" in page


def test_results_of_other_operations_have_a_place_and_none_leaves_no_trace(tmp_path):
    table = good(tmp_path / "t").report()
    sections = [Section("Advice", [("cluster by b", "dbt run")]), Section("Lint")]
    page = report_page("shop", [table], _NOW, sections=sections)
    assert "<h2>Advice</h2>" in page
    assert "<code>dbt run</code>" in page
    assert "Lint" not in page


def test_json_has_the_figures_worst_first(tmp_path):
    tables = [good(tmp_path / "good").report(), poor(tmp_path / "poor").report()]
    read = json.loads(report_json(tables, "r.html"))
    assert read["path"] == "r.html"
    assert [each["verdict"]["level"] for each in read["tables"]] == ["poor", "good"]
    assert read["tables"][0]["clustering"]["average_depth"] == 40.0
    assert read["tables"][1]["versions"][0]["rows"] == 16_000


def test_the_terminal_says_where_the_report_is_and_each_verdict(tmp_path):
    tables = worst_first([good(tmp_path / "good").report()])
    assert report_text(tables, "r.html", 2048).splitlines() == [
        "r.html: the report of 1 table, 2.0 KiB",
        f"  {tmp_path}/good  Good: a lookup on a reads 4 of 16 files, on b reads 4",
    ]


def test_maps_of_many_tables_share_the_space():
    assert [most_files(count) for count in (0, 1, 8, 50, 10_000)] == [1500, 1500, 1500, 240, 100]


def test_without_the_library_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "vl_convert", None)
    with pytest.raises(UnsupportedError, match=r"pip install 'dbt-zlayout\[report\]'"):
        vega_script.__wrapped__()
