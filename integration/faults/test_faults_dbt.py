"""Spark's Java process is killed while dbt runs: the model fails, the later ones and the next command have a new process."""

import json
import os
import subprocess
import sys
import textwrap

import pytest
import yaml

SLOW = "select java_method('java.lang.Thread', 'sleep', cast({{ var('wait') }} as bigint)) as ended, 1 as id"
TABLE = "{{ config(materialized='zordered_table', zorder=['id']) }} "
RUNNER = textwrap.dedent(
    """
    import json, os, signal, sys, threading
    from pyspark import SparkContext
    from dbt.cli.main import dbtRunner

    folder = sys.argv[1]

    def kill():
        while not os.path.exists(f"{folder}/begun"):
            pass
        os.kill(SparkContext._gateway.proc.pid, signal.SIGKILL)

    def begun(event):
        # Spark has the query: its first progress line is here.
        if "main.b_slow: query: " in event.info.msg:
            open(f"{folder}/begun", "w").close()

    threading.Thread(target=kill, daemon=True).start()
    for wait in (600_000, 0):
        words = ["run", "--threads", "1", "--vars", json.dumps({"wait": wait})]
        done = dbtRunner(callbacks=[begun]).invoke([*words, "--project-dir", folder, "--profiles-dir", folder])
        for each in done.result or ():
            print("RESULT", json.dumps([each.node.name, str(each.status), each.message]), flush=True)
    """
)


@pytest.mark.slow
def test_dbt_outlives_its_java_process(tmp_path):
    folder = tmp_path / "project"
    (folder / "models").mkdir(parents=True)
    for name, sql in {"a_before": "select 1 as id", "b_slow": SLOW, "c_after": "select 2 as id"}.items():
        (folder / "models" / f"{name}.sql").write_text(TABLE + sql, "utf-8")
    settings = {
        "spark.master": "local[1]",
        "spark.driver.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.warehouse.dir": str(tmp_path / "warehouse"),
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:{tmp_path}/metastore;create=true",
    }
    target = {"type": "zlayout", "schema": "main", "server_side_parameters": settings}
    (folder / "profiles.yml").write_text(yaml.safe_dump({"p": {"target": "t", "outputs": {"t": target}}}), "utf-8")
    about = {"name": "killed", "profile": "p", "flags": {"send_anonymous_usage_stats": False}}
    (folder / "dbt_project.yml").write_text(yaml.safe_dump(about), "utf-8")
    done = subprocess.run(
        [sys.executable, "-c", RUNNER, str(folder)],
        cwd=folder,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    results = [json.loads(line.removeprefix("RESULT ")) for line in done.stdout.splitlines() if line[:6] == "RESULT"]
    found = [(name, status) for name, status, _ in results]
    names = ("a_before", "b_slow", "c_after")
    first = dict.fromkeys(names, "success") | {"b_slow": "error"}
    assert found == [*first.items(), *dict.fromkeys(names, "success").items()], done.stdout + done.stderr
    message = next(message for name, status, message in results if status == "error")
    assert "Spark's Java process has ended: it was killed, or it ran out of memory (spark.driver.memory" in message
    assert "run the command again" in message
