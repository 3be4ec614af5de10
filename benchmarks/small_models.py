"""What twenty small models and an incremental run of 1,000 rows cost beside plain dbt-spark, in turns.

    python benchmarks/small_models.py --rounds 3

Each round runs one process for each adapter, in the other order from round to round. Seconds are those of the `dbt run`
command itself; the start of Spark and a first build of all models come before it. Of the increment, the processor's
seconds too: those of dbt, of Spark's JVM and of its Python workers. Other programs on the machine change them less.
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

MODELS = 20
SMALL = """{{{{ config(materialized='table', file_format='parquet', tags=['small']) }}}}
select id + {number} as id, id % 97 as customer_id, date_add(date'2026-01-01', cast(id % 90 as int)) as day,
    id / 7.0D as amount, concat('n', id) as note
from range(1000)"""
# 20,000 rows in 20 parts; a later run brings the 1,000 rows of one part again, with other amounts.
ROWS = """select id, cast(id / 1000 as int) as part, {{ 'id * 2.0D' if is_incremental() else 'id / 7.0D' }} as amount
from range(20000) {{ 'where id >= 7000 and id < 8000' if is_incremental() }}"""
INCREMENTAL = {
    "spark": """{{ config(materialized='incremental', incremental_strategy='insert_overwrite', partition_by=['part'],
        file_format='parquet', tags=['increment']) }} """,
    "zlayout": """{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id',
        tags=['increment']) }} """,
}


def write_project(folder, adapter):
    (folder / "models").mkdir()
    for number in range(MODELS):
        (folder / "models" / f"small_{number:02}.sql").write_text(SMALL.format(number=number))
    (folder / "models" / "increment.sql").write_text(INCREMENTAL[adapter] + ROWS)
    settings = {
        "spark.master": "local[2]",
        "spark.driver.memory": "2g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.sources.partitionOverwriteMode": "dynamic",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:derby:memory:bench;create=true",
    }
    target = {"type": adapter, "schema": "bench", "server_side_parameters": settings}
    if adapter == "spark":
        target |= {"method": "session", "host": "none"}
    (folder / "profiles.yml").write_text(yaml.safe_dump({"bench": {"target": "t", "outputs": {"t": target}}}))
    flags = {"send_anonymous_usage_stats": False}
    about = {"name": "bench", "version": "1.0", "profile": "bench", "flags": flags}
    (folder / "dbt_project.yml").write_text(yaml.safe_dump(about))


def cpu_seconds():
    """The processor's seconds of this process and all below it, so far."""
    parents, ticks = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            pid = int(path.parent.name)
            # Own time and that of children that have ended, in user and in system mode.
            parents[pid], ticks[pid] = int(fields[1]), sum(map(int, fields[11:15]))

    def is_mine(pid):
        return pid == os.getpid() or (pid in parents and is_mine(parents[pid]))

    return sum(ticks[pid] for pid in ticks if is_mine(pid)) / os.sysconf("SC_CLK_TCK")


def worker(adapter):
    """Prints the seconds of each command as JSON."""
    os.environ["DBT_SEND_ANONYMOUS_USAGE_STATS"] = "false"
    from dbt.cli.main import dbtRunner

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        write_project(folder, adapter)
        place = ["--project-dir", name, "--profiles-dir", name, "--quiet"]

        def run(*words):
            started = time.perf_counter()
            done = dbtRunner().invoke(["run", *words, *place])
            if not done.success:
                sys.exit(f"{adapter}: dbt run {' '.join(words)} failed: {done.exception or done.result}")
            return round(time.perf_counter() - started, 2)

        run("--threads", "1")
        found = {
            "1 thread": run("--select", "tag:small", "--threads", "1"),
            "4 threads": run("--select", "tag:small", "--threads", "4"),
        }
        found["increment"], begun = run("--select", "increment"), cpu_seconds()
        found["increment"] = min(found["increment"], *(run("--select", "increment") for _ in range(4)))
        found["its processor"] = round((cpu_seconds() - begun) / 4, 2)
    print("RESULT " + json.dumps(found), flush=True)


def main(rounds):
    figures = {}
    for number in range(rounds):
        adapters = ("spark", "zlayout") if number % 2 == 0 else ("zlayout", "spark")
        for adapter in adapters:
            command = [sys.executable, __file__, "--worker", adapter]
            environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
            lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
            if not lines:
                sys.exit(done.stdout[-2000:] + done.stderr[-2000:])
            found = json.loads(lines[0].removeprefix("RESULT "))
            print(f"round {number + 1}, {adapter}: {found}", flush=True)
            for name, seconds in found.items():
                figures.setdefault(name, {}).setdefault(adapter, []).append(seconds)
    print(f"\n{'':14}{'dbt-spark':>12}{'dbt-zlayout':>14}{'ratio':>8}")
    for name, by_adapter in figures.items():
        plain, ours = (statistics.median(by_adapter[each]) for each in ("spark", "zlayout"))
        print(f"{name:14}{plain:>10.1f} s{ours:>12.1f} s{ours / plain:>8.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--worker", choices=("spark", "zlayout"))
    given = parser.parse_args()
    if given.worker:
        worker(given.worker)
    else:
        main(given.rounds)
