"""What a scan reads of the index, in bytes, and how little a damaged chunk takes with it."""

from __future__ import annotations

import secrets
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import obstore
import pyarrow as pa
import pytest
from slices_in_memory import MemoryStore

from dbt.adapters.zlayout.errors import CorruptError
from dbt.adapters.zlayout.index.column_slices import RangedSlice, chunk_of, footer_of, values_of
from dbt.adapters.zlayout.index.memory_budget import MemoryBudget
from dbt.adapters.zlayout.index.slice_reading import SliceCache, read_slice
from dbt.adapters.zlayout.index.slice_writing import slice_path, write_slices
from dbt.adapters.zlayout.index.statistics.column_stats import column_stats_table, stats_type
from dbt.adapters.zlayout.index.table_index import CachedStatistics, TableIndex
from dbt.adapters.zlayout.predicate.expr import And, Column, Compare, Op
from dbt.adapters.zlayout.pruning.scan import ScanPlan, plan_scan
from dbt.adapters.zlayout.pruning.statistics.column_bounds import SomeStatistics
from dbt.adapters.zlayout.store.cloud import CloudStore
from dbt.adapters.zlayout.store.local import LocalStore
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles

MIB = 1 << 20
TYPES = {"part": pa.string()}
KEY, CITY, PART = Column(("key",), pa.int64()), Column(("city",), pa.string()), Column(("part",), pa.string())
START_MS = 1_700_000_000_000


def files_of(count: int, partitions: int, first: int = 0) -> DataFiles:
    """Files whose names, sizes, rows and times are as random as those of a real table."""
    rng = np.random.default_rng(first)
    groups = [secrets.token_hex(8) for _ in range(count)]
    parts = [f"2024-{each * partitions // count:05d}" for each in range(count)]
    return DataFiles.from_columns(
        ("part",),
        path=[f"part={part}/{group}_20260131235959999.parquet" for part, group in zip(parts, groups, strict=True)],
        partition_values=[parts],
        row_count=pa.array(rng.integers(900_000, 1_100_000, count)),
        size_bytes=pa.array(rng.integers(100 << 20, 150 << 20, count)),
        modified_ms=pa.array(START_MS + rng.integers(0, 10_000_000, count)),
        group=groups,
    )


def stats_of(files: DataFiles, columns: int) -> pa.Table:
    """Random bounds of ``key`` and ``city``, of which nothing can be predicted, and more columns like the first."""
    count, rng = len(files), np.random.default_rng(7)
    rows = files.column("row_count").combine_chunks()
    yes, none = pa.repeat(True, count), pa.array(np.zeros(count, np.int64))
    low = rng.integers(0, 1 << 60, count)
    texts = [f"city {secrets.token_hex(5)}" for _ in range(count)]
    bounds = [
        (pa.array(low), pa.array(low + rng.integers(0, 1 << 40, count))),
        (pa.array(texts), pa.array([f"{text}z" for text in texts])),
    ]
    structs = [
        pa.StructArray.from_arrays([first, last, yes, yes, none, none, rows], fields=list(stats_type(first.type)))
        for first, last in bounds
    ]
    paths = [KEY.path, CITY.path, *((f"c{number}",) for number in range(2, columns))]
    return column_stats_table(files.column("path"), paths, [*structs, *[structs[0]] * (columns - 2)])


class Indexed:
    """A table whose slices lie in a store."""

    def __init__(self, store: Any, cache: SliceCache[Any] | None = None) -> None:
        self.store, self.slices = store, {"column_stats": [], "partition_stats": []}
        self.cache = cache or SliceCache(read_slice)

    def commit(self, files: DataFiles, columns: int, group_rows: int = 4096) -> None:
        for partition, content in write_slices(files, stats_of(files, columns), group_rows).items():
            path = slice_path(partition, f"2026013123595999{len(self.slices[partition])}", content)
            self.store.put(path, content)
            self.slices[partition].append(path)

    def index(self) -> TableIndex:
        return TableIndex(
            self.store, self.slices, partition_types=TYPES, timezone="UTC", read=partial(self.cache.read, self.store)
        )


