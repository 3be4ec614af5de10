"""The index is held against footers and data, and each wrong cell is named."""

import datetime as dt
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions

from dbt.adapters.zlayout.errors import UnsupportedError
from dbt.adapters.zlayout.index.column_slices import slice_bytes
from dbt.adapters.zlayout.index.slice_reading import read_slice
from dbt.adapters.zlayout.index.slice_writing import slice_path, write_slices
from dbt.adapters.zlayout.index.statistics.column_stats import with_column_paths
from dbt.adapters.zlayout.index.table_index import TableIndex
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog
from dbt.adapters.zlayout.table.ztable import ZTable
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles
from dbt.adapters.zlayout.timeline.timeline import Timeline
from dbt.adapters.zlayout.timeline.transactions.change import Change
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction

pytestmark = pytest.mark.newest_spark

EVERY_TYPE = """
    select id, cast(id % 100 as tinyint) t, cast(id as smallint) si, cast(id % 1000 as int) i,
      if(id % 50 = 0, null, cast(id as float) / 3) f,
      case when id % 997 = 0 then double('NaN') when id % 11 = 0 then -0.0D else id / 7D end g,
      cast(id / 3 as decimal(9, 2)) d, cast(id as decimal(38, 6)) big,
      concat(repeat('é', cast(id % 60 as int)), if(id % 40 = 0, '\\U0010FFFF', 'x'), id) s, cast(concat('b', id) as binary) b,
      id % 2 = 0 flag, date_add(date'1500-01-01', cast(id * 40 as int)) day,
      timestamp_micros(id * 1000003 - 30000000000000000) at, cast(timestamp_micros(id * 7) as timestamp_ntz) local,
      named_struct('x', if(id % 3 = 0, null, id), 'y', named_struct('z', concat('z', id))) st, array(id) l,
      cast(null as string) nothing
    from range(4000)
"""


@pytest.fixture
def name(spark, request):
    name = f"z.v_{request.node.name.split('[')[0][-50:]}"
    spark.sql(f"drop table if exists {name}")
    return name


def folder_of(table):
    return Path(unquote(urlsplit(table.location).path))


@pytest.mark.slow
@pytest.mark.parametrize("writer", ["arrow", pytest.param("spark", marks=pytest.mark.exhaustive)])
def test_a_table_as_it_was_written_has_no_wrong_cell(spark, name, writer):
    name = f"{name}_{writer}"
    table = ZTable.write(
        spark,
        name,
        spark.sql(EVERY_TYPE),
        zorder=["id", "i"],
        target_file_size="60kb",
        writer=writer,
        stats_columns=100,
    )
    assert len(table.snapshot().files) >= 3
    assert table.verify().to_pylist() == []
    assert table.verify(data=True).to_pylist() == []
    table.merge(spark.sql(EVERY_TYPE).where("id < 500"), unique_key="id")
    table.delete("id between 1000 and 1200")
    table.append(spark.sql(EVERY_TYPE).where("id < 3"))
    assert table.verify(data=True).to_pylist() == []
    table.refresh_index()
    assert table.verify(data=True).to_pylist() == []


@pytest.mark.slow
def test_an_indexed_table_of_another_writer_has_no_wrong_cell(spark, name, old_times):
    spark.sql(EVERY_TYPE).withColumn("p", pc_day()).write.partitionBy("p").saveAsTable(name, format="parquet")
    table = ZTable.adopt(spark, name, stats_columns=100)
    assert table.verify(data=True).to_pylist() == []
    spark.sql(EVERY_TYPE).withColumn("p", pc_day()).where("id < 9").write.insertInto(name)
    assert table.verify(data=True).to_pylist() == []
    table.refresh_index()
    assert table.verify(data=True).to_pylist() == []


@pytest.fixture
def old_times(spark):
    """Spark writes days and times before 1900 as they are; Spark 3 wants to be told so."""
    settings = [
        f"spark.sql.parquet.{each}RebaseModeIn{way}" for each in ("int96", "datetime") for way in ("Read", "Write")
    ]
    for each in settings:
        spark.conf.set(each, "CORRECTED")
    yield
    for each in settings:
        spark.conf.unset(each)


def pc_day():
    from pyspark.sql import functions

    return functions.expr("cast(id % 3 as int)")


def tampered(spark, name, table, column, **cells):
    """Makes a version whose index says something else of the first file by path; digests are as they should be."""
    store = table._opened.store
    snapshot = table.snapshot()
    stats = TableIndex(store, snapshot.index).stored(snapshot.files).sort_by("path")
    number = stats.schema.get_field_index(column)
    rows = stats.column(number).combine_chunks().to_pylist()
    rows[0] = {**rows[0], **cells}
    kind = stats.schema.field(number).type
    changed = stats.set_column(number, pa.field(column, kind), pa.array(rows, kind))
    content = write_slices(snapshot.files, changed.replace_schema_metadata(stats.schema.metadata))["column_stats"]
    with Transaction.begin(Timeline(store), Action.INDEXING, Operation.INDEXING) as transaction:
        new = slice_path("column_stats", transaction.instant, content)
        store.put(new, content)
        nothing = DataFiles.empty(table.snapshot().partition_by)
        transaction.commit(Change(nothing), index=lambda head: {**head.index, "column_stats": (new,)})
    Catalog(spark).forget_relation(Catalog(spark).name(name))
    return ZTable.for_name(spark, name), stats.column("path")[0].as_py()


