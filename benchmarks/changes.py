"""What a merge costs beside Delta's MERGE, and a small append beside Spark's INSERT.

make bench-changes ARGS="--lab /somewhere/with/10/GB"
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from clustering import ROOT, answer_of

ENGINES = ["copy_on_write", "merge_on_read", "delta", "delta_vectors"]

os.environ["PYSPARK_PYTHON"] = sys.executable

ROWS = """
select id as order_id, id * 7919 % 100003 as customer_id, date_add(date'2024-01-01', cast(id / {a_day} as int)) as day,
    cast(id % 1000 as decimal(18, 2)) as price, concat('note ', id % 977) as note, id % 3 = 0 as paid
from range({start}, {end})
"""


def session(folder):
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "3g")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(folder))
        .config("spark.hadoop.javax.jdo.option.ConnectionURL", "jdbc:derby:memory:bench;create=true")
        .enableHiveSupport()
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    spark.sql("create schema bench")
    return spark


def seconds(action):
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def told(name, times):
    times = sorted(times)
    spread = f"quartiles {times[len(times) // 4] * 1000:.0f}-{times[3 * len(times) // 4] * 1000:.0f} ms"
    print(f"{name:<34} n={len(times):<3} median {statistics.median(times) * 1000:6.0f} ms  {spread}", flush=True)
    return statistics.median(times)


def appends(spark, rounds):
    """A thousand rows at a time, by turns into a plain table and into one of ours, clustered by two keys."""
    from dbt.adapters.zlayout.table.ztable import ZTable

    def rows(number):
        return ROWS.format(a_day=500, start=number * 1000, end=number * 1000 + 1000)

    spark.sql("create table bench.plain using parquet as " + rows(0))
    table = ZTable.write(spark, "bench.clustered", spark.sql(rows(0)), zorder=["day", "customer_id"])
    plain, ours = [], []
    for number in range(1, rounds + 4):
        plain.append(seconds(lambda number=number: spark.sql("insert into bench.plain " + rows(number))))
        ours.append(seconds(lambda number=number: table.append(spark.sql(rows(number)))))
    # The first rounds warm the JVM up.
    ratio = told("append of 1,000 rows", ours[3:]) / told("Spark's INSERT of the same", plain[3:])
    print(f"ratio append : INSERT = {ratio:.2f}")


def merges(given):
    """Merges of a few thousand keys, by each engine in a process of its own on Spark 3.5."""
    answers = {}
    for engine in given.engines:
        options = {"lab": given.lab, "rows": given.rows, "rounds": given.rounds}
        found = answer_of("changes_engines.py", engine, **options)
        answers[engine] = found["answers"]
        for kind, rounds in found["kinds"].items():
            seconds, written, removed, files = (statistics.median(each) for each in zip(*rounds, strict=True))
            print(
                f"| {kind} | {engine} | {seconds:.2f} | {written / 1e6:.2f} | {removed:.0f} of {files:.0f} |",
                flush=True,
            )
    if len(set(map(tuple, answers.values()))) > 1:
        raise SystemExit(f"the tables differ: {answers}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lab", type=Path, default=ROOT / "build" / "bench-changes", help="where data goes")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--engines", nargs="+", default=ENGINES, choices=ENGINES)
    parser.add_argument("--rows", type=int, default=3_000_000, help="of the table that is merged into")
    given = parser.parse_args()
    given.lab = given.lab.absolute()
    given.lab.mkdir(parents=True, exist_ok=True)
    print("| change | engine | seconds | MB written | files replaced |")
    print("|---|---|---|---|---|", flush=True)
    merges(given)
    with tempfile.TemporaryDirectory() as name:
        spark = session(Path(name))
        appends(spark, given.rounds)
        spark.stop()


if __name__ == "__main__":
    main()
