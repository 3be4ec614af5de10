"""Manifests that are put together say of each file what the manifest said that added it."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from published_folder import SCHEMA, TABLE, IcebergFolder
from pyiceberg.conversions import from_bytes
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import ManifestEntryStatus
from pyiceberg.types import IntegerType

from dbt.adapters.zlayout.errors import CorruptError
from dbt.adapters.zlayout.publish import iceberg_manifests
from dbt.adapters.zlayout.publish.iceberg_manifests import KeptManifest, cut, full_bytes, grouped
from dbt.adapters.zlayout.publish.iceberg_metadata import FOLDER
from dbt.adapters.zlayout.publish.iceberg_table import catch_up
from dbt.adapters.zlayout.publish.publication import PublishedTable
from dbt.adapters.zlayout.store.local import LocalStore
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.files.data_files import DataFile, DataFiles
from dbt.adapters.zlayout.timeline.timeline import Timeline
from dbt.adapters.zlayout.timeline.transactions.change import Change
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction

IO = PyArrowFileIO()
FULL = 2_000
NULL = "__HIVE_DEFAULT_PARTITION__"
COLUMNS = SCHEMA.replace("}]}", '},{"name":"p","type":"integer","nullable":true,"metadata":{}}]}')


class Partitioned(IcebergFolder):
    """A table of a partition column, whose files have different numbers of rows."""

    def __init__(self, store: LocalStore, chance: random.Random) -> None:
        super().__init__(store)
        self.chance = chance
        self.change(Action.REPLACECOMMIT, 1, self.files(), schema_json=COLUMNS, partition_by=("p",))

    def change(self, action: Action, files: int, removes=(), **change) -> None:
        added = []
        for _ in range(files):
            self.count += 1
            value = self.chance.choice([NULL, *map(str, range(-3, 20))])
            path = f"p={value}/{self.count:016x}_20260101000000000.parquet"
            rows = self.chance.randint(1, 1_000)
            added.append(DataFile(path, (("p", None if value == NULL else value),), rows, 10, 1000, "g"))
        operation = Operation.OVERWRITE if action is Action.REPLACECOMMIT else Operation.MERGE
        with Transaction.begin(self.timeline, action, operation) as transaction:
            transaction.commit(Change(DataFiles.of(added, ("p",)), removes=tuple(removes), **change))

    def change_at_random(self) -> None:
        names = sorted(self.files())
        removed = self.chance.sample(names, min(len(names), self.chance.choice([0, 0, 1, 2, 2, 30])))
        self.change(Action.COMMIT, self.chance.choice([0 if removed else 1, 1, 1, 3, 25]), removed)

    def relative(self, location: str) -> str:
        return location.removeprefix(f"{self.opened().location()}/")


@pytest.fixture
def small(monkeypatch) -> None:
    """Manifests are full early."""
    monkeypatch.setattr(iceberg_manifests, "_FULL_BYTES", FULL)


@pytest.mark.parametrize("seed", range(2))
def test_each_file_is_listed_once_as_what_it_was_added_as(tmp_path, small, seed) -> None:
    table = Partitioned(LocalStore(tmp_path / "t"), random.Random(seed))
    table.publish()
    before, most = set[str](), 0
    added_by: dict[str, tuple[int, int]] = {}
    rows: dict[str, int] = {}
    for _ in range(20):
        files = table.timeline.snapshot().files
        rows |= dict(zip(files["path"].to_pylist(), files["row_count"].to_pylist(), strict=True))
        snapshot = table.opened().current_snapshot()
        found: dict[ManifestEntryStatus, list[str]] = {each: [] for each in ManifestEntryStatus}
        manifests = snapshot.manifests(IO)
        most = max(most, len(manifests))
        for manifest in manifests:
            entries = manifest.fetch_manifest_entry(IO, discard_deleted=False)
            for status in ManifestEntryStatus:
                names = [table.relative(each.data_file.file_path) for each in entries if each.status == status]
                found[status] += names
                kind = status.name.lower()
                assert getattr(manifest, f"{kind}_files_count") == len(names)
                assert getattr(manifest, f"{kind}_rows_count") == sum(rows[name] for name in names)
            for entry in entries:
                name = table.relative(entry.data_file.file_path)
                added_by.setdefault(name, (snapshot.snapshot_id, snapshot.sequence_number))
                assert entry.data_file.record_count == rows[name]
                assert (entry.sequence_number, entry.file_sequence_number) == (added_by[name][1],) * 2
                deleted = entry.status == ManifestEntryStatus.DELETED
                assert entry.snapshot_id == (snapshot.snapshot_id if deleted else added_by[name][0])
                assert manifest.min_sequence_number <= entry.sequence_number <= manifest.sequence_number
                [summary] = manifest.partitions
                value = entry.data_file.partition[0]
                if value is None:
                    assert summary.contains_null
                else:
                    low, high = (from_bytes(IntegerType(), b) for b in (summary.lower_bound, summary.upper_bound))
                    assert low <= value <= high
        live = [*found[ManifestEntryStatus.EXISTING], *found[ManifestEntryStatus.ADDED]]
        assert sorted(live) == sorted(table.files())
        new = {name for name in live if added_by[name][0] == snapshot.snapshot_id}
        assert new == table.files() - before
        assert new <= set(found[ManifestEntryStatus.ADDED])
        # What a snapshot deletes is in that snapshot only.
        assert sorted(found[ManifestEntryStatus.DELETED]) == sorted(before - table.files())
        before = table.files()
        table.change_at_random()
        table.publish()
    assert most > 3


def test_names_of_partition_columns_are_names_in_avro_whatever_their_letters(tmp_path) -> None:
    table = IcebergFolder(LocalStore(tmp_path / "t"))
    columns = COLUMNS.replace('"p"', '"größe-日"')
    file = DataFile("größe-日=7/0000000000000009_20260101000000000.parquet", (("größe-日", "7"),), 1, 10, 1000, "g")
    with Transaction.begin(table.timeline, Action.REPLACECOMMIT, Operation.OVERWRITE) as transaction:
        change = Change(DataFiles.of([file], ("größe-日",)), schema_json=columns, partition_by=("größe-日",))
        transaction.commit(change)
    table.publish()
    [manifest] = table.opened().current_snapshot().manifests(IO)
    content = IO.new_input(manifest.manifest_path).open().read()
    assert b'"name": "gr_xF6_xDFe_x2D_x65E5"' in content
    [entry] = manifest.fetch_manifest_entry(IO)
    assert entry.data_file.partition[0] == 7


def test_manifests_are_a_function_of_the_versions(tmp_path, small) -> None:
    table = Partitioned(LocalStore(tmp_path / "t"), random.Random(3))
    table.publish()
    for _ in range(8):
        table.change_at_random()
        before = table.published_bytes()
        table.publish()
        once = table.published_bytes()
        table.store.delete_tree(FOLDER)
        for path, content in before.items():
            table.store.put(path, content)
        catch_up(PublishedTable(LocalStore(tmp_path / "t"), Timeline(table.store)), TABLE, 24)
        assert table.published_bytes() == once


def test_all_retained_snapshots_stay_readable_and_the_others_files_go(tmp_path, small) -> None:
    table = Partitioned(LocalStore(tmp_path / "t"), random.Random(7))
    table.publish(0)
    seen = {}
    for _ in range(20):
        table.change_at_random()
        table.publish(0)
        opened = table.opened()
        seen[opened.current_snapshot().snapshot_id] = {name.rpartition("/")[2] for name in table.files()}
        for each in opened.snapshots()[-3:]:
            assert each.snapshot_id not in seen or table.live(each.snapshot_id) == seen[each.snapshot_id]
    needed = {table.relative(each.manifest_path) for snapshot in opened.snapshots() for each in snapshot.manifests(IO)}
    there = {path for path in table.published_bytes() if path.endswith(".avro") and "-list." not in path}
    assert needed <= there
    # Those of the snapshot that has just gone are deleted with the next one.
    assert len(there - needed) <= 6


def test_a_commit_reads_no_manifest_that_it_does_not_write_again(tmp_path, small, monkeypatch) -> None:
    table = Partitioned(LocalStore(tmp_path / "t"), random.Random(1))
    table.change(Action.COMMIT, 200)
    table.publish()
    before = {each.manifest_path for each in table.opened().current_snapshot().manifests(IO)}
    read: list[str] = []
    reads = table.store.read
    monkeypatch.setattr(table.store, "read", lambda path: read.append(path) or reads(path))
    table.change(Action.COMMIT, 1, sorted(table.files())[:1])
    table.publish()
    after = {each.manifest_path for each in table.opened().current_snapshot().manifests(IO)}
    manifests = {path for path in read if path.endswith(".avro") and "-list." not in path}
    assert manifests == {table.relative(path) for path in before - after}
    assert len(manifests) <= 2 < len(before) / 3


@pytest.mark.parametrize("change", [lambda content: content[:-40], lambda content: content.replace(b"p=", b"q=", 1)])
def test_a_manifest_that_was_changed_is_not_copied(tmp_path, change) -> None:
    table = Partitioned(LocalStore(tmp_path / "t"), random.Random(1))
    table.publish()
    table.change(Action.COMMIT, 20)
    table.publish()
    [path] = [table.relative(each.manifest_path) for each in table.opened().current_snapshot().manifests(IO)]
    table.store.put(path, change(table.store.read(path)))
    table.change(Action.COMMIT, 1, sorted(table.files())[:1])
    with pytest.raises(CorruptError, match=path):
        table.publish()


FULL_SIZE = 100
TABLES = st.lists(st.builds(KeptManifest, st.integers(1, 250), st.booleans()), max_size=40)


def after(manifests: list[KeptManifest]) -> list[int]:
    """The sizes of a table's manifests after a commit."""
    groups = grouped(manifests, FULL_SIZE)
    put_together = {position for group in groups for position in group}
    stay = [each.size_bytes for position, each in enumerate(manifests) if position not in put_together]
    return [*(sum(manifests[each].size_bytes for each in group) for group in groups), *stay]


