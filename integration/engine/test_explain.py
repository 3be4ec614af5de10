"""Explanations say what a query reads, stage by stage, and agree with what it reads when it runs."""

import json
import re
from pathlib import Path

import jsonschema
import pytest

from dbt.adapters.zlayout import enable
from dbt.adapters.zlayout.adapter.operations.diagnostics import explanation_text
from dbt.adapters.zlayout.errors import ConfigError
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog
from dbt.adapters.zlayout.spark.read.relations import installed
from dbt.adapters.zlayout.table.ztable import ZTable, explain_query

ODD = ["plain", "a,b", "line\nbreak", "it's", "%25", "ж", "-", "", "tab\t", "null"]


@pytest.fixture(scope="module")
def tables(spark):
    enable(spark)
    flat = spark.sql(
        "select id, id % 50 as p, upper(string(id)) as s, date_add(date'2020-01-01', cast(id / 100 as int)) as d from range(20000)"
    )
    ZTable.write(spark, "z.flat", flat, zorder=["id"], target_file_size="6kb")
    rows = [(number, None if number % 11 == 10 else ODD[number % 11], number % 3) for number in range(660)]
    odd = spark.createDataFrame(rows, "id int, odd string, day int").selectExpr(
        "id", "odd", "date_add(date'2024-01-01', day) as day"
    )
    ZTable.write(spark, "z.odd", odd, zorder=["id"], partition_by=["odd", "day"])
    spark.sql(
        "select cast(id * 7 as int) as k, date_add(date'2020-01-01', cast(id as int)) as d, id as w from range(40)"
    ).write.mode("overwrite").saveAsTable("z.small")
    odd.createOrReplaceTempView("plain_odd")
    return flat


def scanned(spark, name, sql):
    """Rows of a query and how many files its scan of a table was given."""
    rows = sorted(spark.sql(sql).collect(), key=repr)
    return rows, installed(Catalog(spark), Catalog(spark).name(name)).last_scan


CONDITIONS_ON_PARTITIONS = [
    "odd = 'a,b'",
    "odd is null",
    "odd = 'null'",
    "odd like 'line%'",
    "upper(odd) = 'Ж'",
    "length(odd) < 2",
    "day = '2024-01-02'",
    "year(day) = 2023",
    "dayofmonth(day) in (1, 3) and odd in ('%25', '-')",
    "odd = 'plain' or day > date'2024-01-02'",
    "odd = 'plain' or id < 5",
    "odd = 'tab\t' and id < 100",
]


@pytest.mark.parametrize("condition", CONDITIONS_ON_PARTITIONS)
def test_conditions_on_partitions_are_explained_as_they_are_decided(spark, tables, condition):
    got, last_scan = scanned(spark, "z.odd", f"select * from z.odd where {condition}")
    plain = f"select id, odd, day from plain_odd where {condition}".replace(
        "plain_odd", "(select id, nullif(odd, '') as odd, day from plain_odd)"
    )
    assert [tuple(row) for row in got] == [tuple(row) for row in sorted(spark.sql(plain).collect(), key=repr)]
    (explained,) = explain_query(spark, f"select * from z.odd where {condition}")
    if last_scan is not None:
        assert (explained.kept_files, explained.total_files) == last_scan
    assert explained.total_files == 30
    for row in explained.files.to_pylist():
        assert (row["verdict"] == "SKIP") == (row["stage"] is not None)
        assert row["reason"]


def test_a_function_of_a_partition_column_is_usable_and_counted(spark, tables):
    (explained,) = explain_query(spark, "select * from z.odd where upper(odd) = 'PLAIN'")
    by_sql = {row["sql"]: row for row in explained.conjuncts.to_pylist()}
    called = next(row for sql, row in by_sql.items() if "upper" in sql)
    assert (called["usable"], called["skips"]) == (True, 27)
    assert explained.kept_files == 3
    skipped = [row for row in explained.files.to_pylist() if row["verdict"] == "SKIP"]
    assert {row["stage"] for row in skipped} == {"partition_stats"}
    assert any("odd=line\nbreak, day=2024-01-01: no row matches" in row["reason"] for row in skipped)


def test_each_stage_is_timed_and_leaves_what_the_next_begins_with(spark, tables):
    (explained,) = explain_query(spark, "select * from z.odd where day = date'2024-01-01' and id < 10")
    before = explained.total_files
    for stage in explained.stages:
        assert stage.files_before == before
        assert stage.files_after <= before
        assert stage.seconds > 0
        before = stage.files_after
    assert before == explained.kept_files
    assert explained.stages[0].files_after == 4  # one of three days, and of its ten partitions those that begin low
    by_column = ZTable.for_name(spark, "z.flat").explain("id < 100").stages[2]
    assert by_column.files_after < by_column.files_before


