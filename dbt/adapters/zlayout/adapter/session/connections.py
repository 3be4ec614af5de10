"""dbt's connections. All of them share one Spark session."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dbt.adapters.contracts.connection import Connection, ConnectionState
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.exceptions.connection import FailedToConnectError
from dbt.adapters.spark.connections import SparkConnectionManager

from dbt.adapters.zlayout.adapter.dbt_errors import as_dbt_errors, spark_message
from dbt.adapters.zlayout.adapter.response import ZlayoutAdapterResponse
from dbt.adapters.zlayout.adapter.session.handle import SessionHandle
from dbt.adapters.zlayout.adapter.session.launch import session_for

_LOG = AdapterLogger("Zlayout")


class ZlayoutConnectionManager(SparkConnectionManager):
    """Opens the session and turns its errors into dbt's errors."""

    TYPE = "zlayout"

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
            raise FailedToConnectError(f"Spark does not start: {spark_message(error)}") from error
        connection.handle = SessionHandle(session)
        connection.state = ConnectionState.OPEN
        return connection

    @classmethod
    def get_response(cls, cursor: Any) -> ZlayoutAdapterResponse:  # noqa: ARG003 # Spark reports nothing about a statement
        """The response of a plain statement."""
        return ZlayoutAdapterResponse(_message="OK")
