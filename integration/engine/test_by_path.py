"""Tables without their catalog entry: opened by their folder, and registered again after a move, a copy or a loss."""

import shutil
from pathlib import Path

import duckdb
import pytest
from deltalake import DeltaTable
from pyiceberg.table import StaticTable
from scanned import Scans

from dbt.adapters.zlayout.errors import (
    CommittedError,
    ConfigError,
    StoreError,
    TableNotFoundError,
    UnsupportedError,
)
from dbt.adapters.zlayout.publish import spark_manifest
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog
from dbt.adapters.zlayout.spark.commit import catalog_entries as register_module
from dbt.adapters.zlayout.table.ztable import ZTable
from dbt.adapters.zlayout.timeline.files.table_file import FOLDER_NOTE, NOTE_BYTES


def rows(spark, count=1000, first=0):
    columns = "id k", "id % 4 part", "concat('v', id % 50) v", "id * 2 n"
    return spark.range(first, first + count).selectExpr(*columns)


@pytest.fixture
def made(spark, request, tmp_path_factory):
    """Writes a table of one kind in a new folder, and drops its entry without its files."""
    root = tmp_path_factory.mktemp("by_path")

    def make(kind, name=None, at="lake", **settings):
        name = name or f"z.{request.node.originalname[:40]}_{kind}"
        options = {
            "plain": {"zorder": ["k"]},
            "partitioned": {"zorder": ["k"], "partition_by": ["part"]},
            "merging": {"zorder": ["k"], "table_type": "merge_on_read", "unique_key": ["k"]},
        }[kind]
        wanted = {"target_file_size": 4000, "retain_hours": 0, **options, **settings}
        table = ZTable.write(spark, name, rows(spark), location_root=str(root / at), **wanted)
        if kind == "merging":
            table.upsert(rows(spark, 20, 990).selectExpr("k", "part", "'new' v", "n"))
        else:
            table.delete("k >= 900 and k < 910")
        return table

    return make


def folder_of(table):
    return Path(Catalog(table._spark).folder(table.location).__str__())


def forget(spark, name):
    """The entry is lost, as with the metastore; the files stay."""
    catalog = Catalog(spark)
    for each in (name, f"{name}__files", f"{name}__ro"):
        entry = catalog.find(catalog.name(each))
        if entry is not None:
            catalog.remove(entry.name)


def sorted_rows(frame):
    """The rows, with the columns in the order of their names: partition columns come last in a table."""
    return sorted(map(tuple, frame.select(*sorted(frame.columns)).collect()))


def mostly(kind):
    """Every kind. In `make test` one, where other tests take the others the same way."""
    return [
        each if each == kind else pytest.param(each, marks=pytest.mark.slow)
        for each in ("plain", "partitioned", "merging")
    ]


@pytest.mark.parametrize("kind", mostly("plain"))
def test_a_folder_reads_as_its_table_and_skips_files_without_an_entry(spark, made, kind):
    table = made(kind)
    expected, old = sorted_rows(spark.table(table.name)), sorted_rows(table.read(version=0))
    versions = table.history().to_pylist()
    changes = sorted_rows(table.changes(0))
    told = table.explain("k = 17").kept_files
    forget(spark, table.name)
    found = ZTable.for_path(spark, table.location)
    assert found.name == str(folder_of(table))
    assert (found.version, found.is_managed, found.merges_on_read) == (1, True, kind == "merging")
    assert sorted_rows(found.read()) == expected
    assert sorted_rows(found.read(version=0)) == old
    assert sorted_rows(found.changes(0)) == changes
    assert found.history().to_pylist() == versions
    assert found.count("k < 10") == 10
    assert found.verify(data=True).num_rows == found.index_status().num_rows == 0
    assert found.information()["name"] == found.name
    assert found.clustering_information(predicate="k = 17").predicate.kept_files == told
    explanation = found.explain("k = 17")
    assert explanation.table == found.name
    assert explanation.kept_files == told < explanation.total_files
    with Scans(spark) as scans:
        assert found.read().where("k = 17").count() == 1
    assert 0 < scans.files[0] < explanation.total_files
    assert not [each for each in spark.catalog.listTables() if each.name.startswith("_zl_")]