def test_a_condition_that_is_not_usable_comes_with_what_to_change(spark, tables):
    (explained,) = explain_query(spark, "select * from z.flat where reverse(s) = 'X' and id < 100")
    by_sql = {row["sql"]: row for row in explained.conjuncts.to_pylist()}
    unusable = next(row for sql, row in by_sql.items() if "reverse" in sql)
    assert not unusable["usable"]
    assert unusable["sql"] == "(reverse(s) = 'X')"
    assert unusable["advice"] == (
        'ask for statistics of the expression: stats_expressions: ["reverse(s)"]; if = and IN look for results spread over '
        'all files, ask for a lookup index (lookup: ["reverse(s)"]) or a Bloom filter (bloom: ["reverse(s)"]) instead'
    )
    assert by_sql["id < 100"]["advice"] is None
    assert "ask for statistics of the expression" in explained.to_text()


@pytest.mark.parametrize(
    ("condition", "advice"),
    [
        ("s like '%9'", "only the beginning of a text is in the statistics"),
        ("s like '_9%1'", "only the beginning of a text is in the statistics"),
        ("contains(s, '9')", "only the beginning of a text is in the statistics"),
        ("substring(s, 2, 3) = string(p)", "compare a column with a constant"),
        ("id = p", "compare a column with a constant"),
        ("startswith(s, string(p))", "write constants"),
        ("id in (p, 5)", "write constants"),
        ("array_contains(array(id, p), 5)", "store the expression's value as a column"),
        ("s = 'is not a constant' or exists(array(id), x -> x = 1)", "store the expression's value as a column"),
        ("rand() < 0.5", None),
        ("not s like 'A%1_'", "only the beginning of a text is in the statistics"),
        ("id = (select max(w) from z.small)", "run the subquery first"),
    ],
)
def test_advice_fits_the_condition(spark, tables, condition, advice):
    (explained,) = explain_query(spark, f"select * from z.flat where {condition}")
    (unusable,) = [row for row in explained.conjuncts.to_pylist() if not row["usable"]]
    assert unusable["why_not"]
    assert unusable["advice"] == advice if advice is None else unusable["advice"].startswith(advice)


def test_a_query_with_an_existence_join_is_explained(spark, tables):
    (explained,) = explain_query(
        spark, "select * from z.flat where id < 5 or p in (select k from z.small where w > 30)"
    )[:1]
    assert explained.kept_files == explained.total_files


@pytest.mark.parametrize("condition", ["greatest(id, null) > 18999", "least(null, id) < 1000"])
def test_a_constant_null_does_not_count_in_greatest_and_least(spark, tables, condition):
    assert spark.sql(f"select * from z.flat where {condition}").count() == 1000
    (explained,) = explain_query(spark, f"select * from z.flat where {condition}")
    assert 0 < explained.kept_files < explained.total_files / 4


def test_a_condition_that_does_not_fit_is_one_kind_of_error(spark, tables):
    table = ZTable.for_name(spark, "z.flat")
    by_ansi = ["id = 'x'"] if spark.conf.get("spark.sql.ansi.enabled") == "true" else []
    for wrong in ("nope = 1", "id = = 1", *by_ansi):
        with pytest.raises(ConfigError, match=f"z.flat.*\n.*condition {wrong!r} does not fit the table"):
            table.explain(wrong)


def schema_in_the_documentation():
    page = (Path(__file__).parents[2] / "docs" / "skipping.md").read_text("utf-8")
    return json.loads(re.search(r"```json\n(.+?)```", page, re.DOTALL)[1])


@pytest.mark.parametrize(
    "sql",
    [
        "select * from z.flat where id < 100",
        "select * from z.flat",
        "select * from z.odd where upper(odd) = 'PLAIN' and id < 5 and hash(id) = 1",
        "select * from z.flat f join z.small s on f.id = s.k join z.odd o on o.day = s.d",
    ],
)
def test_json_is_what_the_documentation_says(spark, tables, sql):
    found = json.loads(explanation_text(explain_query(spark, sql), as_json=True))
    assert found
    for explanation in found:
        jsonschema.validate(explanation, schema_in_the_documentation())


def test_text_is_a_screen_and_verbose_is_everything(spark, tables):
    many = " and ".join(f"id <> {number}" for number in range(30))
    (explained,) = explain_query(spark, f"select * from z.flat where id > 300 and hash(s) > 0 and {many}")
    assert explained.total_files > 10
    screen, everything = explained.to_text(), explained.to_text(verbose=True)
    assert len(screen.splitlines()) <= 45
    assert max(map(len, screen.splitlines())) <= 240
    assert all(path in everything for path in explained.files.column("path").to_pylist())
    assert "more files (verbose shows all)" in screen
    assert "more conditions" in screen
    assert "verbose: true" not in everything


