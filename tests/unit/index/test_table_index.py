"""Statistics of a snapshot from the slices on disk, whole, stale, damaged or gone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from slices_in_memory import MemoryStore

from dbt.adapters.zlayout.errors import CorruptError
from dbt.adapters.zlayout.index.column_slices import RangedSlice, slice_bytes
from dbt.adapters.zlayout.index.footers.footer import ColumnFooter, FooterStatistics, footer_table
from dbt.adapters.zlayout.index.footers.parquet_values import Bounds
from dbt.adapters.zlayout.index.slice_reading import verified
from dbt.adapters.zlayout.index.slice_writing import slice_path, write_slices
from dbt.adapters.zlayout.index.statistics.column_stats import SHORT_BOUND_BYTES
from dbt.adapters.zlayout.index.statistics.tracked import TrackedColumn
from dbt.adapters.zlayout.index.table_index import TableIndex
from dbt.adapters.zlayout.timeline.files.data_files import DataFile, DataFiles

A, B, P = ("a",), ("s", "b"), ("p",)
COLUMNS = (TrackedColumn(A, pa.int64()), TrackedColumn(B, pa.string()))


def data_file(name: str, partition: str | None = "x", rows: int = 10) -> DataFile:
    return DataFile(f"p={partition}/{name}.parquet", (("p", partition),), rows, 1000 + rows, 1_700_000_000_000, name)


def footer(low: int, high: int, text: str = "t", rows: int = 10, nulls: int = 0) -> FooterStatistics:
    number = ColumnFooter(Bounds(low, high), nulls, 0, rows)
    return FooterStatistics(rows, (number, ColumnFooter(Bounds(text, text), 0, 0, rows)))


class Table:
    """Commits of files with their slices, as a writer makes them."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.slices: dict[str, list[str]] = {}

    def commit(
        self,
        added: list[tuple[DataFile, FooterStatistics]],
        columns: Sequence[TrackedColumn] = COLUMNS,
    ) -> DataFiles:
        files = DataFiles.of([file for file, _ in added], ["p"])
        stats = footer_table([file.path for file, _ in added], [each for _, each in added], columns)
        for partition, content in write_slices(files, stats).items():
            path = slice_path(partition, f"2024010100000000{len(self.slices.get(partition, ()))}", content)
            self.store.files[path] = content
            self.slices.setdefault(partition, []).append(path)
        return files

    def index(self, **options: Any) -> TableIndex:
        return TableIndex(self.store, self.slices, partition_types={"p": pa.string()}, **options)


def column_of(index: TableIndex, files: DataFiles, path: tuple[str, ...], field: str = "minimum") -> list[Any]:
    bounds = index.statistics(files, {path}).column(path)
    assert bounds is not None
    values: list[Any] = getattr(bounds, field).to_pylist()
    return values


def test_statistics_come_in_the_order_of_the_files_asked_about() -> None:
    table = Table()
    files = table.commit([(data_file("f1"), footer(1, 5)), (data_file("f2"), footer(6, 9, nulls=2))])
    index = table.index()
    turned = DataFiles.of(reversed(list(files)), ["p"])
    found = index.statistics(turned, {A, B})
    bounds = found.column(A)
    assert bounds is not None
    assert found.row_count.to_pylist() == [10, 10]
    assert bounds.type == pa.int64()
    assert bounds.minimum.to_pylist() == [6, 1]
    assert bounds.maximum.to_pylist() == [9, 5]
    assert bounds.minimum_exact.to_pylist() == [True, True]
    assert bounds.null_count.to_pylist() == [2, 0]
    assert bounds.nan_count.to_pylist() == [0, 0]
    assert index.problems == []


def test_a_column_that_no_slice_has_is_none() -> None:
    table = Table()
    files = table.commit([(data_file("f1"), footer(1, 5))])
    assert table.index().statistics(files, {("other",)}).column(("other",)) is None


@pytest.mark.parametrize("change", ["row_count", "size_bytes", "modified_ms", "path"])
def test_a_file_that_is_not_as_the_index_knows_it_is_unknown(change: str) -> None:
    table = Table()
    known = data_file("f1")
    table.commit([(known, footer(1, 5)), (data_file("f2"), footer(6, 9))])
    other = DataFile(**{**vars(known), change: "p=x/new.parquet" if change == "path" else 7})
    asked = DataFiles.of([other, data_file("f2")], ["p"])
    assert column_of(table.index(), asked, A) == [None, 6]
    assert column_of(table.index(), asked, A, "null_count") == [None, 0]
    assert column_of(table.index(), asked, A, "minimum_exact") == [False, True]


