"""Statistics of expressions, which Spark computes from the files of a commit before the commit is made.

The index keeps them beside those of columns, so every kind of commit keeps them. A file without them is read.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions

from dbt.adapters.zlayout.errors import ConfigError
from dbt.adapters.zlayout.index.statistics.column_stats import EXAMINED, column_paths, column_stats_table
from dbt.adapters.zlayout.index.statistics.tracked import TrackedColumn
from dbt.adapters.zlayout.pruning.statistics.validation import contiguous
from dbt.adapters.zlayout.spark.catalyst.expressions import (
    BoundExpression,
    ExpressionForms,
    settings_of,
    with_plain_texts,
)
from dbt.adapters.zlayout.spark.catalyst.tree import NotUnderstoodError
from dbt.adapters.zlayout.spark.jobs.jobs import AS_STORED, Progress, why_failed
from dbt.adapters.zlayout.spark.jobs.workers import use_driver_python
from dbt.adapters.zlayout.spark.jvm.scala import Jvm
from dbt.adapters.zlayout.spark.read.frame_statistics import statistics_by_file
from dbt.adapters.zlayout.spark.snapshot.table_layout import TableLayout
from dbt.adapters.zlayout.store import Store
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG = logging.getLogger(__name__)
# Halving finds one file of a thousand that raises an error in about twenty reads.
_MOST_READS = 24
_SETTINGS = {**AS_STORED, "spark.sql.execution.arrow.maxRecordsPerBatch": "65536"}
_CASE = "spark.sql.caseSensitive"


def check_expressions(spark: SparkSession, texts: Sequence[str] | None, layout: TableLayout, subject: str) -> None:
    """Checks that expressions can have statistics.

    Raises:
        ConfigError: With a sentence for each that cannot.
    """
    forms = _forms(spark, layout) if texts else None
    problems = [why for text in texts or () if forms is not None and (why := _problem(forms, text, layout)) is not None]
    if problems:
        raise ConfigError(problems, subject)


def _problem(forms: ExpressionForms, text: str, layout: TableLayout) -> str | None:
    try:
        forms.of(text)
    except NotUnderstoodError as error:
        folders = f" (partition columns {', '.join(layout.partition_by)} do not count)" if layout.partition_by else ""
        return (
            f"stats_expressions: {text!r} can have no statistics: {error}; allowed are deterministic SQL expressions "
            f"on columns in the files{folders}, with a value that has an order"
        )
    return None


def expressions_of(spark: SparkSession, layout: TableLayout) -> tuple[BoundExpression, ...]:
    """Returns the expressions of a table that have statistics in this session."""
    texts = layout.config.indexes.stats_expressions
    return _forms(spark, layout).known(texts) if texts else ()


def _forms(spark: SparkSession, layout: TableLayout) -> ExpressionForms:
    return ExpressionForms(Jvm.of(spark), spark._jsparkSession, layout.data_json)


def with_expressions(
    spark: SparkSession,
    store: Store,
    files: DataFiles,
    column_stats: pa.Table,
    layout: TableLayout,
) -> pa.Table:
    """Returns statistics of files with those of the table's expressions.

    Args:
        spark: The session whose time zone and ANSI mode apply.
        files: The files, which need not be part of a version yet.
        column_stats: Statistics of their columns, one row per file.
        layout: The table's settings and columns.
    """
    if not layout.config.indexes.stats_expressions or not len(files):
        return column_stats
    return joined_statistics(column_stats, statistics_of_expressions(spark, store, files, layout))


def joined_statistics(column_stats: pa.Table, found: pa.Table) -> pa.Table:
    """Returns statistics of columns together with those of expressions, in the order of the former."""
    names, paths = column_paths(column_stats.schema), contiguous(column_stats.column("path"))
    structs = {path: contiguous(column_stats.column(name)) for path, name in names.items()}
    rows = pc.index_in(paths, value_set=contiguous(found.column("path")))
    for path, name in column_paths(found.schema).items():
        structs[path] = contiguous(found.column(name)).take(rows)
    return column_stats_table(paths, list(structs), list(structs.values()), contiguous(column_stats.column(EXAMINED)))


def statistics_of_expressions(
    spark: SparkSession, store: Store, files: DataFiles, layout: TableLayout, progress: Progress | None = None
) -> pa.Table:
    """Returns the statistics of a table's expressions, one row per file. A file for which one fails is left out."""
    expressions = expressions_of(spark, layout)
    columns = [TrackedColumn(each.column.path, each.column.type) for each in expressions]
    values = [functions.expr(each.column.path[1]) for each in expressions]
    found, left = [], [files] if expressions else []
    session, schema_json = _session(spark), with_plain_texts(layout.data_json)
    for _ in range(_MOST_READS):
        if not left:
            break
        some = left.pop()
        try:
            found.append(statistics_by_file(session, store, schema_json, some, columns, values, progress))
        except Exception as error:  # statistics are advice: the write goes on
            _LOG.warning("statistics of expressions cannot be computed for %d files: %s", len(some), why_failed(error))
            half = len(some) // 2
            left += [part for part in (some[half:], some[:half]) if half and len(part)]
    nothing = column_stats_table(pa.array([], pa.string()), [], [])
    return pa.concat_tables(found) if found else nothing


def _session(spark: SparkSession) -> SparkSession:
    """Returns a session that reads files as they are stored, and evaluates expressions as this one does."""
    use_driver_python(spark)
    session = spark.newSession()
    kept = {_CASE: str(spark.conf.get(_CASE)), **settings_of(spark._jsparkSession).to_dict()}
    for key, value in {**_SETTINGS, **kept}.items():
        session.conf.set(key, value)
    return session
