"""The commands, SQL and YAML of README and docs work when they are pasted."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import click
import documentation
import pytest
import yaml

# Examples that are only parsed here, each with the reason.
NOT_RUN = {
    "make": "makes an environment or runs a suite of its own; CI runs what it runs",
    "pip": "CI installs the package into an empty environment",
    "uv": "CI installs the package into an empty environment in this way",
    "cd": "names a reader's own clone",
    "bash": "CI itself",
    "PYTHONPATH=integration/conformance": "a suite of its own, which CI runs",
    "spark-sql": "a prompt; integration/engine runs the line below it with the same settings",
}
NOT_RUN_MODELS = {"hdfs:": "needs an HDFS cluster; integration/stores writes such a table"}
_ROOT_OF_A_MACHINE = "/data/"
# SQL and settings of other engines, which integration/engine runs.
_OF_OTHER_ENGINES = "docs/readers/"
_OWN_MODELS = {"docs_merge_on_read": "orders"}


def _runs(command: str) -> bool:
    return documentation.words(command)[0] in ("dbt", "zlayout")


def _needs_another_place(text: str) -> bool:
    return any(mark in text for mark in NOT_RUN_MODELS)


def _ids(example: documentation.Example) -> str:
    return f"{example.page}: {example.text[:70]}"


COMMANDS = list({each.text: each for each in documentation.commands()}.values())
INLINE = [each for each in documentation.inline_commands() if "…" not in each.text]
MODELS = [
    each
    for each in documentation.queries()
    if not _needs_another_place(each.text) and not each.page.startswith(_OF_OTHER_ENGINES)
]
PROFILES = [each for each in documentation.blocks("yaml") if "outputs:" in each.text]
PROPERTIES = [
    each
    for each in documentation.blocks("yaml")
    if "data_tests:" in each.text and not each.page.startswith(_OF_OTHER_ENGINES)
]


def test_there_are_examples_of_every_kind():
    assert len(COMMANDS) > 20
    assert len(MODELS) > 10
    assert len(PROFILES) >= 2
    assert len(PROPERTIES) > 5


@pytest.mark.parametrize("example", COMMANDS, ids=_ids)
def test_the_shell_parses_every_command(example):
    checked = subprocess.run(["bash", "-n", "-c", example.text], capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")
    assert _runs(example.text) or documentation.words(example.text)[0] in NOT_RUN


@pytest.mark.parametrize("example", [each for each in COMMANDS + INLINE if " --args " in each.text], ids=_ids)
def test_dbt_parses_the_arguments_of_every_operation(example):
    from dbt.cli.option_types import YAML

    dbt, run_operation, macro, option, text = documentation.words(example.text)
    arguments = YAML().convert(text, click.Option(["--args"]), None)
    assert (dbt, run_operation, option) == ("dbt", "run-operation", "--args")
    assert isinstance(arguments, dict)
    source = next((documentation.ROOT / "dbt/include/zlayout/macros").rglob(f"{macro.removesuffix('_plan')}.sql"))
    text = source.read_text("utf-8")
    signature = re.search(rf"macro {macro}\(([^)]*)\)", text)
    assert signature is not None
    taken = {each.split("=")[0].strip() for each in signature[1].split(",")}
    assert "**kwargs" in text or arguments.keys() <= taken


@pytest.mark.parametrize("example", PROFILES, ids=_ids)
def test_the_adapter_accepts_every_profile(example):
    from dbt.adapters.zlayout.adapter.session.credentials import ZlayoutCredentials

    (project,) = yaml.safe_load(example.text).values()
    for target in project["outputs"].values():
        said = {key: value for key, value in target.items() if key != "type"}
        ZlayoutCredentials.validate(said)
        credentials = ZlayoutCredentials.from_dict(said)
        assert (credentials.type, credentials.schema) == (target["type"], target["schema"])
        assert credentials.location_root == target.get("location_root")
    assert project["target"] in project["outputs"]


@pytest.fixture(scope="module")
def documented(dbt, project_at, lake) -> Any:
    """A project of all models and tests of the documentation, on tiny tables, built by the documented `dbt run`."""
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.getOrCreate()
    for statement in _SOURCES.split(";"):
        spark.sql(statement)
    project = project_at(source=Path(__file__).parent / "documented", schema="analytics", profile="my_project")
    for example in MODELS:
        (project.folder / "models" / f"{example.name}.sql").write_text(_whole(example.text), "utf-8")
    (project.folder / "models" / "properties.yml").write_text(yaml.safe_dump({"models": _properties()}), "utf-8")
    events = project("run", "--select", "+events", "+lineitem", "orders")
    assert events.success, events.log
    _add_versions(spark)
    return project


@pytest.fixture(scope="module")
def first_run(documented):
    return documented("run", "--exclude", "events", "lineitem", "orders")


@pytest.fixture(scope="module")
def tested(documented, first_run):
    return documented("test")


@pytest.mark.parametrize("example", MODELS, ids=_ids)
def test_a_model_can_be_built(first_run, example):
    assert first_run.results[example.name].status == "success", first_run.message(example.name)


def test_an_incremental_model_can_run_again(documented, first_run):
    again = documented("run", "--select", "config.materialized:incremental")
    assert again.success, again.log
    assert len(again.results) >= 4


@pytest.mark.parametrize("example", PROPERTIES, ids=_ids)
def test_every_test_of_a_block_runs_and_passes(tested, example):
    assert tested.success, tested.log
    ran = [str(each.node.test_metadata.name) for each in tested.results.values()]
    assert {_test_name(each) for model in _models_of(example) for each in model["data_tests"]} <= set(ran)


@pytest.mark.parametrize("example", [each for each in COMMANDS if _runs(each.text)], ids=_ids)
def test_a_command_does_what_the_docs_say(documented, first_run, example):
    program, *arguments = documentation.words(example.text)
    if program == "zlayout":
        _run_zlayout(documented, arguments)
        return
    if arguments == ["run"]:
        assert first_run.success, first_run.log
        return
    if "drop: true" in example.text:
        _add_filters()
    outcome = documented(*arguments)
    assert outcome.success, outcome.log
    assert outcome.printed.strip()


def _add_filters() -> None:
    """Adds the filters that a command takes away."""
    from pyspark.sql import SparkSession

    from dbt.adapters.zlayout import ZTable

    ZTable.for_name(SparkSession.builder.getOrCreate(), "analytics.lineitem").build_index(bloom="l_orderkey")


def _run_zlayout(documented: Any, arguments: list[str]) -> None:
    """Runs a command in the suite's session, on the folders and files of the project."""
    from click.testing import CliRunner
    from pyspark.sql import SparkSession

    from dbt.adapters.zlayout import ZTable
    from dbt.adapters.zlayout.cli.main import zlayout

    events = ZTable.for_name(SparkSession.builder.getOrCreate(), "analytics.events")
    folder = events.location.removeprefix("file://")
    events.publish(["delta"])  # for those who withdraw it
    there = {
        "/lake/analytics/events": folder,
        ".": str(documented.folder),
        "target/manifest.json": str(documented.folder / "target" / "manifest.json"),
        "layout.lock.json": str(documented.folder / "layout.lock.json"),
        "files.parquet": str(documented.folder / "files.parquet"),
        "report.html": str(documented.folder / "report.html"),
    }
    done = CliRunner().invoke(zlayout, [there.get(each, each) for each in arguments])
    assert done.exit_code == 0, done.stderr
    assert done.stdout.strip() or Path(there["files.parquet"]).is_file()


