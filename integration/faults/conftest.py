"""One JVM that stands for the cluster, and processes that write in it and may die."""

import os
import random
import sys
from pathlib import Path

import pytest

HERE = str(Path(__file__).parent)


def pytest_addoption(parser):
    parser.addoption("--faults", choices=("few", "sample", "full"), default="few", help="how many faults and schedules")
    parser.addoption("--faults-done", help="a file that remembers what a full run has done, so that it can go on")
    parser.addoption("--faults-minutes", type=float, default=1e6, help="a full run stops after so long, to go on later")


def pytest_configure(config):
    # Py4J leaves the sockets of finished threads to the garbage collector, which complains in whatever test comes next.
    config.addinivalue_line("filterwarnings", "ignore:unclosed:ResourceWarning")
    config.addinivalue_line("filterwarnings", "ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(scope="session")
def seed():
    chosen = int(os.environ.get("ZLAYOUT_SEED", random.randrange(10**6)))
    print(f"ZLAYOUT_SEED={chosen}")
    return chosen


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    from pyspark.sql import SparkSession

    base = tmp_path_factory.mktemp("faults")
    (base / "tables").mkdir()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # Writers and Spark's workers find the suite's modules.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [HERE, os.environ.get("PYTHONPATH")]))
    os.environ["ZLAYOUT_FAULTS_BASE"] = str(base)
    session = (
        SparkSession.builder.master("local[2]")
        .appName("zlayout-faults")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(base / "warehouse"))
        .config("spark.python.daemon.module", "fault_daemon")
        .config("spark.hadoop.javax.jdo.option.ConnectionURL", f"jdbc:derby:memory:f{os.getpid()};create=true")
        .enableHiveSupport()
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    session.sql(f"create schema if not exists z location '{base}/tables'")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def bench(spark):
    from fault_bench import Bench

    found = Bench(spark, Path(os.environ["ZLAYOUT_FAULTS_BASE"]))
    yield found
    found.close()
