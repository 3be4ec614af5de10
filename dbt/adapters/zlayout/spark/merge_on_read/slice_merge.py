"""Merges file slices one by one inside tasks, with Arrow: base rows keep their order, and no row enters the JVM.

The result is the same as that of the query `RecordView.merged`. That query still handles keys that Arrow and Spark
compare differently, files that Spark reads differently, and log files that do not fit into the memory of a task.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.config.table_type import DELETE, INSTANT, OP, UPSERT
from dbt.adapters.zlayout.curve.model import CurveModel
from dbt.adapters.zlayout.layout.plans.compaction_plan import CompactionOperation
from dbt.adapters.zlayout.spark.files.arrow_source import ArrowSource, in_schema
from dbt.adapters.zlayout.spark.files.parquet_file import ordered_by
from dbt.adapters.zlayout.spark.rewrite.build import BuildTask
from dbt.adapters.zlayout.spark.schema.arrow_columns import key_table
from dbt.adapters.zlayout.spark.schema.types import fields_of
from dbt.adapters.zlayout.store import Store, open_store

# Limit for the log records of one slice, which are held in memory. Base rows are read one row group at a time.
_MOST_LOG_BYTES = 256 << 20
_ROW, _RANK = "__zl_row", "__zl_rank"


def tells_apart(keys: Sequence[str], data_json: str) -> bool:
    """Returns whether Arrow and Spark agree on which record keys are equal.

    Args:
        keys: Names of the key columns. Partition columns among them have a single value within a slice.
        data_json: Spark's JSON of the data columns.
    """
    fields = [field for field in fields_of(data_json) if field.name in keys]
    # They disagree on -0.0, on NaN, and on texts that a collation treats as equal.
    return bool(fields) and not any(
        field.collated
        or field.arrow_type is None
        or field.arrow_type.num_fields
        or pa.types.is_floating(field.arrow_type)
        for field in fields
    )


@dataclass(frozen=True)
class SliceMerge:
    """Task spec: everything that a task needs to merge its slices.

    Attributes:
        build: How to write files, one per file group. Its last partition column is the file group.
        keys: Data columns of the record key.
        log_schema: Arrow schema of log files.
        slices: All slices. Task n takes slices n, n + tasks, ….
        tasks: Number of tasks.
    """

    build: BuildTask
    keys: tuple[str, ...]
    log_schema: pa.Schema
    slices: tuple[CompactionOperation, ...]
    tasks: int

    def __call__(self, incoming: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Writes the files of one task. The incoming rows are task numbers.

        A slice gets no file if it is left to Spark, or if no row of it remains.
        """
        numbers = (number for batch in incoming for number in batch.column(0).to_pylist())
        store = open_store(self.build.root_uri)
        model = CurveModel.from_bytes(self.build.model) if self.build.model is not None else None
        for number in numbers:
            for each in self.slices[number :: self.tasks]:
                target = (json.dumps([*(value for _, value in each.partition), each.group]), 0, 0)
                merged = (rows for rows in self._merged(store, each, model) if rows.num_rows)
                # The rows already follow the curve.
                files = replace(self.build, model=None).files((target, leaf, rows) for leaf, rows in enumerate(merged))
                yield from (report.to_batch() for report in files)

    def _merged(self, store: Store, slice_: CompactionOperation, model: CurveModel | None) -> Iterator[pa.Table]:
        """Yields the rows of a slice in tables of about one row group, or nothing if Spark has to read the slice."""
        logs = ArrowSource.of(store, slice_.logs, self.log_schema, ())
        base = ArrowSource.of(store, [slice_.base], self.build.schema, ()) if slice_.base is not None else None
        if logs is None or (base is None and slice_.base is not None):
            return
        records = _held(logs.tables(range(len(logs.units))))
        if records is None:
            return
        newest = self._newest(records)
        replaced = in_schema(newest.select(self.keys), self._key_schema)
        came = newest.filter(pc.equal(newest[OP].cast(pa.string()), UPSERT)).select(self.build.schema.names)
        if base is not None:
            yield from self._with_base(base, replaced, in_schema(came, base.schema), model)
        else:
            yield from self._in_row_groups(ordered_by(came, self._places(came, model)))

    def _newest(self, records: pa.Table) -> pa.Table:
        """Returns the newest upsert or delete of each key."""
        keys = in_schema(records.select(self.keys), self._key_schema)
        told = keys.append_column(INSTANT, records[INSTANT]).append_column(_ROW, _numbers(records))
        told = told.filter(pc.is_in(records[OP].cast(pa.string()), value_set=pa.array([UPSERT, DELETE])))
        told = told.sort_by(INSTANT)
        told = told.append_column(_RANK, _numbers(told))
        # One thread, because a task has one core. It also makes the order the same in each attempt.
        last = told.group_by(list(self.keys), use_threads=False).aggregate([(_RANK, "max")])[f"{_RANK}_max"]
        return records.take(told[_ROW].take(last).combine_chunks())

    @property
    def _key_schema(self) -> pa.Schema:
        return pa.schema([self.log_schema.field(name) for name in self.keys])

    def _with_base(
        self, base: ArrowSource, replaced: pa.Table, came: pa.Table, model: CurveModel | None
    ) -> Iterator[pa.Table]:
        places = self._places(came, model)
        came, places = ordered_by(came, places), np.sort(places)
        done = 0
        for rows in base.tables(range(len(base.units))):
            kept = rows.filter(self._keeps(rows, replaced))
            end = done
            if model is not None and rows.num_rows:
                # New rows up to the last of these base rows are sorted in. Without a curve, new rows go to the end.
                last = self._places(rows.slice(rows.num_rows - 1), model)[0]
                end = max(done, int(np.searchsorted(places, last, "right")))
            if end > done:
                kept = pa.concat_tables([kept, came.slice(done, end - done)]).unify_dictionaries()
                kept = ordered_by(kept, self._places(kept, model))
            done = end
            yield from self._in_row_groups(kept)
        yield from self._in_row_groups(came.slice(done))

    def _keeps(self, rows: pa.Table, replaced: pa.Table) -> pa.ChunkedArray | pa.Array:
        """Returns a mask over the base rows: True if no log record replaces the row."""
        keys = in_schema(rows.select(self.keys), self._key_schema)
        if len(self.keys) == 1:
            return pc.invert(pc.is_in(keys[0], value_set=replaced[0].combine_chunks()))
        numbered = keys.append_column(_ROW, _numbers(keys))
        left = numbered.join(replaced, list(self.keys), join_type="left anti", use_threads=False)
        found = np.zeros(rows.num_rows, bool)
        found[left[_ROW].to_numpy()] = True
        return pa.array(found)

    def _places(self, rows: pa.Table, model: CurveModel | None) -> npt.NDArray[np.uint64]:
        """Returns the position of each row on the curve, or zeros without a curve."""
        if model is None:
            return np.zeros(rows.num_rows, np.uint64)
        return model.curve_values(key_table(rows, self.build.keys).columns)

    def _in_row_groups(self, rows: pa.Table) -> Iterator[pa.Table]:
        for start in range(0, rows.num_rows, self.build.row_group_rows):
            yield rows.slice(start, self.build.row_group_rows)


def _held(tables: Iterable[pa.Table]) -> pa.Table | None:
    """Returns the tables as one table, or None if they take too much memory."""
    found, size_bytes = [], 0
    for each in tables:
        found.append(each)
        size_bytes += each.nbytes
        if size_bytes > _MOST_LOG_BYTES:
            return None
    return pa.concat_tables(found).unify_dictionaries()


def _numbers(rows: pa.Table) -> pa.Array:
    return pa.array(np.arange(rows.num_rows))
