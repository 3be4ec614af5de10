"""A published table read by engines that know nothing of this package: they get plain Spark's rows and skip files."""

import datetime as dt
import json
import random
import re
import shutil
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from delta_readers import READERS, duckdb_answer, files_opened_by_duckdb
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import functions

from dbt.adapters.zlayout.errors import CommittedError, ConfigError
from dbt.adapters.zlayout.publish import delta_log
from dbt.adapters.zlayout.table.ztable import ZTable

pytestmark = pytest.mark.newest_spark

ROWS = """
    select id k, cast(id % 50 as int) i, cast(id % 100 as tinyint) ty, cast(id as smallint) sm,
      id * 1000000000000 l, cast(id / 3 as float) f,
      case when id % 40 = 5 then double('NaN') when id % 40 = 6 then double('inf') when id % 40 = 7 then -0.0D
        when id % 40 = 8 then 0.0D when id % 40 = 9 then null else id - 100D end n,
      cast(id * 1.25 as decimal(20, 4)) dec,
      cast(id as decimal(38, 0)) * cast('1000000000000000000000000000001' as decimal(38, 0)) big,
      if(id % 7 = 0, null, concat(repeat('é😀', int(id % 14)), 'txt', id)) s,
      timestamp_micros(id * 123456789 - 5000000001) ts,
      timestamp_ntz'1969-12-31 23:59:00.5' + make_interval(0, 0, 0, 0, 0, 0, id * 1.0000005) ntz,
      date_add(date'0001-01-02', int(id * 1000)) d, id % 2 = 0 b, cast(concat('ab', id) as binary) bin,
      named_struct('a', if(id % 9 = 0, null, id), 'c', concat('x', id)) st, if(id % 11 = 0, null, array(id)) arr,
      map('k', id) m, cast(null as int) nul, if(id = 77, 'only', null) rare, '' empty,
      case id % 4 when 0 then null when 1 then 'a b/%=é' when 2 then 'x:y' else '1' end p
    from range({0}, {1})
"""
CONDITIONS = [
    *("k = 77", "k between 10 and 20", "i = 3", "ty = 5", "sm > 190", "s = 'txt28'", "s > 'éé'", "s < 'u'", "s is null"),
    *("n = 0.0", "n > 50", "n < -90", "n is null", "n >= 100", "n <= 0", "f > 60", "l = 77000000000000", "l > 198000000000000"),
    *("dec = 125.0000", "dec > 240", "dec < 2.5", "d = date '0001-01-02'", "d < date '0010-01-01'", "d > date '0500-01-01'"),
    *("b", "not b", "st.a = 50", "st.a is null", "st.c = 'x7'", "nul is null", "nul = 3", "rare = 'only'", "rare is null"),
    *("empty = ''", "empty = 'a'", "ntz < timestamp '1970-01-01 00:00:00'", "k in (1, 150)", "k = 3 or k = 180"),
    *("p = 'a b/%=é'", "p is null and k < 50", "p <> '1'", "s in ('txt14', 'txt42')"),
]  # fmt: skip


def folder_of(table):
    return Path(table.location.removeprefix("file://"))


def rows_of(table, columns):
    return sorted(map(repr, table.select(columns).to_pylist()))


def assert_seen(spark, table):
    """Every reader sees exactly the rows of plain Spark, in its types."""
    wanted = spark.table(table.name).toArrow()
    for name, read in READERS.items():
        found = read(folder_of(table))
        assert rows_of(found, wanted.column_names) == rows_of(wanted, wanted.column_names), name
        assert sorted(found.column_names) == sorted(wanted.column_names), name


@pytest.fixture(scope="module")
def published(spark):
    rows = spark.sql(ROWS.format(0, 200))
    return ZTable.write(
        spark, "z.pub", rows, zorder=["k", "s"], target_file_size="4kb", stats_columns=100, publish=["delta"]
    )


