"""A published table read by engines that know nothing of this package: they get plain Spark's rows and skip files."""

import datetime as dt
import json
import os
import re
import shutil
import sys
import threading
from decimal import Decimal
from pathlib import Path

import pyarrow.dataset as ds
import pytest
from delta_readers import (
    OWN_WAYS,
    READERS,
    assert_seen,
    clickhouse_answer,
    duckdb_answer,
    files_opened_by_clickhouse,
    files_opened_by_duckdb,
    plain_file,
)
from deltalake import DeltaTable, write_deltalake
from environments import python_of
from published_tables import CONDITIONS, ROWS, TABLES, folder_of, output_of, random_conditions
from pyiceberg.table import StaticTable
from pyspark.sql import functions

from dbt.adapters.zlayout.errors import CommittedError
from dbt.adapters.zlayout.publish import delta_log, iceberg_table
from dbt.adapters.zlayout.table.ztable import ZTable

pytestmark = pytest.mark.newest_spark


DOCS = Path(__file__).parents[2] / "docs"


def lines_to_paste(page, language, folder):
    """The blocks of an engine's page, with the folder of a real table."""
    text = (DOCS / "readers" / f"{page}.md").read_text().replace("/lake/shop/orders", folder)
    blocks = re.findall(rf"```{language}\n(.*?)\n```", text, re.DOTALL)
    assert blocks, page
    return blocks


@pytest.fixture(scope="module")
def tables(spark):
    """Writes a table of `TABLES`, once."""
    made = {}

    def written(name):
        if name not in made:
            each = TABLES[name]
            made[name] = ZTable.write(spark, f"z.pub_{name}", spark.sql(each.sql), **each.settings, publish=["delta"])
        return made[name]

    return written


@pytest.fixture(scope="module")
def published(tables):
    return tables("every_type")


@pytest.mark.parametrize("name", TABLES)
def test_every_reader_gets_the_rows_and_types_of_plain_spark(spark, tables, name):
    table = tables(name)
    assert not table.last_commit.unfinished
    assert_seen(spark, table)


def keys_of(read, *arguments, **options):
    """The keys that a reader finds; or that it refuses the condition."""
    try:
        return sorted(read(*arguments, "k", **options)["k"].to_pylist())
    except RuntimeError:
        return "refused"


def test_predicates_mean_the_same_to_every_reader(spark, published, tmp_path):
    assert len(published.snapshot().files) > 4
    conditions = [*CONDITIONS, *random_conditions(25)]
    plain = plain_file(spark.table(published.name).toArrow(), tmp_path / "rows.parquet")
    own = {name: set() for name in OWN_WAYS}
    columns = [f"coalesce({each}, false)" for each in conditions]
    answers = spark.sql(f"select k, array({', '.join(columns)}) met from ({ROWS.format(0, 200)})").collect()
    for number, condition in enumerate(conditions):
        keys = sorted(row.k for row in answers if row.met[number])
        for name, read in READERS.items():
            found = keys_of(read, folder_of(published), condition)
            if found != keys and name in OWN_WAYS:
                own[name].add(condition)
                keys_of_plain = keys_of(OWN_WAYS[name], plain, condition, plain=True)
                assert found == keys_of_plain, f"{name}: {condition}"
                continue
            assert found == keys, f"{name}: {condition}"
    # Comparisons of -0.0, NaN and old dates that differ from Spark's are these engines' own. Times without a zone:
    # Daft refuses to compare them with this constant.
    strange = r"\b(n|d|ntz)\b"
    assert not [each for conditions in own.values() for each in conditions if not re.search(strange, each)]


