"""Nobody but the session's own JVM is answered by the port on which Spark asks for files."""

import gc
import os
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from pyspark.java_gateway import ensure_callback_server_started

from dbt.adapters.zlayout import enable
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog
from dbt.adapters.zlayout.spark.jvm import callbacks
from dbt.adapters.zlayout.spark.jvm.callbacks import ensure_skipping
from dbt.adapters.zlayout.spark.read.file_index import ZlayoutFileIndex
from dbt.adapters.zlayout.spark.read.relations import installed
from dbt.adapters.zlayout.table.ztable import ZTable


@pytest.fixture(scope="module")
def table(spark):
    enable(spark)
    table = ZTable.write(spark, "z.asked", spark.range(1000), zorder=["id"], target_file_size="2kb")
    assert len(table.snapshot().files) > 2
    return table


def connected(spark):
    server = spark.sparkContext._gateway._callback_server
    deadline = time.monotonic() + 10
    while True:
        # Py4J knows the port a moment before its thread listens.
        with suppress(ConnectionRefusedError):
            found = socket.create_connection(("127.0.0.1", server.get_listening_port()))
            found.settimeout(10)
            return found
        assert time.monotonic() < deadline
        time.sleep(0.01)


def answer(connection, message):
    """What comes back; nothing when the connection was ended."""
    try:
        connection.sendall(message)
        return connection.recv(1000)
    except ConnectionError:
        return b""


def a_call(spark):
    """``toString`` of a file index, as Py4J sends it."""
    known = spark.sparkContext._gateway.gateway_property.pool.dict
    name = next(name for name, each in known.items() if isinstance(each, ZlayoutFileIndex))
    return f"c\n{name}\ntoString\ne\n".encode()


def files_read(spark, condition):
    spark.sql(f"select * from z.asked where {condition}").collect()
    return installed(Catalog(spark), Catalog(spark).name("z.asked")).last_scan[0]


@pytest.mark.parametrize("greeting", [b"", b"A\nguessed\ne\n"], ids=["without a token", "with a wrong one"])
def test_a_stranger_gets_no_answer(spark, table, greeting):
    assert files_read(spark, "id = 5") == 1
    with connected(spark) as stranger:
        assert answer(stranger, greeting + a_call(spark)) in (b"", b"!xn\n")  # Py4J's word for an error
        assert answer(stranger, a_call(spark)) == b""
    assert files_read(spark, "id = 5") == 1


def test_several_threads_are_answered(spark, table):
    def rows(upper):
        joined = "select count(*) from z.asked a join z.asked b using (id) where a.id < "
        return spark.sql(f"{joined}{upper}").collect()[0][0]

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(rows, range(10, 18))) == list(range(10, 18))
    assert files_read(spark, "id = 5") == 1


@pytest.fixture
def open_to_all(spark, table):
    """The callback server as PySpark starts it for ``foreachBatch``."""
    gateway = spark.sparkContext._gateway
    gateway._callback_server, gateway.python_parameters.auth_token = None, None
    ensure_callback_server_started(gateway)
    yield gateway
    assert ensure_skipping(spark) == (True, "ok")


class Batch:
    """What runs while Java waits for it, as the function of ``foreachBatch`` does."""

    def __init__(self, work):
        self.work = work

    def get(self):
        return self.work()

    class Java:
        implements = ("java.util.function.Supplier",)


def test_a_server_that_ran_without_a_token_asks_for_one_from_now_on(spark, open_to_all, monkeypatch):
    owners = callbacks._owners
    with connected(spark) as early, connected(spark) as late:
        assert answer(early, a_call(spark)).startswith(b"!ys")  # it is open to all
        here = callbacks._peer(*early.getsockname())
        monkeypatch.setattr(
            callbacks, "_owners", lambda path: ((peer, uid + (peer == here)) for peer, uid in owners(path))
        )
        batch = Batch(lambda: f"{ensure_skipping(spark)}, {files_read(spark, 'id = 5')}")
        assert open_to_all.jvm.java.util.Optional.empty().orElseGet(batch) == "(True, 'ok'), 1"
        assert answer(early, a_call(spark)) == b""
        assert answer(late, a_call(spark)).startswith(b"!ys")  # the same user's
    with connected(spark) as stranger:
        assert answer(stranger, a_call(spark)) == b""


def test_skipping_is_refused_where_nobody_can_tell_whose_an_open_connection_is(spark, open_to_all, monkeypatch):
    with connected(spark) as early, monkeypatch.context() as elsewhere:
        assert answer(early, a_call(spark)).startswith(b"!ys")
        elsewhere.setattr(callbacks, "_SOCKET_TABLES", ())
        available, reason = ensure_skipping(spark)
        assert not available
        assert "call enable(spark) before anything that calls back" in reason


def test_linux_says_whose_a_connection_is():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        owners = {peer: uid for table in callbacks._SOCKET_TABLES for peer, uid in callbacks._owners(table)}
        assert owners[callbacks._peer(*client.getsockname())] == os.getuid()


@pytest.mark.slow
def test_indexes_of_sessions_that_are_gone_are_let_go(spark, table):
    def indexes():
        found = [each for each in list(pool.values()) if isinstance(each, ZlayoutFileIndex)]
        return [each for each in found if each.opened.table_id == table._opened.table_id]

    def in_a_new_session():
        session = spark.newSession()
        enable(session)
        assert session.sql("select * from z.asked where id = 5").count() == 1

    pool, jvm = spark.sparkContext._gateway.gateway_property.pool.dict, Catalog(spark).jvm
    for _ in range(10):
        in_a_new_session()
    for _ in range(50):
        in_a_new_session()
        gc.collect()
        jvm.lang.System.gc()
        jvm.lang.System.runFinalization()
        time.sleep(0.1)
        if len(indexes()) <= 3:
            break
    assert len(indexes()) <= 3
    assert files_read(spark, "id = 7") == 1
