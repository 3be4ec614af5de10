"""Adds optional parts of the index to a table and removes them.

The commits change no data, and follow whatever others commit in the meantime.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.config import settings
from dbt.adapters.zlayout.config.column_names import (
    ColumnSet,
    format_column_path,
    format_column_set,
)
from dbt.adapters.zlayout.config.table_config import OptionalIndexes, indexed_as
from dbt.adapters.zlayout.errors import ConfigError, ConflictError
from dbt.adapters.zlayout.index.footers.footer import footer_table
from dbt.adapters.zlayout.index.footers.parquet_values import writer_rules
from dbt.adapters.zlayout.index.lookup.lookup_key import KeyPaths
from dbt.adapters.zlayout.predicate.expr import EXPRESSION
from dbt.adapters.zlayout.pruning.statistics.validation import contiguous
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog, TableRef
from dbt.adapters.zlayout.spark.commit.after_commit import AfterCommit
from dbt.adapters.zlayout.spark.commit.commit_files import Renewed, commit_files
from dbt.adapters.zlayout.spark.commit.expression_stats import (
    check_expressions,
    joined_statistics,
    pieces_of_expressions,
    statistics_of_expressions,
    wanted_expressions,
)
from dbt.adapters.zlayout.spark.commit.optional_slices import NewFilters, NewLookups, NewOptional
from dbt.adapters.zlayout.spark.commit.publish import publish_committed
from dbt.adapters.zlayout.spark.files.distinct_values import Pieces
from dbt.adapters.zlayout.spark.files.existing_files import footers_found
from dbt.adapters.zlayout.spark.index.file_values import optional_of_files
from dbt.adapters.zlayout.spark.index.lacking_indexes import (
    files_unmeasured,
    lacking_and_tried,
    lacking_files,
    wanted_columns,
    with_rows,
)
from dbt.adapters.zlayout.spark.jobs.jobs import Progress
from dbt.adapters.zlayout.spark.read.session import newest_managed
from dbt.adapters.zlayout.spark.schema.types import fields_of
from dbt.adapters.zlayout.spark.snapshot.table_layout import (
    TableLayout,
    config_of,
    filterable_columns,
)
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot
from dbt.adapters.zlayout.store import Store
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles
from dbt.adapters.zlayout.timeline.log.snapshot import Snapshot
from dbt.adapters.zlayout.timeline.transactions.change import Change
from dbt.adapters.zlayout.timeline.transactions.recovery import recover
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ColumnSets = Sequence[str | Sequence[str]] | str
"""Columns as a caller writes them; a list in the list stands for columns together."""

_OF_TIME = re.compile("date|timestamp")
# A build commits after this many rows.
_MOST_ROWS = 100_000_000


class _DroppedError(ConflictError):
    """Another job dropped an index while a build read files for it."""


@dataclass(frozen=True)
class IndexBuilt:
    """Summary of a change of optional parts of an index.

    Attributes:
        version: Current version of the table.
        bloom: The columns that have Bloom filters from now on.
        lookup: The columns that have lookup indexes from now on; ``a+b`` stands for columns together.
        files_read: Number of files that were read for their values.
        files_without: Number of files that lack a Bloom filter, lookup entries or statistics of an expression. Queries
            for such a value read them.
        stats_expressions: The expressions that have statistics from now on.
    """

    version: int
    bloom: tuple[str, ...]
    lookup: tuple[str, ...] = ()
    files_read: int = 0
    files_without: int = 0
    stats_expressions: tuple[str, ...] = ()


def build_index(
    spark: SparkSession,
    name: TableRef,
    bloom: Sequence[str] | str,
    lookup: ColumnSets,
    stats_expressions: Sequence[str] | str,
    progress: Progress | None = None,
    *,
    schedule: bool = False,
    execute: bool = False,
) -> tuple[TableSnapshot, IndexBuilt]:
    """Gives a table more Bloom filters, lookup indexes and statistics of expressions, and its files what they lack.

    The settings are committed first. So writers index the files that they add from then on, and a later call goes on if
    this one is killed.

    Args:
        spark: The session.
        name: The table.
        bloom: Columns that get Bloom filters. What is there stays; without columns, what is missing is completed.
        lookup: Columns that get lookup indexes, in the same way.
        stats_expressions: Expressions that get statistics, in the same way.
        progress: Called with a line of text as the work goes on.
        schedule: Whether to only change the settings, which writers follow from then on.
        execute: Whether to only give files what they lack of what the settings already ask for.

    Raises:
        ConfigError: A column cannot have such an index, or an expression no statistics. Nothing has changed.
        UnsupportedError: The table is only indexed.
    """
    opened = newest_managed(spark, name)
    recover(opened.timeline)
    more = _read(bloom, lookup, stats_expressions, name)
    given = bool(more.bloom or more.lookup or more.stats_expressions)
    if problems := _step_problems(given, schedule, execute):
        raise ConfigError(problems, str(name))
    if given:
        opened = _ask_for(spark, name, opened, more, progress)
    tried, left = set[str](), not schedule
    while left:
        before = set(tried)
        try:
            opened, left = _build_some(spark, name, opened, tried, progress)
        except _DroppedError:
            tried = before
    return opened, replace(_built(spark, opened), files_read=len(tried))


def _step_problems(given: bool, schedule: bool, execute: bool) -> list[str]:
    if schedule and execute:
        return ["schedule: leaves the files to a later call, but execute reads them; leave one out"]
    if schedule and not given:
        return ["schedule: nothing to schedule; name columns or expressions with bloom, lookup or stats_expressions"]
    if execute and given:
        return ["execute: completes what is scheduled; leave out bloom, lookup and stats_expressions"]
    return []


def _ask_for(
    spark: SparkSession, name: TableRef, opened: TableSnapshot, more: OptionalIndexes, progress: Progress | None
) -> TableSnapshot:
    """Commits settings that ask for more. Returns the table at that version, or as it is if nothing is new.

    Raises:
        ConfigError: A column cannot have such an index, or an expression no statistics. Nothing has changed.
    """
    with Transaction.begin(opened.timeline, Action.INDEXING, Operation.INDEXING) as transaction:
        base = transaction.known_base(name)
        opened = opened.at_snapshot(base)
        before = config_of(base).indexes
        layout = _layout(base, before.plus(more), name)
        check_expressions(spark, more, layout, str(name))
        added = layout.config.indexes.minus(before)
        if added == OptionalIndexes():
            return opened
        made = NewOptional.of(Pieces(), base.files[:0])
        indexes = partial(OptionalIndexes.plus, more=added)
        return _committed(spark, name, opened, transaction, layout, made, indexes, progress)


def _build_some(
    spark: SparkSession, name: TableRef, opened: TableSnapshot, tried: set[str], progress: Progress | None
) -> tuple[TableSnapshot, bool]:
    """Gives files what the settings ask for, for at most `_MOST_ROWS` rows, and commits it.

    Args:
        spark: The session.
        name: The table.
        opened: Some version of it.
        tried: The files that this build has read. Those that it reads now are added.
        progress: Called with a line of text as the work goes on.

    Returns:
        The table, and whether other files are left.
    """
    with Transaction.begin(opened.timeline, Action.INDEXING, Operation.INDEXING) as transaction:
        base = transaction.known_base(name)
        opened = opened.at_snapshot(base)
        before = config_of(base).indexes
        layout = _layout(base, before, name)
        every = lacking_files(spark, opened, layout)
        untried = _among(base.files, every).minus(tried)
        first = _first_of(untried)
        lacking, unmeasured, uncomputed = (_among(files, [first]) for files in every)
        tried.update(first["path"].to_pylist())
        left = len(first) < len(untried)
        renewed = _renewed(spark, opened, unmeasured, layout, progress)
        pieces = optional_pieces(spark, opened.store, transaction.instant, lacking, uncomputed, layout, progress)
        if renewed is None and pieces == Pieces():
            return opened, left
        made = NewOptional.of(pieces, lacking.plus(uncomputed))
        indexes = partial(_unless_dropped, before=before)
        return _committed(spark, name, opened, transaction, layout, made, indexes, progress, renewed=renewed), left


def optional_pieces(
    spark: SparkSession,
    store: Store,
    instant: str,
    lacking: DataFiles,
    uncomputed: DataFiles,
    layout: TableLayout,
    progress: Progress | None = None,
) -> Pieces:
    """Reads existing files and returns the Bloom filters and lookup entries that the table's settings ask for.

    Args:
        spark: The session, whose time zone and ANSI mode apply to expressions.
        store: The table's folder.
        instant: Instant of the transaction, which stages large parts.
        lacking: The files that get those of columns.
        uncomputed: The files that get those of expressions.
        layout: The table's settings and columns.
        progress: Called with a line of text as the work goes on.
    """
    uncomputed = _read_as_stored(store, with_rows(uncomputed), layout)
    computed = pieces_of_expressions(spark, store, instant, uncomputed, layout, progress)
    of_columns = optional_of_files(spark, store, instant, lacking, wanted_columns(layout), progress)
    return Pieces.together([of_columns, computed])


def _among(files: DataFiles, others: Iterable[DataFiles]) -> DataFiles:
    """Returns those of some files that are among others."""
    paths = pa.concat_arrays([contiguous(each["path"]) for each in others])
    return files.filter(pc.is_in(files["path"], value_set=paths))


def _first_of(files: DataFiles) -> DataFiles:
    """Returns as many of the first files as can be read in a few minutes, at least one."""
    rows = np.cumsum(files["row_count"].to_numpy())
    return files[: max(1, int(np.searchsorted(rows, _MOST_ROWS, side="right")))]


def drop_index(
    spark: SparkSession,
    name: TableRef,
    bloom: Sequence[str] | str,
    lookup: ColumnSets,
    stats_expressions: Sequence[str] | str,
    progress: Progress | None = None,
) -> tuple[TableSnapshot, IndexBuilt]:
    """Takes Bloom filters, lookup indexes and statistics of expressions from a table.

    Args:
        spark: The session.
        name: The table.
        bloom: The columns whose filters go.
        lookup: The columns whose lookup indexes go.
        stats_expressions: The expressions whose statistics go, as the settings spell them.
        progress: Called with a line of text as the work goes on.

    Raises:
        ConfigError: A column has no such index, or an expression no statistics. Nothing has changed.
        UnsupportedError: The table is only indexed.
    """
    opened = newest_managed(spark, name)
    recover(opened.timeline)
    unwanted = _read(bloom, lookup, stats_expressions, name)
    with Transaction.begin(opened.timeline, Action.INDEXING, Operation.INDEXING) as transaction:
        base = transaction.known_base(name)
        opened = opened.at_snapshot(base)
        before = config_of(base).indexes
        unwanted = unwanted.with_columns(filterable_columns(base.schema_json, base.partition_by))
        if problems := before.lacking_of(unwanted):
            raise ConfigError(problems, str(name))
        layout = _layout(base, before.minus(unwanted), name)
        if layout.config.indexes == before:
            return opened, _built(spark, opened)
        gone = before.minus(layout.config.indexes)
        dropped = _dropped(opened, gone)
        indexes = partial(OptionalIndexes.minus, unwanted=gone)
        opened = _committed(spark, name, opened, transaction, layout, dropped, indexes, progress)
    return opened, _built(spark, opened)


def _dropped(opened: TableSnapshot, gone: OptionalIndexes) -> NewOptional:
    """Returns the change of the index that takes away filters and lookup indexes."""
    filters, lookups = opened.index.membership(opened.files), opened.index.lookups(opened.files)
    filtered = [] if filters is None else [(path,) for path in filters.whole.columns]
    looked_up = [] if lookups is None else lookups.whole.keys
    dropped = _as_known([(path,) for path in gone.bloom or ()], filtered)
    return NewOptional(
        NewFilters(drops=frozenset(path for (path,) in dropped)),
        NewLookups(drops=_as_known(gone.lookup or (), looked_up)),
    )


def _as_known(gone: Sequence[ColumnSet], known: Iterable[KeyPaths]) -> frozenset[KeyPaths]:
    """Returns the columns of indexes that go. The index knows an expression with all that its values depend on."""
    wanted = {tuple(sorted(columns)) for columns in gone}
    spelled = {paths: tuple(path[:2] if path[0] == EXPRESSION else path for path in paths) for paths in known}
    return frozenset(wanted | {paths for paths, text in spelled.items() if text in wanted})


def _read(
    bloom: Sequence[str] | str, lookup: ColumnSets, stats_expressions: Sequence[str] | str, name: TableRef
) -> OptionalIndexes:
    problems: list[str] = []
    found = OptionalIndexes(
        settings.BLOOM.read_value(bloom, problems),
        settings.LOOKUP.read_value(lookup, problems),
        settings.STATS_EXPRESSIONS.read_value(stats_expressions, problems),
    )
    if problems:
        raise ConfigError(problems, str(name))
    return found


def _unless_dropped(now: OptionalIndexes, before: OptionalIndexes) -> OptionalIndexes:
    """Returns what a table asks for.

    Raises:
        _DroppedError: It asks for less than before.
    """
    if before.minus(now) != OptionalIndexes():
        raise _DroppedError(
            "in the meantime, another job dropped an index, or a column that it needs; build the rest again"
        )
    return now


def _renewed(
    spark: SparkSession, opened: TableSnapshot, files: DataFiles, layout: TableLayout, progress: Progress | None
) -> Renewed | None:
    """Computes what files lack, beside what the index already has about them. None if there is nothing new."""
    files = _read_as_stored(opened.store, files, layout)
    if not len(files):
        return None
    found = statistics_of_expressions(spark, opened.store, files, layout, progress)
    known = opened.index.stored(files.filter(pc.is_in(files["path"], value_set=contiguous(found.column("path")))))
    files = files.filter(pc.is_in(files["path"], value_set=contiguous(known.column("path"))))
    return Renewed(files, joined_statistics(known, found)) if len(files) else None


def _read_as_stored(store: Store, files: DataFiles, layout: TableLayout) -> DataFiles:
    """Returns the files whose dates and times every session reads alike: not those of writers of unknown calendar."""
    if not any(
        isinstance(each.spark_type, dict) or _OF_TIME.search(each.spark_type) for each in fields_of(layout.data_json)
    ):
        return files
    footers = footers_found(store, files["path"].to_pylist())
    rules = [None if each is None else writer_rules(each.created_by or "", each.metadata or {}) for each in footers]
    return files.filter(
        pa.array([each is not None and each.old_dates and each.old_int96 for each in rules], pa.bool_())
    )


def _layout(base: Snapshot, indexes: OptionalIndexes, name: TableRef) -> TableLayout:
    return TableLayout.of(replace(config_of(base), indexes=indexes), base.schema_json, str(name))


def _layout_after(indexes: Callable[[OptionalIndexes], OptionalIndexes], head: Snapshot | None) -> Mapping[str, Any]:
    """Returns the layout of the version that a change follows, with more indexes or without some.

    In the meantime, another writer may have changed the settings or dropped a column.
    """
    assert head is not None
    usable = filterable_columns(head.schema_json, head.partition_by)
    return indexed_as(head.layout, OptionalIndexes().after(indexes(config_of(head).indexes), usable))


def _built(spark: SparkSession, opened: TableSnapshot) -> IndexBuilt:
    layout = TableLayout.of_version(opened.snapshot)
    wanted = wanted_columns(layout), wanted_expressions(spark, layout)
    of_columns, of_expressions = (opened.files.filter(pa.array(lacking_and_tried(opened, each)[0])) for each in wanted)
    computable = with_rows(of_expressions), files_unmeasured(spark, opened, layout)
    lacking = _among(opened.files, [of_columns, *computable])
    indexes = layout.config.indexes
    return IndexBuilt(
        opened.version,
        tuple(map(format_column_path, indexes.bloom or ())),
        tuple(map(format_column_set, indexes.lookup or ())),
        files_without=len(lacking),
        stats_expressions=indexes.stats_expressions or (),
    )


def _committed(
    spark: SparkSession,
    name: TableRef,
    opened: TableSnapshot,
    transaction: Transaction,
    layout: TableLayout,
    made: NewOptional,
    indexes: Callable[[OptionalIndexes], OptionalIndexes],
    progress: Progress | None,
    *,
    renewed: Renewed | None = None,
) -> TableSnapshot:
    base = opened.snapshot
    change = Change(
        adds=base.files[:0],
        layout=partial(_layout_after, indexes),
        summary={"rows": 0, **layout.config.indexes.stored()},
    )
    nothing = footer_table([], [], layout.tracked)
    commit = commit_files(opened.store, transaction, change, nothing, optional=made, renewed=renewed)
    publish_committed(Catalog(spark), name, opened, AfterCommit(commit.version, progress))
    return opened.at_snapshot(opened.timeline.snapshot(commit.version))
