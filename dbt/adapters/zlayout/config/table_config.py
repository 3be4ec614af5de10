"""All settings of one table: parsed together so that one error reports every problem, and stored by each version."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dbt.adapters.zlayout.config import settings
from dbt.adapters.zlayout.config.clustering import (
    AutoKeys,
    ClusteringConfig,
    ReclusteringConfig,
    parse_auto_keys,
    parse_clustering,
    parse_reclustering,
)
from dbt.adapters.zlayout.config.column_names import (
    ColumnSet,
    as_columns,
    described_set,
    folded_set,
    format_column_path,
    format_column_set,
)
from dbt.adapters.zlayout.config.known_keys import DBT_KEYS, near_misses
from dbt.adapters.zlayout.config.settings import CompressionName, PublishFormat, WriterName, declared, read_as
from dbt.adapters.zlayout.config.table_type import TableTypeConfig, parse_table_type
from dbt.adapters.zlayout.errors import ConfigError
from dbt.adapters.zlayout.predicate.expr import EXPRESSION, ColumnPath

_OPTIONAL_INDEXES = (settings.BLOOM.key, settings.LOOKUP.key, settings.STATS_EXPRESSIONS.key)


@dataclass(frozen=True)
class PartitioningConfig:
    """The partition columns of a table.

    Attributes:
        columns: Top-level columns, outermost folder first; empty for a table without partitions.
    """

    columns: tuple[str, ...] = declared(settings.PARTITION_BY)


@dataclass(frozen=True)
class FileSizingConfig:
    """Target sizes of the writer.

    Attributes:
        target_file_bytes: Compressed size of a data file.
        row_group_rows: Rows per row group, or None to let the layout choose.
    """

    target_file_bytes: int = declared(settings.TARGET_FILE_SIZE)
    row_group_rows: int | None = declared(settings.ROW_GROUP_ROWS)


@dataclass(frozen=True)
class StatisticsConfig:
    """Columns whose bounds and counts the index keeps; the clustering keys are always included.

    Attributes:
        columns: A number of leaf columns, counted from the start of the schema, or a list of columns.
    """

    columns: int | tuple[ColumnPath, ...] = declared(settings.STATS_COLUMNS)


@dataclass(frozen=True)
class RetentionConfig:
    """Which versions cleaning keeps; either rule is enough to keep a version.

    Attributes:
        versions: Number of newest versions to keep.
        hours: Versions that were current within this many hours are kept.
    """

    versions: int = declared(settings.RETAIN_VERSIONS)
    hours: float = declared(settings.RETAIN_HOURS)


@dataclass(frozen=True)
class WritingConfig:
    """The writer and its output.

    Attributes:
        location_root: Parent folder of the table's folder, or None for the default location.
        writer: ``arrow`` writes in Python workers, ``spark`` uses Spark's own writer.
        compression: Codec of the pages, by its pyarrow name.
    """

    location_root: str | None = declared(settings.LOCATION_ROOT)
    writer: WriterName = declared(settings.WRITER)
    compression: CompressionName = declared(settings.COMPRESSION)


@dataclass(frozen=True)
class PublishingConfig:
    """The formats in which other engines can read the table.

    Attributes:
        formats: The formats; None keeps what the table has.
        catalog: Name of the catalog, as pyiceberg knows it, in which the Iceberg table is registered. Empty text for
            none; None keeps what the table has.
    """

    formats: tuple[PublishFormat, ...] | None = declared(settings.PUBLISH)
    catalog: str | None = declared(settings.PUBLISH_CATALOG)

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
class OptionalIndexes:
    """The optional parts of a table's index.

    Attributes:
        bloom: The columns with Bloom filters, and expressions as `EXPRESSION` and their text; None keeps those that the
            table has.
        lookup: The columns of each lookup index, or one expression, stored as in `bloom`; None keeps those that the
            table has.
        stats_expressions: The expressions with statistics, as SQL; None keeps those that the table has.
    """

    bloom: tuple[ColumnPath, ...] | None = declared(settings.BLOOM)
    lookup: tuple[ColumnSet, ...] | None = declared(settings.LOOKUP)
    stats_expressions: tuple[str, ...] | None = declared(settings.STATS_EXPRESSIONS)

    def after(self, before: OptionalIndexes, usable: Collection[ColumnPath]) -> OptionalIndexes:
        """Returns these settings, with what they leave open as earlier settings have it.

        Args:
            before: The earlier settings.
            usable: The columns of the table that can have such an index. Others are no longer kept.

        >>> kept = OptionalIndexes().after(OptionalIndexes((("id",), ("gone",))), [("id",), ("name",)])
        >>> kept.bloom, OptionalIndexes(()).after(kept, [("id",)]).bloom
        ((('id',),), ())
        """
        found = self
        kept = {path for _, columns in before.column_sets for path in columns if path[0] == EXPRESSION}.union(usable)
        if self.bloom is None and before.bloom is not None:
            found = replace(found, bloom=tuple(path for path in before.bloom if path in kept))
        if self.lookup is None and before.lookup is not None:
            found = replace(found, lookup=tuple(each for each in before.lookup if kept.issuperset(each)))
        if self.stats_expressions is None:
            found = replace(found, stats_expressions=before.stats_expressions)
        return found

    @property
    def bloom_expressions(self) -> tuple[str, ...]:
        """The expressions with Bloom filters, as SQL."""
        return tuple(path[1] for path in self.bloom or () if path[0] == EXPRESSION)

    @property
    def lookup_expressions(self) -> tuple[str, ...]:
        """The expressions with a lookup index, as SQL."""
        return tuple(columns[0][1] for columns in self.lookup or () if columns[0][0] == EXPRESSION)

    @property
    def expressions(self) -> tuple[str, ...]:
        """The expressions with statistics, Bloom filters or a lookup index, as SQL."""
        every = *(self.stats_expressions or ()), *self.bloom_expressions, *self.lookup_expressions
        return tuple(dict.fromkeys(every))

    @property
    def column_sets(self) -> tuple[tuple[str, ColumnSet], ...]:
        """The columns of each index, with the setting that names them."""
        bloom = [(settings.BLOOM.key, (path,)) for path in self.bloom or ()]
        return (*bloom, *((settings.LOOKUP.key, columns) for columns in self.lookup or ()))

    def beyond(self, others: OptionalIndexes) -> list[str]:
        """Returns the indexes that others do not have, each with its setting.

        >>> OptionalIndexes((("id",), ("name",)), None, ("length(name)",)).beyond(OptionalIndexes((("ID",),)))
        ['bloom: name', 'stats_expressions: length(name)']
        """
        have = others._described
        return [text for key, text in self._described.items() if key not in have]

    def plus(self, more: OptionalIndexes) -> OptionalIndexes:
        """Returns what both ask for; columns are those of the first in any case and order."""
        filtered = {folded_set((path,)): path for path in (*(more.bloom or ()), *(self.bloom or ()))}
        looked_up = {folded_set(each): each for each in (*(more.lookup or ()), *(self.lookup or ()))}
        bloom = (*(self.bloom or ()), *(more.bloom or ()))
        lookup = (*(self.lookup or ()), *(more.lookup or ()))
        expressions = (*(self.stats_expressions or ()), *(more.stats_expressions or ()))
        return OptionalIndexes(
            tuple(dict.fromkeys(filtered[folded_set((path,))] for path in bloom)) or None,
            tuple(dict.fromkeys(looked_up[folded_set(each)] for each in lookup)) or None,
            tuple(dict.fromkeys(expressions)) or None,
        )

    def minus(self, unwanted: OptionalIndexes) -> OptionalIndexes:
        """Returns these without unwanted ones, whose columns may be in any case and order."""
        bloom = {folded_set((path,)) for path in unwanted.bloom or ()}
        lookup = set(map(folded_set, unwanted.lookup or ()))
        expressions = unwanted.stats_expressions or ()
        return OptionalIndexes(
            tuple(path for path in self.bloom or () if folded_set((path,)) not in bloom) or None,
            tuple(each for each in self.lookup or () if folded_set(each) not in lookup) or None,
            tuple(each for each in self.stats_expressions or () if each not in expressions) or None,
        )

    def lacking_of(self, unwanted: OptionalIndexes) -> list[str]:
        """Returns a sentence for each of some indexes that is not among these."""
        have = {(key, folded_set(columns)): format_column_set(columns) for key, columns in self.column_sets}
        words = {settings.BLOOM.key: "Bloom filters", settings.LOOKUP.key: "lookup index"}
        expressions = self.stats_expressions or ()
        listed = ", ".join(map(repr, expressions)) or "none"
        return [
            f"{key}: {described_set(columns)} has no {words[key]}; those that have some: "
            + (", ".join(text for (of, _), text in have.items() if of == key) or "none")
            for key, columns in unwanted.column_sets
            if (key, folded_set(columns)) not in have
        ] + [
            f"stats_expressions: {each!r} has no statistics; those that have some: {listed}"
            for each in unwanted.stats_expressions or ()
            if each not in expressions
        ]

    def with_columns(self, known: Iterable[ColumnPath]) -> OptionalIndexes:
        """Returns these with a column in place of each expression that is called like one."""
        names = tuple(known)
        bloom, lookup = as_columns(self.bloom or (), names), self.lookup or ()
        return replace(self, bloom=bloom, lookup=tuple(as_columns(each, names) for each in lookup))

    @property
    def _described(self) -> dict[tuple[str, object], str]:
        found: dict[tuple[str, object], str] = {
            (key, folded_set(columns)): f"{key}: {format_column_set(columns)}" for key, columns in self.column_sets
        }
        key = settings.STATS_EXPRESSIONS.key
        found.update({(key, each): f"{key}: {each}" for each in self.stats_expressions or ()})
        return found

    def partition_problems(self, partition_by: Collection[str]) -> list[str]:
        """Returns a sentence for each index on a partition column: files have one value of it."""
        return [
            f"{key}: {described_set((path,))} is a partition column, with one value in each file; leave it out of {key}"
            for key, columns in self.column_sets
            for path in columns
            if path[0] in partition_by
        ]

    def stored(self) -> dict[str, Any]:
        """Returns the settings as a version stores them."""
        filtered = _stored_paths(self.bloom or ())
        bloom = {settings.BLOOM.key: filtered} if filtered else {}
        sets = [_stored_paths(columns) for columns in self.lookup or ()]
        lookup = {settings.LOOKUP.key: sets} if sets else {}
        expressions = self.stats_expressions
        return {**bloom, **lookup, **({settings.STATS_EXPRESSIONS.key: list(expressions)} if expressions else {})}

    @classmethod
    def of_stored(cls, layout: Mapping[str, Any]) -> OptionalIndexes:
        """Returns the settings that a version stores."""
        bloom, lookup, expressions = (layout.get(key) for key in _OPTIONAL_INDEXES)
        return cls(
            None if bloom is None else _read_paths(bloom),
            None if lookup is None else tuple(map(_read_paths, lookup)),
            None if expressions is None else tuple(map(str, expressions)),
        )


def _stored_paths(paths: ColumnSet) -> list[list[str] | str]:
    return [path[1] if path[0] == EXPRESSION else list(path) for path in paths]


def _read_paths(stored: Sequence[Sequence[str] | str]) -> ColumnSet:
    return tuple((EXPRESSION, path) if isinstance(path, str) else tuple(path) for path in stored)


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


def parse_table_config(raw: Mapping[str, object], *, subject: str = "") -> TableConfig:
    """Reads the settings of a model or of a call.

    Args:
        raw: Values by key, as dbt or a caller passes them; None means the default. ``materialized='zordered_table'``
            makes ``zorder`` required.
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
    config = read_table_config(raw, problems)
    if problems:
        raise ConfigError(problems, subject)
    return config


