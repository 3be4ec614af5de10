"""Statistics of expressions through Spark: who computes them, which files queries open, and that no result differs."""

import json

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from comparing import same_checksum
from indexed_rows import stage
from packaging.version import Version
from scanned import Scans

from dbt.adapters.zlayout import enable
from dbt.adapters.zlayout.errors import ConfigError
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog
from dbt.adapters.zlayout.spark.index import optional_indexes
from dbt.adapters.zlayout.table.ztable import ZTable

pytestmark = pytest.mark.spark
ANSI, ZONE = "spark.sql.ansi.enabled", "spark.sql.session.timeZone"
# Rows whose expressions follow n, as the files do; the columns themselves are spread over all files.
ROWS = """
  select id, id div 100 as n,
    case when id % 97 = 0 then null else concat(if(id % 2 = 0, 'USER', 'user'), lpad(string(id), 5, '0'), '@Mail.Example') end as email,
    case when id % 89 = 0 then null else repeat(chr(int(65 + id * 7 % 26)), int(greatest(1, id div 100))) end as name,
    case when id % 50 = 0 then 'no json' else concat('{"x": ', id * 7919 % 1000, ', "id": "', lpad(string(id), 6, '0'), '"}') end as payload,
    if(id % 61 = 0, double('NaN'), if(id < 200, -0.0D, double(id))) as d, timestamp_seconds(1700000000 + id * 3600) as ts,
    string(id) as digits
  from range(COUNT)
"""
EXPRESSIONS = [
    "lower(email)", "length(name)", "get_json_object(payload, '$.id')", "d * -1", "cast(ts as string)", "cast(digits as int)",
    "substring(email, 3, 7) like 'ER0%'",
]  # fmt: skip
SELECTIVE = [
    "lower(email) = 'user00042@mail.example'", "lower(email) in ('user00042@mail.example', 'nobody')", "lower(email) < 'user00003'",
    "lower(email) like 'user0004%'", "length(name) = 7", "length(name) between 3 and 4", "not (length(name) <> 7)",
    "get_json_object(payload, '$.id') = '000777'", "'000777' = get_json_object(payload, '$.id') and n >= 0",
    "cast(ts as string) >= '2023-12-29'", "cast(digits as int) = 5", "cast(digits as int) * 2 < 50",
    "lower(email) <=> 'user00042@mail.example'", "length(name) + 1 = 6",
]  # fmt: skip
OTHERS = [
    "length(name) is null", "length(name) is not null", "lower(email) <> 'x'", "lower(email) <=> null", "d * -1 = 0", "d * -1 > 1",
    "isnan(d * -1)", "not isnan(d * -1)", "substring(email, 3, 7) like 'ER0%'", "not (substring(email, 3, 7) like 'ER0%')",
    "length(name) in (1, null)", "length(name) not in (1, null)", "coalesce(length(name), 99) = 99", "length(name) = 3 or lower(email) = 'user00999@mail.example'",
    "if(id > 5, length(name), 7) = 7", "upper(email) = 'USER00042@MAIL.EXAMPLE'", "length(email) = 7", "try_cast(digits as int) = 5",
]  # fmt: skip


def rows(count):
    return ROWS.replace("COUNT", str(count))


@pytest.fixture(autouse=True)
def settings(spark):
    before = {key: spark.conf.get(key) for key in (ANSI, ZONE)}
    enable(spark)
    yield
    for key, value in before.items():
        spark.conf.set(key, value)


@pytest.fixture(scope="module")
def table(spark):
    enable(spark)
    return ZTable.write(
        spark,
        "z.exprs",
        spark.sql(rows(2_000)),
        zorder=["n"],
        target_file_size="3kb",
        stats_expressions=EXPRESSIONS,
    )


def measured(table, text):
    """The share of files with statistics of an expression, in any session's sense."""
    known = table._opened.index.stored(table._opened.files)

    paths = json.loads(known.schema.metadata[b"zlayout.index"])["columns"]
    has = pa.repeat(False, known.num_rows)
    for number, path in enumerate(paths):
        if len(path) == 3 and path[1] == text:
            has = pc.or_(has, pc.is_valid(known.column(f"c{number}").combine_chunks().field("null_count")))
    return pc.sum(has).as_py() / len(table._opened.files) if known.num_rows else 0


