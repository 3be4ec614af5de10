"""The lines that ``dbt debug`` prints about the session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dbt.adapters.zlayout.spark.jobs.workers import worker_line
from dbt.adapters.zlayout.spark.jvm.callbacks import skipping_status
from dbt.adapters.zlayout.store import check_place
from dbt.adapters.zlayout.store.uri import without_login

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def session_report(session: SparkSession, location_root: str | None) -> list[str]:
    """Returns the versions, folders and capabilities of a session, one line each.

    Args:
        session: The session that models run in.
        location_root: The folder that the profile sets for tables, or None.

    Raises:
        UnsupportedError: Python workers do not start, or they cannot import this package.
        StoreError: The profile's folder is not writable.
    """
    context = session.sparkContext
    jvm: Any = context._jvm
    warehouse = session.conf.get("spark.sql.warehouse.dir")
    in_warehouse = " (Spark's warehouse)"
    available, reason = skipping_status(session)
    if location_root is not None:
        check_place(location_root)
    return [
        f"Spark version: {session.version}",
        f"Java version: {jvm.System.getProperty('java.version')}",
        f"master: {context.master}",
        worker_line(session),
        f"catalog: {session.conf.get('spark.sql.catalogImplementation')}",
        f"data goes to: {location_root or without_login(str(warehouse)) + in_warehouse}",
        f"file skipping in this session: {'available' if available else f'not available: {reason}'}",
    ]
