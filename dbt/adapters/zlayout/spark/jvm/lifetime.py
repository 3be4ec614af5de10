"""Whether Spark's Java process has ended, and how the next session gets a new one."""

from __future__ import annotations

import contextlib
import subprocess
import threading
import traceback

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import SparkContext
from pyspark.sql import SparkSession

HAS_ENDED = (
    "Spark's Java process has ended: it was killed, or it ran out of memory (spark.driver.memory, and the limit of the "
    "machine or container). Each table is at its last committed version; run the command again"
)
# The process closes its connections just before it ends.
_ENDS_WITHIN_SECONDS = 1.0
# Set once a process was dropped: other threads may still use its sessions.
_DROPPED = threading.Event()


def java_has_ended(error: BaseException | None = None) -> bool:
    """Returns whether the Java process that PySpark started has ended.

    Args:
        error: What failed, perhaps in a session of an earlier process. None if nothing did. After a lost connection,
            the process may still be ending.
    """
    if error is not None and not _lost_connection(error):
        return False
    if error is not None and _DROPPED.is_set():
        return True
    process: subprocess.Popen[bytes] | None = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return False
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_ENDS_WITHIN_SECONDS if error is not None else 0)
    return process.returncode is not None


def forget_ended_java() -> None:
    """Drops PySpark's context of a Java process that has ended, so that the next session starts a new process."""
    if not java_has_ended():
        return
    _DROPPED.set()
    # `SparkContext.stop` would first ask Java to stop, and leave sessions that other threads use without a context.
    server = getattr(SparkContext._active_spark_context, "_accumulatorServer", None)
    if server is not None:
        server.shutdown()
    with SparkContext._lock:
        SparkContext._active_spark_context = SparkContext._gateway = SparkContext._jvm = None
    SparkSession._instantiatedSession = None


def _lost_connection(error: BaseException) -> bool:
    """Returns whether PySpark lost a connection to Java, or could not open one."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, Py4JNetworkError) or (isinstance(seen, ConnectionError | EOFError) and _is_of_spark(seen)):
            return True
        if type(seen) is Py4JError and "Trace:" not in str(seen):  # an empty answer; others have Java's trace
            return True
        seen = seen.__cause__ or seen.__context__
    return False


def _is_of_spark(error: BaseException) -> bool:
    frames = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
    return any(str(frame.f_globals.get("__name__")).startswith(("py4j.", "pyspark.")) for frame in frames)
