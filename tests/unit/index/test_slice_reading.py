"""Slices stay in memory across versions, are read again when their file changes, and take bounded memory."""

import gc
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from dbt.adapters.zlayout.errors import CorruptError, FileMissingError
from dbt.adapters.zlayout.index.footers.footer import footer_table
from dbt.adapters.zlayout.index.slice_reading import SliceCache, read_slice
from dbt.adapters.zlayout.index.slice_writing import slice_path, write_slices
from dbt.adapters.zlayout.index.statistics.column_stats import column_stats_table, stats_type
from dbt.adapters.zlayout.index.table_index import TableIndex
from dbt.adapters.zlayout.store.local import LocalStore
from dbt.adapters.zlayout.timeline.files.data_files import DataFile, DataFiles


class CountingStore(LocalStore):
    def __init__(self, root):
        super().__init__(root)
        self.bytes_read = 0

    def read_tail(self, path, most_bytes):
        content = super().read_tail(path, most_bytes)
        self.bytes_read += len(content)
        return content


@pytest.fixture
def store(tmp_path):
    return CountingStore(tmp_path)


def written(store, name):
    files = DataFiles.of([DataFile(f"{name}.parquet", (), 1, 2, 3, "g")])
    content = write_slices(files, footer_table([], [], []))["column_stats"]
    path = slice_path("column_stats", "20240101000000000", content)
    store.put(path, content)
    return path, len(content)


def test_a_slice_is_read_once(store):
    cache, (path, size) = SliceCache(read_slice), written(store, "a")
    first = cache.read(store, path)
    assert cache.read(store, path) is first
    assert cache.read(CountingStore(store.local_path("")), path) is first
    assert store.bytes_read == size
    assert first.column("path", pytest.fail).to_pylist() == ["a.parquet"]


def test_a_slice_whose_file_changes_is_read_again(store):
    cache, (path, _) = SliceCache(read_slice), written(store, "a")
    cache.read(store, path)
    store.put(path, b"damaged")
    with pytest.raises(CorruptError, match="damaged"):
        cache.read(store, path)
    store.delete([path])
    with pytest.raises(FileMissingError):
        cache.read(store, path)
    assert written(store, "a")[0] == path
    assert cache.read(store, path).row_count == 1


def test_tables_do_not_share_slices(store, tmp_path):
    cache, (path, _) = SliceCache(read_slice), written(store, "a")
    other = CountingStore(tmp_path / "other")
    assert written(other, "a")[0] == path
    assert cache.read(other, path) is not cache.read(store, path)


def test_the_slices_used_least_recently_go_first(store):
    slices = [written(store, name) for name in "abcd"]
    sizes = [read_slice(store, path).size_bytes for path, _ in slices]
    cache = SliceCache(read_slice, most_bytes=sum(sizes[:3]) + 500)
    for path, _ in slices[:3]:
        cache.read(store, path)
    cache.read(store, slices[0][0])
    cache.read(store, slices[3][0])
    before = store.bytes_read
    cache.read(store, slices[0][0])
    assert store.bytes_read == before
    cache.read(store, slices[1][0])
    assert store.bytes_read == before + slices[1][1]


def test_an_open_table_keeps_no_slice_that_the_cache_has_let_go_of(store):
    paths = [written(store, name)[0] for name in "abcd"]
    cache = SliceCache(read_slice, most_bytes=read_slice(store, paths[0]).size_bytes + 500)
    alive = weakref.WeakSet()

    def read(path):
        alive.add(part := cache.read(store, path))
        return part

    index = TableIndex(store, {"column_stats": paths}, read=read)
    files = DataFiles.of([DataFile(f"{name}.parquet", (), 1, 2, 3, "g") for name in "abcd"])
    assert index.rows().num_rows == 4
    gc.collect()
    assert len(alive) == 1
    assert index.stored(files).num_rows == 4
    assert index.problems == []


def test_a_slice_larger_than_the_cache_is_kept_alone(store):
    cache, (path, _), (other, _) = SliceCache(read_slice, most_bytes=1), written(store, "a"), written(store, "b")
    first = cache.read(store, path)
    assert cache.read(store, path) is first
    cache.read(store, other)
    before = store.bytes_read
    assert cache.read(store, other).row_count == 1
    assert store.bytes_read == before


def test_threads_share_a_slice(store):
    cache, (path, _) = SliceCache(read_slice), written(store, "a")
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: cache.read(store, path).column("path", pytest.fail).to_pylist(), range(200)))
    assert found == [["a.parquet"]] * 200


def wide(name, columns):
    struct = pa.nulls(1, stats_type(pa.int64()))
    paths = [(f"c{number}",) for number in range(columns)]
    table = column_stats_table(pa.array([f"{name}.parquet"]), paths, [struct] * columns, pa.array([True]))
    return write_slices(DataFiles.of([DataFile(f"{name}.parquet", (), 1, 2, 3, "g")]), table)["column_stats"]


def resident_bytes():
    pages = Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]
    return int(pages) * 4096


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="Linux tells the memory of a process in a file")
def test_what_counts_is_what_the_process_holds(store):
    content = wide("a", 40)
    store.put(path := slice_path("column_stats", "20240101000000000", content), content)
    read_slice(store, path)
    gc.collect()
    before = resident_bytes()
    slices = [read_slice(store, path) for _ in range(200)]
    held = resident_bytes() - before
    assert held < 2 * sum(each.size_bytes for each in slices), held


def calls_of(action):
    found = []
    sys.setprofile(lambda _, event, __: found.append(event))
    try:
        action()
    finally:
        sys.setprofile(None)
    return len(found)


def test_a_hit_costs_the_same_however_many_slices_there_are(store):
    cache, slices = SliceCache(read_slice), [written(store, f"f{number}")[0] for number in range(60)]
    for path in slices[:2]:
        cache.read(store, path).column("path", pytest.fail)
    few = calls_of(lambda: cache.read(store, slices[0]))
    for path in slices:
        cache.read(store, path).column("path", pytest.fail)
    assert calls_of(lambda: cache.read(store, slices[0])) == few
