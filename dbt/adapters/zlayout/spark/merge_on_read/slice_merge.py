"""File slices merged one by one inside the tasks: base rows stay in their order, and no row passes through the JVM.

It gives the rows of `RecordView.merged`. Keys that Arrow and Spark compare differently are left to that query, and so
are files that Spark reads differently and logs too large for the memory of a task.
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

# In memory, of the logs of one slice; base rows are read one row group after the other.
_MOST_LOG_BYTES = 256 << 20
_ROW, _RANK = "__zl_row", "__zl_rank"


def tells_apart(keys: Sequence[str], data_json: str) -> bool:
    """Whether Arrow and Spark agree on which record keys are equal.

    Args:
        keys: Names of the key's columns; those that are no data columns have one value in a slice.
        data_json: Spark's JSON of the data columns.
    """
    fields = [field for field in fields_of(data_json) if field.name in keys]
    # Not so for -0.0 and NaN, nor for texts that a collation takes for one.
    return bool(fields) and not any(
        field.collated
        or field.arrow_type is None
        or field.arrow_type.num_fields
        or pa.types.is_floating(field.arrow_type)
        for field in fields
    )


@dataclass(frozen=True)
class SliceMerge:
    """What a task needs to know to merge slices.

    Attributes:
        build: How files are written, one a file group; its last partition column is the group.
        keys: Record key, the data columns of it.
        log_schema: Arrow types of the columns of logs.
        slices: All slices; task n takes slices n, n + tasks, ….
        tasks: How many tasks there are.
    """

    build: BuildTask
    keys: tuple[str, ...]
    log_schema: pa.Schema
    slices: tuple[CompactionOperation, ...]
    tasks: int

    def __call__(self, incoming: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Writes the files of one task; the incoming rows are numbers of tasks.

        A slice that is left to Spark has no file, nor has one of which no row is left.
        """
        numbers = (number for batch in incoming for number in batch.column(0).to_pylist())
        store = open_store(self.build.root_uri)
        model = CurveModel.from_bytes(self.build.model) if self.build.model is not None else None
        for number in numbers:
            for each in self.slices[number :: self.tasks]:
                target = (json.dumps([*(value for _, value in each.partition), each.group]), 0, 0)
                merged = (rows for rows in self._merged(store, each, model) if rows.num_rows)
                # The rows come in the order of the curve.
                files = replace(self.build, model=None).files((target, leaf, rows) for leaf, rows in enumerate(merged))
                yield from (report.to_batch() for report in files)

    def _merged(self, store: Store, slice_: CompactionOperation, model: CurveModel | None) -> Iterator[pa.Table]:
        """The rows of a slice in tables of about a row group; none where Spark has to read it."""
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
        """The newest record of each key that is an upsert or a delete."""
        keys = in_schema(records.select(self.keys), self._key_schema)
        told = keys.append_column(INSTANT, records[INSTANT]).append_column(_ROW, _numbers(records))
        told = told.filter(pc.is_in(records[OP].cast(pa.string()), value_set=pa.array([UPSERT, DELETE])))
        told = told.sort_by(INSTANT)
        told = told.append_column(_RANK, _numbers(told))
        # In one thread, as a task has one core; then the order is the same in each attempt, too.
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
                # What comes up to the last of these rows is put among them; without a curve it is put last.
                last = self._places(rows.slice(rows.num_rows - 1), model)[0]
                end = max(done, int(np.searchsorted(places, last, "right")))
            if end > done:
                kept = pa.concat_tables([kept, came.slice(done, end - done)]).unify_dictionaries()
                kept = ordered_by(kept, self._places(kept, model))
            done = end
            yield from self._in_row_groups(kept)
        yield from self._in_row_groups(came.slice(done))

    def _keeps(self, rows: pa.Table, replaced: pa.Table) -> pa.ChunkedArray | pa.Array:
        """Which base rows no record replaces; bool, one a row."""
        keys = in_schema(rows.select(self.keys), self._key_schema)
        if len(self.keys) == 1:
            return pc.invert(pc.is_in(keys[0], value_set=replaced[0].combine_chunks()))
        numbered = keys.append_column(_ROW, _numbers(keys))
        left = numbered.join(replaced, list(self.keys), join_type="left anti", use_threads=False)
        found = np.zeros(rows.num_rows, bool)
        found[left[_ROW].to_numpy()] = True
        return pa.array(found)

    def _places(self, rows: pa.Table, model: CurveModel | None) -> npt.NDArray[np.uint64]:
        """Position of each row on the curve; zeros without one."""
        if model is None:
            return np.zeros(rows.num_rows, np.uint64)
        return model.curve_values(key_table(rows, self.build.keys).columns)

    def _in_row_groups(self, rows: pa.Table) -> Iterator[pa.Table]:
        for start in range(0, rows.num_rows, self.build.row_group_rows):
            yield rows.slice(start, self.build.row_group_rows)


def _held(tables: Iterable[pa.Table]) -> pa.Table | None:
    """The tables as one; None where they take too much memory."""
    found, size_bytes = [], 0
    for each in tables:
        found.append(each)
        size_bytes += each.nbytes
        if size_bytes > _MOST_LOG_BYTES:
            return None
    return pa.concat_tables(found).unify_dictionaries()


def _numbers(rows: pa.Table) -> pa.Array:
    return pa.array(np.arange(rows.num_rows))