def test_readers_skip_files_by_the_published_statistics(published):
    files, folder = len(published.snapshot().files), folder_of(published)
    dataset = DeltaTable(str(folder)).to_pyarrow_dataset()
    for condition, expression in (
        ("k = 77", ds.field("k") == 77),
        ("d < date '0050-01-01'", ds.field("d") < dt.date(50, 1, 1)),
        ("day < date '1997-01-01'", ds.field("day") < dt.date(1997, 1, 1)),
        ("s = 'txt28'", ds.field("s") == "txt28"),
        (None, ds.field("dec") > Decimal("240.0000")),  # DuckDB and ClickHouse do not skip by decimals
    ):
        assert condition is None or files_opened_by_duckdb(folder, condition) <= files / 2, condition
        # ClickHouse does not skip by dates before 1900.
        assert (
            condition is None or " d " in f" {condition}" or files_opened_by_clickhouse(folder, condition) <= files / 2
        )
        assert len(list(dataset.get_fragments(filter=expression))) <= files / 2, condition


def test_each_kind_of_commit_is_published_as_what_it_is(spark):
    name, settings = "z.pub_kinds", {"zorder": ["k"], "partition_by": ["p"], "target_file_size": "8kb"}
    table = ZTable.write(spark, name, spark.sql(ROWS.format(0, 100)), **settings, publish="delta")
    folder = folder_of(table)

    def last():
        """The newest Delta commit's operation, and whether its files change rows."""
        number = DeltaTable(str(folder)).version()
        lines = [json.loads(line) for line in (folder / delta_log.commit_path(number)).read_text().splitlines()]
        files = [each[kind] for each in lines for kind in ("add", "remove") if kind in each]
        info = lines[0]["commitInfo"]
        assert info["zlayout.version"] == table.snapshot().version
        return info["operation"], {each["dataChange"] for each in files}

    assert_seen(spark, table)
    steps = [
        (lambda: table.append(spark.sql(ROWS.format(100, 120))), ("WRITE", {True})),
        (lambda: table.merge(spark.sql(ROWS.format(90, 130)), "k"), ("MERGE", {True})),
        (lambda: table.delete("k < 10"), ("DELETE", {True})),
        (lambda: table.cluster(rewrite_all=True), ("OPTIMIZE", {False})),
        (lambda: table.overwrite(spark.sql(ROWS.format(0, 5))), ("WRITE", {True})),
        (
            lambda: table.append(
                spark.sql(ROWS.format(200, 205)).withColumn("more", functions.lit(1)),
                on_schema_change="append_new_columns",
            ),
            ("WRITE", {True}),
        ),
        (
            lambda: table.append(spark.sql(ROWS.format(210, 212)).drop("rare"), on_schema_change="sync_all_columns"),
            ("WRITE", {True}),
        ),
        (
            lambda: table.append(
                spark.sql(ROWS.format(220, 222)).drop("rare").withColumn("i", functions.lit(1 << 40)),
                on_schema_change="sync_all_columns",
            ),
            ("WRITE", {True}),
        ),
        (lambda: table.rollback(version=2), ("RESTORE", {True})),
    ]
    for change, expected in steps:
        change()
        assert not table.last_commit.unfinished
        assert last() == expected
        assert_seen(spark, table)
    table.refresh_index()
    assert_seen(spark, table)
    table.clean(retain_versions=1, retain_hours=0)
    assert_seen(spark, table)
    ZTable.write(spark, name, spark.sql("select 1 other, 'x' p"), zorder=["other"])
    table = ZTable.for_name(spark, name)
    assert_seen(spark, table)
    empty = ZTable.write(spark, name, spark.sql("select 1 other where false"))
    assert_seen(spark, empty)


def test_other_software_cannot_write(spark):
    table = ZTable.write(spark, "z.pub_guarded", spark.range(100).selectExpr("id k"), zorder=["k"], publish=["delta"])
    table.overwrite(spark.range(1000).selectExpr("id k"))
    table.append(spark.range(5).selectExpr("id k"))
    folder = folder_of(table)
    before, delta = sorted(folder.rglob("*")), DeltaTable(str(folder))
    for change in (
        lambda: write_deltalake(delta, delta.to_pyarrow_table().slice(0, 1), mode="append"),
        delta.optimize.compact,
        lambda: delta.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False),
        lambda: delta.delete("k = 1"),
    ):
        with pytest.raises(Exception, match="zlayoutManaged"):
            change()
    assert [each for each in sorted(folder.rglob("*")) if each not in before] == []
    assert [each for each in before if not each.exists()] == []


