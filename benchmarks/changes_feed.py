"""What reading the changes of a table costs beside a watermark on a timestamp column, and what the watermark misses.

make bench-changes-feed ARGS="--rows 10000000"
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from functools import partial
from pathlib import Path

from changes import seconds, session
from pyspark.sql.functions import expr

_ROW = """
select id as order_id, id * 7919 % 100003 as customer_id, date_add(date'2024-01-01', cast(id / {a_day} as int)) as day,
    cast(id % 1000 as decimal(18, 2)) as price, concat('note ', id % 977) as note, {stamp} as updated_at
from {ids}
"""
_LATE = 0.01


def rows(spark, ids, a_day, stamp):
    return spark.sql(_ROW.format(a_day=a_day, stamp=f"timestamp'{stamp}'", ids=ids))


def changes_of(kind, number, total):
    """The keys that one round changes, as a source of ids: a thousandth of the table."""
    count = total // 1000
    if kind == "appended":
        return f"range({total + number * count}, {total + (number + 1) * count})"
    if kind == "updated, neighbouring keys":
        return f"range({total - (number + 2) * count}, {total - (number + 1) * count})"
    return f"(select id * 1000 + {number} as id from range({count}))"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=4)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        spark = session(Path(folder))
        measure(spark, given.rows, given.rounds)
        spark.stop()


def measure(spark, total, rounds):
    from dbt.adapters.zlayout import enable

    enable(spark)
    print("| change | way | seconds | files read | rows found | rows missed |")
    print("|---|---|---|---|---|---|", flush=True)
    for number, kind in enumerate(("appended", "updated, neighbouring keys", "updated, keys all over")):
        measure_kind(spark, f"bench.t{number}", kind, total, rounds)


def measure_kind(spark, name, kind, total, rounds):
    from dbt.adapters.zlayout.table.ztable import ZTable

    first = rows(spark, f"range({total})", total // 365, "2026-01-01 00:00:00")
    settings = {"zorder": ["day", "customer_id"], "target_file_size": "8mb", "retain_versions": 99}
    table = ZTable.write(spark, name, first, **settings)
    found = {"changes": [], "watermark": []}
    for number in range(rounds + 1):
        past, now = (f"2026-01-{number + day:02d} 00:00:00" for day in (1, 2))
        # Some rows come late: their time is before the watermark of the last run.
        late = f"if(order_id % {int(1 / _LATE)} = 0, timestamp'2025-12-31 00:00:00', updated_at)"
        changed = rows(spark, changes_of(kind, number, total), total // 365, now).withColumn("updated_at", expr(late))
        before = table.version
        table.append(changed) if kind == "appended" else table.merge(changed, "order_id")
        ways = {
            "changes": partial(table.net_changes, before, unique_key="order_id"),
            "watermark": partial(spark.sql, f"select * from {name} where updated_at > timestamp'{past}'"),
        }
        for way, query in sorted(ways.items(), reverse=number % 2 == 1):
            # Making the query is part of it: both plan which files they read.
            taken = seconds(lambda query=query: query().write.format("noop").mode("overwrite").save())
            if number:  # the first round warms up
                found[way].append((taken, files_read(table, before, way, past), query().count()))
    for way, each in found.items():
        taken, files, count = (statistics.median(values) for values in zip(*each, strict=True))
        shown = f"{taken:.2f} | {files:.0f} of {len(table.snapshot().files)}"
        print(f"| {kind} | {way} | {shown} | {count:,.0f} | {total // 1000 - count:,.0f} |", flush=True)
    spark.sql(f"drop table {name}")


def files_read(table, before, way, past):
    if way == "changes":
        return len(table.net_changes(before, unique_key="order_id").inputFiles())
    return table.explain(f"updated_at > timestamp'{past}'").kept_files


if __name__ == "__main__":
    main()
