"""Append, overwrite, merge, delete: single steps whose outcome is known, and the errors that they give."""

from pathlib import Path

import pytest
from comparing import bag, same_rows
from pyspark.sql import functions

from dbt.adapters.zlayout.errors import ConfigError, ConflictError, TableNotFoundError, UnsupportedError, WriteError
from dbt.adapters.zlayout.table.ztable import ZTable

EVERY_TYPE = """
    select cast(id as int) k, cast(id % 100 as byte) b, cast(id as short) s, id l, cast(id as float) / 3 f,
      case id % 5 when 0 then double('NaN') when 1 then -0.0D when 2 then null else id / 7 end d,
      cast(id as decimal(38, 10)) / 7 dec, date_add(date'1500-01-01', cast(id * 300 as int)) day,
      timestamp_micros(id * 86400000123) ts, cast(timestamp_micros(id * 3600000001) as timestamp_ntz) ntz,
      case when id % 4 = 0 then null else concat('ü✓', id) end t, cast(concat('x', id) as binary) bin,
      id % 2 = 0 flag, named_struct('a', id, 'b', array(id, null)) st, map('m', id) mp, array(named_struct('q', id)) arr,
      cast(null as int) nothing
    from range({rows})
"""


def table_of(spark, name, query, **settings):
    settings.setdefault("target_file_size", "16kb")
    return ZTable.write(spark, name, spark.sql(query), **settings)


def files_of(table):
    return set(table.snapshot().files["path"].to_pylist())


def content(table):
    root = Path(table.location.removeprefix("file://"))
    return {path: (root / path).read_bytes() for path in files_of(table)}


@pytest.mark.parametrize("partition_by", [pytest.param((), marks=pytest.mark.exhaustive), ("flag",)])
def test_rows_of_every_type_come_change_and_go(spark, partition_by):
    name = f"z.every_{len(partition_by)}"
    table = table_of(spark, name, EVERY_TYPE.format(rows=400), zorder=["k", "day"], partition_by=partition_by)
    spark.sql(EVERY_TYPE.format(rows=700)).createOrReplaceTempView("more")
    table.append(spark.sql("select * from more where k between 400 and 500"))
    assert same_rows(spark.table(name), spark.sql("select * from more where k <= 500"))
    new = spark.table("more").where("k % 10 = 0").withColumn("t", functions.lit("changed"))
    done = table.merge(new, ["k"])
    assert (done.rows_updated, done.rows_inserted) == (51, 19)
    merged = spark.table("more").where("k <= 500 and k % 10 <> 0").unionByName(new)
    assert same_rows(spark.table(name), merged)
    done = table.delete("d is null or isnan(d)")
    left = merged.where("d is not null and not isnan(d)")
    assert done.rows_deleted == 520 - left.count()
    assert same_rows(spark.table(name), left)
    assert table.index_status().num_rows == 0


@pytest.mark.parametrize(
    "key",
    [
        "st",
        *(pytest.param(key, marks=pytest.mark.slow) for key in ("k", "d", "dec", "ts", "t")),
        *(pytest.param(key, marks=pytest.mark.exhaustive) for key in ("b", "s", "l", "f", "day", "ntz", "bin", "flag")),
    ],
)
def test_a_merge_matches_by_keys_of_every_type_and_never_by_null(spark, key):
    name = f"z.key_{key}"
    query = f"select *, row_number() over (partition by {key} order by k) n from ({EVERY_TYPE.format(rows=60)})"
    table = table_of(spark, name, query, zorder=["k"], target_file_size="4kb")
    rows = spark.sql(query).where("k % 3 = 0")
    changed = (
        rows.where("n = 1").withColumn("l", functions.lit(-1).cast("long"))
        if key != "l"
        else rows.withColumn("s", functions.lit(-1).cast("short"))
    )
    changed.createOrReplaceTempView("new")
    before = spark.table(name).localCheckpoint()
    before.createOrReplaceTempView("old")
    done = table.merge(spark.table("new"), [key, "n"])
    columns = ", ".join(before.columns)
    left = f"select {columns} from old left anti join new on old.{key} = new.{key} and old.n = new.n"
    assert bag(spark.table(name)) == bag(spark.sql(f"{left} union all select {columns} from new"))
    nulls = spark.sql(f"select count(*) from new where {key} is null").head()[0]
    assert done.rows_inserted == nulls


