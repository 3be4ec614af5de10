"""dbt's connections: each is a handle on the one Spark session that they share."""

from __future__ import annotations

import datetime as dt
import math
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar

from dbt.adapters.contracts.connection import AdapterResponse, Connection, ConnectionState
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.exceptions.connection import FailedToConnectError
from dbt.adapters.spark.connections import SparkConnectionManager
from dbt_common.clients.agate_helper import empty_table

from dbt.adapters.zlayout.adapter.dbt_errors import as_dbt_errors
from dbt.adapters.zlayout.adapter.response import ZlayoutAdapterResponse
from dbt.adapters.zlayout.adapter.session.launch import forget_files, session_for
from dbt.adapters.zlayout.spark.jobs.jobs import cancel_this_thread_by, check_not_cancelled, short_message
from dbt.adapters.zlayout.spark.jvm.lifetime import java_has_ended
from dbt.adapters.zlayout.spark.read.session import prepare
from dbt.adapters.zlayout.spark.schema.table_schema import string_literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

_LOG = AdapterLogger("Zlayout")
# A job that starts after a cancellation is not cancelled by it.
_SECONDS_BETWEEN_CANCELLATIONS = 0.2
Description = list[tuple[str, str, None, None, None, None, bool]]


class ZlayoutConnectionManager(SparkConnectionManager):
    """Opens the session and turns its errors into dbt's errors."""

    TYPE = "zlayout"
    # The thread that has stopped the run: Ctrl-C and --fail-fast stop all other threads, also what they open later.
    _stopped_by: ClassVar[int | None] = None

    @contextmanager
    def exception_handler(self, sql: str) -> Iterator[None]:
        """Turns the errors of a statement into dbt's errors, and logs the statement."""
        with as_dbt_errors():
            try:
                yield
            except Exception:
                _LOG.debug(f"Error while running:\n{sql}")
                raise

    @classmethod
    def open(cls, connection: Connection) -> Connection:
        """Gives a connection its session.

        Raises:
            FailedToConnectError: Spark did not start. The message says why.
        """
        if connection.state == ConnectionState.OPEN:
            return connection
        try:
            session = session_for(connection.credentials.server_side_parameters)
        except Exception as error:
            connection.handle = None
            connection.state = ConnectionState.FAIL
            raise FailedToConnectError(f"Spark did not start: {short_message(error, innermost=True)}") from error
        connection.handle = SessionHandle(session)
        connection.state = ConnectionState.OPEN
        if cls._stopped_by not in (None, threading.get_ident()):
            connection.handle.cancel()
        return connection

    def cancel_open(self) -> list[str]:
        """Cancels the statements of all other threads, and returns the names of their connections."""
        type(self)._stopped_by = threading.get_ident()
        names: list[str] = super().cancel_open()
        return names

    def cleanup_all(self) -> None:
        """Closes all connections at the end of a dbt command."""
        try:
            super().cleanup_all()
            forget_files()
        finally:
            type(self)._stopped_by = None

    def execute(
        self, sql: str, auto_begin: bool = False, fetch: bool = False, limit: int | None = None
    ) -> tuple[AdapterResponse, Any]:
        """Runs a statement, also a query whose rows nobody fetches: a hook may be `select assert_true(…)`."""
        if fetch:
            found: tuple[AdapterResponse, Any] = super().execute(sql, auto_begin, fetch, limit)
            return found
        sql = self._add_query_comment(sql)
        _, cursor = self.add_query(sql, auto_begin)
        with self.exception_handler(sql):
            cursor.run()
        return self.get_response(cursor), empty_table()  # type: ignore[no-untyped-call]

    @classmethod
    def get_response(cls, cursor: Any) -> ZlayoutAdapterResponse:  # noqa: ARG003 # Spark reports nothing about a statement
        """Returns the response of a plain statement."""
        return ZlayoutAdapterResponse(_message="OK")


