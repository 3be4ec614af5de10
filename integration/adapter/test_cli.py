"""The command line `zlayout`: the real command in a process of its own, and each command in the suite's session."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import dbt_v2
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from dbt.adapters.zlayout import enable
from dbt.adapters.zlayout.adapter.operations.compiled_queries import compiled_queries
from dbt.adapters.zlayout.cli.main import zlayout
from dbt.adapters.zlayout.cli.manifest import Manifest
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog
from dbt.adapters.zlayout.spark.commit.catalog_entries import drop_table
from dbt.adapters.zlayout.table.ztable import ZTable

pytestmark = pytest.mark.newest_spark
COMMAND = Path(sys.executable).parent / "zlayout"


def rows(spark, count=1000):
    return spark.range(count).selectExpr("id k", "id % 2 part")


@pytest.fixture(scope="module", autouse=True)
def session(dbt):
    """The session that dbt started, with the schema of the suite's tables."""
    from pyspark.sql import SparkSession

    found = SparkSession.builder.getOrCreate()
    found.sql("create schema if not exists main")
    return found


@pytest.fixture(scope="module")
def folder(session, tmp_path_factory):
    """A partitioned table with two versions."""
    spark, root = session, tmp_path_factory.mktemp("cli lake")
    table = ZTable.write(
        spark,
        "main.of_cli",
        rows(spark),
        zorder="k",
        partition_by="part",
        target_file_size=4000,
        location_root=str(root),
    )
    table.delete("k >= 990")
    yield root / "of_cli"
    drop_table(spark, "main", "of_cli")


@pytest.fixture(scope="module")
def logs(session, tmp_path_factory):
    """A merge-on-read table with a log."""
    spark, root = session, tmp_path_factory.mktemp("cli")
    settings = {"table_type": "merge_on_read", "unique_key": "k", "location_root": str(root)}
    table = ZTable.write(spark, "main.of_cli_logs", rows(spark), zorder="k", **settings)
    table.upsert(rows(spark, 1010).where("k >= 990"))
    yield root / "of_cli_logs"
    drop_table(spark, "main", "of_cli_logs")


def run(*words):
    return CliRunner().invoke(zlayout, list(map(str, words)))


def printed(*words):
    done = run(*words)
    assert done.exit_code == 0, done.stderr
    return done.stdout


def refused(*words, code=1):
    done = run(*words)
    assert done.exit_code == code
    assert done.stdout == ""
    assert isinstance(done.exception, SystemExit)
    if code == 1:
        assert done.stderr.splitlines()[-1].startswith("Error: ")
        assert "Traceback" not in done.stderr
    return done.stderr.splitlines()[-1]


def process(*words):
    return subprocess.run([COMMAND, *map(str, words)], capture_output=True, text=True, check=False, timeout=300)


