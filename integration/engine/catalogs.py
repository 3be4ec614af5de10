"""Catalogs of pyiceberg for tests: SQL on SQLite, Glue of moto's server, Iceberg's own REST server, Hive's metastore."""

import os
import socket
import subprocess
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.request import urlopen

import environments
import pyspark
from moto.server import ThreadedMotoServer
from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JError

KINDS = ("sql", "glue", "rest", "hive")


@contextmanager
def catalog_of(kind, folder):
    """The properties of an empty catalog, while it runs; its files are in the folder."""
    folder.mkdir()
    started = {"sql": _sql, "glue": _glue, "rest": _rest, "hive": _hive}[kind]
    with started(folder) as properties:
        yield {**properties, "warehouse": f"file://{folder}/warehouse"}


@contextmanager
def _sql(folder):
    yield {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db"}


@contextmanager
def _glue(_):
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    login = {"glue.access-key-id": "key", "glue.secret-access-key": "Secret1", "glue.region": "eu-central-1"}
    yield {"type": "glue", "glue.endpoint": f"http://{host}:{port}", **login}
    server.stop()


@contextmanager
def _rest(folder):
    port = free_port()
    settings = {
        "CATALOG_REST_PORT": str(port),
        "CATALOG_WAREHOUSE": f"file://{folder}/warehouse",
        "CATALOG_IO__IMPL": "org.apache.iceberg.hadoop.HadoopFileIO",
        "CATALOG_CATALOG__IMPL": "org.apache.iceberg.jdbc.JdbcCatalog",
        "CATALOG_URI": f"jdbc:sqlite:{folder}/catalog.db",
    }
    command = ["java", "-cp", _with_jars_of_spark(environments.iceberg_rest_classpath())]
    command.append("org.apache.iceberg.rest.RESTCatalogServer")
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(command, env={**os.environ, **settings}, stdout=log, stderr=log)
    try:
        wait_for(lambda: _answers(f"http://127.0.0.1:{port}/v1/config"), server, folder / "server.log")
        yield {"type": "rest", "uri": f"http://127.0.0.1:{port}"}
    finally:
        server.terminate()
        server.wait(30)


@contextmanager
def _hive(folder):
    port = free_port()
    settings = {
        "javax.jdo.option.ConnectionURL": "jdbc:derby:memory:metastore;create=true",
        "datanucleus.schema.autoCreateAll": "true",
        # Spark's jars hold no pool of connections.
        "datanucleus.connectionPoolingType": "none",
        "hive.metastore.schema.verification": "false",
        "hive.metastore.disallow.incompatible.col.type.changes": "false",
        "hive.metastore.warehouse.dir": f"{folder}/warehouse",
        "hive.async.log.enabled": "false",
    }
    properties = (f"<property><name>{name}</name><value>{value}</value></property>" for name, value in settings.items())
    (folder / "hive-site.xml").write_text(f"<configuration>{''.join(properties)}</configuration>")
    with (folder / "server.log").open("wb") as log:
        gateway = JavaGateway.launch_gateway(
            classpath=_with_jars_of_spark(folder), redirect_stdout=log, redirect_stderr=log, die_on_exit=True
        )
        metastore = gateway.jvm.org.apache.hadoop.hive.metastore
        # The database in memory has tables of locks only if somebody makes them.
        metastore.txn.TxnDbUtil.prepDb(gateway.jvm.org.apache.hadoop.hive.conf.HiveConf())
        arguments = gateway.new_array(gateway.jvm.String, 2)
        arguments[0], arguments[1] = "-p", str(port)

        def serve():
            # Until Java ends.
            with suppress(Py4JError):
                metastore.HiveMetaStore.main(arguments)

        threading.Thread(target=serve, daemon=True).start()
        try:
            wait_for(lambda: _accepts(port), gateway.java_process, folder / "server.log")
            yield {"type": "hive", "uri": f"thrift://127.0.0.1:{port}", "hive.hive2-compatible": "true"}
        finally:
            gateway.java_process.terminate()
            gateway.java_process.wait(30)


def _with_jars_of_spark(classpath):
    return f"{classpath}:{Path(pyspark.__file__).parent}/jars/*"


def wait_for(ready, server, log):
    until = time.monotonic() + 120
    while not ready():
        assert server.poll() is None, log.read_text()
        assert time.monotonic() < until, log.read_text()
        time.sleep(0.2)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def _accepts(port):
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5):
            return True
    except OSError:
        return False


def _answers(url):
    try:
        with urlopen(url, timeout=5):
            return True
    except OSError:
        return False