@pytest.mark.parametrize(
    ("column", "cells", "wrong"),
    [
        ("c0", {"min": 3}, [("id", "min", "3", "0")]),
        ("c0", {"max": 5}, [("id", "max", "5", "199")]),
        ("c0", {"min": -4}, [("id", "min_exact", "-4", "0")]),
        ("c0", {"min": -4, "min_exact": False}, []),
        ("c0", {"max": None, "max_exact": False}, []),
        ("c0", {"null_count": 7}, [("id", "null_count", "7", "0")]),
        ("c0", {"value_count": 1}, [("id", "value_count", "1", "200")]),
        ("c1", {"max": "w", "max_exact": False}, [("w", "max", "w", "w99")]),
        ("c1", {"max": "x", "max_exact": False}, []),
        (
            "c2",
            {"min": 1.0, "max": 2.0, "min_exact": True, "max_exact": True},
            [("e", "max", "2", "no value"), ("e", "min", "1", "no value")],
        ),
    ],
)
def test_each_wrong_cell_is_named(spark, name, column, cells, wrong):
    query = "select id, concat('w', id) w, cast(null as double) e from range(200)"
    table = ZTable.write(spark, name, spark.sql(query), zorder=["id"])
    table, path = tampered(spark, name, table, column, **cells)
    found = [tuple(row.values()) for row in table.verify(data=True).to_pylist() if not row["path"].endswith("/")]
    assert found == [(path, *each) for each in wrong]
    footers = [tuple(row.values())[1:3] for row in table.verify().to_pylist() if not row["path"].endswith("/")]
    assert footers == [each[:2] for each in wrong]


def test_only_the_data_tells_a_wrong_count_of_nan(spark, name):
    query = "select id, if(id = 4, double('NaN'), id / 2) x from range(50)"
    table = ZTable.write(spark, name, spark.sql(query), zorder=["id"])
    table, path = tampered(spark, name, table, "c1", nan_count=0)
    assert table.verify().num_rows == 0
    assert [row for row in table.verify(data=True).to_pylist() if row["path"] == path] == [
        {"path": path, "column": "x", "cell": "nan_count", "stored": "0", "found": "1"}
    ]


def test_a_wrong_partition_is_named_by_its_folder(spark, name):
    query = "select id, cast(id % 2 as int) p from range(100)"
    table = ZTable.write(spark, name, spark.sql(query), zorder=["id"], partition_by=["p"])
    store = table._opened.store
    (path,) = table.snapshot().index["partition_stats"]
    part = read_slice(store, path)
    stats = pa.table({column: part.column(column, pytest.fail) for column in part.types})
    rows = stats.column("c0").to_pylist()
    odd = stats.column("partition.p").to_pylist().index("1")
    rows[odd] = {**rows[odd], "min": 50}
    kind, position = stats.schema.field("c0").type, stats.schema.get_field_index("c0")
    changed = stats.set_column(position, pa.field("c0", kind), pa.array(rows, kind))
    content = slice_bytes(with_column_paths(changed, list(part.paths)), first_paths=False)
    with Transaction.begin(Timeline(store), Action.INDEXING, Operation.INDEXING) as transaction:
        new = slice_path("partition_stats", transaction.instant, content)
        store.put(new, content)
        transaction.commit(
            Change(DataFiles.empty(("p",))), index=lambda head: {**head.index, "partition_stats": (new,)}
        )
    assert ZTable.for_name(spark, name).verify().to_pylist() == [
        {"path": "p=1/", "column": "id", "cell": "min", "stored": "50", "found": "1"}
    ]


def test_files_that_are_not_as_the_index_knows_them_are_passed_over(spark, name, tmp_path):
    folder = tmp_path / "t"
    folder.mkdir()
    for number in range(2):
        pq.write_table(pa.table({"id": [number], "at": [dt.date(2024, 1, 1)]}), folder / f"f{number}.parquet")
    spark.sql(f"create table {name} (id bigint, at date) using parquet location '{folder}'")
    table = ZTable.adopt(spark, name)
    pq.write_table(pa.table({"id": [77, 78, 79]}), folder / "f0.parquet")
    (folder / "f1.parquet").unlink()
    assert table.verify(data=True).num_rows == 0
    assert pc.all(
        pc.is_in(table.index_status().column("path"), value_set=pa.array(["f0.parquet", "f1.parquet"]))
    ).as_py()


