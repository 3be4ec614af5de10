"""The measures of a layout, compared with the rows of the files."""

import numpy as np
import pytest

from dbt.adapters.zlayout import ZTable
from dbt.adapters.zlayout.errors import ConfigError

pytestmark = pytest.mark.newest_spark

ROWS = """
  select id, cast(id * 7919 % 10007 as int) as spread, date_add(date'2020-01-01', cast(id % 400 as int)) as day,
    case when id % 40 = 0 then null else concat('k', lpad(id * 31 % 5000, 6, '0')) end as word,
    cast(id % 300 as decimal(20, 3)) as amount, id % 4 as part, named_struct('x', id * 13 % 20011) as st
  from range(20000)
"""


@pytest.fixture(scope="module")
def source(spark):
    return spark.sql(ROWS).cache()


@pytest.fixture(scope="module")
def clustered(spark, source):
    return ZTable.write(spark, "z.measured", source, zorder=["day", "spread"], target_file_size="16kb")


def overlaps_of(spark, table, column):
    """Average overlaps of one column, counted pair by pair from the rows."""
    rows = (
        table.read()
        .selectExpr(f"{column} as value", "input_file_name() as file")
        .groupBy("file")
        .agg({"value": "min", "*": "count"})
        .withColumnRenamed("min(value)", "low")
    )
    highs = (
        table.read().selectExpr(f"{column} as value", "input_file_name() as file").groupBy("file").agg({"value": "max"})
    )
    spans = [(each["low"], each["max(value)"]) for each in rows.join(highs, "file").collect()]
    pairs = sum(a[0] <= b[1] and b[0] <= a[1] for a in spans for b in spans)
    return pairs / len(spans) - 1, len(spans)


@pytest.mark.parametrize("column", ["day", "spread", "word", "amount", "st.x", "id"])
def test_overlaps_match_the_rows(spark, clustered, column):
    found = clustered.clustering_information([column])
    overlaps, files = overlaps_of(spark, clustered, column)
    assert (found.files, found.rows) == (files, 20_000)
    assert found.average_overlaps == pytest.approx(overlaps)
    assert found.column(column).overlap.average_overlaps == pytest.approx(overlaps)
    assert 1 <= found.column(column).overlap.average_depth <= overlaps + 1


def test_the_keys_are_measured_by_default_and_do_not_overlap(clustered):
    found = clustered.clustering_information()
    assert found.columns == found.zorder == ("day", "spread")
    assert found.files == len(clustered.snapshot().files) > 10
    assert found.average_depth == pytest.approx(clustered.last_commit.overlap_depth, abs=1e-4)
    assert found.average_depth < 3
    assert found.expected_files["point"] < 2
    assert found.problems == ()


@pytest.mark.parametrize(
    "column", ["day", *(pytest.param(each, marks=pytest.mark.slow) for each in ("spread", "word", "amount"))]
)
def test_the_expected_files_are_about_what_random_values_read(clustered, source, column):
    values = [row[0] for row in source.where(f"{column} is not null").select(column).sample(0.002, 3).collect()]
    literal = {"day": "date'{}'", "word": "'{}'"}.get(column, "{}")
    read = [clustered.explain(f"{column} = " + literal.format(value)).kept_files for value in values]
    expected = clustered.clustering_information([column]).expected_files["point"]
    assert expected == pytest.approx(np.mean(read), rel=0.25)


@pytest.mark.slow
def test_a_random_row_is_in_about_as_many_files_as_expected(clustered, source):
    rows = source.select("day", "spread").sample(0.002, 3).collect()
    read = [clustered.explain(f"day = date'{day}' and spread = {spread}").kept_files for day, spread in rows]
    assert clustered.clustering_information().expected_files["point"] == pytest.approx(np.mean(read), rel=0.25)