@pytest.mark.slow
def test_a_merge_leaves_other_files_as_they_are(spark):
    table = table_of(spark, "z.few", "select id k, id * 7 v from range(20000)", zorder=["k"])
    before, kept = content(table), len(files_of(table))
    assert kept >= 5
    done = table.merge(spark.sql("select k, -1L v from values (3L), (5L), (30000L) as t (k)"), "k")
    after = content(table)
    assert done.files_removed == 1
    assert done.files_total == kept
    assert {path: data for path, data in before.items() if path in after} == {
        p: d for p, d in after.items() if p in before
    }
    assert len(before.keys() - after.keys()) == 1
    assert (done.rows_inserted, done.rows_updated, done.rows_deleted) == (1, 2, 0)
    assert done.bytes_written == sum(len(data) for path, data in after.items() if path not in before)
    expected = (
        "select id k, case when id in (3, 5) then -1 else id * 7 end v from range(20000) union all select 30000, -1"
    )
    assert same_rows(spark.table("z.few"), spark.sql(expected))


@pytest.mark.slow
def test_a_merge_updates_only_the_columns_that_it_shall(spark):
    query = "select id k, 'a' x, 'a' y from range(4)"
    new = "select id + 2 k, 'b' x, 'b' y from range(4)"
    for number, (rules, expected) in enumerate(
        [
            ({"update_columns": ["x"]}, [("b", "a"), ("b", "b")]),
            ({"exclude_columns": ["X"]}, [("a", "b"), ("b", "b")]),
            ({"skip_matched_step": True}, [("a", "a"), ("b", "b")]),
            ({"skip_not_matched_step": True}, [("b", "b")]),
            ({"matched_condition": "DBT_INTERNAL_DEST.k = 2"}, [("b", "b"), ("a", "a"), ("b", "b")]),
            ({"not_matched_condition": "DBT_INTERNAL_SOURCE.k = 5"}, [("b", "b"), ("b", "b")]),
            ({"predicates": ["DBT_INTERNAL_DEST.k > 2"]}, None),
            ({"source_alias": "s", "target_alias": "t", "matched_condition": "s.x > t.x"}, [("b", "b"), ("b", "b")]),
        ]
    ):
        name = f"z.rules_{number}"
        table = table_of(spark, name, query)
        table.merge(spark.sql(new), ["k"], **rules)
        rows = {}
        for row in spark.table(name).collect():
            rows.setdefault(row.k, []).append((row.x, row.y))
        assert rows[0] == rows[1] == [("a", "a")]
        if "skip_not_matched_step" in rules:
            assert set(rows) == {0, 1, 2, 3}
            assert rows[2] == rows[3] == expected
        elif "matched_condition" in rules and len(expected) == 3:
            assert (rows[2], rows[3], rows[4]) == tuple([each] for each in expected)
        elif "not_matched_condition" in rules:
            assert set(rows) == {0, 1, 2, 3, 5}
        elif expected is None:
            assert sorted(rows[2]) == [("a", "a"), ("b", "b")]
            assert rows[3] == [("b", "b")]
        else:
            assert (rows[2], rows[5]) == ([expected[0]], [expected[1]])


def test_two_rows_of_one_key_are_an_error_that_shows_them(spark):
    table = table_of(spark, "z.twice", "select id k, 0 v from range(10)")
    twice = spark.sql("select id % 4 k, 1 v from range(8) union all select null, 2 union all select null, 3")
    with pytest.raises(WriteError, match=r"k = \d \(2 times\); k = \d \(2 times\); k = \d \(2 times\); make"):
        table.merge(twice, ["k"])
    assert ZTable.for_name(spark, "z.twice").version == 0
    table.merge(spark.sql("select cast(null as bigint) k, 2 v union all select null, 3"), ["k"])
    assert spark.table("z.twice").where("k is null").count() == 2
    done = table.delete_insert(twice, ["k"])
    assert (done.rows_deleted, done.rows_inserted) == (4, 10)
    assert spark.table("z.twice").count() == 10 - 4 + 2 + 10


