"""Change feeds: inserts, updates and deletes of a batch are one version, whatever order they come in."""

import itertools
from dataclasses import replace
from functools import partial

import pytest

from dbt.adapters.zlayout.errors import ConfigError, ConflictError, WriteError
from dbt.adapters.zlayout.spark.snapshot.table_layout import config_of
from dbt.adapters.zlayout.spark.write import replace as replacing
from dbt.adapters.zlayout.table.ztable import ZTable

DELETED = "op = 'D'"
TYPES = ["copy_on_write", "merge_on_read"]


def frame(spark, rows, columns="k long, o int, v string, op string"):
    return spark.createDataFrame(rows, columns).coalesce(1)


def made(spark, name, rows, table_type="merge_on_read", **settings):
    given = {"table_type": table_type, "unique_key": ["k"], "zorder": ["k"]}
    if table_type == "merge_on_read":
        given |= {"compaction": "off"}
    return ZTable.write(spark, f"z.feed_{name}", frame(spark, rows, "k long, o int, v string"), **given, **settings)


def held(table, columns="k, o, v"):
    return sorted(map(tuple, table._spark.sql(f"select {columns} from {table.name}").collect()), key=repr)


def counts(done):
    return done.rows_inserted, done.rows_updated, done.rows_deleted


@pytest.mark.parametrize("table_type", TYPES)
def test_inserts_updates_and_deletes_of_a_batch_are_one_version(spark, table_type):
    table = made(spark, f"batch_{table_type}", [(k, 1, "old") for k in range(6)], table_type)
    batch = [
        (0, 2, "new", "U"),
        (1, 2, None, "D"),
        (2, 2, "null is no delete", None),
        (8, 2, "in", "I"),
        (9, 2, "", "D"),
    ]
    before = table.version
    done = table.merge(frame(spark, batch), "k", deleted_when=DELETED)
    assert (counts(done), done.version) == ((1, 2, 1), before + 1)
    kept = [(k, 1, "old") for k in (3, 4, 5)]
    assert held(table) == sorted([(0, 2, "new"), (2, 2, "null is no delete"), (8, 2, "in"), *kept])
    assert table.history(1).column("rows_deleted").to_pylist() == [1]
    assert "op" not in spark.table(table.name).columns
    assert counts(table.merge(frame(spark, [(99, 3, "", "D")]), "k", deleted_when=DELETED)) == (0, 0, 0)
    assert ZTable.for_name(spark, table.name).version == before + 1
    with pytest.raises(WriteError, match="several rows with the same unique_key"):
        table.merge(frame(spark, [(3, 3, "", "D"), (3, 3, "", "I")]), "k", deleted_when=DELETED)
    assert counts(table.merge(frame(spark, [(k, 3, "", "D") for k in range(9)]), "k", deleted_when=DELETED)) == (
        0,
        0,
        6,
    )
    assert held(table) == []


KINDS = ("IUDIUD", "IUDIDI")


def events(spark, splits):
    """The events of every permutation and these splits: one key for each of both, and for each list of kinds."""
    perms = [(number, list(places)) for number, places in enumerate(itertools.permutations(range(1, 7)))]
    perms = spark.createDataFrame(perms, "number long, places array<int>")
    lists = spark.createDataFrame([(s, kinds) for s in splits for kinds in KINDS], "split int, kinds string")
    each = perms.crossJoin(lists).selectExpr("*", "posexplode(places) (position, o)")
    return each.selectExpr(
        "concat_ws('/', number, split, kinds) k",
        "o",
        "substr(kinds, o, 1) op",
        "if(substr(kinds, o, 1) = 'D', null, concat('v', o)) v",
        "if(substr(kinds, o, 1) = 'D', null, if(o % 3 = 0, 'a', 'b')) p",
        "1 + bit_count(split & (shiftleft(1, position) - 1)) batch",
    ).localCheckpoint()


