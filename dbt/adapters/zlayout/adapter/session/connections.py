"""dbt's connections, each of them the one Spark session."""

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
    """Opens sessions and turns what goes wrong in them into dbt's errors."""

    TYPE = "zlayout"

    @contextmanager
    def exception_handler(self, sql: str) -> Iterator[None]:
        """Lets only dbt's errors out of a statement."""
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
            FailedToConnectError: Spark does not start; the message says why.
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
    def get_response(cls, cursor: Any) -> ZlayoutAdapterResponse:  # noqa: ARG003 # Spark reports nothing of a statement
        """The response of a plain statement."""
        return ZlayoutAdapterResponse(_message="OK")
