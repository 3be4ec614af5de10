"""Table types: copy-on-write rewrites files, merge-on-read writes log files that readers merge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dbt.adapters.zlayout.config import settings
from dbt.adapters.zlayout.config.column_names import parse_top_level
from dbt.adapters.zlayout.config.settings import CompactionMode, CompactionStrategy, Payload, TableType

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

    `parse_table_type` says which key each attribute comes from. ``unique_key`` is the record key: the columns whose
    values identify a row.
    """

    kind: TableType = settings.TABLE_TYPE.default_value
    unique_key: tuple[str, ...] = ()
    ordering: str | None = settings.ORDERING.default_value
    payload: Payload = settings.PAYLOAD.default_value
    update_partition_path: bool = settings.UPDATE_PARTITION_PATH.default_value
    small_file_bytes: int = settings.SMALL_FILE_LIMIT.default_value
    log_max_bytes: int = settings.LOG_MAX_SIZE.default_value
    bucket_buffer_bytes: int = settings.BUCKET_BUFFER_SIZE.default_value
    buffer_bytes: int = settings.BUFFER_SIZE.default_value
    compaction: CompactionMode = settings.COMPACTION.default_value
    compact_every: int = settings.COMPACT_EVERY.default_value
    compact_after_hours: float | None = settings.COMPACT_AFTER_HOURS.default_value
    compaction_min_log_ratio: float = settings.COMPACTION_MIN_LOG_RATIO.default_value
    compaction_max_logs: int = settings.COMPACTION_MAX_LOGS.default_value
    compaction_max_deleted_share: float = settings.COMPACTION_MAX_DELETED_SHARE.default_value
    compaction_strategy: CompactionStrategy = settings.COMPACTION_STRATEGY.default_value
    compaction_max_bytes: int | None = settings.COMPACTION_MAX_BYTES.default_value
    retain_deletes_hours: float = settings.RETAIN_DELETES_HOURS.default_value

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
            f"{key}: only a table with table_type 'merge_on_read' has it; set that, or remove {key}"
            for key in TABLE_TYPE_KEYS[1:]
            if raw.get(key) is not None
        ]
        return TableTypeConfig()
    unique_key = parse_top_level("unique_key", raw.get("unique_key"), problems)
    if not unique_key and not raw.get("unique_key"):
        problems.append("unique_key: table_type 'merge_on_read' needs the columns that identify a row")
    ordering = settings.ORDERING.read(raw, problems)
    if str(raw.get("writer") or "arrow").lower() != "arrow":
        problems.append(f"writer: {raw['writer']!r} cannot write log files; a merge_on_read table needs 'arrow'")
    return TableTypeConfig(
        kind=kind,
        unique_key=unique_key,
        ordering=ordering,
        payload=settings.PAYLOAD.read(raw, problems),
        update_partition_path=settings.UPDATE_PARTITION_PATH.read(raw, problems),
        small_file_bytes=settings.SMALL_FILE_LIMIT.read(raw, problems),
        log_max_bytes=settings.LOG_MAX_SIZE.read(raw, problems),
        bucket_buffer_bytes=settings.BUCKET_BUFFER_SIZE.read(raw, problems),
        buffer_bytes=settings.BUFFER_SIZE.read(raw, problems),
        compaction=settings.COMPACTION.read(raw, problems),
        compact_every=settings.COMPACT_EVERY.read(raw, problems),
        compact_after_hours=settings.COMPACT_AFTER_HOURS.read(raw, problems),
        compaction_min_log_ratio=settings.COMPACTION_MIN_LOG_RATIO.read(raw, problems),
        compaction_max_logs=settings.COMPACTION_MAX_LOGS.read(raw, problems),
        compaction_max_deleted_share=settings.COMPACTION_MAX_DELETED_SHARE.read(raw, problems),
        compaction_strategy=settings.COMPACTION_STRATEGY.read(raw, problems),
        compaction_max_bytes=settings.COMPACTION_MAX_BYTES.read(raw, problems),
        retain_deletes_hours=settings.RETAIN_DELETES_HOURS.read(raw, problems),
    )


def asks_for_merge_on_read(raw: Mapping[str, object]) -> bool:
    """Returns whether a config sets ``table_type: merge_on_read``; an invalid value counts as no."""
    return settings.TABLE_TYPE.read(raw, []) == "merge_on_read"
