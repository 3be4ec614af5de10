"""The Iceberg table: a function of the table's log, complete after any interruption, and trusted with nothing."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
import sys

import pytest
from published_folder import SCHEMA, TABLE, DyingStore, IcebergFolder, Killed, PausingStore
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import ManifestEntryStatus
from pyiceberg.table import StaticTable

from dbt.adapters.zlayout.config.table_config import PublishingConfig
from dbt.adapters.zlayout.errors import CorruptError, StoreError, UnsupportedError
from dbt.adapters.zlayout.publish import delta_log, iceberg_table
from dbt.adapters.zlayout.publish.formats import what_lags
from dbt.adapters.zlayout.publish.iceberg_metadata import FOLDER, HINT, is_here, metadata_path
from dbt.adapters.zlayout.publish.iceberg_table import catch_up, published, withdraw
from dbt.adapters.zlayout.publish.publication import PublishedTable
from dbt.adapters.zlayout.store.cloud import CloudStore
from dbt.adapters.zlayout.store.local import LocalStore
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.files.data_files import DataFile, DataFiles
from dbt.adapters.zlayout.timeline.timeline import Timeline
from dbt.adapters.zlayout.timeline.transactions.change import Change
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction

ICEBERG = PublishingConfig(("iceberg",))


@pytest.fixture
def table(tmp_path) -> IcebergFolder:
    return IcebergFolder(LocalStore(tmp_path / "t"))


@pytest.mark.parametrize("module", [delta_log, iceberg_table])
def test_what_readers_have_seen_since_a_time_goes_by_when_it_was_published(table, module) -> None:
    assert module.published_since(table.store, TABLE, 0) is None
    for _ in range(4):
        module.catch_up(PublishedTable(table.store, table.timeline), TABLE, 24)
        table.append()
    paths = [
        metadata_path(each) if module is iceberg_table else delta_log.commit_path(each - 1) for each in range(1, 5)
    ]
    for path, seconds in zip(paths, (100, 200, 300, 300), strict=True):
        os.utime(table.store.local_path(path), (seconds, seconds))
    found = [
        module.published_since(table.store, TABLE, since).version for since in (0, 99e3, 150e3, 250e3, 300e3, math.inf)
    ]
    assert found == [0, 0, 0, 1, 3, 3]


def test_two_publishers_write_the_same_bytes(tmp_path) -> None:
    table = IcebergFolder(LocalStore(tmp_path / "t"))
    table.publish()
    first = table.append(3)
    table.publish()
    table.merge(*first[:2])
    before = table.published_bytes()
    table.publish()
    once = table.published_bytes()
    table.store.delete_tree(FOLDER)
    for path, content in before.items():
        table.store.put(path, content)
    catch_up(PublishedTable(table.store, Timeline(table.store)), TABLE, 24)
    assert table.published_bytes() == once
    assert len(set(once) - set(before)) == 4  # a metadata file, a manifest, its list and the list of files
    assert table.live() == table.files()


def test_each_operation_is_published_as_what_it_is_with_its_counts(table) -> None:
    def last() -> tuple[str, dict[str, str]]:
        table.publish()
        summary = table.opened().current_snapshot().summary
        properties = summary.additional_properties
        assert properties["zlayout.version"] == str(table.timeline.snapshot().version)
        assert properties["zlayout.table_id"] == TABLE
        counts = {key: properties[key] for key in ("added-data-files", "deleted-data-files") if key in properties}
        assert properties["total-data-files"] == str(len(table.files()))
        return summary.operation.value, counts

    assert last() == ("append", {"added-data-files": "1"})
    names = table.append(2)
    assert last() == ("append", {"added-data-files": "2"})
    names = [*table.merge(names[0]), names[1]]
    assert last() == ("overwrite", {"added-data-files": "1", "deleted-data-files": "1"})
    names = table.commit(Action.REPLACECOMMIT, Operation.CLUSTERING, names)
    assert last() == ("replace", {"added-data-files": "1", "deleted-data-files": "2"})
    table.commit(Action.COMMIT, Operation.DELETE, names, files=0)
    assert last() == ("delete", {"deleted-data-files": "1"})
    assert table.live() == table.files()


def test_only_manifests_that_lose_files_or_are_not_full_are_written_again(table) -> None:
    names = table.append(3_000)
    table.publish()
    manifests = table.opened().current_snapshot().manifests(PyArrowFileIO())
    full, _, rest = (each.added_files_count for each in manifests)
    kept = {each.manifest_path for each in manifests}
    table.merge(names[3], names[5], names[-1])
    table.publish()
    manifests = table.opened().current_snapshot().manifests(PyArrowFileIO())
    new = [each for each in manifests if each.manifest_path not in kept]
    assert [(each.added_files_count, each.existing_files_count, each.deleted_files_count) for each in new] == [
        (0, full - 2, 0),
        (1, rest - 1, 3),
    ]
    entries = new[1].fetch_manifest_entry(PyArrowFileIO(), discard_deleted=False)
    gone = [each for each in entries if each.status == ManifestEntryStatus.DELETED]
    assert {each.data_file.file_path.rpartition("/")[2] for each in gone} == {names[3], names[5], names[-1]}
    assert table.live() == table.files()


def test_old_snapshots_stay_readable_as_long_as_the_table_keeps_them_and_then_go(table) -> None:
    table.publish(0)
    seen = {}
    for number in range(40):
        removed = sorted(table.files())[:1] if number % 3 else []
        table.merge(*removed)
        table.publish(0)
        seen[table.opened().current_snapshot().snapshot_id] = table.files()
    kept = [each.snapshot_id for each in table.opened().snapshots()]
    assert len(kept) == 3  # retain_versions
    for each in kept:
        assert table.live(each) == seen[each]
    # What they do not need is gone: 10 metadata files, and for each snapshot its list and manifests.
    names = [file.path.rpartition("/")[2] for file in table.store.list(FOLDER)]
    assert sum(name.endswith(".metadata.json") for name in names) <= 12
    assert sum(name.endswith(".files") for name in names) <= 2
    assert sum(name.endswith("list.avro") for name in names) <= 5
    needed = {
        each.manifest_path.rpartition("/")[2]
        for snapshot in table.opened().snapshots()
        for each in snapshot.manifests(PyArrowFileIO())
    }
    assert needed <= set(names)
    assert len(table.store.read(metadata_path(41))) < 10_000


def test_snapshots_within_the_retained_hours_are_kept(table) -> None:
    for _ in range(20):
        table.publish()
        table.append()
    table.publish()
    assert len(table.opened().snapshots()) == 21


@pytest.mark.parametrize("after", [False, True])
def test_a_first_publication_that_dies_anywhere_is_made_by_the_next_publisher(tmp_path, after) -> None:
    for lives in range(200):
        root = tmp_path / f"{lives}"
        table = IcebergFolder(LocalStore(root))
        dying = DyingStore(root, lives, after)
        ended = False
        try:
            catch_up(PublishedTable(dying, Timeline(dying)), TABLE, 0)
            ended = True
        except Killed:
            pass
        for _ in range(2):
            table.publish(0)
            assert table.live() == table.files(), lives
            assert table.store.exists(HINT)
            table.append()
        table.publish(0)
        assert table.live() == table.files(), lives
        assert len(table.opened().snapshots()) == 3
        if ended:
            break
    assert lives > 3


def test_a_hint_that_was_not_written_is_repaired(table) -> None:
    table.publish()
    table.store.put(HINT, b"0")
    table.publish()
    assert table.store.read(HINT) == b"1"


def test_readers_see_what_the_hint_names(table) -> None:
    table.publish()
    table.append()
    table.publish()
    table.store.put(HINT, b"1")
    assert len(table.live()) == 1
    assert published(table.store, TABLE).version == 0
    assert list(what_lags(table.store, TABLE, ICEBERG, 1)) == ["readers of iceberg see version 0 instead of version 1"]
    for nothing in (b"", b"7", b"../../v1", b"9" * 99, b"\xff"):
        table.store.put(HINT, nothing)
        assert published(table.store, TABLE).version == 1
        table.publish()
        assert table.store.read(HINT) == b"2"


@pytest.mark.parametrize(("hours", "step"), [(0, 4), pytest.param(24, 1, marks=pytest.mark.slow)])
def test_a_publisher_that_is_overtaken_anywhere_changes_nothing_that_is_published(tmp_path, hours, step) -> None:
    for accesses in range(1, 200, step):
        root = tmp_path / f"{accesses}"
        table = IcebergFolder(LocalStore(root))
        table.publish(hours)
        table.append(3)
        table.publish(hours)
        for _ in range(2):
            table.merge(*sorted(table.files())[:1])

        def overtake(table=table) -> None:
            table.merge(*sorted(table.files())[:2])
            table.publish(hours)

        slow = PausingStore(root, accesses, overtake)
        catch_up(PublishedTable(slow, Timeline(slow)), TABLE, hours)
        if slow.accesses >= 0:
            break
        assert table.live() == table.files(), accesses
        paths = [each.file.file_path for each in table.opened().scan().plan_files()]
        assert len(paths) == len(set(paths)), accesses
        assert table.store.read(HINT) == str(published(table.store, TABLE).number).encode(), accesses
    assert accesses > 30


@pytest.mark.parametrize("half", [False, True])
def test_a_moved_or_copied_table_is_published_anew_in_its_new_place(table, tmp_path, half) -> None:
    table.publish()
    table.append(3)
    table.publish()
    copy = IcebergFolder.__new__(IcebergFolder)
    copy.store = LocalStore(tmp_path / "copy")
    copy.timeline, copy.count = Timeline(copy.store), 10
    shutil.copytree(tmp_path / "t", tmp_path / "copy")
    if half:
        copy.store.delete([path for path in copy.published_bytes() if path.endswith((".avro", ".files"))])
    assert published(copy.store, TABLE) is None
    assert list(what_lags(copy.store, TABLE, ICEBERG, 1)) == ["readers of iceberg see no version instead of version 1"]
    copy.publish()
    for _ in range(2):
        assert copy.live() == copy.files()
        assert {each.file.file_path.rpartition("/")[0] for each in copy.opened().scan().plan_files()} == {
            f"file://{tmp_path}/copy"
        }
        copy.merge(*sorted(copy.files())[:1])
        copy.publish()
    assert table.live() == table.files()


@pytest.mark.parametrize(
    ("location", "here"),
    [
        ("s3://lake/a b", True),
        ("s3a://lake/a b", True),
        ("s3://lake/a%20b", False),
        ("gs://lake/a b", False),
        (5, False),
    ],
)
def test_a_folder_in_a_cloud_is_known_by_each_of_its_schemes(location, here) -> None:
    for store in (CloudStore("s3://lake/a%20b"), CloudStore("s3a://lake/a%20b")):
        assert is_here(store, {"location": location}) is here


def test_a_table_behind_a_link_is_the_same_table(table, tmp_path) -> None:
    table.publish()
    (tmp_path / "link").symlink_to(tmp_path / "t")
    table.append()
    linked = LocalStore(tmp_path / "link")
    catch_up(PublishedTable(linked, Timeline(linked)), TABLE, 24)
    assert published(linked, TABLE) == published(table.store, TABLE)
    table.append()
    table.publish()
    assert table.live() == table.files()
    assert len(table.opened().snapshots()) == 3


def test_a_withdrawal_that_dies_shows_the_newest_version_or_none_and_is_completed(tmp_path) -> None:
    for lives in range(20):
        table = IcebergFolder(LocalStore(tmp_path / f"{lives}"))
        for _ in range(4):
            table.append()
            table.publish()
        newest = published(table.store, TABLE)
        dying = DyingStore(tmp_path / f"{lives}", lives, after=False)
        try:
            withdraw(dying, TABLE)
            break
        except Killed:
            pass
        left = published(table.store, TABLE)
        assert left in (None, newest)
        assert not lives or not table.store.exists(HINT)
        withdraw(table.store, TABLE)
        assert left is None or not table.store.list(FOLDER)
        table.append()
        table.publish()
        assert table.live() == table.files()
    assert not table.store.list(FOLDER)


def test_a_publisher_from_before_a_withdrawal_is_never_the_newest(table) -> None:
    for _ in range(3):
        table.append()
        table.publish()
    late = table.published_bytes()[metadata_path(4)]
    withdraw(table.store, TABLE)
    table.append()
    table.publish()
    assert published(table.store, TABLE).number == 5
    table.store.put(metadata_path(4), late)
    table.append()
    table.publish()
    assert table.live() == table.files()


@pytest.mark.parametrize("lost", [".files", "list.avro"])
def test_a_lost_list_is_made_anew_or_named(table, lost) -> None:
    table.publish()
    [path] = [file.path for file in table.store.list(FOLDER) if file.path.endswith(lost)]
    table.store.delete([path])
    table.append()
    if lost == ".files":
        table.publish()
        assert table.live() == table.files()
        assert len(table.opened().snapshots()) == 1
    else:
        with pytest.raises(StoreError, match=r"list\.avro"):
            table.publish()


@pytest.mark.parametrize("part", ["files0.avro", "list.avro"])
@pytest.mark.parametrize("content", [b"", b"Obj\x01", b"PAR1" * 100])
def test_a_damaged_manifest_is_named(table, part, content) -> None:
    table.publish()
    [path] = [file.path for file in table.store.list(FOLDER) if file.path.endswith(part)]
    table.store.put(path, content)
    table.merge(*table.files())
    with pytest.raises(CorruptError, match=re.escape(part)):
        table.publish()


def test_columns_that_change_are_published_as_such_or_with_all_files_anew(table) -> None:
    def snapshots(schema: str, **change) -> int:
        table.commit(Action.COMMIT, Operation.APPEND, schema_json=schema, **change)
        table.publish()
        assert table.live() == table.files()
        return len(table.opened().snapshots())

    more = SCHEMA.replace("}]}", '},{"name":"x","type":"integer","nullable":true,"metadata":{}}]}')
    table.publish()
    assert snapshots(more) == 2
    first = table.opened().schema().find_field("x").field_id
    assert snapshots(more.replace("integer", "long")) == 3
    assert table.opened().schema().find_field("x").field_id == first
    assert snapshots(SCHEMA) == 4
    assert [each.name for each in table.opened().schema().fields] == ["k"]
    # A column that comes back, or whose type is another one.
    assert snapshots(more) == 1
    assert snapshots(more.replace("integer", "string")) == 1


def test_files_of_another_partitioning_are_published_anew(table) -> None:
    table.publish()
    both = SCHEMA.replace("}]}", '},{"name":"p","type":"string","nullable":true,"metadata":{}}]}')
    files = [DataFile(f"p={each}/{each * 16}_20260101000000001.parquet", (("p", each),), 1, 9, 9, "g") for each in "ab"]
    with Transaction.begin(table.timeline, Action.REPLACECOMMIT, Operation.OVERWRITE) as transaction:
        change = {"schema_json": both, "partition_by": ("p",), "removes": tuple(table.files())}
        transaction.commit(Change(DataFiles.of(files, ("p",)), **change))
    table.publish()
    assert table.live() == {f"{each * 16}_20260101000000001.parquet" for each in "ab"}
    assert [each.name for each in table.opened().spec().fields] == ["p"]
    [found] = table.opened().scan(row_filter="p = 'b'").plan_files()
    assert found.file.partition[0] == "b"


def test_a_commit_of_other_software_is_named_and_left_alone(table) -> None:
    table.publish()
    # Other software keeps our properties.
    content = json.loads(table.store.read(metadata_path(1)))
    table.store.put(metadata_path(2), json.dumps(content, separators=(",", ":")).encode())
    before = table.published_bytes()
    table.append()
    with pytest.raises(UnsupportedError, match="on top of what this table has published"):
        table.publish()
    assert table.published_bytes() == before


@pytest.mark.parametrize(
    "name",
    [*(f"{number}.metadata.json" for number in ("00000-1f2e", "v1.gz", "v007", "v\u0663")), "v3.metadata.json.gz"],
)
def test_the_metadata_of_a_catalogs_table_is_left_alone(table, name) -> None:
    table.store.put(f"{FOLDER}/{name}", b"{}")
    before = table.published_bytes()
    with pytest.raises(UnsupportedError, match=f"{name} was written by other software"):
        table.publish()
    withdraw(table.store, TABLE)
    assert table.published_bytes() == before


def test_an_empty_table_and_a_folder_with_spaces_are_published(tmp_path) -> None:
    table = IcebergFolder(LocalStore(tmp_path / "a b%20é"))
    table.publish()
    table.commit(Action.COMMIT, Operation.DELETE, table.files(), files=0)
    table.publish()
    folder = f"file://{tmp_path}/a b%20é"
    opened = StaticTable.from_metadata(f"{folder}/metadata/v2.metadata.json")
    assert list(opened.scan().plan_files()) == []
    assert opened.location() == folder


def test_without_pyiceberg_the_error_says_what_to_install(table, monkeypatch) -> None:
    monkeypatch.delitem(sys.modules, "dbt.adapters.zlayout.publish.iceberg_publisher")
    monkeypatch.setitem(sys.modules, "pyiceberg.manifest", None)
    with pytest.raises(UnsupportedError, match=r"pip install 'dbt-zlayout\[iceberg\]'"):
        table.publish()


def test_tables_that_are_not_published_as_iceberg_do_not_load_pyiceberg() -> None:
    code = (
        "import sys, dbt.adapters.zlayout.table.ztable; assert not any(n.startswith('pyiceberg') for n in sys.modules)"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)
