"""Writes a query's rows as clustered files: in one task if few, in one pass if cuts are known, else staged first."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from dbt.adapters.zlayout.curve.model import CurveModel, PartitionKey
from dbt.adapters.zlayout.curve.query_boxes import QueryBoxes
from dbt.adapters.zlayout.errors import WriteError
from dbt.adapters.zlayout.spark.files.arrow_source import ArrowSource
from dbt.adapters.zlayout.spark.files.file_report import FileReport
from dbt.adapters.zlayout.spark.jobs.jobs import Progress, in_session, numbered_tasks, rewrite_session, run, timed
from dbt.adapters.zlayout.spark.rewrite.build import BuildTask, written_files
from dbt.adapters.zlayout.spark.rewrite.route import (
    ROUTED_SCHEMA,
    InOrder,
    RouteTask,
    by_partition,
    slot_keys,
    staged_batches,
)
from dbt.adapters.zlayout.spark.rewrite.stage import RESULT_SCHEMA, Staged, StageTask, model_of, put_staged, sample_rows
from dbt.adapters.zlayout.spark.schema.arrow_columns import key_table
from dbt.adapters.zlayout.store import open_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ONE_TASK_BYTES = 128 << 20
_MOST_SLOTS = 4096


@dataclass(frozen=True)
class Written:
    """The files that the rows became.

    Attributes:
        files: Reports of all written files.
        model: The curve that placed the rows. None if they were not clustered or one task wrote them all.
        data_passes: How often the rows went through Spark.
        phases: Seconds by phase.
    """

    files: tuple[FileReport, ...]
    model: bytes | None
    data_passes: int
    phases: Mapping[str, float]


@dataclass
class RowWriter:
    """Writes the rows of one query as files of one table.

    Attributes:
        spark: The session that the query belongs to.
        build: How to write files. Its ``model`` and ``row_group_rows`` are set here.
        schema: Arrow types of the rows. Partition columns come last, as text.
        curve: 'zorder', 'hilbert' or 'linear'.
        row_group_rows: The configured value. None to let the curve decide.
        staging: Folder for staged rows, relative to the table's folder.
        asked: What queries ask for, if new cuts follow them.
    """

    spark: SparkSession
    build: BuildTask
    schema: pa.Schema
    curve: str
    row_group_rows: int | None
    staging: str
    progress: Progress | None
    asked: QueryBoxes | None = None
    _phases: dict[str, float] = field(default_factory=dict)

    def write(self, frame: DataFrame, cuts: CurveModel | None = None, along: CurveModel | None = None) -> Written:
        """Runs the query once and writes its rows.

        Args:
            frame: The query. Its columns are those of ``schema``.
            cuts: A stored curve whose cuts fit the rows, or None.
            along: A stored curve for the rows to follow, with new cuts. None for a new curve.
        """
        if cuts is not None:
            route = self._route(cuts, {})
            files = self._rewrite(frame.mapInArrow(route.batches, ROUTED_SCHEMA), cuts, len(route.slots))
            return Written(files, cuts.to_bytes(), 1, self._phases)
        staged = self._stage(frame)
        try:
            if staged.arrow_bytes <= min(self.build.target_file_bytes, _ONE_TASK_BYTES):
                with timed(self._phases, "write"):
                    files, model = self._in_one_task(staged, along)
                # A file alone has no cuts, but those of rows that come later follow the queries.
                kept = None if model is None or model.asked is None else model.to_bytes()
                return self._complete(Written(files, kept, 1, self._phases), staged)
            staged = self._all_in_files(staged)
            if not self.build.keys:
                return self._complete(Written(self._unclustered(staged), None, 2, self._phases), staged)
            with timed(self._phases, "layout"):
                model = model_of(staged, self.build, self.curve, self.row_group_rows, along, self.asked)
            route = self._route(model, staged.rows_by_partition)
            read = partial(route.staged, self.build.root_uri, staged.paths)
            routed = numbered_tasks(rewrite_session(self.spark), len(staged.paths)).mapInArrow(read, ROUTED_SCHEMA)
            files = self._rewrite(routed, model, len(route.slots))
            return self._complete(Written(files, model.to_bytes(), 2, self._phases), staged)
        finally:
            open_store(self.build.root_uri).delete_tree(self.staging)

    def rewrite(self, source: ArrowSource, cuts: CurveModel) -> Written:
        """Rewrites the rows of existing files.

        Args:
            source: The files.
            cuts: A curve with cuts for their rows.
        """
        route = replace(self._route(cuts, {}), schema=source.schema)
        routed = numbered_tasks(rewrite_session(self.spark), len(source.units))
        files = self._rewrite(routed.mapInArrow(partial(route.read, source), ROUTED_SCHEMA), cuts, len(route.slots))
        return Written(files, cuts.to_bytes(), 1, self._phases)

    def _stage(self, frame: DataFrame) -> Staged:
        tasks = max(2, int(self.spark.sparkContext.defaultParallelism))
        stage = StageTask(
            self.schema,
            self.build.root_uri,
            self.staging,
            self.build.keys,
            self.build.partition_by,
            sample_rows(tasks) if self.build.keys else 0,
            self.build.settings,
            self.build.target_file_bytes,
        )
        with timed(self._phases, "query"):
            staged_frame = frame.mapInArrow(stage.__call__, RESULT_SCHEMA)
            answers = run(self.spark, "query", self.progress, staged_frame.collect)
        return Staged.of(answers)

    def _complete(self, written: Written, staged: Staged) -> Written:
        """Checks that every row of the query is in a file. This is the last check before a commit."""
        rows = sum(each.file.row_count for each in written.files)
        if rows != staged.rows:
            raise WriteError(f"{staged.rows:,} rows were read and {rows:,} written; nothing was committed")
        return written

    def _all_in_files(self, staged: Staged) -> Staged:
        """Writes inline rows to a staged file, where the tasks of the rewrite find them."""
        if not staged.inline:
            return staged
        path = f"{self.staging}/inline.arrow"
        rows = pa.concat_tables(staged.inline)
        put_staged(open_store(self.build.root_uri), path, rows)
        return replace(staged, paths=(*staged.paths, path), path_rows=(*staged.path_rows, rows.num_rows), inline=())

    def _in_one_task(
        self, staged: Staged, along: CurveModel | None
    ) -> tuple[tuple[FileReport, ...], CurveModel | None]:
        tables = [
            *staged.inline,
            *(pa.Table.from_batches(staged_batches(self.build.root_uri, staged.paths), self.schema),),
        ]
        rows = pa.concat_tables(tables)
        if not rows.num_rows:
            return (), None
        build, model = self.build, None
        if build.keys:
            model = CurveModel.build(
                key_table(rows, build.keys),
                build.keys,
                self.curve,
                total_rows=rows.num_rows,
                bytes_per_row=staged.row_bytes,
                target_file_bytes=build.target_file_bytes,
                row_group_rows=self.row_group_rows,
                along=along,
                asked=self.asked,
            )
            build = self._with_model(model)
        targets = (
            ((json.dumps(key), 0, 0), 0, part)
            for key, part in sorted(by_partition(rows, build.partition_by), key=_null_first)
        )
        return tuple(build.files(targets)), model

    def _unclustered(self, staged: Staged) -> tuple[FileReport, ...]:
        build = self.build
        files = {
            json.dumps(key): max(1, round(rows * staged.row_bytes / build.target_file_bytes))
            for key, rows in (staged.rows_by_partition or {(): staged.rows}).items()
        }
        slot_of, slots = _slots([(text, file, 0) for text, count in files.items() for file in range(count)])
        order = InOrder(self.schema, build.root_uri, staged.paths, staged.starts, build.partition_by, files, slot_of)
        numbers = numbered_tasks(rewrite_session(self.spark), len(staged.paths))
        return self._rewrite(numbers.mapInArrow(order.__call__, ROUTED_SCHEMA), None, len(slots))

    def _route(self, model: CurveModel, rows_by_partition: Mapping[PartitionKey, int]) -> RouteTask:
        partitions = list(rows_by_partition or model.partition_trees) or [()]
        slot_of, slots = _slots(
            [
                (json.dumps(key), file, share)
                for key in partitions
                for file in range(model.files_of(key))
                for share in range(model.shares.get((key, file), 1))
            ]
        )
        return RouteTask(
            schema=self.schema,
            keys=self.build.keys,
            partition_by=self.build.partition_by,
            model=model.to_bytes(),
            slot_of=slot_of,
            slots=slots,
            shares={(json.dumps(key), file): count for (key, file), count in model.shares.items()},
        )

    def _rewrite(self, routed: DataFrame, model: CurveModel | None, slots: int) -> tuple[FileReport, ...]:
        build = self.build if model is None else self._with_model(model)
        with timed(self._phases, "write"):
            session = rewrite_session(self.spark)
            blobs = in_session(routed, session).repartition(slots, "slot")
            blobs = blobs.sortWithinPartitions("part", "file", "share", "leaf")
            return written_files(session, "write", self.progress, blobs, build.__call__)

    def _with_model(self, model: CurveModel) -> BuildTask:
        return replace(self.build, model=model.to_bytes(), row_group_rows=self.row_group_rows or model.row_group_rows)


def _null_first(part: tuple[PartitionKey, pa.Table]) -> tuple[tuple[bool, str], ...]:
    return tuple((value is not None, value or "") for value in part[0])


def _slots(bins: Sequence[tuple[str, int, int]]) -> tuple[dict[tuple[str, int, int], int], tuple[int, ...]]:
    """Returns the int that sends each ``(partition text, file, share)`` to its reduce task, and those of all tasks."""
    slots = tuple(slot_keys(max(1, min(_MOST_SLOTS, len(bins)))).tolist())
    return {each: slots[number % len(slots)] for number, each in enumerate(bins)}, slots
