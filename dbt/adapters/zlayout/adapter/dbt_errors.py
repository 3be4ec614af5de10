"""Errors and warnings as dbt has them: errors of this package and of Spark, short enough for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.events.types import AdapterEventWarning
from dbt_common.events.functions import warn_or_error
from dbt_common.exceptions import CompilationError, DbtBaseException, DbtDatabaseError, DbtRuntimeError

from dbt.adapters.zlayout.errors import ConfigError, ZlayoutError
from dbt.adapters.zlayout.spark.jobs.jobs import short_message
from dbt.adapters.zlayout.spark.jvm.lifetime import java_has_ended

_LOG = AdapterLogger("Zlayout")


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
        if not _is_from_spark(error) and not java_has_ended(error):
            raise DbtRuntimeError(f"{type(error).__name__}: {error}") from error
        raise DbtDatabaseError(short_message(error, innermost=True)) from error


@contextmanager
def prefixing_dbt_errors(step: str) -> Iterator[None]:
    """Prefixes the message of a dbt error that is raised inside with the name of the step."""
    try:
        yield
    except DbtRuntimeError as error:
        error.msg = f"{step}: {error.msg}"
        raise


def warn(sentence: str) -> None:
    """Warns as dbt does. With --warn-error it raises, so it must come before the commit."""
    warn_or_error(AdapterEventWarning(name="Zlayout", base_msg=sentence, args=[]))


def one_line(error: BaseException) -> str:
    """Returns the message of any error in one line, for a terminal."""
    known = isinstance(error, ZlayoutError | DbtBaseException)
    text = str(error) if known else short_message(error, innermost=True)
    return " ".join(each.strip() for each in text.splitlines() if each.strip()) or type(error).__name__


def _is_from_spark(error: BaseException) -> bool:
    # Compares module names, because pyspark is only imported where a session starts.
    return any(kind.__module__.split(".")[0] in ("pyspark", "py4j") for kind in type(error).__mro__)
