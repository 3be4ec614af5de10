"""Bloom filters and lookup entries of existing files: made by the tasks of Spark jobs, which run here without Spark."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt.adapters.zlayout.index.bloom.file_filters import FilterBuilder, filter_table
from dbt.adapters.zlayout.index.bloom.filter_slices import BLOOM_FILTERS, FilterSlice, slice_path, write_slices
from dbt.adapters.zlayout.index.lookup.lookup_key import HashCollector, LookupKey
from dbt.adapters.zlayout.index.lookup.lookup_slices import LOOKUPS, LookupSlice
from dbt.adapters.zlayout.index.lookup.table_lookups import TableLookups
from dbt.adapters.zlayout.index.statistics.tracked import TrackedColumn
from dbt.adapters.zlayout.predicate.expr import Column
from dbt.adapters.zlayout.spark.commit.optional_slices import NewFilters, NewLookups, NewOptional
from dbt.adapters.zlayout.spark.files import file_report
from dbt.adapters.zlayout.spark.files.distinct_values import Wanted, value_slices
from dbt.adapters.zlayout.spark.files.file_report import filters_of
from dbt.adapters.zlayout.spark.index.file_values import CheckTask, ValuesTask, values_in_file
from dbt.adapters.zlayout.store.local import LocalStore
from dbt.adapters.zlayout.timeline.files.data_files import IDENTITY, DataFile, DataFiles

INSTANT = "20260131235959999"
ID, NAME, INNER = (
    TrackedColumn(("id",), pa.int64()),
    TrackedColumn(("name",), pa.string()),
    TrackedColumn(("s", "k"), pa.int32()),
)
ROWS = {
    "id": pa.array([1, 2, None]),
    "name": pa.array(["a", "b", "b"]),
    "s": pa.array([{"k": 1}, None, {"k": None}], pa.struct([("k", pa.int32())])),
}


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path)


def data_file(store: LocalStore, name: str, columns: dict[str, Any], rows: int = 3) -> DataFile:
    local = store.local_path(name)
    pq.write_table(pa.table(columns), local)
    found = store.stat(name)
    return DataFile(name, (), rows, found.size_bytes, found.modified_ms, "0" * 16)


def made(store: LocalStore, paths: Sequence[str], columns: Sequence[TrackedColumn]) -> list[dict[str, Any]]:
    batch = pa.RecordBatch.from_pydict({"path": list(paths)})
    rows = [
        row for each in ValuesTask(store.root_uri, INSTANT, Wanted(tuple(columns)))([batch]) for row in each.to_pylist()
    ]
    pieces = [row["staged"] if row["filters"] is None else row["filters"] for row in rows]
    return [row for piece in pieces for row in filters_of(store, piece).to_pylist()]


def content(values: pa.Array, kind: pa.DataType) -> bytes | None:
    builder = FilterBuilder(kind)
    builder.add(values)
    return builder.content()


def test_a_file_has_a_filter_of_each_column_as_its_writer_would_make_it(store: LocalStore) -> None:
    data_file(store, "a.parquet", ROWS)
    (found,) = made(store, ["a.parquet"], [ID, NAME, INNER])
    assert found["c0"]["content"] == content(ROWS["id"], pa.int64())
    assert found["c1"]["content"] == content(ROWS["name"], pa.string())
    assert found["c2"]["content"] == content(pa.array([1]), pa.int32())


def test_columns_that_spark_reads_otherwise_have_none_and_absent_ones_hold_nothing(store: LocalStore) -> None:
    data_file(store, "case.parquet", {"ID": pa.array([1])})
    data_file(store, "type.parquet", {"id": pa.array([1], pa.int32()), "name": pa.array([b"a"])})
    data_file(store, "absent.parquet", {"other": pa.array([1])})
    store.local_path("text.parquet").write_text("no Parquet")
    refused, nothing = {"content": None, "refused": True}, {"content": b"", "refused": False}
    assert [(each["c0"], each["c1"]) for each in made(store, ["case.parquet", "type.parquet"], [ID, NAME])] == [
        (refused, nothing),
        (refused, refused),
    ]
    (absent,) = made(store, ["absent.parquet"], [ID, TrackedColumn(("name",), pa.string(), absent_is_null=False)])
    assert (absent["c0"], absent["c1"]) == (nothing, refused)
    assert made(store, ["text.parquet", "gone.parquet"], [ID]) == []


def test_large_filters_are_staged_until_a_commit_has_put_them(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_report, "_MOST_BYTES_IN_REPORT", 100)
    file = data_file(store, "a.parquet", ROWS)
    batch = pa.RecordBatch.from_pydict({"path": ["a.parquet"]})
    (report,) = ValuesTask(store.root_uri, INSTANT, Wanted((ID,)))([batch])
    (row,) = report.to_pylist()
    assert row["filters"] is None
    assert row["staged"].startswith(f".zlayout/staging/{INSTANT}_")
    new = NewFilters((row["staged"],))
    (path,) = new.put(store, INSTANT, DataFiles.of([file], ()))
    assert FilterSlice(store, path).types == {("id",): "int64"}
    NewOptional(new).forget_staged(store)
    assert store.list(".zlayout/staging", recursive=True) == []


class Remote(LocalStore):
    """A store without local files, which counts the bytes that it hands out."""

    read_bytes = 0

    def local_path(self, path: str) -> None:
        return

    def read(self, path: str) -> bytes:
        raise AssertionError(f"all of {path} is read")

    def read_ranges(self, path: str, starts: Sequence[int], lengths: Sequence[int]) -> list[bytes]:
        self.read_bytes += sum(lengths)
        local = LocalStore.local_path(self, path)
        assert local is not None
        return [local.read_bytes()[start : start + length] for start, length in zip(starts, lengths, strict=True)]


def test_of_a_remote_file_only_the_column_is_read(store: LocalStore, tmp_path: Path) -> None:
    columns = {"id": pa.array(range(1_000)), "large": pa.array([os.urandom(4_000) for _ in range(1_000)])}
    data_file(store, "a.parquet", columns)
    remote = Remote(tmp_path)
    found = values_in_file(remote, "a.parquet", Wanted((ID,)))
    assert found.filters[ID.path].content() == content(columns["id"], pa.int64())
    assert 0 < remote.read_bytes < 100_000


def test_values_that_a_filter_lacks_are_counted(store: LocalStore) -> None:
    whole, wrong = data_file(store, "a.parquet", ROWS), data_file(store, "b.parquet", ROWS)
    ids = [content(ROWS["id"], pa.int64()), content(pa.array([7]), pa.int64())]
    names = [content(ROWS["name"], pa.string()), None]
    files = DataFiles.of([whole, wrong], ())
    table = filter_table(["a.parquet", "b.parquet"], [ID, NAME], {ID.path: ids, NAME.path: names})
    (piece,) = write_slices(files, [table])
    path = slice_path(INSTANT, piece)
    store.put(path, piece)
    batch = pa.RecordBatch.from_pydict({name: files[name].to_pylist() for name in ("path", *IDENTITY)})
    found = [
        row
        for each in CheckTask(store.root_uri, value_slices({BLOOM_FILTERS: (path,)}), Wanted((ID, NAME)))([batch])
        for row in each.to_pylist()
    ]
    assert found == [{"path": "b.parquet", "kind": "bloom", "column": 0, "missing": 2}]


def test_lookup_entries_are_made_and_checked_as_those_of_writers(store: LocalStore) -> None:
    keys = tuple(LookupKey.of(each) for each in ([ID], [NAME, ID], [INNER]))
    data_file(store, "type.parquet", {"id": pa.array([1], pa.int32()), "name": pa.array(["a"])}, 1)
    whole = [data_file(store, name, ROWS) for name in ("a.parquet", "b.parquet")]
    files = DataFiles.of([*whole, data_file(store, "type.parquet", {"id": pa.array([1], pa.int32())}, 1)], ())
    wanted = Wanted(looked_up=keys)
    batch = pa.RecordBatch.from_pydict({"path": files["path"].to_pylist()})
    pieces = [
        row["hashes"] for each in ValuesTask(store.root_uri, INSTANT, wanted)([batch]) for row in each.to_pylist()
    ]
    paths = NewLookups(tuple(pieces)).put(store, INSTANT, files)
    found = TableLookups(paths, partial(LookupSlice, store), lambda _: None).of(files)
    assert found.covered(keys[0]).tolist() == [True, True, False]
    assert found.untold(keys[1]).tolist() == [False, False, True]
    # A column that a file lacks is null in all its rows.
    assert found.covered(keys[2]).all()
    inner = Column(INNER.path, INNER.type)
    assert found.may_hold(inner, pa.scalar(1, pa.int32())).tolist() == [True, True, False]
    assert found.may_hold(inner, pa.scalar(None, pa.int32())) is None
    collector = HashCollector(keys[1])
    collector.add([ROWS["id"], ROWS["name"]])
    hashes = collector.hashes()
    assert hashes is not None
    assert found.missing(keys[1], hashes, 0) == 0
    assert found.missing(keys[1], np.sort(np.r_[hashes, np.uint64(7)]), 0) == 1
    # A file with other rows than its entries say.
    data_file(store, "b.parquet", {**ROWS, "id": pa.array([1, 5, 6])})
    checked = pa.RecordBatch.from_pydict({name: files[name].to_pylist() for name in ("path", *IDENTITY)})
    check = CheckTask(store.root_uri, value_slices({LOOKUPS: paths}), wanted)
    lacking = [row for each in check([checked]) for row in each.to_pylist()]
    assert lacking == [
        {"path": "b.parquet", "kind": "lookup", "column": 0, "missing": 2},
        {"path": "b.parquet", "kind": "lookup", "column": 1, "missing": 2},
    ]
