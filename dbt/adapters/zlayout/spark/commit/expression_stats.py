"""Statistics, Bloom filters and lookup entries of expressions. Spark computes them from new files before the commit.

The index keeps them beside those of columns, so every kind of commit keeps them. A file without them is read.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, functions

from dbt.adapters.zlayout.config import settings
from dbt.adapters.zlayout.config.table_config import OptionalIndexes
from dbt.adapters.zlayout.errors import CancelledError, ConfigError
from dbt.adapters.zlayout.index.lookup.lookup_key import LookupKey
from dbt.adapters.zlayout.index.statistics.column_stats import EXAMINED, column_paths, column_stats_table
from dbt.adapters.zlayout.index.statistics.tracked import TrackedColumn
from dbt.adapters.zlayout.pruning.statistics.validation import contiguous
from dbt.adapters.zlayout.spark.catalyst.expressions import (
    BoundExpression,
    ExpressionForms,
)
from dbt.adapters.zlayout.spark.catalyst.tree import NotUnderstoodError
from dbt.adapters.zlayout.spark.files.distinct_values import Pieces, Wanted
from dbt.adapters.zlayout.spark.jobs.jobs import AS_STORED, Progress, in_halves, why_failed
from dbt.adapters.zlayout.spark.jobs.workers import use_driver_python
from dbt.adapters.zlayout.spark.jvm.scala import Jvm
from dbt.adapters.zlayout.spark.jvm.session_settings import session_beside
from dbt.adapters.zlayout.spark.read.values_by_file import lacking_by_file, pieces_by_file, statistics_by_file
from dbt.adapters.zlayout.spark.schema.types import with_plain_texts
from dbt.adapters.zlayout.spark.snapshot.table_layout import TableLayout
from dbt.adapters.zlayout.store import Store
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles
from dbt.adapters.zlayout.timeline.log.entry import IndexSlices

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG = logging.getLogger(__name__)
_SETTINGS = {
    **AS_STORED,
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    # It computes a + b + c and c + b + a once, although floats make a difference.
    "spark.sql.subexpressionElimination.enabled": "false",
}
_OPTIONAL = "Bloom filters and lookup entries"
Found = TypeVar("Found")
Columns = Sequence[TrackedColumn]


def check_expressions(spark: SparkSession, wanted: OptionalIndexes, layout: TableLayout, subject: str) -> None:
    """Checks that the expressions of settings can have statistics, Bloom filters and lookup indexes.

    Raises:
        ConfigError: With a sentence for each that cannot.
    """
    every = [(settings.STATS_EXPRESSIONS.key, "statistics", text) for text in wanted.stats_expressions or ()]
    every += [(settings.BLOOM.key, "Bloom filter", text) for text in wanted.bloom_expressions]
    every += [(settings.LOOKUP.key, "lookup index", text) for text in wanted.lookup_expressions]
    if not every:
        return
    forms = _forms(spark, layout)
    found = {text: _bound_or_error(forms, text) for text in dict.fromkeys(text for _, _, text in every)}
    problems = [
        _problem(key, kind, text, error, layout)
        for key, kind, text in every
        if isinstance(error := found[text], NotUnderstoodError)
    ]
    if not problems:
        known = {text: each for text, each in found.items() if isinstance(each, BoundExpression)}
        others = forms.known([text for text in layout.config.indexes.expressions if text not in found])
        problems = _spelled_differently(every, known | {each.column.path[1]: each for each in others})
    if problems:
        raise ConfigError(problems, subject)


def _spelled_differently(given: Sequence[tuple[str, str, str]], known: Mapping[str, BoundExpression]) -> list[str]:
    """Returns a sentence for each expression that another index of the table has under another text.

    Conditions are looked up by one of the texts, so the index of the other would never be used.

    Args:
        given: Key, kind of index and text of each new expression.
        known: All expressions of the table by their text.
    """
    new = {text for _, _, text in given}
    return [
        f"{key}: {text!r} is the same expression as {other!r}, which the table already has; use one spelling for both"
        for key, _, text in given
        for other, bound in known.items()
        if (other < text or other not in new) and bound.is_form(known[text].form)
    ]


def _bound_or_error(forms: ExpressionForms, text: str) -> BoundExpression | NotUnderstoodError:
    try:
        return forms.of(text)
    except NotUnderstoodError as error:
        return error


def _problem(key: str, kind: str, text: str, error: NotUnderstoodError, layout: TableLayout) -> str:
    folders = f" (partition columns {', '.join(layout.partition_by)} do not count)" if layout.partition_by else ""
    return (
        f"{key}: {text!r} can have no {kind}: {str(error).rstrip('; ')}; allowed are deterministic SQL expressions "
        f"on columns in the files{folders}, with a value that has an order"
    )


def expressions_of(
    spark: SparkSession, layout: TableLayout, texts: Sequence[str] | None
) -> tuple[BoundExpression, ...]:
    """Returns those of a table's expressions that this session understands."""
    return _forms(spark, layout).known(texts) if texts else ()


