"""Lookup indexes through Spark: who writes them, which files queries and changes open, and that no result differs."""

from __future__ import annotations

import contextlib
import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow.compute as pc
import pytest
from comparing import same_rows
from indexed_rows import id_of, reads, rows_of, stage, without_a_slice
from scanned import Scans

from dbt.adapters.zlayout.errors import ConfigError
from dbt.adapters.zlayout.index.lookup.lookup_slices import LOOKUPS
from dbt.adapters.zlayout.spark.index import optional_indexes
from dbt.adapters.zlayout.spark.jobs.jobs import frame_of_rows
from dbt.adapters.zlayout.spark.read.values_condition import values_predicate
from dbt.adapters.zlayout.spark.snapshot.table_layout import TableLayout
from dbt.adapters.zlayout.table.ztable import ZTable

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("calendar")]


def without_entries(table):
    """The files that lack entries in one of the table's lookup indexes."""
    opened = table._opened
    snapshot, found = opened.snapshot, opened.index.lookups(opened.files)
    keys = TableLayout.of_version(snapshot).looked_up
    assert keys
    known = [found.covered(key) for key in keys] if found is not None else [np.zeros(len(opened.files), dtype=bool)]
    return opened.files.filter(~np.logical_and.reduce(known))["path"].to_pylist()


def check(spark, table, present, absent, most=1):
    """Every file has entries; each id is found where plain Spark finds it, in its file, and absent ones open none."""
    assert without_entries(table) == []
    for number in present:
        text = id_of(spark, number)
        assert spark.sql(f"select count(*) from {table.name} where id = '{text}'").head()[0] == 1, number
        assert reads(table, f"id = '{text}'") <= most
    for number in absent:
        text = id_of(spark, number)
        assert spark.sql(f"select count(*) from {table.name} where id = '{text}'").head()[0] == 0, number
        assert reads(table, f"id = '{text}'") == 0


@pytest.mark.slow
def test_every_way_to_write_keeps_the_entries(spark):
    table = ZTable.write(
        spark, "z.looked_up", rows_of(spark), target_file_size="24kb", zorder=["n"], lookup=["ID", ["s.k", "n"]]
    )
    assert len(table.snapshot().files) >= 6
    check(spark, table, [0, 3_999], [4_000, 5_000])
    explanation = table.explain(f"id in ('{id_of(spark, 17)}', 'no such id') and n >= 0")
    assert stage(explanation, "column_stats").files_after > 3
    assert stage(explanation, "lookup").files_after == 1
    skipped = explanation.files.filter(pc.equal(explanation.files["stage"], "lookup"))["reason"].to_pylist()
    assert skipped[0].startswith("id: its lookup index has no value IN (")
    both = f"s.k = {17 * 7919 % 1000003} and n = 17"
    assert reads(table, both) == 1
    assert spark.sql(f"select n from z.looked_up where {both}").collect() == [(17,)]
    with Scans(spark) as scans:
        assert spark.sql(f"select count(*) from z.looked_up where id <=> '{id_of(spark, 3)}'").head()[0] == 1
    assert scans.files == [1]

    table.append(rows_of(spark, 4_000, 500))
    check(spark, table, [4_499], [4_500])
    table.merge(rows_of(spark, 4_400, 200).selectExpr("id", "n + 1000 as n", "s"), "id")
    check(spark, table, [4_599], [4_600])
    table.delete_insert(rows_of(spark, 0, 100), "id")
    table.delete(f"id = '{id_of(spark, 2)}'")
    check(spark, table, [99], [2])
    table.replace_where(rows_of(spark, 5_000, 30).selectExpr("id", "cast(3 as bigint) as n", "s"), "n = 3")
    check(spark, table, [5_000], [3])
    table.cluster(rewrite_all=True)
    assert len(table._opened.snapshot.index[LOOKUPS]) == 2
    check(spark, table, [1, 5_000], [2, 3])
    version = table.version
    table.overwrite(rows_of(spark, 6_000, 300))
    check(spark, table, [6_000], [1])
    table.rollback(version=version)
    check(spark, table, [1, 5_000], [2, 6_000])
    ZTable.write(spark, "z.looked_up", rows_of(spark, 0, 10), retain_versions=1, retain_hours=0)
    table = ZTable.for_name(spark, "z.looked_up")
    check(spark, table, [1], [10])
    on_disk = {each.path for each in table._opened.store.list(f".zlayout/index/{LOOKUPS}", recursive=True)}
    assert on_disk == set(table._opened.snapshot.index[LOOKUPS])
    assert table._opened.store.list(".zlayout/staging", recursive=True) == []


