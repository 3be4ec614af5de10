"""Adds optional parts of the index to a table and takes them away.

The commits change no data, and follow whatever others commit meanwhile.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.config import settings
from dbt.adapters.zlayout.config.column_names import folded_path, format_column_path
from dbt.adapters.zlayout.config.optional_indexes import OptionalIndexes, indexed_as
from dbt.adapters.zlayout.errors import ConfigError, TableNotFoundError
from dbt.adapters.zlayout.index.bloom.table_filters import FilesFilters
from dbt.adapters.zlayout.index.footers.footer import footer_table
from dbt.adapters.zlayout.index.footers.parquet_values import writer_rules
from dbt.adapters.zlayout.index.statistics.tracked import TrackedColumn
from dbt.adapters.zlayout.predicate.expr import ColumnPath
from dbt.adapters.zlayout.pruning.statistics.validation import contiguous
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog, TableRef
from dbt.adapters.zlayout.spark.commit.after_commit import AfterCommit
from dbt.adapters.zlayout.spark.commit.commit_files import Renewed, commit_files
from dbt.adapters.zlayout.spark.commit.expression_stats import (
    check_expressions,
    expressions_of,
    joined_statistics,
    statistics_of_expressions,
)
from dbt.adapters.zlayout.spark.commit.filter_commit import NewFilters
from dbt.adapters.zlayout.spark.commit.publish import publish_committed
from dbt.adapters.zlayout.spark.files.existing_files import footers_found
from dbt.adapters.zlayout.spark.index.file_filters import filters_of_files
from dbt.adapters.zlayout.spark.jobs.jobs import Progress
from dbt.adapters.zlayout.spark.read.session import newest_managed
from dbt.adapters.zlayout.spark.schema.types import fields_of
from dbt.adapters.zlayout.spark.snapshot.table_layout import TableLayout, config_of, filtered_of
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles
from dbt.adapters.zlayout.timeline.log.snapshot import Snapshot
from dbt.adapters.zlayout.timeline.transactions.change import Change
from dbt.adapters.zlayout.timeline.transactions.recovery import recover
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OF_TIME = re.compile("date|timestamp")


@dataclass(frozen=True)
class IndexBuilt:
    """Summary of a change of optional parts of an index.

    Attributes:
        version: Current version of the table.
        bloom: The columns that have Bloom filters from now on.
        files_read: Number of files that were read for their filters.
        files_without: Number of files that lack a filter for one of the columns, and that queries for its values read.
        stats_expressions: The expressions that have statistics from now on.
    """

    version: int
    bloom: tuple[str, ...]
    files_read: int = 0
    files_without: int = 0
    stats_expressions: tuple[str, ...] = ()


def build_index(
    spark: SparkSession,
    name: TableRef,
    bloom: Sequence[str] | str,
    stats_expressions: Sequence[str] | str = (),
    progress: Progress | None = None,
) -> tuple[TableSnapshot, IndexBuilt]:
    """Gives a table Bloom filters of more columns and statistics of more expressions, and its files what they lack.

    Args:
        spark: The session.
        name: The table.
        bloom: The columns; those that already have filters stay. An empty list only completes what is missing.
        stats_expressions: The expressions, likewise.
        progress: Called with a line of text as the work goes on.

    Raises:
        ConfigError: A column cannot have a filter, or an expression no statistics. Nothing has changed.
        UnsupportedError: The table is only indexed.
    """
    opened = newest_managed(spark, name)
    recover(opened.timeline)
    wanted, asked = _read(bloom, name), _read_expressions(stats_expressions, name)
    with Transaction.begin(opened.timeline, Action.INDEXING, Operation.INDEXING) as transaction:
        base = _base(transaction.base, name)
        opened = opened.at_snapshot(base)
        before = config_of(base).indexes.bloom or ()
        more = [path for path in wanted if folded_path(path) not in set(map(folded_path, before))]
        expressions = config_of(base).indexes.stats_expressions or ()
        layout = _layout(base, (*before, *more), tuple(dict.fromkeys((*expressions, *asked))), name)
        check_expressions(spark, asked, layout, str(name))
        lacking, unmeasured = files_without(opened, layout.filtered), files_unmeasured(spark, opened, layout)
        renewed = _renewed(spark, opened, unmeasured, layout, progress)
        if not len(lacking) and renewed is None and layout.config.indexes == config_of(base).indexes:
            return opened, replace(_built(opened, layout), files_read=len(unmeasured))
        paths = lacking["path"].to_pylist()
        pieces = filters_of_files(spark, opened.store, transaction.instant, paths, layout.filtered, progress)
        filters = NewFilters(pieces, lacking)
        opened = _committed(spark, name, opened, transaction, layout, filters, progress, renewed=renewed)
    read = len(set(paths) | set(unmeasured["path"].to_pylist()))
    return opened, replace(_built(opened, layout), files_read=read)


def drop_index(
    spark: SparkSession,
    name: TableRef,
    bloom: Sequence[str] | str,
    stats_expressions: Sequence[str] | str = (),
    progress: Progress | None = None,
) -> tuple[TableSnapshot, IndexBuilt]:
    """Takes the Bloom filters of columns and the statistics of expressions from a table.

    Args:
        spark: The session.
        name: The table.
        bloom: The columns.
        stats_expressions: The expressions, as the settings spell them.
        progress: Called with a line of text as the work goes on.

    Raises:
        ConfigError: A column has no filters, or an expression no statistics. Nothing has changed.
        UnsupportedError: The table is only indexed.
    """
    opened = newest_managed(spark, name)
    recover(opened.timeline)
    wanted = [folded_path(path) for path in _read(bloom, name)]
    asked = _read_expressions(stats_expressions, name)
    with Transaction.begin(opened.timeline, Action.INDEXING, Operation.INDEXING) as transaction:
        base = _base(transaction.base, name)
        opened = opened.at_snapshot(base)
        before = config_of(base).indexes.bloom or ()
        known = {folded_path(path) for path in before}
        have = ", ".join(map(format_column_path, before)) or "none"
        if unknown := [path for path in wanted if path not in known]:
            raise ConfigError(
                [
                    f"bloom: column '{format_column_path(path)}' has no Bloom filters; those that have some: {have}"
                    for path in unknown
                ],
                str(name),
            )
        expressions = config_of(base).indexes.stats_expressions or ()
        if strange := [text for text in asked if text not in expressions]:
            have = ", ".join(map(repr, expressions)) or "none"
            raise ConfigError(
                [f"stats_expressions: {each!r} has no statistics; those that have some: {have}" for each in strange],
                str(name),
            )
        if not wanted and not asked:
            return opened, _built(opened, _layout(base, before, expressions, name))
        left = tuple(each for each in expressions if each not in asked)
        layout = _layout(base, tuple(path for path in before if folded_path(path) not in wanted), left, name)
        dropped = NewFilters(drops=frozenset(path for path in before if folded_path(path) in wanted))
        opened = _committed(spark, name, opened, transaction, layout, dropped, progress)
    return opened, _built(opened, layout)


def lacks_filters(opened: TableSnapshot) -> bool:
    """Returns whether a file lacks a Bloom filter that the table's settings ask for, and that was never tried."""
    snapshot = opened.snapshot
    columns = filtered_of(config_of(snapshot), snapshot.schema_json, snapshot.partition_by)
    return bool(columns) and len(files_without(opened, columns)) > 0