@given(TABLES)
def test_what_is_written_is_in_one_group_and_what_is_full_is_not_read(manifests) -> None:
    positions = [position for group in grouped(manifests, FULL_SIZE) for position in group]
    assert len(positions) == len(set(positions))
    assert {each for each, found in enumerate(manifests) if found.is_written} <= set(positions)
    assert all(manifests[each].is_written or manifests[each].size_bytes < FULL_SIZE for each in positions)
    assert sum(not manifests[each].is_written for each in positions) <= 8


@given(TABLES)
def test_a_group_of_several_is_below_twice_the_size_of_a_full_one(manifests) -> None:
    for group in grouped(manifests, FULL_SIZE):
        assert len(group) == 1 or sum(manifests[each].size_bytes for each in group) < 2 * FULL_SIZE
        assert len(group) > 1 or manifests[group[0]].is_written


@given(st.lists(st.builds(KeptManifest, st.integers(1, 250), st.just(True)), max_size=40), st.integers(0, 8))
def test_at_most_one_manifest_is_not_full_afterwards(written, small) -> None:
    manifests = [*written, *[KeptManifest(40, is_written=False)] * small]
    assert sum(size < FULL_SIZE for size in after(manifests)) <= 1


@given(st.lists(st.integers(1, 250), max_size=300))
def test_a_table_of_many_small_manifests_has_one_after_some_commits(sizes) -> None:
    for _ in range(len(sizes) // 8 + 2):
        sizes = after([KeptManifest(each, is_written=False) for each in sizes])
    assert sum(size < FULL_SIZE for size in sizes) <= 1


@given(st.lists(st.integers(1, 60), min_size=1, max_size=300))
def test_commits_of_few_files_write_as_many_bytes_as_fit_in_a_manifest(commits) -> None:
    sizes: list[int] = []
    for added in commits:
        manifests = [KeptManifest(added, is_written=True), *(KeptManifest(each, is_written=False) for each in sizes)]
        groups = grouped(manifests, FULL_SIZE)
        assert sum(manifests[each].size_bytes for group in groups for each in group) < 2 * FULL_SIZE
        sizes = after(manifests)
    assert sum(sizes) == sum(commits)
    assert (len(sizes) - 1) * FULL_SIZE <= sum(commits)


@given(st.lists(st.integers(1, 250), max_size=100))
def test_new_files_are_cut_into_full_parts_in_their_order(sizes) -> None:
    ranges = cut(sizes, FULL_SIZE)
    assert [each for begin, end in ranges for each in range(begin, end)] == list(range(len(sizes)))
    assert all(1.5 * FULL_SIZE <= sum(sizes[begin:end]) < 1.5 * FULL_SIZE + 250 for begin, end in ranges[:-1])


def test_a_full_manifest_of_a_table_of_very_many_files_has_the_root_of_their_number() -> None:
    assert full_bytes(0, 0) == full_bytes(300, 1) == full_bytes(300 * 10_000, 10_000) == 128 << 10
    assert full_bytes(300 * 4_000_000, 4_000_000) == 300 * 2_000
