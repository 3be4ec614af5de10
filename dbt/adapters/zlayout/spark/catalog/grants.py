"""Whether the session's SQL has GRANT: Spark's own has none; a parser that someone added to the session may have it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dbt.adapters.zlayout.spark.jobs.jobs import short_message

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_GRANT = "GRANT SELECT ON TABLE a_table TO `somebody`"


def grant_problem(spark: SparkSession) -> str | None:
    """Returns why the session cannot grant; None if it knows the statement. Nothing is granted.

    Args:
        spark: The session.
    """
    session: Any = spark._jsparkSession
    try:
        session.sessionState().sqlParser().parsePlan(_GRANT)
    except Exception as error:  # whatever a parser raises
        return short_message(error).splitlines()[0]
    return None