@pytest.fixture(scope="module")
def large() -> tuple[Indexed, DataFiles]:
    table, files = Indexed(MemoryStore()), files_of(100_000, 1_000)
    table.commit(files, 32)
    return table, files


def at_least(column: Column, value: object) -> Compare:
    return Compare(Op.GE, column, pa.scalar(value, column.type))


@pytest.mark.parametrize("condition", [at_least(KEY, 1 << 59), at_least(CITY, "city 8")], ids=["number", "text"])
def test_a_filter_over_a_hundred_thousand_files_reads_little_and_less_after_an_append(
    large: tuple[Indexed, DataFiles], condition: Compare
) -> None:
    before, files = large
    table = Indexed(before.store)
    table.slices = {name: list(paths) for name, paths in before.slices.items()}
    store = table.store
    start = store.bytes_read
    plan = plan_scan(condition, files, CachedStatistics(table.index(), files))
    cold = store.bytes_read - start
    assert 0 < plan.candidates.sum() < 60_000
    assert cold < 3 * MIB, cold
    more = files_of(1, 1, first=1)
    table.commit(more, 32)
    both, start = files.plus(more), store.bytes_read
    again = plan_scan(condition, both, CachedStatistics(table.index(), both))
    assert store.bytes_read - start < 0.1 * MIB
    assert again.candidates[:-1].tolist() == plan.candidates.tolist()


@pytest.mark.parametrize("number", [0, 40, 500, 999])
def test_a_filter_in_one_of_a_thousand_partitions_reads_the_chunks_of_its_files(
    large: tuple[Indexed, DataFiles], number: int
) -> None:
    before, files = large
    table = Indexed(before.store)
    table.slices = before.slices
    both = And((Compare(Op.EQ, PART, pa.scalar(f"2024-{number:05d}")), at_least(KEY, 1 << 59)))
    start = table.store.bytes_read
    plan = plan_scan(both, files, CachedStatistics(table.index(), files))
    assert table.store.bytes_read - start < 0.2 * MIB
    assert plan.stages[0].files_after == 100
    expected = plan_scan(both, files, whole(table)).candidates
    assert plan.candidates.tolist() == expected.tolist()


def whole(table: Indexed) -> TableIndex:
    """The index, which reads everything for any files."""

    class Whole(TableIndex):
        def statistics(self, files: DataFiles, columns: Any, positions: Any = None) -> Any:
            found = super().statistics(files, columns)
            return found if positions is None else SomeStatistics(found, positions)

    return Whole(table.store, table.slices, partition_types=TYPES, timezone="UTC")


class Counted:
    """A store, by inheritance, that counts the bytes that it hands out in parts."""

    bytes_read = 0

    def read_tail(self, path: str, most_bytes: int) -> bytes:
        found: bytes = super().read_tail(path, most_bytes)  # type: ignore[misc]
        self.bytes_read += len(found)
        return found

    def read_ranges(self, path: str, starts: Any, lengths: Any) -> list[bytes]:
        self.bytes_read += sum(lengths)
        parts: list[bytes] = super().read_ranges(path, starts, lengths)  # type: ignore[misc]
        return parts


class CountedLocal(Counted, LocalStore):
    pass


class CountedCloud(Counted, CloudStore):
    pass


@pytest.mark.parametrize("kind", ["local", "cloud"])
def test_every_store_reads_parts(tmp_path: Path, kind: str) -> None:
    cloud = kind == "cloud"
    store = CountedCloud("s3://bucket/t", obstore.store.MemoryStore()) if cloud else CountedLocal(tmp_path)
    table, files = Indexed(store), files_of(3_000, 30)
    table.commit(files, 8, group_rows=100)
    size = store.stat(table.slices["column_stats"][0]).size_bytes
    found = plan_scan(at_least(KEY, 1 << 59), files, CachedStatistics(table.index(), files)).candidates
    assert store.bytes_read < size / 2
    assert 0 < found.sum() < 3_000


def kept(table: Indexed, files: DataFiles, condition: Any) -> tuple[ScanPlan, list[str]]:
    index = table.index()
    return plan_scan(condition, files, CachedStatistics(index, files)), index.problems


