"""Adds optional parts of the index to a table and takes them away.

The commits change no data, and follow whatever others commit meanwhile.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from dbt.adapters.zlayout.config import settings
from dbt.adapters.zlayout.config.column_names import folded_path, format_column_path
from dbt.adapters.zlayout.config.optional_indexes import OptionalIndexes, indexed_as
from dbt.adapters.zlayout.errors import ConfigError, TableNotFoundError
from dbt.adapters.zlayout.index.bloom.table_filters import FilesFilters
from dbt.adapters.zlayout.index.footers.footer import footer_table
from dbt.adapters.zlayout.index.statistics.tracked import TrackedColumn
from dbt.adapters.zlayout.predicate.expr import ColumnPath
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog, TableRef
from dbt.adapters.zlayout.spark.commit.after_commit import AfterCommit
from dbt.adapters.zlayout.spark.commit.commit_files import commit_files
from dbt.adapters.zlayout.spark.commit.filter_commit import NewFilters
from dbt.adapters.zlayout.spark.commit.publish import publish_committed
from dbt.adapters.zlayout.spark.index.file_filters import filters_of_files
from dbt.adapters.zlayout.spark.jobs.jobs import Progress
from dbt.adapters.zlayout.spark.read.session import newest_managed
from dbt.adapters.zlayout.spark.snapshot.table_layout import TableLayout, config_of, filterable_columns, filtered_of
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles
from dbt.adapters.zlayout.timeline.log.snapshot import Snapshot
from dbt.adapters.zlayout.timeline.transactions.change import Change
from dbt.adapters.zlayout.timeline.transactions.recovery import recover
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class IndexBuilt:
    """Summary of a change of optional parts of an index.

    Attributes:
        version: Current version of the table.
        bloom: The columns that have Bloom filters from now on.
        files_read: Number of files that were read for their filters.
        files_without: Number of files that lack a filter for one of the columns, and that queries for its values read.
    """

    version: int
    bloom: tuple[str, ...]
    files_read: int = 0
    files_without: int = 0


def build_index(
    spark: SparkSession, name: TableRef, bloom: Sequence[str] | str, progress: Progress | None = None
) -> tuple[TableSnapshot, IndexBuilt]:
    """Gives a table Bloom filters for more columns, and its files the filters that they lack.

    Args:
        spark: The session.
        name: The table.
        bloom: The columns; those that already have filters stay. An empty list only completes what is missing.
        progress: Called with a line of text as the work goes on.

    Raises:
        ConfigError: A column cannot have a filter. Nothing has changed.
        UnsupportedError: The table is only indexed.
    """
    opened = newest_managed(spark, name)
    recover(opened.timeline)
    wanted = _read(bloom, name)
    with Transaction.begin(opened.timeline, Action.INDEXING, Operation.INDEXING) as transaction:
        base = _base(transaction.base, name)
        opened = opened.at_snapshot(base)
        before = config_of(base).indexes.bloom or ()
        known = set(map(folded_path, before))
        layout = _layout(base, (*before, *(path for path in wanted if folded_path(path) not in known)), name)
        more = tuple(path for path in layout.config.indexes.bloom or () if path not in before)
        lacking = files_without(opened, layout.filtered)
        if not len(lacking) and layout.config.indexes == config_of(base).indexes:
            return opened, _built(opened)
        paths = lacking["path"].to_pylist()
        pieces = filters_of_files(spark, opened.store, transaction.instant, paths, layout.filtered, progress)
        opened = _committed(spark, name, opened, transaction, layout, NewFilters(pieces, lacking), more, progress)
    return opened, replace(_built(opened), files_read=len(paths))


def drop_index(
    spark: SparkSession, name: TableRef, bloom: Sequence[str] | str, progress: Progress | None = None
) -> tuple[TableSnapshot, IndexBuilt]:
    """Takes the Bloom filters of columns from a table.

    Args:
        spark: The session.
        name: The table.
        bloom: The columns.
        progress: Called with a line of text as the work goes on.

    Raises:
        ConfigError: A column has no filters. Nothing has changed.
        UnsupportedError: The table is only indexed.
    """
    opened = newest_managed(spark, name)
    recover(opened.timeline)
    wanted = [folded_path(path) for path in _read(bloom, name)]
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
        if not wanted:
            return opened, _built(opened)
        layout = _layout(base, tuple(path for path in before if folded_path(path) not in wanted), name)
        dropped = NewFilters(drops=frozenset(path for path in before if folded_path(path) in wanted))
        opened = _committed(spark, name, opened, transaction, layout, dropped, (), progress)
    return opened, _built(opened)


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


def _base(base: Snapshot | None, name: TableRef) -> Snapshot:
    if base is None:
        raise TableNotFoundError(f"{name} has no version yet; build its model first")
    return base


def _layout(base: Snapshot, bloom: tuple[ColumnPath, ...], name: TableRef) -> TableLayout:
    config = replace(config_of(base), indexes=OptionalIndexes(bloom or None))
    return TableLayout.of(config, base.schema_json, str(name))


def _layout_after(
    more: Sequence[ColumnPath], drops: Collection[ColumnPath], head: Snapshot | None
) -> Mapping[str, Any]:
    """Returns the layout of the version that a change follows, with more columns and without others.

    Another writer may have changed the settings meanwhile, or dropped a column.
    """
    assert head is not None
    usable = filterable_columns(head.schema_json, head.partition_by)
    wanted = dict.fromkeys((*(config_of(head).indexes.bloom or ()), *more))
    bloom = tuple(path for path in wanted if path in usable and path not in drops)
    return indexed_as(head.layout, OptionalIndexes(bloom or None))


def _built(opened: TableSnapshot) -> IndexBuilt:
    snapshot = opened.snapshot
    config = config_of(snapshot)
    found = opened.index.membership(opened.files)
    without = np.zeros(len(opened.files), dtype=bool)
    for column in filtered_of(config, snapshot.schema_json, snapshot.partition_by):
        without |= True if found is None else ~found.state(column.path, str(column.type))[0]
    columns = tuple(format_column_path(path) for path in config.indexes.bloom or ())
    return IndexBuilt(opened.version, columns, files_without=int(without.sum()))


def _committed(
    spark: SparkSession,
    name: TableRef,
    opened: TableSnapshot,
    transaction: Transaction,
    layout: TableLayout,
    filters: NewFilters,
    more: Sequence[ColumnPath],
    progress: Progress | None,
) -> TableSnapshot:
    base = opened.snapshot
    change = Change(
        adds=base.files[:0],
        layout=partial(_layout_after, more, filters.drops),
        summary={"rows": 0, **layout.config.indexes.stored()},
    )
    nothing = footer_table([], [], layout.tracked)
    commit = commit_files(opened.store, transaction, change, nothing, filters=filters)
    publish_committed(Catalog(spark), name, opened, AfterCommit(commit.version, progress))
    return opened.at_snapshot(opened.timeline.snapshot(commit.version))
