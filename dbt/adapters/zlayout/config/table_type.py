"""Table types: copy-on-write rewrites files, merge-on-read writes log files that readers merge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dbt.adapters.zlayout.config import settings
from dbt.adapters.zlayout.config.column_names import parse_top_level
from dbt.adapters.zlayout.config.settings import (
    CompactionMode,
    CompactionStrategy,
    Payload,
    TableType,
    declared,
    read_as,
)

TABLE_TYPE_KEYS = (settings.TABLE_TYPE.key, *settings.keys_of(settings.Scope.MERGE_ON_READ))
# Columns that log files have in addition to those of the table.
OP, INSTANT, SEQ = "_zl_op", "_zl_instant", "_zl_seq"
# Fields that a version stores only if they differ from their default.
_LATER = ("compact_after_hours", "compaction_max_deleted_share", "payload")
UPSERT, DELETE = "upsert", "delete"
# The operation of a kept delete: readers skip it, writers compare its ordering value.
TOMBSTONE = "tombstone"


@dataclass(frozen=True)
class TableTypeConfig:
    """How a table applies row changes; all attributes but the first apply to ``merge_on_read`` only.

    ``unique_key`` is the record key: the columns whose values identify a row.
    """

    kind: TableType = declared(settings.TABLE_TYPE)
    unique_key: tuple[str, ...] = ()
    ordering: str | None = declared(settings.ORDERING)
    payload: Payload = declared(settings.PAYLOAD)
    update_partition_path: bool = declared(settings.UPDATE_PARTITION_PATH)
    small_file_bytes: int = declared(settings.SMALL_FILE_LIMIT)
    log_max_bytes: int = declared(settings.LOG_MAX_SIZE)
    bucket_buffer_bytes: int = declared(settings.BUCKET_BUFFER_SIZE)
    buffer_bytes: int = declared(settings.BUFFER_SIZE)
    compaction: CompactionMode = declared(settings.COMPACTION)
    compact_every: int = declared(settings.COMPACT_EVERY)
    compact_after_hours: float | None = declared(settings.COMPACT_AFTER_HOURS)
    compaction_min_log_ratio: float = declared(settings.COMPACTION_MIN_LOG_RATIO)
    compaction_max_logs: int = declared(settings.COMPACTION_MAX_LOGS)
    compaction_max_deleted_share: float = declared(settings.COMPACTION_MAX_DELETED_SHARE)
    compaction_strategy: CompactionStrategy = declared(settings.COMPACTION_STRATEGY)
    compaction_max_bytes: int | None = declared(settings.COMPACTION_MAX_BYTES)
    retain_deletes_hours: float = declared(settings.RETAIN_DELETES_HOURS)

    @property
    def merges_on_read(self) -> bool:
        """Whether changed rows go to log files."""
        return self.kind == "merge_on_read"

    @property
    def keeps_old_values(self) -> bool:
        """Whether a null in an incoming row leaves the value of its column as it is."""
        return self.payload == "partial"

    def stored(self) -> dict[str, Any]:
        """Returns the fields as a version stores them. Older releases refuse fields that they do not know."""
        known = {
            key: value for key, value in vars(self).items() if key not in _LATER or value != getattr(type(self), key)
        }
        return {**known, "unique_key": list(self.unique_key)}


def parse_table_type(raw: Mapping[str, object], problems: list[str]) -> TableTypeConfig:
    """Reads the keys of `TABLE_TYPE_KEYS` and, for ``merge_on_read``, ``unique_key``."""
    kind = settings.TABLE_TYPE.read(raw, problems)
    if kind == "copy_on_write":
        problems += [
            f"{key}: applies only to table_type 'merge_on_read'; set table_type, or remove {key}"
            for key in TABLE_TYPE_KEYS[1:]
            if raw.get(key) is not None
        ]
        return TableTypeConfig()
    unique_key = parse_top_level("unique_key", raw.get("unique_key"), problems)
    if not unique_key and not raw.get("unique_key"):
        problems.append("unique_key: table_type 'merge_on_read' needs the columns that identify a row")
    if str(raw.get("writer") or "arrow").lower() != "arrow":
        problems.append(f"writer: {raw['writer']!r} cannot write log files; a merge_on_read table needs 'arrow'")
    return read_as(TableTypeConfig, raw, problems, kind=kind, unique_key=unique_key)


def asks_for_merge_on_read(raw: Mapping[str, object]) -> bool:
    """Returns whether a config sets ``table_type: merge_on_read``; an invalid value counts as no."""
    return settings.TABLE_TYPE.read(raw, []) == "merge_on_read"
