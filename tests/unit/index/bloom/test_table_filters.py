"""Bloom filters of files in slices on disk: found, too large, stale, damaged or gone."""

from __future__ import annotations

import gc
from functools import cache, partial
from pathlib import Path
from threading import Barrier
from weakref import WeakSet

import numpy as np
import pyarrow as pa
import pytest

from dbt.adapters.zlayout.index.bloom import filter_slices, table_filters
from dbt.adapters.zlayout.index.bloom.file_filters import FilterBuilder, filter_bytes, filter_table
from dbt.adapters.zlayout.index.bloom.filter_slices import FilterSlice, slice_path, write_slices
from dbt.adapters.zlayout.index.bloom.table_filters import TableFilters
from dbt.adapters.zlayout.index.slice_reading import SliceCache
from dbt.adapters.zlayout.index.statistics.tracked import TrackedColumn
from dbt.adapters.zlayout.predicate.expr import Column
from dbt.adapters.zlayout.store.local import LocalStore
from dbt.adapters.zlayout.timeline.files.data_files import DataFile, DataFiles

ID, NAME = TrackedColumn(("id",), pa.int64()), TrackedColumn(("s", "name"), pa.string())
INSTANT = "20260131235959999"


def column_of(tracked: TrackedColumn) -> Column:
    return Column(tracked.path, tracked.type)


def built(values: pa.Array, most_bytes: int = 1 << 20) -> bytes | None:
    builder = FilterBuilder(values.type, most_bytes)
    for start in range(0, len(values), 1_000):
        builder.add(values.slice(start, 1_000))
    return builder.content()


def files_named(*names: str, rows: int = 10) -> DataFiles:
    return DataFiles.of([DataFile(each, (), rows, 1_000, 5, "0" * 16) for each in names], ())