@pytest.mark.slow
@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("zone", ["UTC", "America/St_Johns"])
def test_no_condition_gives_other_rows_than_plain_spark(spark, table, ansi, zone):
    spark.conf.set(ANSI, ansi)
    spark.conf.set(ZONE, zone)
    source = spark.sql(rows(2_000))
    for condition in (*SELECTIVE, *OTHERS):
        assert same_checksum(spark.table("z.exprs").where(condition), source.where(condition)), condition


@pytest.mark.slow
def test_each_condition_on_an_expression_opens_few_files(spark, table):
    total = len(table.snapshot().files)
    for condition in SELECTIVE:
        found = table.explain(condition)
        assert 0 < found.kept_files <= total / 2, condition
        assert stage(found, "expression_stats").files_after < stage(found, "column_stats").files_after, condition


def test_reads_of_conditions_use_what_queries_use(spark, table):
    conditions = SELECTIVE[::3]
    reads = table.reads(conditions)
    assert [each.files_read for each in reads] == [table.explain(each).kept_files for each in conditions]


def test_conditions_on_the_expressions_open_few_files(spark, table):
    total = len(table.snapshot().files)
    assert total >= 8
    source = spark.sql(rows(2_000))
    for condition in SELECTIVE[::3]:
        with Scans(spark) as scans:
            found = spark.table("z.exprs").where(condition).count()
        assert 0 < sum(scans.files) <= total / 2, condition
        assert found == source.where(condition).count() > 0, condition
    spark.conf.set("spark.zlayout.skipping", "partition_stats, files, column_stats, bloom")
    try:
        assert table.explain("length(name) = 7").kept_files == total
    finally:
        spark.conf.unset("spark.zlayout.skipping")
    reasons = table.explain("length(name) = 7").files
    skipped = reasons.filter(pc.equal(reasons["stage"], "expression_stats"))["reason"].to_pylist()
    assert skipped[0].startswith("length(name): [")
    assert skipped[0].endswith("has no value = 7")


def test_a_time_zone_that_spark_hides_in_its_plan_counts_too(spark):
    """Spark 4 replaces to_json by a call of an object, which knows the time zone and does not say so."""
    spark.conf.set(ZONE, "UTC")
    frame = spark.sql("select id, timestamp_seconds(1700000000 + id * 3600) as ts from range(4000)")
    json_of = "to_json(named_struct('t', ts))"
    table = ZTable.write(
        spark, "z.exprs_hidden", frame, zorder=["id"], target_file_size="3kb", stats_expressions=[json_of]
    )
    files = len(table.snapshot().files)
    assert files > 1
    for zone, least in (("UTC", 1), ("Asia/Tokyo", files)):
        spark.conf.set(ZONE, zone)
        value = spark.sql("select to_json(named_struct('t', timestamp_seconds(1700000000)))").head()[0]
        assert spark.table("z.exprs_hidden").where(f"{json_of} = '{value}'").count() == 1, zone
        assert table.explain(f"{json_of} = '{value}'").kept_files == least


def test_another_time_zone_or_ansi_mode_does_not_use_what_it_would_compute_otherwise(spark, table):
    total = len(table.snapshot().files)
    other = "false" if spark.conf.get(ANSI) == "true" else "true"
    assert table.explain("cast(digits as int) = 5").kept_files < total
    spark.conf.set(ANSI, other)
    assert table.explain("cast(digits as int) = 5").kept_files == total
    spark.conf.set(ANSI, "true" if other == "false" else "false")
    spark.conf.set(ZONE, "Asia/Tokyo")
    assert table.explain("cast(ts as string) >= '2023-12-29'").kept_files == total
    assert table.explain("length(name) = 7").kept_files < total
    others = {
        "legacy.timeParserPolicy": "LEGACY",
        "chunkBase64String.enabled": "false",
        "icu.caseMappings.enabled": "false",
    }
    for key, value in others.items():
        spark.conf.set(f"spark.sql.{key}", value)
        try:
            assert table.explain("length(name) = 7").kept_files == total
        finally:
            spark.conf.unset(f"spark.sql.{key}")