def test_slices_of_several_commits_are_read_together_and_the_newest_row_wins() -> None:
    table = Table()
    first = table.commit([(data_file("f1"), footer(1, 5)), (data_file("f2"), footer(6, 9))])
    second = table.commit([(data_file("f3"), footer(0, 1)), (data_file("f1"), footer(3, 4))])
    both = DataFiles.of([*first, second[0]], ["p"])
    assert column_of(table.index(), both, A) == [3, 6, 0]


def test_older_slices_take_the_newest_type_or_are_unknown() -> None:
    table = Table()
    narrow = (TrackedColumn(A, pa.int32()), COLUMNS[1])
    text = (TrackedColumn(A, pa.string()), COLUMNS[1])
    first = table.commit([(data_file("f1"), footer(1, 5))], columns=narrow)
    worded = FooterStatistics(10, (ColumnFooter(Bounds("k", "l"), 0, 0, 10), footer(0, 0).columns[1]))
    second = table.commit([(data_file("f2"), worded)], columns=text)
    third = table.commit([(data_file("f3"), footer(2, 3))])
    every = first.plus(second).plus(third)
    assert column_of(table.index(), every, A) == [1, None, 2]
    assert column_of(table.index(), every, A, "null_count") == [0, 0, 0]


def test_partition_columns_have_their_value_as_exact_bounds() -> None:
    table = Table()
    files = table.commit([(data_file("f1", "01"), footer(1, 5)), (data_file("f2", None), footer(6, 9))])
    index = table.index()
    found = index.statistics(files, {P}).column(P)
    assert found is not None
    assert found.minimum.to_pylist() == found.maximum.to_pylist() == ["01", None]
    assert found.minimum_exact.to_pylist() == [True, False]
    assert found.null_count.to_pylist() == [0, 10]
    assert table.store.reads == []


def test_a_partition_value_that_is_not_understood_is_unknown_and_nan_is_no_bound() -> None:
    files = DataFiles.of([data_file("f1", "NaN"), data_file("f2", "1.5"), data_file("f3", "?")], ["p"])
    index = TableIndex(MemoryStore(), {}, partition_types={"p": pa.float64()})
    found = index.statistics(files, {P}).column(P)
    assert found is not None
    assert found.minimum.to_pylist() == [None, 1.5, None]
    assert found.nan_count.to_pylist() == [10, 0, None]
    assert found.null_count.to_pylist() == [0, 0, None]
    assert not any(math.isnan(value) for value in found.maximum.to_pylist() if value is not None)


