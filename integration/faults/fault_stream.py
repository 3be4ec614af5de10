"""A stream into a merge-on-read table, in a process and a JVM of its own, so that the end of the process ends both.

    python fault_stream.py prepare|run BASE AT DIES_IN

``AT`` is the change before which the writer is killed, ``DIES_IN`` the batch after whose commit, and before whose
checkpoint, everything is; 0 and -1 for never.
"""

import json
import os
import signal
import sys
from pathlib import Path

from fault_points import FaultPoints, Order
from pyspark.sql import SparkSession

from dbt.adapters.zlayout.table.ztable import ZTable

TABLE, SCHEMA = "z.streamed", "k bigint, v bigint"
KEPT = 40
# Without an ordering column: a batch that came twice would bring old values back.
BATCHES = [range(30), range(20, 50)]


def value(batch: int, key: int) -> int:
    return 1000 * (batch + 1) + key


def wanted() -> dict[int, int]:
    """The rows after all batches, by key."""
    rows = dict.fromkeys(range(KEPT), -1)
    for batch, keys in enumerate(BATCHES):
        rows |= {key: value(batch, key) for key in keys}
    return rows


def session(base: Path) -> SparkSession:
    return (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.warehouse.dir", str(base / "warehouse"))
        .config("spark.python.daemon.module", "fault_daemon")
        .config("spark.hadoop.javax.jdo.option.ConnectionURL", f"jdbc:derby:;databaseName={base}/metastore;create=true")
        .enableHiveSupport()
        .getOrCreate()
    )


def prepare(base: Path) -> None:
    """The table, and the files that come as a batch each."""
    spark = session(base)
    spark.sql(f"create schema z location '{base}/tables'")
    frame = spark.sql(f"select id k, -1L v from range({KEPT})")
    ZTable.write(spark, TABLE, frame, table_type="merge_on_read", unique_key="k", zorder=["k"], compaction="off")
    for batch, keys in enumerate(BATCHES):
        rows = [(key, value(batch, key)) for key in keys]
        part = base / f"batch-{batch}"
        spark.createDataFrame(rows, SCHEMA).coalesce(1).write.parquet(str(part))
        (file,) = part.glob("*.parquet")
        (base / "source").mkdir(exist_ok=True)
        came = (base / "source" / f"{batch}.parquet").absolute()
        file.rename(came)
        # A stream takes files in the order of their time.
        os.utime(came, (1_700_000_000 + batch, 1_700_000_000 + batch))


def run(base: Path, at: int, dies_in: int) -> None:
    """Streams what there is; prints the rows and the batches that came in."""
    order_file = base / "order.json"
    points = FaultPoints(base / "tables", order_file, "writer")
    points.install()
    spark = session(base)
    table = ZTable.for_name(spark, TABLE)
    Order(at, "kill", os.getpid()).save(order_file)

    def batch(rows, number):
        table.upsert_batch(rows, number)
        if number == dies_in:
            os.kill(os.getpid(), signal.SIGKILL)

    source = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(base / "source"))
    stream = source.writeStream.option("checkpointLocation", str(base / "checkpoint")).trigger(availableNow=True)
    stream.foreachBatch(batch).start().awaitTermination()
    order_file.unlink()
    rows = [tuple(row) for row in spark.table(TABLE).select("k", "v").collect()]
    merges = ZTable.for_name(spark, TABLE).history()["operation"].to_pylist().count("merge")
    print("RESULT " + json.dumps({"rows": rows, "merges": merges}))


if __name__ == "__main__":
    step, folder, *numbers = sys.argv[1:]
    prepare(Path(folder)) if step == "prepare" else run(Path(folder), *map(int, numbers))
