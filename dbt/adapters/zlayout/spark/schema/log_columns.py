"""The additional columns of a merge-on-read table: what a log record does, and when it was written."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from dbt.adapters.zlayout.config.table_type import INSTANT, OP, SEQ
from dbt.adapters.zlayout.timeline.files.naming import new_group

# Temporary columns of rows, which are never stored: their file, and its file group.
FILE, GROUP = "__zl_file", "__zl_group"
# Temporary column: true for a row of a change feed that deletes the row with its key.
DELETED = "__zl_deleted"

LOG_COLUMNS = {OP: "string", INSTANT: "long", SEQ: "long"}


def new_group_of(part: str) -> str:
    """Returns SQL for a new file group in each partition. A file group never spans partitions.

    Args:
        part: SQL for a text that identifies the partition.
    """
    return f"substr(sha2(concat('{new_group()}', {part}), 256), 1, 16)"


def with_log_columns(schema_json: str, partition_by: Collection[str] = ()) -> str:
    """Returns the columns of base and log files together: the user's columns, log columns, partition columns."""
    fields = [each for each in json.loads(schema_json)["fields"] if each["name"] not in LOG_COLUMNS]
    data = [each for each in fields if each["name"] not in partition_by]
    folders = [each for each in fields if each["name"] in partition_by]
    return json.dumps({"type": "struct", "fields": [*data, *_fields(), *folders]}, ensure_ascii=False)


def merges_on_read(layout: Mapping[str, Any]) -> bool:
    """Whether a version's layout belongs to a merge-on-read table."""
    return bool(layout.get("table_type"))


def _fields() -> list[dict[str, Any]]:
    return [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in LOG_COLUMNS.items()]