def test_long_text_bounds_are_cut_on_the_way_to_disk() -> None:
    table = Table()
    files = table.commit([(data_file("f1"), footer(1, 5, "é" * 100))])
    index = table.index()
    assert column_of(index, files, B) == ["é" * (SHORT_BOUND_BYTES // 2)]
    assert column_of(index, files, B, "maximum_exact") == [False]


def test_a_filter_on_two_columns_decodes_the_statistics_of_two_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = [TrackedColumn((f"n{number}",), pa.int64()) for number in range(40)]
    table = Table()
    entry = FooterStatistics(10, tuple(ColumnFooter(Bounds(1, 5), 0, 0, 10) for _ in wide))
    files = table.commit([(data_file("f1"), entry)], columns=wide)
    decoded: list[str] = []
    whole = RangedSlice.column

    def counted(self: RangedSlice, name: str, *rest: Any) -> pa.Array:
        decoded.append(name)
        return whole(self, name, *rest)

    monkeypatch.setattr(RangedSlice, "column", counted)
    index = table.index()
    index.statistics(files, {("n3",), ("n17",)})
    assert sorted(decoded) == ["c17", "c3", "file_key"]
    decoded.clear()
    index.partition_statistics(files, {("n3",), ("n17",)})
    keys = ["file_count", "modified_ms", "partition.p", "row_count", "size_bytes", "whole"]
    assert sorted(decoded) == ["c17", "c3", *keys]


def test_slices_are_read_once() -> None:
    table = Table()
    files = table.commit([(data_file("f1"), footer(1, 5))])
    index = table.index()
    for _ in range(3):
        index.statistics(files, {A, B})
    assert len(table.store.reads) == 1


def test_a_missing_slice_makes_its_rows_unknown_and_is_noted() -> None:
    table = Table()
    first = table.commit([(data_file("f1"), footer(1, 5))])
    second = table.commit([(data_file("f2"), footer(6, 9))])
    del table.store.files[table.slices["column_stats"][0]]
    index = table.index()
    assert column_of(index, first.plus(second), A) == [None, 6]
    assert len(index.problems) == 1
    assert "is not there" in index.problems[0]


def test_no_damage_to_any_byte_is_believed() -> None:
    table = Table()
    files = table.commit([(data_file("f1"), footer(1, 5)), (data_file("f2"), footer(6, 9))])
    (path,) = table.slices["column_stats"]
    (partitions,) = table.slices["partition_stats"]
    whole, whole_partitions = table.store.files[path], table.store.files[partitions]
    true = {field: column_of(table.index(), files, A, field) for field in ("minimum", "maximum", "null_count")}
    noted = 0
    for position in range(0, len(whole), 3):
        table.store.files[path] = whole[:position] + bytes([whole[position] ^ 4]) + whole[position + 1 :]
        table.store.files[partitions] = whole_partitions[: position % len(whole_partitions)]
        index = table.index()
        for field, values in true.items():
            found = index.statistics(files, {A}).column(A)
            assert found is None or getattr(found, field).to_pylist() in (values, [None, None])
        assert index.partition_statistics(files, {A, B}).statistics.columns == {}
        index.stored(files)
        index.rows()
        noted += len(index.problems) >= 2
    # Of the slice's every part: footer, and each chunk, which at least `stored` or `rows` reads.
    assert noted == len(range(0, len(whole), 3))


def test_a_slice_whose_name_has_no_digest_is_not_believed() -> None:
    with pytest.raises(CorruptError, match="does not have the digest"):
        verified(".zlayout/index/column_stats/1.parquet", b"")


def test_a_slice_that_is_sound_but_of_another_kind_is_noted() -> None:
    table = Table()
    files = table.commit([(data_file("f1"), footer(1, 5))])
    path = slice_path("files", "1", content := slice_bytes(pa.table({"path": ["p=x/f1.parquet"]}), first_paths=True))
    table.store.files[path] = content
    index = TableIndex(table.store, {"column_stats": [path], "partition_stats": [path]})
    assert index.statistics(files, {A}).columns == {}
    assert index.partition_statistics(files, {A}).statistics.columns == {}
    assert index.problems


def test_partitions_are_merged_and_files_know_theirs() -> None:
    table = Table()
    files = table.commit(
        [
            (data_file("f1", "x"), footer(1, 5)),
            (data_file("f2", None), footer(6, 9, nulls=3)),
            (data_file("f3", "x"), footer(3, 8, nulls=1)),
        ]
    )
    found = table.index().partition_statistics(files, {A, P})
    assert found.partition_of_file.tolist() == [0, 1, 0]
    assert found.statistics.row_count.to_pylist() == [20, 10]
    numbers, values = found.statistics.column(A), found.statistics.column(P)
    assert numbers is not None
    assert values is not None
    assert numbers.minimum.to_pylist() == [1, 6]
    assert numbers.maximum.to_pylist() == [8, 9]
    assert numbers.null_count.to_pylist() == [1, 3]
    assert values.minimum.to_pylist() == ["x", None]
    assert values.null_count.to_pylist() == [0, 10]


def test_partitions_of_several_commits_add_up() -> None:
    table = Table()
    first = table.commit([(data_file("f1", "x"), footer(1, 5)), (data_file("f2", "y"), footer(6, 9))])
    second = table.commit([(data_file("f3", "x"), footer(-4, 0)), (data_file("f4", "z"), footer(7, 7))])
    found = table.index().partition_statistics(first.plus(second), {A}).statistics.column(A)
    assert found is not None
    assert found.minimum.to_pylist() == [-4, 6, 7]


def test_a_partition_whose_files_the_slices_do_not_describe_is_unknown() -> None:
    table = Table()
    files = table.commit([(data_file("f1", "x"), footer(1, 5)), (data_file("f2", "y"), footer(6, 9))])
    one_more = files.plus(DataFiles.of([data_file("f3", "x")], ["p"]))
    found = table.index().partition_statistics(one_more, {A}).statistics.column(A)
    assert found is not None
    assert found.minimum.to_pylist() == [None, 6]
    fewer = table.index().partition_statistics(files.minus(["p=y/f2.parquet"]), {A}).statistics.column(A)
    assert fewer is not None
    assert fewer.minimum.to_pylist() == [1]


def test_a_table_without_partitions_is_one_partition() -> None:
    files = DataFiles.of([DataFile("f1.parquet", (), 10, 5, 6, "g"), DataFile("f2.parquet", (), 10, 5, 6, "g")])
    stats = footer_table(["f1.parquet", "f2.parquet"], [footer(1, 5), footer(4, 7)], COLUMNS)
    store, slices = MemoryStore(), {}
    for partition, content in write_slices(files, stats).items():
        slices[partition] = [slice_path(partition, "2", content)]
        store.files[slices[partition][0]] = content
    index = TableIndex(store, slices)
    found = index.partition_statistics(files, {A})
    bounds = found.statistics.column(A)
    assert bounds is not None
    assert bounds.maximum.to_pylist() == [7]
    assert found.partition_of_file.tolist() == [0, 0]
    assert index.problems == []


def test_an_empty_table_has_empty_statistics() -> None:
    table = Table()
    files = table.commit([])
    index = table.index()
    assert column_of(index, files, A) == []
    assert index.partition_statistics(files, {A}).statistics.row_count.to_pylist() == []
    assert TableIndex(table.store, {}).statistics(files, {A}).columns == {}
    assert index.problems == []


def test_files_without_footer_statistics_get_rows_that_say_nothing() -> None:
    table = Table()
    both = DataFiles.of([data_file("f1"), data_file("f2")], ["p"])
    stats = footer_table([both[1].path], [footer(6, 9)], COLUMNS)
    for partition, content in write_slices(both, stats).items():
        path = slice_path(partition, "1", content)
        table.store.files[path], table.slices[partition] = content, [path]
    assert column_of(table.index(), both, A) == [None, 6]
    merged = table.index().partition_statistics(both, {A}).statistics.column(A)
    assert merged is not None
    assert merged.minimum.to_pylist() == [None]
    assert merged.null_count.to_pylist() == [None]


def test_the_newest_row_of_a_file_comes_first_and_damaged_slices_have_none() -> None:
    table = Table()
    table.commit([(data_file("f1"), footer(1, 5)), (data_file("f2"), footer(6, 9))])
    table.commit([(data_file("f2", rows=11), footer(1, 5))])
    rows = table.index().rows()
    assert rows.column_names == ["path", "row_count", "size_bytes", "modified_ms"]
    names = ["p=x/f2.parquet", "p=x/f1.parquet", "p=x/f2.parquet"]
    assert list(zip(rows["path"].to_pylist(), rows["row_count"].to_pylist(), strict=True)) == [
        *zip(names, [11, 10, 10], strict=True)
    ]
    table.store.files[table.slices["column_stats"][1]] += b"x"  # the footer is no longer at the end
    assert table.index().rows()["path"].to_pylist() == names[1:]
    assert TableIndex(table.store, {}).rows().num_rows == 0


TYPES = (
    pa.bool_(),
    pa.int8(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.decimal128(20, 3),
    pa.string(),
    pa.binary(),
    pa.date32(),
    pa.timestamp("us"),
    pa.timestamp("us", tz="UTC"),
)


@pytest.mark.parametrize("count", [1, 1_200])
def test_slices_keep_the_type_of_every_column(count: int) -> None:
    tracked = tuple(TrackedColumn((f"column {i}",), kind) for i, kind in enumerate(TYPES))
    files = DataFiles.of([data_file(f"{i:05}") for i in range(count)], ["p"])
    unknown = FooterStatistics(10, tuple(ColumnFooter(None, 3, 0, 10) for _ in tracked))
    stats = footer_table(files["path"].to_pylist(), [unknown] * count, tracked)
    store = MemoryStore()
    content = write_slices(files, stats)["column_stats"]
    store.put(path := slice_path("column_stats", "1", content), content)
    opened = RangedSlice(store, path)
    found = [opened.column(name, pytest.fail) for name in opened.paths.values()]
    assert [each.type.field("min").type for each in found] == list(TYPES)
    assert [len(each) for each in found] == [count] * len(TYPES)


def test_the_slices_of_one_file_are_small() -> None:
    tracked = tuple(TrackedColumn((f"column {i}",), pa.int64()) for i in range(7))
    files = DataFiles.of([data_file("a")], ["p"])
    stats = footer_table(
        files["path"].to_pylist(), [FooterStatistics(10, (ColumnFooter(Bounds(1, 9), 0, 0, 10),) * 7)], tracked
    )
    sizes = {name: len(content) for name, content in write_slices(files, stats).items()}
    # Some 160 bytes a column.
    assert sizes["column_stats"] + sizes["partition_stats"] < 7 * 600