class SessionHandle:
    """The connection of one dbt thread."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._job_tag = f"dbt-{uuid.uuid4()}"
        self._is_used = False
        self._cancelled, self._closed = threading.Event(), threading.Event()

    @property
    def session(self) -> SparkSession:
        """The session, for the thread of this connection. What the thread does with it ends when it is cancelled.

        Raises:
            DbtRuntimeError: The connection was cancelled.
        """
        if not self._is_used:
            # A tag, not a job group: the writer sets its own job groups, and a job can have both.
            self._session.sparkContext.addJobTag(self._job_tag)
            self._is_used = True
        cancel_this_thread_by(self._cancelled)
        with as_dbt_errors():
            check_not_cancelled()
        return self._session

    def cursor(self) -> SessionCursor:
        """Returns a cursor."""
        return SessionCursor(self.session)

    def cancel(self) -> None:
        """Cancels the Spark jobs of this connection. Its thread commits nothing more.

        Repeats this until the connection is closed, because a statement that Spark is still planning starts its jobs
        later.
        """
        if not self._cancelled.is_set():
            self._cancelled.set()
            self._cancel_jobs()
            threading.Thread(target=self._cancel_later_jobs, name="zlayout-cancel", daemon=True).start()

    def _cancel_later_jobs(self) -> None:
        # Fails once the session has ended. Then its jobs have ended too.
        with suppress(Exception):
            while not self._closed.wait(_SECONDS_BETWEEN_CANCELLATIONS):
                self._cancel_jobs()

    def _cancel_jobs(self) -> None:
        with _unless_java_has_ended():
            self._session.sparkContext.cancelJobsWithTag(self._job_tag)

    def close(self) -> None:
        """Removes the job tag from the thread. The session stays open."""
        self._closed.set()
        with _unless_java_has_ended():
            self._session.sparkContext.removeJobTag(self._job_tag)
        cancel_this_thread_by(None)
        self._is_used = False

    def rollback(self) -> None:
        """Does nothing, because Spark has no transactions."""


@contextmanager
def _unless_java_has_ended() -> Iterator[None]:
    """Ignores errors if there is no Java process left that a job could run in."""
    try:
        yield
    except Exception as error:
        if not java_has_ended(error):
            raise


class SessionCursor:
    """Runs one statement. Its rows are collected on demand, at most once."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._frame: DataFrame | None = None
        self._rows: list[Row] | None = None

    @property
    def description(self) -> Description:
        """The name, type and nullability of each result column."""
        if self._frame is None:
            return []
        return [
            (field.name, field.dataType.simpleString(), None, None, None, None, field.nullable)
            for field in self._frame.schema.fields
        ]

    @property
    def dataframe(self) -> DataFrame:
        """The result, not collected. A query has not run yet."""
        if self._frame is None:
            raise RuntimeError("the cursor has not executed a statement")
        return self._frame

    def execute(self, sql: str, bindings: Sequence[object] | None = None) -> None:
        """Runs a statement on tables that skip files.

        Args:
            sql: The statement. With bindings, ``%s`` marks a placeholder.
            bindings: Values for the placeholders, which dbt's seeds use.
        """
        self._rows = None
        statement = sql.strip().removesuffix(";")
        if bindings is not None:
            statement = statement % tuple(literal(value) for value in bindings)
        prepare(self._session, statement)
        self._frame = self._session.sql(statement)

    def run(self) -> None:
        """Runs a query without its rows. Any other statement has run already.

        Raises:
            CancelledError: The connection was cancelled.
        """
        check_not_cancelled()
        native: Any = self.dataframe._jdf
        execution = native.queryExecution()
        if str(execution.commandExecuted().nodeName()) != "CommandResult":
            # Counts Spark's own rows: a frame that is counted computes no columns, and not every type can be written.
            execution.toRdd().count()

    def fetchall(self) -> list[Row]:
        """Returns all rows."""
        if self._rows is None:
            self._rows = [] if self._frame is None else list(self._frame.collect())
        return self._rows

    def fetchmany(self, size: int) -> list[Row]:
        """Returns the first rows."""
        if self._rows is None and self._frame is not None:
            return list(self._frame.take(size))
        return self.fetchall()[:size]

    def fetchone(self) -> Any:
        """Returns the first row, or None."""
        return next(iter(self.fetchmany(1)), None)

    def close(self) -> None:
        """Releases the rows."""
        self._frame, self._rows = None, None


def literal(value: object) -> str:
    """Returns the SQL literal of a seed's value. Numbers keep all their digits."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Decimal) and value.is_finite():
        return format(value, "f")
    if isinstance(value, float) and math.isfinite(value):
        return f"{value!r}d"
    if isinstance(value, dt.datetime):
        return string_literal(value.isoformat(sep=" "))
    return string_literal(str(value))
