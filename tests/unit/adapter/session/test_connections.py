"""The session behind dbt's connection interface."""

from __future__ import annotations

import datetime as dt
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote, urlparse

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.zlayout.adapter.session import connections
from dbt.adapters.zlayout.adapter.session import launch as session_launch
from dbt.adapters.zlayout.adapter.session.connections import SessionHandle, ZlayoutConnectionManager, literal
from dbt.adapters.zlayout.adapter.session.launch import with_launch_defaults
from dbt.adapters.zlayout.errors import CancelledError, UnsupportedError
from dbt.adapters.zlayout.spark.commit.commit_files import commit_files
from dbt.adapters.zlayout.spark.jobs import jobs
from dbt.adapters.zlayout.spark.jvm.session_settings import may_change_results


class Frame:
    def __init__(self, rows: list[tuple[int]]) -> None:
        self._rows = rows
        self.collected = 0
        self.schema = SimpleNamespace(
            fields=[SimpleNamespace(name="a", nullable=True, dataType=SimpleNamespace(simpleString=lambda: "int"))]
        )

    def collect(self) -> list[tuple[int]]:
        self.collected += 1
        return self._rows

    def take(self, size: int) -> list[tuple[int]]:
        return self._rows[:size]


class Session:
    def __init__(self) -> None:
        self.events: list[tuple[str, str]] = []
        self.frame = Frame([(1,), (2,), (3,)])
        self.sparkContext = SimpleNamespace(
            addJobTag=lambda tag: self.events.append(("tag", tag)),
            cancelJobsWithTag=lambda tag: self.events.append(("cancel", tag)),
            removeJobTag=lambda tag: self.events.append(("untag", tag)),
        )

    def sql(self, text: str) -> Frame:
        self.events.append(("sql", text))
        return self.frame


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Session:
    made = Session()
    monkeypatch.setattr(connections, "prepare", lambda _, sql: made.events.append(("prepare", sql)))
    return made


def handle_of(session: Any) -> SessionHandle:
    return SessionHandle(session)


def test_file_indexes_are_installed_before_each_statement(session: Session) -> None:
    handle_of(session).cursor().execute("select 1;\n")
    assert session.events[1:] == [("prepare", "select 1"), ("sql", "select 1")]


def test_rows_are_collected_once_and_on_demand(session: Session) -> None:
    cursor = handle_of(session).cursor()
    cursor.execute("select a from t")
    assert cursor.description == [("a", "int", None, None, None, None, True)]
    assert session.frame.collected == 0
    assert cursor.fetchall() == cursor.fetchall() == [(1,), (2,), (3,)]
    assert session.frame.collected == 1


def test_a_few_rows_are_fetched_without_collecting_all(session: Session) -> None:
    cursor = handle_of(session).cursor()
    cursor.execute("select a from t")
    assert cursor.fetchone() == (1,)
    assert cursor.fetchmany(2) == [(1,), (2,)]
    assert session.frame.collected == 0


def test_bindings_become_literals(session: Session) -> None:
    handle_of(session).cursor().execute("insert into t values (%s, %s)", bindings=["it's", None])
    assert session.events[-1] == ("sql", "insert into t values ('it\\'s', null)")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "null"),
        (True, "true"),
        (12345678901234567890, "12345678901234567890"),
        (Decimal("1E+3"), "1000"),
        (Decimal("0.10"), "0.10"),
        (Decimal("NaN"), "'NaN'"),
        (1.5, "1.5d"),
        (float("inf"), "'inf'"),
        (dt.date(2024, 2, 29), "'2024-02-29'"),
        (dt.datetime(2024, 2, 29, 1, 2, 3, 4), "'2024-02-29 01:02:03.000004'"),  # noqa: DTZ001 # seeds have no zone
        ("it's", "'it\\'s'"),
    ],
)
def test_values_of_seeds_keep_their_digits_and_quotes(value: object, expected: str) -> None:
    assert literal(value) == expected


def test_cancelling_stops_the_jobs_of_this_connection(session: Session) -> None:
    handle = handle_of(session)
    handle.cursor()
    handle.cancel()
    handle.close()
    tag = session.events[0][1]
    assert session.events == [("tag", tag), ("cancel", tag), ("untag", tag)]


