"""Runs the tasks that write files: each one writes the rows of its partition and reports its files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from dbt.adapters.zlayout.spark.files.written_file import REPORT_SCHEMA, FileReport
from dbt.adapters.zlayout.spark.jobs.jobs import Progress, run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def written_files(
    spark: SparkSession,
    phase: str,
    progress: Progress | None,
    frame: DataFrame,
    write: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]],
) -> tuple[FileReport, ...]:
    """Has each task write the rows of its partition.

    Args:
        spark: The session.
        phase: As for `run`.
        progress: As for `run`.
        frame: The rows.
        write: The work of a task: takes rows and yields a report of each file.

    Returns:
        The reports of all tasks.
    """
    reports = frame.mapInArrow(write, REPORT_SCHEMA)
    return tuple(FileReport.of_row(row) for row in run(spark, phase, progress, reports.collect))
