"""What CI says at its end: every failed test with its message, and a failure where a run did not come to its end."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

CHECKS = Path(__file__).parents[1] / ".ci" / "checks.py"
PASSED = {"name": "unit tests", "passed": True, "seconds": 4.0}


def summary(folder, *runs):
    command = [sys.executable, CHECKS, "summary", *runs]
    done = subprocess.run(command, env={"REPORTS": str(folder)}, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.splitlines()


@pytest.fixture
def reports(tmp_path):
    for run in ("test", "others"):
        (tmp_path / run).mkdir()
        (tmp_path / run / "outcomes.json").write_text(json.dumps([PASSED]))
    cases = '<testcase classname="a" name="one"/><testcase classname="a" name="two"><skipped/></testcase>'
    report = f'<testsuites><testsuite tests="2" failures="0" errors="0" skipped="1">{cases}</testsuite></testsuites>'
    (tmp_path / "test" / "unit.xml").write_text(report)
    return tmp_path


def test_the_last_line_counts_the_tests_of_all_runs(reports):
    code, lines = summary(reports, "test", "others")
    assert (code, lines[-1]) == (0, "1 passed, 1 skipped in 4.00s")
    assert "    1  test: unit" in lines


def test_a_failed_test_is_told_with_the_end_of_its_report(reports):
    case = '<testcase classname="b" name="wrong"><failure>E  assert 1 == 2</failure></testcase>'
    (reports / "others" / "engine.xml").write_text(
        f'<testsuites><testsuite tests="1" failures="1" errors="0" skipped="0">{case}</testsuite></testsuites>'
    )
    code, lines = summary(reports, "test", "others")
    assert (code, lines[-1]) == (1, "1 failed, 1 passed, 1 skipped in 4.00s")
    assert "engine: b::wrong failed" in lines
    assert "engine: E  assert 1 == 2" in lines


def test_a_failed_check_without_a_failed_test_fails(reports):
    (reports / "others" / "outcomes.json").write_text(json.dumps([{**PASSED, "name": "wheel", "passed": False}]))
    code, lines = summary(reports, "test", "others")
    assert (code, lines[-1]) == (1, "1 failed, 1 passed, 1 skipped in 4.00s")
    assert "failed: wheel" in lines


def test_a_run_that_did_not_come_to_its_end_fails(reports):
    (reports / "others" / "outcomes.json").unlink()
    (reports / "others" / "engine.xml").write_text("<testsuites><testsui")
    code, lines = summary(reports, "test", "others")
    assert code == 1
    assert "failed: make test-others did not come to its end" in lines
