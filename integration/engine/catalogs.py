"""Catalogs of pyiceberg for tests: SQL on SQLite, Glue of moto's server, and Iceberg's own REST server."""

import os
import socket
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import environments
import pyspark
from moto.server import ThreadedMotoServer

KINDS = ("sql", "glue", "rest")


@contextmanager
def catalog_of(kind, folder):
    """The properties of an empty catalog, while it runs; its files are in the folder."""
    folder.mkdir()
    started = {"sql": _sql, "glue": _glue, "rest": _rest}[kind]
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
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = {
        "CATALOG_REST_PORT": str(port),
        "CATALOG_WAREHOUSE": f"file://{folder}/warehouse",
        "CATALOG_IO__IMPL": "org.apache.iceberg.hadoop.HadoopFileIO",
        "CATALOG_CATALOG__IMPL": "org.apache.iceberg.jdbc.JdbcCatalog",
        "CATALOG_URI": f"jdbc:sqlite:{folder}/catalog.db",
    }
    jars = f"{environments.iceberg_rest_classpath()}:{Path(pyspark.__file__).parent}/jars/*"
    command = ["java", "-cp", jars, "org.apache.iceberg.rest.RESTCatalogServer"]
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(command, env={**os.environ, **settings}, stdout=log, stderr=log)
    try:
        _wait(f"http://127.0.0.1:{port}/v1/config", server, folder / "server.log")
        yield {"type": "rest", "uri": f"http://127.0.0.1:{port}"}
    finally:
        server.terminate()
        server.wait(30)


def _wait(url, server, log):
    until = time.monotonic() + 60
    while not _answers(url):
        assert server.poll() is None, log.read_text()
        assert time.monotonic() < until, log.read_text()
        time.sleep(0.2)


def _answers(url):
    try:
        with urlopen(url, timeout=5):
            return True
    except OSError:
        return False