_SOURCES = """
create schema if not exists raw;
create schema if not exists shop;
create schema if not exists tpch;
create table raw.events using parquet as select date_add(date'2026-01-01', cast(id / 40 as int)) as event_date,
  id % 97 as customer_id, if(id % 2 = 0, 'CH', 'DE') as country, cast(id as double) as amount from range(400);
create table shop.order_changes using parquet as select id as order_id, timestamp'2026-01-05 12:00:00' as updated_at,
  if(id % 2 = 0, 'CH', 'DE') as country, date'2026-01-05' as order_date, id % 7 as customer_id, 'U' as op,
  'open' as status, cast(id as double) as amount from range(20);
create or replace view tpch.orders as select id as o_orderkey from range(10)
"""


def _add_versions(spark: Any) -> None:
    """Brings `events` and `lineitem` to version 3, which the documentation mentions."""
    from dbt.adapters.zlayout import ZTable

    for number in (1, 2, 3):
        day = f"date'2027-01-0{number}'"
        events = spark.sql(f"select {day} event_date, 1L customer_id, 'CH' country, 1d amount")
        ZTable.for_name(spark, "analytics.events").append(events)
        items = spark.sql(f"select 1L l_orderkey, 1L l_partkey, 1L l_suppkey, {day} l_shipdate")
        ZTable.for_name(spark, "analytics.lineitem").append(items)
    spark.sql("create or replace view tpch.lineitem as select * from analytics.lineitem")


def _whole(text: str) -> str:
    """A model. A config without a query gets one."""
    with_query = re.search(r"^select ", text, re.MULTILINE) is not None
    return text if with_query else f"{text}\nselect * from {{{{ ref('rows_of_a_head') }}}}\n"


def _models_of(example: documentation.Example) -> list[dict[str, Any]]:
    said = yaml.safe_load(example.text)
    if "models" in said:
        return list(said["models"])
    own = next(model for page, model in _OWN_MODELS.items() if example.name.startswith(page))
    return [{"name": own, **said}]


def _properties() -> list[dict[str, Any]]:
    """The properties of each model from all blocks, each test once, because dbt allows only one place for them."""
    found: dict[str, list[Any]] = {}
    for example in PROPERTIES:
        for model in _models_of(example):
            listed = found.setdefault(model["name"], [])
            listed += [each for each in model["data_tests"] if each not in listed]
    return [{"name": name, "data_tests": each} for name, each in found.items()]


def _test_name(test: Any) -> str:
    return test if isinstance(test, str) else str(next(iter(test)))