def taken(table, way, rows, batch):
    """One batch of a change feed, taken in one of the ways that a merge-on-read table has."""
    if way == "merge":
        return table.merge(rows, "k", deleted_when=DELETED)
    if way == "upsert":
        return table.upsert(rows, deleted_when=DELETED)
    return table.upsert_batch(rows, batch, deleted_when=DELETED)


WAYS = ("merge", "upsert", "upsert_batch")


@pytest.mark.newest_spark
@pytest.mark.parametrize(
    ("ways", "partition_by", "splits"),
    [
        pytest.param(WAYS, (), (10, 31), id="each batch in another way"),
        *(pytest.param((way,), ("p",), (0, 10, 31), marks=pytest.mark.slow, id=way) for way in WAYS),
        *(pytest.param((way,), (), range(32), marks=pytest.mark.exhaustive, id=f"{way}, all") for way in WAYS),
    ],
)
def test_every_order_of_six_events_of_a_key_in_batches_of_every_size_ends_the_same(spark, ways, partition_by, splits):
    name, rows = f"z.feed_orders_{'_'.join(ways)}_{len(partition_by)}", events(spark, splits)
    for batch in range(1, 7):
        come = rows.where(f"batch = {batch}").drop("batch")
        if batch == 1:
            settings = {"table_type": "merge_on_read", "unique_key": "k", "ordering": "o", "compaction": "off"}
            table = ZTable.write(spark, name, come, deleted_when=DELETED, partition_by=partition_by, **settings)
        else:
            taken(table, ways[batch % len(ways)], come, batch)
        if batch in (2, 4):
            table.compact()
    found = (
        spark.table(name).selectExpr("substring_index(k, '/', -1) kinds", "o", "v", "p").groupBy("kinds", "o", "v", "p")
    )
    assert [tuple(row) for row in found.count().collect()] == [("IUDIDI", 6, "v6", "a", 720 * len(splits))]
    assert table.information()["rows"] == 720 * len(splits)


@pytest.mark.slow
def test_a_delete_keeps_its_order_through_compactions_for_as_long_as_the_table_says(spark):
    table = made(spark, "kept", [(k, 5, "old") for k in range(4)], ordering="o")
    done = table.upsert(
        frame(spark, [(0, 4, "", "D"), (1, 5, "", "D"), (2, 6, "", "D"), (7, 3, "", "D")]), deleted_when=DELETED
    )
    assert counts(done) == (0, 0, 2)
    late = [(0, 3, "late", "U"), (1, 4, "late", "U"), (2, 5, "late", "U"), (7, 2, "late", "I")]
    kept = [(0, 5, "old"), (3, 5, "old")]
    for _ in range(3):
        assert (
            table.upsert(frame(spark, late), deleted_when=DELETED).version == ZTable.for_name(spark, table.name).version
        )
        assert held(table) == kept
        # The delete of a key that the table never had lies in a file group of its own.
        assert table.compact().groups in (0, 2)
    told = table.information()
    assert (told["rows"], told["kept_deletes"], told["log_files"], told["slices_with_logs"]) == (2, 3, 0, 0)
    assert table.compact().version == table.version
    assert spark.table(f"{table.name}__ro").count() == 2
    stored = spark.sql(f"select k, o, v from {table.name}__files where _zl_op = 'tombstone'").collect()
    assert sorted(map(tuple, stored)) == [(1, 5, None), (2, 6, None), (7, 3, None)]
    table.upsert(frame(spark, [(2, 6, "again", "I"), (7, 9, "again", "I")]), deleted_when=DELETED)
    assert held(table) == [(0, 5, "old"), (2, 6, "again"), (3, 5, "old"), (7, 9, "again")]
    table.compact()
    assert (table.information()["kept_deletes"], spark.table(f"{table.name}__ro").count()) == (1, 4)
    assert table.verify(data=True).num_rows == 0
    table.upsert(frame(spark, [(3, 7, "", "D")]), deleted_when=DELETED, settings=forgetting(table))
    table.compact()
    assert table.information()["kept_deletes"] == 0
    table.upsert(frame(spark, late), deleted_when=DELETED)
    assert (1, 4, "late") in held(table)