def test_an_explanation_names_the_expression_that_would_help(spark, table):
    found = table.explain("reverse(email) = 'x' and length(name) = 7").conjuncts
    told = [each for each in found["advice"].to_pylist() if each]
    assert told == [
        (
            'ask for statistics of the expression: stats_expressions: ["reverse(email)"]; if = and IN look for results spread over '
            'all files, ask for a lookup index (lookup: ["reverse(email)"]) or a Bloom filter (bloom: ["reverse(email)"]) instead'
        )
    ]


@pytest.mark.slow
def test_every_kind_of_commit_keeps_the_statistics(spark):
    table = ZTable.write(
        spark,
        "z.exprs_kept",
        spark.sql(rows(800)),
        zorder=["n"],
        target_file_size="6kb",
        stats_expressions=["length(name)"],
    )
    more = spark.sql(rows(900)).where("id >= 800")
    steps = {
        "append": lambda: table.append(more),
        "merge": lambda: table.merge(spark.sql(rows(900)).where("id > 880").selectExpr("id", "n", "email", "concat(name, 'xyz') name", "payload", "d", "ts", "digits"), "id"),
        "delete": lambda: table.delete("id % 10 = 3"),
        "replace_where": lambda: table.replace_where(spark.sql(rows(900)).where("n = 4"), "n = 4"),
        "cluster": lambda: table.cluster(rewrite_all=True),
        "overwrite": lambda: table.overwrite(spark.sql(rows(600))),
        "rollback": lambda: table.rollback(version=1),
    }  # fmt: skip
    for name, step in steps.items():
        step()
        assert measured(table, "length(name)") == 1, name
        plain = spark.read.parquet(
            *[f"{table._opened.location}/{path}" for path in table._opened.files["path"].to_pylist()]
        )
        for length in (0, 3, 7, 11):
            condition = f"length(name) = {length}"
            assert spark.table("z.exprs_kept").where(condition).count() == plain.where(condition).count(), (
                name,
                condition,
            )
    assert table.verify(data=True).num_rows == 0


@pytest.mark.slow
def test_a_merge_on_read_table_keeps_the_statistics(spark):
    table = ZTable.write(
        spark, "z.exprs_mor", spark.sql(rows(600)), zorder=["n"], target_file_size="6kb", stats_expressions=["length(name)"],
        table_type="merge_on_read", unique_key="id", compaction="off",
    )  # fmt: skip
    table.upsert(
        spark.sql(rows(605))
        .where("id > 595")
        .selectExpr("id", "n", "email", "'abc' name", "payload", "d", "ts", "digits")
    )
    table.delete("id = 301")
    for compacted in (False, True):
        if compacted:
            table.compact()
        assert measured(table, "length(name)") == 1
        assert spark.sql("select count(*) from z.exprs_mor where length(name) = 3").head()[0] == 97 + 9 + 1
        assert table.explain("length(name) = 3").kept_files < len(table._opened.files)


@pytest.mark.slow
def test_indexes_are_built_and_dropped_without_touching_data(spark):
    table = ZTable.write(spark, "z.exprs_built", spark.sql(rows(1_000)), zorder=["n"], target_file_size="6kb")
    total, before = len(table.snapshot().files), table._opened.files["path"].to_pylist()
    assert table.explain("length(name) = 7").kept_files == total
    done = table.build_index(stats_expressions=["length(name)", "lower(email)"])
    assert (done.stats_expressions, done.files_read) == (("length(name)", "lower(email)"), total)
    assert table._opened.files["path"].to_pylist() == before
    assert table.explain("length(name) = 7").kept_files < total
    assert table.information()["stats_expressions"] == ["length(name)", "lower(email)"]
    assert spark.table("z.exprs_built").where("length(name) = 7").count() == 99
    with pytest.raises(ConfigError, match="'upper\\(name\\)' has no statistics; those that have some: 'length"):
        table.drop_index(stats_expressions=["upper(name)"])
    assert table.drop_index(stats_expressions="lower(email)").stats_expressions == ("length(name)",)
    assert table.explain("length(name) = 7").kept_files < total
    table.drop_index(stats_expressions=["length(name)"])
    assert table.explain("length(name) = 7").kept_files == total


