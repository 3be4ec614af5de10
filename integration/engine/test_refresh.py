"""The index is brought to the live files, whoever wrote them; whatever state it is in, queries give the same rows."""

import datetime as dt
import os
import time
from decimal import Decimal
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from comparing import same_rows

from dbt.adapters.zlayout import enable
from dbt.adapters.zlayout.errors import UnsupportedError
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog
from dbt.adapters.zlayout.spark.read.relations import installed
from dbt.adapters.zlayout.table.ztable import ZTable

pytestmark = pytest.mark.newest_spark

UTC = dt.timezone.utc


@pytest.fixture
def name(spark, request):
    enable(spark)
    name = f"z.r_{request.node.name.split('[')[0][-50:]}"
    spark.sql(f"drop table if exists {name}")
    return name


def folder_of(table):
    return Path(unquote(urlsplit(table.location).path))


def external(spark, name, folder, columns, partitioned_by=""):
    folder.mkdir(parents=True, exist_ok=True)
    spark.sql(f"create table {name} ({columns}) using parquet {partitioned_by} location '{folder}'")


def put(folder, number, rows, **options):
    """A file of pyarrow's writer."""
    schema = options.pop("schema", None)
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(rows, schema=schema), folder / f"part-{number}.parquet", **options)


def counted(spark, name, condition):
    """Rows that match, and files read of files there are."""
    count = spark.sql(f"select count(*) from {name} where {condition}").collect()[0][0]
    return count, installed(Catalog(spark), Catalog(spark).name(name)).last_scan


def test_files_added_changed_and_removed_by_others_are_brought_in(spark, name, tmp_path):
    folder = tmp_path / "t"
    external(spark, name, folder, "id bigint, word string")
    for number in range(5):
        put(folder, number, {"id": [number * 10, number * 10 + 9], "word": ["a", None]})
    table = ZTable.adopt(spark, name)
    assert table.refresh_index().version == table.version == 0

    put(folder, 7, {"id": [70], "word": ["z"]})
    put(folder, 1, {"id": [500, 600, 700], "word": ["x", "y", None]})
    (folder / "part-2.parquet").unlink()
    done = table.refresh_index()
    assert (done.files_added, done.files_changed, done.files_removed, done.files_rebuilt) == (1, 1, 1, 0)
    assert (done.version, table.version) == (1, 1)
    assert table.index_status().num_rows == 0
    assert counted(spark, name, "id = 600") == (1, (1, 5))
    assert counted(spark, name, "id between 20 and 29") == (0, (0, 5))
    assert counted(spark, name, "word = 'z'") == (1, (1, 5))
    assert ZTable.for_name(spark, name).refresh_index().version == 1


def test_a_refresh_opens_only_the_footers_that_are_new(spark, name, tmp_path, monkeypatch):
    from dbt.adapters.zlayout.spark.files.existing_files import footers_found
    from dbt.adapters.zlayout.spark.index import collected_statistics as collected

    folder = tmp_path / "t"
    external(spark, name, folder, "id bigint")
    for number in range(20):
        put(folder, number, {"id": [number]})
    table = ZTable.adopt(spark, name)
    opened = []
    monkeypatch.setattr(
        collected, "footers_found", lambda store, paths: opened.extend(paths) or footers_found(store, paths)
    )
    put(folder, 20, {"id": [20]})
    table.refresh_index()
    assert opened == ["part-20.parquet"]
    table.refresh_index()
    assert opened == ["part-20.parquet"]


def test_an_index_is_brought_to_a_partitioned_table_with_new_partitions(spark, name):
    spark.sql(f"create table {name} (id bigint, `day` date) using parquet partitioned by (`day`)")
    spark.sql(f"insert into {name} select id, date'2024-01-01' from range(10)")
    table = ZTable.adopt(spark, name)
    spark.sql(f"insert into {name} select id + 100, date'2024-01-02' from range(10)")
    spark.sql(f"insert into {name} select id + 200, null from range(10)")
    assert table.refresh_index().files_added >= 2
    assert counted(spark, name, "id = 105")[0] == 1
    kept, total = counted(spark, name, "id = 105")[1]
    assert kept == 1 < total
    assert counted(spark, name, "id >= 200 and `day` is null")[0] == 10