def test_a_verdict_counts_files_once_and_does_not_count_the_manifest(spark, name):
    table = ZTable.write(spark, name, spark.sql("select id k from range(2000)"), zorder=["k"], target_file_size="4kb")
    folder, files = folder_of(table), len(table.snapshot().files)
    assert files > 2
    manifest = folder / "_spark_metadata" / f"{table.version}.compact"
    whole = manifest.read_text()
    manifest.write_text("\n".join(whole.splitlines()[:-1]))
    (folder / "_spark_metadata" / f".{manifest.name}.crc").unlink(missing_ok=True)
    table = ZTable.for_name(spark, name)
    assert table.information()["stale_files"] == 0
    left = f"the manifest of version {table.version} lists other files than its log entry"
    assert [each.text for each in table.verdict().problems] == [
        f"an earlier commit left work to the next writer: {left}"
    ]
    assert table.layout_report().verdict == table.verdict()
    manifest.write_text(whole)
    overwritten = folder / table.snapshot().files["path"][0].as_py()
    pq.write_table(pa.table({"k": pa.array([1], pa.int64())}), overwritten)
    assert ZTable.for_name(spark, name).information()["stale_files"] == 1


def test_a_file_that_is_gone_is_named_by_every_check_and_dropped_on_demand(spark, name):
    table = ZTable.write(spark, name, spark.range(3000), zorder=["id"], target_file_size="4kb")
    paths = table.snapshot().files["path"].to_pylist()
    lost, damaged = folder_of(table) / paths[0], folder_of(table) / paths[1]
    rows = dict(zip(paths, table.snapshot().files["row_count"].to_pylist(), strict=True))
    content = damaged.read_bytes()
    lost.unlink()
    damaged.write_bytes(b"no Parquet")
    for data in (False, True):
        found = {row["path"]: row for row in table.verify(data).to_pylist()}
        assert set(found) == {paths[0], paths[1]}
        assert {row["cell"] for row in found.values()} == {"file"}
        assert found[paths[0]]["found"].startswith("not in the folder")
        assert "drop_missing" in found[paths[1]]["found"]
    damaged.write_bytes(content)
    assert "drop_missing" in dict(zip(*table.index_status().to_pydict().values(), strict=True))[paths[0]]
    before = table.version
    done = table.refresh_index()
    assert (done.missing, done.files_dropped, table.version) == ((paths[0],), 0, before)
    done = table.refresh_index(drop_missing=True)
    assert (done.missing, done.files_dropped, table.version) == ((), 1, before + 1)
    assert spark.table(name).count() == 3000 - rows[paths[0]]
    assert table.verify().num_rows == table.index_status().num_rows == 0
    assert table.refresh_index(drop_missing=True).version == before + 1


@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
def test_a_table_of_one_file_that_is_gone_is_empty_once_its_rows_are_given_up(spark, name, table_type):
    options = {"unique_key": "id"} if table_type == "merge_on_read" else {}
    table = ZTable.write(spark, name, spark.range(10), table_type=table_type, **options)
    for path in table.snapshot().files["path"].to_pylist():
        (folder_of(table) / path).unlink()
    assert len(table.refresh_index().missing) == 1
    assert table.refresh_index(drop_missing=True).files_dropped == 1
    assert spark.table(name).count() == 0
    assert table.verify().num_rows == table.index_status().num_rows == 0


def test_rows_of_a_merge_on_read_table_are_counted_without_those_given_up(spark, name):
    frame = spark.range(3000).withColumn("p", functions.col("id") % 2)
    table = ZTable.write(spark, name, frame, table_type="merge_on_read", unique_key=["p", "id"], partition_by=["p"])
    table.upsert(spark.sql("select 0L id, 0L p union all select 5000L, 0L"))
    (lost,) = (each for each in table.snapshot().files if each.path.startswith("p=1/"))
    (folder_of(table) / lost.path).unlink()
    assert table.refresh_index(drop_missing=True).rows_dropped == 1500
    assert table.information()["rows"] == spark.table(name).count() == 1501


def test_a_base_file_that_logs_change_is_not_dropped(spark, name):
    table = ZTable.write(spark, name, spark.range(10), table_type="merge_on_read", unique_key="id")
    table.upsert(spark.range(3))
    (base,) = (path for path in table.snapshot().files["path"].to_pylist() if ".log." not in path)
    (folder_of(table) / base).unlink()
    with pytest.raises(UnsupportedError, match=r"is in a file group with logs.*Nothing was dropped"):
        table.refresh_index(drop_missing=True)


def test_data_is_verified_where_words_of_sql_are_reserved(spark, name):
    table = ZTable.write(spark, name, spark.sql("select id k from range(10)"), lookup=["k"])
    reserved = ("spark.sql.ansi.enabled", "spark.sql.ansi.enforceReservedKeywords")
    for key in reserved:
        spark.conf.set(key, "true")
    try:
        assert table.verify(data=True).num_rows == 0
    finally:
        for key in reserved:
            spark.conf.unset(key)
