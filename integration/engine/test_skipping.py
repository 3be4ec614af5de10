"""Plain SQL reads only the files that may match, and gets what plain Spark gets."""

from pathlib import Path

import pytest
from comparing import same_checksum

from dbt.adapters.zlayout import enable
from dbt.adapters.zlayout.errors import ConfigError, UnsupportedError
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog
from dbt.adapters.zlayout.spark.read.relations import installed, uninstall
from dbt.adapters.zlayout.table.ztable import ZTable, explain_query

ROWS = """
  select cast(id as int) i, id * 7919 % 10007 l, cast(id % 500 as decimal(20, 3)) de, date_add(date'2020-01-01', cast(id % 900 as int)) dt,
    timestamp_micros(1600000000000000 + id * 1000003) ts, cast(timestamp_micros(id * 1000003) as timestamp_ntz) ntz,
    case when id % 50 = 0 then double('NaN') when id % 51 = 0 then null else (id - 10000) / 7.0D end d,
    cast((id - 10000) / 3.0D as float) f, case when id % 13 = 0 then null else concat('k', lpad(id % 3000, 5, '0'), 'ж') end s,
    cast(concat('b', id % 777) as binary) b, id % 3 = 0 bo, named_struct('x', id % 1000, 'y z', string(id)) st
  from range(20000)
"""
CONDITIONS = [
    "i = 77", "77 = i", "i <> 77", "i < 100", "100 > i", "i <= 100", "i > 19900", "i >= 19900", "i between 50 and 60", "not (i between 50 and 19990)",
    "i in (3, 4, 19000)", "i in (1,2,3,4,5,6,7,8,9,10,11,12,13,14,null)", "i not in (1, 2, 3)", "i not in (1, null)", "i <=> 5", "not (i <=> 5)",
    "l = 5 and i < 10000", "l < 50 or i > 19950", "l < 50 and (i > 19000 or i < 100)", "not (l > 50 or i < 15000)",
    "de = 499.000", "de > 498.5", "de in (1.000, 2.000)", "dt = date'2020-03-01'", "dt < date'2020-01-05'", "dt >= '2022-06-01'", "year(dt) = 2021",
    "ts < timestamp'2020-09-13 13:00:00'", "ts between timestamp'2020-09-13 12:30:00' and timestamp'2020-09-13 12:40:00'",
    "ntz < timestamp_ntz'1970-01-01 00:10:00'", "d > 1400", "d < -1400", "d = double('NaN')", "d <> 3.0", "d > double('Infinity')", "isnan(d)",
    "not isnan(d)", "d is null", "d is not null", "d <=> null", "f = float(0)", "f > 3300", "s = 'k00001ж'", "s like 'k0000%'", "s like 'k00%1ж'",
    "s like 'k00010ж'", "not s like 'k0%'", "s is null", "s > 'k02999'", "s in ('k00001ж', 'zzz')", "startswith(s, 'k029')", "upper(s) = 'K00001Ж'",
    "b = cast('b5' as binary)", "b < cast('b1' as binary)", "b in (cast('b5' as binary), cast('b6' as binary))", "bo", "not bo", "bo = true", "bo <=> null",
    "st.x = 5", "st.`y z` = '19999'", "st.x < 3 and st.`y z` like '1%'", "st is null", "st.x is not null", "i % 100 = 3", "i + 1 = 5", "abs(i) < 5",
    "coalesce(s, 'x') = 'x'", "case when i < 5 then true else false end", "i < 50 and rand(5) < 2", "true", "false", "cast(null as boolean)", "i = null", "i = 1 and i = 2",
]  # fmt: skip


@pytest.fixture(scope="module")
def source(spark):
    enable(spark)
    frame = spark.sql(ROWS)  # not cached: a cached frame prunes its batches, and loses NaN on the way
    ZTable.write(spark, "z.skip", frame, zorder=["i", "l"], target_file_size="48kb", stats_columns=50)
    assert len(ZTable.for_name(spark, "z.skip").snapshot().files) >= 10
    return frame


