"""The layout report as a browser shows it: every plot drawn, an empty console, usable by keyboard and in the dark."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
from browser import Browser
from made_tables import MadeTable, grid, scattered

from dbt.adapters.zlayout.adapter.report_page.layout_page import most_files, report_page
from dbt.adapters.zlayout.config.workload import WeightedCondition
from dbt.adapters.zlayout.table.layout_report import ReportedCondition, TableReport
from dbt.adapters.zlayout.timeline.files.action import Operation

_NOW = dt.datetime(2026, 11, 25, 17, 0, tzinfo=dt.timezone.utc)
_KEYS = {"order_date": "long", "customer_id": "long"}
_UNDRAWN = (
    "[...document.querySelectorAll('details.table[open] .plot')]"
    ".filter((each) => !each.querySelector('svg .mark-rect path, svg .mark-symbol path')).length"
)
_HOSTILE = "</script><script>window.hit = 1</script><img src=x onerror='window.hit = 1'>\"'&`"


def well_laid_out(folder: Path) -> MadeTable:
    x, y = scattered(24)
    gx, gy = grid(6, 4)
    table = MadeTable(folder, _KEYS, list(_KEYS))
    table.commit({"order_date": x[:12], "customer_id": y[:12]})
    table.commit({"order_date": x[12:], "customer_id": y[12:]})
    return table.commit({"order_date": gx, "customer_id": gy}, Operation.CLUSTERING, replaces=True)


def badly_laid_out(folder: Path, seed: int = 1, count: int = 40, *, with_files: bool = True) -> MadeTable:
    x, y = scattered(count, seed=seed)
    return MadeTable(folder, _KEYS, list(_KEYS), with_files=with_files).commit({"order_date": x, "customer_id": y})


def page_of(tmp_path: Path, *tables: TableReport, title: str = "shop") -> Path:
    path = tmp_path / "report.html"
    path.write_text(report_page(title, tables, _NOW), "utf-8")
    return path


def drawn(browser: Browser) -> None:
    browser.until(f"{_UNDRAWN} === 0")
    assert browser.complaints() == []
    assert browser.requests() == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_plot_of_a_table_is_drawn_with_the_colours_of_the_system(tmp_path, browser, dark):
    browser.open(page_of(tmp_path, well_laid_out(tmp_path / "orders").report()), dark=dark)
    drawn(browser)
    assert browser.run("[...document.querySelectorAll('.plot')].map((each) => each.dataset.plot)") == [
        "map",
        "depth",
        "storage",
        "rows",
        "bytes",
    ]
    # One rectangle a file.
    assert browser.run("document.querySelectorAll('[data-plot=map] .mark-rect.role-mark path').length") == 24
    paper = browser.run("getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(13, 17, 23)" if dark else "rgb(255, 255, 255)")
    labels = browser.run("document.querySelector('[data-plot=map] .role-axis-label text').getAttribute('fill')")
    browser.colours(dark=not dark)
    browser.until(
        f"document.querySelector('[data-plot=map] .role-axis-label text')?.getAttribute('fill') !== '{labels}'"
    )
    drawn(browser)


def test_pointing_at_a_file_shows_its_bounds(tmp_path, browser):
    browser.open(page_of(tmp_path, well_laid_out(tmp_path / "orders").report()))
    drawn(browser)
    browser.point_at("[data-plot=map] .mark-rect.role-mark path")
    browser.until("document.querySelector('#vg-tooltip-element.visible') !== null")
    told = browser.run("document.querySelector('#vg-tooltip-element').innerText")
    assert "order_date" in told
    assert "0 … 999" in told
    assert "1,000" in told


def test_the_keyboard_opens_a_table_chooses_columns_and_opens_numbers(tmp_path, browser):
    tables = [badly_laid_out(tmp_path / "events").report(), well_laid_out(tmp_path / "orders").report()]
    browser.open(page_of(tmp_path, *tables))
    drawn(browser)
    seen = []
    for _ in range(40):
        browser.press("Tab")
        seen.append(browser.run("document.activeElement.tagName + ' ' + document.activeElement.className"))
        if seen[-1] == "SELECT x":
            browser.press("Down")
            browser.until("document.querySelector('[data-plot=map] svg')?.textContent.includes('files, in order of')")
            assert browser.run("document.querySelector('select.x').value") == "1"
        if browser.run("document.activeElement.parentElement.matches('details.numbers')"):
            break
    browser.press("Enter")
    assert browser.run("document.querySelector('details.numbers').open")
    assert "A skip" not in seen[1:]
    assert seen[0] == "A skip"
    browser.run("document.querySelector('#table-2 > summary').focus()")
    browser.press("Enter")
    assert browser.run("document.querySelector('#table-2').open")
    drawn(browser)
    browser.run("document.getElementById('close-all').focus()")
    browser.press("Space")
    assert browser.run("document.querySelectorAll('details.table[open]').length") == 0


def test_a_screen_reader_finds_a_sentence_for_each_plot_and_a_name_for_each_control(tmp_path, browser):
    browser.open(page_of(tmp_path, badly_laid_out(tmp_path / "events").report()))
    drawn(browser)
    found = browser.accessible()
    plots = [each["name"] for each in found if each["role"] in ("img", "image")]
    assert [name.partition(".")[0] for name in plots] == [
        "Layout map",
        "Depth",
        "Bytes on disk",
        "Versions: rows",
        "Versions: bytes",
    ]
    assert all(len(name) > 40 for name in plots)
    controls = [
        each for each in found if each["role"] in ("button", "combobox", "link", "DisclosureTriangle", "MenuListPopup")
    ]
    assert len(controls) >= 8
    assert [each for each in controls if not each["name"] and each["role"] != "MenuListPopup"] == []


def test_names_of_tables_columns_and_values_are_shown_and_never_run(tmp_path, browser):
    x, _ = scattered(20)
    table = MadeTable(tmp_path / "hostile", {_HOSTILE: "long", "b": "string"}, [_HOSTILE, "b"])
    table.commit({_HOSTILE: x, "b": [(_HOSTILE, "z")] * 20})
    report = table.report()
    reads = ReportedCondition(WeightedCondition(_HOSTILE, 1.0, _HOSTILE), table.opened().all_files(), _HOSTILE)
    hostile = TableReport(**{**vars(report), "name": _HOSTILE, "reads": (reads,)})
    browser.open(page_of(tmp_path, hostile, title=_HOSTILE))
    drawn(browser)
    assert browser.run("window.hit === undefined && document.images.length === 0")
    assert browser.run("document.title") == f"Layout report: {_HOSTILE}"
    assert browser.run("document.querySelector('summary strong').textContent") == _HOSTILE
    browser.point_at("[data-plot=map] .mark-rect.role-mark path")
    browser.until("document.querySelector('#vg-tooltip-element.visible') !== null")
    assert browser.run("window.hit === undefined && document.images.length === 0")


def test_conditions_are_a_heat_map_and_colour_the_files(tmp_path, browser):
    table = well_laid_out(tmp_path / "orders")
    half = table.opened().all_files()
    half[:12] = False
    report = table.report()
    reads = tuple(ReportedCondition(WeightedCondition(f"order_date = {number}"), half) for number in range(3))
    browser.open(page_of(tmp_path, TableReport(**{**vars(report), "reads": reads})))
    drawn(browser)
    assert browser.run("document.querySelectorAll('[data-plot=reads] .mark-rect.role-mark path').length") == 3 * 24
    browser.run("document.querySelector('select.colour').value = 'often'")
    browser.run("document.querySelector('select.colour').dispatchEvent(new Event('change'))")
    browser.until("document.querySelector('[data-plot=map] .role-legend')?.textContent.includes('share of reads')")
    drawn(browser)


def test_a_narrow_window_keeps_sentences_readable_and_scrolls_tables_alone(tmp_path, browser):
    browser.open(page_of(tmp_path, well_laid_out(tmp_path / "orders").report()), width=400)
    drawn(browser)
    assert browser.run("document.documentElement.scrollWidth") <= 400
    assert browser.run("document.querySelector('td:nth-child(3)').getBoundingClientRect().width") >= 150
    # Each name of a choice stands beside its menu.
    assert browser.run("[...document.querySelectorAll('.choices label')].every((each) => each.offsetHeight < 40)")


def test_a_project_without_tables_says_what_to_do(tmp_path, browser):
    path = page_of(tmp_path)
    browser.open(path)
    drawn(browser)
    assert "has no dbt-zlayout table yet" in browser.run("document.body.innerText")
    assert path.stat().st_size < 20_000


def test_fifty_tables_stay_below_three_megabytes_and_open_one_by_one(tmp_path, browser):
    count = 50
    names = [f"a_table_of_the_shop_{number}" for number in range(count)]
    made = [badly_laid_out(tmp_path / name, at, 400, with_files=False) for at, name in enumerate(names)]
    path = page_of(tmp_path, *(each.report(most_files=most_files(count)) for each in made))
    assert path.stat().st_size < 3_000_000
    browser.open(path, fragment="#table-50")
    drawn(browser)
    assert browser.run("[...document.querySelectorAll('details.table[open]')].map((each) => each.id)") == [
        "table-1",
        "table-50",
    ]


def test_a_table_of_100_000_files_is_a_sample_that_says_so(tmp_path, browser):
    x, y = grid(400, 250)
    table = MadeTable(tmp_path / "big", _KEYS, list(_KEYS), with_files=False).commit(
        {"order_date": x, "customer_id": y}
    )
    path = page_of(tmp_path, table.report(most_files=most_files(1)))
    assert path.stat().st_size < 1_500_000
    browser.open(path)
    drawn(browser)
    assert "one of 1,500 of 100,000 files" in browser.run("document.querySelector('figure.map').innerText")
    assert browser.run("document.querySelectorAll('[data-plot=map] .mark-rect.role-mark path').length") == 1500
