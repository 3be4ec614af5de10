"""What measuring a layout costs: tables of many files and four keys, of which only log, index and curve exist.

usage: python benchmarks/clustering_information.py [files, default 100000]
All that `ZTable.clustering_information` does without Spark: the table is opened from its folder on this machine's disk
(the newest snapshot, the slices of its index, its curve) and measured for its four keys, anew in each run. 'grid' has
files that are the cells of a grid, as a clustered table has them; in 'appended' 2 % of the files are as wide as the
table, as small appends are; in 'unclustered' all are; 'partitions' is the grid in 1,000 partitions.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from planning import CITY, DAY, KEY, RATE, START_MS, column_stats, files_of, milliseconds

from dbt.adapters.zlayout.curve.model import CurveModel
from dbt.adapters.zlayout.layout.clustering_measures import ClusteringMeasures
from dbt.adapters.zlayout.predicate.expr import Column
from dbt.adapters.zlayout.spark.commit.commit_files import put_slices
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot
from dbt.adapters.zlayout.store.local import LocalStore
from dbt.adapters.zlayout.table.measures import measure_table
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.files.naming import curve_path
from dbt.adapters.zlayout.timeline.files.table_file import ManagementLevel, TableFile, create_table_file
from dbt.adapters.zlayout.timeline.timeline import Timeline
from dbt.adapters.zlayout.timeline.transactions.change import Change
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction

KEYS = (DAY, KEY, CITY, RATE)
SPARK_TYPES = {DAY: "date", KEY: "long", CITY: "string", RATE: "double"}
# How many values a file of the grid covers of each key; all lie in 0 … CELL * side.
CELL = 1_000
LAYOUTS = ("grid", "appended", "unclustered", "partitions")
Values = npt.NDArray[np.int64]


def values_of(key: Column, numbers: Values) -> pa.Array:
    """A key's values in the order of numbers."""
    if key is DAY:
        return pa.array(numbers.astype(np.int32)).cast(pa.date32())
    if key is KEY:
        return pa.array(numbers * 7_919)
    if key is RATE:
        return pa.array(numbers / CELL)
    return pa.array([f"city {each:09d}" for each in numbers.tolist()])


def spans_of(count: int, layout: str) -> list[tuple[Values, Values]]:
    """Smallest and largest number of each file in each key."""
    rng = np.random.default_rng(11)
    side = int(np.ceil(count ** (1 / len(KEYS))))
    wide = (
        np.zeros(count, bool) if layout in ("grid", "partitions") else rng.random(count) < (layout == "appended") * 0.02
    )
    if layout == "unclustered":
        wide[:] = True
    cell = np.arange(count)
    spans = []
    for _ in KEYS:
        low = np.where(wide, 0, CELL * (cell % side)) + rng.integers(0, 20, count)
        high = np.where(wide, CELL * side, CELL * (cell % side + 1)) - rng.integers(0, 20, count)
        spans.append((low, high))
        cell = cell // side
    return spans


def curve_of(spans: list[tuple[Values, Values]]) -> CurveModel:
    """A curve as a build makes it, from the files' middles."""
    middles = {key.path[0]: values_of(key, (low + high) // 2) for key, (low, high) in zip(KEYS, spans, strict=True)}
    return CurveModel.build(
        pa.table(middles),
        [key.path for key in KEYS],
        "zorder",
        total_rows=len(spans[0][0]),
        bytes_per_row=1.0,
        target_file_bytes=1 << 20,
        row_group_rows=None,
    )


def make(folder: Path, count: int, layout: str) -> str:
    """A table without data files, and where it lies."""
    partitions = 1_000 if layout == "partitions" else 0
    store, files = LocalStore(folder), files_of(count, partitions)
    spans = spans_of(count, layout)
    starts = {key: values_of(key, low) for key, (low, _) in zip(KEYS, spans, strict=True)}
    ends = {key: values_of(key, high) for key, (_, high) in zip(KEYS, spans, strict=True)}
    fields = [{"name": key.path[0], "type": SPARK_TYPES[key], "nullable": True, "metadata": {}} for key in KEYS]
    if partitions:
        fields.append({"name": "part", "type": "string", "nullable": True, "metadata": {}})
    create_table_file(store, TableFile.new(ManagementLevel.MANAGED, "s.t", START_MS))
    with Transaction.begin(Timeline(store), Action.COMMIT, Operation.OVERWRITE) as transaction:
        curve = curve_path(transaction.instant, "arrow")
        store.put(curve, curve_of(spans).to_bytes())
        change = Change(
            files,
            schema_json=json.dumps({"type": "struct", "fields": fields}),
            partition_by=("part",) if partitions else (),
            layout={"zorder": [list(key.path) for key in KEYS], "curve": "zorder", "stats_columns": 32},
            curve=curve,
        )
        transaction.commit(
            change, index=put_slices(store, transaction.instant, files, column_stats(files, starts, ends))
        )
    return folder.as_uri()


def measured(location: str) -> ClusteringMeasures:
    """All of it, from the folder to the figures."""
    opened = TableSnapshot.newest(location, "UTC")
    assert opened is not None
    return measure_table(opened, None, "s.t")


def line(count: int, layout: str) -> str:
    """One line of the table."""
    with tempfile.TemporaryDirectory() as folder:
        location = make(Path(folder) / "t", count, layout)
        found = measured(location)
        times = milliseconds(lambda: measured(location))
    deepest = max(each.overlap.average_depth for each in found.by_column)
    error = f" ± {found.overlap.depth_error:,.1f}" if found.overlap.depth_error else ""
    return (
        f"| {layout} | {times} | {found.average_depth:,.1f}{error} | {found.overlap.measured_files:,} | {deepest:,.0f} "
        f"| {found.expected_files['point']:,.1f} |"
    )


def main(count: int) -> None:
    os.fsync = lambda _: None  # making the table is not measured
    print(f"{count:,} files, {len(KEYS)} keys")
    print("| layout | ms | least | processor | depth | of files | of the deepest column | point reads |")
    print("|---" * 8 + "|")
    for layout in LAYOUTS:
        print(line(count, layout))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