def wanted_expressions(spark: SparkSession, layout: TableLayout) -> Wanted:
    """Returns the Bloom filters and lookup indexes of a table's expressions, as this session understands them."""
    filtered, looked_up = layout.config.indexes.bloom_expressions, layout.config.indexes.lookup_expressions
    columns = _columns_of(spark, layout, tuple(dict.fromkeys((*filtered, *looked_up))))
    return Wanted(
        tuple(columns[text] for text in filtered if text in columns),
        tuple(LookupKey((columns[text],)) for text in looked_up if text in columns),
    )


def pieces_of_expressions(
    spark: SparkSession,
    store: Store,
    instant: str,
    files: DataFiles,
    layout: TableLayout,
    progress: Progress | None = None,
) -> Pieces:
    """Returns the Bloom filters and lookup entries of a table's expressions: none where one fails for a row of a file.

    Args:
        spark: The session whose time zone and ANSI mode apply.
        store: The table's folder.
        instant: Instant of the transaction, which stages large parts.
        files: The files, which need not be part of a version yet.
        layout: The table's settings and columns.
        progress: Called with a line of text as the work goes on.
    """
    wanted = wanted_expressions(spark, layout)
    if not wanted.columns or not len(files):
        return Pieces()
    session, schema_json = _session(spark), with_plain_texts(layout.data_json)

    def pieces(some: DataFiles, columns: Columns) -> Pieces:
        of_them = Wanted(
            tuple(each for each in wanted.filtered if each in columns),
            tuple(key for key in wanted.looked_up if key.columns[0] in columns),
        )
        values = _values_of(of_them.columns)
        return pieces_by_file(session, store, instant, schema_json, some, of_them, values, progress)

    found = _by_expression(files, wanted.columns, pieces, _OPTIONAL)
    return Pieces.together([each for some in found for each in some])


def lacking_of_expressions(
    spark: SparkSession, store: Store, index: IndexSlices, files: DataFiles, layout: TableLayout
) -> list[tuple[str, str, str, int]]:
    """Returns the Bloom filters and lookup entries of expressions that lack values.

    Returns:
        For each the path of the file, the kind ('bloom' or 'lookup'), the expression and the number of values.
    """
    wanted = wanted_expressions(spark, layout)
    if not wanted.columns or not len(files):
        return []
    session, schema_json, values = _session(spark), with_plain_texts(layout.data_json), _values_of(wanted.columns)

    def lacking(some: DataFiles) -> list[tuple[str, str, int, int]]:
        return lacking_by_file(session, store, index, schema_json, some, wanted, values)

    paths = {"bloom": [each.path for each in wanted.filtered], "lookup": [key.paths[0] for key in wanted.looked_up]}
    found = [row for each in _computed(files, lacking, _OPTIONAL) for row in each]
    return [(path, kind, paths[kind][number][1], missing) for path, kind, number, missing in found]


def _columns_of(spark: SparkSession, layout: TableLayout, texts: Sequence[str]) -> dict[str, TrackedColumn]:
    """Returns what the index stores expressions as, by their text."""
    found = [TrackedColumn(each.column.path, each.column.type) for each in expressions_of(spark, layout, texts)]
    return {each.path[1]: each for each in found}


def _values_of(columns: Sequence[TrackedColumn]) -> list[Column]:
    return [functions.expr(each.path[1]) for each in columns]


def _by_expression(files: DataFiles, columns: Columns, compute: Callable[..., Found], what: str) -> list[list[Found]]:
    """Returns what is computed of files: of all expressions together or, where that fails, of one after the other.

    Returns:
        A list for all, or for each expression; it has a result for each part of the files.
    """
    if len(columns) > 1:
        try:
            return [[compute(files, columns)]]
        except CancelledError:
            raise
        except Exception as error:  # the index is advice: the write goes on
            _LOG.warning("%s of expressions are computed one after the other: %s", what, why_failed(error))
    return [_computed(files, partial(compute, columns=[each]), what) for each in columns]


def _computed(files: DataFiles, compute: Callable[[DataFiles], Found], what: str) -> list[Found]:
    """Returns what is computed of files; those for which it fails are left out, because the index is advice."""

    def failed(some: DataFiles, error: Exception) -> None:
        _LOG.warning("%s of expressions cannot be computed for %d files: %s", what, len(some), why_failed(error))

    return in_halves(files, compute, failed)


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
    """Returns the statistics of a table's expressions, one row per file; null where an expression fails for a row."""
    columns = list(_columns_of(spark, layout, layout.config.indexes.stats_expressions or ()).values())
    if not columns or not len(files):
        return column_stats_table(pa.array([], pa.string()), [], [])
    session, schema_json = _session(spark), with_plain_texts(layout.data_json)

    def statistics(some: DataFiles, columns: Columns) -> pa.Table:
        return statistics_by_file(session, store, schema_json, some, columns, _values_of(columns), progress)

    found = _by_expression(files, columns, statistics, "statistics")
    tables = [pa.concat_tables(some) for some in found if some]
    paths = pa.array(list({path: None for table in tables for path in table["path"].to_pylist()}), pa.string())
    return reduce(joined_statistics, tables, column_stats_table(paths, [], []))


def _session(spark: SparkSession) -> SparkSession:
    """Returns a session that reads files as they are stored, and evaluates expressions as this one does."""
    use_driver_python(spark)
    return session_beside(spark, _SETTINGS)
