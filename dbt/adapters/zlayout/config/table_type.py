"""Table types: copy-on-write rewrites files, merge-on-read writes log files that readers merge."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast, get_args

from dbt.adapters.zlayout.config.column_names import format_column_path, parse_column_list
from dbt.adapters.zlayout.config.file_sizing import parse_size
from dbt.adapters.zlayout.config.scalars import as_number, parse_boolean, parse_choice, parse_hours, parse_integer

TableType = Literal["copy_on_write", "merge_on_read"]
CompactionMode = Literal["inline", "deferred", "off"]
CompactionStrategy = Literal["log_size", "log_ratio", "commits", "age"]

TABLE_TYPE_KEYS = (
    "table_type",
    "ordering",
    "update_partition_path",
    "small_file_limit",
    "log_max_size",
    "bucket_buffer_size",
    "buffer_size",
    "compaction",
    "compact_every",
    "compaction_min_log_ratio",
    "compaction_max_logs",
    "compaction_strategy",
    "compaction_max_bytes",
    "retain_deletes_hours",
)
# Columns that log files have in addition to those of the table.
OP, INSTANT, SEQ = "_zl_op", "_zl_instant", "_zl_seq"
UPSERT, DELETE = "upsert", "delete"
# What a compaction keeps of a deleted row: readers skip it, writers compare its ordering value.
TOMBSTONE = "tombstone"

_MIB = 1 << 20


@dataclass(frozen=True)
class TableTypeConfig:
    """How a table applies row changes; all attributes but the first apply to ``merge_on_read`` only.

    Attributes:
        kind: 'copy_on_write' rewrites the files that hold a changed row, 'merge_on_read' writes log files beside them.
        unique_key: The record key: columns whose values identify a row.
        ordering: Of two rows with the same key, the one with the greater value of this column wins; None for the later
            one.
        update_partition_path: Whether a row that arrives with another partition moves there; otherwise it stays in its
            partition and only its other columns are updated.
        small_file_bytes: New rows go to file groups below this size first.
        log_max_bytes: Size at which a log file is followed by a new one.
        bucket_buffer_bytes: Bytes of one file group that are buffered before they are written as a block.
        buffer_bytes: Bytes that a task buffers for all its file groups; above it the largest buffer is written.
        compaction: 'inline' merges logs into base files as part of a run that adds some, 'deferred' only writes a plan
            for a later job, 'off' compacts only on request.
        compact_every: In the modes 'inline' and 'deferred': number of delta commits with logs left between compactions.
        compaction_min_log_ratio: In the modes 'inline' and 'deferred': a file group is compacted once it has this many
            log bytes per byte of its base file.
        compaction_max_logs: In the modes 'inline' and 'deferred': below that ratio, the logs of a file group are merged
            into one when it has more than this many.
        compaction_strategy: Which file slices come first: those with the most log bytes, the most log bytes per byte of
            base file, the most delta commits or the oldest log.
        compaction_max_bytes: Most bytes, base and logs, of one plan; None for no limit.
        retain_deletes_hours: Compactions keep the ordering value of a delete for at least this long, so that an older
            row that arrives later is dropped.
    """

    kind: TableType = "copy_on_write"
    unique_key: tuple[str, ...] = ()
    ordering: str | None = None
    update_partition_path: bool = True
    small_file_bytes: int = 100 * _MIB
    log_max_bytes: int = 1024 * _MIB
    bucket_buffer_bytes: int = 256 * _MIB
    buffer_bytes: int = 1024 * _MIB
    compaction: CompactionMode = "inline"
    compact_every: int = 5
    compaction_min_log_ratio: float = 0.1
    compaction_max_logs: int = 20
    compaction_strategy: CompactionStrategy = "log_size"
    compaction_max_bytes: int | None = None
    retain_deletes_hours: float = 168.0

    @property
    def merges_on_read(self) -> bool:
        """Whether changed rows go to log files."""
        return self.kind == "merge_on_read"


def parse_table_type(raw: Mapping[str, object], problems: list[str]) -> TableTypeConfig:
    """Reads the keys of `TABLE_TYPE_KEYS` and, for ``merge_on_read``, ``unique_key``."""
    default = TableTypeConfig()
    kind = cast(
        TableType,
        parse_choice("table_type", raw.get("table_type"), problems, default=default.kind, allowed=get_args(TableType)),
    )
    if kind == "copy_on_write":
        problems += [
            f"{key}: only a table with table_type 'merge_on_read' has it; set that, or leave {key} out"
            for key in TABLE_TYPE_KEYS[1:]
            if raw.get(key) is not None
        ]
        return default
    unique_key = _columns("unique_key", raw.get("unique_key"), problems)
    if not unique_key and not raw.get("unique_key"):
        problems.append("unique_key: table_type 'merge_on_read' needs one: the columns that tell rows apart")
    ordering = _columns("ordering", raw.get("ordering"), problems)
    if len(ordering) > 1:
        problems.append(f"ordering: {raw['ordering']!r} names {len(ordering)} columns; rows are ordered by one")
    if str(raw.get("writer") or "arrow").lower() != "arrow":
        problems.append(f"writer: {raw['writer']!r} cannot write logs; a merge_on_read table is written with 'arrow'")
    move = raw.get("update_partition_path")
    return TableTypeConfig(
        kind=kind,
        unique_key=unique_key,
        ordering=ordering[0] if ordering else None,
        update_partition_path=True if move is None else parse_boolean("update_partition_path", move, problems),
        small_file_bytes=_size("small_file_limit", raw, problems, default.small_file_bytes),
        log_max_bytes=_size("log_max_size", raw, problems, default.log_max_bytes),
        bucket_buffer_bytes=_size("bucket_buffer_size", raw, problems, default.bucket_buffer_bytes),
        buffer_bytes=_size("buffer_size", raw, problems, default.buffer_bytes),
        compaction=cast(
            CompactionMode,
            parse_choice(
                "compaction",
                raw.get("compaction"),
                problems,
                default=default.compaction,
                allowed=get_args(CompactionMode),
            ),
        ),
        compact_every=parse_integer(
            "compact_every", raw.get("compact_every"), problems, default=default.compact_every, low=1, high=1_000_000
        ),
        compaction_min_log_ratio=_ratio("compaction_min_log_ratio", raw, problems, default.compaction_min_log_ratio),
        compaction_max_logs=parse_integer(
            "compaction_max_logs",
            raw.get("compaction_max_logs"),
            problems,
            default=default.compaction_max_logs,
            low=1,
            high=1_000_000,
        ),
        compaction_strategy=parse_strategy(raw.get("compaction_strategy"), problems),
        compaction_max_bytes=_size("compaction_max_bytes", raw, problems, None),
        retain_deletes_hours=parse_hours(
            "retain_deletes_hours", raw.get("retain_deletes_hours"), problems, default=default.retain_deletes_hours
        ),
    )


def asks_for_merge_on_read(raw: Mapping[str, object]) -> bool:
    """Whether a config sets ``table_type: merge_on_read``; an invalid value counts as no."""
    default, allowed = TableTypeConfig().kind, get_args(TableType)
    return parse_choice("table_type", raw.get("table_type"), [], default=default, allowed=allowed) == "merge_on_read"


def parse_strategy(value: object, problems: list[str]) -> CompactionStrategy:
    """Reads ``compaction_strategy``."""
    default = TableTypeConfig().compaction_strategy
    allowed = get_args(CompactionStrategy)
    return cast(
        CompactionStrategy, parse_choice("compaction_strategy", value, problems, default=default, allowed=allowed)
    )


def _size(key: str, raw: Mapping[str, object], problems: list[str], default: int | None) -> int:
    value = None if raw.get(key) is None else parse_size(key, raw[key], problems)
    return default if value is None else value  # type: ignore[return-value] # None only where the default is None


def _ratio(key: str, raw: Mapping[str, object], problems: list[str], default: float) -> float:
    if raw.get(key) is None:
        return default
    ratio = as_number(raw[key])
    if not 0 <= ratio < math.inf:
        problems.append(f"{key}: {raw[key]!r} is not a number from 0 on, such as {default}")
        return default
    return ratio


def _columns(key: str, value: object, problems: list[str]) -> tuple[str, ...]:
    columns = []
    for path in parse_column_list(key, value, problems):
        if len(path) > 1:
            problems.append(f"{key}: '{format_column_path(path)}' is a field of a struct; name a top-level column")
        else:
            columns.append(path[0])
    return tuple(columns)