def test_overwrite_replaces_the_partitions_that_come(spark):
    query = "select id k, id % 3 p, case when id % 2 = 0 then null else 'a b/c' end q from range(60)"
    table = table_of(spark, "z.parts", query, partition_by=["p", "q"])
    done = table.overwrite(spark.sql("select 1L k, 1L p, cast(null as string) q"))
    expected = f"select * from ({query}) where not (p = 1 and q is null) union all select 1, 1, null"
    assert same_rows(spark.table("z.parts"), spark.sql(expected))
    assert (done.rows_inserted, done.rows_deleted) == (1, 10)
    with pytest.raises(WriteError, match="p=2, q=None.*not among those"):
        table.overwrite(spark.sql("select 1L k, 2L p, cast(null as string) q"), [{"p": 1, "q": "a b/c"}])
    table.overwrite(spark.sql("select * from z.parts where false"), [{"p": 1, "q": "a b/c"}, {"P": 1, "Q": None}])
    assert same_rows(spark.table("z.parts"), spark.sql(f"select * from ({query}) where p <> 1"))
    table.overwrite(spark.sql("select 5L k, 5L p, 'z' q"), "all")
    assert [tuple(row) for row in spark.table("z.parts").select("k", "p", "q").collect()] == [(5, 5, "z")]
    for wrong in ("some", [{"p": 1}], [3]):
        with pytest.raises(ConfigError, match="partitions:"):
            table.overwrite(spark.sql("select 5L k, 5L p, 'z' q"), wrong)
    plain = table_of(spark, "z.unparted", "select id from range(5)")
    plain.overwrite(spark.sql("select 9L id"))
    assert [row.id for row in spark.table("z.unparted").collect()] == [9]


@pytest.mark.slow
def test_replace_where_and_delete(spark):
    query = "select id k, timestamp_seconds(id * 3600) ts from range(240)"
    table = table_of(spark, "z.hours", query, zorder=["ts"], target_file_size="1kb")
    day = "ts >= '1970-01-03 00:00:00' and ts < '1970-01-04 00:00:00'"
    fresh = f"select k + 1000 k, ts from ({query}) where {day}"
    for _ in range(2):
        done = table.replace_where(spark.sql(fresh), day)
        assert (done.rows_deleted, done.rows_inserted) == (24, 24)
        assert same_rows(
            spark.table("z.hours"), spark.sql(f"select * from ({query}) where not ({day}) union all {fresh}")
        )
    version = table.version
    assert table.delete("k < 0").version == version
    assert table.append(spark.sql(query).limit(0)).version == version
    done = table.delete("true")
    assert (done.files_added, done.rows_deleted) == (0, 240)
    assert spark.table("z.hours").count() == 0
    table.append(spark.sql(query))
    assert same_rows(spark.table("z.hours"), spark.sql(query))
    with pytest.raises(ConfigError, match="condition 'nope = 1' does not fit"):
        table.delete("nope = 1")


def test_a_random_condition_is_refused(spark):
    table = table_of(spark, "z.random", "select id k from range(20)")
    for refused in (
        table.delete,
        table.count,
        lambda condition: table.replace_where(spark.table("z.random"), condition),
    ):
        with pytest.raises(ConfigError, match="condition 'rand\\(\\) < 0.5' is not deterministic"):
            refused("rand() < 0.5")
    assert spark.table("z.random").count() == 20


PARTS = """
    select case when id < 30 then id when id < 60 then null else id end k,
      case when id between 60 and 89 then double('NaN') when id = 95 then null else id / 2 end x,
      case when id % 30 < 15 then concat('a', id) else 'b' end t, date_add(date'2024-01-01', cast(id as int)) d,
      case id div 30 when 0 then 'zero' when 1 then 'nulls' when 2 then 'nan' else 'mixed' end part
    from range(120)
"""
CONDITIONS = [
    "k < 30", "k >= 60", "k is null", "k is not null", "not (k < 60)", "x > 10", "x > 1000", "isnan(x)", "x <> 5", "not (x > 10)",
    "x <= 60 or x is null", "t like 'a%'", "d < date'2024-02-15'", "year(d) = 2024", "part = 'nan'", "part <> 'nan' and k > 3",
    "part = 'nulls' or x > 10", "k in (select 7)", "k + 1 > 60", "coalesce(k, 0) = 0", "rand(5) < 0.5 and false", "true", "false", "k < null",
]  # fmt: skip