@pytest.mark.slow
def test_what_footers_leave_open_comes_from_the_data(spark, name, tmp_path):
    folder = tmp_path / "t"
    columns = (
        "i int, f double, s string, ts timestamp, d decimal(10,2), b boolean, day date, p struct<q: struct<r: string>>"
    )
    external(spark, name, folder, columns)
    for number in range(4):
        base = number * 100
        rows = {
            "i": pa.array([base, None, base + 5], pa.int32()),
            "f": pa.array([base + 0.5, float("nan") if number == 1 else 1.0 + base, -0.0 if number == 0 else None]),
            "s": pa.array([f"k{number}", f"k{number}\U0010ffff" * 40, None]),
            "ts": pa.array([dt.datetime(2024, 1 + number, 1, tzinfo=UTC)] * 3, pa.timestamp("us", "UTC")),
            "d": pa.array([Decimal(base), None, Decimal("0.01") + base], pa.decimal128(10, 2)),
            "b": pa.array([number % 2 == 0] * 3),
            "day": pa.array([dt.date(2024, 1, 1 + number)] * 3),
            "p": pa.array([{"q": {"r": f"r{number}"}}, {"q": None}, None]),
        }
        put(folder, number, rows, write_statistics=False)
    table = ZTable.adopt(spark, name)
    assert table.refresh_index().version == 0
    conditions = {
        "i = 105": 1,
        "f > 250": 2,  # NaN is above every number
        "f < 0.25": 1,
        "s = 'k3'": 1,
        "s > 'k3z'": 1,
        "s > 'k4'": 0,
        "ts >= timestamp'2024-04-01 00:00:00Z'": 1,
        "d = 300.01": 1,
        "not b": 2,
        "day = date'2024-01-03'": 1,
        "p.q.r = 'r2'": 1,
        "p.q.r is null and i = 205": 1,
    }
    plain = spark.read.schema(spark.table(name).schema).parquet(str(folder))
    for condition, files in conditions.items():
        assert same_rows(spark.sql(f"select * from {name} where {condition}"), plain.where(condition)), condition
        count, (kept, total) = counted(spark, name, condition)
        assert total == 4
        assert kept <= files if count else kept == files, (condition, kept)


@pytest.mark.parametrize("writer", ["pyarrow int96", "spark int96", "spark micros"])
def test_timestamps_of_every_writer_are_skipped_by(spark, name, tmp_path, writer):
    folder = tmp_path / "t"
    days = [
        dt.datetime(1500, 6, 1, tzinfo=UTC),
        dt.datetime(1890, 1, 1, tzinfo=UTC),
        dt.datetime(2024, 1, 1, tzinfo=UTC),
    ]
    if writer == "pyarrow int96":
        for number, start in enumerate(days):
            values = pa.array([start, start + dt.timedelta(hours=5, microseconds=1), None], pa.timestamp("us", "UTC"))
            put(folder, number, {"at": values}, use_deprecated_int96_timestamps=True)
    else:
        kind = "INT96" if writer == "spark int96" else "TIMESTAMP_MICROS"
        modes = [f"spark.sql.parquet.{each}RebaseModeInWrite" for each in ("int96", "datetime")]
        settings = {"spark.sql.parquet.outputTimestampType": kind, **dict.fromkeys(modes, "CORRECTED")}
        for key, value in settings.items():
            spark.conf.set(key, value)
        try:
            for start in days:
                frame = spark.sql(
                    f"select timestamp'{start:%Y-%m-%d %H:%M:%S}Z' + make_interval(0,0,0,0,id) at from range(3)"
                )
                frame.coalesce(1).write.mode("append").parquet(str(folder))
        finally:
            for key in settings:
                spark.conf.unset(key)
    external(spark, name, folder, "at timestamp")
    table = ZTable.adopt(spark, name)
    assert table.refresh_index().version == 0
    plain = spark.read.schema("at timestamp").parquet(str(folder))
    for condition in (
        "at > timestamp'2023-12-01'",
        "at = timestamp'2024-01-01 00:00:00Z'",
        "at < timestamp'1600-01-01'",
    ):
        for mode in ("CORRECTED", "LEGACY"):
            spark.conf.set("spark.sql.parquet.int96RebaseModeInRead", mode)
            spark.conf.set("spark.sql.parquet.datetimeRebaseModeInRead", mode)
            try:
                assert same_rows(spark.sql(f"select * from {name} where {condition}"), plain.where(condition)), (
                    condition
                )
            finally:
                spark.conf.unset("spark.sql.parquet.int96RebaseModeInRead")
                spark.conf.unset("spark.sql.parquet.datetimeRebaseModeInRead")
    # Not run: Spark 3 refuses to read such old times unless it is told how.
    explained = table.explain("at < timestamp'1950-01-01' and at > timestamp'1949-01-01'")
    kept, total = explained.kept_files, explained.total_files
    # Old times of a writer that does not say its calendar are unknown; everything else is known.
    assert (kept, total) == ((2, 3) if writer == "pyarrow int96" else (0, 3))


