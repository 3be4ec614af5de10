"""Table settings: parses raw values into frozen dataclasses and reports all problems in one error."""

from __future__ import annotations

from dbt.adapters.zlayout.config.schema_check import check_against_schema
from dbt.adapters.zlayout.config.table_config import TableConfig, parse_table_config

__all__ = ["TableConfig", "check_against_schema", "parse_table_config"]