@pytest.mark.slow
def test_logs_and_compactions_of_a_merge_on_read_table_keep_the_entries(spark):
    table = ZTable.write(
        spark,
        "z.looked_up_mor",
        rows_of(spark),
        target_file_size="24kb",
        zorder=["n"],
        lookup=["id"],
        table_type="merge_on_read",
        unique_key="id",
        compaction="off",
    )
    table.upsert(rows_of(spark, 3_990, 20).selectExpr("id", "n + 1000 as n", "s"))
    table.upsert(rows_of(spark, 10, 1).selectExpr("id", "cast(-5 as bigint) as n", "s"))
    table.delete(f"id = '{id_of(spark, 11)}'")
    again = table.upsert(rows_of(spark, 9, 4).selectExpr("id", "n + 2000 as n", "s"))
    assert (again.rows_inserted, again.rows_updated) == (1, 3)
    table.delete(f"id = '{id_of(spark, 11)}'")
    assert without_entries(table) == []
    for compacted in (False, True):
        if compacted:
            table.compact()
            assert without_entries(table) == []
        for number, expected in (
            (10, [2010]),
            (11, []),
            (13, [13]),
            (3_990, [3_990 % 97 + 1000]),
            (4_009, [4_009 % 97 + 1000]),
        ):
            found = spark.sql(f"select n from z.looked_up_mor where id = '{id_of(spark, number)}'").collect()
            assert [row.n for row in found] == expected, (number, compacted)
    assert reads(table, f"id = '{id_of(spark, 13)}'") == 1
    assert spark.table("z.looked_up_mor").count() == 4_009


def moment(*parts):
    return dt.datetime(*parts, tzinfo=dt.timezone.utc).replace(tzinfo=None)


VALUES = {
    "b": ("boolean", [True, None]),
    "i1": ("tinyint", [-128, 7]),
    "i2": ("smallint", [-5, 300]),
    "i4": ("int", [-(2**31), 5]),
    "i8": ("bigint", [2**63 - 1, -1]),
    "f": ("float", [-0.0, float("nan")]),
    "d": ("double", [0.0, float("nan")]),
    "short": ("decimal(7, 2)", [Decimal("1.50"), Decimal(-2)]),
    "eight": ("decimal(18, 4)", [Decimal("1.5"), Decimal("-99999999999999.0001")]),
    "long": ("decimal(38, 10)", [Decimal("1.5"), Decimal("-9999999999999999999999999999.5")]),
    "t": ("string", ["é", ""]),
    "x": ("binary", [b"\x00", b"\xff" * 300]),
    "day": ("date", [dt.date(1582, 10, 4), dt.date(2026, 1, 1)]),
    "at": ("timestamp", [moment(1900, 1, 1, 0, 0, 0, 1), None]),
    "wall": ("timestamp_ntz", [moment(1700, 1, 1), moment(9999, 12, 31, 23, 59, 59, 999999)]),
}
CONDITIONS = [
    "b = true", "b <=> true", "b = false", "i1 = -128", "i2 = 300", "i2 in (299, 300)", "i4 = -2147483648", "i4 = 6",
    "i8 = 9223372036854775807", "f = 0.0", "f = double('NaN')", "d = double('NaN')", "d = 1D",
    "short = 1.5", "short = -2", "eight = 1.5", "eight = -99999999999999.0001", "long = 1.5",
    "long = -9999999999999999999999999999.5", "long = 7", "t = 'é'", "t = ''", "t = 'e'", "x = X'00'", "x = X'0000'",
    "day = date'1582-10-04'", "day = date'2026-01-02'", "at = timestamp'1900-01-01 00:00:00.000001'",
    "wall = timestamp_ntz'1700-01-01 00:00:00'", "not (i4 = 5)", "i4 = 5 or i8 = 1", "i4 = 5 and t = ''",
    "i4 not in (5, 6)", "b is null", "not (b <=> null)", "b <=> null", "i4 = cast('5' as bigint)", "i4 in (5L, 6L)",
    "d = 0 and t = ''", "d = double('NaN') and t = ''", "at <=> null and b <=> null", "at <=> null and b <=> true",
]  # fmt: skip
TOGETHER = [["t", "d"], ["b", "at"]]


