"""The contract of the stores on every kind that runs here, and who is refused because it cannot keep it."""

import pytest
import servers
from py4j.protocol import Py4JJavaError
from store_contract import StoreContract, StoreRaces

from dbt.adapters.zlayout.errors import StoreError, UnsupportedError
from dbt.adapters.zlayout.spark.jvm.hadoop_store import HadoopStore, open_hadoop_store
from dbt.adapters.zlayout.store import check_create_if_absent, open_store
from dbt.adapters.zlayout.store.cloud import CloudStore

# About one round in twenty has two winners.
MOST_ROUNDS = 1000


class TestEachStore(StoreContract, StoreRaces):
    """Every store that a table may lie on."""

    def test_it_keeps_the_promise_when_tried(self, store):
        check_create_if_absent(store)
        assert store.list("", recursive=True) == []

    def test_its_root_is_the_location_in_spark_s_spelling(self, store, location):
        expected = location.replace("é", "%C3%A9")
        assert store.root_uri == (expected if "://" in location else "file://" + expected.replace(" ", "%20"))
        assert open_store(store.root_uri).root_uri == store.root_uri


class TestHadoopOnLocalFiles(StoreContract):
    """The same code as for HDFS on ``file:``, whose rename is no single step: all but the races."""

    @pytest.fixture
    def store(self, spark, tmp_path):
        return HadoopStore(spark, f"file://{tmp_path}/table%20x")

    @pytest.mark.slow
    def test_two_renames_at_once_can_both_succeed(self, store):
        assert any(_both_renames_succeed(store, number) for number in range(MOST_ROUNDS)), (
            "a rename has become exclusive: file: could be served through Hadoop"
        )

    def test_so_it_is_refused(self, store):
        with pytest.raises(UnsupportedError, match=r"'file' through Hadoop.*overwrites it.*file:///path"):
            open_hadoop_store(store.root_uri)


def _both_renames_succeed(store, number):
    """One round of a race inside the JVM: two files to one name, neither with leave to overwrite."""
    hadoop, jvm = store._hadoop, store._hadoop._jvm
    store.put(f"{number}/.folder", b"")
    store.put("a", b"a")
    store.put("b", b"b")
    path = "Lorg/apache/hadoop/fs/Path;"
    rename = jvm.virtual(
        "org.apache.hadoop.fs.FileContext", "rename", f"({path}{path}[Lorg/apache/hadoop/fs/Options$Rename;)V"
    ).asFixedArity()
    to_one_name = jvm.fixed(
        jvm.fixed(jvm.fixed(rename, 0, store._files), 1, store._path(f"{number}/x")), 1, hadoop.no_overwrite
    )
    consumer = jvm.function(to_one_name, "java.util.function.Consumer", "(Ljava/lang/Object;)V")
    try:
        jvm.list_of([store._path("a"), store._path("b")]).parallelStream().forEach(consumer)
    except Py4JJavaError as error:
        assert "FileAlreadyExistsException" in str(error)  # noqa: PT017 - most rounds end so
    return not store.exists("a") and not store.exists("b")


@pytest.mark.parametrize("location", ["hdfs"], indirect=True)
def test_hdfs_knows_no_colon_in_a_name_and_says_so(store):
    with pytest.raises(StoreError, match=r"a:b"):
        store.create("k=a:b", b"x")


def test_a_view_is_served_where_hdfs_is_behind_it_and_refused_where_local_files_are(spark, hdfs, tmp_path):
    configuration = spark.sparkContext._jsc.hadoopConfiguration()
    configuration.set("fs.viewfs.mounttable.views.link./good", f"{hdfs}/")
    configuration.set("fs.viewfs.mounttable.views.link./bad", f"file://{tmp_path}")
    store = open_hadoop_store("viewfs://views/good/w/through%20a%20view")
    assert store.root_uri == "viewfs://views/good/w/through%20a%20view"
    store.create("a b/x", b"rows")
    assert HadoopStore(spark, f"{hdfs}/w/through%20a%20view").read("a b/x") == b"rows"
    assert [file.path for file in store.list("", recursive=True)] == ["a b/x"]
    with pytest.raises(UnsupportedError, match="'file' through Hadoop"):
        open_hadoop_store("viewfs://views/bad/t")


def test_a_cluster_that_does_not_answer_is_named(spark):
    with pytest.raises(StoreError, match=r"x: ConnectException: .*localhost:1 failed"):
        HadoopStore(spark, "hdfs://127.0.0.1:1/t").read("x")


def test_a_service_that_ignores_the_condition_is_refused(tmp_path, monkeypatch):
    with servers.s3(tmp_path, "--ignore-conditions") as address:
        for name, value in servers.s3_environment(address).items():
            monkeypatch.setenv(name, value)
        store = CloudStore(f"s3://{servers.BUCKET}/ignoring")
        with pytest.raises(UnsupportedError, match="overwrites a file that should be created only if it is absent"):
            check_create_if_absent(store)
        assert store.list("", recursive=True) == []