JOINS = [
    # query, column, distinct values, whether they skip files
    ("select * from z.flat f join z.small s on f.id = s.k", "id", 40, True),
    ("select * from z.flat f join z.small s on f.id = s.k where s.w < 5", "id", 5, True),
    ("select * from z.flat where d in (select d from z.small where w < 3)", "d", 3, True),
    ("select * from z.small s left join z.flat f on f.id = s.k", "id", 40, True),
    ("select * from z.flat f left semi join z.small s on f.id = s.k and f.p >= 0", "id", 40, True),
    ("select * from (select id + 0 as x, id from z.flat) f join z.small s on f.id = s.k", "id", 40, True),
]


@pytest.mark.parametrize(("sql", "column", "values", "skips"), JOINS)
def test_a_join_tells_what_its_small_side_s_values_would_skip(spark, tables, sql, column, values, skips):
    (explained,) = [each for each in explain_query(spark, sql) if each.table == "z.flat"]
    (join,) = [row for row in explained.joins.to_pylist() if row["column"] == column]
    assert join["values"] == values
    assert not join["by_partition"]
    listed = ", ".join(
        repr(row[0]) if column == "id" else f"date'{row[0]}'"
        for row in spark.sql(f"select {'k' if column == 'id' else 'd'} from z.small where w < {values}").collect()
    )
    told = ZTable.for_name(spark, "z.flat").explain(f"{column} in ({listed})")
    assert join["skips"] == explained.kept_files - told.kept_files
    assert (join["skips"] > 0) == skips
    assert "zlayout_prune_by" in explained.to_text()


@pytest.mark.parametrize(
    "sql",
    [
        "select * from z.flat f left join z.small s on f.id = s.k",
        "select * from z.flat f full join z.small s on f.id = s.k",
        "select * from z.flat f left anti join z.small s on f.id = s.k",
        "select * from (select * from z.flat order by p limit 10) f join z.small s on f.id = s.k",
    ],
)
def test_rows_that_a_join_keeps_without_a_partner_are_no_reason_to_skip(spark, tables, sql):
    (explained,) = [each for each in explain_query(spark, sql) if each.table == "z.flat"]
    assert explained.joins.num_rows == 0


def test_dynamic_partition_pruning_is_named_and_goes_on_working(spark, tables):
    spark.sql("select date'2024-01-02' as day, 1 as w union all select date'2024-01-03', 2").write.mode(
        "overwrite"
    ).saveAsTable("z.days")
    sql = "select count(*) from z.odd o join z.days s on o.day = s.day where s.w = 1"
    frame = spark.sql(sql)
    assert frame.collect()[0][0] == 220
    assert read_files(frame) == 10
    (explained,) = [each for each in explain_query(spark, sql) if each.table == "z.odd"]
    (join,) = explained.joins.to_pylist()
    assert (join["column"], join["values"], join["skips"], join["by_partition"]) == ("day", 1, 20, True)
    assert "Spark skips these by partition" in explained.to_text()


def read_files(frame):
    """Files that the scan with a dynamic filter read, from Spark's own metric."""
    pending = [frame._jdf.queryExecution().executedPlan()]
    while pending:
        plan = pending.pop()
        if str(plan.getClass().getSimpleName()) == "FileSourceScanExec" and "dynamicpruning" in str(plan.toString()):
            return int(plan.metrics().apply("numFiles").value())
        children = plan.children()
        pending += [children.apply(position) for position in range(children.size())]
        for inner in ("executedPlan", "plan"):
            if hasattr(plan, "isFinalPlan") or "QueryStage" in str(plan.getClass().getSimpleName()):
                try:
                    pending.append(getattr(plan, inner)())
                except Exception:  # the other of the two has it
                    continue
    raise AssertionError("no scan with dynamic pruning")


def test_a_condition_that_spark_keeps_to_itself_claims_no_file_whole(tables, spark):
    explained = ZTable.for_name(spark, "z.odd").explain("(odd = 'plain' or id < 5) and id >= 0")
    assert set(explained.files.column("verdict").to_pylist()) == {"READ"}
    (mixed,) = [row for row in explained.conjuncts.to_pylist() if not row["usable"]]
    assert "mixes partition columns with others" in mixed["why_not"]
    assert mixed["advice"] == "write the condition as two, or union two queries"
    assert "'plain'" in mixed["sql"]
