"""The package in `hub`: a project installs it with `dbt deps`, with this adapter and with plain dbt-spark."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import dbt_v2
import pytest
import yaml

HUB = Path(__file__).parents[2] / "hub"
_CONFIG = "{{ config(materialized='table', file_format='parquet', zorder=['%s'], target_file_size=4000) }} "
MODELS = {
    # Four files with dbt-spark; small ones with this adapter.
    "ordered": _CONFIG % "k" + "select id as k, hash(id) as h from range(0, 4000, 1, 4)",
    "scattered": _CONFIG % "h" + "select /*+ repartition(4) */ id as k, hash(id) as h from range(4000)",
    "few": "select * from values (3L, date'2026-01-05', 'a'), (700L, null, 'o\\'b'), (null, null, 'c') as t(k, day, name)",
    "pruned": """select o.k from {{ ref('ordered') }} o join {{ ref('few') }} f on o.k = f.k
        where {{ file_layout.prune_by('o.k', 'select k from ' ~ ref('few')) }}
        -- depends_on: {{ ref('few') }}""",
    "by_range": """select k from {{ ref('ordered') }}
        where {{ file_layout.prune_by('k', 'select k from ' ~ ref('few'), 1) }}
          and {{ file_layout.prune_by('1', 'select k from ' ~ ref('few') ~ ' where k < 0') }}""",
    "by_day": """select {{ file_layout.prune_by('day', 'select day from ' ~ ref('few')) }} as kept from {{ ref('few') }}""",
    "by_amount": """select {{ file_layout.prune_by('x', 'select 0.1D as x union all select -2.5D') }} as kept from (select 0.1D as x)""",
    "by_huge": """select {{ file_layout.prune_by('x', 'select 1e300D as x') }} as kept from (select 0.1D as x)""",
    "by_name": """select {{ file_layout.prune_by('name', 'select name from ' ~ ref('few')) }} as kept from {{ ref('few') }}""",
}
TESTS = {
    "ordered": [
        {"file_layout.lookup_files_at_most": {"name": "one_file", "column_name": "k", "arguments": {"max": 1}}},
        {"file_layout.small_files_at_most": {"name": "many_small_files", "arguments": {"max": 3}}},
        {"file_layout.small_files_at_most": {"name": "no_tiny_file", "arguments": {"max": 0, "bytes": 100}}},
        {
            "file_layout.small_files_at_most": {
                "name": "not_whole",
                "arguments": {"max": 0},
                "config": {"where": "k > 1"},
            }
        },
    ],
    "few": [{"file_layout.small_files_at_most": {"name": "of_a_view", "arguments": {"max": 0}}}],
    "scattered": [
        {"file_layout.lookup_files_at_most": {"name": "every_file", "column_name": "k", "arguments": {"max": 1}}}
    ],
}
EXPECTED = {
    "one_file": "pass",
    "many_small_files": "fail",
    "no_tiny_file": "pass",
    "every_file": "fail",
    "not_whole": "error",
    "of_a_view": "error",
}


# The tables of a metastore in memory end with the process.
_DEPS_RUN_TEST = """
import json
from dbt.cli.main import dbtRunner

found = {}
for command in ("deps", "run", "test"):
    done = dbtRunner().invoke([command, "--profiles-dir", "."])
    assert done.exception is None and (done.success or command == "test"), command
    for each in getattr(done.result, "results", None) or []:
        found[each.node.name] = [str(each.status), each.node.compiled_code or ""]
with open("results.json", "w") as file:
    json.dump(found, file)
"""


@pytest.fixture
def source(tmp_path):
    """A project that has the package as a reader of its README has it."""
    folder = tmp_path / "source"
    (folder / "models").mkdir(parents=True)
    for name, sql in MODELS.items():
        (folder / "models" / f"{name}.sql").write_text(sql, "utf-8")
    properties = [{"name": name, "data_tests": tests} for name, tests in TESTS.items()]
    (folder / "models" / "properties.yml").write_text(yaml.safe_dump({"models": properties}), "utf-8")
    (folder / "packages.yml").write_text(yaml.safe_dump({"packages": [{"local": str(HUB)}]}), "utf-8")
    project = {"name": "shop", "version": "1.0", "profile": "shop", "flags": {"send_anonymous_usage_stats": False}}
    (folder / "dbt_project.yml").write_text(yaml.safe_dump(project), "utf-8")
    return folder


def test_the_package_with_this_adapter(dbt, spark, project_at, source):
    project = project_at(source=source, schema="of_hub", profile="shop")
    assert project("deps").success
    built = project("run")
    assert built.success, built.log
    tested = project("test")
    assert {name: str(each.status) for name, each in tested.results.items()} == EXPECTED
    assert "looks at whole tables" in tested.message("not_whole")
    assert "is a view, which has no files" in tested.message("of_a_view")
    assert spark.table("of_hub.pruned").count() == 2
    assert "o.k in (" in built.results["pruned"].node.compiled_code
    assert spark.table("of_hub.by_range").count() == 0


@pytest.mark.slow
def test_the_package_with_plain_dbt_spark(source, tmp_path):
    settings = {
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(tmp_path / "warehouse"),
        "spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:derby:memory:hub;create=true",
    }
    target = {"type": "spark", "method": "session", "host": "none", "schema": "shop", "threads": 1}
    profile = {"shop": {"target": "t", "outputs": {"t": {**target, "server_side_parameters": settings}}}}
    (source / "profiles.yml").write_text(yaml.safe_dump(profile), "utf-8")
    done = subprocess.run(
        [sys.executable, "-c", _DEPS_RUN_TEST], cwd=source, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads((source / "results.json").read_text("utf-8"))
    assert {name: results[name][0] for name in EXPECTED} == EXPECTED
    pruned = {name: " ".join(results[name][1].split()) for name in MODELS}
    assert "where o.k in (3, 700)" in pruned["pruned"] or "where o.k in (700, 3)" in pruned["pruned"]
    assert "where (k between 3 and 700) and false" in pruned["by_range"]
    assert "select day in (date '2026-01-05') as kept" in pruned["by_day"]
    assert pruned["by_amount"].split(" as kept")[0] in ("select x in (0.1, -2.5)", "select x in (-2.5, 0.1)")
    assert "select true as kept" in pruned["by_huge"]
    assert "select true as kept" in pruned["by_name"]


@pytest.mark.slow
def test_the_tests_of_the_package_compile_with_dbt_v2(tmp_path):
    tests = [{"name": "orders", "data_tests": [{"file_layout.small_files_at_most": {"arguments": {"max": 3}}}]}]
    files = {
        "packages.yml": yaml.safe_dump({"packages": [{"local": str(HUB)}]}),
        "models/shop.yml": yaml.safe_dump({"models": tests}),
        "models/orders.sql": "select 1 as k",
    }
    dbt_v2.run(tmp_path, "deps", files={**dbt_v2.PROJECT, **files})
    dbt_v2.run(tmp_path, "compile", files={})
    (compiled,) = tmp_path.glob("target/compiled/**/file_layout_small_files*.sql")
    assert "select distinct _metadata.file_path as path, _metadata.file_size as size" in compiled.read_text()