def test_an_unclustered_table_overlaps_everywhere(spark, source):
    table = ZTable.write(spark, "z.measured_plain", source.repartition(8), target_file_size="16kb")
    found = table.clustering_information()
    assert found.zorder == ()
    assert {"id", "spread", "day", "word", "amount", "part"} == set(found.columns)
    assert found.files > 5
    assert found.column("spread").overlap.average_depth == found.files
    assert table.clustering_information("spread").expected_files["point"] > 0.9 * found.files


def test_partitions_do_not_overlap(spark, source):
    table = ZTable.write(
        spark, "z.measured_parts", source, zorder=["day"], partition_by=["part"], target_file_size="64kb"
    )
    found = table.clustering_information()
    assert found.partitions == 4
    assert found.average_depth < 2.5
    # A day is in every partition that it may be in: 400 days go by four.
    assert found.expected_files["point"] >= found.average_depth
    by_part = table.clustering_information(["part"])
    assert by_part.constant_files == by_part.files == found.files


def test_nulls_files_without_values_and_one_file(spark):
    rows = spark.sql(
        "select id, case when id >= 5000 then id end as later, cast(null as string) as none from range(10000)"
    )
    table = ZTable.write(spark, "z.measured_nulls", rows, zorder=["id"], target_file_size="8kb")
    found = table.clustering_information(["later", "none", "id"])
    assert found.column("none").constant_files == found.files
    assert found.column("none").expected_files["point"] == 0
    assert 0 < found.column("later").constant_files < found.files
    assert found.column("later").expected_files["point"] == pytest.approx(1, rel=0.1)
    single = ZTable.write(spark, "z.measured_one", rows.limit(3), zorder=["id"]).clustering_information()
    assert (single.files, single.average_depth, single.expected_files["point"]) == (1, 1.0, 1.0)


def test_an_empty_table_has_no_depth(spark, source):
    found = ZTable.write(spark, "z.measured_none", source.limit(0), zorder=["id"]).clustering_information()
    assert (found.rows, found.average_depth, found.expected_files["point"]) == (0, 0.0, 0.0)


def test_an_indexed_table_is_measured_by_its_index(spark, source):
    spark.sql("drop table if exists z.measured_others")
    source.repartitionByRange(6, "spread").write.format("parquet").saveAsTable("z.measured_others")
    table = ZTable.adopt(spark, "z.measured_others")
    found = table.clustering_information(["spread"])
    assert (found.managed, found.files, found.average_depth) == (False, 6, 1.0)
    spark.sql("drop table z.measured_others")


def test_the_files_that_a_predicate_reads_are_counted(clustered):
    found = clustered.clustering_information(predicate="day < date'2020-01-10'").predicate
    explained = clustered.explain("day < date'2020-01-10'")
    assert (found.kept_files, found.total_files) == (explained.kept_files, explained.total_files)
    assert 0 < found.kept_rows < 20_000
    assert 0 < found.skipped_percent < 100
    assert clustered.clustering_information(predicate="false").predicate.skipped_percent == 100.0


def test_files_without_index_are_unknown(spark, source):
    table = ZTable.write(spark, "z.measured_damaged", source, zorder=["day"], target_file_size="32kb")
    for path in table.snapshot().index["column_stats"]:
        table._opened.store.delete([path])
    found = ZTable.for_name(spark, "z.measured_damaged").clustering_information()
    assert found.column("day").unknown_files == found.files == found.average_depth
    assert found.problems


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (["dya"], ["'dya' has no statistics;", "choose among day, spread"]),
        (["st"], ["'st' has no statistics;", "st.x"]),
        ([], ["the list is empty"]),
        ([5], ["5 is not a column name"]),
    ],
)
def test_the_error_names_unknown_columns(clustered, columns, said):
    with pytest.raises(ConfigError) as error:
        clustered.clustering_information(columns)
    for each in said:
        assert each in str(error.value)


def test_column_names_are_resolved_as_in_spark(clustered):
    assert clustered.clustering_information("DAY, ST.X").columns == ("day", "st.x")