@pytest.mark.exhaustive
def test_a_zone_that_moves_foreign_int96_does_not_lose_rows(spark, name, tmp_path):
    folder = tmp_path / "t"
    for number in range(3):
        at = dt.datetime(2024, 1, 1 + 10 * number, 12, tzinfo=UTC)
        put(folder, number, {"at": pa.array([at], pa.timestamp("us", "UTC"))}, use_deprecated_int96_timestamps=True)
    external(spark, name, folder, "at timestamp")
    ZTable.adopt(spark, name)
    settings = {"spark.sql.parquet.int96TimestampConversion": "true", "spark.sql.session.timeZone": "America/New_York"}
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        moved = [
            row.at
            for row in spark.read.schema("at timestamp")
            .parquet(str(folder))
            .selectExpr("cast(at as string) at")
            .collect()
        ]
        for at in moved:
            assert spark.sql(f"select count(*) from {name} where at = timestamp'{at}'").collect()[0][0] == 1
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        spark.conf.unset("spark.sql.parquet.int96TimestampConversion")
    assert counted(spark, name, "at > timestamp'2024-01-15 00:00:00'")[1] == (1, 3)


def test_a_column_with_a_default_is_not_null_where_a_file_lacks_it(spark, name):
    spark.sql(f"create table {name} (id bigint) using parquet")
    spark.sql(f"insert into {name} values (1)")
    table = ZTable.adopt(spark, name)
    spark.sql(f"alter table {name} add column (c int default 5)")
    spark.sql(f"insert into {name} values (2, 7)")
    assert table.refresh_index().files_added == 1
    assert [row.id for row in spark.sql(f"select id from {name} where c = 5").collect()] == [1]
    assert spark.sql(f"select count(*) from {name} where c is null").collect()[0][0] == 0
    assert counted(spark, name, "c = 7 and id = 2")[1] == (1, 2)
    copy = ZTable.write(spark, f"{name}_copy", spark.table(name), zorder=["id"])
    copy.append(spark.sql("select 3 id, 8 c"))
    assert spark.sql(f"select count(*) from {name}_copy where c = 5").collect()[0][0] == 1


def test_a_file_that_is_no_parquet_file_is_told_and_the_others_are_indexed(spark, name, tmp_path):
    folder = tmp_path / "t"
    external(spark, name, folder, "id bigint")
    put(folder, 0, {"id": [1]})
    table = ZTable.adopt(spark, name)
    put(folder, 1, {"id": [2]})
    (folder / "broken.parquet").write_bytes(b"PAR1 nothing")
    done = table.refresh_index()
    assert (done.files_added, done.unreadable) == (1, ("broken.parquet",))
    again = table.refresh_index()
    assert (again.version, again.unreadable) == (done.version, ("broken.parquet",))
    (folder / "broken.parquet").unlink()
    assert counted(spark, name, "id = 2") == (1, (1, 2))


def test_a_data_page_that_cannot_be_read_leaves_its_file_unknown(spark, name, tmp_path):
    folder = tmp_path / "t"
    external(spark, name, folder, "id bigint")
    put(folder, 0, {"id": list(range(1000))}, write_statistics=False, compression="none")
    raw = bytearray((folder / "part-0.parquet").read_bytes())
    raw[4:40] = os.urandom(36)
    (folder / "part-0.parquet").write_bytes(raw)
    table = ZTable.adopt(spark, name)
    version = table.refresh_index().version
    assert table.refresh_index().version == version
    assert table.explain("id = -5").kept_files == 1