@pytest.mark.parametrize("kind", mostly("merging"))
def test_a_folder_is_maintained_without_an_entry(spark, made, kind):
    table = made(kind)
    expected = sorted_rows(spark.table(table.name))
    forget(spark, table.name)
    found = ZTable.for_path(spark, folder_of(table))
    if kind == "merging":
        assert found.compact(where="k > 1005").groups > 0
        assert found.compact().version == found.version
    assert found.cluster(where="k < 300", rewrite_all=True).files_removed > 0
    assert found.publish(["delta"]) == {"delta": found.version}
    assert found.refresh_index().version == found.version
    assert found.clean(retain_versions=1, retain_hours=0).files > 0
    assert sorted_rows(found.read()) == expected
    assert spark_manifest.published_version(found._opened.store) == found.version
    assert DeltaTable(str(folder_of(table))).to_pyarrow_table().num_rows == len(expected)
    same = ZTable.for_path(spark, folder_of(table))
    assert same.rollback(same.version).version == found.version + 1
    assert sorted_rows(same.read()) == expected


def test_what_needs_an_entry_says_so_and_changes_nothing(spark, made):
    table = made("plain")
    found = ZTable.for_path(spark, table.location)
    where = str(folder_of(table))
    for action, call in {
        "append of rows": lambda: found.append(rows(spark, 1)),
        "merge of rows": lambda: found.merge(rows(spark, 1), "k"),
        "delete of rows": lambda: found.delete("k = 1"),
        "a clustering with other partition columns": lambda: found.cluster(partition_by=["part"]),
    }.items():
        with pytest.raises(UnsupportedError) as error:
            call()
        assert action in str(error.value)
        assert f"ZTable.register(spark, 'schema.table', '{where}')" in str(error.value)
    table.append(rows(spark, 5).selectExpr("*", "1 added"), on_schema_change="append_new_columns")
    found = ZTable.for_path(spark, table.location)
    with pytest.raises(UnsupportedError, match="a rollback to version 0, which has other columns"):
        found.rollback(0)
    assert ZTable.for_name(spark, table.name).version == table.version == 2


def test_maintenance_by_folder_is_seen_by_the_name(spark, made):
    table = made("plain")
    expected = sorted_rows(spark.table(table.name))
    ZTable.for_path(spark, table.location).cluster(rewrite_all=True)
    assert ZTable.for_name(spark, table.name).version == 2
    assert sorted_rows(spark.sql(f"select * from {table.name}")) == expected
    other = spark.newSession()
    assert sorted_rows(other.table(table.name)) == expected


@pytest.mark.parametrize(
    "folder", ["a%20b ünï", *(pytest.param(each, marks=pytest.mark.slow) for each in ("plus+#?", "dots.and:colon"))]
)
def test_awkward_folders_can_be_opened_by_path_and_by_uri(spark, made, folder):
    table = made("plain", name="z.awkward_folder", at=folder)
    expected = sorted_rows(spark.table(table.name))
    forget(spark, table.name)
    plain = folder_of(table)
    assert plain.parent.name == folder
    for given in (plain, str(plain), f"{plain}/", table.location):
        assert sorted_rows(ZTable.for_path(spark, given).read().where("k < 5")) == expected[:5]
    registered = ZTable.register(spark, "z.awkward_folder", str(plain))
    assert registered.location == table.location
    assert sorted_rows(spark.newSession().table("z.awkward_folder")) == expected
    forget(spark, table.name)


def test_a_relative_path_is_below_the_working_directory(spark, made, monkeypatch):
    table = made("plain")
    monkeypatch.chdir(folder_of(table).parent)
    assert ZTable.for_path(spark, folder_of(table).name).location == table.location


@pytest.mark.slow
def test_a_folder_without_a_table_says_what_is_there(spark, made, tmp_path):
    table = made("partitioned")
    partition = next(folder_of(table).glob("part=*"))
    (tmp_path / "empty").mkdir()
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts/a.txt").write_text("a")
    rows(spark, 3).write.parquet(str(tmp_path / "parquet"))
    spark.sql(f"create table z.only_indexed using parquet location '{tmp_path / 'parquet'}'")
    wrong = {
        tmp_path / "missing": "there is no such folder; check the path",
        tmp_path / "empty": "it is empty",
        tmp_path / "texts": "it holds other files, such as a.txt",
        tmp_path / "texts/a.txt": "is a file; give the folder",
        tmp_path / "parquet": "Parquet files that other tools wrote.*ZTable.adopt",
        partition: f"it is inside the table at {folder_of(table)}",
        folder_of(table).parent: f"it is above the table in {folder_of(table).name}; give the table's own folder",
    }
    for path, message in wrong.items():
        for call in (
            lambda path=path: ZTable.for_path(spark, path),
            lambda path=path: ZTable.register(spark, "z.never", path),
        ):
            with pytest.raises(TableNotFoundError, match=message):
                call()
    for path, message in {
        "": "is empty; give the folder",
        "nosuch://x/y": "scheme 'nosuch'",
        "s3://me:secret@bucket/t": "login",
    }.items():
        with pytest.raises(UnsupportedError, match=message) as error:
            ZTable.for_path(spark, path)
        assert "secret" not in str(error.value)
    ZTable.adopt(spark, "z.only_indexed")
    with pytest.raises(UnsupportedError, match="only indexed.*ZTable.for_name"):
        ZTable.for_path(spark, tmp_path / "parquet")
    assert Catalog(spark).find(Catalog(spark).name("z.never")) is None


