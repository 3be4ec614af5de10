"""Bloom filters through Spark: who writes them, which files queries open, and that no result differs."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from comparing import same_rows
from indexed_rows import id_of, lowered, mixed, reads, rows_of, stage, without_a_slice
from scanned import Scans

from dbt.adapters.zlayout.errors import ConfigError
from dbt.adapters.zlayout.index.bloom.file_filters import FilterBuilder, filter_table
from dbt.adapters.zlayout.index.bloom.filter_slices import slice_path, write_slices
from dbt.adapters.zlayout.index.statistics.tracked import TrackedColumn
from dbt.adapters.zlayout.spark.files.parquet_file import _WRITES_FILTERS
from dbt.adapters.zlayout.spark.index import optional_indexes
from dbt.adapters.zlayout.spark.write import replace
from dbt.adapters.zlayout.table.ztable import ZTable
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.transactions.change import Change
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("calendar")]


def without_filters(table):
    """The files that lack a filter of `id`."""
    found = table._opened.index.membership(table._opened.files)
    if found is None:
        return table._opened.files["path"].to_pylist()
    known, _ = found.state(("id",), "string")
    return [path for path, has in zip(table._opened.files["path"].to_pylist(), known, strict=True) if not has]


def groups_without_filters(table):
    """The row groups that lack Parquet's filter of `id`, as paths of their files."""
    lacking = []
    for path in table._opened.files["path"].to_pylist() if _WRITES_FILTERS else ():
        metadata = pq.read_metadata(table._opened.store.local_path(path))
        for group in map(metadata.row_group, range(metadata.num_row_groups)):
            chunks = map(group.column, range(group.num_columns))
            lacking += [path for each in chunks if each.path_in_schema == "id" and each.bloom_filter_offset is None]
    return lacking