@pytest.mark.exhaustive
def test_names_are_taken_as_spark_takes_them(spark, name, tmp_path):
    folder = tmp_path / "t x+y"
    external(spark, name, folder, "`a.b` bigint, `it's` string")
    for number in range(2):
        rows = {"a.b": [number * 10], "it's": [f"w{number}"]}
        pq.write_table(pa.table(rows), folder / f"part %20 {{{number}}}?.parquet", write_statistics=False)
    ZTable.adopt(spark, name)
    assert counted(spark, name, "`a.b` = 10") == (1, (1, 2))
    assert counted(spark, name, "`it's` = 'w0'") == (1, (1, 2))


def managed(spark, name, files=8, **options):
    frame = spark.sql(f"select id, id % 7 as k, concat('w', id) as w from range({files * 500})").repartitionByRange(
        files, "id"
    )
    return ZTable.write(spark, name, frame, zorder=["id"], target_file_size="8kb", **options)


def index_files(table, partition="*"):
    return sorted(folder_of(table).glob(f".zlayout/index/{partition}/*.stats"))


CONDITIONS = ("id = 1234", "id < 100 and k = 3", "w = 'w77'", "id is null", "k in (1, 2) and id > 3900")


def same_as_plain(spark, name):
    plain = spark.read.parquet(*spark.table(name).inputFiles())
    return all(same_rows(spark.sql(f"select * from {name} where {each}"), plain.where(each)) for each in CONDITIONS)


def truncate(paths):
    for path in paths:
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def garbage(paths):
    for path in paths:
        path.write_bytes(os.urandom(path.stat().st_size))


def swap(paths):
    contents = [path.read_bytes() for path in paths]
    for path, content in zip(paths, contents[1:] + contents[:1], strict=True):
        path.write_bytes(content)


def older(paths):
    first = {}
    for path in paths:
        path.write_bytes(first.setdefault(path.parent, path.read_bytes()))


def gone(paths):
    for path in paths:
        path.unlink()