def forgetting(table):
    config = config_of(table.snapshot())
    return replace(config, table_type=replace(config.table_type, retain_deletes_hours=0.0))


@pytest.mark.slow
@pytest.mark.newest_spark
def test_columns_that_only_the_condition_reads_are_not_stored(spark):
    rows = [(1, 1, "a", "I"), (2, 1, "b", "D")]
    plain = ZTable.write(spark, "z.feed_columns", frame(spark, rows), unique_key="k", deleted_when=DELETED)
    assert (spark.table(plain.name).columns, held(plain)) == (["k", "o", "v"], [(1, 1, "a")])
    with_more = frame(spark, [(1, 2, "c", "U", 7)], "k long, o int, v string, op string, more int")
    plain.merge(with_more, "k", deleted_when=DELETED, on_schema_change="append_new_columns")
    assert spark.table(plain.name).columns == ["k", "o", "v", "more"]
    named = ZTable.write(
        spark, "z.feed_named", frame(spark, rows), unique_key="k", deleted_when=DELETED, stored_columns=["op"]
    )
    named.merge(frame(spark, [(1, 2, "c", "U")]), "k", deleted_when=DELETED)
    assert held(named, "k, op") == [(1, "U")]
    with pytest.raises(WriteError, match="several rows with the same unique_key"):
        ZTable.write(
            spark, "z.feed_columns", frame(spark, [*rows, (1, 2, "", "D")]), unique_key="k", deleted_when=DELETED
        )


@pytest.mark.newest_spark
@pytest.mark.parametrize("table_type", TYPES)
def test_conditions_of_a_merge_hold_for_deletes(spark, table_type):
    table = made(spark, f"rules_{table_type}", [(k, 5, "old") for k in range(4)], table_type)
    batch = [
        (0, 9, "", "D"),
        (1, 1, "", "D"),
        (2, 9, "new", "U"),
        (3, 1, "new", "U"),
        (8, 1, "in", "I"),
        (9, 1, "", "D"),
    ]
    newer = "DBT_INTERNAL_SOURCE.o > DBT_INTERNAL_DEST.o"
    rules = {"matched_condition": newer, "not_matched_condition": "DBT_INTERNAL_SOURCE.k > 8", "update_columns": ["v"]}
    done = table.merge(frame(spark, batch), "k", deleted_when=DELETED, **rules)
    assert counts(done) == (0, 1, 1)
    assert held(table) == [(1, 5, "old"), (2, 5, "new"), (3, 5, "old")]


@pytest.mark.newest_spark
def test_what_is_wrong_with_a_feed_is_said_with_the_next_step(spark):
    table, rows = made(spark, "wrong", [(1, 1, "a")]), frame(spark, [(1, 2, "", "D")])
    for condition, told in {
        "op = 'D": "write SQL as after WHERE",
        "opp = 'D'": "over the columns k, o, v, op: .*opp",
        "op": "write SQL as after WHERE",
        "count(*) > 1": "write SQL as after WHERE",
    }.items():
        with pytest.raises(ConfigError, match=told):
            table.upsert(rows, deleted_when=condition)
    with pytest.raises(ConfigError, match="skip_matched_step leaves matching rows unchanged"):
        table.merge(rows, "k", deleted_when=DELETED, skip_matched_step=True)
    plain = ZTable.write(spark, "z.feed_wrong_plain", rows)
    for change in (plain.append, lambda df, **how: plain.delete_insert(df, "k", **how)):
        with pytest.raises(ConfigError, match="only merge and upsert"):
            change(rows, deleted_when=DELETED)
    with pytest.raises(ConfigError, match="set unique_key"):
        ZTable.write(spark, "z.feed_wrong_new", rows, deleted_when=DELETED)
    with pytest.raises(WriteError, match=r"k is null in 1 row\b"):
        table.upsert(frame(spark, [(None, 2, "", "D")]), deleted_when=DELETED)
    assert table.version == ZTable.for_name(spark, table.name).version


