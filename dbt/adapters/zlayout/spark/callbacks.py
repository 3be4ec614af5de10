"""Whether Spark can call back into this Python process, which file skipping needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def skipping_status(spark: SparkSession) -> tuple[bool, str]:
    """Whether plain SQL of this session can skip files, and if not, why.

    Returns:
        ``(True, 'ok')`` or ``(False, reason)``.
    """
    context = getattr(spark, "_sc", None)
    if context is None or getattr(context, "_gateway", None) is None:
        return False, "this is a Spark Connect session, which has no JVM at hand; tables are read in full"
    try:
        from pyspark.java_gateway import ensure_callback_server_started  # noqa: PLC0415 - absent in Connect clients

        start: Callable[[object], None] = ensure_callback_server_started
        start(context._gateway)
    except Exception as error:
        return False, f"Spark cannot call back into Python ({error}); tables are read in full"
    return True, "ok"
