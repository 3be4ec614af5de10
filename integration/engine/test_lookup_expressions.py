"""Lookup indexes of expressions through Spark: which files queries open, what keeps them, and that no result differs."""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc
import pytest
from comparing import same_rows
from indexed_rows import MIXED, lowered, mixed, reads, stage, without_a_slice
from pyspark.sql import functions
from scanned import Scans

from dbt.adapters.zlayout.errors import ConfigError
from dbt.adapters.zlayout.index.lookup.lookup_key import run_bytes
from dbt.adapters.zlayout.index.lookup.lookup_slices import LOOKUPS
from dbt.adapters.zlayout.spark.commit.expression_stats import wanted_expressions
from dbt.adapters.zlayout.spark.commit.optional_slices import NewLookups
from dbt.adapters.zlayout.spark.index import optional_indexes
from dbt.adapters.zlayout.spark.snapshot.table_layout import TableLayout
from dbt.adapters.zlayout.table.ztable import ZTable
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.transactions.change import Change
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("calendar")]
ANSI, ZONE = "spark.sql.ansi.enabled", "spark.sql.session.timeZone"
NAN, HOUR, DAY = "sqrt(d - 8000)", "date_format(ts, 'yyyy-MM-dd HH')", "date_trunc('DAY', ts)"
QUARTERS = "cast(id as decimal(20, 2)) / 4"
EXPRESSIONS = ["lower(email)", "d * -1", NAN, HOUR, DAY, QUARTERS]
# Found by the index alone: each file that is read has such a row.
EXACT = [
    "lower(email) = ''", "lower(email) = 'é@x'", "lower(email) = lower('ẞİ@X')", "lower(email) = 'É@X'", "lower(email) is null",
    "lower(email) <=> null", "lower(email) <=> 'é@x'", "'é@x' = LOWER( email )", "lower(email) in ('', 'é@x', null)",
    "lower(email) = 'é@x' and n >= 0", "d * -1 = 0", "d * -1 = -0.0D", "d * -1 = -55433", "d * -1 in (1, -55433)",
    "d * -1 = 5", f"{NAN} = double('NaN')", f"{NAN} <=> double('NaN')", f"{NAN} = sqrt(7838D)", f"{NAN} = 7.5D", f"{QUARTERS} = 1.75",
    f"{QUARTERS} = 1.7500", f"{QUARTERS} = 1.8", f"{HOUR} = '1970-01-02 03'", f"{HOUR} = '1970-01-02 05'",
    f"{DAY} = timestamp'1970-01-03 00:00:00'", f"{DAY} = timestamp'1970-01-03 01:00:00'",
]  # fmt: skip
OTHERS = [
    "lower(email) <> 'é@x'", "not (lower(email) = 'é@x')", "lower(email) not in ('')", "upper(email) = upper('é@x')",
    "lower(email) = 'é@x' or n = 5", "lower(email) = 'é@x' or d * -1 = -55433", "lower(trim(email)) = 'é@x'",
]  # fmt: skip


@pytest.fixture(autouse=True)
def settings(spark):
    before = {key: spark.conf.get(key) for key in (ANSI, ZONE)}
    yield
    for key, value in before.items():
        spark.conf.set(key, value)


def written(spark, name, lookup, begin=0, end=2_000, **options):
    return ZTable.write(
        spark, name, mixed(spark, begin, end), zorder=["n"], target_file_size="12kb", lookup=lookup, **options
    )


def without_entries(spark, table):
    """The number of files that lack entries of one of the table's expressions, as this session understands them."""
    opened = table._opened
    found = opened.index.lookups(opened.files)
    keys = wanted_expressions(spark, TableLayout.of_version(opened.snapshot)).looked_up
    assert keys
    return sum(~np.logical_and.reduce([found.covered(key) for key in keys]))


def check_files(spark, table, conditions):
    """Each condition opens the files with a row that it holds for. These are told without the index."""
    rows = spark.table(table.name).withColumn("file", functions.input_file_name()).localCheckpoint()
    for condition in conditions:
        assert reads(table, condition) == rows.where(condition).select("file").distinct().count(), condition