@pytest.mark.parametrize(
    "condition",
    [pytest.param(each, marks=pytest.mark.exhaustive if number % 3 else ()) for number, each in enumerate(CONDITIONS)],
)
def test_a_delete_takes_and_a_count_counts_what_plain_spark_would(spark, condition):
    name = f"z.wholly_{CONDITIONS.index(condition)}"
    table = table_of(spark, name, PARTS, partition_by=["part"], zorder=["d"])
    every = spark.sql(PARTS)
    matching = every.where(condition).count()
    assert table.count(condition) == matching
    assert table.delete(condition).rows_deleted == matching
    assert same_rows(spark.table(name), every.where(f"not coalesce(({condition}), false)"))
    assert ZTable.for_name(spark, name).count() == 120 - matching


def test_files_that_match_whole_are_neither_read_nor_written(spark):
    query = "select id k, case when id div 100 = 3 then null else id * 1.0D end x, id div 100 part from range(500)"
    table = table_of(spark, "z.unread", query, partition_by=["part"], zorder=["k"])
    root = Path(table.location.removeprefix("file://"))
    for path in files_of(table):
        if not path.startswith("part=4/"):
            (root / path).write_bytes(bytes((root / path).stat().st_size))
    assert (table.count("k < 400"), table.count("k < 100"), table.count("x is null"), table.count()) == (
        400,
        100,
        100,
        500,
    )
    done = table.delete("k < 200 or x is null")
    assert (done.rows_deleted, done.files_added, done.files_removed) == (300, 0, 3)
    done = table.replace_where(spark.sql("select 250L k, 1.0D x, 2L part"), "k between 200 and 449")
    assert (done.rows_deleted, done.rows_inserted) == (150, 1)
    assert same_rows(
        spark.table("z.unread"), spark.sql(f"select * from ({query}) where k >= 450 union all select 250, 1, 2")
    )
    with pytest.raises(ConfigError, match="condition 'nope = 1' does not fit"):
        table.count("nope = 1")


def test_a_table_that_others_write_is_counted_as_it_lies(spark):
    spark.sql("create table z.lying using parquet as select id k from range(10)")
    table = ZTable.adopt(spark, "z.lying")
    spark.sql("insert into z.lying select id + 5 from range(10)")
    assert (table.count(), table.count("k >= 5"), table.count("k > 100")) == (20, 15, 0)


def test_columns_change_as_the_policy_says(spark):
    table = table_of(spark, "z.columns", "select id k, cast(id as int) v, 'x' gone from range(10)", zorder=["k"])
    wider = spark.sql("select 10L k, 5000000000 v, 'n' fresh")
    with pytest.raises(ConfigError, match="`fresh`, which the table lacks"):
        table.append(wider)
    with pytest.raises(ConfigError, match="lacks `gone`"):
        table.append(wider, on_schema_change="ignore")
    with pytest.raises(WriteError, match="(?i)overflow"):
        table.append(wider, on_schema_change="append_new_columns")
    with pytest.raises(ConfigError, match="cannot hold all of its values; cast it to int in the query, or rebuild"):
        table.append(spark.sql("select 1L k, true v, 'n' gone"), on_schema_change="sync_all_columns")
    table.append(spark.sql("select 10L k, 1 v, 'g' gone, 'extra' z"), on_schema_change="ignore")
    table.append(spark.sql("select 11L k, 2 v, 'n' fresh"), on_schema_change="append_new_columns")
    assert spark.table("z.columns").columns == ["k", "v", "gone", "fresh"]
    assert [each for each in table.explain("fresh = 'n'").files["verdict"].to_pylist() if each != "SKIP"] == [
        "ALL_ROWS"
    ]
    table.append(spark.sql("select 12L k, 5000000000 v, 'm' fresh"), on_schema_change="sync_all_columns")
    assert {(f.name, f.dataType.simpleString()) for f in spark.table("z.columns").schema} == {
        ("k", "bigint"),
        ("v", "bigint"),
        ("fresh", "string"),
    }
    table.append(spark.sql("select 13L k, 3L v, 'm' fresh, 'back' gone"), on_schema_change="append_new_columns")
    rows = {row.k: (row.v, row.fresh, row.gone) for row in spark.table("z.columns").collect()}
    expected = {k: (k, None, None) for k in range(10)}
    expected |= {10: (1, None, None), 11: (2, "n", None), 12: (5000000000, "m", None), 13: (3, "m", "back")}
    assert rows == expected
    assert table.index_status().num_rows == 0


