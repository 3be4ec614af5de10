"""Errors of this package and of Spark as dbt's errors, short enough for a terminal."""

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
    """Lets only dbt's own errors through.

    Raises:
        CompilationError: Settings of the model are wrong.
        DbtDatabaseError: Spark refused or failed a statement.
        DbtRuntimeError: Anything else that this package raises on purpose.
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
    """What Spark says, without stack traces, plans and the wrapping of failed tasks."""
    text = _innermost_text(error)
    text = _JAVA_CLASS.sub("", _TASK_FAILURE.sub("", text).strip())
    if (traceback := _PYTHON_TRACEBACK.search(text)) is not None:
        return traceback["last"].strip()
    return _STACK.split(text, maxsplit=1)[0].strip().rstrip(";")


def every_text(error: BaseException) -> str:
    """What an error and, for one of Java, all of its causes say."""
    texts = [str(getattr(error, "_desc", None) or error), str(getattr(error, "_stackTrace", None) or "")]
    cause = getattr(error, "java_exception", None)
    for _ in range(_DEEPEST_CAUSE):
        if cause is None:
            break
        texts.append(str(cause.getMessage() or ""))
        cause = cause.getCause()
    return "\n".join(texts)


def _is_from_spark(error: BaseException) -> bool:
    # By name: pyspark itself is imported only where a session is made.
    return any(kind.__module__.split(".")[0] in ("pyspark", "py4j") for kind in type(error).__mro__)


def _innermost_text(error: BaseException) -> str:
    """The text of an error; for a Java error that only wraps another one, the text of its cause."""
    java_error = getattr(error, "java_exception", None)
    if java_error is None:
        return str(getattr(error, "_desc", None) or error)
    for _ in range(_DEEPEST_CAUSE):
        cause = java_error.getCause()
        if cause is None:
            break
        java_error = cause
    return str(java_error.getMessage() or java_error.toString())
