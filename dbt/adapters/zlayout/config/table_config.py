"""All settings of one table: parsed together so that one error reports every problem, and stored by each version."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dbt.adapters.zlayout.config import settings
from dbt.adapters.zlayout.config.auto_keys import AutoKeys, parse_auto_keys
from dbt.adapters.zlayout.config.clustering import (
    ClusteringConfig,
    ReclusteringConfig,
    parse_clustering,
    parse_reclustering,
)
from dbt.adapters.zlayout.config.column_names import format_column_path
from dbt.adapters.zlayout.config.known_keys import DBT_KEYS, near_misses
from dbt.adapters.zlayout.config.optional_indexes import OptionalIndexes
from dbt.adapters.zlayout.config.settings import CompressionName, PublishFormat, WriterName
from dbt.adapters.zlayout.config.table_type import TableTypeConfig, parse_table_type
from dbt.adapters.zlayout.errors import ConfigError
from dbt.adapters.zlayout.predicate.expr import ColumnPath


@dataclass(frozen=True)
class PartitioningConfig:
    """The partition columns of a table.

    Attributes:
        columns: Top-level columns, outermost folder first; empty for a table without partitions.
    """

    columns: tuple[str, ...] = settings.PARTITION_BY.default_value


@dataclass(frozen=True)
class FileSizingConfig:
    """Target sizes of the writer.

    Attributes:
        target_file_bytes: Compressed size of a data file.
        row_group_rows: Rows per row group, or None to let the layout choose.
    """

    target_file_bytes: int = settings.TARGET_FILE_SIZE.default_value
    row_group_rows: int | None = settings.ROW_GROUP_ROWS.default_value


@dataclass(frozen=True)
class StatisticsConfig:
    """Columns whose bounds and counts the index keeps; the clustering keys are always included.

    Attributes:
        columns: A number of leaf columns, counted from the start of the schema, or a list of columns.
    """

    columns: int | tuple[ColumnPath, ...] = settings.STATS_COLUMNS.default_value


@dataclass(frozen=True)
class RetentionConfig:
    """Which versions cleaning keeps; either rule is enough to keep a version.

    Attributes:
        versions: Number of newest versions to keep.
        hours: Versions that were current within this many hours are kept.
    """

    versions: int = settings.RETAIN_VERSIONS.default_value
    hours: float = settings.RETAIN_HOURS.default_value


@dataclass(frozen=True)
class WritingConfig:
    """The writer and its output.

    Attributes:
        location_root: Parent folder of the table's folder, or None for the default location.
        writer: ``arrow`` writes in Python workers, ``spark`` uses Spark's own writer.
        compression: Codec of the pages, by its pyarrow name.
    """

    location_root: str | None = settings.LOCATION_ROOT.default_value
    writer: WriterName = settings.WRITER.default_value
    compression: CompressionName = settings.COMPRESSION.default_value


@dataclass(frozen=True)
class PublishingConfig:
    """The formats in which other engines can read the table.

    Attributes:
        formats: The formats; None keeps what the table has.
        catalog: Name of the catalog, as pyiceberg knows it, in which the Iceberg table is registered. Empty text for
            none; None keeps what the table has.
    """

    formats: tuple[PublishFormat, ...] | None = settings.PUBLISH.default_value
    catalog: str | None = settings.PUBLISH_CATALOG.default_value

    def after(self, before: PublishingConfig) -> PublishingConfig:
        """Returns these settings, with what they leave open as earlier settings have it.

        >>> PublishingConfig(("delta", "iceberg")).after(PublishingConfig(("iceberg",), "lakehouse"))
        PublishingConfig(formats=('delta', 'iceberg'), catalog='lakehouse')
        >>> PublishingConfig(()).after(PublishingConfig(("iceberg",), "lakehouse"))
        PublishingConfig(formats=(), catalog=None)
        """
        formats = before.formats if self.formats is None else self.formats
        catalog = before.catalog if self.catalog is None else self.catalog
        return PublishingConfig(formats, (catalog or None) if "iceberg" in (formats or ()) else None)

    def problems(self) -> list[str]:
        """Returns a sentence if there is a catalog, but no Iceberg table for it."""
        if not self.catalog or "iceberg" in (self.formats or ()):
            return []
        have = "publish is not set" if self.formats is None else f"publish is {list(self.formats)}"
        return [
            (
                f"publish_catalog: {self.catalog!r} needs a table published as Iceberg, but {have}; add 'iceberg' to "
                "publish, or remove publish_catalog"
            )
        ]

    def stored(self) -> dict[str, Any]:
        """Returns the settings as a version stores them."""
        return {
            **({} if self.formats is None else {"publish": list(self.formats)}),
            **({"publish_catalog": self.catalog} if self.catalog else {}),
        }

    @classmethod
    def of_stored(cls, layout: Mapping[str, Any]) -> PublishingConfig:
        """Returns the settings that a version stores."""
        formats = tuple(layout["publish"]) if "publish" in layout else None
        return cls(formats, layout.get("publish_catalog"))


@dataclass(frozen=True)
class TableConfig:
    """The settings of a table, one part per concern; a part without settings has its defaults."""

    clustering: ClusteringConfig = field(default_factory=ClusteringConfig)
    partitioning: PartitioningConfig = field(default_factory=PartitioningConfig)
    file_sizing: FileSizingConfig = field(default_factory=FileSizingConfig)
    statistics: StatisticsConfig = field(default_factory=StatisticsConfig)
    retention: RetentionConfig = field(default_factory=RetentionConfig)
    writing: WritingConfig = field(default_factory=WritingConfig)
    reclustering: ReclusteringConfig = field(default_factory=ReclusteringConfig)
    table_type: TableTypeConfig = field(default_factory=TableTypeConfig)
    publishing: PublishingConfig = field(default_factory=PublishingConfig)
    indexes: OptionalIndexes = field(default_factory=OptionalIndexes)
    auto_keys: AutoKeys = field(default_factory=AutoKeys)

    def after(self, before: TableConfig, usable: Collection[ColumnPath]) -> TableConfig:
        """Returns these settings, with what they leave open as earlier settings have it.

        Args:
            before: The earlier settings.
            usable: The columns of the table that can be keys, and have Bloom filters and lookup indexes.
        """
        clustering = self.clustering
        if self.auto_keys.wanted and not clustering.columns:
            kept = tuple(path for path in before.clustering.columns if path in usable)
            clustering = replace(clustering, columns=kept)
        return replace(
            self,
            clustering=clustering,
            auto_keys=self.auto_keys.after(before.auto_keys),
            publishing=self.publishing.after(before.publishing),
            indexes=self.indexes.after(before.indexes, usable),
        )


def parse_table_config(
    raw: Mapping[str, object], *, known_other_keys: Collection[str] = DBT_KEYS, subject: str = ""
) -> TableConfig:
    """Reads the settings of a model or of a call.

    Args:
        raw: Values by key, as dbt or a caller passes them; None means the default. ``materialized='zordered_table'``
            makes ``zorder`` required.
        known_other_keys: Keys that belong to others and are never reported.
        subject: Whose settings these are, for the first line of the error.

    Returns:
        The settings; columns are as the user spelled them, see `check_against_schema`.

    Raises:
        ConfigError: With one sentence for each problem.

    >>> config = parse_table_config({"zorder": "customer_id, address.city", "target_file_size": "64mb"})
    >>> config.clustering.columns
    (('customer_id',), ('address', 'city'))
    >>> config.file_sizing.target_file_bytes
    67108864
    >>> parse_table_config({"zorder": "a", "curve": "peano"})
    Traceback (most recent call last):
    ...
    dbt.adapters.zlayout.errors.ConfigError: 1 configuration problem
      - curve: 'peano' is not one of zorder, hilbert, linear
    """
    problems: list[str] = []
    config = read_table_config(raw, problems, known_other_keys)
    if problems:
        raise ConfigError(problems, subject)
    return config


def read_table_config(
    raw: Mapping[str, object], problems: list[str], known_other_keys: Collection[str] = DBT_KEYS
) -> TableConfig:
    """Reads settings as `parse_table_config` does, but adds the sentences to ``problems``."""
    problems += near_misses(raw, known_other_keys)
    config = TableConfig(
        clustering=parse_clustering(raw, problems),
        partitioning=PartitioningConfig(settings.PARTITION_BY.read(raw, problems)),
        file_sizing=FileSizingConfig(
            settings.TARGET_FILE_SIZE.read(raw, problems), settings.ROW_GROUP_ROWS.read(raw, problems)
        ),
        statistics=StatisticsConfig(settings.STATS_COLUMNS.read(raw, problems)),
        retention=RetentionConfig(
            settings.RETAIN_VERSIONS.read(raw, problems), settings.RETAIN_HOURS.read(raw, problems)
        ),
        writing=WritingConfig(
            location_root=settings.LOCATION_ROOT.read(raw, problems),
            writer=settings.WRITER.read(raw, problems),
            compression=settings.COMPRESSION.read(raw, problems),
        ),
        reclustering=parse_reclustering(raw, problems),
        table_type=parse_table_type(raw, problems),
        publishing=PublishingConfig(settings.PUBLISH.read(raw, problems), settings.PUBLISH_CATALOG.read(raw, problems)),
        indexes=OptionalIndexes(
            settings.BLOOM.read(raw, problems),
            settings.LOOKUP.read(raw, problems),
            settings.STATS_EXPRESSIONS.read(raw, problems),
        ),
        auto_keys=parse_auto_keys(raw, problems),
    )
    problems += config.indexes.partition_problems(config.partitioning.columns)
    problems += partition_keys_in_zorder(config.clustering, config.partitioning)
    problems += config.publishing.problems()
    return config


def partition_keys_in_zorder(clustering: ClusteringConfig, partitioning: PartitioningConfig) -> list[str]:
    """Returns a sentence for each clustering key that is a partition column: each file has one value of it."""
    return [
        f"zorder: column '{format_column_path(path)}' is a partition column, of which each file has one value; "
        "leave it out of zorder"
        for path in clustering.columns
        if path[0] in partitioning.columns
    ]


def stored_settings(config: TableConfig) -> dict[str, Any]:
    """Returns the settings as a version stores them, for `read_stored`. Fields have the names of the dataclasses."""
    columns, table_type = config.statistics.columns, config.table_type
    return {
        **({"table_type": table_type.stored()} if table_type.merges_on_read else {}),
        **config.publishing.stored(),
        **config.indexes.stored(),
        **config.auto_keys.stored(),
        **config.clustering.stored(),
        "sizing": dict(vars(config.file_sizing)),
        "stats_columns": columns if isinstance(columns, int) else [list(path) for path in columns],
        "compression": config.writing.compression,
        "writer": config.writing.writer,
        "retention": dict(vars(config.retention)),
    }


def read_stored(layout: Mapping[str, Any], partition_by: tuple[str, ...]) -> TableConfig:
    """Returns the settings that a version stores. Settings that it does not store have their defaults.

    Args:
        layout: From `stored_settings`. Further keys at its top are ignored.
        partition_by: The partition columns, which a version stores elsewhere.

    Raises:
        AttributeError, KeyError, TypeError, ValueError: No release stores such a layout.
    """
    columns = layout.get("stats_columns", StatisticsConfig.columns)
    table_type = dict(layout.get("table_type") or {})
    if table_type:
        table_type["unique_key"] = tuple(table_type["unique_key"])
    writing = {key: layout[key] for key in ("compression", "writer") if key in layout}
    return TableConfig(
        clustering=ClusteringConfig.of_stored(layout),
        partitioning=PartitioningConfig(partition_by),
        file_sizing=FileSizingConfig(**layout.get("sizing", {})),
        statistics=StatisticsConfig(columns if isinstance(columns, int) else _paths(columns)),
        retention=RetentionConfig(**layout.get("retention", {})),
        writing=WritingConfig(**writing),
        table_type=TableTypeConfig(**table_type),
        publishing=PublishingConfig.of_stored(layout),
        indexes=OptionalIndexes.of_stored(layout),
        auto_keys=AutoKeys.of_stored(layout),
    )


def published_as(layout: Mapping[str, Any], publishing: PublishingConfig) -> dict[str, Any]:
    """Returns what a version stores, but published otherwise."""
    keys = (settings.PUBLISH.key, settings.PUBLISH_CATALOG.key)
    return {**{key: value for key, value in layout.items() if key not in keys}, **publishing.stored()}


def _paths(listed: list[list[str]]) -> tuple[ColumnPath, ...]:
    return tuple(tuple(path) for path in listed)