@pytest.mark.slow
@pytest.mark.parametrize("made", ["written", "built"])
def test_equality_finds_the_same_rows_as_plain_spark_for_every_type(spark, made):
    rows = [tuple(values[number] for _, values in VALUES.values()) for number in range(2)] * 3
    schema = ", ".join(f"{name} {kind}" for name, (kind, _) in VALUES.items())
    frame, name, lookup = spark.createDataFrame(rows, schema), f"z.lookup_types_{made}", [*VALUES, *TOGETHER]
    # A file for each of the two kinds of rows, and one for both.
    table = ZTable.write(spark, name, frame.where("i4 = 5"), lookup=lookup if made == "written" else None)
    table.append(frame.where("i4 <> 5"))
    table.append(frame)
    if made == "built":
        assert table.build_index(lookup=lookup).files_read == 3
    assert without_entries(table) == []
    counts = frame.unionByName(frame).selectExpr(*(f"count_if({each})" for each in CONDITIONS)).head()
    for condition, expected in zip(CONDITIONS, counts, strict=True):
        assert spark.table(name).where(condition).count() == expected, condition
        if "not" not in condition and " or " not in condition:
            # Exact: three files at most, of which each kept one has such a row.
            assert reads(table, condition) == (0 if not expected else 2), condition
    # Spark's own Parquet reader takes -0.0 for less than 0.0, so the rows of this one are not compared.
    assert reads(table, "d = -0.0D") == 2
    assert table.verify(data=True).num_rows == 0


def test_an_index_is_built_and_dropped_without_touching_data(spark):
    table = ZTable.write(spark, "z.lookup_built", rows_of(spark), target_file_size="24kb", zorder=["n"])
    text, files = id_of(spark, 5), table.snapshot().files["path"].to_pylist()
    assert reads(table, f"id = '{text}'") == len(files)
    done = table.build_index(lookup=["ID", ["n", "id"]], bloom=["id"])
    assert (done.bloom, done.lookup, done.files_read, done.files_without) == (("id",), ("id", "n+id"), len(files), 0)
    assert table.snapshot().files["path"].to_pylist() == files
    check(spark, table, [5], [4_000])
    keys = f"select id from values ('{text}'), ('{id_of(spark, 6)}') as t(id)"
    assert reads(table, values_predicate(spark, "id", keys, 100, 10)) <= 2
    assert table.build_index(lookup=[["id", "n"]]).files_read == 0
    with pytest.raises(ConfigError, match=r"lookup: column 'n' has no lookup index; those that have some: id, n\+id"):
        table.drop_index(lookup="n")
    assert table.drop_index(lookup="id").lookup == ("n+id",)
    assert stage(table.explain(f"id = '{text}'"), "lookup").files_after == len(files)
    assert stage(table.explain(f"id = '{text}' and n = 5"), "lookup").files_after == 1
    assert table.drop_index(lookup="id + n").lookup == ()
    assert LOOKUPS not in table._opened.snapshot.index
    assert table.build_index().bloom == ("id",)
    table.build_index(lookup=["id"])
    table.append(rows_of(spark, 4_000, 10))
    check(spark, table, [4_005], [5_000])