@pytest.mark.slow
def test_the_column_of_an_expression_may_go_and_come_back(spark):
    frame = spark.sql("select id, string(id) s from range(300)")
    options = {"zorder": ["id"], "target_file_size": "1kb"}
    table = ZTable.write(spark, "z.exprs_gone", frame, **options, stats_expressions=["length(s)"])
    table.append(frame.select("id"), on_schema_change="sync_all_columns")
    table.append(frame, on_schema_change="sync_all_columns")
    assert spark.table("z.exprs_gone").where("length(s) = 2").count() == 90
    assert spark.table("z.exprs_gone").where("length(s) is null").count() == 600
    table = ZTable.write(spark, "z.exprs_gone", frame.select("id"), **options)
    assert table.information()["stats_expressions"] == ["length(s)"]


def test_a_build_keeps_statistics_that_another_writer_made_meanwhile(spark, monkeypatch):
    frame = spark.sql("select id, string(id) s from range(300)")
    table = ZTable.write(spark, "z.exprs_beside", frame, zorder=["id"], target_file_size="1kb")
    original = optional_indexes.statistics_of_expressions

    def interrupted(*given):
        found = original(*given)
        more = frame.selectExpr("*", "7 as extra")
        ZTable.for_name(spark, "z.exprs_beside").append(more, on_schema_change="append_new_columns")
        return found

    monkeypatch.setattr(optional_indexes, "statistics_of_expressions", interrupted)
    table.build_index(stats_expressions=["length(s)"])
    assert table.explain("extra = 7").kept_files < len(table._opened.files)
    assert table.explain("length(s) = 9").kept_files < len(table._opened.files)


def test_what_cannot_have_statistics_is_refused_before_anything_is_written(spark):
    frame = spark.sql(rows(10))
    spark.udf.register("mine", lambda text: text, "string")
    refused = {
        "rand() > 0.5": "it is not deterministic", "uuid()": "deterministic", "datediff(current_date(), ts)": "depends on the time",
        "datediff(date'today', ts)": "the current time", "datediff(to_date('to' || 'day'), ts)": "casts a text such as 'today'",
        "concat(email, '${suffix}')": "which Spark replaces", "hex(aes_encrypt(email, '0000111122223333'))": "encrypts values",
        "z.norm(email)": "it calls z.norm",
        "count(email)": "does not depend on one row alone", "explode(array(email))": "does not depend on one row alone", "lower(nothing)": "nothing",
        "lower(": "syntax", "email": "columns have statistics by stats_columns", "1 + 1": "a constant", "array(email)": "has no",
        "mine(email)": "a user-defined function", "(select 1)": "a subquery", "n": "columns have statistics",
    }  # fmt: skip
    if Version(spark.version) >= Version("4"):
        spark.sql("create or replace temporary function own(x string) returns string return lower(x)")
        refused["own(email)"] = "a user-defined function"
    for text, why in refused.items():
        with pytest.raises(ConfigError) as error:
            ZTable.write(spark, "z.exprs_refused", frame, stats_expressions=[text])
        assert "can have no statistics" in str(error.value)
        assert why.lower() in str(error.value).lower(), text
    assert not spark.catalog.tableExists("z.exprs_refused")


def test_a_constant_that_is_a_local_time_is_another_one_in_another_zone(spark):
    text = "coalesce(at, timestamp'1970-01-01 00:00:00')"
    frame = spark.sql("select id, cast(null as timestamp) at from range(10)")
    spark.conf.set(ZONE, "UTC")
    ZTable.write(spark, "z.exprs_constant", frame, zorder=["id"], stats_expressions=[text], bloom=[text])
    for zone in ("UTC", "Europe/Berlin"):
        spark.conf.set(ZONE, zone)
        assert spark.sql(f"select * from z.exprs_constant where {text} = timestamp'1970-01-01 00:00:00'").count() == 10