@pytest.mark.parametrize("kind", mostly("plain"))
def test_a_lost_entry_is_made_again(spark, made, kind):
    table = made(kind)
    expected = sorted_rows(spark.table(table.name))
    forget(spark, table.name)
    with pytest.raises(TableNotFoundError, match="there is no table"):
        ZTable.for_name(spark, table.name)
    found = ZTable.register(spark, table.name, table.location)
    assert (found.name, found.version, found.location) == (table.name, 1, table.location)
    assert sorted_rows(spark.table(table.name)) == sorted_rows(spark.newSession().table(table.name)) == expected
    entry = Catalog(spark).find(Catalog(spark).name(f"{table.name}{'__files' if kind == 'merging' else ''}"))
    again = ZTable.register(spark, table.name, table.location)
    assert (again.version, Catalog(spark).find(entry.name).properties) == (1, entry.properties)
    again.merge(rows(spark, 10), "k")
    assert sorted_rows(spark.table(table.name))[:10] == sorted_rows(rows(spark, 10))


@pytest.mark.slow
def test_a_moved_table_may_get_another_name(spark, made, tmp_path):
    table = made("plain", publish=["iceberg"])
    expected, name = sorted_rows(spark.table(table.name)), f"{table.name}_renamed"
    shutil.move(folder_of(table), tmp_path / "moved")
    found = ZTable.register(spark, name, tmp_path / "moved")
    assert found._opened.table_id == table._opened.table_id
    assert sorted_rows(spark.newSession().table(name)) == expected
    files = StaticTable.from_metadata(f"file://{tmp_path / 'moved'}").inspect.files()["file_path"].to_pylist()
    assert {Path(each.removeprefix("file:")).parent for each in files} == {tmp_path / "moved"}
    forget(spark, name)


@pytest.mark.parametrize("kind", mostly("plain"))
def test_a_moved_table_is_registered_at_its_new_place(spark, made, kind, tmp_path):
    table = made(kind, publish=["delta"])
    expected = sorted_rows(spark.table(table.name))
    moved, folder = tmp_path / "moved to", folder_of(table)
    shutil.move(folder, moved)
    with pytest.raises(TableNotFoundError, match=f"its folder {folder} holds no table any more.*`zlayout register"):
        ZTable.for_name(spark, table.name)
    assert sorted_rows(ZTable.for_path(spark, moved).read()) == expected
    found = ZTable.register(spark, table.name, moved)
    for _ in range(2):
        for session in (spark, spark.newSession()):
            assert sorted_rows(session.table(table.name)) == expected
        assert DeltaTable(str(moved)).to_pyarrow_table().num_rows == (len(expected) if kind != "merging" else 1000)
        _, listed = spark_manifest.listed_paths(found._opened.store)
        assert set(listed) == set(found.snapshot().files["path"].to_pylist())
        found = ZTable.register(spark, table.name, moved)
    found.merge(rows(spark, 10, 2000), "k")
    assert spark.newSession().table(table.name).count() == len(expected) + 10
    assert not folder_of(table).exists()


