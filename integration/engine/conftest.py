"""One Spark session for the suite, in a warehouse of its own."""

import os
import sys
from pathlib import Path

import pytest

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
# `environments` gets engines and jars for CI, benchmarks and tests.
sys.path.append(str(Path(__file__).parents[2] / ".ci"))
pytest.register_assert_rewrite("delta_readers", "iceberg_readers", "indexed_rows", "published_tables")


def pytest_configure(config):
    # Py4J leaves the sockets of finished threads to the garbage collector, which complains in whatever test comes next.
    config.addinivalue_line("filterwarnings", "ignore:unclosed:ResourceWarning")
    config.addinivalue_line("filterwarnings", "ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    from pyspark.sql import SparkSession

    warehouse = tmp_path_factory.mktemp("warehouse")
    session = (
        SparkSession.builder.master("local[2]")
        .appName("zlayout-engine")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "3g")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(warehouse))
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.hadoop.javax.jdo.option.ConnectionURL", f"jdbc:derby:memory:m{os.getpid()};create=true")
        .enableHiveSupport()
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    session.sql("create schema if not exists z")
    yield session
    session.stop()


@pytest.fixture
def calendar(spark):
    """Spark 3 writes old dates only if it is told in which calendar."""
    keys = [f"spark.sql.parquet.{kind}RebaseModeInWrite" for kind in ("datetime", "int96")]
    before = {key: spark.conf.get(key) for key in keys}
    yield
    for key, value in before.items():
        spark.conf.set(key, value)