def index_of(spark, name="z.skip"):
    return installed(Catalog(spark), Catalog(spark).name(name))


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_gives_the_rows_of_plain_spark(spark, source, condition):
    assert same_checksum(spark.table("z.skip").where(condition), source.where(condition))


@pytest.mark.parametrize(
    "condition",
    [
        "i = 77",
        "i in (3, 4)",
        "s = 'k00001ж' and i < 500",
        "dt < date'2020-01-05' and i < 40",
        "d < -1400",
        "st.x = 5 and i between 0 and 900",
    ],
)
def test_selective_conditions_read_few_files(spark, source, condition):
    spark.sql(f"select count(*) from z.skip where {condition}").collect()
    kept, total = index_of(spark).last_scan
    assert 0 < kept <= total / 2


@pytest.mark.parametrize(
    "condition",
    [
        "dt in (date'2100-01-01', null)",
        "ts in (timestamp'2100-01-01', null)",
        "ntz in (timestamp_ntz'2100-01-01', null)",
    ],
)
def test_a_list_of_times_with_null_skips_files(spark, source, condition):
    assert spark.table("z.skip").where(condition).count() == 0
    assert index_of(spark).last_scan[0] == 0


def test_joins_subqueries_and_partition_pruning_go_on_working(spark, source):
    query = "select count(*), sum(a.l) from {0} a join {0} b on a.i = b.i where a.i < 300 and b.l < 9000 and a.i in (select i from {0} where l < 5000)"
    source.createOrReplaceTempView("plain")
    assert spark.sql(query.format("z.skip")).collect() == spark.sql(query.format("plain")).collect()


def test_dynamic_partition_pruning_goes_on_working(spark, source):
    facts = spark.sql("select id, id % 20 p from range(20000)")
    ZTable.write(spark, "z.facts", facts, zorder=["id"], partition_by=["p"], target_file_size="8kb")
    spark.sql("select id k, id % 5 w from range(20)").write.mode("overwrite").saveAsTable("z.dims")
    sql = "select count(*) from z.facts f join z.dims d on f.p = d.k where d.w = 0"
    plan = spark.sql(sql)._jdf.queryExecution().executedPlan().toString()
    assert "dynamicpruning" in plan.lower()
    assert spark.sql(sql).collect()[0][0] == 4000


@pytest.mark.slow
def test_many_threads_plan_at_once(spark, source):
    from concurrent.futures import ThreadPoolExecutor

    def query(number):
        return spark.sql(
            f"select count(*) from z.skip a join z.skip b on a.i = b.i where a.i >= {number} and b.i < {number + 50}"
        ).collect()[0][0]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(query, range(0, 4000, 200))) == [50] * 20


def test_a_view_over_the_table_skips_too(spark, source):
    spark.sql("create or replace view z.skip_view as select i, l from z.skip where l > 10")
    uninstall(Catalog(spark), Catalog(spark).name("z.skip"))
    assert (
        spark.sql("select count(*) from z.skip_view where i < 40").collect()[0][0]
        == source.where("l > 10 and i < 40").count()
    )
    kept, total = index_of(spark).last_scan
    assert kept < total


def test_an_evicted_relation_reads_the_same_rows(spark, source):
    spark.sql("refresh table z.skip")
    plain = spark._jsparkSession.table("z.skip")
    assert plain.where("i < 500").count() == 500
    assert spark.sql("select count(*) from z.skip where i < 500").collect()[0][0] == 500
    assert index_of(spark) is not None