def test_hudi_19645_rows_of_files_older_than_a_column_are_null_in_it(spark):
    table = table_of(spark, "z.younger", "select id k from range(10)")
    table.append(spark.sql("select 10L k, 'a' x union all select 11, null"), on_schema_change="append_new_columns")
    table.append(spark.sql("select 12L k, 'b' x"))
    for condition, rows, read in [
        ("x is null", 11, 2),
        ("x <=> null", 11, 2),
        ("x is not null", 2, 2),
        ("x = 'a'", 1, 1),
    ]:
        assert spark.table("z.younger").where(condition).count() == rows, condition
        kept = [each for each in table.explain(condition).files["verdict"].to_pylist() if each != "SKIP"]
        assert len(kept) == read, condition
    old = table.explain("x is null").files
    assert "ALL_ROWS" in old["verdict"].to_pylist()


def test_a_dropped_column_does_not_come_back_to_life(spark):
    table = table_of(spark, "z.zombie", "select id k, 'old' x from range(10)", partition_by=[])
    table.append(spark.sql("select 10L k"), on_schema_change="sync_all_columns")
    assert spark.table("z.zombie").columns == ["k"]
    table.append(spark.sql("select 11L k, 'new' x"), on_schema_change="append_new_columns")
    assert {row.k: row.x for row in spark.table("z.zombie").collect()} == {**dict.fromkeys(range(11)), 11: "new"}
    assert spark.table("z.zombie").where("x = 'old'").count() == 0


def test_an_append_lies_on_the_stored_curve(spark):
    table = table_of(spark, "z.curve", "select id k, id * 7919 % 100003 v from range(40000)", zorder=["k", "v"])
    curve = table.snapshot().curve
    done = table.append(spark.sql("select id k, id * 7919 % 100003 v from range(40000, 60000)"))
    assert done.files_added > 1
    assert done.overlap_depth == 1.0
    assert table.snapshot().curve == curve


@pytest.mark.slow
def test_many_appends_keep_the_index_together(spark):
    table = table_of(spark, "z.often", "select id k, id % 2 p from range(10)", partition_by=["p"])
    for number in range(1, 25):
        table.append(spark.sql(f"select {number * 100}L k, 0L p"))
    assert max(len(slices) for slices in table.snapshot().index.values()) <= 11
    assert table.index_status().num_rows == 0
    kept = [verdict for verdict in table.explain("k = 1500").files["verdict"].to_pylist() if verdict != "SKIP"]
    assert len(kept) == 1
    assert spark.table("z.often").count() == 34


def test_what_is_no_managed_table_is_refused(spark):
    spark.sql("create table z.others using parquet as select 1 a")
    with pytest.raises(TableNotFoundError):
        ZTable.for_name(spark, "z.missing")
    indexed = ZTable.adopt(spark, "z.others")
    with pytest.raises(UnsupportedError, match="managed=True"):
        indexed.append(spark.sql("select 2 a"))
    taken = ZTable.adopt(spark, "z.others", managed=True)
    taken.append(spark.sql("select 2 a"))
    assert sorted(row.a for row in spark.table("z.others").collect()) == [1, 2]
    taken.merge(spark.sql("select 1 a union all select 3"), "a")
    assert sorted(row.a for row in spark.table("z.others").collect()) == [1, 2, 3]


@pytest.mark.slow
def test_two_merges_on_other_files_both_land_and_on_the_same_file_the_later_fails(spark, monkeypatch):
    from dbt.adapters.zlayout.spark.commit import commit_files

    table = table_of(spark, "z.race", "select id k, 0 v from range(20000)", zorder=["k"])
    other = ZTable.for_name(spark, "z.race")
    original = commit_files.IndexUpdate

    def lose_once(action):
        waiting = [action]

        def update(*args, **options):
            if waiting:
                waiting.pop()()
            return original(*args, **options)

        monkeypatch.setattr(commit_files, "IndexUpdate", update)

    def merge(number, value):
        return spark.sql(f"select {number}L k, {value} v")

    lose_once(lambda: other.merge(merge(19999, 1), "k"))
    table.merge(merge(3, 2), "k")
    assert spark.table("z.race").where("v > 0").count() == 2
    lose_once(lambda: other.merge(merge(4, 3), "k"))
    with pytest.raises(ConflictError, match=r"merge \d{17}.*it replaced .*parquet too.*run the model again"):
        table.merge(merge(3, 4), "k")
    lose_once(lambda: other.merge(merge(50000, 5), "k"))
    with pytest.raises(ConflictError, match="rows with some of the same keys"):
        table.merge(merge(50000, 6), "k")
    lose_once(lambda: other.append(merge(60000, 7)))
    table.merge(merge(3, 8), "k")
    lose_once(lambda: other.append(merge(60001, 7)))
    table.append(merge(60002, 8))
    lose_once(lambda: other.overwrite(merge(1, 1)))
    with pytest.raises(ConflictError):
        table.delete("k = 1")
    monkeypatch.undo()
    assert [tuple(row) for row in spark.table("z.race").collect()] == [(1, 1)]
    assert table.index_status().num_rows == 0


