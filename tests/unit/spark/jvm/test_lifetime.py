"""Whether Spark's Java process has ended, seen with real processes in its place."""

from __future__ import annotations

import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest
from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import SparkContext

from dbt.adapters.zlayout.adapter.dbt_errors import as_dbt_errors
from dbt.adapters.zlayout.errors import WriteError
from dbt.adapters.zlayout.spark.jobs.jobs import failing_as_write_error, short_message
from dbt.adapters.zlayout.spark.jvm import lifetime
from dbt.adapters.zlayout.spark.jvm.hadoop_store import store_errors
from dbt.adapters.zlayout.spark.jvm.lifetime import HAS_ENDED, forget_ended_java, java_has_ended


@pytest.fixture
def process(monkeypatch):
    """A process that PySpark takes for the one that it started."""
    running = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=running))
    monkeypatch.setattr(lifetime, "_DROPPED", threading.Event())
    with running:
        yield running
        running.kill()


def refused(module="py4j.clientserver"):
    """An error that code of a module raised."""
    try:
        exec("raise ConnectionRefusedError(111, 'Connection refused')", {"__name__": module})
    except ConnectionRefusedError as error:
        return error


def test_a_lost_connection_to_a_process_that_ended_says_so(process):
    process.kill()
    error = WriteError("main.t: an error")
    error.__cause__ = refused()
    assert java_has_ended(error)
    assert short_message(Py4JNetworkError("Answer from Java side is empty")) == HAS_ENDED
    assert java_has_ended(Py4JError("An error occurred while calling o148.get"))
    assert not java_has_ended(Py4JError("An error occurred while calling o148.get. Trace:\npy4j.Py4JException"))
    with pytest.raises(WriteError, match=r"main\.t: Spark's Java process has ended"), failing_as_write_error("main.t"):
        raise refused()
    with pytest.raises(DbtDatabaseError, match="Spark's Java process has ended"), as_dbt_errors():
        raise refused()
    with pytest.raises(DbtRuntimeError, match="Spark's Java process has ended"), as_dbt_errors(), store_errors("/lake"):
        raise refused()


def test_other_errors_stay_what_they_are(process):
    assert not java_has_ended(refused())
    assert short_message(refused()) == "[Errno 111] Connection refused"
    process.kill()
    process.wait()
    assert short_message(ValueError("a value")) == "a value"
    assert short_message(refused("botocore.client")) == "[Errno 111] Connection refused"


def test_only_an_ended_process_is_forgotten(process, monkeypatch):
    forget_ended_java()
    assert SparkContext._gateway.proc is process
    process.kill()
    process.wait()
    forget_ended_java()
    assert SparkContext._gateway is None
    # Another thread may still use a session of it, while there is a new process.
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace())
    assert java_has_ended(refused())
    assert not java_has_ended()
    assert not java_has_ended(ValueError("a value"))


def test_a_java_process_that_others_started_is_left_alone(monkeypatch):
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace())
    assert not java_has_ended(refused())
    forget_ended_java()
    assert SparkContext._gateway is not None