def test_the_installed_command_prints_results_alone_on_stdout(folder, tmp_path):
    done = subprocess.run(
        [COMMAND, "explain", folder, "k = 17", "--json", "--conf", "spark.log.level=INFO"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    (explained,) = json.loads(done.stdout)
    assert explained["table"] == str(folder)
    assert explained["kept_files"] < explained["total_files"]
    assert "INFO" in done.stderr
    assert list(tmp_path.iterdir()) == []  # no metastore and no warehouse


def test_help_and_usage():
    shown = process("--help")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert all(word in shown.stdout for word in zlayout.commands)
    wrong = process("vacuum")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "No such command" in wrong.stderr
    for words, message in {
        ("info",): "Missing argument 'TABLE'",
        ("info", "orders"): "neither a folder nor schema.table; write ./orders",
        ("info", "a.b", "--conf", "x"): "is not KEY=VALUE",
        ("files", "a.b", "--format", "parquet"): "needs --output",
        ("publish", "a.b", "--off", "--format", "delta"): "leave out --format",
    }.items():
        assert message in refused(*words, code=2)


def test_help_starts_without_spark_and_dbt():
    program = (
        "import sys\nfrom dbt.adapters.zlayout.cli import main\n"
        "sys.exit(bool({'pyspark', 'pyarrow', 'dbt_common', 'dbt.adapters.base'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_table_is_described_by_name_and_by_folder(folder):
    for given, name in ((folder, str(folder)), ("main.of_cli", "main.of_cli")):
        found = json.loads(printed("info", given, "--json"))
        assert (found["name"], found["version"], found["rows"]) == (name, 1, 990)
        assert found["clustering"]["columns"] == ["k"]
        assert name in printed("info", given, "--columns", "k")
        assert [each["version"] for each in json.loads(printed("history", given, "--json"))] == [1, 0]
        assert len(printed("history", given, "--limit", 1).splitlines()) == 3
        assert "reads 2 of" in printed("explain", given, "k = 17")


def test_the_live_files_are_listed_for_any_tool(folder, tmp_path):
    paths = printed("files", folder).splitlines()
    assert sum(pq.ParquetFile(path).metadata.num_rows for path in paths) == 990
    found = json.loads(printed("files", "main.of_cli", "--format", "json"))
    assert [each["path"] for each in found] == paths
    assert {each["partition"]["part"] for each in found} == {"0", "1"}
    assert all(each["size_bytes"] == Path(each["path"]).stat().st_size for each in found)
    assert printed("files", folder, "--format", "parquet", "--output", tmp_path / "files.parquet") == ""
    assert pq.read_table(tmp_path / "files.parquet").to_pylist() == found
    older = printed("files", folder, "--version", 0).splitlines()
    assert sum(pq.ParquetFile(path).metadata.num_rows for path in older) == 1000
    assert "version 7" in refused("files", folder, "--version", 7)


def test_files_of_a_table_with_logs_say_what_they_do_not_show(logs):
    done = run("files", logs)
    assert "do not show the changes in 1 log file" in done.stderr
    assert len(done.stdout.splitlines()) == len(list(logs.glob("*.parquet"))) - 1


def test_a_table_is_maintained_by_its_folder(folder, logs, spark, tmp_path):
    for source, name in ((folder, "plain"), (logs, "logs")):
        shutil.copytree(source, tmp_path / name)
    plain, merging = tmp_path / "plain", tmp_path / "logs"
    plan = printed("cluster", plain, "--rewrite-all", "--dry-run")
    assert "would rewrite" in plan
    done = run("cluster", plain, "--rewrite-all", "--json")
    (summary,) = json.loads(done.stdout)
    assert summary["files_removed"] > 0
    assert str(plain) in done.stderr
    sort = printed("cluster", plain, "--strategy", "sort", "--sort-by", "k", "--rewrite-all", "--dry-run")
    assert "sorted by k" in sort
    assert "merged the logs of" in printed("compact", merging)
    assert "would delete" in printed("clean", plain, "--dry-run", "--retain-hours", 0, "--retain-versions", 1)
    assert "deleted" in printed("clean", plain, "--retain-hours", 0, "--retain-versions", 1)
    assert printed("publish", plain, "--format", "delta").strip() == f"{plain}: delta readers see version 3"
    assert "delta readers see version 3" in printed("publish", plain)
    assert "not published" in printed("publish", plain, "--off")
    assert "no wrong cells" in printed("verify", plain, "--data")
    column = ZTable.for_path(spark, plain).read().columns[0]
    indexes = "--bloom", column, "--lookup", f"concat({column}, '!')"
    told = f" has Bloom filters on {column}; lookup indexes on concat({column}, '!'), "
    assert told in printed("index", plain, *indexes)
    assert "no wrong cells" in printed("verify", plain, "--data")
    assert "has no optional indexes" in printed("index", plain, *indexes, "--drop")
    assert ZTable.for_path(spark, plain).read().count() == 990
    assert ZTable.for_path(spark, merging).read().count() == 1010


def test_verify_fails_with_the_wrong_cells_on_stdout(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "t")
    lost = Path(printed("files", tmp_path / "t").splitlines()[0])
    lost.unlink()
    done = run("verify", tmp_path / "t", "--json")
    assert done.exit_code == 1
    (found,) = json.loads(done.stdout)
    assert lost.name in found["wrong"][0]["path"]


def test_a_copy_is_registered_and_its_entry_made_again(folder, spark, tmp_path):
    place = tmp_path / "a copy"
    shutil.copytree(folder, place)
    assert printed("register", "main.copied", place).startswith("main.copied: registered, version ")
    catalog = Catalog(spark)
    catalog.remove(catalog.name("main.copied"))
    found = json.loads(printed("register", "main.copied", place, "--json"))
    assert (found["table"], found["version"]) == ("main.copied", 1)
    assert spark.table("main.copied").count() == 990
    drop_table(spark, "main", "copied")


def manifest_of(folder, config, name="orders", alias="of_cli"):
    """A manifest as both engines write it; the Rust engine keeps settings it does not know in `meta` only."""
    node = {
        "resource_type": "model",
        "name": name,
        "unique_id": f"model.shop.{name}",
        "schema": "main",
        "alias": alias,
        "config": {"materialized": "table", **config},
    }
    test = {"resource_type": "test", "name": "not_null", "unique_id": "test.shop.x"}
    path = folder / "manifest.json"
    path.write_text(json.dumps({"metadata": {}, "nodes": {"model.shop.orders": node, "test.shop.x": test}}))
    return path


@pytest.mark.parametrize(
    "config", [{"publish": ["delta"]}, {"publish": None, "meta": {"zlayout": {"publish": ["delta"]}}}]
)
def test_a_model_is_found_in_the_manifest_with_its_settings(folder, tmp_path, config):
    manifest = manifest_of(tmp_path, config)
    assert json.loads(printed("info", "orders", "--manifest", manifest, "--json"))["name"] == "`main`.`of_cli`".replace(
        "`", ""
    )
    assert "delta readers see version" in printed("publish", "orders", "--manifest", manifest)
    assert "not published" in printed("publish", "orders", "--manifest", manifest, "--off")
    assert "did you mean 'orders'" in refused("info", "oders", "--manifest", manifest)


def test_the_manifest_of_a_dbt_run_is_read(dbt, session):
    assert dbt("run", "--select", "clustered").success
    manifest = dbt.folder / "target" / "manifest.json"
    (model,) = (each for each in dbt.artifact("manifest.json")["nodes"].values() if each["name"] == "clustered")
    assert model["relation_name"].replace("`", "") in printed("info", "clustered", "--manifest", manifest)
    drop_table(session, model["schema"], model["alias"])
    message = refused("info", "clustered", "--manifest", manifest)
    assert model["alias"] in message
    assert "build its model or load its source first" in message


def built_by_another_dbt(spark, count):
    """What an engine that knows no dbt-zlayout does for a table of Parquet files."""
    spark.sql("drop table if exists main.of_v2")
    spark.sql(
        f"create table main.of_v2 using parquet as select /*+ repartition(4) */ id k, hash(id) h from range({count})"
    )


def test_a_first_refresh_takes_the_settings_of_the_model(spark, tmp_path):
    spark.sql("drop table if exists main.of_refresh")
    spark.sql("create table main.of_refresh using parquet as select id k, hash(id) h from range(100)")
    manifest = ["--manifest", manifest_of(tmp_path, {"zorder": ["k"], "bloom": ["h"]}, alias="of_refresh")]
    assert "files added" in printed("refresh", "orders", *manifest)
    found = json.loads(printed("info", "orders", "--json", *manifest))
    assert (found["level"], found["zorder"], found["bloom"]) == ("indexed", ["k"], ["h"])
    drop_table(spark, "main", "of_refresh")


def test_a_table_that_another_tool_overwrote_says_so(spark, tmp_path):
    name = "main.of_cli_overwritten"
    ZTable.write(spark, name, rows(spark), zorder="k", bloom=["part"], location_root=str(tmp_path))
    spark.sql(f"insert overwrite {name} select id, 1L from range(10)")
    told = refused("info", name)
    assert "was overwritten by another tool" in told
    assert f"`zlayout adopt {name} --manage`" in told
    assert "indexed again, because another tool has overwritten the table" in printed("refresh", name)
    assert "only this package may write to it now" in printed("adopt", name, "--manage")
    assert spark.table(name).count() == 10
    drop_table(spark, "main", "of_cli_overwritten")


def test_a_lint_that_looked_at_nothing_does_not_pass(folder, tmp_path):
    def told(*compiled):
        nodes = {
            f"model.p.{name}": {
                "resource_type": "model",
                "name": name,
                "unique_id": f"model.p.{name}",
                "compiled_code": sql,
                "schema": "main",
                "alias": name,
                "config": {},
            }
            for name, sql in zip("qr", compiled, strict=False)
        }
        path = tmp_path / "manifest.json"
        path.write_text(json.dumps({"nodes": nodes}))
        return run("lint", "--manifest", path)

    assert "run `dbt compile`" in told(None).stderr
    empty = told()
    assert (empty.exit_code, empty.stdout) == (0, "The project has no queries.\n")
    missing = "select * from main.of_nowhere"
    assert "Spark cannot analyse 1 of 1 compiled query; q: [TABLE_OR_VIEW_NOT_FOUND]" in told(missing).stderr
    some = told(missing, "select * from main.of_cli where k = 3")
    assert some.exit_code == 0
    good, failed = some.stdout.splitlines()
    assert good == "Every condition of 1 compiled query that Spark can analyse can skip files."
    assert failed.startswith("Spark cannot analyse 1 of 2 compiled queries; q: ")


@pytest.mark.slow
def test_tables_that_the_other_engine_builds_are_indexed_and_clustered(spark, session):
    manifest = ["--manifest", dbt_v2.MANIFEST]
    built_by_another_dbt(spark, 4000)
    assert json.loads(printed("adopt", "orders", *manifest, "--json"))["level"] == "indexed"
    assert "reads 4 of 4 files" in printed("explain", "orders", "k = 17", *manifest)
    # It builds the table again, and then appends to it: the index follows both.
    built_by_another_dbt(spark, 3000)
    assert "other tools can keep writing" in printed("adopt", "orders", *manifest)
    spark.sql("insert into main.of_v2 select id, 0 from range(5000, 5010)")
    assert "files added" in printed("refresh", "orders", *manifest)
    assert "no wrong cells" in printed("verify", "orders", "--data", *manifest)
    assert spark.table("main.of_v2").count() == 3010
    # Taken over, it is clustered and published.
    assert "only this package may write" in printed("adopt", "orders", "--manage", *manifest)
    printed("cluster", "orders", "--rewrite-all", *manifest)
    explained = json.loads(printed("explain", "orders", "k = 17", "--json", *manifest))[0]
    assert explained["kept_files"] == 1 < explained["total_files"]
    assert "delta readers see version" in printed("publish", "orders", "--format", "delta", *manifest)
    assert "already managed" in refused("adopt", "orders", *manifest)
    session.catalog.refreshTable("main.of_v2")
    assert spark.table("main.of_v2").count() == 3010
    # The engine cannot build the table anew then: the folder stays. The table is not lost.
    place = ZTable.for_name(spark, "main.of_v2").location
    with pytest.raises(Exception, match="LOCATION_ALREADY_EXISTS"):
        built_by_another_dbt(spark, 2000)
    printed("register", "main.of_v2", place)
    assert spark.table("main.of_v2").count() == 3010
    assert "only a table of the catalog" in refused("adopt", "./orders")
    drop_table(spark, "main", "of_v2")


@pytest.mark.slow
def test_the_stored_manifest_is_what_dbt_v2_writes(tmp_path, monkeypatch):
    """``ZLAYOUT_GOLDEN=write`` writes it anew."""
    dbt_v2.run(tmp_path, "compile", files=dbt_v2.PROJECT)
    found = dbt_v2.manifest_of(tmp_path)
    if os.environ.get("ZLAYOUT_GOLDEN") == "write":
        dbt_v2.MANIFEST.write_text(found)
    assert found == dbt_v2.MANIFEST.read_text()
    nodes = Manifest.read(dbt_v2.MANIFEST).named()
    in_manifest = {each.name: each.sql.strip() for each in compiled_queries(nodes, None)}
    assert set(in_manifest) == {"orders", "not_null_orders_k"}
    # Without the SQL, as after `dbt parse`, the files below target/compiled give it.
    parsed = {name: {**node, "compiled_code": None} for name, node in nodes.items()}
    in_files = {each.name: each.sql.strip() for each in compiled_queries(parsed, tmp_path / "target")}
    assert in_files == in_manifest
    # Settings of this adapter outside of meta are refused.
    with pytest.raises(AssertionError, match=r"unexpected key .*zorder"):
        dbt_v2.run(tmp_path, "parse", files={"models/bad.sql": "{{ config(zorder=['k']) }} select 1 as k"})


@pytest.mark.slow
def test_files_that_dbt_v2_builds_are_indexed_and_followed(spark, tmp_path):
    lake, driver, name = tmp_path / "lake", dbt_v2.with_duckdb(tmp_path / "driver"), "main.of_duckdb"
    files = {
        "dbt_project.yml": "name: shop\nprofile: shop\n",
        "profiles.yml": f"shop: {{target: t, outputs: {{t: {{type: duckdb, path: {tmp_path}/d.duckdb, schema: main}}}}}}",
        "models/a.sql": f"{{{{ config(materialized='external', location='{lake}/a.parquet') }}}} select i k from range(1000) t(i)",
        "models/b.sql": f"{{{{ config(materialized='external', location='{lake}/b.parquet') }}}} select i + 1000 k from range(1000) t(i)",
    }
    lake.mkdir()
    dbt_v2.run(tmp_path, "build", files=files, **driver)
    spark.sql(f"create table {name} using parquet location '{lake}'")
    assert json.loads(printed("adopt", name, "--json"))["level"] == "indexed"
    assert "reads 1 of 2 files" in printed("explain", name, "k = 17")
    # The next build replaces one file by another of the same name: the index does not mislead before it is refreshed.
    files["models/b.sql"] = files["models/b.sql"].replace("i + 1000", "i + 5")
    dbt_v2.run(tmp_path, "build", files=files, **driver)
    enable(spark)
    spark.catalog.refreshTable(name)
    assert spark.table(name).where("k = 17").count() == 2
    printed("refresh", name)
    assert "reads 2 of 2 files" in printed("explain", name, "k = 17")
    assert "no wrong cells" in printed("verify", name, "--data")
    drop_table(spark, *name.split("."))


def test_the_profile_of_a_project_configures_spark(dbt, folder, tmp_path):
    assert "main.of_cli" in printed("history", "main.of_cli", "--project-dir", dbt.folder)
    given = ["--profiles-dir", dbt.folder, "--profile", "adapter_suite"]
    assert "main.of_cli" in printed("history", "main.of_cli", *given, "--project-dir", tmp_path)
    assert "give --profile too" in refused("history", "main.of_cli", "--project-dir", tmp_path)
    assert "nobody" in refused("history", "main.of_cli", *given, "--target", "nobody")
    assert "nosuch" in refused("history", "main.of_cli", "--profiles-dir", dbt.folder, "--profile", "nosuch")


def test_every_mistake_is_one_line(folder, tmp_path):
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "other.json").write_text("[]")
    (tmp_path / "nodes.json").write_text('{"nodes": {"m": {"resource_type": "model", "name": 1}}}')
    for words, message in {
        ("info", tmp_path / "nowhere"): "there is no such folder",
        ("info", tmp_path): "holds other files",
        ("info", tmp_path / "broken.json"): "is a file",
        ("info", "main.nowhere"): "there is no table main.nowhere",
        ("info", "a.b.c"): "names catalog 'a'",
        ("info", folder, "--columns", "nope"): "'nope' has no statistics",
        ("explain", folder, "nope = 1"): "nope",
        ("explain", folder, "k = = 1"): "Syntax error",
        ("cluster", folder, "--max-bytes", "much"): "much",
        ("cluster", folder, "--where", ""): "where: is empty",
        ("index", folder, "--bloom", ""): "bloom: is empty",
        ("index", folder, "--lookup", "k+"): "lookup: '' does not name a column",
        ("info", "hdfs://nowhere:1/x"): "hdfs://nowhere:1/x: java.net.UnknownHostException: nowhere",
        ("cluster", folder, "--strategy", "zip"): "'zip' is not one of curve, binpack, sort",
        ("compact", folder): "has no logs to merge",
        ("publish", folder, "--format", "csv"): "'csv' is not one of delta",
        ("info", "x", "--manifest", tmp_path / "broken.json"): "cannot be read",
        ("info", "x", "--manifest", tmp_path / "other.json"): "is not a manifest",
        ("info", "x", "--manifest", tmp_path / "nodes.json"): "name is 1, not text",
        ("register", "main.new", tmp_path): "holds no dbt-zlayout table",
    }.items():
        assert message in refused(*words)


def test_an_operation_of_dbt_takes_a_folder_too(dbt, folder):
    done = dbt.operation("zlayout_history", model=str(folder))
    assert done.success, done.log
    assert done.printed.splitlines()[0] == str(folder)


def test_files_of_an_insert_are_told_by_the_next_run_and_by_info(dbt, spark, tmp_path):
    table = ZTable.write(spark, "main.inserted", rows(spark), zorder="k", location_root=str(tmp_path))
    assert json.loads(printed("info", "main.inserted", "--json"))["foreign_files"] == 0
    lines = []
    table.append(rows(spark, 1), progress=lines.append)
    assert lines == []
    plain = spark.newSession()
    plain.sql("insert into main.inserted values (5000, 1)")
    assert spark.table("main.inserted").count() == 1001
    table.append(rows(spark, 1), progress=lines.append)
    (line,) = lines
    assert line.startswith("another tool put 1 file into the folder, and no version lists it")
    assert "zlayout_refresh_index and take_orphans: true" in line
    found = json.loads(printed("info", "main.inserted", "--json"))
    assert (found["foreign_files"], len(found["what_to_do"])) == (1, 1)
    assert "zlayout refresh" in printed("info", tmp_path / "inserted")
    table.append(rows(spark, 1), progress=lines.append)
    assert len(lines) == 1
    taken = dbt.operation("zlayout_refresh_index", model="main.inserted", take_orphans=True)
    assert taken.success, taken.log
    assert spark.table("main.inserted").where("k = 5000").count() == 1
    assert json.loads(printed("info", "main.inserted", "--json"))["foreign_files"] == 0
    drop_table(spark, "main", "inserted")


def test_a_report_of_folders_has_commands_of_the_command_line(folder, logs, tmp_path):
    path = tmp_path / "report.html"
    done = CliRunner().invoke(zlayout, ["report", str(folder), str(logs), "--output", str(path)])
    assert done.exit_code == 0, done.stderr
    assert f"{path}: the report of 2 tables" in done.stdout
    page = path.read_text("utf-8")
    assert f"zlayout compact {logs}" in page
    assert "dbt run-operation zlayout_compact" not in page
    told = CliRunner().invoke(zlayout, ["report", str(folder), "--json"])
    assert json.loads(told.stdout)["tables"][0]["partition_by"] == ["part"]


def test_a_report_needs_tables_and_a_place(folder):
    assert "--manifest" in CliRunner().invoke(zlayout, ["report", "--output", "r.html"]).stderr
    assert "--output FILE" in CliRunner().invoke(zlayout, ["report", str(folder)]).stderr