def test_a_setting_that_changes_what_a_text_stands_for_does_not_use_what_was_computed_without_it(spark):
    text, setting = "length(concat(b, b))", "spark.sql.function.concatBinaryAsString"
    frame = spark.sql("select id, encode('é', 'utf-8') b from range(10)")
    table = ZTable.write(spark, "z.exprs_binary", frame, zorder=["id"], stats_expressions=[text], lookup=[text])
    assert table.explain(f"{text} = 2").kept_files == 0
    spark.conf.set(setting, "true")
    try:
        assert spark.sql(f"select * from z.exprs_binary where {text} = 2").count() == 10
    finally:
        spark.conf.unset(setting)


def test_a_file_in_which_an_expression_fails_is_read(spark):
    spark.conf.set(ANSI, "true")
    frame = spark.sql("select id, id div 500 p, if(id = 700, 'x', string(id)) s from range(1500)")
    table = ZTable.write(
        spark,
        "z.exprs_failing",
        frame,
        zorder=["id"],
        partition_by=["p"],
        stats_expressions=["cast(s as int)", "length(s)"],
    )
    assert measured(table, "cast(s as int)") == pytest.approx(2 / 3)
    assert measured(table, "length(s)") == 1
    assert table.explain("cast(s as int) = 3").kept_files == 2
    assert spark.sql("select id from z.exprs_failing where p <> 1 and cast(s as int) = 3").collect() == [(3,)]


def test_operands_in_another_order_are_another_expression_where_that_matters(spark):
    floats = spark.createDataFrame([(1e16, -1e16, 1.0, 0.0, -0.0)], "a double, b double, c double, p double, n double")
    texts = ["(a + b + c)", "cast(greatest(p, n) as string)", "(c + b + a)"]
    table = ZTable.write(spark, "z.exprs_order", floats, stats_expressions=texts)
    assert table.explain("a + b + c = 0").kept_files == 0
    assert table.explain("c + b + a = 1").kept_files == 0
    ZTable.write(spark, "z.exprs_order", floats, stats_expressions=texts[:2])
    for condition in ("c + b + a = 0", "a + b + c = 1"):
        assert spark.sql(f"select * from z.exprs_order where {condition}").count() == 1, condition
    value = spark.sql("select cast(greatest(n, p) as string) v from z.exprs_order").first().v
    assert spark.sql(f"select * from z.exprs_order where cast(greatest(n, p) as string) = '{value}'").count() == 1
    table = ZTable.write(spark, "z.exprs_order", spark.sql("select 1 as a, 2 as b"), stats_expressions=["(a = b)"])
    assert table.explain("(b = a) <=> true").kept_files == 0


def test_case_sensitivity_is_part_of_what_an_expression_means(spark, tmp_path):
    spark.sql("select id, concat('Aa', id) S from range(2)").coalesce(1).write.parquet(str(tmp_path / "files"))
    spark.sql(f"create table z.exprs_case (id int, s string) using parquet location '{tmp_path / 'files'}'")
    for sensitive, condition in (("false", "lower(s) is null"), ("true", "lower(s) in ('aa0', 'aa1')")):
        try:
            spark.conf.set("spark.sql.caseSensitive", sensitive)
            table = ZTable.adopt(spark, "z.exprs_case", lookup=["lower(s)"])
            assert table.explain(condition).kept_files == 0
            spark.conf.set("spark.sql.caseSensitive", "true" if sensitive == "false" else "false")
            assert spark.sql(f"select * from z.exprs_case where {condition}").count() == 2
        finally:
            spark.conf.unset("spark.sql.caseSensitive")
    spark.sql("drop table z.exprs_case")


def test_an_expression_may_spell_a_column_in_another_case(spark):
    table = ZTable.write(spark, "z.exprs_spelled", spark.sql("select 1 id, 'Aa' x"), stats_expressions=["lower(X)"])
    assert table.explain("lower(x) = 'b'").kept_files == 0
    assert spark.sql("select * from z.exprs_spelled where lower(x) = 'aa'").count() == 1