@pytest.mark.slow
def test_a_clean_takes_no_file_from_a_slow_reader(spark):
    rows = spark.range(1000).selectExpr("id k", "0 v")
    table = ZTable.write(
        spark, "z.pub_slow", rows, zorder=["k"], target_file_size="2kb", publish=["delta"], retain_versions=1
    )
    folder = folder_of(table)
    assert len(table.snapshot().files) > 4
    slow = DeltaTable(str(folder)).to_pyarrow_dataset().scanner(batch_readahead=0, fragment_readahead=0).to_reader()
    first = slow.read_next_batch()
    seen, stop = [], threading.Event()

    def read_on():
        while not stop.wait(0.1):
            seen.append(READERS["duckdb"](folder, columns="count(*) c, min(v) low, max(v) high").to_pylist()[0])

    reader = threading.Thread(target=read_on)
    reader.start()
    try:
        for value in (1, 2, 3):
            table.overwrite(rows.selectExpr("k", f"{value} v"))
            table.clean()
    finally:
        stop.set()
        reader.join()
    # Versions are cleaned after `retain_hours`, and no reader is slower than that.
    assert len(first) + sum(len(batch) for batch in slow) == 1000
    assert {each["c"] for each in seen} == {1000}
    assert all(each["low"] == each["high"] for each in seen)
    table.clean(retain_hours=0)
    assert_seen(spark, table)