def test_jobs_that_start_after_the_cancellation_are_stopped_until_the_connection_is_closed(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_SECONDS_BETWEEN_CANCELLATIONS", 0.001)
    handle = handle_of(session)
    cursor = handle.cursor()
    cursor.execute("select 1")
    handle.cancel()
    handle.cancel()
    with pytest.raises(CancelledError):
        cursor.run()
    until = time.monotonic() + 20
    while len(cancelled := [name for name, _ in session.events if name == "cancel"]) < 3:
        assert time.monotonic() < until, cancelled
        time.sleep(0.001)
    handle.close()
    threads = [each for each in threading.enumerate() if each.name == "zlayout-cancel"]
    assert len(threads) < 2
    for each in threads:
        each.join(20)
        assert not each.is_alive()


def test_a_cancelled_connection_begins_nothing_more(session: Session) -> None:
    handle, other = handle_of(session), handle_of(session)
    assert handle.session is session
    handle.cancel()
    with pytest.raises(DbtRuntimeError, match="the run was cancelled"):
        handle.cursor()
    with pytest.raises(CancelledError):
        jobs.run(session, "a job", None, lambda: session.sql("select 1"))  # type: ignore[arg-type]
    with pytest.raises(CancelledError):
        commit_files(None, None, None, None)  # type: ignore[arg-type]
    # The same thread can work for another connection.
    other.cursor().execute("select 1")
    handle.close()
    jobs.check_not_cancelled()


def test_what_a_thread_opens_after_the_run_was_stopped_is_cancelled(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "session_for", lambda _: session)

    def opened() -> SessionHandle:
        connection = SimpleNamespace(state="init", credentials=SimpleNamespace(server_side_parameters={}))
        handle: SessionHandle = ZlayoutConnectionManager.open(connection).handle  # type: ignore[arg-type, attr-defined]
        return handle

    manager = ZlayoutConnectionManager(SimpleNamespace(), get_context("spawn"))  # type: ignore[arg-type]
    with ThreadPoolExecutor(1) as other_thread:
        assert manager.cancel_open() == []
        assert opened().session is session
        stopped = other_thread.submit(opened).result()
        with pytest.raises(DbtRuntimeError, match="the run was cancelled"):
            stopped.cursor()
        manager.cleanup_all()
        assert other_thread.submit(opened).result().session is session


DEFAULT, EXTRA = "spark.driver.defaultJavaOptions", "spark.driver.extraJavaOptions"


def test_spark_logs_errors_only() -> None:
    (option,) = with_launch_defaults({}, {})[DEFAULT].split()
    name, place = option.split("=")
    assert name == "-Dlog4j2.configurationFile"
    assert "rootLogger.level = error" in Path(unquote(urlparse(place).path)).read_text()


def test_java_options_of_the_user_stay_and_come_last(tmp_path: Path) -> None:
    (option,) = with_launch_defaults({}, {})[DEFAULT].split()
    (tmp_path / "spark-defaults.conf").write_text(f"{EXTRA} -Xss4m")
    # A configuration passed on would replace that of spark-defaults.conf.
    assert EXTRA not in with_launch_defaults({}, {"SPARK_CONF_DIR": str(tmp_path)})
    found = with_launch_defaults({DEFAULT: "-Xss4m", EXTRA: "-Xss8m"}, {})
    assert (found[DEFAULT], found[EXTRA]) == (f"{option} -Xss4m", "-Xss8m")


@pytest.mark.parametrize(
    ("parameters", "environment"),
    [
        ({EXTRA: "-Dlog4j2.configurationFile=mine"}, {}),
        ({DEFAULT: "-Dlog4j.configurationFile=mine"}, {}),
        ({}, {"LOG4J_CONFIGURATION_FILE": "mine"}),
        ({}, {"JAVA_TOOL_OPTIONS": "-Dlog4j2.configurationFile=mine"}),
        ({}, {"PYSPARK_SUBMIT_ARGS": "--driver-java-options -Dlog4j2.configurationFile=mine pyspark-shell"}),
    ],
)
def test_a_log_that_the_user_configures_is_left_alone(parameters: dict[str, str], environment: dict[str, str]) -> None:
    found = with_launch_defaults(parameters, environment)
    assert {key: found.get(key) for key in (DEFAULT, EXTRA)} == {key: parameters.get(key) for key in (DEFAULT, EXTRA)}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("log4j2.properties", ""),
        ("spark-defaults.conf", f"{EXTRA} -Dlog4j2.configurationFile=mine"),
        ("spark-defaults.conf", f"{DEFAULT} -Xss4m"),
    ],
)
def test_a_log_that_sparks_configuration_folder_configures_is_left_alone(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert DEFAULT not in with_launch_defaults({}, {"SPARK_CONF_DIR": str(tmp_path)})


@pytest.mark.parametrize(
    "key",
    ["spark.ui.showConsoleProgress", "spark.sql.legacy.createHiveTableByDefault", "spark.sql.variable.substitute"],
)
def test_the_profile_overrides_the_defaults_of_a_session(key: str) -> None:
    assert with_launch_defaults({}, {})[key] == "false"
    assert with_launch_defaults({key: "true"}, {})[key] == "true"


class _Starting:
    """A session whose metastore cannot be opened."""

    def __init__(self) -> None:
        self.sparkContext = self
        self.catalog = self
        self.done: list[str] = []

    def setLogLevel(self, level: str) -> None:  # noqa: N802 # pyspark's word
        self.done.append(level)

    def databaseExists(self, _: str) -> bool:  # noqa: N802 # pyspark's word
        raise RuntimeError("Unable to instantiate SessionHiveMetaStoreClient")

    def stop(self) -> None:
        self.done.append("stopped")


def test_the_only_error_is_that_another_process_has_just_opened_the_metastore(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = _Starting()
    with pytest.raises(RuntimeError, match="Unable to instantiate"):
        session_launch._open_catalog(session, "ERROR", tmp_path)
    assert session.done == ["OFF", "stopped"]

    def refuse(folder: Path) -> None:
        raise UnsupportedError(f"{folder} is open in another process")

    monkeypatch.setattr(session_launch, "require_free", refuse)
    with pytest.raises(UnsupportedError, match=f"{tmp_path} is open in another process"):
        session_launch._open_catalog(session, "ERROR", tmp_path)


def test_sessions_of_dbt_and_others_agree_on_what_expressions_mean():
    # Otherwise nobody else would use the indexes of expressions that dbt builds.
    assert [key for key in with_launch_defaults({}, {}) if may_change_results(key)] == []
