"""The layout of a table: its settings bound to its columns, as a version stores them for the next write."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from dbt.adapters.zlayout.config.column_names import format_column_path
from dbt.adapters.zlayout.config.schema_check import check_against_schema
from dbt.adapters.zlayout.config.table_config import OptionalIndexes, TableConfig, read_stored, stored_settings
from dbt.adapters.zlayout.config.table_type import INSTANT, OP, SEQ
from dbt.adapters.zlayout.curve.keys import is_orderable
from dbt.adapters.zlayout.curve.model import CurveModel
from dbt.adapters.zlayout.errors import ConfigError, CorruptError, StoreError
from dbt.adapters.zlayout.index.lookup.lookup_key import LookupKey
from dbt.adapters.zlayout.index.statistics.tracked import TrackedColumn, canonical_type, tracked_columns
from dbt.adapters.zlayout.lazy import cached_property
from dbt.adapters.zlayout.predicate.expr import ColumnPath
from dbt.adapters.zlayout.publish.formats import problems_of
from dbt.adapters.zlayout.spark.schema.table_schema import (
    checked_schema,
    defaulted_columns,
    joined,
    type_at,
    with_log_columns,
)
from dbt.adapters.zlayout.spark.schema.types import SparkField, arrow_schema, fields_of, split_partition_columns
from dbt.adapters.zlayout.store import Store
from dbt.adapters.zlayout.timeline.files.json_file import RESTORE
from dbt.adapters.zlayout.timeline.files.naming import log_path
from dbt.adapters.zlayout.timeline.log.snapshot import Snapshot


@dataclass(frozen=True)
class TableLayout:
    """Settings of one table, bound to its columns.

    Attributes:
        config: Settings, with every column spelled as in the schema.
        data_json: Spark's JSON of the columns in the files.
        partition_json: Spark's JSON of the partition columns.
    """

    config: TableConfig
    data_json: str
    partition_json: str

    @classmethod
    def of(cls, config: TableConfig, schema_json: str, subject: str) -> TableLayout:
        """Binds settings to a schema.

        Raises:
            ConfigError: Some settings do not fit the columns; the error names all of them.
            UnsupportedError: A column has a type that Parquet files cannot hold.
        """
        config = check_against_schema(config, checked_schema(schema_json), subject=subject)
        check_indexes(config, schema_json, subject)
        if problems := problems_of(config.publishing.formats or (), schema_json, config.partitioning.columns):
            raise ConfigError(problems, subject)
        return cls(config, *split_partition_columns(schema_json, config.partitioning.columns))

    @classmethod
    def of_version(cls, snapshot: Snapshot) -> TableLayout:
        """Returns the layout that a version was written with.

        Raises:
            CorruptError: As for `config_of`.
        """
        return cls.bound(config_of(snapshot), snapshot.schema_json, snapshot.partition_by)

    @classmethod
    def bound(cls, config: TableConfig, schema_json: str, partition_by: tuple[str, ...]) -> TableLayout:
        """Binds settings to a schema that they were checked against. Only the schema names the partition columns."""
        return cls(config, *split_partition_columns(schema_json, partition_by))

    @property
    def keys(self) -> tuple[ColumnPath, ...]:
        """The clustering keys."""
        return self.config.clustering.columns

    @property
    def partition_by(self) -> tuple[str, ...]:
        """Names of the partition columns."""
        return self.config.partitioning.columns

    @cached_property
    def schema_json(self) -> str:
        """Spark's JSON of all columns, partition columns last."""
        return joined(self.data_json, self.partition_json)

    @cached_property
    def data_schema(self) -> pa.Schema:
        """Arrow types of the columns in the files."""
        return arrow_schema(self.data_json)

    @cached_property
    def tracked(self) -> tuple[TrackedColumn, ...]:
        """The columns with statistics."""
        return tracked_of(self.config, self.data_json, self.partition_by)

    @cached_property
    def filtered(self) -> tuple[TrackedColumn, ...]:
        """The columns with Bloom filters."""
        usable = _usable(self.data_json, self.partition_by)
        return tuple(usable[path] for path in self.config.indexes.bloom or () if path in usable)

    @cached_property
    def looked_up(self) -> tuple[LookupKey, ...]:
        """The lookup indexes."""
        usable, wanted = _usable(self.data_json, self.partition_by), self.config.indexes.lookup or ()
        return tuple(LookupKey.of([usable[path] for path in each]) for each in wanted if set(each) <= usable.keys())

    def stored_model(self, store: Store, before: Snapshot | None) -> CurveModel | None:
        """Returns the curve of a version if it fits this layout; None if it does not fit or cannot be read."""
        if before is None or before.curve is None or before.partition_by != self.partition_by:
            return None
        try:
            model = CurveModel.from_bytes(store.read(before.curve))
        except (CorruptError, StoreError):
            return None
        types = tuple(type_at(self.data_schema, path) for path in self.keys)
        return model if model.fits(self.keys, types, self.config.clustering.curve) else None

    def sizing(self) -> dict[str, Any]:
        """Returns the settings that the cuts depend on in addition to the keys."""
        return dict(vars(self.config.file_sizing))

    def to_dict(self, drift: float, built: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Returns the layout as a version stores it.

        Args:
            drift: How far the file sizes are from what the cuts were made for, see `drift_of`.
            built: The last write of all rows, see `build_of`; None if unknown.
        """
        return {**stored_settings(self.config), "drift": drift, **({"built": dict(built)} if built else {})}

    def build_of(self, instant: str) -> dict[str, Any]:
        """Returns what a version stores about a write of all rows: which files it cut, and for which size."""
        return {"instant": instant, "target_file_bytes": self.config.file_sizing.target_file_bytes}


def tell_of_dropped(progress: Callable[[str], None] | None, before: OptionalIndexes, after: OptionalIndexes) -> None:
    """Reports the indexes that a table had and that its new settings do not ask for."""
    if progress is None:
        return
    for each in before.beyond(after):
        progress(f"the index {each} is dropped, because the settings no longer name it or its column is gone")


def tracked_of(config: TableConfig, schema_json: str, partition_by: tuple[str, ...]) -> tuple[TrackedColumn, ...]:
    """Returns the columns with statistics.

    Args:
        config: The settings. Columns that the schema lacks are ignored.
        schema_json: Spark's JSON of the table's columns.
        partition_by: The partition columns among them.
    """
    wanted, keys = config.statistics.columns, config.clustering.columns
    if config.table_type.merges_on_read:
        # Readers distinguish log files from base files by `OP`. Compactions know the age of logs by `INSTANT`, and how
        # many records are deletes by `SEQ`. Writers find the rows of a key by the record key.
        keys = ((OP,), (INSTANT,), (SEQ,), *keys, *((name,) for name in config.table_type.unique_key))
        schema_json = with_log_columns(schema_json, partition_by)
    defaulted = defaulted_columns(schema_json)
    return tracked_columns(arrow_schema(schema_json), wanted, keys, partition_by, defaulted=defaulted)


def _usable(schema_json: str, partition_by: tuple[str, ...]) -> dict[ColumnPath, TrackedColumn]:
    defaulted = {path[0] for path in defaulted_columns(schema_json)}
    return {
        path: TrackedColumn(path, kind, absent_is_null=path[0] not in defaulted)
        for path, kind in filterable_columns(schema_json, partition_by).items()
    }


def filterable_columns(schema_json: str, partition_by: tuple[str, ...]) -> dict[ColumnPath, pa.DataType]:
    """Returns the columns and fields of structs that can have Bloom filters and lookup indexes, with their types."""
    return {
        path: canonical_type(field.arrow_type)
        for path, field in _fields_at_every_level(schema_json).items()
        if path[0] not in partition_by and not field.collated
        if field.arrow_type is not None and is_orderable(canonical_type(field.arrow_type))
    }


def _fields_at_every_level(schema_json: str) -> dict[ColumnPath, SparkField]:
    """Returns the columns and the fields of structs, by path."""
    pending: list[tuple[ColumnPath, SparkField]] = [((each.name,), each) for each in fields_of(schema_json)]
    found: dict[ColumnPath, SparkField] = {}
    while pending:
        path, field = pending.pop()
        found[path] = field
        pending += [((*path, each.name), each) for each in field.fields]
    return found


def check_indexes(config: TableConfig, schema_json: str, subject: str) -> None:
    """Checks the columns of the optional indexes against what only Spark's schema knows.

    Raises:
        ConfigError: A column has a collation.
    """
    fields = _fields_at_every_level(schema_json)
    problems = [
        f"{key}: column '{format_column_path(path)}' has a collation, under which texts of other bytes are equal; "
        "allowed are texts without one: store the text without a collation beside it, and name that column"
        for key, columns in config.indexes.column_sets
        for path in columns
        if path in fields and fields[path].collated
    ]
    if problems:
        raise ConfigError(problems, subject)


def merges_on_read(layout: Mapping[str, Any]) -> bool:
    """Returns whether a version's layout belongs to a merge-on-read table."""
    return bool(layout.get("table_type"))


def config_of(snapshot: Snapshot) -> TableConfig:
    """Returns the settings that a version was written with. Settings that it does not store have their defaults.

    Raises:
        CorruptError: The version stores something that no release writes.
    """
    try:
        return read_stored(snapshot.layout, snapshot.partition_by)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CorruptError(f"{log_path(snapshot.version)}: its layout is damaged ({error}); {RESTORE}") from error