def read_table_config(raw: Mapping[str, object], problems: list[str]) -> TableConfig:
    """Reads settings as `parse_table_config` does, but adds the sentences to ``problems``."""
    problems += near_misses(raw, DBT_KEYS)
    config = TableConfig(
        clustering=parse_clustering(raw, problems),
        partitioning=read_as(PartitioningConfig, raw, problems),
        file_sizing=read_as(FileSizingConfig, raw, problems),
        statistics=read_as(StatisticsConfig, raw, problems),
        retention=read_as(RetentionConfig, raw, problems),
        writing=read_as(WritingConfig, raw, problems),
        reclustering=parse_reclustering(raw, problems),
        table_type=parse_table_type(raw, problems),
        publishing=read_as(PublishingConfig, raw, problems),
        indexes=read_as(OptionalIndexes, raw, problems),
        auto_keys=parse_auto_keys(raw, problems),
    )
    problems += config.indexes.partition_problems(config.partitioning.columns)
    problems += partition_keys_in_zorder(config.clustering, config.partitioning)
    problems += config.publishing.problems()
    return config


def partition_keys_in_zorder(clustering: ClusteringConfig, partitioning: PartitioningConfig) -> list[str]:
    """Returns a sentence for each clustering key that is a partition column: each file has one value of it."""
    return [
        f"zorder: column '{format_column_path(path)}' is a partition column, with one value in each file; "
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


def indexed_as(layout: Mapping[str, Any], indexes: OptionalIndexes) -> dict[str, Any]:
    """Returns what a version stores, but with other optional parts of the index."""
    return {**{key: value for key, value in layout.items() if key not in _OPTIONAL_INDEXES}, **indexes.stored()}


def _paths(listed: list[list[str]]) -> tuple[ColumnPath, ...]:
    return tuple(tuple(path) for path in listed)
