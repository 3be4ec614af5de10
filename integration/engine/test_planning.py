"""Planning costs a handful of calls to the JVM, whatever the number of partitions and files."""

from functools import partial

import pytest
from comparing import same_checksum
from scanned import Calls

from dbt.adapters.zlayout import enable
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog
from dbt.adapters.zlayout.spark.catalyst import predicates
from dbt.adapters.zlayout.spark.catalyst.tree import Budget
from dbt.adapters.zlayout.spark.read.relations import installed
from dbt.adapters.zlayout.store.local import LocalStore
from dbt.adapters.zlayout.table.ztable import ZTable, explain_query


@pytest.fixture(scope="module")
def tables(spark):
    enable(spark)
    for name, partitions in (("z.few", 3), ("z.many", 300)):
        frame = spark.sql(
            f"select id, id % {partitions} as part, cast(id % {partitions} as string) as text from range(3000)"
        )
        ZTable.write(spark, name, frame, zorder=["id"], partition_by=["part", "text"])


def calls_of(spark, monkeypatch, name, condition):
    frame = spark.sql(f"select count(*) from {name} where {condition}")
    with monkeypatch.context() as patched:
        calls = Calls(spark, patched)
        index = installed(Catalog(spark), Catalog(spark).name(name))
        assert frame.collect()[0][0] > 0
    return calls.count, index.last_scan


@pytest.mark.parametrize("condition", ["part >= 1", "part >= 1 and id > 5", "id > 5", "length(text) >= 1 and id >= 0"])
def test_a_hundred_times_the_partitions_take_no_more_calls(spark, tables, monkeypatch, condition):
    for first in (True, False):  # the first scan of a version lists its files in the JVM
        few, scan_of_few = calls_of(spark, monkeypatch, "z.few", condition)
        many, scan_of_many = calls_of(spark, monkeypatch, "z.many", condition)
        assert scan_of_many[1] >= 300 > scan_of_few[1]
        assert many - few <= 60, (first, few, many)


def test_partition_conditions_and_bounds_act_together_on_many_partitions(spark, tables):
    for condition in (
        "part in (5, 250) and id < 2000",
        "part = 7 or id = 11",
        "text = '299'",
        "part is null",
        "id < 0",
    ):
        expected = spark.sql(
            f"select * from (select id, id % 300 as part, cast(id % 300 as string) as text from range(3000)) where {condition}"
        )
        assert same_checksum(spark.sql(f"select * from z.many where {condition}"), expected)


@pytest.fixture(scope="module")
def eight_files(spark):
    """Ids 0 to 7,999 in eight files, a thousand each."""
    enable(spark)
    frame = spark.range(0, 8000, 1, 8).selectExpr("id", "cast(id as double) x")
    frame.write.format("parquet").mode("overwrite").saveAsTable("z.eight_files")
    ZTable.adopt(spark, "z.eight_files", zorder=["id"])
    return "z.eight_files"


def nested_values(levels):
    """CASE in the ELSE of a CASE, as a value."""
    value = "id"
    for level in range(levels):
        value = f"case when id = {level} then {level} when x > {7000 + level} then {level + 1} else ({value}) end"
    return f"({value}) = 3"


def nested_conditions(levels):
    """CASE in the WHEN of a CASE."""
    condition = "id = 3"
    for level in range(levels):
        condition = f"(case when {condition} then id > {level} else id < {level + 5} end)"
    return condition


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        (" or ".join(f"id = {number}" for number in range(5_000)), 5),
        (" or ".join(f"id < {number}" for number in range(2_500)), 3),
        (f"id in ({', '.join(map(str, range(5_500, 15_500)))})", 3),
        (nested_values(14), 2),
        (nested_values(24), 2),
        (nested_conditions(24), 8),
        (f"{nested_conditions(24)} and id < 500", 1),
    ],
    ids=["ors", "ranges", "in", "case_14", "case_24", "when_24", "when_24_and_id"],
)
def test_large_conditions_are_read_in_a_few_calls_and_little_text(spark, eight_files, monkeypatch, condition, kept):
    frame = spark.sql(f"select count(*) from {eight_files} where {condition}")
    index = installed(Catalog(spark), Catalog(spark).name(eight_files))
    filters = frame._jdf.queryExecution().optimizedPlan()
    while str(filters.getClass().getSimpleName()) != "Filter":
        filters = filters.children().apply(0)
    with monkeypatch.context() as patched:
        # How much is read does not depend on how fast the machine is.
        patched.setattr(predicates, "Budget", partial(Budget, seconds=60))
        calls = Calls(spark, patched)
        predicate = index.predicate(index._jvm.seq([filters.condition()]))
    assert int(index.opened.scan(predicate).candidates.sum()) == kept
    assert calls.count < 250
    # Some 50 characters a node. As JSON, 5,000 constants and columns had 2 million, and 14 levels of CASE 18 million.
    assert calls.characters < 1_000_000


def test_a_condition_too_large_to_be_read_keeps_all_files_and_explain_says_so(spark, eight_files):
    (explanation,) = explain_query(spark, f"select * from {eight_files} where {nested_conditions(24)} and id < 500")
    assert explanation.kept_files == 1
    (large,) = [each for each in explanation.conjuncts.to_pylist() if not each["usable"]]
    assert "it has more than 10,000 parts" in large["why_not"]
    assert large["advice"].startswith("write a shorter condition")


def noting(of_disk, read):
    def noted(store, path, *rest):
        if path.startswith(".zlayout/index/"):
            read.append(path)
        return of_disk(store, path, *rest)

    return noted


def test_after_an_append_a_scan_reads_the_new_slices_only(spark, monkeypatch):
    enable(spark)
    rows = "select id, id % 40 as part, concat('text ', id) as text from range({}, {})"
    ZTable.write(spark, "z.appended", spark.sql(rows.format(0, 4000)), zorder=["id"], partition_by=["part"])
    query = "select count(*) from z.appended where id = 77"
    assert spark.sql(query).head()[0] == 1
    read = []
    with monkeypatch.context() as patched:
        for name in ("read", "read_tail", "read_ranges"):
            patched.setattr(LocalStore, name, noting(getattr(LocalStore, name), read))
        done = ZTable.for_name(spark, "z.appended").append(spark.sql(rows.format(4000, 4001)))
        assert spark.sql(query).head()[0] == 1
        assert spark.sql("select count(*) from z.appended where id = 4000").head()[0] == 1
        found = ZTable.for_name(spark, "z.appended").explain("id = 4000")
    assert found.kept_files == 1
    assert read
    assert all(done.instant in path for path in read), read
    assert len(set(read)) == len(read) == 2