def files_without(opened: TableSnapshot, columns: Sequence[TrackedColumn]) -> DataFiles:
    """Returns the files whose filters are missing for one of the columns, or were never tried."""
    files, found = opened.files, opened.index.membership(opened.files)
    lacks = np.zeros(len(files), dtype=bool)
    for column in columns:
        lacks |= _unknown(found, column, len(files))
    return files.filter(pa.array(lacks))


def lacks_expressions(spark: SparkSession, opened: TableSnapshot) -> bool:
    """Returns whether a file lacks statistics of an expression that the table's settings ask for."""
    config = config_of(opened.snapshot)
    if not config.indexes.stats_expressions:
        return False
    layout = TableLayout.of(config, opened.snapshot.schema_json, opened.location)
    return len(files_unmeasured(spark, opened, layout)) > 0


def _unknown(found: FilesFilters | None, column: TrackedColumn, count: int) -> np.ndarray:
    if found is None:
        return np.ones(count, dtype=bool)
    known, refused = found.state(column.path, str(column.type))
    return ~(known | refused)


def _read(bloom: Sequence[str] | str, name: TableRef) -> tuple[ColumnPath, ...]:
    problems: list[str] = []
    paths = settings.BLOOM.read_value(bloom, problems)
    if problems:
        raise ConfigError(problems, str(name))
    return paths or ()