def same_as_plain(spark, table, conditions=(*EXACT, *OTHERS)):
    plain = spark.table(table.name).localCheckpoint()
    for condition in conditions:
        assert same_rows(spark.table(table.name).where(condition), plain.where(condition)), condition


def check(spark, table, present, absent):
    """Every file has entries, each id is in its one file, absent ones in none, and no result differs."""
    assert without_entries(spark, table) == 0
    for number in present:
        condition = f"lower(email) = '{lowered(spark, number)}'"
        assert spark.sql(f"select id from {table.name} where {condition}").collect() == [(number,)]
        assert reads(table, condition) == 1, number
    for number in absent:
        condition = f"lower(email) = '{lowered(spark, number)}'"
        assert spark.sql(f"select id from {table.name} where {condition}").collect() == []
        assert reads(table, condition) == 0, number
    same_as_plain(spark, table, [*EXACT[:6], *OTHERS[:2]])


def test_queries_open_the_files_of_a_result_and_no_rows_differ(spark):
    table = written(spark, "z.lookup_of", ["id", *EXPRESSIONS])
    total = len(table.snapshot().files)
    assert table._opened.snapshot.layout["lookup"] == [[["id"]], *([each] for each in EXPRESSIONS)]
    assert table.information()["lookup"] == ["id", *EXPRESSIONS]
    assert total >= 5
    check_files(spark, table, EXACT)
    same_as_plain(spark, table)
    text = lowered(spark, 8)
    explanation = table.explain(f"lower(email) in ('{text}', 'nobody') and n >= 0")
    assert (stage(explanation, "lookup").files_before, stage(explanation, "lookup").files_after) == (total, 1)
    reasons = explanation.files.filter(pc.equal(explanation.files["stage"], "lookup"))["reason"].to_pylist()
    assert reasons[0].startswith("lower(email): its lookup index has no value IN (")
    with Scans(spark) as scans:
        assert spark.sql(f"select count(*) from z.lookup_of where lower(email) <=> '{text}'").head()[0] == 1
    assert scans.files == [1]
    spark.conf.set(ZONE, "Asia/Tokyo")
    same_as_plain(spark, table)
    assert reads(table, f"{HOUR} = 'never'") == reads(table, f"{DAY} = timestamp'1973-01-03 01:00:00'") == total
    assert reads(table, "lower(email) = 'never'") == 0
    spark.conf.set(ANSI, "false" if spark.conf.get(ANSI) == "true" else "true")
    same_as_plain(spark, table)
    assert reads(table, "lower(email) = 'never'") == total
    assert table.verify(data=True).num_rows == 0


@pytest.mark.slow
def test_an_index_is_built_and_dropped_without_touching_data(spark):
    table = written(spark, "z.lookup_of_built", None)
    files = table.snapshot().files["path"].to_pylist()
    done = table.build_index(lookup=["lower(email)", "id"], bloom=["lower(email)"], stats_expressions=["length(email)"])
    assert (done.lookup, done.bloom, done.files_read, done.files_without) == (
        ("lower(email)", "id"), ("lower(email)",), len(files), 0,
    )  # fmt: skip
    assert table.snapshot().files["path"].to_pylist() == files
    check(spark, table, [7, 8, 1_999], [2_000])
    assert table.build_index(lookup="lower(email)").files_read == 0
    # Another session's time zone: its own entries come beside those that are there.
    with pytest.raises(
        ConfigError, match=r"lookup: 'LOWER\(email\)' is the same expression as 'lower\(email\)', .*one spelling"
    ):
        table.build_index(lookup=["LOWER(email)"])
    table.build_index(lookup=[HOUR])
    spark.conf.set(ZONE, "Asia/Tokyo")
    assert reads(table, f"{HOUR} = 'never'") == len(files)
    assert table.build_index().files_read == len(files)
    assert reads(table, f"{HOUR} = 'never'") == 0
    same_as_plain(spark, table)
    slices = len(table._opened.snapshot.index[LOOKUPS])
    assert table.drop_index(lookup=[HOUR]).lookup == ("lower(email)", "id")
    assert len(table._opened.snapshot.index[LOOKUPS]) == slices - 2
    with pytest.raises(
        ConfigError, match=r"lookup: column 'upper\(email\)' has no lookup index; those that have some: low"
    ):
        table.drop_index(lookup=["upper(email)"])
    assert table.drop_index(lookup="lower(email), id").lookup == ()
    assert LOOKUPS not in table._opened.snapshot.index
    assert stage(table.explain("lower(email) = 'nobody'"), "lookup").files_after == len(files)
    assert table.build_index(lookup=["lower(email)"], schedule=True).files_read == 0
    table.append(mixed(spark, 2_000, 2_010))
    assert without_entries(spark, table) == len(files)
    assert table.build_index(execute=True).files_read == len(files)
    check(spark, table, [7, 2_001], [2_010])


