"""What the staging tasks answered, put together, and the curve that their sample gives."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from dbt.adapters.zlayout.curve.model import CurveModel
from dbt.adapters.zlayout.curve.sizing import PartitionKey
from dbt.adapters.zlayout.spark.rewrite.build import BuildTask
from dbt.adapters.zlayout.spark.schema.arrow_columns import table_of


@dataclass(frozen=True)
class Staged:
    """The answers of all staging tasks.

    Attributes:
        paths: Staged files.
        path_rows: Rows of each of them.
        inline: Rows that came with the answers.
        rows: How many in all.
        arrow_bytes: Their size in memory.
        bytes_per_row: Their size in a file, measured; None when nothing was measured.
        samples: With the number of rows that each stands for.
        rows_by_partition: Rows of each partition.
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
        """Puts the answers (rows of ``RESULT_SCHEMA``) together."""
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
        """Bytes of a row in a file; in memory where that was not measured."""
        return self.bytes_per_row or self.arrow_bytes / max(1, self.rows)

    @property
    def starts(self) -> tuple[float, ...]:
        """For each staged file the share of the rows that come before it, 0 or more and below 1."""
        before = np.cumsum([0, *self.path_rows])
        return tuple((before[:-1] / max(1, before[-1])).tolist())

    def uniform_sample(self) -> pa.Table:
        """The tasks' samples, thinned until every row had the same chance."""
        share = min(table.num_rows / max(1, rows) for rows, table in self.samples)
        rng = np.random.default_rng()
        thinned = []
        for rows, table in self.samples:
            wanted = min(table.num_rows, round(share * rows))
            thinned.append(table.take(pa.array(np.sort(rng.choice(table.num_rows, wanted, replace=False)))))
        return pa.concat_tables(thinned)

    def key_sample(self, partition_columns: int) -> tuple[pa.Table, list[PartitionKey] | None]:
        """The uniform sample of the keys, and the partition of each of its rows; None without partition columns."""
        sample = self.uniform_sample()
        if not partition_columns:
            return sample, None
        names = [f"p{number}" for number in range(partition_columns)]
        texts = zip(*(sample.column(name).to_pylist() for name in names), strict=True)
        return sample.drop_columns(names), [tuple(value or None for value in key) for key in texts]


def model_of(
    staged: Staged, build: BuildTask, curve: str, row_group_rows: int | None, along: CurveModel | None = None
) -> CurveModel:
    """A curve with cuts for staged rows, from their sample; with the boundaries of another one where it is given."""
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
