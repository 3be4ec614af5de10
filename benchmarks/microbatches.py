"""Twelve monthly batches of a microbatch model on four threads: one after the other, and side by side.

make bench-microbatches. The query of a batch waits a second, as one that asks another system does.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from pathlib import Path

import yaml

os.environ["PYSPARK_PYTHON"] = sys.executable

_EVENTS = """{{ config(materialized='table', event_time='at') }}
select id, timestamp'2025-01-01' + make_interval(0, cast(id % 12 as int), 0, 1) as at from range(12000)"""
_MONTHS = """{{ config(materialized='incremental', incremental_strategy='microbatch', event_time='at',
    batch_size='month', begin='2025-01-01', concurrent_batches=var('concurrent')) }}
select e.* from {{ ref('events') }} e
join (select reflect('java.lang.Thread', 'sleep', 1000L) as w from range(0, 1, 1, 1))
on w is not null"""
_SPAN = ("--event-time-start", "2025-01-01", "--event-time-end", "2026-01-01")
_ROUNDS = 3


def project(folder: Path) -> None:
    (folder / "models").mkdir()
    (folder / "models" / "events.sql").write_text(_EVENTS)
    (folder / "models" / "months.sql").write_text(_MONTHS)
    said = {"name": "bench", "version": "1.0", "profile": "bench", "flags": {"send_anonymous_usage_stats": False}}
    (folder / "dbt_project.yml").write_text(yaml.safe_dump({**said, "vars": {"concurrent": False}}))
    target = {
        "type": "zlayout",
        "schema": "bench",
        "threads": 4,
        "server_side_parameters": {
            "spark.master": "local[2]",
            "spark.driver.memory": "2g",
            "spark.ui.enabled": False,
            "spark.sql.shuffle.partitions": 2,
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:derby:memory:bench;create=true",
        },
    }
    (folder / "profiles.yml").write_text(yaml.safe_dump({"bench": {"target": "t", "outputs": {"t": target}}}))


def main() -> None:
    from dbt.cli.main import dbtRunner

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        project(folder)

        def run(*arguments: str) -> float:
            place = ["--project-dir", name, "--profiles-dir", name, "--quiet"]
            done = dbtRunner().invoke(["run", *arguments, *place])
            if not done.success:
                raise SystemExit(str(done.exception or done.result))
            return float(done.result.elapsed_time)

        run(*_SPAN, "--select", "events", "months")
        found: dict[bool, list[float]] = {False: [], True: []}
        for number in range(2 * _ROUNDS):
            concurrent = number % 4 in (1, 2)  # so that none gains by its place
            taken = run(*_SPAN, "--select", "months", "--vars", yaml.safe_dump({"concurrent": concurrent}).strip())
            found[concurrent].append(taken)
            print(f"{'side by side' if concurrent else 'one after the other':<20} {taken:5.1f} s", flush=True)
        one, beside = (statistics.median(found[each]) for each in (False, True))
        print(f"medians {one:.1f} s and {beside:.1f} s: {one / beside:.2f} times as fast side by side")


if __name__ == "__main__":
    main()