def check(spark, table, numbers, absent):
    """Every file has a filter, each present id is found where plain Spark finds it, and absent ones open few files."""
    assert without_filters(table) == []
    name, total = table.name, len(table.snapshot().files)
    for number in numbers:
        text = id_of(spark, number)
        assert spark.sql(f"select count(*) from {name} where id = '{text}'").head()[0] == 1, number
        assert reads(table, f"id = '{text}'") <= 1 + max(1, total // 10)
    for number in absent:
        text = id_of(spark, number)
        assert spark.sql(f"select count(*) from {name} where id = '{text}'").head()[0] == 0, number
    few = [reads(table, f"id = '{id_of(spark, number)}'") for number in absent]
    assert sum(few) <= len(few) * max(1, total // 10)


@pytest.mark.slow
def test_every_way_to_write_keeps_the_filters(spark):
    table = ZTable.write(spark, "z.bloomed", rows_of(spark), target_file_size="24kb", zorder=["n"], bloom=["ID", "s.k"])
    assert len(table.snapshot().files) >= 6
    check(spark, table, [0, 3_999], [4_000, 5_000])
    text = id_of(spark, 17)
    explanation = table.explain(f"id in ('{text}', 'no such id') and n >= 0")
    assert stage(explanation, "column_stats").files_after > 3
    assert stage(explanation, "bloom").files_after <= 2
    skipped = explanation.files.filter(pc.equal(explanation.files["stage"], "bloom"))["reason"].to_pylist()
    assert skipped[0].startswith("id: its Bloom filter has no value IN (")
    assert spark.sql(f"select n from z.bloomed where s.k = {17 * 7919 % 1000003}").collect() == [(17,)]
    assert reads(table, f"s.k = {17 * 7919 % 1000003}") <= 2

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
    assert len(table._opened.snapshot.index["bloom_filters"]) == 1
    check(spark, table, [1, 5_000], [2, 3])
    version = table.version
    table.overwrite(rows_of(spark, 6_000, 300))
    check(spark, table, [6_000], [1])
    assert groups_without_filters(table) == []
    table.rollback(version=version)
    check(spark, table, [1, 5_000], [2, 6_000])
    assert groups_without_filters(table) == []


@pytest.mark.skipif(not _WRITES_FILTERS, reason="Arrow writes Parquet's Bloom filters since release 26")
def test_spark_skips_row_groups_without_the_value_by_itself(spark):
    # The dictionaries of such small row groups would tell as well.
    spark.conf.set("parquet.filter.dictionary.enabled", "false")
    try:
        table = ZTable.write(spark, "z.bloom_groups", rows_of(spark), bloom=["id", "s.k"], row_group_rows=500)
        (path,) = table.snapshot().files["path"].to_pylist()
        plain = f"parquet.`{table._opened.store.local_path(path)}`"
        text = id_of(spark, 17)
        for source in ("z.bloom_groups", plain):
            with Scans(spark) as present:
                assert spark.sql(f"select n from {source} where id = '{text}'").collect() == [(17,)]
                assert spark.sql(f"select n from {source} where s.k = {17 * 7919 % 1000003}").collect() == [(17,)]
            assert [each.rows for each in present.scans] == [1_000, 1_000], source
        with Scans(spark) as absent:
            assert spark.sql(f"select n from {plain} where id = '{id_of(spark, 4_000)}'").collect() == []
        assert [each.rows for each in absent.scans] == [0]
    finally:
        spark.conf.unset("parquet.filter.dictionary.enabled")


@pytest.mark.slow
def test_logs_and_compactions_of_a_merge_on_read_table_keep_the_filters(spark):
    table = ZTable.write(
        spark,
        "z.bloomed_mor",
        rows_of(spark),
        target_file_size="24kb",
        zorder=["n"],
        bloom=["id"],
        table_type="merge_on_read",
        unique_key="id",
        compaction="off",
    )
    changed = rows_of(spark, 3_990, 20).selectExpr("id", "n + 1000 as n", "s")
    table.upsert(changed)
    table.upsert(rows_of(spark, 10, 1).selectExpr("id", "cast(-5 as bigint) as n", "s"))
    table.delete(f"id = '{id_of(spark, 11)}'")
    assert without_filters(table) == []
    for compacted in (False, True):
        if compacted:
            table.compact()
            assert without_filters(table) == []
        assert groups_without_filters(table) == []
        for number, expected in (
            (10, [-5]),
            (11, []),
            (12, [12]),
            (3_990, [3_990 % 97 + 1000]),
            (4_009, [4_009 % 97 + 1000]),
        ):
            found = spark.sql(f"select n from z.bloomed_mor where id = '{id_of(spark, number)}'").collect()
            assert [row.n for row in found] == expected, (number, compacted)
    assert reads(table, f"id = '{id_of(spark, 12)}'") <= 2


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
    "i4 not in (5, 6)", "b is null", "not (b <=> null)", "i4 = cast('5' as bigint)", "i4 in (5L, 6L)",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("made", ["written", "built", "adopted"])
def test_equality_finds_the_same_rows_as_plain_spark_for_every_type(spark, made, tmp_path):
    rows = [tuple(values[number] for _, values in VALUES.values()) for number in range(2)] * 3
    schema = ", ".join(f"{name} {kind}" for name, (kind, _) in VALUES.items())
    frame = spark.createDataFrame(rows, schema)
    plain = str(tmp_path / "plain")
    if made == "adopted":
        for kind in ("datetime", "int96"):
            spark.conf.set(f"spark.sql.parquet.{kind}RebaseModeInWrite", "CORRECTED")
        frame.write.parquet(plain)
    name = f"z.types_{made}"
    if made == "adopted":
        spark.sql(f"create table {name} using parquet location '{tmp_path}/adopted' as select * from parquet.`{plain}`")
        table = ZTable.adopt(spark, name, managed=True, bloom=list(VALUES))
    else:
        table = ZTable.write(spark, name, frame, bloom=list(VALUES) if made == "written" else None)
        if made == "built":
            table.build_index(bloom=list(VALUES))
    found = table._opened.index.membership(table._opened.files)
    for column in VALUES:
        kind = next(kind for _, part in found.whole.slices() for path, kind in part.types.items() if path == (column,))
        # Spark writes timestamps in 96 bits, which Arrow reads in another unit.
        assert found.state((column,), kind)[0].any() == ((made, column) != ("adopted", "at")), column
    # Spark itself loses -0.0 in dictionaries of its own files.
    source = spark.read.parquet(plain) if made == "adopted" else frame
    for condition in CONDITIONS:
        expected = source.where(condition).count()
        assert spark.table(name).where(condition).count() == expected, condition
    none = ["i4 = 6", "d = 1D", "t = 'e'", "x = X'0000'", "long = 7", "day = date'2026-01-02'"]
    assert [reads(table, condition) for condition in none] == [0] * len(none)


@pytest.mark.slow
def test_an_index_is_built_and_dropped_without_touching_data(spark):
    table = ZTable.write(spark, "z.bloom_built", rows_of(spark), target_file_size="24kb", zorder=["n"])
    text, files = id_of(spark, 5), table.snapshot().files["path"].to_pylist()
    assert reads(table, f"id = '{text}'") == len(files)
    done = table.build_index(bloom=["id"])
    assert (done.bloom, done.files_read, done.files_without) == (("id",), len(files), 0)
    assert table.snapshot().files["path"].to_pylist() == files
    check(spark, table, [5], [4_000])
    again = table.build_index(bloom=["ID"])
    assert (again.version, again.files_read) == (done.version, 0)
    table.append(rows_of(spark, 4_000, 100))
    check(spark, table, [5, 4_050], [4_100])
    table.build_index(bloom=["s.k"])
    check(spark, table, [5, 4_050], [4_100])
    assert reads(table, "s.k = -1") == 0
    dropped = table.drop_index(bloom=["id"])
    assert dropped.bloom == ("s.k",)
    assert reads(table, f"id = '{text}'") == len(files) + 1
    assert reads(table, "s.k = 7919") <= 2
    table.drop_index(bloom="s.k")
    assert "bloom_filters" not in table.snapshot().index
    table.append(rows_of(spark, 5_000, 10))
    assert "bloom_filters" not in table.snapshot().index
    with pytest.raises(ConfigError, match="bloom: column 'id' has no Bloom filters; those that have some: none"):
        table.drop_index(bloom=["id"])
    with pytest.raises(ConfigError, match="bloom: column 'nothing' is not in the model"):
        table.build_index(bloom=["nothing"])


def test_writers_go_on_while_filters_are_built(spark, monkeypatch):
    table = ZTable.write(spark, "z.bloom_meanwhile", rows_of(spark, 0, 100))
    read, before = optional_indexes.optional_of_files, table.version

    def meanwhile(*given):
        ZTable.for_name(spark, "z.bloom_meanwhile").append(rows_of(spark, 100, 10))
        return read(*given)

    monkeypatch.setattr(optional_indexes, "optional_of_files", meanwhile)
    done = table.build_index(bloom=["id"])
    monkeypatch.undo()
    # The settings, the append, which has filters already, and those of the file before.
    assert (done.version, done.files_read, done.files_without) == (before + 3, 1, 0)
    assert spark.table("z.bloom_meanwhile").count() == 110
    assert table.refresh_index().filters_rebuilt == 0
    check(spark, table, [100, 99], [200])


def in_the_meantime(monkeypatch, module, step, act):
    """The first time that a module takes a step, another writer acts before it."""
    real = getattr(module, step)

    def meanwhile(*given, **named):
        monkeypatch.setattr(module, step, real)
        act()
        return real(*given, **named)

    monkeypatch.setattr(module, step, meanwhile)


def test_settings_of_writers_that_overtake_each_other_are_all_kept(spark, monkeypatch):
    frame, name = rows_of(spark, 0, 100), "z.bloom_settings"
    table = ZTable.write(spark, name, frame, zorder=["n"], bloom=["n"])

    def index():
        ZTable.for_name(spark, name).build_index(bloom=["s.k"])

    def rebuild():
        ZTable.write(spark, name, frame.drop("s"), zorder=["id"], partition_by=["n"], publish=["delta"])

    in_the_meantime(monkeypatch, optional_indexes, "optional_of_files", index)
    assert table.build_index(bloom=["ID"]).bloom == ("n", "id", "s.k")
    in_the_meantime(monkeypatch, replace, "commit_files", lambda: table.drop_index(bloom=["n"]))
    table = ZTable.write(spark, name, frame)
    assert table.snapshot().layout["bloom"] == [["id"], ["s", "k"]]
    in_the_meantime(monkeypatch, optional_indexes, "optional_of_files", rebuild)
    table.build_index(bloom=["n"])
    with pytest.raises(ConfigError, match="bloom: column 'n' is a partition column"):
        table.build_index(bloom=["n"])
    now = ZTable.for_name(spark, name).snapshot()
    assert (now.partition_by, now.layout["zorder"], now.layout["publish"]) == (("n",), [["id"]], ["delta"])
    assert now.layout["bloom"] == [["id"]]
    assert spark.table(name).count() == 100


def test_a_rebuild_keeps_built_filters_and_an_empty_list_ends_them(spark):
    table = ZTable.write(spark, "z.bloom_kept", rows_of(spark, 0, 100))
    table.build_index(bloom=["id", "n"])
    fewer = rows_of(spark, 0, 100).drop("n")
    table = ZTable.write(spark, "z.bloom_kept", fewer)
    check(spark, table, [5], [200])
    assert table.build_index(bloom=[]).bloom == ("id",)
    table = ZTable.write(spark, "z.bloom_kept", fewer, bloom=[])
    assert "bloom_filters" not in table.snapshot().index
    assert table.build_index(bloom=[]).bloom == ()


@pytest.mark.slow
def test_lost_and_damaged_filters_keep_files_and_a_build_makes_them_again(spark):
    table = ZTable.write(spark, "z.bloom_lost", rows_of(spark), target_file_size="24kb", zorder=["n"], bloom=["id"])
    total = len(table.snapshot().files)
    table = without_a_slice(spark, table, "bloom_filters", f"id = '{id_of(spark, 5)}'")
    assert table.build_index(bloom=[]).files_read == total
    check(spark, table, [5], [4_000])


def test_a_filter_that_lacks_a_value_is_found_by_verify(spark):
    table = ZTable.write(spark, "z.bloom_wrong", rows_of(spark, 0, 50), bloom=["id", "n"])
    assert table.verify(data=True).num_rows == 0
    opened = table._opened
    columns = [TrackedColumn(("id",), pa.string()), TrackedColumn(("n",), pa.int64())]
    builders = {each.path: FilterBuilder(each.type) for each in columns}
    builders["id",].add(pa.array(["other"]))
    builders["n",].add(pa.array(range(60)))
    path = opened.files["path"][0].as_py()
    wrong = filter_table([path], columns, {name: [each.content()] for name, each in builders.items()})
    (content,) = write_slices(opened.files, [wrong])
    with Transaction.begin(opened.timeline, Action.INDEXING, Operation.INDEXING) as transaction:
        new = slice_path(transaction.instant, content)
        opened.store.put(new, content)
        nothing = Change(opened.files[:0])
        transaction.commit(nothing, index=lambda head: {**head.index, "bloom_filters": (new,)})
    (cell,) = ZTable.for_name(spark, "z.bloom_wrong").verify(data=True).to_pylist()
    assert cell == {
        "path": path,
        "column": "id",
        "cell": "bloom",
        "stored": "an incomplete filter",
        "found": "50 values that it lacks",
    }


def test_columns_that_can_have_no_filter_are_named(spark):
    frame = spark.sql("select 1 as id, array(1) as tags, 'a' as p, named_struct('k', 1) as s")
    for bloom, sentence in {
        "tags": "bloom: column 'tags' has type array<int>; allowed are integers, floats, decimals, dates, timestamps",
        "s": "bloom: column 's' has type struct<k:int>; allowed are",
        "p": "bloom: column 'p' is a partition column, with one value in each file; leave it out of bloom",
        "ids": r"bloom: column 'ids' is not in the model \(did you mean 'id'",
    }.items():
        with pytest.raises(ConfigError, match=sentence):
            ZTable.write(spark, "z.bloom_refused", frame, bloom=[bloom], partition_by=["p"])


def test_a_column_with_a_collation_is_refused(spark):
    if spark.version.startswith("3."):
        pytest.skip("Spark 3 has no collations")
    frame = spark.sql("select 'a' collate utf8_lcase as t, named_struct('u', 'a' collate utf8_lcase) as s")
    for column in ("t", "s.u"):
        with pytest.raises(ConfigError, match=f"bloom: column '{column}' has a collation"):
            ZTable.write(spark, "z.bloom_collated", frame, bloom=[column])


def test_filters_of_a_column_that_widens_or_goes_are_not_used(spark):
    frame = spark.sql("select cast(id as int) as id, cast(id as string) as t from range(100)")
    table = ZTable.write(spark, "z.bloom_schema", frame, bloom=["id", "t"])
    wider = spark.sql("select id + 10000000000 as id, cast(id as string) as t from range(10)")
    table.append(wider, on_schema_change="sync_all_columns")
    assert reads(table, "id = 10000000005") == 1
    assert reads(table, "id = 7") == 1
    assert reads(table, "id = 1000") == 0
    assert spark.sql("select count(*) from z.bloom_schema where id in (7, 10000000005)").head()[0] == 2
    table.append(spark.sql("select id + 500 as id from range(5)"), on_schema_change="sync_all_columns")
    assert table.build_index(bloom=[]).bloom == ("id",)
    assert spark.sql("select count(*) from z.bloom_schema where id = 502").head()[0] == 1


OF_MIXED = ["lower(email)", "d * -1", "date_format(ts, 'yyyy-MM-dd HH')"]


def same_rows_as_plain(spark, table, conditions):
    plain = table.read().localCheckpoint()
    for condition in conditions:
        assert same_rows(spark.table(table.name).where(condition), plain.where(condition)), condition


def opens_few(spark, table, present, absent):
    total = len(table.snapshot().files)
    for number in present:
        condition = f"lower(email) = '{lowered(spark, number)}'"
        assert spark.sql(f"select count(*) from {table.name} where {condition}").head()[0] == 1, number
        assert reads(table, condition) <= 1 + max(1, total // 10), number
    for number in absent:
        assert reads(table, f"lower(email) = '{lowered(spark, number)}'") <= max(1, total // 10), number


@pytest.mark.slow
def test_filters_of_expressions_skip_files_and_no_result_differs(spark):
    table = ZTable.write(
        spark, "z.bloom_of", mixed(spark, 0, 2_000), zorder=["n"], target_file_size="12kb", bloom=["id", *OF_MIXED]
    )
    assert table._opened.snapshot.layout["bloom"] == [["id"], *OF_MIXED]
    assert len(table.snapshot().files) >= 5
    opens_few(spark, table, [7, 8, 1_999], [2_000, 2_001])
    text = lowered(spark, 8)
    explanation = table.explain(f"lower(email) in ('{text}', 'nobody') and n >= 0")
    assert stage(explanation, "bloom").files_after <= 3 < stage(explanation, "bloom").files_before
    reasons = explanation.files.filter(pc.equal(explanation.files["stage"], "bloom"))["reason"].to_pylist()
    assert reasons[0].startswith("lower(email): its Bloom filter has no value IN (")
    conditions = [
        f"lower(email) = '{text}'", f"lower(email) <=> '{text}'", f"'{text}' = LOWER( email )", f"lower(email) <> '{text}'",
        f"not (lower(email) = '{text}')", f"lower(email) = '{text}' or n = 5", f"upper(email) = upper('{text}')",
        "lower(email) = ''", "lower(email) = 'é@x'", "lower(email) = lower('ẞİ@X')", "lower(email) = 'É@X'",
        "lower(email) is null", "lower(email) <=> null", "lower(email) in ('', null)", "lower(email) not in ('')",
        "d * -1 = 0", "d * -1 = -0.0D", "d * -1 = -55433", "d * -1 in (0, 5)",
        "date_format(ts, 'yyyy-MM-dd HH') = '1970-01-02 03'", "date_format(ts, 'yyyy-MM-dd HH') = '1970-01-02 05'",
    ]  # fmt: skip
    same_rows_as_plain(spark, table, conditions)
    zone = spark.conf.get("spark.sql.session.timeZone")
    try:
        spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
        same_rows_as_plain(spark, table, conditions)
        assert reads(table, "date_format(ts, 'yyyy-MM-dd HH') = 'never'") == len(table.snapshot().files)
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    assert reads(table, "date_format(ts, 'yyyy-MM-dd HH') = 'never'") <= 1
    files = table.snapshot().files["path"].to_pylist()
    assert table.drop_index(bloom=["lower(email)"]).bloom == ("id", *OF_MIXED[1:])
    assert reads(table, "lower(email) = 'nobody'") == len(files)
    built = table.build_index(bloom=["lower(email)"])
    assert (built.files_read, built.version) == (len(files), table.version)
    assert table.snapshot().files["path"].to_pylist() == files
    assert table.build_index(bloom=["lower(email)"]).files_read == 0
    opens_few(spark, table, [7, 8], [2_000])
    assert table.verify(data=True).num_rows == 0
    with pytest.raises(ConfigError, match=r"bloom: 'rand\(\)' can have no Bloom filter: it is not deterministic"):
        table.build_index(bloom=["rand()"])


@pytest.mark.slow
def test_every_way_to_write_keeps_the_filters_of_expressions(spark):
    table = ZTable.write(
        spark, "z.bloom_of_all", mixed(spark, 0, 2_000), zorder=["n"], target_file_size="12kb", bloom=OF_MIXED
    )
    table.append(mixed(spark, 2_000, 2_300))
    table.merge(mixed(spark, 2_250, 2_400), "id")
    table.delete("id = 9")
    opens_few(spark, table, [7, 2_001, 2_399], [9, 2_400])
    version = table.version
    table.cluster(rewrite_all=True)
    opens_few(spark, table, [7, 2_399], [9, 2_400])
    table.overwrite(mixed(spark, 3_000, 3_500))
    opens_few(spark, table, [3_001], [7])
    table.rollback(version=version)
    opens_few(spark, table, [7, 2_399], [9, 3_001])
    assert table.verify(data=True).num_rows == 0


@pytest.mark.slow
def test_logs_and_compactions_keep_the_filters_of_expressions(spark):
    table = ZTable.write(
        spark, "z.bloom_of_mor", mixed(spark, 0, 2_000), zorder=["n"], target_file_size="12kb", bloom=OF_MIXED[:1],
        table_type="merge_on_read", unique_key="id", compaction="off",
    )  # fmt: skip
    table.upsert(mixed(spark, 5_001, 5_002).selectExpr("7L as id", "n", "day", "email", "d", "ts"))
    table.delete("id = 9")
    for compacted in (False, True):
        if compacted:
            table.compact()
        for number, expected in ((7, []), (5_001, [7]), (8, [8]), (9, [])):
            condition = f"lower(email) = '{lowered(spark, number)}'"
            found = [row.id for row in spark.sql(f"select id from z.bloom_of_mor where {condition}").collect()]
            assert found == expected, (number, compacted)
        # Its own file, one by mistake, and logs.
        assert reads(table, f"lower(email) = '{lowered(spark, 8)}'") <= 4


def test_a_filter_of_an_expression_that_lacks_values_is_found_by_verify(spark):
    table = ZTable.write(spark, "z.bloom_of_wrong", mixed(spark, 10, 40), bloom=["lower(email)"])
    opened = table._opened
    (path,) = opened.files["path"].to_pylist()
    (column,) = opened.index.membership(opened.files).whole.columns
    wrong = filter_table([path], [TrackedColumn(column, pa.string())], {column: [bytes(32)]})
    (content,) = write_slices(opened.files, [wrong])
    with Transaction.begin(opened.timeline, Action.INDEXING, Operation.INDEXING) as transaction:
        new = slice_path(transaction.instant, content)
        opened.store.put(new, content)
        nothing = Change(opened.files[:0])
        transaction.commit(nothing, index=lambda head: {**head.index, "bloom_filters": (new,)})
    (cell,) = ZTable.for_name(spark, "z.bloom_of_wrong").verify(data=True).to_pylist()
    assert (cell["path"], cell["column"], cell["cell"], cell["found"]) == (
        path, "lower(email)", "bloom", "30 values that it lacks",
    )  # fmt: skip
