"""What the file index's callback adds to Spark's planning, on tables of many files that are only named.

usage: python benchmarks/planning_spark.py [files, default 100000]
A real session (local[2]) plans the four conditions of planning.py on a table without partitions and on one of 1,000,
where another condition is on the partition column; then one condition that keeps about half of the files, which all go
to the JVM. 'first' is the first such scan of the version: the very first reads the index and lists all files in the
JVM. The callback's time is that between Spark's call of listFiles and the answer; 'planning' is all that Spark does up
to the tasks, the callback included.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from planning import START_MS, files_of, write_index
from pyspark.sql import DataFrame, SparkSession

from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog
from dbt.adapters.zlayout.spark.read.file_index import SnapshotFileIndex
from dbt.adapters.zlayout.spark.read.relations import frame_of
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot
from dbt.adapters.zlayout.store.local import LocalStore
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.files.instant import instant_of
from dbt.adapters.zlayout.timeline.files.table_file import ManagementLevel, TableFile
from dbt.adapters.zlayout.timeline.timeline import Timeline
from dbt.adapters.zlayout.timeline.transactions.change import Change, Signature, entry_after

RUNS = 9
SCHEMA = "day date, key bigint, city string, rate double, c4 bigint, c5 bigint, c6 bigint, c7 bigint"
KEYS = ", ".join(str(each) for each in range(1_000, 900_000, 30_011))
CONDITIONS = {
    "four conditions": f"day >= date'2021-03-01' and key in ({KEYS}) and city like 'city 00%' and rate < 0.25",
    "half of the files": "rate < 0.5",
}


def table_of(spark: SparkSession, folder: Path, count: int, partitions: int) -> TableSnapshot:
    """A table by its log and its index, as a writer leaves them."""
    store, files = LocalStore(folder), files_of(count, partitions)
    schema = spark.createDataFrame([], SCHEMA + (", part string" if partitions else "")).schema
    change = Change(files, schema_json=schema.json(), partition_by=files.partition_by, layout={})
    signature = Signature(instant_of(START_MS), Action.COMMIT, Operation.OVERWRITE.value, START_MS)
    slices = {name: tuple(paths) for name, paths in write_index(store, files, 8).items()}
    timeline = Timeline(store)
    snapshot = timeline.append(entry_after(None, change, signature, slices, None), None)
    table_file = TableFile.new(ManagementLevel.MANAGED, "benchmark", START_MS)
    return TableSnapshot.at(timeline, table_file, store.root_uri, snapshot, "UTC")


class Stopwatch:
    """Times every call of ``listFiles``."""

    def __init__(self) -> None:
        self.milliseconds: list[float] = []
        self.kept = 0
        measured, original = self, SnapshotFileIndex.listFiles

        def timed(self: SnapshotFileIndex, partition_filters: Any, data_filters: Any) -> Any:
            start = time.perf_counter()
            found = original(self, partition_filters, data_filters)
            measured.milliseconds.append(1000 * (time.perf_counter() - start))
            measured.kept = self.last_scan[0] if self.last_scan else 0
            return found

        SnapshotFileIndex.listFiles = timed  # type: ignore[method-assign]  # to be timed


def planned_ms(frame: DataFrame, condition: str) -> float:
    """Milliseconds until Spark knows the tasks."""
    start = time.perf_counter()
    plan: Any = frame.where(condition)._jdf.queryExecution().executedPlan()  # type: ignore[operator]  # Py4J
    plan.execute().getNumPartitions()
    return 1000 * (time.perf_counter() - start)


def main(count: int) -> None:
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "3g")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    catalog, watch = Catalog(spark), Stopwatch()
    print("| files | partitions | query | kept | first ms | callback ms | planning ms |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        # The first scan of a session also loads classes; a small table of each kind takes that.
        for size, told in ((1_000, False), (count, True)):
            for partitions in (0, 1_000):
                opened = table_of(spark, Path(folder) / f"t{size}_{partitions}", size, partitions)
                frame = frame_of(catalog, opened)
                for name, condition in CONDITIONS.items():
                    where = f"{condition} and part <> 'p00500'" if partitions else condition
                    watch.milliseconds.clear()
                    whole = [planned_ms(frame, where) for _ in range(RUNS + 1)]
                    first, *later = watch.milliseconds
                    if told:
                        callback, planning = statistics.median(later), statistics.median(whole[1:])
                        print(
                            f"| {count:,} | {partitions:,} | {name} | {watch.kept:,} | {first:.0f} "
                            f"| {callback:.0f} (least {min(later):.0f}) | {planning:.0f} |"
                        )
    spark.stop()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