def test_a_version_that_is_published_late_takes_no_file_from_readers_of_the_one_before(spark, monkeypatch):
    rows = spark.range(1000).selectExpr("id k", "0 v")
    table = ZTable.write(
        spark, "z.pub_late", rows, zorder=["k"], publish=["delta", "iceberg"], retain_versions=1, retain_hours=1
    )
    folder = folder_of(table)
    with monkeypatch.context() as broken:
        for module in (delta_log, iceberg_table):
            broken.setattr(module, "catch_up", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
        for value in (1, 2):
            table.overwrite(rows.selectExpr("k", f"{value} v"))
    for entry in (folder / ".zlayout/timeline/log").iterdir():
        os.utime(entry, (1, 1))
    by_delta, by_iceberg = (
        DeltaTable(str(folder)).to_pyarrow_dataset(),
        StaticTable.from_metadata(table.location).scan(),
    )
    table.overwrite(rows.selectExpr("k", "3 v"))
    table.clean()
    for found in (by_delta.to_table(), by_iceberg.to_arrow()):
        assert (found.num_rows, set(found["v"].to_pylist())) == (1000, {0})
    assert_seen(spark, table)
    assert table.clean(retain_hours=0).files > 0


@pytest.mark.slow
def test_rebuilds_with_other_types_and_folders_are_read(spark):
    for kind, values in (
        ("string", ["a/b", "a%2Fb", "é😀", " ", "a'b", 'a"b', "a\\\\b", "null", "#?[+~", "1"]),
        ("date", ["0001-01-01", "1582-10-10", "9999-12-31"]),
        ("double", ["-0.0", "NaN", "Infinity", "1e-300"]),
        ("decimal(20, 5)", ["1.00000", "-0.00001", "123456789012345.12345"]),
        ("timestamp_ntz", ["2026-01-01 00:00:00", "1969-12-31 23:59:59.123456"]),
        ("boolean", ["true", "false"]),
    ):
        rows = spark.createDataFrame(list(enumerate([*values, None])), "k long, s string")
        rows = rows.selectExpr("k", f"cast(s as {kind}) p", f"cast(s as {kind}) v")
        table = ZTable.write(spark, "z.pub_rebuilt", rows, partition_by=["p"], publish=["delta"])
        assert not table.last_commit.unfinished
        # ClickHouse misreads partition values of more than 18 digits, those of other software too.
        assert_seen(spark, table, but=["clickhouse"] if kind == "decimal(20, 5)" else [])


@pytest.mark.slow
def test_many_commits_are_read_from_a_checkpoint(spark):
    table = ZTable.write(
        spark, "z.pub_many", spark.range(100).selectExpr("id k", "id % 3 p"), partition_by=["p"], publish=["delta"],
        retain_hours=0, retain_versions=1,
    )  # fmt: skip
    for number in range(23):
        table.append(spark.range(100 + number, 101 + number).selectExpr("id k", "id % 3 p"))
    log = folder_of(table) / "_delta_log"
    assert json.loads((log / "_last_checkpoint").read_text())["version"] == 20
    # Old commits go with the versions that they show.
    assert min(int(path.name[:20]) for path in log.glob("*.json")) >= 19
    assert_seen(spark, table)
    table.delete("k < 50")
    assert_seen(spark, table)


def test_the_delta_log_of_other_software_is_left_alone(spark):
    table = ZTable.write(spark, "z.pub_foreign", spark.range(3).selectExpr("id k"))
    folder = folder_of(table)
    write_deltalake(str(folder), spark.range(1).toArrow())
    before = sorted((folder / "_delta_log").rglob("*"))
    table.append(spark.range(3, 4).selectExpr("id k"))
    assert sorted((folder / "_delta_log").rglob("*")) == before
    with pytest.raises(CommittedError, match="was written by other software; move the folder _delta_log away"):
        table.publish(["delta"])
    assert sorted((folder / "_delta_log").rglob("*")) == before
    shutil.rmtree(folder / "_delta_log")
    table.publish()
    assert_seen(spark, table)


def test_two_publishers_write_each_version_once(spark, monkeypatch):
    table = ZTable.write(spark, "z.pub_two", spark.range(10).selectExpr("id k"), publish=["delta"])
    other, commit, raced = ZTable.for_name(spark, "z.pub_two"), delta_log._commit, []

    def slower(*given):
        """Another publisher writes the same version first."""
        if not raced:
            raced.append(True)
            other.publish()
        return commit(*given)

    monkeypatch.setattr(delta_log, "_commit", slower)
    table.append(spark.range(10, 12).selectExpr("id k"))
    assert raced
    assert not table.last_commit.unfinished
    assert DeltaTable(str(folder_of(table))).version() == 1
    assert_seen(spark, table)


def test_versions_that_the_log_has_lost_are_replaced_for_readers(spark):
    table = ZTable.write(spark, "z.pub_lost", spark.range(10).selectExpr("id k"), publish=["delta"])
    table.append(spark.range(10, 12).selectExpr("id k"))
    folder = folder_of(table)
    newest = max((folder / ".zlayout" / "timeline" / "log").glob("*.json"))
    newest.unlink()
    again = ZTable.for_name(spark, "z.pub_lost")
    again.append(spark.range(20, 23).selectExpr("id k"))
    assert not again.last_commit.unfinished
    assert sorted(READERS["delta-rs"](folder)["k"].to_pylist()) == [*range(10), 20, 21, 22]
    assert_seen(spark, again)


def test_the_lines_of_each_engine_s_page_work(spark):
    rows = spark.sql("select date_add(date'2026-01-01', int(id)) order_date, id customer_id from range(100)")
    table = ZTable.write(spark, "z.pub_orders", rows, zorder=["order_date"], publish=["delta"])
    folder = str(folder_of(table))
    (query,) = lines_to_paste("duckdb", "sql", folder)
    # Where DuckDB may install no extension, it is loaded from a package.
    assert duckdb_answer(query.removeprefix("INSTALL delta;\nLOAD delta;\n")) == [(1,)]
    (query,) = lines_to_paste("clickhouse", "sql", folder)
    assert clickhouse_answer(query).to_pylist() == [{"count()": 1}]
    for engine in ("duckdb", "polars", "delta-rs", "daft"):
        python = python_of("daft") if engine == "daft" else sys.executable
        for lines in lines_to_paste(engine, "python", folder):
            assert output_of(python, lines) == "1\n", engine


def test_each_engine_has_a_page_that_the_overview_links_to():
    pages = {each.stem for each in (DOCS / "readers").glob("*.md")}
    linked = set(re.findall(r"\]\(readers/([\w-]+)\.md\)", (DOCS / "readers.md").read_text()))
    assert pages == linked