def test_a_build_in_steps_gives_each_file_all_that_it_lacks(spark, monkeypatch):
    table = written(spark, "z.lookup_of_steps", ["id"], end=400, writer="spark")
    table.build_index()
    table.append(mixed(spark, 2_000, 2_300))
    # Only the newest files lack entries of the column; all lack those of the expression.
    files = len(table.snapshot().files)
    assert table.build_index(lookup=["lower(email)"], schedule=True).files_without == files
    monkeypatch.setattr(optional_indexes, "_MOST_ROWS", 300)
    done = table.build_index(execute=True)
    assert done.files_without == 0
    check(spark, table, [7, 2_299], [2_301])


@pytest.mark.slow
def test_every_way_to_write_keeps_the_entries(spark):
    table = written(spark, "z.lookup_of_all", ["lower(email)"])
    check(spark, table, [7, 8, 1_999], [9_000])
    table.append(mixed(spark, 2_000, 2_300))
    check(spark, table, [7, 2_299], [2_301])
    table.merge(mixed(spark, 2_251, 2_399), "id")
    check(spark, table, [7, 2_299, 2_398], [2_399])
    table.delete_insert(mixed(spark, 1, 9), "id")
    table.delete("id = 9")
    check(spark, table, [7], [9])
    table.delete(f"lower(email) = '{lowered(spark, 11)}'")
    check(spark, table, [13], [11])
    table.replace_where(mixed(spark, 3_001, 3_002).selectExpr("id", "5 as n", "day", "email", "d", "ts"), "n = 5")
    check(spark, table, [3_001], [5])
    version = table.version
    table.cluster(rewrite_all=True)
    check(spark, table, [7, 2_398, 3_001], [9, 11])
    table.overwrite(mixed(spark, 4_000, 4_500))
    check(spark, table, [4_001], [7])
    table.rollback(version=version)
    check(spark, table, [7, 3_001], [9, 4_001])
    assert table.verify(data=True).num_rows == 0
    # A full refresh keeps the setting, and a list replaces it.
    check(spark, ZTable.write(spark, "z.lookup_of_all", mixed(spark, 0, 900), zorder=["n"]), [7], [901])
    table = written(spark, "z.lookup_of_all", [], 0, 900)
    assert LOOKUPS not in table._opened.snapshot.index


@pytest.mark.slow
def test_logs_and_compactions_keep_the_entries(spark):
    table = written(
        spark, "z.lookup_of_mor", ["lower(email)"], table_type="merge_on_read", unique_key="id", compaction="off"
    )
    table.upsert(mixed(spark, 5_001, 5_002).selectExpr("7L as id", "n", "day", "email", "d", "ts"))
    table.delete("id = 9")
    assert without_entries(spark, table) == 0
    for compacted in (False, True):
        if compacted:
            table.compact()
            assert without_entries(spark, table) == 0
        for number, expected in ((7, []), (5_001, [7]), (8, [8]), (9, [])):
            condition = f"lower(email) = '{lowered(spark, number)}'"
            found = [row.id for row in spark.sql(f"select id from z.lookup_of_mor where {condition}").collect()]
            assert found == expected, (number, compacted)
        same_as_plain(spark, table)
    assert reads(table, f"lower(email) = '{lowered(spark, 8)}'") == 1
    assert reads(table, f"lower(email) = '{lowered(spark, 9)}'") == 0