@pytest.mark.parametrize("damage", ["delete", "truncate", "garble"])
def test_a_broken_index_changes_no_result(spark, source, damage):
    ZTable.write(
        spark, "z.broken", spark.sql("select id, id % 7 k from range(5000)"), zorder=["id"], target_file_size="8kb"
    )
    table = ZTable.for_name(spark, "z.broken")
    root = Path(table.location.removeprefix("file://"))
    for slices in table.snapshot().index.values():
        for path in slices:
            content = (root / path).read_bytes()
            (root / path).unlink()
            if damage == "truncate":
                (root / path).write_bytes(content[: len(content) // 2])
            elif damage == "garble":
                (root / path).write_bytes(content.replace(b"\x00", b"\x01"))
    uninstall(Catalog(spark), Catalog(spark).name("z.broken"))
    assert spark.sql("select count(*) from z.broken where id < 100").collect()[0][0] == 100
    assert ZTable.for_name(spark, "z.broken").index_status().num_rows > 0
    assert explain_query(spark, "select * from z.broken where id < 100")[0].problems


def test_another_process_s_commit_is_seen_by_the_next_statement(spark, source):
    import subprocess
    import sys
    import textwrap

    ZTable.write(spark, "z.shared", spark.sql("select id from range(100)"), zorder=["id"])
    assert spark.sql("select count(*) from z.shared").collect()[0][0] == 100
    location = ZTable.for_name(spark, "z.shared").location
    script = textwrap.dedent(
        f"""
        import time
        from dbt.adapters.zlayout.store import open_store
        from dbt.adapters.zlayout.timeline.files.action import Action, Operation
        from dbt.adapters.zlayout.timeline.transactions.change import Change
        from dbt.adapters.zlayout.timeline.files.data_files import DataFiles
        from dbt.adapters.zlayout.timeline.timeline import Timeline
        from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction
        timeline = Timeline(open_store({location!r}))
        before = timeline.snapshot()
        with Transaction.begin(timeline, Action.REPLACECOMMIT, Operation.OVERWRITE) as transaction:
            transaction.commit(Change(adds=DataFiles.empty(()), schema_json=before.schema_json, partition_by=(), layout=before.layout))
        """
    )
    subprocess.run([sys.executable, "-c", script], check=True)
    assert spark.sql("select count(*) from z.shared").collect()[0][0] == 0
    assert spark.table("z.shared").count() == 0


def test_explanations_add_up(spark, source):
    table = ZTable.for_name(spark, "z.skip")
    explanation = table.explain("i < 100 and reverse(s) = 'X'")
    assert explanation.total_files == len(table.snapshot().files)
    assert explanation.kept_files + explanation.skipped_files == explanation.total_files
    assert [stage.name for stage in explanation.stages] == [
        "partition_stats",
        "files",
        "column_stats",
        "expression_stats",
        "lookup",
        "bloom",
    ]
    assert explanation.stages[-1].files_after == explanation.kept_files
    by_sql = {row["sql"]: row for row in explanation.conjuncts.to_pylist()}
    assert by_sql["i < 100"]["usable"]
    assert by_sql["i < 100"]["skips"] > 0
    unusable = [row for row in by_sql.values() if not row["usable"]]
    assert len(unusable) == 1
    assert "Reverse" in unusable[0]["why_not"]
    assert set(explanation.files.column_names) == {"path", "verdict", "stage", "reason", "rows", "bytes"}
    assert "z.skip" in explanation.to_text()
    assert table.explain("1 = 2").kept_files == 0


def test_every_scan_of_a_query_is_explained(spark, source):
    sql = "select * from z.skip a join z.skip b on a.i = b.i where a.i < 50 and b.l < 50 and a.l > (select max(l) from z.skip where i = 5)"
    found = explain_query(spark, sql)
    assert len(found) == 3
    assert {each.table for each in found} == {"z.skip"}


def test_the_optimizer_knows_exact_counts(spark, source):
    described = {row[0]: row[1] for row in spark.sql("describe extended z.skip").collect()}
    assert "20000 rows" in described["Statistics"]
    column = {row[0]: row[1] for row in spark.sql("describe extended z.skip i").collect()}
    assert (column["min"], column["max"], column["num_nulls"]) == ("0", "19999", "0")


@pytest.mark.newest_spark
@pytest.mark.parametrize("table_type", ["copy_on_write", pytest.param("merge_on_read", marks=pytest.mark.slow)])
def test_a_filter_finds_negative_zeros_in_files_without_other_zeros(spark, table_type):
    # Spark's Parquet reader skips row groups whose dictionary lacks 0.0, although -0.0 = 0.0.
    frame = spark.sql("""
        select id k, if(id < 500, -0.0D, id % 5 / 2D) d, named_struct('f', if(id < 500, float(-0.0), float(1))) st
        from range(1000)
    """)
    settings = {"table_type": table_type, "unique_key": "k"} if table_type == "merge_on_read" else {}
    table = ZTable.write(spark, f"z.zeros_{table_type}", frame, zorder=["k"], target_file_size="2kb", **settings)
    assert len(table.snapshot().files) > 1
    expected = frame.collect()
    for condition, value in (
        ("d = 0.0D", "d"),
        ("d in (0.0D, 7D)", "d"),
        ("d <=> 0.0D", "d"),
        ("st.f = float(0)", "f"),
    ):
        keys = {row.k for row in expected if (row.d if value == "d" else row.st.f) == 0}
        assert {row.k for row in spark.table(table.name).where(condition).collect()} == keys
    table.merge(frame.where("k < 300").selectExpr("k", "double(7) d", "st"), "k")
    assert spark.table(table.name).where("d = 0.0D").count() == 200 + 100


@pytest.fixture
def stages_of(spark):
    """Sets the stages that skip files for one test."""
    yield lambda value: spark.conf.set("spark.zlayout.skipping", value)
    spark.conf.unset("spark.zlayout.skipping")


def test_a_session_switches_stages_off(spark, stages_of):
    enable(spark)
    rows = spark.sql("select id k, id % 4 p from range(4000)")
    table = ZTable.write(spark, "z.switched", rows, zorder=["k"], partition_by=["p"], target_file_size="4kb")
    files, query = len(table.snapshot().files), "select k, p from z.switched where k < 40 and p = 1"
    wanted = spark.createDataFrame([(number, 1) for number in range(1, 40, 4)], "k bigint, p bigint")

    def opened():
        frame = spark.sql(query)
        assert same_checksum(frame, wanted)
        kept, total = index_of(spark, table.name).last_scan
        assert total == files
        assert explain_query(spark, query)[0].kept_files == kept
        return kept

    by_default = opened()
    # Spark's partition pruning is no stage: it stays on.
    assert by_default < files / 4
    for value, kept in {
        "none": files / 4,
        "partition_stats": files / 4,
        "Column_Stats , files": by_default,
        "all": by_default,
    }.items():
        stages_of(value)
        assert opened() == kept, value
    stages_of("none")
    explanation = explain_query(spark, query)[0]
    off = [
        each for each in explanation.files["reason"].to_pylist() if each.startswith("its stage is switched off: k: [")
    ]
    assert len(off) == files / 4 - by_default


def test_stages_of_an_indexed_table_are_switched_off(spark, stages_of):
    enable(spark)
    spark.sql("select id k from range(100)").repartitionByRange(5, "k").write.saveAsTable("z.switched_plain")
    ZTable.adopt(spark, "z.switched_plain")
    for value, kept in {"all": 1, "none": 5}.items():
        stages_of(value)
        frame = spark.sql("select k from z.switched_plain where k = 7")
        assert [row.k for row in frame.collect()] == [7]
        assert len(frame.inputFiles()) == 5
        assert explain_query(spark, "select k from z.switched_plain where k = 7")[0].kept_files == kept


def test_a_stage_that_does_not_exist_is_refused_at_the_start_and_later_ignored(spark, source, stages_of, caplog):
    stages_of("blooms")
    told = "spark.zlayout.skipping: 'blooms' is not a stage; give 'all', 'none', or some of partition_stats"
    with pytest.raises(ConfigError, match=told):
        enable(spark)
    assert spark.sql("select i from z.skip where i = 77").count() == 1
    kept, total = index_of(spark).last_scan
    assert kept < total
    assert told in caplog.text


def test_a_condition_on_a_struct_field_is_about_that_field(spark):
    enable(spark)
    rows = "select id, named_struct('a', concat('A', id), 'b', concat('B', id), 'c=\\n', named_struct('x', id, 'y', -id)) t from range(10)"
    table = ZTable.write(spark, "z.fields", spark.sql(rows), zorder=["id"])
    # Spark reads only the fields that a query needs, as a struct of fewer fields.
    for condition in (
        "t.b = 'B3'",
        "T.B = 'B3'",
        "lower(t.b) = 'b3'",
        "t.`c=\n`.y = -3",
        "t.`c=\n`.y + 1 = -2",
        "t.b like 'B3%'",
    ):
        assert spark.sql(f"select count(*) from z.fields where {condition}").first()[0] == 1, condition
        assert table.count(condition) == 1, condition
    assert spark.sql("select id from z.fields where t.b in ('B3', 'B4', 'A5') and t.`c=\n`.y < -3").first().id == 4
    assert spark.sql("select id from z.fields where t.a = 'B3'").collect() == []
    table.delete("t.b = 'B3'")
    table.replace_where(spark.sql("select 99L id, t from z.fields where id = 4"), "t.b = 'B4'")
    assert sorted(row.id for row in spark.table("z.fields").collect()) == [0, 1, 2, 5, 6, 7, 8, 9, 99]


def test_a_column_called_like_a_field_of_metadata_is_no_field_of_it(spark):
    enable(spark)
    for values in ([(1, "Aa"), (2, "Bb")], [(1, "Aa"), (2, "Aa")]):
        rows = spark.createDataFrame(values, "id int, file_name string")
        ZTable.write(spark, "z.called", rows, zorder=["id"], stats_expressions=["lower(file_name)"])
        file = spark.sql("select _metadata.file_name n from z.called").first().n
        for condition in (f"_metadata.file_name = '{file}'", f"lower(_metadata.file_name) = '{file.lower()}'"):
            assert spark.sql(f"select * from z.called where {condition}").count() == 2
    # The column still skips files.
    spark.sql("select * from z.called where file_name = 'Zz'").collect()
    assert index_of(spark, "z.called").last_scan == (0, 1)


def test_a_stream_into_a_table_or_from_one_is_refused(spark, tmp_path):
    table = ZTable.write(spark, "z.streamed", spark.range(5))
    folder, source = table.location.removeprefix("file://"), str(tmp_path / "source")
    spark.range(5).write.parquet(source)
    rows = spark.readStream.schema("id long").parquet(source)
    enable(spark)
    writer = rows.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
    for start in (lambda: writer.toTable("z.streamed"), lambda: writer.format("parquet").start(folder)):
        with pytest.raises(UnsupportedError, match=r"lose rows of a stream into it.*foreachBatch and ZTable\.append"):
            start()
    elsewhere = str(tmp_path / "plain")
    writer.format("parquet").start(elsewhere).awaitTermination(60)
    with pytest.raises(Exception, match="another") as told:
        writer.toTable("another.schema.streamed")
    assert not isinstance(told.value, ConfigError)
    assert spark.read.parquet(elsewhere).count() == 5
    assert spark.table("z.streamed").count() == 5
    reader = spark.readStream.schema("id long")
    reads = (
        lambda: spark.readStream.table("z.streamed"),
        lambda: reader.parquet(folder),
        lambda: reader.format("parquet").load(table.location),
    )
    for read in reads:
        with pytest.raises(UnsupportedError, match=r"rows of its rewritten files again.*ZTable\.changes"):
            read()
    assert reader.parquet(elsewhere).isStreaming
