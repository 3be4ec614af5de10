"""Advice on the layout of a table: reads the workload, samples the rows, and asks the index what is read now.

With ``zorder: auto``, the advice gives a table its keys when all of it is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from dbt.adapters.zlayout.advice.advice import MIN_GAIN, Advice, Present, Query, TableSize, advise
from dbt.adapters.zlayout.advice.sample import Layout, Sample
from dbt.adapters.zlayout.advice.table_settings import PresentSettings, missing_expressions
from dbt.adapters.zlayout.config.column_names import format_column_path, parse_column_path
from dbt.adapters.zlayout.config.table_config import TableConfig
from dbt.adapters.zlayout.config.workload import GIVEN, WeightedCondition, heaviest, merged
from dbt.adapters.zlayout.curve.keys import is_orderable
from dbt.adapters.zlayout.curve.model import CurveModel
from dbt.adapters.zlayout.curve.query_boxes import QueryBoxes
from dbt.adapters.zlayout.errors import ConfigError, CorruptError, StoreError, TableNotFoundError
from dbt.adapters.zlayout.index.statistics.tracked import canonical_type
from dbt.adapters.zlayout.predicate.expr import Call, ColumnPath, Constant, Expr, columns_of, expressions_of, leaves
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog, TableName
from dbt.adapters.zlayout.spark.files.parquet_file import ParquetSettings
from dbt.adapters.zlayout.spark.jobs.jobs import Progress, failing_as_write_error
from dbt.adapters.zlayout.spark.read.conditions import predicates_of, predicates_that_fit
from dbt.adapters.zlayout.spark.read.record_tables import files_name
from dbt.adapters.zlayout.spark.read.scan_log import active_log, logged_workload, read_scans
from dbt.adapters.zlayout.spark.read.session import open_managed
from dbt.adapters.zlayout.spark.rewrite.key_sample import bytes_of_a_row, column_sample, kept_on_disk, sampled
from dbt.adapters.zlayout.spark.schema.table_schema import type_at
from dbt.adapters.zlayout.spark.schema.types import arrow_carries, arrow_schema
from dbt.adapters.zlayout.spark.snapshot.table_layout import TableLayout, config_of, tracked_of
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot
from dbt.adapters.zlayout.table.explanation import conjunct_reports

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ONLY_INDEXED = (
    "make the table managed first (`zlayout adopt <table> --manage`): one that is only indexed has no layout of its "
    "own, and no statistics of expressions"
)
_MOST_OBSERVED = 200
_FEWEST_FILES = 16
"""A new table is judged as if it had this many files, because it will grow."""


def advice_for_table(
    spark: SparkSession,
    opened: TableSnapshot,
    workload: Sequence[WeightedCondition],
    subject: str,
    min_gain: float = MIN_GAIN,
    *,
    may_partition: bool = True,
    may_choose_keys: bool = True,
    may_index: bool = True,
    progress: Progress | None,
) -> Advice:
    """Returns advice on the layout of a version of a table. Writes nothing.

    The three ``may_…`` and ``min_gain`` are those of `advise`. Error messages name the table as ``subject``.

    Raises:
        ConfigError: A condition does not fit the table, or there is nothing to judge.
    """
    # Not a number: each comparison with it is false.
    if isinstance(min_gain, bool) or not isinstance(min_gain, int | float) or not 0 <= min_gain <= 1:
        raise ConfigError([f"min_gain: {min_gain!r} is not a number from 0 to 1"], subject)
    queries = _queries(spark, opened.row_schema_json, workload, subject)
    config = config_of(opened.snapshot)
    keys = config.clustering.columns
    folders: tuple[ColumnPath, ...] = tuple((name,) for name in opened.partition_columns)
    paths = _sampled_paths(opened.row_schema_json, queries, (*keys, *folders))
    rows = opened.files.total_rows
    if not rows:
        raise ConfigError(
            ["the table has no rows, so there is nothing to judge a layout by; write rows first"], subject
        )
    indexed = config.indexes.expressions
    expressions = {
        each: share for each, share in _expressions(opened, queries, workload).items() if each not in indexed
    }
    manage_first = () if opened.managed else (_ONLY_INDEXED,)
    if not any(columns_of(each.predicate) & set(paths) for each in queries):
        helpful = [each.why for each in missing_expressions(expressions)]
        raise ConfigError(
            ["; ".join([_nothing_compared(queries), *helpful, *(manage_first if helpful else ())])], subject
        )
    tracked = tuple(each.path for each in tracked_of(config, opened.schema_json, opened.partition_columns))
    untracked = frozenset(path for path in paths if path not in tracked and path not in folders)
    sample = Sample.of(column_sample(Catalog(spark), opened, paths, progress), paths, untracked)
    known = set(paths)
    layout = Layout(
        tuple(path for path in keys if path in known),
        tuple(path for path in folders if path in known),
        config.clustering.curve == "linear",
        _asked(opened, keys) if known.issuperset(keys) else None,
    )
    size = TableSize(rows, len(opened.files), opened.files.total_bytes, config.file_sizing.target_file_bytes)
    lookup = tuple(each[0] for each in config.indexes.lookup or () if len(each) == 1)
    columns = config.statistics.columns
    settings = PresentSettings(
        config.file_sizing.row_group_rows,
        str(columns) if isinstance(columns, int) else ", ".join(map(format_column_path, columns)),
        tuple(path for path in tracked if path[0] in arrow_schema(opened.row_schema_json).names),
        expressions,
        tuple((name,) for name in config.table_type.unique_key),
    )
    present = Present(layout, tuple(config.indexes.bloom or ()), partial(_opened, opened, rows), lookup, settings)
    joined = sorted({name for each in workload for name in each.joined} & {path[0] for path in folders})
    found = advise(
        sample,
        queries,
        size,
        present,
        min_gain,
        # Spark skips by a join's values only for partition columns.
        may_partition=may_partition and not joined,
        may_choose_keys=may_choose_keys,
        may_index=may_index,
    )
    notes = [*found.notes, *manage_first]
    if joined:
        notes.append(f"the partition columns stay: joins skip by {', '.join(joined)} while they run")
    if indexed:
        notes.append(f"files that indexes of expressions skip are not counted, now or then: {', '.join(indexed)}")
    return replace(found, notes=tuple(notes))


def _expressions(
    opened: TableSnapshot, queries: Sequence[Query], workload: Sequence[WeightedCondition]
) -> dict[str, float]:
    """Returns the expressions whose statistics would help, with the share of the workload that has each."""
    found: dict[str, float] = {}
    asked = [(each.weight, _lacking_bounds(opened, each.predicate)) for each in queries]
    for weight, expressions in [*asked, *((each.weight, each.expressions) for each in workload)]:
        for expression in expressions:
            found[expression] = found.get(expression, 0.0) + weight
    total = sum(each.weight for each in workload)
    return {expression: weight / total for expression, weight in found.items()}


def _lacking_bounds(opened: TableSnapshot, predicate: Expr) -> Iterable[str]:
    """Returns the expressions in a predicate that have no bounds in any file, each once."""
    found = dict.fromkeys(expressions_of(predicate))
    if any(isinstance(getattr(leaf, "operand", None), Call) for leaf in leaves(predicate)):
        # Whether a function such as lower() has bounds depends on the values of the files.
        reports = conjunct_reports(opened, predicate)
        found.update(dict.fromkeys(expression for each in reports for expression in each.expressions))
    return found


def _asked(opened: TableSnapshot, keys: Sequence[ColumnPath]) -> QueryBoxes | None:
    """Returns what the cuts of a version follow; None if they follow the rows alone, or cannot be read."""
    if opened.snapshot.curve is None or not keys:
        return None
    try:
        model = CurveModel.from_bytes(opened.store.read(opened.snapshot.curve))
    except (CorruptError, StoreError):
        return None
    return model.asked if model.columns == tuple(keys) else None


def names_of(name: TableName) -> tuple[str, str]:
    """Returns the names under which the scan log may have a table: its own, and that of its files."""
    return str(name), str(files_name(name))


@contextmanager
def with_chosen_keys(
    spark: SparkSession, name: TableName, frame: DataFrame, config: TableConfig, progress: Progress | None
) -> Iterator[tuple[DataFrame, TableConfig]]:
    """Lets the workload choose the keys and the cuts of a table that is about to be written as a whole.

    With ``zorder: auto`` it chooses both, with other keys and a workload only the cuts. Keys and cuts of an existing
    table change only if the present files show that others are better by `MIN_GAIN`. For a new table the query runs
    once: its rows are kept on disk until the context ends. ``progress`` receives a line that says what was chosen, and
    why.

    Yields:
        The rows and the settings to write. The settings are the given ones without ``zorder: auto``.

    Raises:
        ConfigError: A condition of the workload does not fit the columns.
        WriteError: The query failed.
    """
    asking = _asking(spark, name, frame, config, progress)
    if asking is None:
        yield frame, config
        return
    opened = _present_version(asking)
    if opened is not None:
        yield frame, _chosen_by_files(asking, opened)
        return
    with kept_on_disk(frame) as rows:
        with failing_as_write_error(str(name)):
            advice = _advice_for_rows(rows, asking.layout, asking.queries, asking.paths, progress)
        if advice is not None and not asking.auto and not advice.by_workload:
            _tell(progress, f"{_KEEPS_CUTS}: {advice.why}")
            advice = None
        yield rows, config if advice is None else _with_keys(asking.layout, advice, progress)


@dataclass(frozen=True)
class _WorkloadChoice:
    """A workload that is to choose for a table.

    Attributes:
        layout: As the settings want it.
        workload: The conditions.
        queries: What they mean.
        paths: The columns to sample.
        progress: Receives lines of text.
    """

    spark: SparkSession
    name: TableName
    layout: TableLayout
    workload: Sequence[WeightedCondition]
    queries: Sequence[Query]
    paths: tuple[ColumnPath, ...]
    progress: Progress | None

    @property
    def auto(self) -> bool:
        """Whether the workload chooses keys; otherwise cuts alone."""
        return self.layout.config.auto_keys.wanted


def _asking(
    spark: SparkSession, name: TableName, frame: DataFrame, config: TableConfig, progress: Progress | None
) -> _WorkloadChoice | None:
    """Returns the workload that is to choose; None if there is nothing to choose, or nothing to choose by."""
    auto, workload = config.auto_keys.wanted, config.auto_keys.workload
    if auto and (log := active_log(lambda key: str(spark.conf.get(key, "")))) is not None:
        workload = merged([*workload, *logged_workload(read_scans(log.folder), names_of(name))])
    if not auto and (not config.clustering.columns or config.clustering.curve == "linear"):
        return None
    if not workload:
        if auto:
            _tell(progress, "zorder: auto keeps the keys as they are, because no workload is known yet")
        return None
    layout = TableLayout.of(config, str(frame.schema.json()), str(name))
    queries = _queries(spark, layout.schema_json, workload, str(name))
    paths = _sampled_paths(layout.schema_json, queries, () if auto else layout.keys)
    if not any(columns_of(each.predicate) & set(paths) for each in queries):
        if auto and any(each.source == GIVEN for each in workload):
            if not all(isinstance(each.predicate, Constant) for each in queries):
                raise ConfigError([_nothing_compared(queries)], str(name))
            _tell(progress, f"zorder: auto keeps the keys as they are: {_nothing_compared(queries)}")
        return None
    return _WorkloadChoice(spark, name, layout, workload, queries, paths, progress)


def _chosen_by_files(asking: _WorkloadChoice, opened: TableSnapshot) -> TableConfig:
    """Returns the settings with what the present files say is better."""
    found = advice_for_table(
        asking.spark,
        opened,
        asking.workload,
        str(asking.name),
        may_partition=False,
        may_choose_keys=asking.auto,
        may_index=False,
        progress=asking.progress,
    )
    if found.change == "layout" or (asking.auto and found.zorder and not found.zorder_now):
        return _with_keys(asking.layout, found, asking.progress)
    kept = f"zorder: auto keeps {', '.join(found.zorder_now) or 'no keys'}" if asking.auto else _KEEPS_CUTS
    _tell(asking.progress, f"{kept}: {found.why}")
    return asking.layout.config


def _with_keys(layout: TableLayout, advice: Advice, progress: Progress | None) -> TableConfig:
    config, names = layout.config, layout.data_schema.names
    # The rows may lack a column of the present files, or have it as a partition column.
    keys = tuple(path for path in map(parse_column_path, advice.zorder) if path[0] in names)
    if not keys:
        _tell(progress, f"zorder: auto chooses no keys: {advice.why}")
        return config
    what = f"zorder: auto chooses {', '.join(map(format_column_path, keys))}" if config.auto_keys.wanted else _CUTS
    _tell(progress, f"{what}: {advice.why}")
    # Queries that name all keys cannot say where to cut along some of them.
    asked = advice.asked if len(keys) == len(advice.zorder) else None
    return replace(
        config,
        clustering=replace(config.clustering, columns=keys, asked=asked, by_workload=asked is not None),
        auto_keys=replace(config.auto_keys, why=advice.why),
    )


def _tell(progress: Progress | None, line: str) -> None:
    if progress is not None:
        progress(line)


def _present_version(asking: _WorkloadChoice) -> TableSnapshot | None:
    """Returns the newest version of a table if its files say how the workload reads it."""
    try:
        opened = open_managed(asking.spark, asking.name)[1]
    except (TableNotFoundError, CorruptError):
        return None  # a damaged table is replaced by one in a new folder
    columns = arrow_schema(opened.row_schema_json).names
    if not opened.files.total_rows or not all(path[0] in columns for path in asking.paths):
        return None
    if not asking.auto and config_of(opened.snapshot).clustering.columns != asking.layout.keys:
        return None
    return opened


def _advice_for_rows(
    rows: DataFrame,
    layout: TableLayout,
    queries: Sequence[Query],
    paths: tuple[ColumnPath, ...],
    progress: Progress | None,
) -> Advice | None:
    """Advises keys for rows that are not yet written; None if there are none."""
    folders: tuple[ColumnPath, ...] = tuple((name,) for name in layout.partition_by)
    paths = tuple(dict.fromkeys([*folders, *paths]))
    table, count = sampled(rows, layout.schema_json, paths, progress)
    if not count:
        return None
    spark, target = rows.sparkSession, layout.config.file_sizing.target_file_bytes
    if arrow_carries(layout.schema_json):
        ordered = str(rows.schema.json())
        settings = ParquetSettings(layout.config.writing.compression, ordered, str(spark.version))
        size_bytes = round(count * bytes_of_a_row(rows, ordered, settings, target))
    else:
        size_bytes = int(str(rows._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))
    # With the real size, a small table would have one file, for which all keys are alike.
    size = TableSize(count, 0, max(size_bytes, _FEWEST_FILES * target), target)
    auto = layout.config.auto_keys.wanted
    present = Present(Layout(() if auto else layout.keys, folders), tuple(layout.config.indexes.bloom or ()))
    sample = Sample.of(table, paths)
    return advise(sample, queries, size, present, may_partition=False, may_choose_keys=auto, may_index=False)


_CUTS = "workload: the cuts follow it"
_KEEPS_CUTS = "workload: the cuts stay as they are"


def _nothing_compared(queries: Sequence[Query]) -> str:
    constant = [each for each in queries if isinstance(each.predicate, Constant)]
    found = [
        f"{each.condition.sql!r} is {'always true' if each.predicate == Constant(True) else 'never true'}"
        for each in constant
    ]
    if len(constant) < len(queries):
        found.append("no condition compares a column that has an order; zlayout_explain says why for each")
    return f"workload: {'; '.join(found)}"


def _queries(spark: SparkSession, schema_json: str, workload: Sequence[WeightedCondition], subject: str) -> list[Query]:
    given = [each for each in workload if each.source == GIVEN]
    # Some observed conditions may name columns that the table no longer has.
    observed = heaviest((each for each in workload if each.source != GIVEN), _MOST_OBSERVED)
    read = predicates_of(spark, schema_json, [each.sql for each in given], subject)
    some = predicates_that_fit(spark, schema_json, [each.sql for each in observed])
    pairs = [*zip(given, read, strict=True), *zip(observed, some, strict=True)]
    return [Query(condition, predicate) for condition, predicate in pairs if predicate is not None]


def _sampled_paths(schema_json: str, queries: Sequence[Query], further: Sequence[ColumnPath]) -> tuple[ColumnPath, ...]:
    """Returns the columns to sample: those that conditions compare, and further ones."""
    schema = arrow_schema(schema_json)
    named = sorted({path for each in queries for path in columns_of(each.predicate)})
    wanted = dict.fromkeys([*further, *named])
    return tuple(
        path for path in wanted if path[0] in schema.names and is_orderable(canonical_type(type_at(schema, path)))
    )


def _opened(opened: TableSnapshot, rows: int, predicate: Expr) -> float:
    """Returns the share of rows in the files that a predicate reads, by the index."""
    kept = opened.scan(predicate).candidates
    return float(np.asarray(opened.files.column("row_count").to_numpy())[kept].sum()) / rows