def test_a_case_sensitive_session_finds_columns_in_another_case(spark):
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        table = table_of(spark, "z.spelled", "select 1L id, 'a' v")
        table.merge(spark.sql("select 1L ID, 'b' v union all select 2L, 'c'"), "id")
        assert sorted(map(tuple, spark.table("z.spelled").collect())) == [(1, "b"), (2, "c")]
        table = table_of(spark, "z.two_cases", "select 1 a, 7 A, 'x' v")
        table.merge(spark.sql("select 2 a, 7 A, 'y' v"), "a")
        assert sorted(map(tuple, spark.table("z.two_cases").collect())) == [(1, 7, "x"), (2, 7, "y")]
        spark.sql("drop table z.two_cases")
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def test_fields_of_structs_are_never_taken_for_others(spark):
    struct = "select named_struct({}) s"
    table = table_of(spark, "z.structs", struct.format("'a', nullif(1, -1), 'b', nullif(1, -1)"))
    for fields in ("'x', nullif(2, -1), 'y', nullif(2, -1)", "'a', nullif(2L, -1L), 'c', nullif(2, -1)"):
        for policy in ("fail", "sync_all_columns"):
            with pytest.raises(ConfigError, match="column `s` is struct"):
                table.append(spark.sql(struct.format(fields)), on_schema_change=policy)
    table.append(
        spark.sql(struct.format("'b', nullif(3L, -1L), 'a', nullif(2, -1)")), on_schema_change="sync_all_columns"
    )
    assert sorted((row.s.a, row.s.b) for row in spark.table("z.structs").collect()) == [(1, 1), (2, 3)]


def test_a_nested_column_and_a_plain_one_do_not_take_each_others_rows(spark):
    kinds = ("array('x')", "'x'", "map('x', 1)", "named_struct('x', 1)")
    for number, kind in enumerate(kinds):
        table = table_of(spark, f"z.nested_or_not_{number}", f"select {kind} c")
        for other in (each for each in kinds if each != kind):
            for policy in ("fail", "sync_all_columns"):
                with pytest.raises(ConfigError, match="column `c` is"):
                    table.append(spark.sql(f"select {other} c"), on_schema_change=policy)


@pytest.mark.parametrize("kind", ["copy_on_write", pytest.param("merge_on_read", marks=pytest.mark.slow)])
def test_texts_are_as_long_as_their_columns_allow(spark, kind):
    name, rows = f"z.limited_{kind}", "select id k, '{}' c, '{}' v from range(3)"
    plain = f"{name}_plain"
    for each in (name, plain):
        spark.sql(f"create table {each} (k long, c char(5), v varchar(4)) using parquet")
        spark.sql(f"insert into {each} {rows.format('a', 'b')}")
    table = ZTable.adopt(spark, name, managed=True)
    if kind == "merge_on_read":
        ZTable.write(spark, name, spark.table(name), table_type=kind, unique_key="k", compaction="off")
        table = ZTable.for_name(spark, name)
    for texts in (("abcdef", "b"), ("a", "éèêëē")):
        last = table.upsert if kind == "merge_on_read" else table.append
        for change in (lambda df: table.merge(df, "k"), lambda df: table.delete_insert(df, "k"), last):
            with pytest.raises(WriteError, match="a text in column `[cv]` is longer than (var)?char"):
                change(spark.sql(rows.format(*texts)))
        with pytest.raises(Exception, match="EXCEED_LIMIT_LENGTH"):
            spark.sql(f"insert into {plain} {rows.format(*texts)}")
    fits = rows.format("abc       ", "éèêë    ")
    table.merge(spark.sql(fits), "k")
    spark.sql(f"insert overwrite {plain} {fits}")
    lengths = "select k, c, v, length(c), length(v) from {} order by k"
    assert spark.sql(lengths.format(name)).collect() == spark.sql(lengths.format(plain)).collect()