def test_a_copy_never_shares_its_id_with_the_table(spark, made, tmp_path):
    table = made("plain", publish=["delta"])
    expected, place = sorted_rows(spark.table(table.name)), tmp_path / "copy"
    spark.range(1).createOrReplaceTempView("of_no_schema")
    shutil.copytree(folder_of(table), place)
    name = f"{table.name}_copy"
    with pytest.raises(UnsupportedError, match="still holds the table, so .* is a copy .* under another name"):
        ZTable.register(spark, table.name, place)
    with pytest.raises(UnsupportedError, match=f"is {table.name} in this catalog, and with two names"):
        ZTable.register(spark, name, table.location)
    copy = ZTable.register(spark, name, place)
    ids = [DeltaTable(str(each)).metadata().id for each in (folder_of(table), place)]
    assert ids == [table._opened.table_id, copy._opened.table_id]
    assert len(set(ids)) == 2
    assert ZTable.register(spark, name, place)._opened.table_id == ids[1]
    # From the same version on, the two go different ways, also within one session.
    table.delete("k < 500")
    copy.delete("k >= 500")
    assert table.version == copy.version
    both = "select count(*), min(k), max(k) from {} where k >= 0"
    assert [tuple(spark.sql(both.format(each)).head()) for each in (table.name, name)] == [
        (490, 500, 999),
        (500, 0, 499),
    ]
    assert len(sorted_rows(spark.table(table.name).union(spark.table(name)))) == len(expected)


@pytest.mark.slow
def test_a_copy_read_by_its_folder_is_never_taken_for_the_table(spark, made, tmp_path):
    """Table id and version are equal; Spark must not reuse the scan of one for the other."""
    table = made("plain")
    shutil.copytree(folder_of(table), tmp_path / "copy")
    table.delete("k < 500")
    copy = ZTable.for_path(spark, tmp_path / "copy")
    forget(spark, table.name)
    other = spark.newSession()
    ZTable.register(other, "z.copied_for_reuse", tmp_path / "copy").delete("k >= 500")
    mine, theirs = ZTable.for_path(spark, table.location), ZTable.for_path(spark, tmp_path / "copy")
    assert (mine.version, copy.version) == (theirs.version, 1)
    mine.read().cache().count()
    assert (mine.read().count(), theirs.read().count()) == (490, 500)
    joined = mine.read().agg({"k": "min"}).union(theirs.read().agg({"k": "min"}))
    assert [each[0] for each in joined.collect()] == [500, 0]
    spark.catalog.clearCache()
    forget(spark, "z.copied_for_reuse")


@pytest.mark.parametrize("kind", mostly("plain"))
def test_a_plain_entry_of_the_folder_is_taken_over(spark, made, kind):
    table = made(kind)
    expected = sorted_rows(spark.table(table.name))
    forget(spark, table.name)
    spark.sql(f"create table {table.name} using parquet location '{table.location}' comment 'ours'")
    with pytest.raises(TableNotFoundError, match=rf"ZTable.register\(spark, '{table.name}', '{folder_of(table)}'\)"):
        ZTable.for_name(spark, table.name)
    with pytest.raises(TableNotFoundError, match="ZTable.register"):
        table.append(rows(spark, 1))
    with pytest.raises(
        UnsupportedError, match=r"holds (a managed table.*ZTable\.register|the files of a merge_on_read)"
    ):
        ZTable.adopt(spark, table.name)
    found = ZTable.register(spark, table.name, folder_of(table))
    assert sorted_rows(spark.table(table.name)) == sorted_rows(spark.newSession().table(table.name)) == expected
    assert found.explain("k = 17").kept_files < found.explain("true").kept_files
    entry = Catalog(spark).find(Catalog(spark).name(table.name))
    assert (entry.table_id, entry.comment) == (found._opened.table_id, "ours")


def test_a_name_of_something_else_is_refused_and_stays(spark, made):
    table, other = made("plain"), made("plain", name="z.other_table", at="others")
    spark.sql("create view z.some_view as select 1 one")
    spark.sql("create table z.csv_table (one int) using csv")
    for name, message in {
        "z.other_table": "is another table, in .*drop it first",
        "z.some_view": "is a view of something else",
        "z.csv_table": r"another format \(csv\)",
        "nowhere.t": "there is no schema 'nowhere'",
        "z.`a b`": "allowed are letters",
    }.items():
        with pytest.raises((UnsupportedError, TableNotFoundError, ConfigError), match=message):
            ZTable.register(spark, name, table.location)
    assert spark.table("z.other_table").count() == 990
    assert ZTable.for_name(spark, "z.other_table").location == other.location
    assert spark.sql("select * from z.some_view").collect() == [(1,)]
    forget(spark, table.name)
    shutil.rmtree(folder_of(other))
    with pytest.raises(UnsupportedError, match="another table"):
        ZTable.register(spark, "z.other_table", table.location)