def test_a_build_that_is_killed_goes_on_where_it_was(spark, monkeypatch):
    table = ZTable.write(spark, "z.lookup_killed", rows_of(spark), target_file_size="24kb", zorder=["n"])
    files = len(table.snapshot().files)
    monkeypatch.setattr(optional_indexes, "_MOST_ROWS", 2 * max(table.snapshot().files["row_count"].to_pylist()))
    read, original = [], optional_indexes.optional_of_files

    def killed(*given):
        if len(read) == 2:
            raise KeyboardInterrupt
        read.append(len(given[3]))
        return original(*given)

    with monkeypatch.context() as patched:
        patched.setattr(optional_indexes, "optional_of_files", killed)
        with pytest.raises(KeyboardInterrupt):
            table.build_index(lookup=["id"], stats_expressions=["n + 1"])
    assert len(read) == 2
    assert 2 <= sum(read) < files
    table = ZTable.for_name(spark, "z.lookup_killed")
    done = table.build_index()
    assert (done.lookup, done.stats_expressions) == (("id",), ("n + 1",))
    assert (done.files_read, done.files_without) == (files - sum(read), 0)
    check(spark, table, [5], [4_000])
    assert table.build_index().files_read == 0


@pytest.mark.parametrize("is_killed", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_writers_beside_a_build_index_their_files_and_a_killed_one_goes_on(spark, monkeypatch, is_killed):
    name = f"z.lookup_beside_{is_killed}"
    table = ZTable.write(spark, name, rows_of(spark), target_file_size="24kb", zorder=["n"])
    files, original = len(table.snapshot().files), optional_indexes.optional_of_files

    def beside_an_append(*given):
        monkeypatch.undo()
        ZTable.for_name(spark, name).append(rows_of(spark, 4_000, 10))
        if is_killed:
            raise KeyboardInterrupt
        return original(*given)

    monkeypatch.setattr(optional_indexes, "optional_of_files", beside_an_append)
    with pytest.raises(KeyboardInterrupt) if is_killed else contextlib.nullcontext():
        done = table.build_index(lookup=["id"])
    if is_killed:
        done = ZTable.for_name(spark, name).build_index()
    assert (done.lookup, done.files_read, done.files_without) == (("id",), files, 0)
    check(spark, ZTable.for_name(spark, name), [5, 4_005], [5_000])


def test_an_index_is_scheduled_by_one_job_and_built_by_another(spark):
    table = ZTable.write(spark, "z.lookup_scheduled", rows_of(spark), target_file_size="24kb", zorder=["n"])
    files = len(table.snapshot().files)
    scheduled = table.build_index(lookup=["id"], bloom=["n"], stats_expressions=["n + 1"], schedule=True)
    assert (scheduled.lookup, scheduled.bloom, scheduled.stats_expressions) == (("id",), ("n",), ("n + 1",))
    assert (scheduled.files_read, scheduled.files_without) == (0, files)
    explanation = ZTable.for_name(spark, "z.lookup_scheduled").explain(f"id = '{id_of(spark, 5)}'")
    assert not any(explanation.conjuncts["advice"].to_pylist()), "it has the index, only not its entries"
    table.append(rows_of(spark, 4_000, 10))
    assert reads(table, f"id = '{id_of(spark, 4_005)}'") == files + 1
    assert reads(table, f"id = '{id_of(spark, 5)}'") == files  # the new file has entries
    done = ZTable.for_name(spark, "z.lookup_scheduled").build_index(execute=True)
    assert (done.lookup, done.files_read, done.files_without) == (("id",), files, 0)
    check(spark, ZTable.for_name(spark, "z.lookup_scheduled"), [5, 4_005], [5_000])
    for given, problem in (
        ({"schedule": True}, "schedule: nothing to schedule"),
        ({"schedule": True, "execute": True, "lookup": ["id"]}, "leave one out"),
        ({"execute": True, "lookup": ["id"]}, "execute: completes what is scheduled"),
    ):
        with pytest.raises(ConfigError, match=problem):
            table.build_index(**given)


@pytest.mark.parametrize("what", ["the index", pytest.param("its column", marks=pytest.mark.slow)])
def test_what_another_job_drops_during_a_build_stays_dropped(spark, monkeypatch, what):
    name = f"z.lookup_unwanted_{what.split()[-1]}"
    table = ZTable.write(spark, name, rows_of(spark), target_file_size="24kb", zorder=["n"])
    monkeypatch.setattr(optional_indexes, "_MOST_ROWS", 1)
    original, steps = optional_indexes.optional_of_files, []

    def interrupted(*given):
        steps.append(given)
        if len(steps) == 2:
            other = ZTable.for_name(spark, name)
            if what == "the index":
                other.drop_index(lookup=["id"])
            else:
                other.append(spark.sql("select 1L n, named_struct('k', 1L) s"), on_schema_change="sync_all_columns")
        return original(*given)

    monkeypatch.setattr(optional_indexes, "optional_of_files", interrupted)
    done = table.build_index(lookup=["id"])
    assert (done.lookup, done.files_read) == ((), 1)
    if what == "the index":
        assert LOOKUPS not in table._opened.snapshot.index
    assert table.build_index().files_read == 0
    assert table.build_index(lookup=["n"]).lookup == ("n",)


def test_columns_that_can_have_no_lookup_index_are_named(spark):
    frame = spark.sql("select 1 as id, array(1) as tags, 'a' as p, named_struct('k', 1) as s")
    for lookup, sentence in (
        (
            ["tags"],
            "lookup: column 'tags' has type array<int>; allowed are integers, floats, decimals, dates, timestamps",
        ),
        ([["id", "s"]], "lookup: column 's' has type struct<k:int>; allowed are"),
        (
            [["id", "p"]],
            "lookup: column 'p' is a partition column, with one value in each file; leave it out of",
        ),
        (["ids"], r"lookup: column 'ids' is not in the model \(did you mean 'id'"),
        ([["id", "s.k"], ["s.k", "id"]], r"lookup: columns 's.k\+id' is listed twice"),
    ):
        with pytest.raises(ConfigError, match=sentence):
            ZTable.write(spark, "z.lookup_refused", frame, lookup=lookup, partition_by=["p"])


@pytest.mark.slow
def test_lost_and_damaged_entries_keep_files_and_a_build_makes_them_again(spark):
    table = ZTable.write(spark, "z.lookup_lost", rows_of(spark), target_file_size="24kb", zorder=["n"], lookup=["id"])
    total = len(table.snapshot().files)
    table = without_a_slice(spark, table, LOOKUPS, f"id = '{id_of(spark, 5)}'")
    assert table.build_index().files_read == total
    check(spark, table, [5], [4_000])


def test_a_build_that_can_read_nothing_makes_no_version(spark):
    table = ZTable.write(spark, "z.lookup_broken", rows_of(spark, count=100))
    table.build_index(lookup=["id"], bloom=["n"], schedule=True)
    (path,) = table.snapshot().files["path"].to_pylist()
    local = table._opened.store.local_path(path)
    local.write_bytes(b"x" * local.stat().st_size)
    before = table.version
    for _ in range(2):
        done = table.build_index(execute=True)
        assert (done.version, done.files_read, done.files_without) == (before, 1, 1)


def test_entries_of_a_column_that_widens_or_goes_are_not_used(spark):
    frame = spark.sql("select cast(id as int) as id, cast(id as string) as t from range(100)")
    table = ZTable.write(spark, "z.lookup_schema", frame, lookup=["id", ["t", "id"]])
    wider = spark.sql("select id + 10000000000 as id, cast(id as string) as t from range(10)")
    table.append(wider, on_schema_change="sync_all_columns")
    assert [reads(table, f"id = {value}") for value in (10000000005, 7, 1000)] == [1, 1, 0]
    assert spark.sql("select count(*) from z.lookup_schema where id in (7, 10000000005)").head()[0] == 2
    table.append(spark.sql("select id + 500 as id from range(5)"), on_schema_change="sync_all_columns")
    assert table.build_index().lookup == ("id",)
    assert spark.sql("select count(*) from z.lookup_schema where id = 502").head()[0] == 1


def test_rows_that_the_driver_knows_are_part_of_a_plan(spark):
    types = "b boolean, i byte, l long, f float, d double, e decimal(38, 10), t string, x binary"
    rows = [
        (
            True,
            -128,
            2**63 - 1,
            -0.0,
            float("nan"),
            Decimal("-9999999999999999999999999999.5"),
            "é\x00\U0010ffff",
            b"\x00",
        ),
        (None, 7, None, 1.5, 0.0, Decimal("1.50"), "", None),
    ]
    schema = spark.createDataFrame([], types).schema
    for some in (rows, rows[:1], []):
        frame = frame_of_rows(spark, some, schema)
        assert frame._jdf.queryExecution().optimizedPlan().getClass().getSimpleName() == "LocalRelation"
        assert frame.schema == schema
        assert same_rows(frame, spark.createDataFrame(some, schema))


@pytest.mark.slow
def test_a_merge_by_several_columns_opens_only_the_files_of_its_keys(spark):
    rows = ["cast(id % 50 as int) as shop", "cast(id div 50 as string) as number", "id % 97 as n"]
    frame = spark.range(4_000).selectExpr(*rows)
    table = ZTable.write(
        spark, "z.lookup_merge", frame, target_file_size="6kb", zorder=["n"], lookup=[["number", "shop"]]
    )
    total = len(table.snapshot().files)
    assert total >= 6
    few = spark.range(98, 100).selectExpr(*rows).selectExpr("shop", "number", "n + 1000 as n")
    with Scans(spark) as scans:
        assert table.merge(few, ["shop", "number"]).rows_updated == 2
    assert max(scans.files) <= 2
    with Scans(spark) as scans:
        done = table.delete_insert(few.selectExpr("shop", "number", "n + 1 as n"), ["number", "shop"])
        assert done.rows_deleted == 2
    assert max(scans.files) <= 2
    new = spark.sql("select 7 as shop, 'new' as number, 1L as n union all select null, '1', 2")
    with Scans(spark) as scans:
        assert table.merge(new, ["shop", "number"]).rows_inserted == 2
    assert max(scans.files, default=0) == 0
    assert spark.table("z.lookup_merge").count() == 4_002
    found = spark.sql(
        "select number, n from z.lookup_merge where shop in (48, 49) and number = '1' order by n"
    ).collect()
    assert [row.n for row in found] == [1001 + 98 % 97, 1001 + 99 % 97]


@pytest.mark.parametrize(
    ("keys", "partition_by"),
    [
        (["id"], []),
        pytest.param(["k", "id"], [], marks=pytest.mark.slow),
        pytest.param(["id"], ["p", "d"], marks=pytest.mark.slow),
    ],
)
def test_an_upsert_reads_only_the_files_of_keys_that_are_in_logs(spark, keys, partition_by):
    columns = ["sha2(cast(id as string), 256) as id", "cast(id % 7 as decimal(5, 1)) as k", "id % 97 as n"]
    columns += [
        "if(id % 3 = 0, null, concat('%41/=ä ', id % 3)) as p",
        "date_add(date'2024-02-28', int(id % 2)) as d",
    ]
    name = f"z.lookup_upsert_{len(keys)}_{len(partition_by)}"
    table = ZTable.write(
        spark,
        name,
        spark.range(3_000).selectExpr(*columns),
        target_file_size="16kb",
        zorder=["n"],
        partition_by=partition_by,
        lookup=[keys],
        table_type="merge_on_read",
        unique_key=keys,
        compaction="off",
    )
    assert len(table.snapshot().files) >= 6

    def changed(first, count, value):
        return spark.range(first, first + count).selectExpr(*columns).selectExpr("id", "k", f"{value} as n", "p", "d")

    with Scans(spark) as scans:
        done = table.upsert(changed(2_990, 20, "1000L"))
    assert (done.rows_updated, done.rows_inserted) == (10, 10)
    assert scans.files == []
    # Of these, two are in logs, one of them new; the others are in base files only, or nowhere.
    files = len(table.snapshot().files)
    with Scans(spark) as scans:
        again, others, new = changed(2_999, 2, "2000L"), changed(50, 5, "3000L"), changed(9_000, 1, "1L")
        done = table.upsert(again.unionByName(others).unionByName(new))
    assert (done.rows_updated, done.rows_inserted) == (7, 1)
    assert 0 < max(scans.files) <= 3 < files
    gone = id_of(spark, 2_999)
    assert table.delete(f"id = '{gone}'").rows_deleted == 1
    done = table.upsert(changed(2_999, 1, "4000L"))
    assert (done.rows_updated, done.rows_inserted) == (0, 1)
    counted = spark.sql(f"select n, count(*) as rows from {name} where n >= 1000 group by n").collect()
    counts = {row.n: row.rows for row in counted}
    assert counts == {1000: 18, 2000: 1, 3000: 5, 4000: 1}
    # A row that comes with another partition leaves its old one.
    moved = changed(70, 1, "5000L").drop("p").selectExpr("id", "k", "n", "'new' as p", "d")
    with Scans(spark) as scans:
        assert table.upsert(moved).rows_updated == 1
    assert scans.files == []
    assert spark.sql(f"select p from {name} where id = '{id_of(spark, 70)}'").collect() == [("new",)]
    assert spark.table(name).count() == 3_011
    assert spark.sql(f"select count(distinct id) from {name}").head()[0] == 3_011
    table.compact()
    assert spark.sql(f"select n from {name} where id = '{gone}'").collect() == [(4000,)]
    assert without_entries(table) == []


def test_an_explanation_says_which_files_lack_an_index_and_which_would_help(spark):
    rows = spark.range(3_000).selectExpr("id", "md5(string(id)) k")
    table = ZTable.write(spark, "z.lookup_gaps", rows, zorder=["id"], target_file_size="30kb")
    total = len(table.snapshot().files)
    condition = "upper(k) = upper(md5('7'))"
    (told,) = [each for each in table.explain(condition).conjuncts.to_pylist() if each["sql"].startswith("upper")]
    assert (told["skips"], 'ask for a lookup index (lookup: ["upper(k)"])' in told["advice"]) == (0, True)
    table.build_index(lookup=["k", "upper(k)"], schedule=True)
    lacks = f"{total} of {total} files have no entries in the lookup index on"
    assert [each.partition(" that ")[0] for each in table.explain(condition).problems] == [
        f"{lacks} k; zlayout_index adds them",
        f"{lacks} upper(k)",
    ]
    assert table.verdict().sentence == f"Fair: {lacks} k"
    table.build_index()
    assert (table.explain(condition).problems, table.information()["lacking"]) == ((), [])
    assert table.explain(condition).kept_files == 1
    ansi = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", "false" if ansi == "true" else "true")
    try:
        (told,) = table.explain(condition).problems
        assert "upper(k) that this session can use (its ANSI mode, time zone" in told
    finally:
        spark.conf.set("spark.sql.ansi.enabled", ansi)


def test_a_write_says_which_indexes_it_takes_away(spark):
    lines = []
    rows = spark.range(10).selectExpr("id", "string(id) k")
    ZTable.write(spark, "z.lookup_goes", rows, lookup=["k", "id"], stats_expressions=["length(k)"])
    ZTable.write(spark, "z.lookup_goes", rows, lookup=["ID"], stats_expressions=[], progress=lines.append)
    gone = "is dropped, because the settings no longer name it or its column is gone"
    assert [each for each in lines if "index" in each] == [
        f"the index lookup: k {gone}",
        f"the index stats_expressions: length(k) {gone}",
    ]