@pytest.mark.slow
@pytest.mark.newest_spark
def test_a_batch_of_a_stream_is_taken_once_and_deletes_need_no_value(spark):
    table = made(spark, "stream", [(k, 1, "old") for k in range(3)], ordering="o")
    take = partial(table.upsert_batch, deleted_when=DELETED)
    take(frame(spark, [(0, 2, None, "D"), (1, 2, "new", "U")]), 0)
    version = ZTable.for_name(spark, table.name).version
    take(frame(spark, [(1, 3, None, "D")]), 0)
    assert ZTable.for_name(spark, table.name).version == version
    table.upsert(frame(spark, [(2, 2, None, "D")]), deleted_when=DELETED, not_null=["v"])
    assert held(table) == [(1, 2, "new")]


@pytest.mark.slow
def test_files_of_kept_deletes_do_not_count_in_a_verdict(spark):
    table = made(spark, "judged", [(k, 1, "old") for k in range(40)], ordering="o")
    for first in (0, 10):
        feed = [(k, 2, "", "D" if k % 5 == 0 else "U") for k in range(first, first + 20)]
        table.upsert(frame(spark, feed), deleted_when=DELETED)
        table.compact()
    kept = [path for path in table.snapshot().files["path"].to_pylist() if ".deletes." in path]
    assert (len(kept) > 0, table.information()["files"]) == (True, 1 + len(kept))
    verdict = table.verdict()
    assert (verdict.sentence, verdict.problems) == ("Good: 1 file, which every query reads", ())
    assert table.clustering_information().files == 1


def test_rows_that_come_while_a_feed_replaces_the_table_are_a_conflict(spark, monkeypatch):
    table = made(spark, "replaced", [(k, 1, "old") for k in range(3)])
    other, original = ZTable.for_name(spark, table.name), replacing.IncomingRows

    def read_then_appended(*given):
        found = original(*given)
        other.upsert(frame(spark, [(9, 1, "other", "")]).select("k", "o", "v"))
        return found

    monkeypatch.setattr(replacing, "IncomingRows", read_then_appended)
    feed = frame(spark, [(7, 1, "new", "I"), (8, 1, "", "D")])
    with pytest.raises(ConflictError):
        ZTable.write(spark, table.name, feed, deleted_when=DELETED, table_type="merge_on_read", unique_key="k")
    assert [row[0] for row in held(table)] == [0, 1, 2, 9]


def test_columns_that_only_an_index_names_are_stored(spark):
    rows, settings = frame(spark, [(1, 1, "a", "I"), (2, 1, "b", "D")]), {"unique_key": "k", "deleted_when": DELETED}
    for number, index in enumerate(({"bloom": ["op"]}, {"lookup": ["op"]}, {"stats_expressions": ["lower(op)"]})):
        ZTable.write(spark, f"z.feed_index_{number}", rows, **settings, **index)
        assert [tuple(row) for row in spark.table(f"z.feed_index_{number}").collect()] == [(1, 1, "a", "I")]


@pytest.mark.slow
@pytest.mark.newest_spark
def test_clustering_takes_no_notice_of_kept_deletes(spark):
    table = made(spark, "clustered", [(k, 1, "old") for k in range(50)], ordering="o", target_file_size="1kb")
    table.upsert(frame(spark, [(k, 2, "", "D") for k in range(0, 50, 7)]), deleted_when=DELETED)
    table.compact()
    kept = table.information()["kept_deletes"]
    done = table.cluster(rewrite_all=True)
    assert (kept, done.files_removed > 0, table.information()["kept_deletes"]) == (8, True, 8)
    table.upsert(frame(spark, [(0, 1, "late", "U"), (7, 3, "again", "I")]), deleted_when=DELETED)
    for _ in range(2):
        assert (len(held(table)), held(table)[:2]) == (43, [(1, 1, "old"), (10, 1, "old")])
        assert (7, 3, "again") in held(table)
        table.compact()