def flip(paths):
    """Damages one chunk of each slice."""
    for path in paths:
        content = bytearray(path.read_bytes())
        content[len(content) // 4] ^= 1
        path.write_bytes(content)


REPRESENTATIVE = [
    (flip, "*"),
    (truncate, "*"),
    (garbage, "column_stats"),
    (swap, "partition_stats"),
    (older, "*"),
    (gone, "column_stats"),
]
OTHERS = [
    (damage, partition)
    for damage in (flip, truncate, garbage, swap, older, gone)
    for partition in ("column_stats", "partition_stats", "*")
    if (damage, partition) not in REPRESENTATIVE
]


@pytest.mark.parametrize(
    ("damage", "partition"),
    [
        *(pytest.param(*each, marks=pytest.mark.slow) for each in REPRESENTATIVE),
        *(pytest.param(*each, marks=pytest.mark.exhaustive) for each in OTHERS),
    ],
)
def test_any_state_of_the_index_gives_the_same_rows_and_is_repaired(spark, name, damage, partition):
    name = f"{name}_{damage.__name__}_{partition.replace('*', 'all')}"
    table = managed(spark, name, retain_hours=0, retain_versions=1)
    table.append(spark.sql("select id + 10000 id, 3 k, 'new' w from range(100)"))
    table.delete("id = 5")
    kept = [table.explain(each).kept_files for each in CONDITIONS]
    damage(index_files(table, partition))
    Catalog(spark).forget_relation(Catalog(spark).name(name))
    assert same_as_plain(spark, name)
    broken = ZTable.for_name(spark, name)
    assert all(broken.explain(each).kept_files >= most for each, most in zip(CONDITIONS, kept, strict=True))
    done = broken.refresh_index()
    assert done.repaired
    assert broken.index_status().num_rows == 0
    assert [broken.explain(each).kept_files for each in CONDITIONS] == kept
    assert [broken.explain(each).problems for each in CONDITIONS] == [()] * len(CONDITIONS)
    assert same_as_plain(spark, name)
    assert broken.refresh_index().version == done.version
    spark.sql(f"drop table {name}")


@pytest.mark.slow
def test_columns_that_get_statistics_later_get_them_for_old_files_too(spark, name):
    table = managed(spark, name, stats_columns=["k"])
    assert table.explain("w = 'w77'").skipped_files == 0
    from dbt.adapters.zlayout.config.table_config import parse_table_config

    settings = parse_table_config({"zorder": ["id"], "stats_columns": 32, "target_file_size": "8kb"})
    table.append(spark.sql("select 100000 id, 1 k, 'x' w"), settings=settings)
    files = len(table.snapshot().files)
    assert table.explain("w > 'wz'").kept_files >= files - 1
    done = table.refresh_index()
    assert done.files_rebuilt == files - 1
    assert table.explain("w > 'wz'").kept_files == 1
    assert same_as_plain(spark, name)
    assert table.refresh_index().version == done.version


def test_orphans_are_taken_in_on_demand_only(spark, name):
    table = managed(spark, name)
    before = spark.table(name).count()
    folder = folder_of(table)
    other = spark.sql("select id + 50000 as id, 1L as k, 'orphan' as w from range(20)").coalesce(1)
    other.write.parquet(str(folder.parent / "elsewhere"), mode="overwrite")
    (stray,) = folder.parent.glob("elsewhere/*.parquet")
    stray.rename(folder / "part-stray.parquet")
    assert table.refresh_index().files_added == 0
    assert spark.table(name).count() == before
    done = table.refresh_index(take_orphans=True)
    assert done.files_added == 1
    assert table.history(1).to_pylist()[0]["operation"] == "append"
    assert spark.table(name).count() == before + 20
    assert table.explain("id = 50003").kept_files == 1
    assert table.index_status().num_rows == 0
    assert table.refresh_index(take_orphans=True).version == done.version
    table.delete("w = 'orphan'")
    assert spark.table(name).count() == before


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        pytest.param("select 1L as id, 1L as k", "lacks column `w`", marks=pytest.mark.slow),
        pytest.param(
            "select 1L as id, 1L as k, 'x' as w, 1 as more",
            "column `more` is not in the table",
            marks=pytest.mark.slow,
        ),
        ("select 1 as id, 1L as k, 'x' as w", 'column `id` is "integer", not "long"'),
    ],
)
def test_an_orphan_that_does_not_fit_is_refused_by_name(spark, name, query, problem, tmp_path):
    table = managed(spark, name)
    spark.sql(query).coalesce(1).write.parquet(str(tmp_path / "o"))
    (stray,) = (tmp_path / "o").glob("*.parquet")
    stray.rename(folder_of(table) / "stray.parquet")
    version = table.version
    with pytest.raises(UnsupportedError, match="stray.parquet does not fit") as error:
        table.refresh_index(take_orphans=True)
    assert problem in str(error.value)
    assert ZTable.for_name(spark, name).version == version
    (folder_of(table) / "stray.parquet").unlink()


def test_an_orphan_outside_of_the_partitions_is_refused_and_one_inside_is_taken(spark, name, tmp_path):
    frame = spark.sql("select id, cast(id % 3 as int) p from range(300)")
    table = ZTable.write(spark, name, frame, zorder=["id"], partition_by=["p"])
    spark.sql("select 7L as id").coalesce(1).write.parquet(str(tmp_path / "o"))
    (stray,) = (tmp_path / "o").glob("*.parquet")
    content = stray.read_bytes()
    folder = folder_of(table)
    for wrong, message in (("stray.parquet", "is outside of"), ("p=word/stray.parquet", "p=word is not a value")):
        (folder / wrong).parent.mkdir(exist_ok=True)
        (folder / wrong).write_bytes(content)
        with pytest.raises(UnsupportedError, match=message):
            table.refresh_index(take_orphans=True)
        (folder / wrong).unlink()
    (folder / "p=9").mkdir()
    (folder / "p=9/stray.parquet").write_bytes(content)
    assert table.refresh_index(take_orphans=True).files_added == 1
    assert spark.sql(f"select id, p from {name} where p = 9").collect() == [(7, 9)]


