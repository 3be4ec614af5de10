"""What files lack of the optional parts of the index that the table's settings ask for, as files and as sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.config.column_names import format_column_set
from dbt.adapters.zlayout.index.lookup.lookup_key import KeyPaths
from dbt.adapters.zlayout.predicate.expr import EXPRESSION, ColumnPath
from dbt.adapters.zlayout.pruning.statistics.verdict import Flags
from dbt.adapters.zlayout.quantities import counted
from dbt.adapters.zlayout.spark.commit.expression_stats import expressions_of, wanted_expressions
from dbt.adapters.zlayout.spark.files.distinct_values import Wanted
from dbt.adapters.zlayout.spark.snapshot.table_layout import TableLayout
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def wanted_columns(layout: TableLayout) -> Wanted:
    """Returns the Bloom filters and lookup indexes of a table's columns."""
    return Wanted(layout.filtered, layout.looked_up)


def files_without(opened: TableSnapshot, wanted: Wanted) -> DataFiles:
    """Returns the files that lack a Bloom filter or lookup entries, unless reading them has been tried."""
    lacks, tried = lacking_and_tried(opened, wanted)
    return opened.files.filter(pa.array(lacks & ~tried))


def lacks_values(opened: TableSnapshot) -> bool:
    """Returns whether a file lacks something that the table's settings ask for, and that was never tried."""
    layout = TableLayout.of_version(opened.snapshot)
    wanted = wanted_columns(layout)
    return bool(wanted.columns) and len(files_without(opened, wanted)) > 0


def lacks_expressions(spark: SparkSession, opened: TableSnapshot) -> bool:
    """Returns whether a file lacks what the table's settings ask for of an expression."""
    layout = TableLayout.of_version(opened.snapshot)
    if not layout.config.indexes.expressions:
        return False
    return len(files_unmeasured(spark, opened, layout)) > 0 or len(_files_uncomputed(spark, opened, layout)) > 0


def lacking_parts(opened: TableSnapshot) -> list[str]:
    """Returns a sentence for each Bloom filter and lookup index on columns that files lack."""
    return _gaps(opened, wanted_columns(TableLayout.of_version(opened.snapshot)), "")


def lacking_expressions(spark: SparkSession, opened: TableSnapshot) -> list[str]:
    """Returns a sentence for each index of an expression that files lack, as this session understands it."""
    layout = TableLayout.of_version(opened.snapshot)
    if not layout.config.indexes.expressions:
        return []
    here = " that this session can use (its ANSI mode, time zone and other settings count)"
    found = _gaps(opened, wanted_expressions(spark, layout), here)
    files = with_rows(opened.files)
    for each in expressions_of(spark, layout, layout.config.indexes.stats_expressions):
        lacking = int(_unmeasured(opened, files, each.column.path).sum())
        found += [_gap(lacking, opened, f"statistics of {each.column.path[1]}", here)] if lacking else []
    return found


def _gaps(opened: TableSnapshot, wanted: Wanted, here: str) -> list[str]:
    parts = [(Wanted((each,)), f"Bloom filter on {_shown((each.path,))}") for each in wanted.filtered]
    parts += [
        (Wanted((), (each,)), f"entries in the lookup index on {_shown(each.paths)}") for each in wanted.looked_up
    ]
    counts = [(len(with_rows(files_without(opened, part))), what) for part, what in parts]
    return [_gap(lacking, opened, what, here) for lacking, what in counts if lacking]


def _shown(paths: KeyPaths) -> str:
    return format_column_set(tuple(path[:2] if path[0] == EXPRESSION else path for path in paths))


def _gap(lacking: int, opened: TableSnapshot, what: str, here: str) -> str:
    have = "has" if lacking == 1 else "have"
    of = f"{lacking:,} of {counted(len(opened.files), 'file')}"
    operation = "zlayout_index" if opened.managed else "zlayout_refresh_index"
    who = f"{operation} in a session with the same settings" if here else operation
    return f"{of} {have} no {what}{here}; {who} adds them"


def lacking_files(spark: SparkSession, opened: TableSnapshot, layout: TableLayout) -> list[DataFiles]:
    """Returns the files that lack something of columns, statistics of expressions, or something else of these."""
    of_columns = files_without(opened, wanted_columns(layout))
    return [of_columns, files_unmeasured(spark, opened, layout), _files_uncomputed(spark, opened, layout)]


def files_unmeasured(spark: SparkSession, opened: TableSnapshot, layout: TableLayout) -> DataFiles:
    """Returns the files without statistics of one of the expressions, as this session understands them."""
    files = with_rows(opened.files)
    lacks = np.zeros(len(files), dtype=bool)
    for each in expressions_of(spark, layout, layout.config.indexes.stats_expressions):
        lacks |= _unmeasured(opened, files, each.column.path)
    return files.filter(pa.array(lacks))


def _unmeasured(opened: TableSnapshot, files: DataFiles, path: ColumnPath) -> Flags:
    """Returns which files have no statistics of an expression."""
    bounds = opened.index.statistics(files, [path]).column(path)
    if bounds is None:
        return np.ones(len(files), dtype=bool)
    lacks: Flags = ~bounds.null_count.is_valid().to_numpy(zero_copy_only=False)
    return lacks


def _files_uncomputed(spark: SparkSession, opened: TableSnapshot, layout: TableLayout) -> DataFiles:
    """Returns the files without a Bloom filter or entries of an expression, as this session understands them."""
    return with_rows(files_without(opened, wanted_expressions(spark, layout)))


def lacking_and_tried(opened: TableSnapshot, wanted: Wanted) -> tuple[Flags, Flags]:
    """Returns which files lack something, and for which files every lacking part was tried and cannot be built."""
    files = opened.files
    filters, lookups = opened.index.membership(files), opened.index.lookups(files)
    lacks, untried = (np.zeros(len(files), dtype=bool) for _ in range(2))
    nothing = np.zeros(len(files), dtype=bool)
    for column in wanted.filtered:
        known, refused = (nothing, nothing) if filters is None else filters.state(column.path, str(column.type))
        lacks |= ~known
        untried |= ~(known | refused)
    for key in wanted.looked_up:
        known, refused = (nothing, nothing) if lookups is None else (lookups.covered(key), lookups.untold(key))
        lacks |= ~known
        untried |= ~(known | refused)
    return lacks, ~untried


def with_rows(files: DataFiles) -> DataFiles:
    """Returns the files that have rows. Spark computes nothing for the others."""
    return files.filter(pc.greater(files["row_count"], 0))