@pytest.mark.slow
def test_deletes_of_unknown_keys_in_several_partitions_take_no_other_row(spark):
    rows = [(2, "a", 1, "stays"), (3, "b", 1, "stays")]
    columns = "k long, p string, o int, v string"
    settings = {"table_type": "merge_on_read", "unique_key": ["k", "p"], "ordering": "o", "compaction": "off"}
    table = ZTable.write(spark, "z.feed_parts", frame(spark, rows, columns), partition_by=["p"], **settings)
    feed = [
        (1, "a", 3, "", "D"),
        (2, "b", 3, "", "D"),
        (3, "a", 3, "", "D"),
        (2, "c", 3, "", "D"),
        (4, "b", 3, "", "D"),
    ]
    table.upsert(frame(spark, feed, f"{columns}, op string"), deleted_when=DELETED)
    assert held(table, "*") == [(2, 1, "stays", "a"), (3, 1, "stays", "b")]
    groups = [(each.group, each.partition) for each in ZTable.for_name(spark, table.name).snapshot().files]
    assert len(dict(groups)) == len(set(groups))
    for _ in range(2):
        late = [(2, "b", 2, "late", "U"), (2, "c", 4, "in", "U")]
        table.upsert(frame(spark, late, f"{columns}, op string"), deleted_when=DELETED)
        assert held(table, "k, p, v") == [(2, "a", "stays"), (2, "c", "in"), (3, "b", "stays")]
        table.compact()


@pytest.mark.slow
def test_after_a_delete_by_a_condition_nothing_is_compared_in_any_partition(spark):
    columns = "k long, o int, p string, v string, op string"
    rows = spark.createDataFrame([(1, 1, "a", "old"), (2, 1, "a", "stays")], "k long, o int, p string, v string")
    settings = {"table_type": "merge_on_read", "unique_key": ["k"], "ordering": "o", "partition_by": ["p"]}
    table = ZTable.write(spark, "z.feed_two_parts", rows.coalesce(1), compaction="off", **settings)
    table.upsert(frame(spark, [(1, 10, "a", None, "D")], columns), deleted_when=DELETED)
    table.upsert(frame(spark, [(1, 20, "b", "moved", "I")], columns).drop("op"))
    done = table.delete("k = 1")
    assert counts(done) == (0, 0, 1)
    assert table.information()["rows"] == 1
    table.compact()
    assert counts(table.upsert(frame(spark, [(1, 5, "a", "late", "I")], columns).drop("op"))) == (1, 0, 0)
    assert sorted(spark.table(table.name).select("k", "v").collect()) == [(1, "late"), (2, "stays")]


@pytest.mark.slow
def test_ordered_deletes_outlive_other_partition_columns(spark):
    table = made(spark, "repartitioned", [(k, 5, "a") for k in range(4)], ordering="o")
    table.upsert(frame(spark, [(0, 10, "", "D"), (1, 10, "", "D")]), deleted_when=DELETED)
    table.compact()
    # One delete is in a log, one of those that a compaction kept is out of date.
    table.upsert(frame(spark, [(1, 20, "b", "I"), (2, 10, "", "D")]), deleted_when=DELETED)
    for partition_by in (["v"], []):
        table.cluster(partition_by=partition_by)
        assert table.information()["kept_deletes"] == 2
        late = [(0, 7, "late", "I"), (1, 7, "late", "I"), (2, 7, "late", "I"), (3, 7, "new", "I")]
        table.upsert(frame(spark, late), deleted_when=DELETED)
        assert held(table) == [(1, 20, "b"), (3, 7, "new")]
    assert table.verify(data=True).num_rows == 0
