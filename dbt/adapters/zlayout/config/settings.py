"""The registry of settings: each key is declared once, with its parser, its default and its meaning.

Parsing, the hints for unknown keys, the options of ``ZTable`` and the tables of ``docs/configuration.md`` use it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from functools import partial
from typing import Any, Generic, Literal, TypeVar, cast, get_args

from dbt.adapters.zlayout.config.column_names import (
    ColumnSet,
    parse_column_list,
    parse_column_sets,
    parse_expressions,
    parse_no_expressions,
    parse_one_column,
    parse_top_level,
)
from dbt.adapters.zlayout.config.scalars import (
    Parser,
    T,
    as_integer,
    condition,
    one_of,
    parse_boolean,
    parse_catalog,
    parse_folder,
    parse_hours,
    parse_name,
    parse_ratio,
    parse_share,
    parse_size,
    whole,
)
from dbt.adapters.zlayout.config.workload import WeightedCondition, read_workload
from dbt.adapters.zlayout.predicate.expr import ColumnPath

C = TypeVar("C")

CurveName = Literal["zorder", "hilbert", "linear"]
WriterName = Literal["arrow", "spark"]
CompressionName = Literal["zstd", "snappy", "gzip", "lz4", "none"]
ClusteringMode = Literal["off", "inline", "deferred"]
TableType = Literal["copy_on_write", "merge_on_read"]
CompactionMode = Literal["inline", "deferred", "off"]
CompactionStrategy = Literal["log_size", "log_ratio", "commits", "age"]
Payload = Literal["whole", "partial"]
PublishFormat = Literal["delta", "iceberg"]
StrategyName = Literal["append", "delete+insert", "insert_overwrite", "merge", "microbatch"]
OnSchemaChangeName = Literal["ignore", "fail", "append_new_columns", "sync_all_columns"]
PartitionOverwriteName = Literal["dynamic", "static"]

_BOTH_SIDES = "DBT_INTERNAL_SOURCE.seen > DBT_INTERNAL_DEST.seen"
_MAX_FILE_BYTES = 64 << 30
_FOLDERS = "only top-level columns can be folders (a column whose name has a dot is written `{}` in backquotes)"


class Scope(Enum):
    """Where a setting is allowed."""

    TABLE = "a model, and ZTable.write"
    MERGE_ON_READ = "as TABLE, if table_type is 'merge_on_read'"
    CLUSTERING = "a model, and ZTable.cluster"
    MODEL = "a model"
    DBT = "a model; the key is dbt's"
    PROFILE = "a profile; dbt parses it"


@dataclass(frozen=True)
class Setting(Generic[T]):
    """One key with everything that is declared about it.

    Attributes:
        scope: Where it is allowed.
        parse: Reads a value that is set. It decides the unit and the values that are allowed.
        default: The default as a user writes it; None or an empty tuple if there is none.
        doc: The meaning, in Markdown, as the tables of the documentation have it.
        absent: What these tables show if there is no default.
    """

    key: str
    scope: Scope
    parse: Parser[T]
    default: object
    doc: str
    absent: str = "none"

    @property
    def default_value(self) -> T:
        """The default as the code uses it."""
        return self.read_value(None, [])

    def read(self, raw: Mapping[str, object], problems: list[str]) -> T:
        """Reads the setting out of values by key."""
        return self.read_value(raw.get(self.key), problems)

    def read_value(self, value: object, problems: list[str]) -> T:
        """Reads a value. None means the default; so does a wrong value, which adds a sentence to ``problems``."""
        found = None if value is None else self.parse(self.key, value, problems)
        if found is None and self.default is not None:
            found = self.parse(self.key, self.default, [])
        return cast(T, found)  # None only without a default, where T allows it


def _words(allowed: object) -> Parser[Any]:
    return one_of(*get_args(allowed))


def _as_given(_: str, value: object, __: list[str]) -> Any:
    # For settings that config/incremental.py reads together with others, and for those that dbt parses.
    return value


def _parse_folders(key: str, value: object, problems: list[str]) -> tuple[str, ...]:
    return parse_top_level(key, value, problems, _FOLDERS)


def _parse_file_size(key: str, value: object, problems: list[str]) -> int | None:
    size_bytes = parse_size(key, value, problems)
    if size_bytes is None or size_bytes <= _MAX_FILE_BYTES:
        return size_bytes
    problems.append(f"{key}: {value!r} is above 64gb")
    return None


def _parse_statistics(key: str, value: object, problems: list[str]) -> int | tuple[ColumnPath, ...] | None:
    if isinstance(value, int | float) or as_integer(value) is not None:
        return whole(0, 100_000)(key, value, problems)
    return parse_column_list(key, value, problems)


def _parse_formats(key: str, value: object, problems: list[str]) -> tuple[PublishFormat, ...] | None:
    given = value.split(",") if isinstance(value, str) else value
    if value == "both":
        problems.append(f"{key}: 'both' is not a format; write ['delta', 'iceberg']")
        return None
    if not isinstance(given, list | tuple):
        problems.append(f"{key}: {value!r} is not a list of formats, such as ['delta']; [] publishes nothing")
        return None
    read = cast("Parser[PublishFormat]", one_of(*get_args(PublishFormat)))
    words = [read(key, each, problems) for each in given if each != ""]
    return tuple(dict.fromkeys(word for word in words if word is not None))


def _parse_codec(key: str, value: object, problems: list[str]) -> Any:
    word = one_of(*get_args(CompressionName), "uncompressed")(key, value, problems)
    return "none" if word == "uncompressed" else word


# A table: a line with the key, where it is allowed, its parser and its default, then its meaning.
# fmt: off
ZORDER = Setting(
    "zorder", Scope.TABLE, parse_column_list, (),
    "1 to 8 columns to cluster by, most important first. A `zordered_table` requires it; other tables are clustered "
    "only with it. See [Choosing keys](clustering.md#choosing-keys). `auto` [lets the workload "
    "choose](advice.md#keys-that-the-workload-chooses); a column of that name is written `[auto]`.")
WORKLOAD = Setting[tuple[WeightedCondition, ...] | None](
    "workload", Scope.TABLE, read_workload, None,
    "Conditions that queries put on the table, as in a `WHERE` clause, each alone or as a pair with its weight: "
    "`[\"day = '2024-05-01'\", [\"customer_id = 7\", 10]]`. See [Advice](advice.md#the-workload).")
CURVE = Setting[CurveName](
    "curve", Scope.TABLE, _words(CurveName), "zorder",
    "`zorder`, `hilbert`, or `linear` (sorted by the first key, then the second …).")
PARTITION_BY = Setting(
    "partition_by", Scope.TABLE, _parse_folders, (),
    "Columns that become `key=value` folders. They cannot be in `zorder` too.")
TARGET_FILE_SIZE = Setting(
    "target_file_size", Scope.TABLE, _parse_file_size, "128mb",
    "Target size of a file after compression; at most `64gb`.")
ROW_GROUP_ROWS = Setting[int | None](
    "row_group_rows", Scope.TABLE, whole(1, 100_000_000), None,
    "Rows per Parquet row group. By default, a file has about eight row groups of 32,768 to 1,048,576 rows each.",
    absent="chosen")
STATS_COLUMNS = Setting[int | tuple[ColumnPath, ...]](
    "stats_columns", Scope.TABLE, _parse_statistics, 32,
    "Columns with statistics: a list, or a number for the first leaf columns (fields of structs count one by one). "
    "Clustering keys always have statistics.")
BLOOM = Setting[tuple[ColumnPath, ...] | None](
    "bloom", Scope.TABLE, partial(parse_column_list, expressions=True), None,
    "Columns, or SQL expressions such as `lower(email)`, that get a Bloom filter for each file. With it, `=` and `IN` "
    "skip files that bounds cannot skip, such as those of random ids. `[]` removes all. See "
    "[Bloom filters](indexes.md#bloom-filters).",
    absent="keeps the table's setting; none for a new table")
LOOKUP = Setting[tuple[ColumnSet, ...] | None](
    "lookup", Scope.TABLE, parse_column_sets, None,
    "Columns, or SQL expressions such as `lower(email)`, that get a lookup index, which knows the files of each value: "
    "`=`, `<=>`, `IN` and merges by these columns open no others. A nested list is one index over several columns: "
    "`['id', ['shop', 'number']]`. `[]` removes all. See [Lookup indexes](indexes.md#lookup-indexes).",
    absent="keeps the table's setting; none for a new table")
STATS_EXPRESSIONS = Setting[tuple[str, ...] | None](
    "stats_expressions", Scope.TABLE, parse_expressions, None,
    "SQL expressions on the table's columns that get statistics of their own, such as `lower(email)` or "
    "`length(name)`. Filters on them skip files. `[]` removes all. See [Statistics of "
    "expressions](indexes.md#statistics-of-expressions).", absent="keeps the table's setting; none for a new table")
RETAIN_VERSIONS = Setting(
    "retain_versions", Scope.TABLE, whole(1, 1_000_000), 3,
    "How many of the newest versions stay on disk.")
RETAIN_HOURS = Setting(
    "retain_hours", Scope.TABLE, parse_hours, 24,
    "Versions that were current within this many hours also stay. With `0`, only `retain_versions` counts.")
LOCATION_ROOT = Setting[str | None](
    "location_root", Scope.TABLE, parse_folder, None,
    "The table goes to `<location_root>/<table>`, as in dbt-spark. If a renamed table still uses that folder, it goes "
    "to `<location_root>/<table>__<8 hex digits>`. A full path, or a URI of a [supported place](storage-places.md).",
    absent="profile's")
WRITER = Setting[WriterName](
    "writer", Scope.TABLE, _words(WriterName), "arrow",
    "`arrow` writes files in Spark's Python workers. `spark` uses Spark's own writer, for storage that Python "
    "workers cannot write to. Tables with a type that Arrow lacks always use it.")
COMPRESSION = Setting[CompressionName](
    "compression", Scope.TABLE, _parse_codec, "zstd",
    "`zstd`, `snappy`, `gzip`, `lz4`, `none`.")
PUBLISH = Setting[tuple[PublishFormat, ...] | None](
    "publish", Scope.TABLE, _parse_formats, None,
    "Formats in which every version is also published for other engines: `['delta']`, `['iceberg']` or both. `[]` "
    "publishes nothing. See [Other engines](readers.md).", absent="keeps the table's setting; none for a new table")
PUBLISH_CATALOG = Setting[str | None](
    "publish_catalog", Scope.TABLE, parse_catalog, None,
    "With `'iceberg'` in `publish`: the name of a catalog of pyiceberg's configuration, in which each version is "
    "registered as `schema.table`. An empty text removes it. See [Readers of Iceberg](readers/iceberg.md#a-catalog).",
    absent="keeps the table's setting; none for a new table")
PARTITION_OVERWRITE = Setting[PartitionOverwriteName](
    "partition_overwrite", Scope.MODEL, _words(PartitionOverwriteName), "dynamic",
    "What `insert_overwrite` replaces. `dynamic`: the partitions that the new rows belong to. `static`: the whole "
    "table.")
MATCHED_CONDITION = Setting[str | None](
    "matched_condition", Scope.MODEL, condition(_BOTH_SIDES), None,
    "`merge` updates only matches that meet it; SQL over the two aliases below.")
NOT_MATCHED_CONDITION = Setting[str | None](
    "not_matched_condition", Scope.MODEL, condition(_BOTH_SIDES), None,
    "`merge` inserts only unmatched rows that meet it; SQL over the source's alias.")
SKIP_MATCHED_STEP = Setting(
    "skip_matched_step", Scope.MODEL, parse_boolean, False,
    "`true`: `merge` only inserts, and updates nothing.")
SKIP_NOT_MATCHED_STEP = Setting(
    "skip_not_matched_step", Scope.MODEL, parse_boolean, False,
    "`true`: `merge` only updates, and inserts nothing.")
DELETED_WHEN = Setting[str | None](
    "deleted_when", Scope.MODEL, condition("op = 'D'"), None,
    "A new row that meets this condition deletes the row with its key, instead of being stored; for `merge`. SQL "
    "over the query's columns, such as `op = 'D'`. See [Rows that are deletes](writing.md#rows-that-are-deletes).")
SOURCE_ALIAS = Setting(
    "source_alias", Scope.MODEL, parse_name, "DBT_INTERNAL_SOURCE",
    "Name that conditions and `incremental_predicates` use for the new rows.")
TARGET_ALIAS = Setting(
    "target_alias", Scope.MODEL, parse_name, "DBT_INTERNAL_DEST",
    "Name that they use for the existing table.")
SKIP_UNCHANGED = Setting(
    "skip_unchanged", Scope.MODEL, parse_boolean, False,
    "`true`: a run writes nothing if the model's SQL, its settings and all that it reads have not changed since its "
    "last commit. See [Models that run only when something changed](unchanged.md).")
CLUSTERING = Setting[ClusteringMode](
    "clustering", Scope.MODEL, _words(ClusteringMode), "off",
    "`inline`: a run that adds rows also clusters, where it pays off. `deferred`: it only writes a plan, which "
    "`zlayout_cluster` with `execute: true` executes. See [Keeping a table "
    "clustered](clustering.md#keeping-a-table-clustered).")
CLUSTER_EVERY = Setting(
    "cluster_every", Scope.MODEL, whole(1, 1_000_000), 1,
    "With `inline` and `deferred`: the number of commits after which the next clustering runs.")
CLUSTER_MIN_GAIN = Setting(
    "cluster_min_gain", Scope.CLUSTERING, parse_share, 0.2,
    "Overlapping files are rewritten only if queries then read fewer bytes from them, by at least this share.")
CLUSTER_MAX_BYTES = Setting[int | None](
    "cluster_max_bytes", Scope.CLUSTERING, parse_size, None,
    "Maximum size of the files that one clustering rewrites.", absent="no limit")
MIN_FILE_SIZE = Setting[int | None](
    "min_file_size", Scope.CLUSTERING, parse_size, None,
    "Size below which files are small, and are combined.", absent="75 % of `target_file_size`")
MAX_FILE_SIZE = Setting[int | None](
    "max_file_size", Scope.CLUSTERING, parse_size, None,
    "Size above which files are split.", absent="180 % of `target_file_size`")
MAX_GROUP_SIZE = Setting(
    "max_group_size", Scope.CLUSTERING, parse_size, "100gb",
    "Maximum size of a clustering group: files that are rewritten together.")
MIN_INPUT_FILES = Setting(
    "min_input_files", Scope.CLUSTERING, whole(1, 1_000_000), 5,
    "Number of small files that are combined even if they do not fill a file.")
MAX_CONCURRENT_GROUPS = Setting(
    "max_concurrent_groups", Scope.CLUSTERING, whole(1, 1_000), 4,
    "How many clustering groups are rewritten at the same time.")
PARTIAL_PROGRESS = Setting(
    "partial_progress", Scope.CLUSTERING, parse_boolean, False,
    "`true`: clustering groups are committed in several versions, each as soon as it is written, so that finished "
    "work is kept.")
MAX_COMMITS = Setting(
    "max_commits", Scope.CLUSTERING, whole(1, 10_000), 10,
    "Maximum number of versions with `partial_progress`.")
REWRITE_ALL = Setting(
    "rewrite_all", Scope.CLUSTERING, parse_boolean, False,
    "`true`: every file is rewritten, regardless of the gain.")
VERIFY = Setting(
    "verify", Scope.CLUSTERING, parse_boolean, False,
    "`true`: before a clustering commits, the checksums of all columns, before and after, are compared.")
TABLE_TYPE = Setting[TableType](
    "table_type", Scope.TABLE, _words(TableType), "copy_on_write",
    "`merge_on_read`: changed rows go into log files that readers merge; requires `unique_key`. The keys below are "
    "for this type only. See [Merge-on-read tables](merge_on_read.md#settings).")
ORDERING = Setting[str | None](
    "ordering", Scope.MERGE_ON_READ, parse_one_column, None,
    "One top-level column of a type that has an order. If two rows have the same key, the one with the greater value "
    "of this column wins. Without this setting, a row of a later run replaces the earlier one, and two rows with the "
    "same key in one run raise an error.")
PAYLOAD = Setting[Payload](
    "payload", Scope.MERGE_ON_READ, _words(Payload), "whole",
    "`whole`: an incoming row replaces the row with its key. `partial`: a null in it keeps the old value of its "
    "column. See [Partial rows](merge_on_read.md#partial-rows).")
UPDATE_PARTITION_PATH = Setting(
    "update_partition_path", Scope.MERGE_ON_READ, parse_boolean, True,
    "`true`: a row that arrives with another partition moves there. `false`: it stays in its partition, and its other "
    "columns are updated.")
SMALL_FILE_LIMIT = Setting(
    "small_file_limit", Scope.MERGE_ON_READ, parse_size, "100mb",
    "A size. A few new rows go as log records to file groups below this size first, counting base file and logs; many "
    "new rows become base files. `target_file_size` applies if it is smaller.")
LOG_MAX_SIZE = Setting(
    "log_max_size", Scope.MERGE_ON_READ, parse_size, "1gb",
    "A size on disk. When a log file reaches it, a new one begins.")
BUCKET_BUFFER_SIZE = Setting(
    "bucket_buffer_size", Scope.MERGE_ON_READ, parse_size, "256mb",
    "A size in memory: how much of one file group is buffered before it is written as a block.")
BUFFER_SIZE = Setting(
    "buffer_size", Scope.MERGE_ON_READ, parse_size, "1gb",
    "A size in memory: how much of all file groups of one task is buffered. When it is full, the largest group is "
    "written.")
COMPACTION = Setting[CompactionMode](
    "compaction", Scope.MERGE_ON_READ, _words(CompactionMode), "inline",
    "`inline`: a run that adds logs also merges them into base files, where that pays off, every `compact_every` "
    "times. `deferred`: it writes a plan, which `zlayout_compact` with `execute: true` executes. `off`: neither.")
COMPACT_EVERY = Setting(
    "compact_every", Scope.MERGE_ON_READ, whole(1, 1_000_000), 5,
    "With `inline` and `deferred`: how many delta commits pass before a run looks for file groups to compact. Only "
    "commits with unmerged logs outside of any plan count. 1 to 1,000,000.")
COMPACT_AFTER_HOURS = Setting[float | None](
    "compact_after_hours", Scope.MERGE_ON_READ, parse_hours, None,
    "With `inline` and `deferred`: a run also looks for file groups to compact once a log record is this many hours "
    "older than the run's commit, and then takes every file group with such a record, whatever its size. Use it to "
    "limit how far `t__ro` lags.", absent="never")
COMPACTION_MIN_LOG_RATIO = Setting(
    "compaction_min_log_ratio", Scope.MERGE_ON_READ, parse_ratio, 0.1,
    "With `inline` and `deferred`: a file group is compacted once its logs have this many bytes for each byte of "
    "its base file. `0` takes every file group that has logs.")
COMPACTION_MAX_LOGS = Setting(
    "compaction_max_logs", Scope.MERGE_ON_READ, whole(1, 1_000_000), 20,
    "With `inline` and `deferred`: once a file group below that ratio has more logs than this, they are merged into "
    "one, and the base file stays. 1 to 1,000,000.")
COMPACTION_MAX_DELETED_SHARE = Setting(
    "compaction_max_deleted_share", Scope.MERGE_ON_READ, parse_share, 0.3,
    "With `inline` and `deferred`: a file group is also compacted once its logs hold more deletes than this share of "
    "its base file's rows. Deletes are small, so their bytes alone would not count. In logs that earlier releases "
    "wrote, only deletes in logs without upserts count.")
COMPACTION_STRATEGY = Setting[CompactionStrategy](
    "compaction_strategy", Scope.MERGE_ON_READ, _words(CompactionStrategy), "log_size",
    "Which file groups come first. `log_size`: those with the most bytes of logs. `log_ratio`: with the most bytes of "
    "logs for each byte of base file. `commits`: with logs of the most commits. `age`: with the oldest log record.")
COMPACTION_MAX_BYTES = Setting[int | None](
    "compaction_max_bytes", Scope.MERGE_ON_READ, parse_size, None,
    "Maximum size of one plan, counting base files and logs. A plan always takes at least one file group.",
    absent="no limit")
RETAIN_DELETES_HOURS = Setting(
    "retain_deletes_hours", Scope.MERGE_ON_READ, parse_hours, 168,
    "With `ordering`: for how many hours, at least, a delete by `deleted_when` keeps out older rows that arrive "
    "later. `0`: until the next compaction. See [Change feeds](merge_on_read.md#change-feeds).")
INCREMENTAL_STRATEGY = Setting[StrategyName](
    "incremental_strategy", Scope.DBT, _as_given, "append",
    "`append`, `insert_overwrite`, `merge`, `delete+insert`, `microbatch`. A `merge_on_read` table takes the last "
    "three, `merge` by default.")
UNIQUE_KEY = Setting(
    "unique_key", Scope.DBT, parse_no_expressions, (),
    "Columns that identify a row; expressions are not allowed. A `merge_on_read` table requires it: top-level columns "
    "of types that have an order.")
INCREMENTAL_PREDICATES = Setting[object](
    "incremental_predicates", Scope.DBT, _as_given, (),
    "Conditions that limit which rows of the table can match. Files that cannot hold such rows are not read.")
MERGE_UPDATE_COLUMNS = Setting(
    "merge_update_columns", Scope.DBT, parse_no_expressions, (),
    "Columns that a match updates.", absent="all")
MERGE_EXCLUDE_COLUMNS = Setting(
    "merge_exclude_columns", Scope.DBT, parse_no_expressions, (),
    "Columns that a match does not update. Cannot be combined with `merge_update_columns`.")
ON_SCHEMA_CHANGE = Setting[OnSchemaChangeName](
    "on_schema_change", Scope.DBT, _words(OnSchemaChangeName), "ignore",
    "`ignore`, `fail`, `append_new_columns`, `sync_all_columns`.")
EVENT_TIME = Setting[object](
    "event_time", Scope.DBT, _as_given, None,
    "For `microbatch`: the column that decides to which batch a row belongs. `begin`, `batch_size` and `lookback` are "
    "as in dbt.", absent="")
_PROFILE = (
    Setting(
        "type", Scope.PROFILE, _as_given, None,
        "`zlayout`", absent=""),
    Setting(
        "schema", Scope.PROFILE, _as_given, None,
        "Schema for the models.", absent=""),
    Setting(
        "method", Scope.PROFILE, _as_given, "session",
        "Only `session`: dbt starts Spark itself. For Thrift, HTTP or ODBC use `type: spark`."),
    Setting(
        "location_root", Scope.PROFILE, _as_given, None,
        "Folder or URI for data; tables go to `<location_root>/<schema>/<table>`. Local paths, `hdfs`, `viewfs`, `s3`, "
        "`s3a`, `gs`, `abfs`, `abfss`, `az`.", absent="Spark's warehouse"),
    Setting(
        "server_side_parameters", Scope.PROFILE, _as_given, None,
        "Spark's configuration: master, memory, catalogs, object-store credentials. Never overridden."),
    Setting(
        "threads", Scope.PROFILE, _as_given, 1,
        "Models built at the same time, in one Spark session."),
)

SETTINGS: tuple[Setting[Any], ...] = (
    ZORDER, WORKLOAD, CURVE, PARTITION_BY, TARGET_FILE_SIZE, ROW_GROUP_ROWS, STATS_COLUMNS, BLOOM, LOOKUP,
    STATS_EXPRESSIONS, RETAIN_VERSIONS, RETAIN_HOURS, LOCATION_ROOT, WRITER, COMPRESSION, PUBLISH, PUBLISH_CATALOG,
    PARTITION_OVERWRITE, MATCHED_CONDITION, NOT_MATCHED_CONDITION, SKIP_MATCHED_STEP, SKIP_NOT_MATCHED_STEP,
    DELETED_WHEN, SOURCE_ALIAS, TARGET_ALIAS,
    SKIP_UNCHANGED, CLUSTERING, CLUSTER_EVERY, CLUSTER_MIN_GAIN, CLUSTER_MAX_BYTES, MIN_FILE_SIZE, MAX_FILE_SIZE,
    MAX_GROUP_SIZE, MIN_INPUT_FILES, MAX_CONCURRENT_GROUPS, PARTIAL_PROGRESS, MAX_COMMITS, REWRITE_ALL, VERIFY,
    TABLE_TYPE, ORDERING, PAYLOAD, UPDATE_PARTITION_PATH, SMALL_FILE_LIMIT, LOG_MAX_SIZE, BUCKET_BUFFER_SIZE,
    BUFFER_SIZE, COMPACTION, COMPACT_EVERY, COMPACT_AFTER_HOURS, COMPACTION_MIN_LOG_RATIO, COMPACTION_MAX_LOGS,
    COMPACTION_MAX_DELETED_SHARE, COMPACTION_STRATEGY, COMPACTION_MAX_BYTES, RETAIN_DELETES_HOURS,
    INCREMENTAL_STRATEGY, UNIQUE_KEY, INCREMENTAL_PREDICATES, MERGE_UPDATE_COLUMNS,
    MERGE_EXCLUDE_COLUMNS, ON_SCHEMA_CHANGE, EVENT_TIME, *_PROFILE,
)
# fmt: on


def declared(setting: Setting[T]) -> T:
    """Declares a field of a dataclass that holds a setting: with its default, and for `read_as`."""
    return field(default=setting.default_value, metadata={"setting": setting})


def read_as(kind: type[C], raw: Mapping[str, object], problems: list[str], /, **others: object) -> C:
    """Reads the settings that a dataclass declares.

    Args:
        kind: The dataclass. `declared` declares its fields.
        raw: Values by key; None means the default.
        problems: Receives one sentence for each wrong value.
        others: Fields that are not read, by name.
    """
    own: Any = kind
    found = {
        each.name: each.metadata["setting"].read(raw, problems)
        for each in fields(own)
        if "setting" in each.metadata and each.name not in others
    }
    return kind(**found, **others)


def keys_of(*scopes: Scope) -> tuple[str, ...]:
    """Returns the keys that are allowed somewhere, in the order of the documentation."""
    return tuple(setting.key for setting in SETTINGS if setting.scope in scopes)


OWN_KEYS = keys_of(Scope.TABLE, Scope.MERGE_ON_READ, Scope.CLUSTERING, Scope.MODEL)
