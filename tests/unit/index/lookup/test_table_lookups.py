"""Lookup indexes in slices on disk: exact, read in parts, folded, and advice when damaged, stale or gone."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from dbt.adapters.zlayout.errors import StoreError
from dbt.adapters.zlayout.index.lookup import lookup_slices
from dbt.adapters.zlayout.index.lookup.lookup_key import HashCollector, LookupKey, run_bytes, runs_of
from dbt.adapters.zlayout.index.lookup.lookup_slices import LookupSlice, SliceName
from dbt.adapters.zlayout.index.lookup.table_lookups import FilesLookups, TableLookups
from dbt.adapters.zlayout.index.slice_reading import SliceCache
from dbt.adapters.zlayout.index.statistics.tracked import TrackedColumn
from dbt.adapters.zlayout.predicate.expr import Column
from dbt.adapters.zlayout.spark.commit import optional_slices
from dbt.adapters.zlayout.spark.commit.optional_slices import NewLookups, lookups_after
from dbt.adapters.zlayout.store.local import LocalStore
from dbt.adapters.zlayout.timeline.files.data_files import DataFile, DataFiles

ID, NAME = TrackedColumn(("id",), pa.int64()), TrackedColumn(("s", "name"), pa.string())
BY_ID, BOTH = LookupKey.of([ID]), LookupKey.of([NAME, ID])
INSTANT = 20260131235959000


def column_of(tracked: TrackedColumn) -> Column:
    return Column(tracked.path, tracked.type)


def files_named(*names: str, rows: int = 10) -> DataFiles:
    return DataFiles.of([DataFile(each, (), rows, 1_000, 5, "0" * 16) for each in names], ())


def piece(path: str, keys: Sequence[LookupKey], *columns: pa.Array) -> bytes:
    """The hashes of a file, as the task that writes it in two row groups reports them."""
    runs = {}
    for key, values in zip(keys, columns, strict=True):
        collector = HashCollector(key)
        together = values if isinstance(values, list) else [values]
        half = len(together[0]) // 2
        collector.add([each.slice(0, half) for each in together])
        collector.add([each.slice(half) for each in together])
        runs[key] = collector.hashes()
    return run_bytes(path, runs)


class Table:
    """A folder with slices of lookup indexes."""

    def __init__(self, folder: Path) -> None:
        self.store = LocalStore(folder)
        self.paths: tuple[str, ...] = ()
        self.problems: list[str] = []
        self.read: dict[str, int] = {}
        self._commits = 0
        whole, tail = self.store.read_ranges, self.store.read_tail

        def ranges(path: str, starts: Sequence[int], lengths: Sequence[int]) -> list[bytes]:
            self.read[path] = self.read.get(path, 0) + sum(lengths)
            return whole(path, starts, lengths)

        def last(path: str, most: int) -> bytes:
            content = tail(path, most)
            self.read[path] = self.read.get(path, 0) + len(content)
            return content

        self.store.read_ranges = ranges  # type: ignore[method-assign]
        self.store.read_tail = last  # type: ignore[method-assign]

    def commit(self, adds: DataFiles, pieces: Sequence[bytes], live: DataFiles, *, removes: bool = False) -> None:
        self._commits += 1
        instant = str(INSTANT + self._commits)
        new = NewLookups(tuple(pieces)).put(self.store, instant, adds)
        self.paths = (*lookups_after(self.store, instant, self.paths, live, removes=removes), *new)

    def open(self, files: DataFiles) -> FilesLookups:
        self.problems, self.read = [], {}
        return TableLookups(self.paths, partial(LookupSlice, self.store), self.problems.append).of(files)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path)


def kept(found: FilesLookups, values: object, tracked: TrackedColumn = ID) -> list[bool]:
    asked = pa.array(values, tracked.type) if isinstance(values, list) else pa.scalar(values, tracked.type)
    flags = found.may_hold(column_of(tracked), asked)
    return [True] * len(found.files) if flags is None else flags.tolist()


def test_a_value_and_null_are_looked_for_in_exactly_the_files_that_hold_them(table: Table) -> None:
    files = files_named("a", "b", "c")
    table.commit(
        files,
        [
            piece("a", [BY_ID], pa.array([1, 2, None])),
            piece("b", [BY_ID], pa.array([3, 4, 2])),
            piece("c", [BY_ID], pa.array([], pa.int64())),
        ],
        files,
    )
    found = table.open(files)
    assert kept(found, 1) == [True, False, False]
    assert kept(found, 2) == [True, True, False]
    assert kept(found, 9) == [False, False, False]
    assert kept(found, [1, 4, 9]) == [True, True, False]
    assert kept(found, None) == [True, False, False]
    assert found.lacks(column_of(ID)).tolist() == [False, False, False]
    assert found.may_hold(Column(("id",), pa.int32()), pa.scalar(1, pa.int32())) is None
    assert found.may_hold(column_of(NAME), pa.scalar("x")) is None


def test_repeated_texts_have_the_hashes_of_their_dictionaries(table: Table) -> None:
    name = LookupKey.of([TrackedColumn(("name",), pa.string())])
    column = Column(("name",), pa.string())
    indices = pa.array([0, 1, 1, 0], pa.int32())
    dictionaries = [["x", "never used", None], ["x", None]]
    texts = [
        pa.DictionaryArray.from_arrays(pa.array([0, 0, None, 0], pa.int32()), pa.array(dictionaries[0])),
        pa.DictionaryArray.from_arrays(indices, pa.array(dictionaries[1])),
        pa.DictionaryArray.from_arrays(indices, pa.array(["x", "y"])),
    ]
    files = files_named("a", "b", "c")
    table.commit(files, [piece(each, [name], text) for each, text in zip("abc", texts, strict=True)], files)
    found = table.open(files)
    assert found.may_hold(column, pa.scalar("never used")).tolist() == [False, False, False]
    assert found.may_hold(column, pa.scalar("y")).tolist() == [False, False, True]
    assert found.may_hold(column, pa.scalar(None, pa.string())).tolist() == [True, True, False]


def test_columns_together_are_looked_for_by_their_combinations(table: Table) -> None:
    files = files_named("a", "b")
    rows = [[pa.array([1, 2, None]), pa.array(["x", "y", "z"])], [pa.array([1, 2, 3]), pa.array(["y", "x", None])]]
    table.commit(files, [piece(name, [BOTH], each) for name, each in zip("ab", rows, strict=True)], files)
    found = table.open(files)

    def together(number: object, name: object) -> list[bool]:
        wanted = {column_of(NAME): pa.scalar(name, pa.string()), column_of(ID): pa.scalar(number, pa.int64())}
        (told,) = found.may_hold_together(wanted)
        assert {each.path for each in told.columns} == {ID.path, NAME.path}
        return told.possible.tolist()

    assert together(1, "x") == [True, False]
    assert together(1, "y") == [False, True]
    assert together(3, None) == [False, True]
    assert together(None, "z") == [True, False]
    assert together(None, None) == [False, False]
    lists = {column_of(ID): pa.array([1, 7]), column_of(NAME): pa.array(["x", "q"])}
    assert found.may_hold_together(lists)[0].possible.tolist() == [True, False]
    assert found.may_hold_together({column_of(ID): pa.array([1])}) == []
    assert found.may_hold(column_of(ID), pa.scalar(1)) is None  # neither column alone has an index


def test_a_search_reads_the_table_of_blocks_once_and_then_a_block_for_each_value(table: Table) -> None:
    files = files_named("a", "b")
    ids = np.random.default_rng(1).permutation(600_000)
    table.commit(
        files, [piece("a", [BY_ID], pa.array(ids[:300_000])), piece("b", [BY_ID], pa.array(ids[300_000:]))], files
    )
    (path,) = table.paths
    size = table.store.stat(path).size_bytes
    found = table.open(files)
    assert kept(found, int(ids[5])) == [True, False]
    first = table.read[path]
    assert first <= 0.03 * size + (128 << 10)
    many = ids[299_950:300_050]
    assert kept(found, many.tolist()) == [True, True]
    assert table.read[path] - first <= 100 * 256 * 10
    for value in ids[299_990:300_010].tolist():
        assert kept(found, value) == [value in ids[:300_000], value in ids[300_000:]]


def test_large_commits_are_split_into_buckets_of_which_a_search_opens_one(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(optional_slices, "_BUCKET_PAIRS", 1_000)
    files = files_named("a", "b")
    table.commit(
        files, [piece("a", [BY_ID], pa.array(range(5_000))), piece("b", [BY_ID], pa.array(range(5_000, 9_000)))], files
    )
    assert [(SliceName.of(path).bucket, SliceName.of(path).bits) for path in table.paths] == [(n, 4) for n in range(16)]
    found = table.open(files)
    assert kept(found, 4_999) == [True, False]
    assert kept(found, 5_000) == [False, True]
    assert len(table.read) <= 2
    assert kept(found, list(range(4_000, 6_000))) == [True, True]
    assert found.covered(BY_ID).all()
    # Without one bucket, files are unknown for its values only.
    gone = table.paths[3]
    table.paths = tuple(path for path in table.paths if path != gone)
    found = table.open(files)
    assert not found.covered(BY_ID).any()
    answers = [kept(found, value) for value in range(300)]
    assert {tuple(each) for each in answers} == {(True, False), (True, True)}
    assert 5 < answers.count([True, True]) < 50


def test_a_file_that_has_changed_or_is_new_is_unknown(table: Table) -> None:
    files = files_named("a", "b")
    table.commit(files, [piece("a", [BY_ID], pa.array([1])), piece("b", [BY_ID], pa.array([2]))], files)
    changed = DataFiles.of(
        [files[0], DataFile("b", (), 10, 1_000, 6, "0" * 16), DataFile("c", (), 1, 1, 1, "0" * 16)], ()
    )
    found = table.open(changed)
    assert kept(found, 9) == [False, True, True]
    assert found.lacks(column_of(ID)).tolist() == [False, True, True]


def test_values_that_have_no_hash_leave_a_file_unknown_for_good(table: Table) -> None:
    files = files_named("a", "b")
    table.commit(files, [run_bytes("a", {BY_ID: None}), piece("b", [BY_ID], pa.array([2]))], files)
    found = table.open(files)
    assert kept(found, 9) == [True, False]
    assert (found.covered(BY_ID).tolist(), found.untold(BY_ID).tolist()) == ([False, True], [True, False])


@pytest.mark.parametrize("at", [100, 30_000, -1, -9, -200, -600])
def test_damage_anywhere_keeps_files_and_is_told(table: Table, at: int) -> None:
    files = files_named("a", "b")
    ids = np.arange(20_000)
    halves = pa.array(ids[:10_000]), pa.array(ids[10_000:])
    table.commit(files, [piece(name, [BY_ID], half) for name, half in zip("ab", halves, strict=True)], files)
    (path,) = table.paths
    local = table.store.local_path(path)
    content = bytearray(local.read_bytes())
    content[at] ^= 0x10
    local.write_bytes(content)
    found = table.open(files)
    wrong = [value for value in range(0, 20_000, 50) if kept(found, value) == [True, True]]
    for value in range(0, 20_000, 50):
        assert kept(found, value)[value // 10_000]
    if at < 0:
        assert len(wrong) == 400
    else:
        everything = pa.array(range(20_000))
        assert found.may_hold(column_of(ID), everything) is None
    assert any("damaged" in each for each in table.problems)


@pytest.mark.parametrize("left", [0, 7, 8, 100])
def test_a_cut_or_missing_slice_keeps_files(table: Table, left: int) -> None:
    files = files_named("a")
    table.commit(files, [piece("a", [BY_ID], pa.array([1]))], files)
    local = table.store.local_path(table.paths[0])
    local.write_bytes(local.read_bytes()[:left])
    assert kept(table.open(files), 9) == [True]
    local.unlink()
    assert kept(table.open(files), 9) == [True]
    assert table.problems


def test_slices_that_change_places_keep_files(table: Table) -> None:
    files = files_named("a", "b")
    table.commit(files_named("a"), [piece("a", [BY_ID], pa.array([1]))], files)
    table.commit(files_named("b"), [piece("b", [BY_ID], pa.array([2]))], files)
    first, second = (table.store.local_path(path) for path in table.paths)
    one, two = first.read_bytes(), second.read_bytes()
    first.write_bytes(two)
    second.write_bytes(one)
    assert kept(table.open(files), 1) == [True, True]
    assert len(table.problems) == 2


def test_ten_small_slices_become_one_and_files_that_are_gone_leave_it(table: Table) -> None:
    names = [f"f{number}" for number in range(25)]
    live: list[str] = []
    for number, name in enumerate(names):
        gone = live.pop(0) if number >= 20 else None
        before = files_named(*live)
        live.append(name)
        pieces = [piece(name, [BY_ID, BOTH], pa.array([number, 77]), [pa.array([number]), pa.array(["x"])])]
        table.commit(files_named(name), pieces, before, removes=gone is not None)
        files = files_named(*live)
        found = table.open(files)
        assert kept(found, number) == [False] * (len(live) - 1) + [True]
        assert kept(found, 77) == [True] * len(live)
        assert found.covered(BY_ID).all()
        assert found.covered(BOTH).all()
        assert len(table.paths) <= 2 * 11
    assert not table.problems
    table.commit(files_named(), [], files_named("f24"), removes=True)
    rows = [LookupSlice(table.store, path).rows["path"].to_pylist() for path in table.paths]
    assert all("f24" in each for each in rows)


def test_a_damaged_slice_does_not_stop_folding(table: Table) -> None:
    names = [f"f{number}" for number in range(11)]
    for number, name in enumerate(names):
        table.commit(files_named(name), [piece(name, [BY_ID], pa.array([number]))], files_named(*names[:number]))
        if number == 3:
            local = table.store.local_path(table.paths[-1])
            content = bytearray(local.read_bytes())
            content[3] ^= 1
            local.write_bytes(content)
    files = files_named(*names)
    found = table.open(files)
    assert len(table.paths) == 2
    assert kept(found, 5) == [number in (3, 5) for number in range(11)]


@pytest.mark.parametrize("fails", ["read_tail", "read_ranges"])
def test_a_store_that_fails_for_a_moment_costs_no_entries(
    table: Table, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    names = [f"f{number}" for number in range(10)]
    for number, name in enumerate(names):
        table.commit(files_named(name), [piece(name, [BY_ID], pa.array([number]))], files_named(*names[:number]))

    def fail(*_: object) -> bytes:
        raise StoreError("try again later")

    before = table.paths
    with monkeypatch.context() as patched:
        patched.setattr(table.store, fails, fail)
        patched.setattr(optional_slices, "SHARED_LOOKUPS", SliceCache(LookupSlice))
        patched.setattr(lookup_slices, "_LIKELY_BYTES", 8)  # so that pairs are read apart from the end of a slice
        table.commit(files_named(), [], files_named(*names), removes=True)
    assert table.paths == before
    assert kept(table.open(files_named(*names)), 5) == [number == 5 for number in range(10)]


def test_a_few_small_commits_never_write_a_large_slice_again(table: Table) -> None:
    names = [f"f{number}" for number in range(41)]
    table.commit(files_named("f0"), [piece("f0", [BY_ID], pa.array(range(100_000)))], files_named("f0"))
    (large,) = table.paths
    for number in range(1, 41):
        live = files_named(*names[:number])
        table.commit(files_named(names[number]), [piece(names[number], [BY_ID], pa.array([number]))], live)
    sizes = {each.path: each.size_bytes for each in table.store.list(".zlayout/index", recursive=True)}
    assert large in table.paths
    assert sum(sizes.values()) < 2 * sizes[large]
    assert len(table.paths) <= 16
    assert kept(table.open(files_named(*names)), 7) == [number in (0, 7) for number in range(41)]


def test_large_slices_stay_until_most_of_their_pairs_are_of_files_that_are_gone(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(optional_slices, "_LARGE_BYTES", 1_000)
    monkeypatch.setattr(optional_slices, "_MOST_SMALL", 1)
    files = files_named("a", "b", "c")
    values = [pa.array(range(number * 1_000, (number + 1) * 1_000)) for number in range(3)]
    table.commit(files, [piece(name, [BY_ID], each) for name, each in zip("abc", values, strict=True)], files)
    (large,) = table.paths
    table.commit(files_named("d"), [piece("d", [BY_ID], pa.array([1]))], files_named("a", "b"), removes=True)
    assert table.paths[0] == large
    table.commit(files_named(), [], files_named("a", "d"), removes=True)
    assert large not in table.paths
    found = table.open(files_named("a", "d"))
    assert kept(found, 1) == [True, True]
    assert kept(found, 1_500) == [False, False]


def test_a_dropped_index_leaves_the_others(table: Table) -> None:
    files = files_named("a")
    table.commit(files, [piece("a", [BY_ID, BOTH], pa.array([1]), [pa.array([1]), pa.array(["x"])])], files)
    table.paths = lookups_after(table.store, str(INSTANT), table.paths, files, drops=frozenset([BY_ID.paths]))
    found = table.open(files)
    assert not found.covered(BY_ID).any()
    assert found.covered(BOTH).all()


def test_runs_are_read_in_parts_from_a_staged_file(table: Table) -> None:
    values = pa.array(range(10_000))
    content = piece("a", [BY_ID], values)
    table.store.put("staged.runs", content)
    (inline,), (staged,) = runs_of(table.store, content), runs_of(table.store, "staged.runs")
    table.read.clear()
    for bits in (0, 3, 8):
        parts = [staged.bucket(bucket, bits) for bucket in range(1 << bits)]
        assert np.array_equal(np.concatenate(parts), inline.bucket(0, 0))
    table.read.clear()
    staged.bucket(7, 8)
    assert table.read["staged.runs"] < 8 * 10_000 // 100


def test_a_search_for_too_many_values_or_bytes_keeps_files(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    files = files_named("a")
    table.commit(files, [piece("a", [BY_ID], pa.array(range(5_000)))], files)
    found = table.open(files)
    monkeypatch.setattr("dbt.adapters.zlayout.index.lookup.table_lookups._MOST_VALUES", 3)
    assert kept(found, [9_001, 9_002, 9_003, 9_004]) == [True]
    monkeypatch.setattr("dbt.adapters.zlayout.index.lookup.table_lookups._MOST_READ_BYTES", 10_000)
    answers = [kept(found, 10_000 + number) for number in range(50)]
    assert answers[0] == [False]
    assert answers[-1] == [True]
    assert "would read more than" in table.problems[0]
    assert kept(found.anew(), 10_000) == [False]
