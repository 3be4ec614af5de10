"""The servers that the stores talk to, each in a process of its own: an HDFS cluster and S3."""

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

S3_SERVER = Path(__file__).with_name("s3_server.py")
BUCKET = "warehouse"
# What Hadoop's test classes are compiled against; their own descriptors do not name it.
JUNIT = (
    "org.junit.jupiter:junit-jupiter-api:5.13.4",
    "org.junit.platform:junit-platform-commons:1.13.4",
    "org.opentest4j:opentest4j:1.3.0",
)


class NotAvailableError(Exception):
    """What a suite needs cannot be had here; the message says why."""


def minicluster_jars(spark):
    """Hadoop's cluster in one process, of the version that Spark brings, through Spark's own resolver."""
    jars = Path(os.environ.get("SPARK_HOME") or sys.modules["pyspark"].__path__[0]) / "jars"
    (client,) = jars.glob("hadoop-client-api-*.jar")
    version = re.fullmatch(r"hadoop-client-api-(.+)\.jar", client.name)[1]
    wanted = ",".join([f"org.apache.hadoop:hadoop-client-minicluster:{version}", *JUNIT])
    jvm = spark.sparkContext._jvm
    told = jvm.java.io.ByteArrayOutputStream()
    printed = jvm.java.io.PrintStream(told)
    none = jvm.scala.Option.empty()
    nothing = jvm.PythonUtils.toSeq(jvm.java.util.ArrayList())
    maven = getattr(getattr(jvm.org.apache.spark.util, "MavenUtils$"), "MODULE$")
    try:
        settings = maven.buildIvySettings(none, none, True, printed)
        found = maven.resolveMavenCoordinates(wanted, settings, none, False, nothing, False, printed)
    except Exception as error:
        raise NotAvailableError(f"{wanted} cannot be resolved: {error}\n{told.toString()}") from error
    return [str(found.apply(i)) for i in range(found.size())] + [str(jars / "*")]


@contextmanager
def hdfs(spark, folder):
    """Name node and data node; yields the URI of the root.

    Raises:
        NotAvailableError: Hadoop's jars cannot be had.
    """
    jars = minicluster_jars(spark)
    details, log = folder / "details.json", folder / "log"
    java = Path(spark.sparkContext._jvm.java.lang.System.getProperty("java.home")) / "bin" / "java"
    command = [java, "-Xmx512m", f"-Dhadoop.log.dir={folder}", f"-Dtest.build.data={folder}"]
    command += [f"-Dhdfs.minidfs.basedir={folder / 'dfs'}", "-cp", ":".join(jars)]
    command += ["org.apache.hadoop.test.MiniDFSClusterManager", "-format", "-datanodes", "1", "-nnport", "0"]
    command += ["-writeDetails", details]
    with log.open("wb") as output, subprocess.Popen(command, stdout=output, stderr=output, cwd=folder) as process:
        try:
            _wait(process, lambda: details.exists() and details.read_text().endswith("}"), log)
            yield f"hdfs://127.0.0.1:{json.loads(details.read_text())['namenode_port']}"
        finally:
            process.terminate()


@contextmanager
def s3(folder, *options):
    """An S3 server with one bucket; yields its address."""
    log = folder / "log"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    command = [sys.executable, S3_SERVER, str(port), *options]
    with log.open("wb") as output, subprocess.Popen(command, stdout=output, stderr=output) as process:
        try:
            _wait(process, lambda: _bucket_made(address), log)
            yield address
        finally:
            process.terminate()


def s3_environment(address):
    """What obstore reads: where the service is, and whose credentials it gets."""
    return {
        "AWS_ENDPOINT_URL": address,
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
    }


def _bucket_made(address):
    try:
        with urllib.request.urlopen(urllib.request.Request(f"{address}/{BUCKET}", method="PUT"), timeout=5) as answer:
            return answer.status == 200
    except OSError:
        return False


def _wait(process, ready, log, seconds=90):
    until = time.monotonic() + seconds
    while not ready():
        if process.poll() is not None or time.monotonic() > until:
            raise RuntimeError(f"{process.args[0]} did not start:\n{log.read_text()[-4000:]}")
        time.sleep(0.1)
