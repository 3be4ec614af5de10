"""Processes that write: forked from one that has imported everything, each with a session of its own in a shared JVM.

A writer is a whole process with its own process id, so SIGKILL ends it as it ends any; the JVM that outlives it stands
for the cluster. Reads a job a line from standard input, answers a line each.
"""

import json
import os
import signal
import sys
import time
import traceback
from pathlib import Path

import fault_actions
from fault_points import FaultPoints, Order, watch_catalog
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

_SECONDS = 120


def attach(gateway: list) -> SparkSession:
    """A new session in the JVM behind a gateway."""
    os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"] = str(gateway[0]), gateway[1]
    SparkContext._gateway = launch_gateway()
    SparkContext._jvm = jvm = SparkContext._gateway.jvm
    java = jvm.org.apache.spark.api.java.JavaSparkContext.fromSparkContext(
        jvm.org.apache.spark.SparkContext.getOrCreate()
    )
    context = SparkContext(gateway=SparkContext._gateway, jsc=java, conf=SparkConf(_jconf=java.getConf()))
    return SparkSession(context).newSession()


def work(job: dict) -> dict:
    """Does one job in this process, which ends after it."""
    base, order_file = Path(job["base"]), Path(job["order_file"])
    spark = attach(job["gateway"])
    points = FaultPoints(base / "tables", order_file, "writer")
    watch_catalog(points)
    points.install()
    action = fault_actions.by_name(job["action"])
    Order(job["at"], job["fault"], os.getpid()).save(order_file)
    time.sleep(max(0.0, job["start"] - time.time()))
    try:
        version = action.run(spark, job["table"], job["seed"])
    except Exception as error:
        return {"error": type(error).__name__, "message": str(error), "trace": traceback.format_exc()}
    return {"version": version}


def fork(job: dict) -> int:
    pid = os.fork()
    if pid:
        return pid
    os.setsid()
    # The answers of the yard go to stdout, and nothing that a writer prints.
    os.dup2(2, 1)
    code = 1
    try:
        answer = work(job)
        Path(job["answer_file"]).write_text(json.dumps(answer))
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        # Not by the usual way out: it would stop the context that all writers share.
        os._exit(code)


def outcome(job: dict, pid: int, until: float) -> dict:
    """How a writer ended."""
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            break
        if time.time() > until:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return {"error": "Timeout", "message": f"still running after {_SECONDS} s", "trace": ""}
        time.sleep(0.01)
    code = os.waitstatus_to_exitcode(status)
    if code == -signal.SIGKILL:
        return {"killed": True}
    answer = Path(job["answer_file"])
    return json.loads(answer.read_text()) if code == 0 else {"error": "Crash", "message": str(code), "trace": ""}


def main() -> None:
    for line in sys.stdin:
        jobs = json.loads(line)
        until = time.time() + _SECONDS
        started = [(job, fork(job)) for job in jobs]
        print(json.dumps([outcome(job, pid, until) for job, pid in started]), flush=True)


if __name__ == "__main__":
    main()