class Table:
    """A folder with slices of filters."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = LocalStore(folder)
        self.paths: list[str] = []
        self.problems: list[str] = []

    def put(self, files: DataFiles, filters: pa.Table, slice_bytes: int = 64 << 20) -> list[str]:
        new = []
        for number, content in enumerate(write_slices(files, [filters], slice_bytes)):
            new.append(slice_path(f"{int(INSTANT) + len(self.paths) + number}", content))
            self.store.put(new[-1], content)
        self.paths += new
        return new

    def open(self) -> TableFilters:
        self.problems = []
        return TableFilters(self.paths, partial(FilterSlice, self.store), self.problems.append)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path)


def test_a_value_is_looked_for_only_in_files_that_may_hold_it(table: Table) -> None:
    files = files_named("a", "b", "c")
    ids = [pa.array([1, 2, None]), pa.array([3, 4]), pa.array([None, None], pa.int64())]
    names = [pa.array(["x", "y"]), pa.array(["x"]), pa.array(["z" * 300])]
    filters = {ID.path: list(map(built, ids)), NAME.path: list(map(built, names))}
    table.put(files, filter_table(["a", "b", "c"], [ID, NAME], filters))
    found = table.open().of(files)
    assert found.may_hold(column_of(ID), pa.scalar(3)).tolist() == [False, True, False]
    assert found.may_hold(column_of(ID), pa.array([2, 4])).tolist() == [True, True, False]
    assert found.may_hold(column_of(NAME), pa.scalar("x")).tolist() == [True, True, False]
    assert found.may_hold(column_of(NAME), pa.scalar("z" * 300)).tolist() == [False, False, True]


def test_one_in_a_hundred_absent_values_is_found_by_mistake_and_no_present_one_is_lost(table: Table) -> None:
    """A thousand files with random ids: a present id is looked for in its file and 1 % of the others."""
    random = np.random.default_rng(7)
    names = [f"f{number}" for number in range(1_000)]
    ids = [random.integers(0, 1 << 62, 500) for _ in names]
    files = files_named(*names)
    contents = [built(pa.array(each)) for each in ids]
    table.put(files, filter_table(names, [ID], {ID.path: contents}))
    found = table.open().of(files)
    present = [(number, int(ids[number][0])) for number in random.integers(0, 1_000, 50).tolist()]
    looked = []
    for number, value in present:
        kept = found.may_hold(column_of(ID), pa.scalar(value))
        assert kept[number]
        looked.append(int(kept.sum()))
    absent = [int(found.may_hold(column_of(ID), pa.scalar(-value)).sum()) for _, value in present]
    assert np.mean(absent) <= 10
    assert np.mean(looked) <= 1 + 10
    assert max(len(each or b"") for each in contents) <= 2 * 500


def test_a_large_filter_is_read_in_parts_and_stays_within_two_bytes_a_value(table: Table) -> None:
    random = np.random.default_rng(8)
    ids = random.integers(0, 1 << 62, 200_000)
    content = built(pa.array(ids))
    assert content is not None
    assert len(content) == filter_bytes(200_000) <= 2 * 200_000
    files = files_named("a", "b")
    (path,) = table.put(files, filter_table(["a", "b"], [ID], {ID.path: [content, content]}))
    found = table.open().of(files)
    read: list[int] = []
    whole = table.store.read_ranges

    def counted(path: str, starts: list[int], lengths: list[int]) -> list[bytes]:
        read.extend(lengths)
        return whole(path, starts, lengths)

    table.store.read_ranges = counted  # type: ignore[method-assign]
    for value in ids[:100].tolist():
        assert found.may_hold(column_of(ID), pa.scalar(value)).tolist() == [True, True]
    assert sum(read) <= 100 * 2 * 1024
    assert table.store.stat(path).size_bytes <= 2 * 2 * 200_000


def test_slices_are_opened_and_looked_into_side_by_side(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    both = Barrier(2, timeout=20)
    files = files_named("a", "b")
    for name in "ab":
        table.put(files, filter_table([name], [ID], {ID.path: [built(pa.array([1]))]}))
    opened = TableFilters(table.paths, cache(lambda path: (both.wait(), FilterSlice(table.store, path))[1]), print)
    assert len(opened.slices()) == 2
    may_hold = FilterSlice.may_hold
    monkeypatch.setattr(FilterSlice, "may_hold", lambda *given: (both.wait(), may_hold(*given))[1])
    assert opened.of(files).may_hold(column_of(ID), pa.scalar(-1)).tolist() == [False, False]


def test_an_open_table_keeps_no_slice_that_the_cache_has_let_go_of(table: Table) -> None:
    for name in "abc":
        table.put(files_named(name), filter_table([name], [ID], {ID.path: [built(pa.array([ord(name)]))]}))
    size = FilterSlice(table.store, table.paths[0]).size_bytes
    kept, alive = SliceCache(FilterSlice, most_bytes=size + 100), WeakSet[FilterSlice]()

    def read(path: str) -> FilterSlice:
        alive.add(part := kept.read(table.store, path))
        return part

    found = TableFilters(table.paths, read, pytest.fail).of(files_named(*"abc"))
    for _ in range(2):
        assert found.may_hold(column_of(ID), pa.scalar(ord("b"))).tolist() == [False, True, False]
        gc.collect()
        assert len(alive) == 1


def test_a_file_with_too_many_values_has_no_filter_and_is_kept(table: Table) -> None:
    files = files_named("a", "b")
    large = built(pa.array(range(5_000)), most_bytes=1_024)
    assert large is None
    table.put(files, filter_table(["a", "b"], [ID], {ID.path: [large, built(pa.array([1]))]}))
    found = table.open().of(files)
    assert found.may_hold(column_of(ID), pa.scalar(-1)).tolist() == [True, False]
    known, refused = found.state(ID.path, str(ID.type))
    assert known.tolist() == [False, True]
    assert refused.tolist() == [True, False]


def test_values_of_another_type_end_a_filter_and_not_the_write() -> None:
    builder = FilterBuilder(pa.int64())
    builder.add(pa.array([1]))
    builder.add(pa.array(["x"]))
    builder.add(pa.array([2]))
    assert builder.content() is None
    assert builder.missing_in(b"") == 0


@pytest.mark.parametrize("change", ["rows", "type", "column", "many", "null", "unlike"])
def test_a_filter_that_does_not_fit_keeps_the_file(table: Table, change: str) -> None:
    files = files_named("a")
    table.put(files, filter_table(["a"], [ID], {ID.path: [built(pa.array([1]))]}))
    asked, value = column_of(ID), pa.scalar(2)
    if change == "rows":
        files = files_named("a", rows=11)
    elif change == "type":
        asked = Column(ID.path, pa.int32())
        value = pa.scalar(2, pa.int32())
    elif change == "column":
        asked = Column(("other",), pa.int64())
    elif change == "many":
        value = pa.array(range(2, 1_000))
    elif change == "null":
        value = pa.scalar(None, pa.int64())
    elif change == "unlike":
        value = pa.scalar("x")
    found = table.open().of(files).may_hold(asked, value)
    assert found is None or found.tolist() == [True]


def test_the_newest_filter_of_a_file_counts_and_one_column_may_come_later(table: Table) -> None:
    files = files_named("a")
    table.put(files, filter_table(["a"], [ID], {ID.path: [built(pa.array([1]))]}))
    table.put(files, filter_table(["a"], [NAME], {NAME.path: [built(pa.array(["x"]))]}))
    table.put(files, filter_table(["a"], [ID, NAME], {}))
    found = table.open().of(files)
    assert found.may_hold(column_of(ID), pa.scalar(2)).tolist() == [False]
    assert found.may_hold(column_of(NAME), pa.scalar("y")).tolist() == [False]
    table.put(files, filter_table(["a"], [ID], {ID.path: [built(pa.array([2]))]}))
    assert table.open().of(files).may_hold(column_of(ID), pa.scalar(2)).tolist() == [True]


@pytest.mark.parametrize("where", ["filter", "table", "length", "cut", "empty", "gone", "name"])
@pytest.mark.parametrize("size", [3, 100_000])
def test_a_damaged_slice_keeps_files_and_is_told(table: Table, where: str, size: int) -> None:
    files = files_named("a")
    (path,) = table.put(files, filter_table(["a"], [ID], {ID.path: [built(pa.array(range(size)))]}))
    local = table.folder / path
    content = bytearray(local.read_bytes())
    filter_size = filter_bytes(size)
    if where == "filter":
        content[:filter_size] = bytes(filter_size)
    elif where == "table":
        content[filter_size + 40] ^= 1
    elif where == "length":
        content[-8:] = (1 << 40).to_bytes(8, "little")
    elif where == "cut":
        del content[filter_size // 2 :]
    elif where == "empty":
        content.clear()
    local.write_bytes(bytes(content))
    if where == "gone":
        local.unlink()
    if where == "name":
        local.rename(table.folder / "other_0123456789abcdef.bloom")
        table.paths = ["other_0123456789abcdef.bloom"]
    found = table.open().of(files).may_hold(column_of(ID), pa.scalar(0))
    assert found is None or found.tolist() == [True]
    assert len(table.problems) == 1


def test_any_single_changed_byte_of_a_filter_is_noticed(table: Table) -> None:
    files = files_named("a")
    content = built(pa.array(range(100)))
    assert content
    (path,) = table.put(files, filter_table(["a"], [ID], {ID.path: [content]}))
    local, right = table.folder / path, (table.folder / path).read_bytes()
    for at in range(0, len(content), 7):
        local.write_bytes(right[:at] + bytes([right[at] ^ 0x10]) + right[at + 1 :])
        assert table.open().of(files).may_hold(column_of(ID), pa.scalar(-5)).tolist() == [True]
        assert table.problems == ["1 Bloom filters of id are damaged; their files are read"]


def test_a_lookup_that_would_read_too_much_keeps_files(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_filters, "_MOST_READ_BYTES", 1_500)
    files = files_named("a", "b")
    content = built(pa.array(range(10_000)))
    table.put(files, filter_table(["a", "b"], [ID], {ID.path: [content, content]}))
    assert table.open().of(files).may_hold(column_of(ID), pa.scalar(-1)).tolist() == [True, True]
    assert "would read more than" in table.problems[0]


def test_large_filters_go_to_several_slices(table: Table) -> None:
    names = [f"f{number}" for number in range(5)]
    files = files_named(*names)
    contents = [built(pa.array([number])) for number in range(5)]
    tables = filter_table(names, [ID], {ID.path: contents})
    each = [tables.slice(number, 1) for number in range(5)]
    slices = list(write_slices(files, each, slice_bytes=64))
    assert len(slices) == 3
    for content in slices:
        table.paths.append(slice_path(INSTANT, content))
        table.store.put(table.paths[-1], content)
    found = table.open().of(files)
    for number in range(5):
        assert found.may_hold(column_of(ID), pa.scalar(number)).tolist() == [each == number for each in range(5)]


def test_filters_move_to_another_slice_unchanged_and_damaged_ones_stay_behind(table: Table) -> None:
    files = files_named("a", "b", "c")
    contents = [built(pa.array([1])), built(pa.array(range(5_000)), 1_024), built(pa.array([3]))]
    (path,) = table.put(files, filter_table(["a", "b", "c"], [ID], {ID.path: contents}))
    local = table.folder / path
    content = bytearray(local.read_bytes())
    content[33] ^= 1
    local.write_bytes(bytes(content))
    old = FilterSlice(table.store, path)
    table.paths = []
    (again,) = write_slices(files, old.tables([0, 1, 2]))
    table.paths = [slice_path(INSTANT, again)]
    table.store.put(table.paths[0], again)
    found = table.open().of(files)
    assert found.may_hold(column_of(ID), pa.scalar(7)).tolist() == [False, True, True]
    assert found.state(ID.path, "int64")[1].tolist() == [False, True, False]


def test_a_slice_without_files_is_not_written() -> None:
    assert list(write_slices(files_named("a"), [filter_table(["b"], [ID], {ID.path: [b""]})])) == []
    assert filter_slices.checks_of(b"") == b""