def test_a_damaged_chunk_makes_only_its_files_unknown() -> None:
    table, files = Indexed(MemoryStore()), files_of(400, 8)
    table.commit(files, 3, group_rows=50)
    (path,) = table.slices["column_stats"]
    whole_slice = table.store.files[path]
    opened = RangedSlice(table.store, path)
    condition = at_least(KEY, 1 << 59)
    sound, _ = kept(table, files, condition)
    order = np.argsort(np.array(files["path"].to_pylist()))
    for group in range(8):
        for name in (opened.paths[KEY.path], "file_key"):
            start = int(opened._start[opened._number[name], group])
            table.store.files[path] = whole_slice[:start] + b"\0\0" + whole_slice[start + 2 :]
            table.cache = SliceCache(read_slice)
            plan, problems = kept(table, files, condition)
            inside = np.zeros(400, dtype=bool)
            inside[order[50 * group : 50 * group + 50]] = True
            # Partition statistics skip nothing here: each partition has a large key.
            assert plan.candidates.tolist() == (sound.candidates | inside).tolist()
            assert len(problems) == 1
            assert "50 rows" in problems[0]


def test_a_slice_that_is_cut_short_or_has_another_footer_is_damaged() -> None:
    table, files = Indexed(MemoryStore()), files_of(400, 10)
    table.commit(files, 3, group_rows=50)
    (path,) = table.slices["column_stats"]
    content = table.store.files[path]
    for wrong in (b"", b"x", content[:-1], content[: len(content) // 2], content + b"x", bytes(len(content))):
        table.store.files[path] = wrong
        with pytest.raises(CorruptError, match="does not have the digest in its name"):
            RangedSlice(table.store, path)


INT = pa.int64()


def footer_with(places: bytes, metadata: dict[bytes, bytes], kind: pa.DataType = INT) -> bytes:
    schema = pa.schema([pa.field("path", kind)], {b"zlayout.index": b'{"format": 1, "columns": []}', **metadata})
    footer = chunk_of(pa.array([schema.serialize().to_pybytes(), places], pa.binary()))
    lengths = (footer.plain_bytes, len(footer.content))
    return footer.content + b"".join(each.to_bytes(8, "little") for each in lengths)


PLACE = (5).to_bytes(4, "little") + (2**31).to_bytes(4, "little") + bytes(8)


@pytest.mark.parametrize(
    ("footer", "error"),
    [
        (footer_with(PLACE, {b"zlayout.groups": b'{"rows": [3], "first": null}'}), "would take over"),
        (footer_with(PLACE, {b"zlayout.groups": b'{"rows": [-3], "first": null}'}), "contradicts itself"),
        (footer_with(PLACE, {b"zlayout.groups": b'{"rows": [3], "first": []}'}), "contradicts itself"),
        (footer_with(PLACE * 2, {b"zlayout.groups": b'{"rows": [3], "first": null}'}), "cannot be read"),
        (footer_with(PLACE, {b"zlayout.groups": b"{}"}), "cannot be read"),
        (footer_with(PLACE, {b"zlayout.groups": b'{"rows": ["x"], "first": null}'}), "cannot be read"),
        (footer_with(PLACE, {b"zlayout.groups": b"["}), "cannot be read"),
        (footer_with(PLACE, {}), "cannot be read"),
        (footer_with(PLACE, {b"zlayout.groups": b'{"rows": [3], "first": null}'}, pa.null()), "of type null"),
        (footer_with(PLACE, {b"zlayout.groups": b'{"rows": [%d], "first": null}' % 2**70}), "cannot be read"),
        (b"abc" + (2**62).to_bytes(8, "little") + (3).to_bytes(8, "little"), "footer of"),
        (b"abc" + (20).to_bytes(8, "little") + (3).to_bytes(8, "little"), "cannot be read"),
    ],
)
def test_a_footer_that_lies_is_damaged(footer: bytes, error: str) -> None:
    store = MemoryStore()
    content = bytes(5) + footer
    path = slice_path("column_stats", "1", content)
    assert footer_of(content) == footer
    store.put(path, content)
    with pytest.raises(CorruptError, match=error):
        RangedSlice(store, path)


@pytest.mark.parametrize("kind", [pa.int64(), pa.bool_(), pa.string(), stats_type(pa.string()), pa.decimal128(9, 2)])
def test_a_chunk_of_any_bytes_takes_no_more_than_promised(kind: pa.DataType) -> None:
    right = chunk_of(pa.nulls(100, kind))
    rng = np.random.default_rng(3)
    before = pa.total_allocated_bytes()
    codec = pa.Codec("zstd")
    for number in range(300):
        plain = bytearray(codec.decompress(right.content, right.plain_bytes))
        for _ in range(1 + number % 5):
            plain[int(rng.integers(len(plain)))] = int(rng.integers(256))
        content = codec.compress(bytes(plain), asbytes=True)
        try:
            found = values_of(content, len(plain), kind, 100)
        except CorruptError:
            continue
        assert len(found) == 100
        found.to_pylist()
    assert pa.total_allocated_bytes() - before < MIB
    with pytest.raises(CorruptError):
        values_of(right.content, right.plain_bytes, kind, 1 << 40)
    with pytest.raises(CorruptError):
        values_of(right.content[:-1], right.plain_bytes, kind, 100)


class Holds:
    def __init__(self) -> None:
        self.names = set("abc")

    def forget(self, name: Any) -> None:
        self.names.discard(name)


def test_a_budget_makes_the_holders_forget_what_was_used_least_recently() -> None:
    budget, first, second = MemoryBudget(100), Holds(), Holds()
    budget.keep(first, "a", 40)
    budget.keep(second, "b", 40)
    budget.use(first, ["a"])
    budget.keep(first, "c", 40)
    assert first.names == {"a", "b", "c"}
    assert second.names == {"a", "c"}
    del second
    budget.keep(first, "c", 60)
    assert budget.held_bytes == 100
    budget.keep(first, "b", 1_000)
    assert first.names == {"b"}


def test_statistics_that_are_kept_take_no_more_than_the_budget_and_are_read_again() -> None:
    table, files = Indexed(MemoryStore()), files_of(2_000, 1)
    table.commit(files, 10)
    budget = MemoryBudget(200_000)
    cached = CachedStatistics(table.index(), files, budget)
    asked = [Column((f"c{number}",), pa.int64()) for number in range(2, 10)]
    for _ in range(2):
        for column in asked:
            assert cached.statistics(files, [column.path]).column(column.path) is not None
    assert 0 < budget.held_bytes <= 200_000
    assert 0 < len(cached._of_files) < len(asked)


EARLIER = Path(__file__).parent / "earlier_slices"


def test_slices_of_earlier_releases_are_read() -> None:
    store, slices = MemoryStore(), {}
    for file in sorted(EARLIER.iterdir()):
        partition = file.name[: file.name.index("_stats") + 6]
        path = f".zlayout/index/{partition}/{file.name[len(partition) + 1 :]}"
        store.put(path, file.read_bytes())
        slices[partition] = [path]
    names = ("x", "y")
    files = DataFiles.from_columns(
        ("p",),
        path=[f"p={name}/f{number}.parquet" for number, name in enumerate(names, 1)],
        partition_values=[list(names)],
        row_count=[10, 10],
        size_bytes=[1010, 1010],
        modified_ms=[START_MS, START_MS],
        group=["f1", "f2"],
    )
    index = TableIndex(store, slices, partition_types={"p": pa.string()})
    bounds = index.statistics(files, [("a",), ("s", "b")]).column(("a",))
    assert bounds is not None
    assert (bounds.minimum.to_pylist(), bounds.maximum.to_pylist()) == ([1, 6], [5, 9])
    one = index.statistics(files, [("a",)], np.array([1])).column(("a",))
    assert one is not None
    assert one.minimum.to_pylist() == [6]
    merged = index.partition_statistics(files, [("a",)]).statistics.column(("a",))
    assert merged is not None
    assert merged.minimum.to_pylist() == [1, 6]
    assert index.stored(files).num_rows == 2
    assert index.problems == []
    path = slices["column_stats"][0]
    store.files[path] = store.files[path][:-9] + b"x" + store.files[path][-8:]
    damaged = TableIndex(store, slices, partition_types={"p": pa.string()})
    assert damaged.statistics(files, [("a",)]).columns == {}
    assert len(damaged.problems) == 1