@pytest.mark.parametrize("managed", [pytest.param(True, marks=pytest.mark.slow), False])
def test_adopted_tables_have_the_entries(spark, managed):
    name = f"z.lookup_of_adopted_{managed}"
    spark.sql(f"drop table if exists {name}")
    frame = mixed(spark, 0, 1_000).withColumn("part", functions.expr("id % 3")).repartitionByRange(6, "n")
    frame.write.format("parquet").partitionBy("part").saveAsTable(name)
    for refused in ({"lookup": ["rand()"]}, {"bloom": ["lower(nothing)"]}, {"lookup": ["part + 1"]}):
        with pytest.raises(ConfigError, match="can have no"):
            ZTable.adopt(spark, name, managed=managed, **refused)
    table = ZTable.adopt(spark, name, managed=managed, lookup=["id", *EXPRESSIONS], bloom=["upper(email)"])
    assert without_entries(spark, table) == 0
    conditions = [*EXACT[:4], f"{NAN} = double('NaN')", f"{HOUR} = '1970-01-02 03'", "part = 1 and d * -1 = -55433"]
    check_files(spark, table, conditions)
    same_as_plain(spark, table, [*conditions, *OTHERS])
    assert reads(table, "upper(email) = 'nobody'") == 0
    if not managed:
        spark.sql(
            f"insert into {name} select *, 0L as part from ({MIXED.replace('BEGIN', '2000').replace('END', '2010')})"
        )
        condition = f"lower(email) = '{lowered(spark, 2_001)}'"
        assert [row.id for row in spark.table(name).where(condition).collect()] == [2_001]
        table.refresh_index()
        assert without_entries(spark, table) == 0
        assert reads(table, condition) == 1
    assert table.verify(data=True).num_rows == 0


@pytest.mark.parametrize("kind", ["copy_on_write", pytest.param("merge_on_read", marks=pytest.mark.slow)])
def test_keys_are_never_found_by_an_index_of_their_expression(spark, kind):
    name = f"z.lookup_of_key_{kind[:5]}"
    frame = spark.sql("select concat('K', id) as k, id as v from range(100)")
    options = {"table_type": kind, **({"unique_key": "k"} if kind == "merge_on_read" else {})}
    table = ZTable.write(spark, name, frame, target_file_size="1kb", zorder=["v"], lookup=["lower(k)"], **options)
    more = spark.sql("select * from values ('k7', -7L), ('K8', -8L), ('new', -9L) as t(k, v)")
    done = table.upsert(more) if kind == "merge_on_read" else table.merge(more, "k")
    assert (done.rows_inserted, done.rows_updated) == (2, 1)
    found = spark.sql(f"select k, v from {name} where lower(k) in ('k7', 'k8', 'new')").collect()
    assert sorted(map(tuple, found)) == [("K7", 7), ("K8", -8), ("k7", -7), ("new", -9)]
    assert without_entries(spark, table) == 0


def test_a_column_called_like_an_expression_has_the_index(spark):
    frame = spark.sql("select id, string(id) as `lower(s)`, upper(string(id)) as s from range(100)")
    table = ZTable.write(spark, "z.lookup_of_name", frame, lookup=["LOWER(s)"])
    assert table._opened.snapshot.layout["lookup"] == [[["lower(s)"]]]
    assert reads(table, "`lower(s)` = 'x'") == 0
    assert table.drop_index(lookup=["lower(s)"]).lookup == ()


@pytest.mark.slow
def test_the_column_of_an_expression_may_go_and_come_back_wider(spark):
    frame = spark.sql("select id, int(id * 7 % 300) as s from range(300)")
    options = {"zorder": ["id"], "target_file_size": "1kb"}
    table = ZTable.write(spark, "z.lookup_of_gone", frame, **options, lookup=["s + 1"])
    assert reads(table, "s + 1 = 8") == 1
    table.append(frame.select("id"), on_schema_change="sync_all_columns")
    assert table.information()["lookup"] == ["s + 1"]
    table.append(frame.selectExpr("id", "bigint(s) as s"), on_schema_change="sync_all_columns")
    assert without_entries(spark, table) == 0
    assert reads(table, "s + 1 = 8") == 1
    assert spark.table("z.lookup_of_gone").where("s + 1 = 8").collect() == [(1, 7)]
    assert spark.table("z.lookup_of_gone").where("s + 1 is null").count() == 600
    table = ZTable.write(spark, "z.lookup_of_gone", frame.select("id"), **options)
    assert table.information()["lookup"] == ["s + 1"]
    table.append(frame, on_schema_change="append_new_columns")
    assert spark.table("z.lookup_of_gone").where("s + 1 = 8").collect() == [(1, 7)]


