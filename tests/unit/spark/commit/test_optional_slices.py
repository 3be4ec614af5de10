"""Many small slices of Bloom filters become one; slices of lookup indexes are tested with their searches."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from dbt.adapters.zlayout.errors import StoreError
from dbt.adapters.zlayout.index.bloom.file_filters import FilterBuilder, filter_table
from dbt.adapters.zlayout.index.bloom.filter_slices import FilterSlice, slice_path, write_slices
from dbt.adapters.zlayout.index.statistics.tracked import TrackedColumn
from dbt.adapters.zlayout.spark.commit import optional_slices
from dbt.adapters.zlayout.spark.commit.optional_slices import NewOptional, filters_after
from dbt.adapters.zlayout.spark.files.distinct_values import Pieces
from dbt.adapters.zlayout.store.local import LocalStore
from dbt.adapters.zlayout.timeline.files.data_files import DataFile, DataFiles

INSTANT = "20260131235959999"
ID, NAME = TrackedColumn(("id",), pa.int64()), TrackedColumn(("name",), pa.string())


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path)


def content(values: pa.Array, kind: pa.DataType) -> bytes | None:
    builder = FilterBuilder(kind)
    builder.add(values)
    return builder.content()


def test_of_two_filters_of_a_file_the_later_one_is_kept(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optional_slices, "_worth_folding", lambda sizes, _: sizes)
    files = DataFiles.of([DataFile("f", (), 3, 1, 1, "0" * 16)], ())
    ids, none = content(pa.array([1]), pa.int64()), None
    live: list[str] = []
    for number, filters in enumerate(({}, {ID.path: [ids]}, {NAME.path: [none]})):
        (piece,) = write_slices(files, [filter_table(["f"], [ID, NAME], filters)])
        live.append(slice_path(f"{int(INSTANT) + number}", piece))
        store.put(live[-1], piece)
    merged = filters_after(store, INSTANT, live, files, removes=True)
    found = FilterSlice(store, merged[0])
    assert (len(merged), found.rows.num_rows, found.content(ID.path, 0)) == (1, 1, ids)
    assert found.places(NAME.path).is_refused.tolist() == [True]


class Unreachable(LocalStore):
    """A store that fails to read."""

    def read_tail(self, path: str, most_bytes: int) -> bytes:
        raise StoreError(f"{path}: try again in {most_bytes} ms")


def test_a_slice_that_cannot_be_read_at_the_moment_stays(store: LocalStore, tmp_path: Path) -> None:
    files = DataFiles.of([DataFile("f", (), 3, 1, 1, "0" * 16)], ())
    (piece,) = write_slices(files, [filter_table(["f"], [ID], {ID.path: [content(pa.array([1]), pa.int64())]})])
    path = slice_path(INSTANT, piece)
    store.put(path, piece)
    assert filters_after(Unreachable(tmp_path), INSTANT, [path], files, removes=True) == (path,)
    assert filters_after(store, INSTANT, ["gone_0123456789abcdef.bloom", path], files, removes=True) == (path,)


class Full(LocalStore):
    """A store without space."""

    def put(self, path: str, content: bytes) -> None:
        raise StoreError(f"no space for the {len(content)} bytes of {path}")


def test_slices_stay_as_they_are_if_one_of_them_all_cannot_be_written(store: LocalStore, tmp_path: Path) -> None:
    files = DataFiles.of([DataFile(f"f{number}", (), 3, 1, 1, "0" * 16) for number in range(10)], ())
    live = []
    for number in range(10):
        filters = {ID.path: [content(pa.array([number]), pa.int64())], NAME.path: [None]}
        (piece,) = write_slices(files, [filter_table([f"f{number}"], [ID, NAME], filters)])
        live.append(slice_path(f"{int(INSTANT) + number}", piece))
        store.put(live[-1], piece)
    assert len(filters_after(store, INSTANT, live, files)) == 1
    assert filters_after(Full(tmp_path), INSTANT, live, files) == tuple(live)
    with pytest.raises(StoreError, match="no space"):
        filters_after(Full(tmp_path), INSTANT, live, files, drops=frozenset([NAME.path]))


def test_ten_small_slices_become_one_and_dead_files_and_dropped_columns_go(store: LocalStore) -> None:
    files = DataFiles.of([DataFile(f"f{number}", (), 3, 1, 1, "0" * 16) for number in range(12)], ())
    live: tuple[str, ...] = ()
    for number in range(12):
        filters = {
            ID.path: [content(pa.array([number]), pa.int64())],
            NAME.path: [content(pa.array(["x"]), pa.string())],
        }
        (piece,) = write_slices(files, [filter_table([f"f{number}"], [ID, NAME], filters)])
        new = slice_path(f"{int(INSTANT) + number}", piece)
        store.put(new, piece)
        live = (*filters_after(store, f"{int(INSTANT) + number}", live, files), new)
    assert len(live) == 3  # one of ten, and two since
    rows = [row for path in live for row in FilterSlice(store, path).rows.column("path").to_pylist()]
    assert sorted(rows) == sorted(files["path"].to_pylist())
    some = files.take(pa.array([1, 11]))
    assert len(filters_after(store, INSTANT, live, some, removes=True)) == 2
    (left,) = filters_after(store, INSTANT, live, some, drops=frozenset([NAME.path]))
    found = FilterSlice(store, left)
    assert (found.types, found.rows.column("path").to_pylist()) == ({ID.path: "int64"}, ["f1", "f11"])
    assert filters_after(store, INSTANT, live, some, drops=frozenset([ID.path, NAME.path])) == ()


def test_a_few_small_filters_never_write_a_large_slice_again(store: LocalStore) -> None:
    files = DataFiles.of([DataFile(f"f{number}", (), 3, 1, 1, "0" * 16) for number in range(41)], ())
    live: tuple[str, ...] = ()
    for number in range(41):
        ids = pa.array([number]) if number else pa.array(range(100_000))
        (piece,) = write_slices(files, [filter_table([f"f{number}"], [ID], {ID.path: [content(ids, pa.int64())]})])
        new = slice_path(f"{int(INSTANT) + number}", piece)
        store.put(new, piece)
        live = (*filters_after(store, f"{int(INSTANT) + number}", live, files), new)
    sizes = {each.path: each.size_bytes for each in store.list(".zlayout/index", recursive=True)}
    assert live[0] == min(sizes)
    assert sum(sizes.values()) < 2 * sizes[live[0]]
    assert len(live) <= 16


def test_a_damaged_slice_is_left_behind_when_slices_are_merged(store: LocalStore) -> None:
    files = DataFiles.of([DataFile("f", (), 3, 1, 1, "0" * 16)], ())
    store.put("broken_0123456789abcdef.bloom", b"x")
    assert filters_after(store, INSTANT, ["broken_0123456789abcdef.bloom"], files, removes=True) == ()


def test_staged_files_that_cannot_be_deleted_do_not_fail_a_commit(tmp_path: Path) -> None:
    class Undeletable(LocalStore):
        def delete_tree(self, path: str) -> None:
            deleted.append(path)
            raise StoreError(f"{path}: try again later")

    deleted: list[str] = []
    pieces = Pieces(filters=("staged/a/0.bloom",), hashes=("staged/b/0.hashes",))
    NewOptional.of(pieces).forget_staged(Undeletable(tmp_path))
    assert deleted == ["staged/a", "staged/b"]
