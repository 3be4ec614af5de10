"""One engine lays out lineitem and orders and answers queries: run by `advice_queries.py`, with Spark 3.5 and its jar.

Prints one line of JSON: what was written, and for each query what Spark's tasks read of the two tables (the metric
input.bytesRead of the stages that scan them, which Spark counts in the same way for all engines), the files that the
scans opened, seconds, and a digest of the rows. All of it but the seconds comes from Spark's event log.
"""

import hashlib
import json
import re
from collections import defaultdict
from pathlib import Path

from clustering_engines import delta, iceberg, live, parquet_bytes, session, timed, wanted

TABLES = ("lineitem", "orders")
OTHERS = ("customer", "nation", "part", "partsupp", "region", "supplier")
SCAN = re.compile(rf"Scan .*\.({'|'.join(TABLES)})\b")
# Spark's own scans have the first two, Iceberg's the others.
METRICS = {
    "number of files read": "files",
    "size of files read": "opened",
    "number of result data files": "files",
    "total data file size (bytes)": "opened",
}


def ours(spark, work, asked, name):
    from dbt.adapters.zlayout import ZTable, enable

    enable(spark)
    rows = f"{work.rows}/{name}"
    settings = {"target_file_size": parquet_bytes(rows) // asked["files"][name]}
    if asked["keys"][name] == "auto":
        settings["workload"] = asked["conditions"][name]
    spark.sql(f"create schema if not exists b location '{work.out}/b'")
    frame = spark.read.parquet(rows)
    seconds, table = timed(lambda: ZTable.write(spark, f"b.{name}", frame, zorder=asked["keys"][name], **settings))
    about = table.information()
    return seconds, live(table), f"b.{name}", {"zorder": about["zorder"], "why": about.get("auto_keys", "")}


def of_delta(spark, work, asked, name):
    rows, keys = f"{work.rows}/{name}", asked["keys"][name]
    seconds, files, _ = delta(spark, work.out, rows, keys, asked["files"][name], None, name)
    spark.sql(f"create table {name} using delta location '{work.out}/{name}'")
    return seconds, files, f"default.{name}", {"zorder": keys}


def of_iceberg(spark, work, asked, name):
    rows, keys = f"{work.rows}/{name}", asked["keys"][name]
    seconds, files, _ = iceberg(spark, work.out, rows, keys, asked["files"][name], None, name)
    return seconds, files, f"ice.db.{name}", {"zorder": keys}


ENGINES = {"ours": ours, "delta": of_delta, "iceberg": of_iceberg}


class Log:
    """What queries read, by job group and table, from Spark's event log."""

    def __init__(self, path):
        self.found = defaultdict(lambda: {kind: dict.fromkeys(TABLES, 0) for kind in ("read", "files", "opened")})
        self._groups, self._executions, self._metrics, self._updates = {}, {}, {}, {}
        heard = {
            "SparkListenerJobStart": self._job,
            "SparkListenerStageCompleted": self._stage,
            "SparkListenerSQLExecutionStart": lambda event: self._plan(event["sparkPlanInfo"]),
            "SparkListenerSQLAdaptiveExecutionUpdate": lambda event: self._plan(event["sparkPlanInfo"]),
            "SparkListenerDriverAccumUpdates": self._update,
        }
        for event in map(json.loads, path.read_text("utf-8").splitlines()):
            heard.get(event["Event"].rpartition(".")[2], lambda _: None)(event)
        for (execution, accumulator), value in self._updates.items():
            if accumulator in self._metrics and execution in self._executions:
                kind, table = self._metrics[accumulator]
                self.found[self._executions[execution]][kind][table] += value

    def _job(self, event):
        group = event["Properties"].get("spark.jobGroup.id")
        self._groups |= dict.fromkeys(event["Stage IDs"], group)
        self._executions[event["Properties"].get("spark.sql.execution.id")] = group

    def _stage(self, event):
        stage = event["Stage Info"]
        scopes = [json.loads(each["Scope"])["name"] for each in stage["RDD Info"] if "Scope" in each]
        tables = {match[1] for each in scopes if (match := SCAN.search(each))}
        if len(tables) > 1:
            raise SystemExit(f"a stage scans {tables}: its bytes cannot be told apart")
        for each in stage["Accumulables"]:
            if tables and each["Name"] == "internal.metrics.input.bytesRead":
                self.found[self._groups[stage["Stage ID"]]]["read"][next(iter(tables))] += int(each["Value"])

    def _plan(self, plan):
        match = SCAN.search(plan["nodeName"])
        for each in plan["metrics"] if match else []:
            if each["name"] in METRICS:
                self._metrics[each["accumulatorId"]] = METRICS[each["name"]], match[1]
        for child in plan["children"]:
            self._plan(child)

    def _update(self, event):
        for accumulator, value in event["accumUpdates"]:
            self._updates[str(event["executionId"]), accumulator] = value


def digest(rows):
    return hashlib.sha256("\n".join(sorted(map(repr, map(tuple, rows)))).encode()).hexdigest()[:12]


def main():
    work = wanted(__doc__, "advice", ENGINES, rows=Path, asked=Path)
    asked = json.loads(work.asked.read_text("utf-8"))
    events = work.out / "events"
    events.mkdir(parents=True)
    log = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": events.as_uri(), "spark.eventLog.compress": "false"}
    spark = session(work, **{"spark.driver.memory": "6g", "spark.sql.shuffle.partitions": "16", **log})
    told = {"engine": work.engine, "tables": {}, "queries": {}}
    for name in OTHERS:
        spark.read.parquet(f"{work.rows}/{name}").createOrReplaceTempView(name)
    for name in TABLES:
        seconds, files, table, about = ENGINES[work.engine](spark, work, asked, name)
        size = sum(Path(each).stat().st_size for each in files)
        told["tables"][name] = {"seconds": round(seconds, 1), "files": len(files), "bytes": size, **about}
        spark.table(table).createOrReplaceTempView(name)
    spark.sql("select count(*), max(o_orderkey) from orders join customer on o_custkey = c_custkey").collect()
    for name, sql in asked["queries"]:
        spark.sparkContext.setJobGroup(name, name)
        seconds, rows = timed(lambda text=sql: spark.sql(text).collect())
        told["queries"][name] = {"seconds": seconds, "rows": digest(rows)}
    application = spark.sparkContext.applicationId
    spark.stop()
    for name, read in Log(events / application).found.items():
        if name in told["queries"]:
            told["queries"][name] |= read
    print("RESULT " + json.dumps(told))


if __name__ == "__main__":
    main()