@pytest.mark.parametrize("kind", ["copy_on_write", "merge_on_read"])
def test_a_query_that_fails_is_one_kind_of_error_in_every_change(spark, kind):
    settings = {"table_type": kind, "unique_key": "k"} if kind == "merge_on_read" else {}
    table = ZTable.write(spark, f"z.fails_{kind}", spark.sql("select id k, id v from range(5)"), **settings)
    rows = spark.sql("select id k, if(id = 3, cast(raise_error('no such rate') as long), id) v from range(5)")
    last = table.upsert if kind == "merge_on_read" else table.append
    changes = [lambda: table.merge(rows, "k"), lambda: table.delete_insert(rows, "k"), lambda: last(rows)]
    for change in [*changes, lambda: table.delete("k > cast(raise_error('no such rate') as int)")]:
        with pytest.raises(WriteError, match=f"z.fails_{kind}: .*no such rate.*; the table is unchanged"):
            change()
    assert ZTable.for_name(spark, table.name).version == 0


def test_a_column_is_not_widened_to_a_type_that_rounds(spark):
    table = table_of(spark, "z.rounded", "select 9007199254740993L k")
    with pytest.raises(ConfigError, match="cannot hold all of its values"):
        table.append(spark.sql("select 1.0D k"), on_schema_change="sync_all_columns")
    assert spark.table("z.rounded").first().k == 9007199254740993


def test_what_a_session_leaves_out_is_not_rewritten_away(spark):
    table = table_of(spark, "z.missing", "select id, id % 2 p from range(100)", partition_by=["p"])
    (gone,) = [each for each in table.snapshot().files["path"].to_pylist() if each.startswith("p=1/")]
    Path(table.location.removeprefix("file:"), gone).unlink()
    spark.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    try:
        with pytest.raises(Exception, match="not exist"):
            table.delete("id = 7")
        with pytest.raises(Exception, match="not exist"):
            table.merge(spark.sql("select id, 1L p from range(1, 20, 2)"), "id")
    finally:
        spark.conf.unset("spark.sql.files.ignoreMissingFiles")
    assert table.snapshot().version == 0


def test_partitions_in_another_spelling_are_replaced(spark, tmp_path):
    spark.sql(
        f"create table z.spelled_parts (v int, month int) using parquet partitioned by (month) location '{tmp_path}/parts'"
    )
    spark.sql("select 1 v").write.parquet(str(tmp_path / "parts" / "month=01"))
    spark.sql("msck repair table z.spelled_parts")
    table = ZTable.adopt(spark, "z.spelled_parts", zorder=["v"], managed=True)
    table.overwrite(spark.sql("select 2 v, 1 month"))
    assert spark.table("z.spelled_parts").collect() == [(2, 1)]
    table = table_of(spark, "z.flags", "select 1 v, true flag", partition_by=["flag"])
    table.overwrite(spark.table("z.flags").limit(0), [{"flag": True}])
    assert spark.table("z.flags").count() == 0


def test_fields_that_the_table_lacks_are_not_lost(spark):
    struct = "select {} k, named_struct({}) s"
    table = table_of(spark, "z.fields_lost", struct.format(1, "'a', nullif(1, -1), 'b', nullif(1, -1)"))
    for policy, fields in (("append_new_columns", "'a', 2, 'b', 2, 'c', 2"), ("ignore", "'a', 3")):
        with pytest.raises(ConfigError, match="select the fields that the table has"):
            table.append(spark.sql(struct.format(2, fields)), on_schema_change=policy)
    # As with columns: what the table lacks is left out, or what the query lacks is null.
    table.append(spark.sql(struct.format(2, "'b', 3, 'c', 9, 'a', 2")), on_schema_change="ignore")
    table.append(spark.sql(struct.format(3, "'a', 4")), on_schema_change="append_new_columns")
    found = sorted((row.k, row.s.a, row.s.b) for row in spark.table("z.fields_lost").collect())
    assert found == [(1, 1, 1), (2, 2, 3), (3, 4, None)]