def test_every_reader_gets_the_rows_of_every_type(spark, published):
    assert not published.last_commit.unfinished
    assert_seen(spark, published)


def test_predicates_mean_the_same_to_every_reader(spark, published):
    assert len(published.snapshot().files) > 4
    spark.sql(ROWS.format(0, 200)).createOrReplaceTempView("pub_rows")
    rnd = random.Random(5)
    texts = ["txt", "txt28", "é", "é😀é😀", "é😀txt1", "z", "é😀" * 13 + "txt13"]
    made = []
    for _ in range(25):
        terms = []
        for _ in range(2):
            column = rnd.choice(["k", "i", "n", "s", "dec", "d", "l", "st.a"])
            value = {"s": f"'{rnd.choice(texts)}'", "d": f"date '{rnd.randrange(1, 600):04d}-03-04'"}.get(column)
            value = value or (rnd.randrange(200) * 10**12 if column == "l" else rnd.choice([-100, 0, 50, 99, 177]))
            terms.append(f"{column} {rnd.choice(['=', '<', '>', '<=', '>=', '<>'])} {value}")
        made.append(rnd.choice([" and ", " or "]).join(terms))
    for condition in [*CONDITIONS, *made]:
        keys = sorted(row.k for row in spark.sql(f"select k from pub_rows where {condition}").collect())
        for name, read in READERS.items():
            found = sorted(read(folder_of(published), condition, "k")["k"].to_pylist())
            assert found == keys, f"{name}: {condition}"


def test_readers_skip_files_by_the_published_statistics(published):
    files, folder = len(published.snapshot().files), folder_of(published)
    dataset = DeltaTable(str(folder)).to_pyarrow_dataset()
    for condition, expression in (
        ("k = 77", ds.field("k") == 77),
        ("d < date '0050-01-01'", ds.field("d") < dt.date(50, 1, 1)),
        ("s = 'txt28'", ds.field("s") == "txt28"),
        (None, ds.field("dec") > Decimal("240.0000")),  # DuckDB does not skip by decimals
    ):
        assert condition is None or files_opened_by_duckdb(folder, condition) <= files / 2, condition
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
    ZTable.write(spark, name, spark.sql("select 1 other, 'x' p"), zorder=["other"])
    table = ZTable.for_name(spark, name)
    assert_seen(spark, table)
    empty = ZTable.write(spark, name, spark.sql("select 1 other where false"))
    assert_seen(spark, empty)


def test_a_merge_on_read_table_is_published_as_its_base_files_show_it(spark):
    rows = spark.sql("select id k, 0 v from range(1000)")
    table = ZTable.write(
        spark, "z.pub_mor", rows, zorder=["k"], table_type="merge_on_read", unique_key="k", publish=["delta"]
    )
    table.upsert(spark.sql("select id k, 1 v from range(500, 510)"))
    folder = folder_of(table)
    for read in READERS.values():
        assert read(folder, "v = 1").num_rows == 0
        assert read(folder).num_rows == spark.table("z.pub_mor__ro").count() == 1000
    table.compact()
    assert_seen(spark, table)
    assert READERS["duckdb"](folder, "v = 1").num_rows == 10


def test_other_software_cannot_write(published):
    folder = str(folder_of(published))
    with pytest.raises(Exception, match="zlayoutManaged"):
        write_deltalake(folder, DeltaTable(folder).to_pyarrow_table().slice(0, 1), mode="append")


def test_publishing_is_switched_on_and_off(spark):
    table = ZTable.write(spark, "z.pub_switch", spark.range(10).selectExpr("id k"), zorder=["k"])
    folder = folder_of(table)
    assert not (folder / "_delta_log").exists()
    table.append(spark.range(10, 20).selectExpr("id k"))
    assert table.publish("delta") == {"delta": table.snapshot().version}
    assert_seen(spark, table)
    table.append(spark.range(20, 30).selectExpr("id k"))
    again = ZTable.write(spark, "z.pub_switch", spark.range(5).selectExpr("id k"), zorder=["k"])
    assert_seen(spark, again)
    assert again.publish() == {"delta": again.snapshot().version}
    assert again.publish([]) == {}
    assert not (folder / "_delta_log").exists()
    again.append(spark.range(5, 7).selectExpr("id k"))
    assert not (folder / "_delta_log").exists()
    with pytest.raises(ConfigError, match="publish: 'iceburg' is not one of delta"):
        again.publish(["iceburg"])


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
        assert_seen(spark, table)


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


