"""One Spark session, an HDFS cluster and an S3 server for the suite; a store of each kind in a folder of its own."""

import os
import sys
import uuid
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# The contract is that of the unit tests; modules of the suite lie beside it.
sys.path[:0] = [str(Path(__file__).parent), str(ROOT / "tests" / "unit" / "store")]
pytest.register_assert_rewrite("store_contract")
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

import servers  # noqa: E402 - beside this file


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    # Each file of HDFS is some calls through Spark's JVM, and each process of a test a JVM of its own.
    for item in items:
        if item.path.stem in ("test_stores_timeline", "test_stores_table") and "hdfs" in item.name:
            item.add_marker(pytest.mark.slow)


def pytest_configure(config):
    # Py4J leaves the sockets of finished threads to the garbage collector, which complains in whatever test comes next.
    config.addinivalue_line("filterwarnings", "ignore:unclosed:ResourceWarning")
    config.addinivalue_line("filterwarnings", "ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .appName("zlayout-stores")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.hadoop.javax.jdo.option.ConnectionURL", f"jdbc:derby:memory:m{os.getpid()};create=true")
        .enableHiveSupport()
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def hdfs(spark, tmp_path_factory):
    """URI of the cluster's root."""
    try:
        with servers.hdfs(spark, tmp_path_factory.mktemp("hdfs")) as uri:
            yield uri
    except servers.NotAvailableError as error:
        pytest.skip(f"no HDFS cluster: {error}")


@pytest.fixture(scope="session")
def s3(tmp_path_factory):
    with servers.s3(tmp_path_factory.mktemp("s3")) as address, pytest.MonkeyPatch.context() as patch:
        for name, value in servers.s3_environment(address).items():
            patch.setenv(name, value)
        yield f"s3a://{servers.BUCKET}"


@pytest.fixture(params=["local", "hdfs", "s3"])
def location(request, tmp_path):
    """Where a new table would lie, in a folder with a strange name."""
    name = f"table é {uuid.uuid4().hex[:8]}"
    if request.param == "local":
        return str(tmp_path / name)
    return f"{request.getfixturevalue(request.param)}/w/{name.replace(' ', '%20')}"


@pytest.fixture
def store(request, location):
    from dbt.adapters.zlayout.store import open_store

    if location.startswith("hdfs:"):
        from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog

        Catalog(request.getfixturevalue("spark"))
    return open_store(location)
