"""A table whose metadata is damaged: an error that names the file, and a full refresh that makes the table anew."""

import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from dbt.adapters.zlayout.errors import CorruptError, NewerFormatError, UnsupportedError, WriteError
from dbt.adapters.zlayout.publish import spark_manifest
from dbt.adapters.zlayout.table.ztable import ZTable

LOG = ".zlayout/timeline/log/00000000000000000000.json"


def rows(spark, count=10):
    return spark.range(count).selectExpr("id k")


def content(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("damaged", [LOG, ".zlayout/table.json"])
def test_a_full_refresh_makes_the_table_anew_and_keeps_what_was_there(spark, damaged):
    name = f"z.damaged_{'log' if damaged == LOG else 'identity'}"
    folder = Path(ZTable.write(spark, name, rows(spark)).location.removeprefix("file://"))
    (folder / damaged).write_text("{")
    before = content(folder)
    with pytest.raises(CorruptError, match=rf"{damaged} is not JSON .*--full-refresh"):
        ZTable.for_name(spark, name)
    lines = []
    table = ZTable.write(spark, name, rows(spark, 7), progress=lines.append)
    assert any(damaged in line and table.location in line and str(folder) in line for line in lines)
    table.append(rows(spark, 1))
    assert spark.table(name).count() == 8
    assert table.index_status().num_rows == 0
    assert content(folder) == before
    assert ZTable.write(spark, name, rows(spark, 3)).location == table.location


def test_what_a_newer_release_has_written_is_not_made_anew(spark):
    table = ZTable.write(spark, "z.newer", rows(spark))
    folder = Path(table.location.removeprefix("file://"))
    entry = folder / LOG
    entry.write_text(entry.read_text().replace('"operation":"overwrite"', '"operation":"vacuum"'))
    before = content(folder)
    for write in (lambda: table.append(rows(spark)), lambda: ZTable.write(spark, "z.newer", rows(spark))):
        with pytest.raises(NewerFormatError, match=f"{LOG}: unknown operation 'vacuum'.*upgrade"):
            write()
    assert content(folder) == before


@pytest.mark.parametrize("left", ["nothing", pytest.param("identity", marks=pytest.mark.slow)])
def test_a_table_whose_log_is_gone_is_told_and_saved_from_its_manifest(spark, left):
    name = f"z.lost_{left}"
    table = ZTable.write(spark, name, rows(spark, 5), retain_hours=0)
    for _ in range(7):
        table.append(rows(spark, 5))
    table.delete("k < 2")
    folder = Path(table.location.removeprefix("file://"))
    (folder / "stray.parquet").write_bytes(next(folder.glob("*.parquet")).read_bytes())
    shutil.rmtree(folder / (".zlayout" if left == "nothing" else ".zlayout/timeline"))
    fresh = spark.newSession()
    for write in (
        lambda: ZTable.for_name(fresh, name),
        lambda: ZTable.for_name(fresh, name).append(rows(spark, 1)),
    ):
        with pytest.raises(
            CorruptError, match=r"8\.compact is left: .* version 8, \d+ files?.*ZTable.adopt.*full-refresh"
        ):
            write()
    assert fresh.table(name).count() == 24
    saved = ZTable.adopt(fresh, name, zorder=["k"], managed=True)
    assert saved.version == 0
    assert [path.name for path in (folder / "_spark_metadata").glob("*.compact")] == ["0.compact"]
    saved.append(rows(spark, 1))
    assert fresh.table(name).count() == spark.newSession().table(name).count() == 25
    assert saved.verify(data=True).num_rows == 0


def test_a_full_refresh_leaves_a_folder_whose_log_is_gone(spark):
    table = ZTable.write(spark, "z.lost_anew", rows(spark))
    folder = Path(table.location.removeprefix("file://"))
    shutil.rmtree(folder / ".zlayout")
    before, lines = content(folder), []
    anew = ZTable.write(spark, "z.lost_anew", rows(spark, 7), progress=lines.append)
    assert any("0.compact is left" in line and anew.location in line for line in lines)
    assert spark.table("z.lost_anew").count() == 7
    assert content(folder) == before


def test_a_table_without_its_identity_file_is_told_and_goes_on_with_its_log(spark):
    table = ZTable.write(spark, "z.lost_identity", rows(spark))
    table.append(rows(spark, 1))
    folder = Path(table.location.removeprefix("file://"))
    (folder / ".zlayout/table.json").unlink()
    with pytest.raises(CorruptError, match=r"table\.json is gone, but the log is there\. Restore the file, or run"):
        ZTable.for_name(spark.newSession(), "z.lost_identity")
    saved = ZTable.adopt(spark.newSession(), "z.lost_identity", managed=True)
    assert saved.version > 1
    saved.append(rows(spark, 1))
    assert spark.newSession().table("z.lost_identity").count() == 12
    assert saved.verify(data=True).num_rows == 0


def test_a_manifest_that_lists_files_that_are_gone_is_not_adopted(spark):
    table = ZTable.write(spark, "z.lost_files", rows(spark))
    folder = Path(table.location.removeprefix("file://"))
    shutil.rmtree(folder / ".zlayout")
    lost = next(folder.glob("*.parquet"))
    lost.unlink()
    with pytest.raises(CorruptError, match=f"the manifest lists 1 file not in the folder, such as {lost.name}"):
        ZTable.adopt(spark, "z.lost_files", managed=True)


def test_each_step_down_of_a_manifest_can_be_read(spark, tmp_path):
    folder = tmp_path / "t"
    table = ZTable.write(spark, "z.steps_down", rows(spark), location_root=str(folder))
    manifests = Path(table.location.removeprefix("file://"), "_spark_metadata")
    content = (manifests / "0.compact").read_bytes()
    (manifests / "0.compact").unlink()
    top = 76
    (manifests / f"{top}.compact").write_bytes(content)
    steps = list(spark_manifest._steps_down(top, 0))
    assert steps[-1] == 0
    for version in steps:
        (manifests / f"{version}.compact").write_bytes(content)
        assert spark.read.parquet(table.location).count() == 10, (version, top)
        (manifests / f"{top}.compact").unlink()
        assert spark.read.parquet(table.location).count() == 10, version
        top = version


def test_a_column_that_was_dropped_stays_dropped_in_a_table_that_is_saved(spark):
    table = ZTable.write(spark, "z.lost_dropped", spark.sql("select id k, 'old' v from range(5)"))
    table.append(rows(spark, 1), on_schema_change="sync_all_columns")
    shutil.rmtree(Path(table.location.removeprefix("file://"), ".zlayout"))
    saved = ZTable.adopt(spark, "z.lost_dropped", managed=True)
    saved.append(spark.sql("select 9L k, 'new' v"), on_schema_change="append_new_columns")
    assert sorted(row.v for row in spark.table("z.lost_dropped").where("v is not null").collect()) == ["new"]


def test_the_files_of_a_merge_on_read_table_are_not_adopted(spark):
    settings = {"table_type": "merge_on_read", "unique_key": ["k"], "compaction": "off"}
    table = ZTable.write(spark, "z.lost_records", rows(spark), **settings)
    table.upsert(rows(spark, 2))
    shutil.rmtree(Path(table.location.removeprefix("file://"), ".zlayout"))
    with pytest.raises(
        CorruptError, match=r"logs of a merge_on_read table, which cannot be adopted: rebuild with --full"
    ):
        ZTable.for_name(spark, "z.lost_records")
    with pytest.raises(UnsupportedError, match="holds the files of a merge_on_read table"):
        ZTable.adopt(spark, "z.lost_records__files", managed=True)
    assert spark.table("z.lost_records").count() == 10


@pytest.mark.parametrize("writer", ["arrow", pytest.param("spark", marks=pytest.mark.slow)])
def test_a_changed_byte_within_a_page_is_never_written_again(spark, writer):
    query = "select id k, id % 5 g, concat('some text ', uuid()) t from range({}, {})"
    settings = {"zorder": ["k"], "compression": "none", "writer": writer}
    table = ZTable.write(spark, f"z.pages_{writer}", spark.sql(query.format(0, 2000)), **settings)
    table.append(spark.sql(query.format(2000, 4000)))
    path = next(each.path for each in table.snapshot().files)
    file = Path(table.location.removeprefix("file://"), path)
    column = pq.ParquetFile(file).metadata.row_group(0).column(2)
    content = bytearray(file.read_bytes())
    begin = column.dictionary_page_offset or column.data_page_offset
    content[begin + column.total_compressed_size // 2] ^= 1
    file.write_bytes(content)
    changes = (
        lambda: table.cluster(rewrite_all=True),
        lambda: table.merge(spark.sql("select 1L k, 0L g, 'x' t union all select 2500L, 0L, 'x'"), "k"),
        lambda: table.delete("g = 1"),
    )
    version = ZTable.for_name(spark, table.name).version
    for change in changes:
        with pytest.raises(WriteError, match="(?i)checksum|CRC"):
            change()
    assert ZTable.for_name(spark, table.name).version == version
