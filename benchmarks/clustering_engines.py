"""One engine clusters one data set: run by `clustering.py`, in an environment with Spark 3.5 and the engine's jar.

Prints one line of JSON: seconds, bytes, the files that are live afterwards; of ours the worst memory of a worker.
"""

import argparse
import contextlib
import json
import os
import shutil
import sys
import threading
import time
from pathlib import Path
from urllib.parse import unquote

from pyspark.sql import SparkSession

os.environ["PYSPARK_PYTHON"] = sys.executable
CODEC = "zstd"


SETTINGS = {
    "delta": {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    },
    "iceberg": {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.ice.type": "hadoop",
    },
    "hudi": {
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    },
}


def wanted(about, folder, engines, **options):
    """The options of a run of one engine, each with its type; ``out`` is an empty folder of its own."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("engine", choices=engines)
    for name, kind in options.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind, required=True)
    parser.add_argument("--lab", type=Path, required=True)
    parser.add_argument("--jars", type=json.loads, default={}, help="settings with which Spark finds the engine")
    parser.add_argument("--master", default="local[2]")
    work = parser.parse_args()
    work.out = work.lab / f"{folder}_{work.engine}"
    shutil.rmtree(work.out, ignore_errors=True)
    return work


def session(work, **settings):
    builder = (
        SparkSession.builder.master(work.master)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "8g")
        .config("spark.executor.memory", "3g")
        .config("spark.local.dir", str(work.lab / "spark"))
        .config("spark.sql.warehouse.dir", str(work.out))
        .config("spark.hadoop.javax.jdo.option.ConnectionURL", "jdbc:derby:memory:bench;create=true")
        .config("spark.sql.parquet.compression.codec", CODEC)
        .config("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    )
    builder = builder if work.jars else builder.enableHiveSupport()
    for key, value in {**work.jars, **SETTINGS.get(work.engine, {}), **settings}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


class WorkerMemory(threading.Thread):
    """The largest resident set that any Python worker of Spark had, in MiB."""

    def __init__(self):
        super().__init__(daemon=True)
        self.most = 0
        self.done = threading.Event()

    def run(self):
        while not self.done.wait(0.2):
            for process in Path("/proc").glob("[0-9]*"):
                # A process may end while it is looked at.
                with contextlib.suppress(OSError):
                    if b"pyspark.daemon" in (process / "cmdline").read_bytes():
                        lines = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
                        self.most = max(self.most, int(lines.get("VmHWM", "0 kB").split()[0]) >> 10)


def timed(action):
    start = time.perf_counter()
    outcome = action()
    return time.perf_counter() - start, outcome


def parquet_bytes(folder):
    return sum(each.stat().st_size for each in Path(folder).rglob("*.parquet"))


def local(path):
    return unquote(path.removeprefix("file://").removeprefix("file:"))


def delta(spark, out, rows, keys, files, _, name="t"):
    folder = f"{out}/{name}"
    spark.read.parquet(rows).write.format("delta").save(folder)
    spark.conf.set("spark.databricks.delta.optimize.maxFileSize", str(parquet_bytes(folder) // files))
    seconds, _ = timed(lambda: spark.sql(f"OPTIMIZE delta.`{folder}` ZORDER BY ({', '.join(keys)})").collect())
    return seconds, [local(each) for each in spark.read.format("delta").load(folder).inputFiles()], {}


def iceberg(spark, out, rows, keys, files, _, name="t"):
    # Read when the catalog is first named.
    spark.conf.set("spark.sql.catalog.ice.warehouse", str(out))
    writer = spark.read.parquet(rows).writeTo(f"ice.db.{name}").using("iceberg")
    writer.tableProperty("write.parquet.compression-codec", CODEC).create()
    size = spark.sql(f"select sum(file_size_in_bytes) from ice.db.{name}.files").collect()[0][0]
    options = (
        f"'rewrite-all', 'true', 'target-file-size-bytes', '{size // files}', "
        f"'max-file-size-bytes', '{int(1.8 * size / files)}'"
    )
    call = (
        f"CALL ice.system.rewrite_data_files(table => 'db.{name}', strategy => 'sort', "
        f"sort_order => 'zorder({','.join(keys)})', options => map({options}))"
    )
    seconds, _ = timed(lambda: spark.sql(call).collect())
    return seconds, [local(row[0]) for row in spark.sql(f"select file_path from ice.db.{name}.files").collect()], {}


def hudi(spark, out, rows, keys, files, identifier):
    folder = f"{out}/t"
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.operation": "bulk_insert",
        "hoodie.datasource.write.recordkey.field": identifier,
        "hoodie.datasource.write.precombine.field": identifier,
        "hoodie.populate.meta.fields": "false",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
        "hoodie.bulkinsert.sort.mode": "NONE",
        "hoodie.parquet.compression.codec": CODEC,
    }
    spark.read.parquet(rows).write.format("hudi").options(**options).mode("overwrite").save(folder)
    size = parquet_bytes(folder)
    settings = {
        "hoodie.clustering.plan.strategy.target.file.max.bytes": size // files,
        "hoodie.clustering.plan.strategy.small.file.limit": 2 * size,
        "hoodie.clustering.plan.strategy.max.bytes.per.group": 2 * size,
        "hoodie.parquet.max.file.size": size // files,
        "hoodie.metadata.enable": "true",
    }
    call = (
        f"CALL run_clustering(path => '{folder}', order => '{','.join(keys)}', order_strategy => 'z-order', "
        f"op => 'scheduleAndExecute', options => '{','.join(f'{key}={value}' for key, value in settings.items())}')"
    )
    seconds, _ = timed(lambda: spark.sql(call).collect())
    return seconds, [local(each) for each in spark.read.format("hudi").load(folder).inputFiles()], {}


def live(table):
    root = local(table.location)
    return [f"{root}/{path}" for path in table.snapshot().files["path"].to_pylist()]


def ours(spark, out, rows, keys, files, _):
    """The same: Spark writes the table, it is taken over, and all of it is clustered."""
    from dbt.adapters.zlayout.table.ztable import ZTable
    from dbt.adapters.zlayout.timeline.files.table_file import FOLDER_NOTE

    spark.sql(f"create schema b location '{out}/b'")
    frame = spark.read.parquet(rows)
    frame.write.parquet(f"{out}/t")

    def adopted(target):
        spark.sql("drop table if exists b.t")
        for folder in (".zlayout", "_spark_metadata"):
            shutil.rmtree(f"{out}/t/{folder}", ignore_errors=True)
        # Without the manifest, Spark would read the note as a Parquet file.
        Path(out, "t", FOLDER_NOTE).unlink(missing_ok=True)
        spark.catalog.createTable("b.t", f"{out}/t", "parquet")
        return ZTable.adopt(spark, "b.t", zorder=keys, managed=True, target_file_size=target)

    # Files come out smaller than they went in: a plan tells how many they would be, and the target follows.
    target = parquet_bytes(f"{out}/t") // files
    target = target * adopted(target).cluster(rewrite_all=True, dry_run=True).groups[0].files_after // files
    table = adopted(target)
    memory = WorkerMemory()
    memory.start()
    seconds, _ = timed(lambda: table.cluster(rewrite_all=True, progress=lambda line: print(line, file=sys.stderr)))
    memory.done.set()
    return seconds, live(table), {"worker_mib": memory.most}


def query(spark, out, rows, keys, files, _):
    """A table from a query: Spark's plain write after a repartition, ours on the first build, ours with its cuts."""
    from dbt.adapters.zlayout.table.ztable import ZTable

    spark.sql(f"create schema b location '{out}/b'")
    frame = spark.read.parquet(rows)

    def plain():
        frame.repartition(files).write.mode("overwrite").parquet(f"{out}/plain")

    def build():
        return ZTable.write(spark, "b.t", frame, zorder=keys, target_file_size=size // files)

    plain()
    size = parquet_bytes(f"{out}/plain")
    first, _ = timed(build)
    again, table = timed(build)
    bare, _ = timed(plain)
    return (
        first,
        live(table),
        {"plain": bare, "first": first, "again": again, "passes": table.last_commit["data_passes"]},
    )


ENGINES = {each.__name__: each for each in (ours, delta, iceberg, hudi, query)}


def main():
    work = wanted(__doc__, "table", ENGINES, rows=str, keys=str, identifier=str, files=int)
    seconds, files, more = ENGINES[work.engine](
        session(work), work.out, work.rows, work.keys.split(","), work.files, work.identifier
    )
    size = sum(Path(each).stat().st_size for each in files)
    told = {"engine": work.engine, "seconds": round(seconds, 1), "files": files, "bytes": size, **more}
    print("RESULT " + json.dumps(told))


if __name__ == "__main__":
    main()
