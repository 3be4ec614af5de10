"""What a thousand rows cost as `zordered_table`, also published, and as dbt-spark's plain `table`, in one session."""

import argparse
import os
import statistics
import sys
import tempfile
from pathlib import Path

import yaml

os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ["DBT_SEND_ANONYMOUS_USAGE_STATS"] = "false"

QUERY = """
select id as event_id, id * 7919 % 1009 as customer_id, date_add(date'2026-01-01', cast(id % 90 as int)) as event_date,
    id / 7.0D as amount, concat('note ', id) as note, id % 2 = 0 as paid, cast(id as decimal(18, 2)) as price,
    timestamp_micros(id * 86399999999) as seen_at, concat('c', id % 20) as country, cast(id % 5 as int) as kind
from range(1000)
"""
PLAIN = "{{ config(materialized='table', file_format='parquet') }}"
CLUSTERED = "{{ config(materialized='zordered_table', zorder=['event_date', 'customer_id']) }}"
DELTA = CLUSTERED.replace(") }}", ", publish=['delta']) }}")
BOTH = CLUSTERED.replace(") }}", ", publish=['delta', 'iceberg']) }}")
KINDS = {"plain": PLAIN, "clustered": CLUSTERED, "delta": DELTA, "both": BOTH}
# dbt builds them by name, in one order and then in the other: no kind gains by its place.
MODELS = {f"{letter}_{kind}": KINDS[kind] for letter, kind in zip("abcdefgh", [*KINDS, *reversed(KINDS)], strict=True)}


def project(folder):
    """Writes a dbt project with its profile."""
    (folder / "models").mkdir()
    for name, config in MODELS.items():
        (folder / "models" / f"{name}.sql").write_text(config + QUERY)
    target = {
        "type": "zlayout",
        "schema": "bench",
        "location_root": str(folder / "lake"),
        "server_side_parameters": {
            "spark.master": "local[2]",
            "spark.driver.memory": "2g",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:derby:memory:bench;create=true",
        },
    }
    (folder / "profiles.yml").write_text(yaml.safe_dump({"bench": {"target": "t", "outputs": {"t": target}}}))
    about = {"name": "bench", "version": "1.0", "profile": "bench", "flags": {"send_anonymous_usage_stats": False}}
    (folder / "dbt_project.yml").write_text(yaml.safe_dump(about))


def build(runner, folder):
    """Builds all models once; for each model dbt's seconds, and those of the adapter's phases."""
    done = runner.invoke(["--quiet", "run", "--project-dir", str(folder), "--profiles-dir", str(folder)])
    if not done.success:
        sys.exit(f"dbt run failed: {done.exception or [each.message for each in done.result.results]}")
    seconds, phases = {}, {}
    for result in done.result.results:
        execute = next(each for each in result.timing if each.name == "execute")
        seconds[result.node.name] = (execute.completed_at - execute.started_at).total_seconds()
        phases[result.node.name] = result.adapter_response.get("seconds") or {}
    return seconds, phases


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=12, help="each builds two models of each kind")
    rounds = parser.parse_args().rounds
    from dbt.cli.main import dbtRunner

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        project(folder)
        os.chdir(folder)
        runner = dbtRunner()
        build(runner, folder)
        measured = [build(runner, folder) for _ in range(rounds)]
        medians = {}
        for kind in KINDS:
            each = sorted(run[model] for run, _ in measured for model in MODELS if model.endswith(kind))
            medians[kind] = statistics.median(each)
            print(
                f"{kind:<10} n={len(each)}  median {medians[kind] * 1000:.0f} ms  "
                f"quartiles {each[len(each) // 4] * 1000:.0f}-{each[3 * len(each) // 4] * 1000:.0f} ms"
            )
        print(f"ratio clustered : plain = {medians['clustered'] / medians['plain']:.2f}")
        for kind in ("delta", "both"):
            print(f"ratio {kind} : clustered = {medians[kind] / medians['clustered']:.2f}")
        told = [run["b_clustered"] for _, run in measured]
        inside = {phase: statistics.median(each[phase] for each in told) for phase in told[0]}
        print("inside:", ", ".join(f"{phase} {seconds * 1000:.0f} ms" for phase, seconds in inside.items()))
        os.chdir("/")


if __name__ == "__main__":
    main()
