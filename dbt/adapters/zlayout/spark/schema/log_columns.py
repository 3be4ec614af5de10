"""Columns besides the user's: the log columns of a merge-on-read table, and temporary columns, which are not stored."""

from __future__ import annotations

import json
from collections.abc import Collection

from dbt.adapters.zlayout.config.table_type import INSTANT, OP, SEQ
from dbt.adapters.zlayout.spark.schema.types import schema_json_of
from dbt.adapters.zlayout.timeline.files.naming import new_group

# Temporary columns: the file of a row, and the file group of that file.
FILE, GROUP = "__zl_file", "__zl_group"
# Temporary columns: the place of a row in files that are packed. Which new file, which of its files, which row of that.
PLACE = ("__zl_slot", "__zl_nth_file", "__zl_row_index")
# Temporary column: true for a row of a change feed that deletes the row with its key.
DELETED = "__zl_deleted"

_LOG_COLUMNS = {OP: "string", INSTANT: "long", SEQ: "long"}


def new_group_of(part: str) -> str:
    """Returns SQL for a new file group in each partition. A file group never spans partitions.

    Args:
        part: SQL for a text that identifies the partition.
    """
    return f"substr(sha2(concat('{new_group()}', {part}), 256), 1, 16)"


def with_log_columns(schema_json: str, partition_by: Collection[str] = ()) -> str:
    """Returns the columns of base and log files together: the user's columns, log columns, partition columns."""
    fields = [each for each in json.loads(schema_json)["fields"] if each["name"] not in _LOG_COLUMNS]
    data = [each for each in fields if each["name"] not in partition_by]
    folders = [each for each in fields if each["name"] in partition_by]
    log_fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in _LOG_COLUMNS.items()]
    return schema_json_of([*data, *log_fields, *folders])