@pytest.mark.parametrize("kind", ["copy_on_write", pytest.param("merge_on_read", marks=pytest.mark.slow)])
def test_a_key_of_fixed_length_is_found(spark, kind):
    spark.sql(f"create table z.fixed_{kind} (k char(5), v int) using parquet")
    spark.sql(f"insert into z.fixed_{kind} values ('ab', 1)")
    table = ZTable.adopt(spark, f"z.fixed_{kind}", zorder=["v"], managed=True)
    if kind == "merge_on_read":
        settings = {"table_type": kind, "unique_key": "k", "compaction": "off"}
        table = ZTable.write(spark, "z.fixed_records", spark.table("z.fixed_merge_on_read"), **settings)
    for value, key in ((2, "ab"), (3, "ab   ")):
        table.merge(spark.sql(f"select '{key}' k, {value} v union all select 'abcde', {value}"), "k")
        assert sorted(map(tuple, spark.table(table.name).collect())) == [("ab   ", value), ("abcde", value)]
    if kind == "merge_on_read":
        table.compact()
        assert spark.table(table.name).count() == 2


@pytest.mark.parametrize("kind", [pytest.param("copy_on_write", marks=pytest.mark.slow), "merge_on_read"])
def test_of_columns_that_differ_in_case_only_the_named_one_is_updated(spark, kind):
    settings = {"table_type": kind, "unique_key": "k"} if kind == "merge_on_read" else {}
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        table = table_of(spark, f"z.cases_{kind}", "select 1 k, 1 a, 1 A", **settings)
        table.merge(spark.sql("select 1 k, 2 a, 2 A"), "k", update_columns=["A"])
        assert spark.table(table.name).collect() == [(1, 1, 2)]
        table.merge(spark.sql("select 1 k, 3 a, 3 A"), "k", exclude_columns=["A"])
        assert spark.table(table.name).collect() == [(1, 3, 2)]
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


@pytest.mark.parametrize(
    "stored", [*(pytest.param(each, marks=pytest.mark.slow) for each in ("0D", "float(0)")), "-0.0D"]
)
def test_a_key_of_zero_is_found(spark, stored):
    name = "z.zero_" + "".join(filter(str.isalnum, stored))
    spark.sql(f"select {stored} k, 'a' p, 'old' v union all select 1, 'a', 'old'").createOrReplaceTempView("zeros")
    table = ZTable.write(spark, name, spark.table("zeros"))
    table.merge(spark.sql(f"select -({stored}) k, 'a' p, 'new' v"), "k")
    assert sorted(spark.table(name).select("v").collect()) == [("new",), ("old",)]
    settings = {"table_type": "merge_on_read", "unique_key": "k", "partition_by": ["p"], "compaction": "off"}
    table = ZTable.write(spark, f"{name}_records", spark.table("zeros"), **settings)
    done = table.upsert(spark.sql(f"select -({stored}) k, 'b' p, 'new' v"))
    assert (done.rows_inserted, done.rows_updated) == (0, 1)
    assert sorted(spark.table(table.name).select("p", "v").collect()) == [("a", "old"), ("b", "new")]
    assert table.delete("v = 'new'").rows_deleted == 1
    assert spark.table(table.name).count() == 1


@pytest.mark.parametrize("kind", ["copy_on_write", pytest.param("merge_on_read", marks=pytest.mark.slow)])
def test_a_key_of_a_fraction_of_38_digits_is_told_from_zero(spark, kind):
    least = "cast('1e-38' as decimal(38, 38))"
    rows = spark.sql(f"select cast(0 as decimal(38, 38)) k, 'zero' v union all select {least}, 'least'")
    settings = {"table_type": kind, "unique_key": "k", "compaction": "off"} if kind == "merge_on_read" else {}
    table = ZTable.write(spark, f"z.fractions_{kind}", rows, **settings)
    table.merge(rows.where("v = 'zero'").selectExpr("k", "'new' v"), "k")
    assert sorted(spark.table(table.name).select("v").collect()) == [("least",), ("new",)]
    table.delete("v = 'new'")
    assert spark.table(table.name).select("v").collect() == [("least",)]


def test_a_key_of_a_day_that_old_calendars_do_not_have_is_found(spark):
    rows = "select timestamp_micros(id - 12219292800000001) k, '{}' v from range(1)"
    table = table_of(spark, "z.no_day", rows.format("old"), zorder=["k"])
    table.merge(spark.sql(rows.format("new")), "k")
    assert spark.table("z.no_day").select("v").collect() == [("new",)]
