"""Python models. Their code runs in this process, on the adapter's session."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from dbt.adapters.zlayout.errors import WriteError
from dbt.adapters.zlayout.spark.read.session import prepare_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ALLOWED = "a Spark, pandas or pandas-on-Spark DataFrame"


def python_frame(session: SparkSession, code: str, name: str) -> DataFrame:
    """Runs a model's function.

    Args:
        session: The session that is passed to the function. Its tables skip files.
        code: The model's file with the code that dbt adds to it (``dbtObj``).
        name: The model's name, for messages.

    Returns:
        The model's rows. A Spark DataFrame has not run yet.

    Raises:
        WriteError: The code failed (the message gives the line), or it did not return a DataFrame.
    """
    namespace: dict[str, Any] = {"__name__": f"dbt_model_{name}", "spark": session}
    file = f"<{name}>"
    try:
        exec(compile(code, file, "exec"), namespace)
        result = namespace["model"](namespace["dbtObj"](_loader(session)), session)
    except Exception as error:
        raise WriteError(f"{name}: {_message(error, file)}") from error
    return _spark_frame(session, result, name)


def _loader(session: SparkSession) -> Callable[[str], DataFrame]:
    def load(relation: str) -> DataFrame:
        prepare_table(session, relation)
        return session.table(relation)

    return load


def _spark_frame(session: SparkSession, result: Any, name: str) -> DataFrame:
    # Compares module names, so that neither library is imported for models that do not use it.
    module = type(result).__module__
    if type(result).__name__ == "DataFrame":
        if module.startswith("pyspark.pandas."):
            return result.to_spark()  # type: ignore[no-any-return] # untyped on this side
        if module.startswith("pyspark.sql."):
            return result  # type: ignore[no-any-return] # the same
        if module.startswith("pandas."):
            return _from_pandas(session, result)
    kind = f"{module}.{type(result).__qualname__}"
    raise WriteError(f"{name}: model(dbt, session) returned {kind}; it must return {_ALLOWED}")


def _from_pandas(session: SparkSession, result: Any) -> DataFrame:
    if session.version.startswith("3."):
        return session.createDataFrame(result)
    # Arrow turns the NaN and NaT of pandas into null, which is what they mean in pandas.
    return session.createDataFrame(pa.Table.from_pandas(result, preserve_index=False))


def _message(error: Exception, file: str) -> str:
    if isinstance(error, SyntaxError):
        return f"line {error.lineno}: {error.msg}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    where = f"line {lines[-1]}: " if lines else ""
    return f"{where}{type(error).__name__}: {error}"
