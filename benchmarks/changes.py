"""What a small append costs beside Spark's INSERT, and a merge of a thousand keys beside rewriting the table."""

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

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
    from dbt.adapters.zlayout.table import ZTable

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


def merges(spark, rounds, total):
    """A thousand keys of one stretch of the table, and a thousand from all over it, against rewriting all of it."""
    from dbt.adapters.zlayout.table import ZTable

    a_day = total // 200
    query = ROWS.format(a_day=a_day, start=0, end=total)
    settings = {"zorder": ["order_id"], "target_file_size": "200kb"}
    table = ZTable.write(spark, "bench.merged", spark.sql(query), **settings)
    files = len(table.snapshot().files)
    stretch, everywhere, rewrite = [], [], []
    changed = "select * except (price), cast(-1 as decimal(18, 2)) price from"
    for number in range(rounds):
        low = (number + 1) * total // (rounds + 2)
        near = spark.sql(f"{changed} ({ROWS.format(a_day=a_day, start=low, end=low + 1000)})")
        far = spark.sql(f"{changed} ({query}) where order_id % {total // 1000} = {number}")
        stretch.append(seconds(lambda near=near: table.merge(near, ["order_id"])))
        touched = table.last_commit.files_removed
        near.createOrReplaceTempView("near")
        whole = spark.sql(
            "select o.order_id, o.customer_id, o.day, coalesce(n.price, o.price) price, o.note, o.paid "
            "from bench.merged o left join near n on o.order_id = n.order_id"
        )
        rewrite.append(seconds(lambda whole=whole: ZTable.write(spark, "bench.merged", whole, **settings)))
        everywhere.append(seconds(lambda far=far: table.merge(far, ["order_id"])))
        print(
            f"  round {number}: {touched} of {files} files in the stretch, {table.last_commit.files_removed} all over"
        )
    near_ms = told("merge of 1,000 keys in a stretch", stretch)
    told("merge of 1,000 keys all over", everywhere)
    print(f"ratio rewriting : merging a stretch = {told('rewriting the table', rewrite) / near_ms:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--rows", type=int, default=3_000_000, help="of the table that is merged into")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        spark = session(Path(name))
        appends(spark, given.rounds)
        merges(spark, max(2, given.rounds // 3), given.rows)
        spark.stop()


if __name__ == "__main__":
    main()