def test_a_file_in_which_an_expression_fails_is_read(spark):
    spark.conf.set(ANSI, "true")
    frame = spark.sql("select id, id div 500 p, if(id = 700, 'x', string(id)) s from range(1500)")
    table = ZTable.write(
        spark, "z.lookup_failing", frame, zorder=["id"], partition_by=["p"], lookup=["cast(s as int)", "lower(s)"]
    )
    assert without_entries(spark, table) == 1
    assert reads(table, "cast(s as int) = 3") == 2
    # The other expression has its entries all the same.
    assert reads(table, "lower(s) = 'nobody'") == 0
    assert spark.sql("select id from z.lookup_failing where p <> 1 and cast(s as int) = 3").collect() == [(3,)]


@pytest.mark.slow
def test_lost_and_damaged_entries_keep_files_and_a_refresh_makes_them_again(spark):
    table = written(spark, "z.lookup_of_lost", ["lower(email)"])
    total = len(table.snapshot().files)
    damaged = without_a_slice(spark, table, LOOKUPS, f"lower(email) = '{lowered(spark, 7)}'")
    assert damaged.refresh_index().filters_rebuilt == total
    check(spark, ZTable.for_name(spark, table.name), [7], [2_001])


def test_entries_that_lack_values_are_found_by_verify(spark):
    table = ZTable.write(spark, "z.lookup_of_wrong", mixed(spark, 10, 40), lookup=["lower(email)"])
    opened = table._opened
    (path,) = opened.files["path"].to_pylist()
    (key,) = wanted_expressions(spark, TableLayout.of_version(opened.snapshot)).looked_up
    assert table.verify(data=True).num_rows == 0
    with Transaction.begin(opened.timeline, Action.INDEXING, Operation.INDEXING) as transaction:
        wrong = NewLookups((run_bytes(path, {key: np.empty(0, np.uint64)}),))
        new = wrong.put(opened.store, transaction.instant, opened.files)
        transaction.commit(Change(opened.files[:0]), index=lambda head: {**head.index, LOOKUPS: new})
    (cell,) = ZTable.for_name(spark, "z.lookup_of_wrong").verify(data=True).to_pylist()
    assert (cell["path"], cell["column"], cell["cell"], cell["found"]) == (
        path, "lower(email)", "lookup", "30 values that it lacks",
    )  # fmt: skip


def test_what_can_have_no_lookup_index_is_refused_before_anything_is_written(spark):
    frame = mixed(spark, 0, 10)
    for lookup, sentence in (
        (["rand()"], "lookup: 'rand()' can have no lookup index: it is not deterministic; allowed are"),
        (["lower(nothing)"], "lookup: 'lower(nothing)' can have no lookup index: "),
        (["lower("], "lookup: 'lower(' can have no lookup index: "),
        (["array(email)"], "lookup: 'array(email)' can have no lookup index: "),
        (["(email)"], "columns have statistics by stats_columns, and stand in bloom and lookup without parentheses"),
        ([["lower(email)", "n"]], "lookup: 'lower(email)' is an expression, and an index of several columns takes"),
    ):
        with pytest.raises(ConfigError) as error:
            ZTable.write(spark, "z.lookup_of_refused", frame, lookup=lookup)
        assert sentence in str(error.value)
    assert not spark.catalog.tableExists("z.lookup_of_refused")
    table = ZTable.write(spark, "z.lookup_of_refused", frame)
    with pytest.raises(ConfigError, match=r"'uuid\(\)' can have no lookup index"):
        table.build_index(lookup=["uuid()"])
    with pytest.raises(ConfigError, match="is an expression, and an index of several"):
        table.build_index(lookup="lower(email)+n")
