"""A writer that is killed leaves the table at the version before or after, and the next writer cleans up behind it."""

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from dbt.adapters.zlayout.table import ZTable

ROWS = 120_000
KILLS = int(os.environ.get("ZLAYOUT_KILLS", "3"))
WRITER = textwrap.dedent(
    """
    import itertools, os, sys
    from pyspark.sql import SparkSession
    from dbt.adapters.zlayout.table import ZTable
    spark = (
        SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.driver.memory", "1g")
        .config("spark.sql.shuffle.partitions", "2").config("spark.sql.warehouse.dir", sys.argv[1] + "/writer")
        .config("spark.hadoop.javax.jdo.option.ConnectionURL", "jdbc:derby:memory:w;create=true").enableHiveSupport().getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    spark.sql("create schema if not exists z")
    for generation in itertools.count(int(sys.argv[2])):
        query = f"select {generation} g, id, id * 7919 % 100003 v, uuid() u from range(ROWS)"
        ZTable.write(spark, "z.killed", spark.sql(query), zorder=["id", "v"], target_file_size="700kb", location_root=sys.argv[1], retain_hours=0)
        print(generation, flush=True)
    """
).replace("range(ROWS)", f"range({ROWS})")


def plain_state(spark, folder):
    """Generation and rows as a Spark sees them that knows nothing of the package."""
    rows = spark.read.parquet(str(folder)).groupBy("g").count().collect()
    return [tuple(row) for row in rows]


def test_a_killed_writer_leaves_a_whole_version(spark, tmp_path):
    seed = int(os.environ.get("ZLAYOUT_SEED", random.randrange(10**6)))
    print(f"seed {seed}")
    rng = random.Random(seed)
    folder = tmp_path / "killed"
    generation = 0
    for _ in range(KILLS):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), str(generation)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        first = writer.stdout.readline()
        assert first, "the writer ended before its first commit"
        time.sleep(rng.uniform(0.0, 2.5))
        os.killpg(writer.pid, signal.SIGKILL)
        last = [int(first), *(int(line) for line in writer.stdout.read().split())][-1]
        writer.wait()
        writer.stdout.close()
        ((seen, rows),) = plain_state(spark, folder)
        assert rows == ROWS
        assert seen in (last, last + 1)
        generation = last + 2
    query = f"select -1 g, id, id * 7919 % 100003 v, uuid() u from range({ROWS})"
    table = ZTable.write(
        spark,
        "z.killed",
        spark.sql(query),
        zorder=["id", "v"],
        target_file_size="700kb",
        location_root=str(tmp_path),
        retain_hours=0,
    )
    assert plain_state(spark, folder) == [(-1, ROWS)]
    assert table.index_status().to_pylist() == []
    states = [path.name for path in Path(folder, ".zlayout/timeline").iterdir() if path.is_file()]
    assert states == []
    assert not list(Path(folder, ".zlayout/staging").rglob("*.arrow"))


@pytest.mark.parametrize("point", ["staged", "written", "indexed"])
def test_a_writer_that_fails_between_two_steps_leaves_the_table_as_it_was(spark, monkeypatch, point):
    from dbt.adapters.zlayout.spark import index_update, rows

    name = f"z.fault_{point}"
    ZTable.write(
        spark, name, spark.sql("select id, id % 10 k from range(50000)"), zorder=["id", "k"], target_file_size="64kb"
    )
    before = ZTable.for_name(spark, name)

    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    target = {
        "staged": (rows, "model_of"),
        "written": (index_update, "write_slices"),
        "indexed": (index_update, "slice_path"),
    }[point]
    monkeypatch.setattr(*target, fail)
    with pytest.raises(Exception, match="No space left"):
        ZTable.write(
            spark, name, spark.sql("select id, id % 10 k from range(60000)"), zorder=["k"], target_file_size="64kb"
        )
    monkeypatch.undo()
    after = ZTable.for_name(spark, name)
    assert after.version == before.version
    assert spark.table(name).count() == 50000
    assert after.index_status().num_rows == 0
