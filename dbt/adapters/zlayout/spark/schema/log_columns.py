"""The columns that a merge-on-read table has beside its own: what a log record does, and when it came."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from dbt.adapters.zlayout.config.table_type import INSTANT, OP, SEQ
from dbt.adapters.zlayout.timeline.files.naming import new_group

# Columns that rows have only on their way: their file, and its file group.
FILE, GROUP = "__zl_file", "__zl_group"
# True for a row of a change feed that deletes the row of its key.
DELETED = "__zl_deleted"

LOG_COLUMNS = {OP: "string", INSTANT: "long", SEQ: "long"}


def new_group_of(part: str) -> str:
    """A new file group for each partition, as SQL: a group lies in one partition.

    Args:
        part: SQL of a text that tells partitions apart.
    """
    return f"substr(sha2(concat('{new_group()}', {part}), 256), 1, 16)"


def with_log_columns(schema_json: str, partition_by: Collection[str] = ()) -> str:
    """The columns of base and log files together: those of the user, those of the log, those of the folders."""
    fields = [each for each in json.loads(schema_json)["fields"] if each["name"] not in LOG_COLUMNS]
    data = [each for each in fields if each["name"] not in partition_by]
    folders = [each for each in fields if each["name"] in partition_by]
    return json.dumps({"type": "struct", "fields": [*data, *_fields(), *folders]}, ensure_ascii=False)


def merges_on_read(layout: Mapping[str, Any]) -> bool:
    """Whether a version's layout is that of a merge-on-read table."""
    return bool(layout.get("table_type"))


def _fields() -> list[dict[str, Any]]:
    return [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in LOG_COLUMNS.items()]
