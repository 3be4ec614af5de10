"""A Spark session with the interface of a database connection, which dbt expects."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dbt.adapters.zlayout.adapter.sql_literals import literal
from dbt.adapters.zlayout.spark.read.session import prepare

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

Description = list[tuple[str, str, None, None, None, None, bool]]


class SessionHandle:
    """The connection of one dbt thread."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        self._job_tag = f"dbt-{uuid.uuid4()}"

    def cursor(self) -> SessionCursor:
        """A cursor. Its Spark jobs stop when the connection is cancelled."""
        # A tag, not a job group: the writer sets its own job groups, and a job can have both.
        self.session.sparkContext.addJobTag(self._job_tag)
        return SessionCursor(self.session)

    def cancel(self) -> None:
        """Stops the Spark jobs of this connection."""
        self.session.sparkContext.cancelJobsWithTag(self._job_tag)

    def close(self) -> None:
        """Removes the job tag from the thread. The session stays open."""
        self.session.sparkContext.removeJobTag(self._job_tag)

    def rollback(self) -> None:
        """Does nothing, because Spark has no transactions."""


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

    def fetchall(self) -> list[Row]:
        """All rows."""
        if self._rows is None:
            self._rows = [] if self._frame is None else list(self._frame.collect())
        return self._rows

    def fetchmany(self, size: int) -> list[Row]:
        """The first rows."""
        if self._rows is None and self._frame is not None:
            return list(self._frame.take(size))
        return self.fetchall()[:size]

    def fetchone(self) -> Any:
        """The first row, or None."""
        return next(iter(self.fetchmany(1)), None)

    def close(self) -> None:
        """Releases the rows."""
        self._frame, self._rows = None, None
