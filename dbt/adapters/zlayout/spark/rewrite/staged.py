"""Combines the answers of the staging tasks, and builds a curve from their sample."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from dbt.adapters.zlayout.curve.model import CurveModel, PartitionKey
from dbt.adapters.zlayout.spark.rewrite.build import BuildTask
from dbt.adapters.zlayout.spark.schema.arrow_columns import table_of


@dataclass(frozen=True)
class Staged:
    """The combined answers of all staging tasks.

    Attributes:
        paths: Paths of the staged files.
        path_rows: Number of rows in each staged file.
        inline: Rows that came inline with the answers.
        rows: Total number of rows.
        arrow_bytes: Size of the rows in memory.
        bytes_per_row: Measured bytes of a row in a file. None if nothing was measured.
        samples: Samples, each with the number of rows that it was drawn from.
        rows_by_partition: Number of rows in each partition.
    """

    paths: tuple[str, ...]
    path_rows: tuple[int, ...]
    inline: tuple[pa.Table, ...]
    rows: int
    arrow_bytes: int
    bytes_per_row: float | None
    samples: tuple[tuple[int, pa.Table], ...]
    rows_by_partition: Mapping[PartitionKey, int]

    @classmethod
    def of(cls, answers: Iterable[Any]) -> Staged:
        """Combines answers, which are rows of ``RESULT_SCHEMA``."""
        answers = list(answers)
        counts: dict[PartitionKey, int] = {}
        for answer in answers:
            for *key, rows in json.loads(answer.partitions or "[]"):
                known = tuple(value or None for value in key)
                counts[known] = counts.get(known, 0) + rows
        measured = [(answer.rows, answer.bytes_per_row) for answer in answers if answer.bytes_per_row is not None]
        weight = sum(rows for rows, _ in measured)
        return cls(
            paths=tuple(answer.path for answer in answers if answer.path),
            path_rows=tuple(answer.rows for answer in answers if answer.path),
            inline=tuple(table_of(bytes(answer.inline)) for answer in answers if answer.inline),
            rows=sum(answer.rows for answer in answers),
            arrow_bytes=sum(answer.arrow_bytes for answer in answers),
            bytes_per_row=sum(rows * each for rows, each in measured) / weight if weight else None,
            samples=tuple((answer.sampled_from, table_of(bytes(answer.sample))) for answer in answers if answer.sample),
            rows_by_partition=counts,
        )

    @property
    def row_bytes(self) -> float:
        """Bytes of a row in a file or, if that was not measured, in memory."""
        return self.bytes_per_row or self.arrow_bytes / max(1, self.rows)

    @property
    def starts(self) -> tuple[float, ...]:
        """The share of staged rows that come before each staged file, from 0 to below 1."""
        before = np.cumsum([0, *self.path_rows])
        return tuple((before[:-1] / max(1, before[-1])).tolist())

    def uniform_sample(self) -> pa.Table:
        """Returns the tasks' samples, thinned so that every row has the same chance to be in the result."""
        share = min(table.num_rows / max(1, rows) for rows, table in self.samples)
        rng = np.random.default_rng()
        thinned = []
        for rows, table in self.samples:
            wanted = min(table.num_rows, round(share * rows))
            thinned.append(table.take(pa.array(np.sort(rng.choice(table.num_rows, wanted, replace=False)))))
        return pa.concat_tables(thinned)

    def key_sample(self, partition_columns: int) -> tuple[pa.Table, list[PartitionKey] | None]:
        """Returns the uniform sample of the keys, and each row's partition or None without partition columns."""
        sample = self.uniform_sample()
        if not partition_columns:
            return sample, None
        names = [f"p{number}" for number in range(partition_columns)]
        texts = zip(*(sample.column(name).to_pylist() for name in names), strict=True)
        return sample.drop_columns(names), [tuple(value or None for value in key) for key in texts]


def model_of(
    staged: Staged, build: BuildTask, curve: str, row_group_rows: int | None, along: CurveModel | None = None
) -> CurveModel:
    """Builds a curve with cuts for staged rows from their sample. If ``along`` is given, it keeps those boundaries."""
    sample, keys = staged.key_sample(len(build.partition_by))
    return CurveModel.build(
        sample,
        build.keys,
        curve,
        total_rows=staged.rows,
        bytes_per_row=staged.row_bytes,
        target_file_bytes=build.target_file_bytes,
        row_group_rows=row_group_rows,
        partition_keys=keys,
        along=along,
    )
