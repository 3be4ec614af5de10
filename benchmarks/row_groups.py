"""How many row groups a file should have: bytes, rows that queries open, and seconds of a scan of everything."""

import argparse
import os
import statistics
import sys
import tempfile
from functools import partial
from pathlib import Path

import clustering
from changes import seconds, session

os.environ["PYSPARK_PYTHON"] = sys.executable

FILES, SCANS = 8, 5


def main():
    from dbt.adapters.zlayout.table.ztable import ZTable

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1, help="of lineitem")
    parser.add_argument("--events", type=int, default=4_000_000)
    parser.add_argument("--groups", type=int, nargs="+", default=[1, 2, 4, 8, 16, 32])
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        spark = session(Path(folder) / "warehouse")
        sets = {
            "lineitem": clustering.make_lineitem(Path(folder), given.scale),
            "events": clustering.make_events(Path(folder), given.events),
        }
        print("| rows | row groups a file | rows in one | MB | rows opened | write s | scan s |")
        print("|---|---|---|---|---|---|---|", flush=True)
        for name, rows in sets.items():
            keys, frame = clustering.KEYS[name][0], spark.read.parquet(str(rows))
            wanted, count = clustering.queries(rows, keys, 300, seed=1), frame.count()
            size = ZTable.write(spark, f"bench.{name}", frame, zorder=keys).snapshot().files.total_bytes
            for groups in given.groups:
                most = -(-count // FILES // groups)
                settings = {"zorder": keys, "target_file_size": size // FILES, "row_group_rows": most}
                spent = seconds(partial(ZTable.write, spark, f"bench.{name}", frame, **settings))
                table = ZTable.for_name(spark, f"bench.{name}")
                root, files = table.location.removeprefix("file://"), table.snapshot().files
                _, parts = clustering.bounds_of([f"{root}/{path}" for path in files["path"].to_pylist()], keys)
                scan = f"select {', '.join(f'max({column})' for column in frame.columns)} from bench.{name}"
                scans = [seconds(spark.sql(scan).collect) for _ in range(SCANS)]
                shares = f"{files.total_bytes / 1e6:.1f} | {100 * clustering.opened(parts, wanted):.1f} %"
                print(
                    f"| {name} | {groups} | {most:,} | {shares} | {spent:.1f} | {statistics.median(scans):.2f} |",
                    flush=True,
                )


main()