class _Killed(BaseException):
    pass


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plain", "merging"])
def test_an_interrupted_registration_is_completed_by_the_next_one(spark, made, kind, tmp_path, monkeypatch):
    """Stops before each step that changes anything, one after another, and always leaves a table that reads right."""
    table = made(kind, publish=["delta"])
    expected = sorted_rows(spark.table(table.name))
    shutil.copytree(folder_of(table), tmp_path / "copy")
    name = f"{table.name}_copy"
    store_type = type(table._opened.store)
    steps = [
        (register_module, "replace_table_file"),
        (Catalog, "put"),
        (Catalog, "with_statistics"),
        (store_type, "put"),
        (store_type, "create"),
        (store_type, "delete"),
        (register_module, "publish"),
    ]

    def stop(*_, **__):
        raise _Killed

    stopped = 0
    for owner, step in steps:
        with monkeypatch.context() as patch:
            patch.setattr(owner, step, stop)
            try:
                ZTable.register(spark, name, tmp_path / "copy")
            except _Killed:
                stopped += 1
        assert sorted_rows(ZTable.for_path(spark, tmp_path / "copy").read()) == expected
        assert sorted_rows(spark.newSession().table(table.name)) == expected
    assert stopped >= 4
    found = ZTable.register(spark, name, tmp_path / "copy")
    assert sorted_rows(spark.newSession().table(name)) == expected
    assert found.publish() == {"delta": 1}
    assert found._opened.table_id != table._opened.table_id
    assert table.publish() == {"delta": 1}


def test_a_registration_that_cannot_write_the_manifest_says_so(spark, made, tmp_path, monkeypatch):
    table = made("plain")
    shutil.move(folder_of(table), tmp_path / "moved")

    def fails(*_, **__):
        raise StoreError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(type(table._opened.store), "put", fails)
        with pytest.raises(CommittedError, match=r"the disk is full.*run ZTable.register again"):
            ZTable.register(spark, table.name, tmp_path / "moved")
    ZTable.register(spark, table.name, tmp_path / "moved")
    assert spark.newSession().table(table.name).count() == 990


@pytest.mark.slow
def test_a_table_that_the_catalog_owns_keeps_its_files_when_it_is_taken_over(spark, made):
    table = made("merging")
    expected = sorted_rows(spark.table(table.name))
    forget(spark, table.name)
    spark.sql("create table z.owned (k bigint, part bigint, v string, n bigint) using parquet")
    catalog = Catalog(spark)
    place = Path(str(catalog.folder(catalog.find(catalog.name("z.owned")).location)))
    shutil.rmtree(place)
    shutil.copytree(folder_of(table), place)
    ZTable.register(spark, "z.owned", place)
    assert sorted_rows(spark.newSession().table("z.owned")) == expected


@pytest.mark.parametrize("kind", mostly("plain"))
def test_the_note_in_the_folder_disturbs_nobody(spark, made, kind):
    table = made(kind, publish=["delta"])
    folder, expected = folder_of(table), sorted_rows(spark.table(table.name))
    note = folder / FOLDER_NOTE
    assert note.read_bytes() == NOTE_BYTES
    assert len(NOTE_BYTES.decode().splitlines()) == 5
    assert "\n".join(note.read_text().splitlines()).isascii()
    assert ZTable.for_name(spark, table.name).index_status().num_rows == 0
    assert FOLDER_NOTE not in table.clean(retain_versions=1, retain_hours=0).paths
    if kind != "merging":
        assert sorted_rows(spark.read.parquet(str(folder)).select("k", "part", "v", "n")) == expected
    assert DeltaTable(str(folder)).to_pyarrow_table().num_rows == (1000 if kind == "merging" else 990)
    duckdb.sql(f"select count(*) from read_parquet('{folder}/**/*.parquet')").fetchall()
    note.write_text("the text of an earlier release")
    table.merge(rows(spark, 1), "k")
    assert note.read_bytes() == NOTE_BYTES
    written = note.stat().st_mtime_ns
    table.merge(rows(spark, 2), "k")
    assert note.stat().st_mtime_ns == written


def test_a_commit_stands_if_the_note_cannot_be_written(spark, made):
    table = made("plain")
    note = folder_of(table) / FOLDER_NOTE
    note.unlink()
    note.mkdir()
    lines = []
    done = table.append(rows(spark, 5, 5000), progress=lines.append)
    assert done.version == 2
    assert spark.newSession().table(table.name).count() == 995
    assert any(FOLDER_NOTE in line for line in lines)
