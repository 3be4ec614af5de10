"""A process is killed with the JVM that it started, at any moment, in the middle of Spark's jobs too."""

import os
import random
import signal
import subprocess
import sys
import textwrap
import time

from fault_runs import Runs

from dbt.adapters.zlayout.store import open_store
from dbt.adapters.zlayout.table.ztable import ZTable
from dbt.adapters.zlayout.timeline.files.naming import STAGING_FOLDER, is_scratch
from dbt.adapters.zlayout.timeline.transactions.pending import list_pending

ROWS = 120_000
SETTINGS = {"zorder": ["id", "v"], "target_file_size": "700kb", "retain_versions": 1, "retain_hours": 0}
QUERY = f"select {{generation}} g, id, id * 7919 % 100003 v, uuid() u from range({ROWS})"
WRITER = textwrap.dedent(
    f"""
    import itertools, sys
    from pyspark.sql import SparkSession
    from dbt.adapters.zlayout.table.ztable import ZTable
    spark = (
        SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.driver.memory", "1g")
        .config("spark.sql.shuffle.partitions", "2").config("spark.sql.warehouse.dir", sys.argv[1] + "/writer")
        .config("spark.hadoop.javax.jdo.option.ConnectionURL", "jdbc:derby:memory:w;create=true")
        .enableHiveSupport().getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    spark.sql("create schema if not exists z")
    for generation in itertools.count(int(sys.argv[2])):
        frame = spark.sql({QUERY!r}.format(generation=generation))
        ZTable.write(spark, "z.killed", frame, location_root=sys.argv[1], **{SETTINGS!r})
        print(generation, flush=True)
    """
)


def state(spark, folder):
    """Generation and rows as a Spark sees them that knows nothing of the package."""
    return [tuple(row) for row in spark.read.parquet(str(folder)).groupBy("g").count().collect()]


def kill(spark, root, generation: int, seconds: float) -> int:
    """Lets a writer commit once, kills it a while later, looks; returns the next generation."""
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(root), str(generation)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    first = writer.stdout.readline()
    assert first, "the writer ended before its first commit"
    time.sleep(seconds)
    os.killpg(writer.pid, signal.SIGKILL)
    last = [int(first), *(int(line) for line in writer.stdout.read().split())][-1]
    writer.wait()
    writer.stdout.close()
    ((seen, rows),) = state(spark, root / "killed")
    assert rows == ROWS
    assert seen in (last, last + 1)
    return last + 2


def test_a_process_killed_with_its_jvm_leaves_a_whole_version(bench, tmp_path, seed, request):
    rng = random.Random(seed + 2)
    runs = Runs(request.config, "process")
    generation = 0

    def run(number: int) -> str:
        nonlocal generation
        seconds = rng.uniform(0, 2.5)
        generation = kill(bench.spark, tmp_path, generation, seconds)
        return f"after {seconds:.2f} s, next generation {generation}"

    runs.each([(number,) for number in range(20 if runs.full else runs.count(few=1, sample=2))], run)
    frame = bench.spark.sql(QUERY.format(generation=-1))
    table = ZTable.write(bench.spark, "z.killed", frame, location_root=str(tmp_path), **SETTINGS)
    assert state(bench.spark, tmp_path / "killed") == [(-1, ROWS)]
    assert table.index_status().to_pylist() == []
    store = open_store(table.location)
    assert list_pending(store) == []
    left = [each.path for each in store.list(STAGING_FOLDER, recursive=True)]
    assert [path for path in left if not is_scratch(path)] == []
    runs.check()
