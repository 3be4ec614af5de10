"""Trino's server with catalogs that a test gives it, for as long as the test wants it."""

import json
import os
import subprocess
from contextlib import contextmanager
from urllib.request import urlopen

import environments
from catalogs import free_port, wait_for

CONNECTORS = ("delta-lake", "iceberg")


@contextmanager
def trino_of(folder, catalogs):
    """The port of a server, while it runs.

    Args:
        folder: Where the server keeps its files.
        catalogs: By its name, the lines of the file that describes a catalog.
    """
    home, port = environments.trino_home(), free_port()
    settings = {
        "coordinator": "true",
        "node-scheduler.include-coordinator": "true",
        "http-server.http.port": port,
        "discovery.uri": f"http://127.0.0.1:{port}",
        "plugin.dir": folder / "plugin",
        "catalog.config-dir": folder / "catalog",
        "query.max-memory-per-node": "256MB",
        "memory.heap-headroom-per-node": "256MB",
    }
    (folder / "plugin").mkdir(parents=True)
    # Each connector takes seconds to load, and there are sixty of them.
    for each in CONNECTORS:
        (folder / "plugin" / each).symlink_to(home / "plugin" / each)
    (folder / "config.properties").write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    (folder / "catalog").mkdir()
    for name, lines in catalogs.items():
        (folder / "catalog" / f"{name}.properties").write_text(lines)
    java = environments.java_home(environments.JAVA_OF_TRINO) / "bin" / "java"
    node = {
        "node.environment": "tests",
        "node.id": "tests",
        "node.data-dir": folder,
        "config": folder / "config.properties",
    }
    options = ["-Xmx1G", "--add-modules=jdk.incubator.vector", "--enable-native-access=ALL-UNNAMED"]
    command = [java, *options, *(f"-D{key}={value}" for key, value in node.items()), "-cp", f"{home}/lib/*"]
    environment = {key: value for key, value in os.environ.items() if key != "JDK_JAVA_OPTIONS"}
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(
            [*command, "io.trino.server.TrinoServer"], cwd=folder, env=environment, stdout=log, stderr=log
        )
    try:
        wait_for(lambda: _has_started(port), server, folder / "server.log")
        yield port
    finally:
        server.terminate()
        server.wait(60)


def _has_started(port):
    try:
        with urlopen(f"http://127.0.0.1:{port}/v1/info", timeout=5) as answer:
            return not json.load(answer)["starting"]
    except OSError:
        return False
