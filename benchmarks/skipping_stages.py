"""What each stage of the index saves of a query: files, statistics of partitions, statistics of columns.

    make bench-skipping-stages ARGS="--lab /somewhere/with/20/GB --scale 20"

Lineitem of TPC-H in folders by the year of shipping, clustered by day and part within. The query names a stretch of
days and of parts and no year. Each stage reads what the stages up to it leave; 'none' is plain Spark, which lists the
folder. Then the same for a table of 1,000,000 files of 1 MB of which only the index exists: the real index chooses its
files, planning is timed, and reading is reckoned with the speed that the real table was read with.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from clustering import ROOT, make_lineitem
from clustering_engines import session, timed
from planning import column_stats

from dbt.adapters.zlayout.index.slice_writing import slice_path, write_slices
from dbt.adapters.zlayout.index.table_index import CachedStatistics, TableIndex
from dbt.adapters.zlayout.predicate.expr import And, Column, Compare, Op
from dbt.adapters.zlayout.pruning.scan import plan_scan
from dbt.adapters.zlayout.store.local import LocalStore
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles
from dbt.adapters.zlayout.timeline.files.instant import instant_of
from dbt.adapters.zlayout.timeline.files.table_file import FOLDER_NOTE

os.environ["PYSPARK_PYTHON"] = sys.executable
DAY, PART = Column(("l_shipdate",), pa.date32()), Column(("l_partkey",), pa.int64())
FIRST_DAY, DAYS, FIRST_YEAR, YEARS = dt.date(1992, 1, 1), 2_557, 1992, 7
PARTS_A_SCALE = 200_000
STAGES = ("none", "files", "partition statistics", "column statistics")
START_MS = 1_700_000_000_000


def conditions(parts):
    """A month of days, and a fiftieth of the parts."""
    return [
        (DAY, dt.date(1995, 3, 1), dt.date(1995, 3, 31)),
        (PART, parts // 2, parts // 2 + parts // 50),
    ]


def expression(wanted):
    return And(
        tuple(
            Compare(op, column, pa.scalar(value, column.type))
            for column, low, high in wanted
            for op, value in ((Op.GE, low), (Op.LE, high))
        )
    )


def in_sql(wanted):
    return " and ".join(
        f"{column.path[0]} between {_literal(low)} and {_literal(high)}" for column, low, high in wanted
    )


def _literal(value):
    return f"date'{value}'" if isinstance(value, dt.date) else str(value)


def best(frame, tries):
    """Seconds of a query that reads three columns: the best of some tries; and its answer."""
    query = ("count(*)", "sum(l_extendedprice * l_discount)")
    return min(timed(lambda: tuple(frame().selectExpr(*query).first())) for _ in range(tries))


def stages_of(plan):
    """Which files are left after each stage; bool[n] each."""
    by_partition = plan.stage_of_file != 0
    return [np.ones(len(by_partition), bool), np.ones(len(by_partition), bool), by_partition, plan.candidates]


def real(given):
    """Measures the stages on a real table; returns the megabytes that were read in a second."""
    from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog
    from dbt.adapters.zlayout.spark.read.relations import frame_of
    from dbt.adapters.zlayout.table.ztable import ZTable

    shutil.rmtree(given.lab / "warehouse", ignore_errors=True)
    given.master, given.engine, given.jars, given.out = "local[2]", "ours", {}, given.lab / "warehouse"
    spark = session(given)
    rows = spark.read.parquet(str(make_lineitem(given.lab, given.scale)))
    rows = rows.selectExpr("*", "year(l_shipdate) as l_year")
    spark.sql("create schema b")
    table = ZTable.write(
        spark, "b.lineitem", rows, zorder=["l_shipdate", "l_partkey"], partition_by=["l_year"], target_file_size="16mb"
    )
    wanted = conditions(int(PARTS_A_SCALE * given.scale))
    opened, where = table._opened, in_sql(wanted)
    size = opened.files["size_bytes"].to_numpy()
    left = stages_of(opened.scan(expression(wanted)))
    # Plain Spark finds what lies in the folder, as it does where there is no index.
    plain = given.lab / "plain"
    shutil.rmtree(plain, ignore_errors=True)
    shutil.copytree(
        table.location.removeprefix("file://"),
        plain,
        ignore=shutil.ignore_patterns("_spark_metadata", ".zlayout", FOLDER_NOTE),
    )
    catalog = Catalog(spark)
    frames = [lambda: spark.read.parquet(str(plain))]
    frames += [lambda kept=kept: frame_of(catalog, opened, kept) for kept in left[1:]]
    answers, first, speed = set(), None, 0.0
    head(f"lineitem at scale {given.scale:g}, {len(size):,} files, {size.sum() / 1e9:.1f} GB, measured")
    for stage, frame, kept in zip(STAGES, frames, left, strict=True):
        seconds, answer = best(lambda frame=frame: frame().where(where), given.tries)
        first, speed = first or seconds, speed or size.sum() / 1e6 / seconds
        answers.add(answer)
        line(stage, int(kept.sum()), size[kept].sum(), seconds, first)
    if len(answers) > 1:
        raise SystemExit(f"the stages differ in their answers: {answers}")
    spark.stop()
    return speed


def simulated(files, speed):
    """The same on an index alone: a grid of days and parts in each year."""
    weeks = 52
    cells = files // (weeks * YEARS)
    count = cells * weeks * YEARS
    number = np.arange(count)
    year, week, cell = number // (weeks * cells), number // cells % weeks, number % cells
    day = np.minimum((year * 365.25 + week * 7).astype(np.int64), DAYS - 8) + (FIRST_DAY - dt.date(1970, 1, 1)).days
    parts = 200_000_000
    part = cell * (parts // cells)
    folders, instant = [str(FIRST_YEAR + each) for each in year], instant_of(START_MS)
    table = DataFiles.from_columns(
        ("l_year",),
        path=[f"l_year={folder}/{each:016x}_{instant}.parquet" for each, folder in enumerate(folders)],
        partition_values=[folders],
        row_count=pa.array(np.full(count, 20_000)),
        size_bytes=pa.array(np.full(count, 1_000_000)),
        modified_ms=pa.array(START_MS + number),
        group=[f"{each:016x}" for each in number],
    )
    starts = {DAY: pa.array(day, pa.int32()).cast(pa.date32()), PART: pa.array(part)}
    ends = {DAY: pa.array(day + 6, pa.int32()).cast(pa.date32()), PART: pa.array(part + parts // cells - 1)}
    with tempfile.TemporaryDirectory() as folder:
        store, slices = LocalStore(Path(folder)), {}
        for partition, content in write_slices(table, column_stats(table, starts, ends)).items():
            path = slice_path(partition, instant, content)
            store.create(path, content)
            slices[partition] = [path]
        types = {"l_year": pa.int32()}
        start = time.perf_counter()
        index = CachedStatistics(TableIndex(store, slices, partition_types=types, timezone="UTC"), table)
        plan = plan_scan(expression(conditions(parts)), table, index)
        planning = time.perf_counter() - start
    head(f"{count:,} files of 1 MB, simulated at {speed:.0f} MB a second; planning took {planning:.1f} s, measured")
    first = planning + count / speed
    for stage, kept in zip(STAGES[1:], stages_of(plan)[1:], strict=True):
        left = int(kept.sum())
        line(stage, left, left * 1e6, planning + left / speed, first)


def head(title):
    print(f"\n**{title}**\n\n| stage | files | GB | seconds | less time |\n|---|---|---|---|---|", flush=True)


def line(stage, files, size, seconds, first):
    print(
        f"| {stage} | {files:,} | {size / 1e9:.3f} | {seconds:.2f} | {100 * (1 - seconds / first):.1f} % |", flush=True
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lab", type=Path, default=ROOT / "build" / "bench-clustering", help="where data goes")
    parser.add_argument("--scale", type=float, default=5, help="of lineitem")
    parser.add_argument("--files", type=int, default=1_000_000, help="of the simulated table")
    parser.add_argument("--tries", type=int, default=3)
    given = parser.parse_args()
    given.lab = given.lab.absolute()
    given.lab.mkdir(parents=True, exist_ok=True)
    given.scale = int(given.scale) if given.scale == int(given.scale) else given.scale
    simulated(given.files, real(given))


if __name__ == "__main__":
    main()
