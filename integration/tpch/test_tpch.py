"""What the demo claims, checked: dbt builds the tables, and queries read few files and give plain Spark's rows."""

import json
import re

import pytest
from measure import CLUSTERED, PLAIN, measured
from other_engines import answers
from queries import queries

from dbt.adapters.zlayout import ZTable

TABLES = ("lineitem", "orders", "revenue_by_month")


@pytest.fixture(scope="module")
def numbers(spark, built):
    return measured(spark, queries(built.scale_factor), runs=1)


def test_models_seeds_and_tests_of_the_project_pass(built):
    assert {each["status"] for each in built.results.values()} <= {"success", "pass"}
    assert sum("zlayout_index_fresh" in name for name in built.results) == 3


@pytest.mark.parametrize("table", ["lineitem", "orders"])
def test_clustered_tables_have_at_least_thirty_files(built, spark, table):
    response = built.results[table]["adapter_response"]
    assert response["files_added"] >= 30
    assert response["rows"] == spark.table(f"{PLAIN}.{table}").count()


def test_the_line_on_the_terminal_names_rows_and_files(built):
    assert f"{built.results['orders']['adapter_response']['rows']:,} rows in" in built.text


def test_a_second_build_takes_one_pass_over_the_rows(built):
    first, second = (results["lineitem"]["adapter_response"] for results in (built.results, built.second))
    # The demo publishes the table between them, which makes a version.
    assert (first["version"], second["version"]) == (0, 2)
    assert (first["data_passes"], second["data_passes"]) == (2, 1)
    assert second["rows"] == first["rows"]


def test_files_of_lineitem_hardly_overlap(built):
    assert built.results["lineitem"]["adapter_response"]["overlap_depth"] < 1.5


def test_every_query_gives_the_rows_of_plain_parquet(numbers):
    assert [each.name for each in numbers if not each.equal] == []


def test_every_query_finds_rows(numbers):
    assert [each.name for each in numbers if not each.rows_returned] == []


def test_a_two_key_range_reads_at_most_a_fifth_of_the_files(numbers):
    assert numbers[0].files_total >= 30
    assert numbers[0].share_of_files <= 0.20


def test_no_query_reads_more_than_half_of_the_files(numbers):
    assert [f"{each.name}: {each.share_of_files:.0%}" for each in numbers if each.share_of_files > 0.5] == []


def test_steps_of_skipping_leave_fewer_files_and_the_lookup_finds_one_order(numbers):
    (order,) = [each for each in numbers if each.name.startswith("one order")]
    assert order.stages["column_stats"] > 3 * order.stages["lookup"]
    assert order.files_read == order.stages["lookup"] <= 7
    join = numbers[-1]
    assert join.files_total > join.stages["partition_stats"] > join.stages["column_stats"]


def test_advice_keeps_the_keys_of_the_project_or_saves_more(spark, built):
    for name in ("lineitem", "orders"):
        table = ZTable.for_name(spark, f"{CLUSTERED}.{name}")
        found = table.advise([each.conditions[name] for each in queries(built.scale_factor) if name in each.conditions])
        assert found.change == "none" or min(found.gains) >= found.min_gain
        assert found.opened_then <= found.opened_now


def test_spark_itself_opens_only_the_files_that_the_explanation_keeps(spark, built, numbers):
    sql = queries(built.scale_factor)[0].sql.format(schema=CLUSTERED)
    frame = spark.sql(sql)
    frame.collect()
    scans = _file_scans(frame._jdf.queryExecution().executedPlan())
    assert [int(scan.metrics().apply("numFiles").value()) for scan in scans] == [numbers[0].files_read]


def test_other_engines_read_the_published_table_and_skip_files(spark, built):
    found, total = answers(spark, built.scale_factor, runs=1)
    assert [each.engine for each in found] == ["Spark", "DuckDB", "ClickHouse", "Polars"]
    assert found[0].rows
    assert [each.engine for each in found if each.rows != found[0].rows] == []
    assert [each.engine for each in found if each.files is not None and each.files > total / 4] == []


def test_the_run_operation_explains_as_json(built):
    assert built.explained.code == 0, built.explained.text
    explained = json.loads(built.explained.output)
    assert explained[0]["table"] == f"{CLUSTERED}.lineitem"
    assert 0 < explained[0]["kept_files"] < explained[0]["total_files"]
    assert len(explained[0]["files"]) == explained[0]["total_files"]


@pytest.mark.parametrize("table", TABLES)
def test_the_index_is_fresh_after_the_builds(spark, table):
    assert ZTable.for_name(spark, f"{CLUSTERED}.{table}").index_status().to_pylist() == []


def test_the_catalog_knows_the_exact_row_count(spark, built):
    described = {row[0]: row[1] for row in spark.sql(f"describe extended {CLUSTERED}.orders").collect()}
    assert f"{built.results['orders']['adapter_response']['rows']} rows" in described["Statistics"]


def test_the_demo_runs_to_its_report(built):
    steps = [line for line in built.text.splitlines() if re.match(r"\d\. ", line)]
    assert [step[0] for step in steps] == list("1234567")
    assert (built.home / "report.html").stat().st_size > 100_000


def _file_scans(plan):
    """The file scans of an executed plan, adaptive or not."""
    if plan.getClass().getSimpleName() == "AdaptiveSparkPlanExec":
        plan = plan.executedPlan()
    if plan.getClass().getSimpleName().endswith("QueryStageExec"):
        plan = plan.plan()
    if plan.getClass().getSimpleName() == "FileSourceScanExec":
        return [plan]
    children = plan.children()
    return [scan for position in range(children.size()) for scan in _file_scans(children.apply(position))]