@pytest.mark.parametrize("key", ["spark.sql.preserveCharVarcharTypeInfo", "spark.sql.someSettingOfLater"])
def test_every_setting_counts_unless_it_is_known_not_to(spark, key):
    # A file of one value needs no index.
    rows = spark.sql("select id, concat('ab', id) t from range(2)")
    table = ZTable.write(spark, "z.exprs_setting", rows, lookup=["reverse(t)"])
    for harmless in ("spark.sql.shuffle.partitions", "spark.sql.parquet.compression.codec"):
        before = spark.conf.get(harmless)
        spark.conf.set(harmless, "7" if before.isdigit() else "gzip")
        assert table.explain("reverse(t) = 'x'").kept_files == 0, harmless
        spark.conf.set(harmless, before)
    spark.conf.set(key, "true")
    try:
        assert table.explain("reverse(t) = 'x'").kept_files == 1
        # What is written with the setting is found with it.
        text = "concat(cast(t as char(5)), t)"
        table = ZTable.write(spark, "z.exprs_setting", rows, lookup=[text])
        value = spark.sql(f"select {text} v from z.exprs_setting").first().v
        assert spark.sql(f"select * from z.exprs_setting where {text} = '{value}'").count() == 1
        assert table.explain(f"{text} = 'x'").kept_files == 0
    finally:
        spark.conf.unset(key)


def test_a_constant_of_other_bytes_than_utf_8_reads_all_files(spark):
    rows = spark.sql("select 1 id, cast(X'ff41' as string) t, 'x' u")
    ZTable.write(spark, "z.exprs_bytes", rows, lookup=["concat(t, u)"], stats_expressions=["concat(t, u)"])
    text = "cast(X'ff4178' as string)"
    many = ", ".join(f"'{each}'" for each in "abcdefghijkl")
    for condition in (f"= {text}", f"in ({text}, {many})"):
        assert spark.sql(f"select * from z.exprs_bytes where concat(t, u) {condition}").count() == 1, condition


def test_python_asks_as_its_own_session_does(spark):
    other = spark.newSession()
    enable(other)
    text, condition = "to_date(t, 'yyyy-MM-dd')", "to_date(t, 'yyyy-MM-dd') = date'2020-01-01'"
    for session in (spark, other):
        session.conf.set(ANSI, "false")
    other.conf.set("spark.sql.legacy.timeParserPolicy", "LEGACY")
    spark.conf.set("spark.sql.legacy.timeParserPolicy", "CORRECTED")
    try:
        rows = spark.sql("select 1 id, '2020-1-1' t")
        ZTable.write(spark, "z.exprs_session", rows, lookup=[text], stats_expressions=[text])
        assert other.sql(f"select * from z.exprs_session where {condition}").count() == 1
        table = ZTable.for_name(other, "z.exprs_session")
        # The active session is not the one that is asked.
        jvm = Catalog(spark).jvm.root.org.apache.spark.sql.SparkSession
        jvm.setActiveSession(spark._jsparkSession)
        assert table.count(condition) == 1
        assert table.explain(condition).kept_files == 1
        table.delete(condition)
        assert other.table("z.exprs_session").count() == 0
    finally:
        spark.conf.unset("spark.sql.legacy.timeParserPolicy")


def test_an_expression_of_a_field_is_found_in_a_query_that_reads_no_other_field(spark):
    text = "reverse(t.b)"
    rows = "select id, named_struct('a', id, 'b', lpad(string(id * 1009 % 4001), 6, '0'), 'c', id) t from range(4000)"
    ZTable.write(spark, "z.exprs_field", spark.sql(rows), zorder=["id"], target_file_size="6kb", lookup=[text])
    value = spark.sql(f"select {text} v from z.exprs_field where id = 1234").first().v
    for columns in ("*", "id", "t.a", "count(*)"):
        with Scans(spark) as scans:
            spark.sql(f"select {columns} from z.exprs_field where {text} = '{value}'").collect()
        assert scans.files == [1], columns
    assert spark.sql(f"select id from z.exprs_field where {text} = '{value}'").first().id == 1234
