"""Translates errors of this package and of Spark into dbt's errors, short enough for a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import CompilationError, DbtBaseException, DbtDatabaseError, DbtRuntimeError

from dbt.adapters.zlayout.errors import ConfigError, ZlayoutError

_LOG = AdapterLogger("Zlayout")

_STACK = re.compile(r"\n+(?:JVM stacktrace:|Driver stacktrace:|\s+at [\w.$/<>]+\(|'[A-Z][A-Za-z]+ |\s*\+- )")
_TASK_FAILURE = re.compile(r"Job aborted due to stage failure: .*?\(TID \d+\)[^:]*: ", re.DOTALL)
_PYTHON_TRACEBACK = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t]+.*\n)*(?P<last>\S.*)")
_JAVA_CLASS = re.compile(r"^(?:(?:java|javax|scala|org|com|io)\.(?:[\w$]+\.)*[\w$]+(?:Exception|Error): )+")
_DEEPEST_CAUSE = 20


@contextmanager
def as_dbt_errors() -> Iterator[None]:
    """Turns every other exception into one of dbt's errors.

    Raises:
        CompilationError: The model has wrong settings.
        DbtDatabaseError: Spark rejected a statement, or the statement failed.
        DbtRuntimeError: Any other error.
    """
    try:
        yield
    except DbtBaseException:
        raise
    except ConfigError as error:
        raise CompilationError(str(error)) from error
    except ZlayoutError as error:
        _LOG.debug(f"{type(error).__name__}: {error}")
        raise DbtRuntimeError(str(error)) from error
    except Exception as error:
        _LOG.debug(f"{type(error).__name__}: {error}")
        if not _is_from_spark(error):
            raise DbtRuntimeError(f"{type(error).__name__}: {error}") from error
        raise DbtDatabaseError(spark_message(error)) from error


def spark_message(error: BaseException) -> str:
    """Spark's message without stack traces, query plans and the text that wraps a failed task."""
    text = _innermost_text(error)
    text = _JAVA_CLASS.sub("", _TASK_FAILURE.sub("", text).strip())
    if (traceback := _PYTHON_TRACEBACK.search(text)) is not None:
        return traceback["last"].strip()
    return _STACK.split(text, maxsplit=1)[0].strip().rstrip(";")


def every_text(error: BaseException) -> str:
    """The messages of an error and, for a Java error, of all its causes."""
    texts = [str(getattr(error, "_desc", None) or error), str(getattr(error, "_stackTrace", None) or "")]
    cause = getattr(error, "java_exception", None)
    for _ in range(_DEEPEST_CAUSE):
        if cause is None:
            break
        texts.append(str(cause.getMessage() or ""))
        cause = cause.getCause()
    return "\n".join(texts)


def _is_from_spark(error: BaseException) -> bool:
    # Compares module names, because pyspark is only imported where a session starts.
    return any(kind.__module__.split(".")[0] in ("pyspark", "py4j") for kind in type(error).__mro__)


def _innermost_text(error: BaseException) -> str:
    """The text of an error; for a Java error, the text of its innermost cause."""
    java_error = getattr(error, "java_exception", None)
    if java_error is None:
        return str(getattr(error, "_desc", None) or error)
    for _ in range(_DEEPEST_CAUSE):
        cause = java_error.getCause()
        if cause is None:
            break
        java_error = cause
    return str(java_error.getMessage() or java_error.toString())
