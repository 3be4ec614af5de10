"""The dbt project run as a user runs it, and a Spark session on what it built."""

import os
import subprocess
import sys
from pathlib import Path

import yaml

HERE = Path(__file__).parent
# Spark's workers run on this Python, whatever else is on the PATH.
os.environ["PYSPARK_PYTHON"] = sys.executable


def file_sizes(scale_factor):
    """Variables of the project that give each clustered table some 40 files, whatever the scale factor."""
    return {"lineitem_file_size": int(scale_factor * (4 << 20)), "orders_file_size": int(scale_factor * (1 << 20))}


def environment(home, master):
    """Variables that the profile reads."""
    return {
        **os.environ,
        "TPCH_HOME": str(Path(home).resolve()),
        "TPCH_MASTER": master,
        "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
    }


def dbt(home, *arguments, master="local[*]", **how):
    """Runs one dbt command of the project in a process of its own."""
    program = [Path(sys.executable).with_name("dbt"), *arguments]
    paths = ["--target-path", str(Path(home).resolve() / "target"), "--log-path", str(Path(home).resolve() / "logs")]
    return subprocess.run([*program, *paths], cwd=HERE, env=environment(home, master), check=False, text=True, **how)


def session(home, master="local[*]"):
    """A plain Spark session on the project's catalog: the profile's configuration, and nothing of dbt."""
    from pyspark.sql import SparkSession

    variables = environment(home, master)
    parameters = yaml.safe_load((HERE / "profiles.yml").read_text())["tpch"]["outputs"]["local"][
        "server_side_parameters"
    ]
    builder = SparkSession.builder.appName("tpch").enableHiveSupport().config("spark.log.level", "ERROR")
    for key, value in parameters.items():
        builder = builder.config(key, _rendered(value, variables))
    return builder.getOrCreate()


def end_session(spark):
    """Stops the session and its Java process, which holds the metastore that the next dbt command opens."""
    gateway = spark.sparkContext._gateway
    spark.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()  # Java ends with its standard input
    gateway.proc.wait(timeout=60)


def _rendered(value, variables):
    import jinja2

    return jinja2.Template(str(value)).render(env_var=lambda name, default=None: variables.get(name, default))
