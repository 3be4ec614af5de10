"""Creating a table, or replacing all of it, from a query, in one commit."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions

from dbt.adapters.zlayout.config import TableConfig, check_against_schema
from dbt.adapters.zlayout.curve.model import CurveModel
from dbt.adapters.zlayout.errors import (
    ConfigError,
    CorruptError,
    StoreError,
    WriteError,
    ZlayoutError,
)
from dbt.adapters.zlayout.index.slices import slice_path, write_slices
from dbt.adapters.zlayout.index.tracked import tracked_columns
from dbt.adapters.zlayout.spark.build import Build
from dbt.adapters.zlayout.spark.catalog import Catalog, TableName
from dbt.adapters.zlayout.spark.files_written import FileReport, Tracking, drift_of, statistics_of
from dbt.adapters.zlayout.spark.jobs import Progress, short_message, workers_find_this_python
from dbt.adapters.zlayout.spark.measure import depth_of
from dbt.adapters.zlayout.spark.opened import OpenTable
from dbt.adapters.zlayout.spark.parquet_file import ParquetSettings
from dbt.adapters.zlayout.spark.place import forget_old_place, place_for_writing
from dbt.adapters.zlayout.spark.rows import RowWriter, Written
from dbt.adapters.zlayout.spark.schema import checked_schema, described, joined, quoted, type_at
from dbt.adapters.zlayout.spark.show import Description, show
from dbt.adapters.zlayout.spark.spark_rows import SparkRowWriter
from dbt.adapters.zlayout.spark.summary import CommitSummary
from dbt.adapters.zlayout.spark.types import arrow_carries, arrow_schema, fields_of, split_partition_columns
from dbt.adapters.zlayout.store import Store
from dbt.adapters.zlayout.timeline.action import Action, Operation
from dbt.adapters.zlayout.timeline.change import Change
from dbt.adapters.zlayout.timeline.cleaning import clean
from dbt.adapters.zlayout.timeline.files import DataFiles
from dbt.adapters.zlayout.timeline.log import Timeline
from dbt.adapters.zlayout.timeline.naming import STAGING_FOLDER, curve_path
from dbt.adapters.zlayout.timeline.recovery import recover
from dbt.adapters.zlayout.timeline.snapshot import Snapshot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_DRIFT_LIMIT = 3.0
_DEFAULT_ROW_GROUP_ROWS = 1 << 17


@dataclass(frozen=True)
class Replacement:
    """What a table shall be from now on.

    Attributes:
        name: Of the table.
        frame: Its rows; the query has not run yet.
        config: How they are laid out.
        description: What people read about it.
        column_comments: What people read about its columns, by name.
        not_null: Top-level columns that may hold no null.
        progress: Takes a line now and then.
    """

    name: TableName
    frame: DataFrame
    config: TableConfig
    description: Description = field(default_factory=Description)
    column_comments: Mapping[str, str] = field(default_factory=dict)
    not_null: Sequence[str] = ()
    progress: Progress | None = None


def replace_table(spark: SparkSession, wanted: Replacement) -> tuple[OpenTable, CommitSummary]:
    """Creates or replaces a table.

    Returns:
        The table at its new version, and what was done.

    Raises:
        ConfigError: Settings do not fit the query's columns; nothing has run.
        WriteError: The query failed, or a required column holds nulls; the table is as it was.
        ConflictError: Another writer committed meanwhile.
    """
    return _Replacing(spark, wanted).run()


class _Replacing:
    def __init__(self, spark: SparkSession, wanted: Replacement) -> None:
        workers_find_this_python(spark)
        self.spark = spark
        self.wanted = wanted
        self.catalog = Catalog(spark)
        frame_json = described(str(wanted.frame.schema.json()), wanted.column_comments)
        self.config = check_against_schema(wanted.config, checked_schema(frame_json), subject=str(wanted.name))
        self.partition_by = self.config.partitioning.columns
        self.keys = self.config.clustering.columns
        self.data_json, self.partition_json = split_partition_columns(frame_json, self.partition_by)
        self.schema_json = joined(self.data_json, self.partition_json)
        self.data_schema = arrow_schema(self.data_json)
        self.tracked = tracked_columns(self.data_schema, self.config.statistics.columns, self.keys, self.partition_by)
        self.phases: dict[str, float] = {}

    def run(self) -> tuple[OpenTable, CommitSummary]:
        started = time.perf_counter()
        entry = self.catalog.find(self.wanted.name)
        if entry is not None and entry.kind == "VIEW":
            raise ConfigError([f"{self.wanted.name} is a view; drop it before a table takes its name"])
        location, store, table_file = place_for_writing(
            self.catalog, self.wanted.name, entry, self.config.writing.location_root
        )
        timeline = Timeline(store)
        recover(timeline)
        before = timeline.snapshot() if timeline.latest_version() is not None else None
        action = Action.COMMIT if before is None else Action.REPLACECOMMIT
        with timeline.begin(action, Operation.OVERWRITE) as transaction:
            written = self._rows(store, transaction.instant, before)
            self._check_required(written.files)
            committing = time.perf_counter()
            statistics = statistics_of(written.files, self.tracked)
            summary = self._summary(
                written, before, depth_of(statistics, self.keys, [each.file.partition for each in written.files])
            )
            files = DataFiles.of([each.file for each in written.files], self.partition_by)
            curve = None
            if written.model is not None:
                curve = curve_path(transaction.instant, "arrow")
                store.put(curve, written.model)
            index = {}
            for partition, content in write_slices(files, statistics).items():
                path = slice_path(partition, transaction.instant, content)
                store.put(path, content)
                index[partition] = (path,)
            change = Change(
                adds=files,
                schema_json=self.schema_json,
                partition_by=self.partition_by,
                layout=self._layout(written),
                curve=curve,
                properties={},
                summary=summary,
            )
            commit = transaction.commit(change, index=index)
        self.phases["commit"] = round(time.perf_counter() - committing, 3)
        publishing = time.perf_counter()
        timezone = str(self.spark.conf.get("spark.sql.session.timeZone"))
        opened = OpenTable.at(store, table_file, location, timeline.snapshot(commit.version), timezone)
        show(self.catalog, self.wanted.name, entry, opened, self.wanted.description, statistics)
        forget_old_place(entry, table_file.table_id)
        retention = self.config.retention
        clean(timeline, retention.versions, retention.hours, int(time.time() * 1000))
        self.phases["publish"] = round(time.perf_counter() - publishing, 3)
        self.phases["total"] = round(time.perf_counter() - started, 3)
        return opened, CommitSummary(
            version=commit.version,
            instant=commit.instant,
            operation="create" if before is None else "replace",
            rows=files.total_rows,
            files_added=len(commit.adds),
            files_removed=len(commit.removes),
            bytes_added=commit.adds.total_bytes,
            bytes_removed=before.files.total_bytes if before is not None else 0,
            data_passes=written.data_passes,
            overlap_depth=summary["overlap_depth"],
            phases={**written.phases, **self.phases},
        )

    def _rows(self, store: Store, instant: str, before: Snapshot | None) -> Written:
        settings = ParquetSettings(self.config.writing.compression, self.data_json, str(self.spark.version))
        build = Build(
            schema=self.data_schema,
            root_uri=store.root_uri,
            instant=instant,
            keys=self.keys,
            partition_by=self.partition_by,
            model=None,
            target_file_bytes=self.config.file_sizing.target_file_bytes,
            row_group_rows=self.config.file_sizing.row_group_rows or _DEFAULT_ROW_GROUP_ROWS,
            settings=settings,
            tracking=Tracking(self.tracked, tuple(self.wanted.not_null)),
        )
        try:
            if self.config.writing.writer == "spark" or not arrow_carries(self.data_json, str(self.spark.version)):
                return self._spark_writer(build).write(self._columns_of_table(self.wanted.frame))
            return self._arrow_writer(build).write(self._plain_frame(), self._stored_model(store, before))
        except ZlayoutError:
            raise
        except Exception as error:
            message = f"{self.wanted.name}: {short_message(error)}; the table is as it was before"
            raise WriteError(message) from error

    def _arrow_writer(self, build: Build) -> RowWriter:
        text = [pa.field(name, pa.string()) for name in self.partition_by]
        return RowWriter(
            spark=self.spark,
            build=build,
            schema=pa.schema([*self.data_schema, *text]),
            curve=self.config.clustering.curve,
            row_group_rows=self.config.file_sizing.row_group_rows,
            staging=f"{STAGING_FOLDER}/{build.instant}",
            progress=self.wanted.progress,
        )

    def _spark_writer(self, build: Build) -> SparkRowWriter:
        tops = dict.fromkeys(path[0] for path in self.keys)
        return SparkRowWriter(
            spark=self.spark,
            build=build,
            key_schema=pa.schema([self.data_schema.field(name) for name in tops]),
            key_types=tuple(type_at(self.data_schema, path) for path in self.keys),
            curve=self.config.clustering.curve,
            row_group_rows=self.config.file_sizing.row_group_rows,
            staging=f"{STAGING_FOLDER}/{build.instant}",
            required=tuple(self.wanted.not_null),
            progress=self.wanted.progress,
        )

    def _columns_of_table(self, frame: DataFrame) -> DataFrame:
        """The query's columns in the order of the table's."""
        names = [each.name for each in fields_of(self.data_json)]
        return frame.select(*(functions.col(quoted(name)) for name in [*names, *self.partition_by]))

    def _plain_frame(self) -> DataFrame:
        """The same for the way to Python: partition columns as the text of their folders, all under plain names.

        ``mapInArrow`` takes a dot in a name for a struct's field.
        """
        frame = self._columns_of_table(self.wanted.frame)
        names = [each.name for each in fields_of(self.data_json)]
        data = [functions.col(quoted(name)) for name in names]
        folders = [functions.col(quoted(name)).cast("string") for name in self.partition_by]
        return frame.select(*(each.alias(f"c{number}") for number, each in enumerate([*data, *folders])))

    def _stored_model(self, store: Store, before: Snapshot | None) -> CurveModel | None:
        """The curve of the version before, when it is a curve for this layout and its cuts still fit the data."""
        if before is None or before.curve is None or before.layout.get("sizing") != self._sizing():
            return None
        if before.layout.get("drift", 0.0) > _DRIFT_LIMIT or before.partition_by != self.partition_by:
            return None
        try:
            model = CurveModel.from_bytes(store.read(before.curve))
        except (CorruptError, StoreError):
            return None
        types = tuple(type_at(self.data_schema, path) for path in self.keys)
        return model if model.fits(self.keys, types, self.config.clustering.curve) else None

    def _sizing(self) -> dict[str, Any]:
        sizing = self.config.file_sizing
        return {"target_file_bytes": sizing.target_file_bytes, "row_group_rows": sizing.row_group_rows}

    def _layout(self, written: Written) -> dict[str, Any]:
        clustering = self.config.clustering
        columns = self.config.statistics.columns
        return {
            "zorder": [list(path) for path in clustering.columns],
            "curve": clustering.curve,
            "sizing": self._sizing(),
            "drift": drift_of(written.files, self.config.file_sizing.target_file_bytes),
            "stats_columns": columns if isinstance(columns, int) else [list(path) for path in columns],
            "compression": self.config.writing.compression,
            "retention": {"versions": self.config.retention.versions, "hours": self.config.retention.hours},
        }

    def _check_required(self, files: Sequence[FileReport]) -> None:
        counts: dict[str, int] = {}
        for report in files:
            for name, nulls in report.nulls.items():
                counts[name] = counts.get(name, 0) + nulls
        wrong = [f"`{name}` is null in {count:,} rows" for name, count in counts.items() if count]
        if wrong:
            raise WriteError(
                f"{self.wanted.name}: {', '.join(wrong)}, but the contract says not_null; the table is as it was before"
            )

    def _summary(self, written: Written, before: Snapshot | None, depth: float) -> dict[str, Any]:
        return {
            "rows": sum(each.file.row_count for each in written.files),
            "files_added": len(written.files),
            "files_removed": len(before.files) if before is not None else 0,
            "bytes_added": sum(each.file.size_bytes for each in written.files),
            "bytes_removed": before.files.total_bytes if before is not None else 0,
            "data_passes": written.data_passes,
            "overlap_depth": round(depth, 4),
            "seconds": dict(written.phases),
        }
