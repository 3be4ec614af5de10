"""Registers tables in the catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbt.adapters.zlayout.adapter.reports import json_text
from dbt.adapters.zlayout.table.ztable import ZTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register_report(session: SparkSession, name: str, path: str, as_json: bool) -> str:
    """Makes the catalog entry of the table in a folder."""
    table = ZTable.register(session, name, path)
    if as_json:
        return json_text({"table": table.name, "location": table.location, "version": table.version})
    return f"{table.name}: the table in {table.location}, version {table.version}"