def _read_expressions(expressions: Sequence[str] | str, name: TableRef) -> tuple[str, ...]:
    problems: list[str] = []
    found = settings.STATS_EXPRESSIONS.read_value(expressions, problems)
    if problems:
        raise ConfigError(problems, str(name))
    return found or ()


def files_unmeasured(spark: SparkSession, opened: TableSnapshot, layout: TableLayout) -> DataFiles:
    """Returns the files without statistics of one of the expressions, as this session understands them."""
    files, lacks = opened.files, np.zeros(len(opened.files), dtype=bool)
    paths = [each.column.path for each in expressions_of(spark, layout)]
    statistics = opened.index.statistics(files, paths)
    for path in paths:
        bounds = statistics.column(path)
        lacks |= True if bounds is None else ~bounds.null_count.is_valid().to_numpy(zero_copy_only=False)
    return files.filter(pa.array(lacks))


def _renewed(
    spark: SparkSession, opened: TableSnapshot, files: DataFiles, layout: TableLayout, progress: Progress | None
) -> Renewed | None:
    """Computes what files lack, beside what the index already has about them. None if there is nothing new."""
    files = _read_as_stored(opened, files, layout)
    if not len(files):
        return None
    found = statistics_of_expressions(spark, opened.store, files, layout, progress)
    known = opened.index.stored(files.filter(pc.is_in(files["path"], value_set=contiguous(found.column("path")))))
    files = files.filter(pc.is_in(files["path"], value_set=contiguous(known.column("path"))))
    return Renewed(files, joined_statistics(known, found)) if len(files) else None


def _read_as_stored(opened: TableSnapshot, files: DataFiles, layout: TableLayout) -> DataFiles:
    """Returns the files whose dates and times every session reads alike: not those of writers of unknown calendar."""
    if not any(
        isinstance(each.spark_type, dict) or _OF_TIME.search(each.spark_type) for each in fields_of(layout.data_json)
    ):
        return files
    footers = footers_found(opened.store, files["path"].to_pylist())
    rules = [None if each is None else writer_rules(each.created_by or "", each.metadata or {}) for each in footers]
    return files.filter(
        pa.array([each is not None and each.old_dates and each.old_int96 for each in rules], pa.bool_())
    )


def _base(base: Snapshot | None, name: TableRef) -> Snapshot:
    if base is None:
        raise TableNotFoundError(f"{name} has no version yet; build its model first")
    return base


def _layout(base: Snapshot, bloom: tuple[ColumnPath, ...], expressions: tuple[str, ...], name: TableRef) -> TableLayout:
    config = replace(config_of(base), indexes=OptionalIndexes(bloom or None, expressions or None))
    return TableLayout.of(config, base.schema_json, str(name))


def _built(opened: TableSnapshot, layout: TableLayout) -> IndexBuilt:
    found = opened.index.membership(opened.files)
    without = np.zeros(len(opened.files), dtype=bool)
    for column in layout.filtered:
        without |= True if found is None else ~found.state(column.path, str(column.type))[0]
    columns = tuple(format_column_path(path) for path in layout.config.indexes.bloom or ())
    expressions = layout.config.indexes.stats_expressions or ()
    return IndexBuilt(opened.version, columns, files_without=int(without.sum()), stats_expressions=expressions)


def _committed(
    spark: SparkSession,
    name: TableRef,
    opened: TableSnapshot,
    transaction: Transaction,
    layout: TableLayout,
    filters: NewFilters,
    progress: Progress | None,
    *,
    renewed: Renewed | None = None,
) -> TableSnapshot:
    base = opened.snapshot
    change = Change(
        adds=base.files[:0],
        layout=indexed_as(base.layout, layout.config.indexes),
        summary={"rows": 0, **layout.config.indexes.stored()},
    )
    nothing = footer_table([], [], layout.tracked)
    commit = commit_files(opened.store, transaction, change, nothing, filters=filters, renewed=renewed)
    publish_committed(Catalog(spark), name, opened, AfterCommit(commit.version, progress))
    return opened.at_snapshot(opened.timeline.snapshot(commit.version))
