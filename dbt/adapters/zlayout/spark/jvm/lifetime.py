"""Whether Spark's Java process has ended, and how the next session gets a new one."""

from __future__ import annotations

import contextlib
import subprocess
from typing import Any

from py4j.protocol import Py4JNetworkError
from pyspark import SparkContext

HAS_ENDED = (
    "Spark's Java process has ended: it was killed, or it ran out of memory (spark.driver.memory, and the limit of the "
    "machine or container). Each table is at its last committed version; run the command again"
)
# The process closes its connections just before it ends.
_ENDS_WITHIN_SECONDS = 1.0


def java_has_ended(error: BaseException | None = None) -> bool:
    """Returns whether the Java process that PySpark started has ended.

    Args:
        error: What failed. None if nothing did. After a lost connection, the process may still be ending.
    """
    process: subprocess.Popen[bytes] | None = getattr(SparkContext._gateway, "proc", None)
    if process is None or (error is not None and not _lost_connection(error)):
        return False
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_ENDS_WITHIN_SECONDS if error is not None else 0)
    return process.returncode is not None


def forget_ended_java() -> None:
    """Drops PySpark's context of a Java process that has ended, so that the next session starts a new process."""
    if not java_has_ended():
        return
    context: Any = SparkContext._active_spark_context
    for _ in range(2 if context is not None else 0):
        # The first call fails when it tells Java to stop. The second one stops what runs in Python.
        with contextlib.suppress(Exception):
            context.stop()
    with SparkContext._lock:
        SparkContext._active_spark_context = SparkContext._gateway = SparkContext._jvm = None


def _lost_connection(error: BaseException) -> bool:
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, Py4JNetworkError | ConnectionError):
            return True
        seen = seen.__cause__ or seen.__context__
    return False
