"""Disagreements between a table, its index and its folder."""

from __future__ import annotations

import pyarrow as pa

from dbt.adapters.zlayout.index.freshness import (
    MISSING_ON_DISK,
    NO_INDEX_ROW,
    ORPHAN,
    stale_entries,
)
from dbt.adapters.zlayout.timeline.files.data_files import DataFile, DataFiles

FILES = DataFiles.of([DataFile(f"{name}.parquet", (), 10, 100, 1, name) for name in "ab"])
STORED = pa.table({"path": ["a.parquet", "b.parquet"], "size_bytes": [100, 100]})
INDEXED = pa.table({"path": ["b.parquet", "a.parquet"], "row_count": [10, 10], "size_bytes": [100, 100]})


def reasons(stored: pa.Table = STORED, indexed: pa.Table = INDEXED, **options: object) -> list[tuple[str, str]]:
    options = {"footer_row_counts": lambda paths: dict.fromkeys(paths, 10), **options}
    found = stale_entries(FILES, stored, indexed, **options)
    assert found.column_names == ["path", "reason"]
    return [(row["path"], row["reason"]) for row in found.to_pylist()]


def with_row(table: pa.Table, **row: object) -> pa.Table:
    return pa.concat_tables([table, pa.table({name: [value] for name, value in row.items()})])


def test_a_fresh_index_has_no_stale_entries() -> None:
    assert reasons() == []


def test_a_live_file_without_index_row_is_named() -> None:
    assert reasons(indexed=INDEXED.slice(0, 1)) == [("a.parquet", NO_INDEX_ROW)]


def test_rows_of_files_that_are_gone_and_older_rows_of_a_file_do_not_count() -> None:
    more = with_row(INDEXED, path="c.parquet", row_count=1, size_bytes=1)
    assert reasons(indexed=with_row(more, path="a.parquet", row_count=1, size_bytes=1)) == []


def test_a_file_that_vanished_from_the_folder_is_named_and_its_footer_not_asked_for() -> None:
    asked: list[str] = []

    def footers(paths: list[str]) -> dict[str, int]:
        asked.extend(paths)
        return dict.fromkeys(paths, 10)

    assert reasons(STORED.slice(1), footer_row_counts=footers) == [("a.parquet", MISSING_ON_DISK)]
    assert asked == ["b.parquet"]


def test_a_file_that_no_version_lists_is_an_orphan_unless_it_is_retained() -> None:
    more = with_row(STORED, path="stray.parquet", size_bytes=5)
    assert reasons(more) == [("stray.parquet", ORPHAN)]
    assert reasons(more, retained_paths={"stray.parquet"}) == []


def test_other_sizes_and_row_counts_are_told_with_both_numbers() -> None:
    indexed = pa.table({"path": ["a.parquet", "b.parquet"], "row_count": [10, 11], "size_bytes": [99, 100]})
    stored = pa.table({"path": ["a.parquet", "b.parquet"], "size_bytes": [100, 101]})
    assert reasons(stored, indexed, footer_row_counts=lambda paths: {"a.parquet": 12, "b.parquet": 10}) == [
        ("a.parquet", "bytes: the table has 100, the index has 99"),
        ("a.parquet", "rows: the table has 10, the file's footer has 12"),
        ("b.parquet", "bytes: the table has 100, the folder has 101"),
        ("b.parquet", "rows: the table has 10, the index has 11"),
    ]


def test_an_empty_index_names_every_file() -> None:
    empty = INDEXED.slice(0, 0)
    assert reasons(indexed=empty) == [("a.parquet", NO_INDEX_ROW), ("b.parquet", NO_INDEX_ROW)]