@pytest.mark.parametrize(
    ("column", "told"),
    [
        ("interval '1' day x", "column 'x' has type interval day"),
        ("named_struct('y', interval '1' month) x", "column 'x.y' has type interval month"),
        (
            "timestamp'2026-01-01 00:00:00' p",
            "partition column 'p' has type timestamp: its folder names are local times",
        ),
    ],
)
def test_what_delta_has_no_type_for_is_refused_before_anything_is_written(spark, column, told):
    rows = spark.sql(f"select 1 k, {column}")
    folders = {"partition_by": ["p"]} if column.endswith(" p") else {}
    with pytest.raises(ConfigError, match=told):
        ZTable.write(spark, "z.pub_refused", rows, publish=["delta"], **folders)
    assert not spark.catalog.tableExists("z.pub_refused")


def test_a_failure_to_publish_is_told_and_mended_by_the_next_writer(spark, monkeypatch):
    table = ZTable.write(
        spark, "z.pub_fails", spark.range(10).selectExpr("id k"), publish=["delta"], retain_hours=0, retain_versions=1
    )
    folder, told = folder_of(table), []
    with monkeypatch.context() as broken:
        broken.setattr(delta_log, "_commit", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
        for number in range(3):
            table.merge(spark.sql(f"select {number} k"), "k", progress=told.append)
            assert any("readers of delta do not see it yet: disk full" in each for each in table.last_commit.unfinished)
        assert table.information()["unfinished"] == [
            f"readers of delta see version 0 and not version {table.snapshot().version}"
        ]
        with pytest.raises(CommittedError, match="readers of delta do not see it: disk full"):
            table.publish()
    assert any("readers of delta do not see it yet" in each for each in told)
    # No clean has taken the files that Delta's readers still see.
    assert READERS["delta-rs"](folder).num_rows == 10
    assert DeltaTable(str(folder)).version() == 0
    table.append(spark.range(20, 21).selectExpr("id k"))
    assert not table.last_commit.unfinished
    assert not table.information()["unfinished"]
    assert DeltaTable(str(folder)).version() == 4
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


def test_the_lines_to_paste_work(spark):
    rows = spark.sql("select date_add(date'2026-01-01', int(id)) order_date, id customer_id from range(100)")
    table = ZTable.write(spark, "z.pub_orders", rows, zorder=["order_date"], publish=["delta"])
    text = (
        (Path(__file__).parents[2] / "docs" / "readers.md")
        .read_text()
        .replace("/lake/shop/orders", str(folder_of(table)))
    )
    blocks = dict(
        re.findall(r"\*\*(DuckDB|Polars|delta-rs)\*\*[^`]*(?:`deltalake`[^`]*)?```[a-z]+\n(.*?)```", text, re.DOTALL)
    )
    assert len(blocks) == 3
    (query,) = [line for line in blocks["DuckDB"].splitlines() if line.startswith("SELECT")]
    assert READERS["duckdb"](folder_of(table)).num_rows == 100  # loads the extension, as the first line does
    assert duckdb_answer(query.rstrip(";")) == [(1,)]
    names = {}
    for each in ("Polars", "delta-rs"):
        lines = blocks[each].strip().splitlines()
        exec("\n".join([*lines[:-1], f"found = {lines[-1]}"]), names)
        assert names["found"] is not None
    assert pa.table(names["found"].read_all()).to_pylist() == [{"count(*)": 100}]
