"""The scan log holds what queries ask, stays small, and is never in the way."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from dbt.adapters.zlayout.errors import ConfigError
from dbt.adapters.zlayout.predicate.expr import (
    And,
    Column,
    Compare,
    Expr,
    In,
    IsNotNull,
    Op,
    Or,
    StartsWith,
    Unknown,
)
from dbt.adapters.zlayout.spark.read import scan_log
from dbt.adapters.zlayout.spark.read.scan_log import (
    LoggedScan,
    ScanLog,
    active_log,
    condition_text,
    logged_workload,
    read_scans,
    shape_of,
    start_for_project,
    start_for_session,
)

DAY, NAME = Column(("day",), pa.date32()), Column(("name",), pa.string())
NUMBER = Column(("n",), pa.int64())
FROM_MAY = Compare(Op.GE, DAY, pa.scalar(19_844, pa.int32()).cast(pa.date32()))
SCAN = LoggedScan(1, "s.t", 3, "day >= ?", "day >= DATE '2024-05-01'", 40, 4, 4000, 400, 0.01)


@pytest.fixture(autouse=True)
def _no_log_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan_log, "_PROCESS", scan_log._Process())


def session(**settings: str) -> Callable[[str], str]:
    """The settings of a session: ``log`` and ``constants``."""
    return lambda key: settings.get({scan_log.SCAN_LOG: "log", scan_log.CONSTANTS: "constants"}[key], "")


def test_lines_come_back_in_the_order_of_time(tmp_path: Path) -> None:
    log = ScanLog(tmp_path / "scans")
    assert not (tmp_path / "scans").exists()
    later = LoggedScan(**{**vars(SCAN), "at_ms": 5})
    log.add(later)
    log.add(SCAN)
    assert read_scans(tmp_path / "scans") == [SCAN, later]
    assert read_scans(tmp_path / "nowhere") == []


def test_a_log_goes_on_when_its_folder_was_deleted(tmp_path: Path) -> None:
    log = ScanLog(tmp_path / "scans")
    log.add(SCAN)
    shutil.rmtree(tmp_path / "scans")
    log.add(SCAN)
    assert read_scans(tmp_path / "scans") == [SCAN]


def test_damaged_lines_are_left_out(tmp_path: Path) -> None:
    ScanLog(tmp_path).add(SCAN)
    (tmp_path / "0.jsonl").write_bytes(
        b'{"at_ms": 1}\n[]\nnot json\n\xff\xfe\n{"at_ms": Infinity, "where": null}\n' + json.dumps(vars(SCAN)).encode()
    )
    assert read_scans(tmp_path) == [SCAN, SCAN]


def test_the_folder_stays_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan_log, "_MOST_FILE_BYTES", 1000)
    log = ScanLog(tmp_path)
    for number in range(200):
        log.add(LoggedScan(**{**vars(SCAN), "at_ms": number}))
    assert len(list(tmp_path.glob("*"))) == 16
    assert sum(path.stat().st_size for path in tmp_path.glob("*")) <= 16_000
    assert read_scans(tmp_path)[-1].at_ms == 199


def test_a_long_condition_does_not_make_a_long_line(tmp_path: Path) -> None:
    ScanLog(tmp_path).add(LoggedScan(**{**vars(SCAN), "where": "x" * 10_000}))
    (found,) = read_scans(tmp_path)
    assert (found.where, found.files_read) == (None, 4)


def test_a_folder_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ScanLog(tmp_path / "file").add(SCAN)


def test_scans_of_a_table_become_its_workload() -> None:
    other, unknown, all_rows = (
        LoggedScan(**{**vars(SCAN), **each}) for each in ({"table": "s.u"}, {"where": None}, {"where": ""})
    )
    found = logged_workload([SCAN, SCAN, other, unknown, all_rows], ["`S`.`t`", "s.t__files"])
    assert [(each.sql, each.weight, each.source) for each in found] == [
        (SCAN.where, 2.0, "scan log"),
        ("true", 1.0, "scan log"),
    ]


@pytest.mark.parametrize(
    ("predicate", "text", "shape"),
    [
        (And((IsNotNull(DAY), FROM_MAY)), "day >= DATE '2024-05-01'", "day >= ?"),
        (And(()), "", ""),
        (Unknown("f(x)", "no rule"), "", "…"),
        (
            And((FROM_MAY, Or((Unknown("f(x)", "no rule"), FROM_MAY)))),
            "day >= DATE '2024-05-01'",
            "day >= ? AND (… OR day >= ?)",
        ),
        (IsNotNull(DAY), "day IS NOT NULL", "day IS NOT NULL"),
        (StartsWith(NAME, pa.scalar("a")), "startswith(name, 'a')", "name LIKE ?"),
        (
            In(NAME, pa.array([f"n{each:02}" for each in range(30)])),
            f"name IN ({', '.join(repr(f'n{each:02}') for each in range(30))})",
            "name IN (?)",
        ),
        (
            In(NUMBER, pa.array([100 * part + each for part in range(12) for each in range(10)])),
            f"({' OR '.join(f'(n >= {100 * part} AND n <= {100 * part + 9})' for part in range(12))})",
            "n IN (?)",
        ),
        (In(NAME, pa.array(["b", "a"])), "name IN ('b', 'a')", "name IN (?)"),
    ],
)
def test_conditions_are_text_that_spark_reads(predicate: Expr, text: str, shape: str) -> None:
    assert (condition_text(predicate), shape_of(predicate)) == (text, shape)


def test_a_list_of_long_texts_becomes_one_range_that_a_line_can_hold(tmp_path: Path) -> None:
    texts = [f"https://example.org/{'x' * 150}/{number}" for number in range(40)]
    text = condition_text(In(NAME, pa.array(texts)))
    least, greatest = min(texts), max(texts)
    assert text.strip("()") == f"name >= '{least}' AND name <= '{greatest}'"
    log = ScanLog(tmp_path)
    log.add(replace(SCAN, where=text))
    assert [each.where for each in read_scans(tmp_path)] == [text]


def test_a_project_has_a_log_unless_its_settings_or_its_sessions_say_otherwise(tmp_path: Path) -> None:
    start_for_project({}, tmp_path)
    log = active_log(session())
    assert log is not None
    assert (log.folder, log.constants) == (tmp_path, True)
    start_for_project({}, tmp_path)
    assert active_log(session()) is log
    assert active_log(session(log="off")) is None
    without = active_log(session(constants="False"))
    assert without is not None
    assert (without.folder, without.constants) == (tmp_path, False)
    # A profile's YAML makes false of `off`.
    for off in ("off", "false"):
        start_for_project({"spark.zlayout.scanLog": off}, tmp_path)
        assert active_log(session()) is None
    start_for_project({"spark.zlayout.scanLogConstants": "false"}, tmp_path)
    assert active_log(session()) is without


def test_sessions_have_logs_of_their_own(tmp_path: Path) -> None:
    assert active_log(session(log=str(tmp_path))) is None  # no session has started one, so none is asked
    start_for_session(str(tmp_path / "a"), "")
    start_for_session(str(tmp_path / "b"), "false")
    a, b = session(log=str(tmp_path / "a")), session(log=str(tmp_path / "b"), constants="false")
    logs = [active_log(each) for each in (a, b, a, session())]
    assert [each and (each.folder.name, each.constants) for each in logs] == [
        ("a", True),
        ("b", False),
        ("a", True),
        None,
    ]
    assert logs[0] is logs[2]


@pytest.mark.parametrize(
    ("folder", "constants", "problem"),
    [
        ("", "perhaps", r"scanLogConstants: 'perhaps' is not true or false"),
        ("s3://bucket/scans", "", r"scanLog: 's3://bucket/scans' is a URI; name a local folder"),
        ("file:///scans", "", r"is a URI; name a local folder"),
    ],
)
def test_a_wrong_setting_is_named(folder: str, constants: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        start_for_session(folder, constants)


@pytest.mark.parametrize(
    ("sql", "shape"),
    [
        ("lower(code) = 'secret' OR shop = ?", "lower(code) = ? OR shop = ?"),
        ("RLIKE(s.t.code, 'it\\'s `b` 5')", "RLIKE(s.t.code, ?)"),
        ("(c1 % 55555) = 3L", "(c1 % ?) = ?"),
        ("date_add(day, 7) > DATE '2024-01-31'", "date_add(day, ?) > ?"),
        ("`a 'b' 7` = X'0A' AND x < -1.5E3", "`a 'b' 7` = ? AND x < -?"),
    ],
)
def test_shapes_have_no_literals(sql: str, shape: str) -> None:
    assert scan_log.without_literals(sql) == shape