def test_orphans_in_partitions_of_any_name_are_taken(spark, name):
    values = ["b", "a b", "50%", "x/y", "é", "a=b", "[x]{y}*?", "%20", "+"]
    listed = ", ".join(f"'{each}'" for each in values)
    frame = spark.sql(f"select 1L as id, explode(array({listed})) as p")
    table = ZTable.write(spark, name, frame, zorder=["id"], partition_by=["p"])
    spark.sql(f"insert into {name} partition (p) select 9L as id, explode(array({listed})) as p")
    assert table.refresh_index(take_orphans=True).files_added == len(values)
    spark.catalog.refreshTable(name)
    assert sorted(map(tuple, spark.table(name).collect())) == sorted((n, each) for n in (1, 9) for each in values)


def test_what_a_dead_writer_left_is_never_taken(spark, name):
    table = managed(spark, name)
    folder = folder_of(table)
    live = next(folder.glob("*.parquet"))
    (folder / "00000000000000aa_20200101000000000.parquet").write_bytes(live.read_bytes())
    before = spark.table(name).count()
    assert table.refresh_index(take_orphans=True).files_added == 0
    assert spark.table(name).count() == before


def test_orphans_of_an_indexed_table_are_no_orphans(spark, name, tmp_path):
    external(spark, name, tmp_path / "t", "id bigint")
    put(tmp_path / "t", 0, {"id": [1]})
    with pytest.raises(UnsupportedError, match="is only indexed"):
        ZTable.adopt(spark, name).refresh_index(take_orphans=True)


def test_a_refresh_follows_what_others_commit_meanwhile(spark, name, monkeypatch):
    from dbt.adapters.zlayout.spark.index import refresh

    table = managed(spark, name)
    gone(index_files(table, "column_stats")[:1])
    collect = refresh.collect

    def and_an_append(*args):
        monkeypatch.setattr(refresh, "collect", collect)
        ZTable.for_name(spark, name).append(spark.sql("select 999999L id, 1L k, 'meanwhile' w"))
        return collect(*args)

    monkeypatch.setattr(refresh, "collect", and_an_append)
    before = table.version
    done = table.refresh_index()
    assert done.version == before + 2
    assert [row["operation"] for row in table.history(2).to_pylist()] == ["indexing", "append"]
    assert table.explain("id = 999999").kept_files == 1
    assert table.index_status().num_rows == 0
    assert table.refresh_index().version == done.version
    assert same_as_plain(spark, name)


def test_an_old_version_stays_readable_and_a_rollback_finds_an_index(spark, name):
    table = managed(spark, name)
    version, rows = table.version, spark.table(name).count()
    gone(index_files(table))
    table.refresh_index()
    assert table.read(version=version).count() == rows
    table.rollback(version)
    assert table.explain("id = 1234").skipped_files > 0
    assert table.changes(version).count() == 0


def test_a_table_made_again_by_others_with_other_partitions_is_indexed_anew(spark, name, tmp_path):
    folder = tmp_path / "t"
    external(spark, name, folder, "id bigint")
    put(folder, 0, {"id": [1]})
    table = ZTable.adopt(spark, name)
    properties = {row.key: row.value for row in spark.sql(f"show tblproperties {name}").collect()}
    spark.sql(f"drop table {name}")
    (folder / "part-0.parquet").unlink()
    kept = f"tblproperties ('zlayout.table_id'='{properties['zlayout.table_id']}')"
    spark.sql(f"create table {name} (id bigint, p int) using parquet partitioned by (p) {kept} location '{folder}'")
    spark.sql(f"insert into {name} values (5, 1), (6, 2)")
    again = ZTable.for_name(spark, name)
    assert again.refresh_index().files_added == 2
    assert counted(spark, name, "id = 5") == (1, (1, 2))
    assert table.location == again.location


@pytest.mark.exhaustive
def test_a_thousand_files_are_refreshed_in_a_moment(spark, name, tmp_path):
    folder = tmp_path / "t"
    external(spark, name, folder, "id bigint, x double")
    for number in range(1000):
        put(folder, number, {"id": np.arange(3) + number * 10, "x": np.zeros(3)}, write_statistics=["id"])
    table = ZTable.adopt(spark, name)
    assert counted(spark, name, "id = 42") == (1, (0, 1000)) or counted(spark, name, "id = 41") == (1, (1, 1000))
    started = time.perf_counter()
    assert table.refresh_index().version == 0
    assert time.perf_counter() - started < 10
