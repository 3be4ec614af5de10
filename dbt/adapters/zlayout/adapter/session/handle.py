"""A Spark session in the shape of a database connection, as dbt's SQL machinery expects it."""

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
    """A connection of one dbt thread."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        self._job_tag = f"dbt-{uuid.uuid4()}"

    def cursor(self) -> SessionCursor:
        """A cursor whose Spark jobs stop when the connection is cancelled."""
        # A tag and not a job group: the writer has groups of its own, and a job can have both.
        self.session.sparkContext.addJobTag(self._job_tag)
        return SessionCursor(self.session)

    def cancel(self) -> None:
        """Stops the jobs of this connection."""
        self.session.sparkContext.cancelJobsWithTag(self._job_tag)

    def close(self) -> None:
        """Takes the tag off the thread; the session outlives the connection."""
        self.session.sparkContext.removeJobTag(self._job_tag)

    def rollback(self) -> None:
        """Nothing to roll back: Spark has no transactions."""


class SessionCursor:
    """Runs one statement; its rows are collected once, and only when asked for."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._frame: DataFrame | None = None
        self._rows: list[Row] | None = None

    @property
    def description(self) -> Description:
        """Name, type and nullability of each column of the result."""
        if self._frame is None:
            return []
        return [
            (field.name, field.dataType.simpleString(), None, None, None, None, field.nullable)
            for field in self._frame.schema.fields
        ]

    @property
    def dataframe(self) -> DataFrame:
        """The result, not collected; for a query it has not run yet."""
        if self._frame is None:
            raise RuntimeError("the cursor has not executed a statement")
        return self._frame

    def execute(self, sql: str, bindings: Sequence[object] | None = None) -> None:
        """Runs a statement on tables that skip files.

        Args:
            sql: The statement; with bindings, ``%s`` stands where they go.
            bindings: Values for the placeholders, as dbt's seeds use them.
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
        """Lets go of the rows."""
        self._frame, self._rows = None, None
