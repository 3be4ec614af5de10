"""Writes rows in the order in which they come: files that are appended to one another, and sorted rows.

All rows are of one partition, and stay in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from dbt.adapters.zlayout.curve.model import PartitionKey
from dbt.adapters.zlayout.spark.files.arrow_source import ArrowSource
from dbt.adapters.zlayout.spark.rewrite.build import BuildTask
from dbt.adapters.zlayout.spark.schema.arrow_columns import typed


@dataclass(frozen=True)
class OrderedTask:
    """Task spec: everything that a task needs to write rows in their order.

    Attributes:
        build: How to write files. It has no curve.
        partition: The partition of the rows.
    """

    build: BuildTask
    partition: PartitionKey

    def of_rows(self, incoming: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Writes the rows of a task, which are the table's data columns, as one file, or as more if they are many."""
        tables = (
            pa.Table.from_batches([typed(batch, self.build.schema)], self.build.schema)
            for batch in incoming
            if batch.num_rows
        )
        yield from self._written(0, tables)

    def of_units(self, source: ArrowSource, incoming: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Writes each unit of a source as a file. The incoming rows are numbers of units."""
        for number in (number for batch in incoming for number in batch.column(0).to_pylist()):
            yield from self._written(number, (rows for rows in source.tables([number]) if rows.num_rows))

    def _written(self, file: int, tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        target = (json.dumps(self.partition), file, 0)
        # The leaves only rise. So a row group ends where it is full.
        for report in self.build.files((target, leaf, rows) for leaf, rows in enumerate(tables)):
            yield report.to_batch()
