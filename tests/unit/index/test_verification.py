"""Cells that contradict what was found, and disagreements between a table, its index and its folder."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from dbt.adapters.zlayout.index.statistics.column_stats import stats_type
from dbt.adapters.zlayout.index.verification import (
    MISSING_ON_DISK,
    NO_INDEX_ROW,
    ORPHAN,
    different_counts,
    stale_entries,
    wrong_cells,
)
from dbt.adapters.zlayout.timeline.files.data_files import DataFile, DataFiles

TRUE = {
    "min": "b",
    "max": "y",
    "min_exact": True,
    "max_exact": True,
    "null_count": 1,
    "nan_count": 0,
    "value_count": 5,
}
FILES = DataFiles.of([DataFile(f"{name}.parquet", (), 10, 100, 1, name) for name in "ab"])
STORED = pa.table({"path": ["a.parquet", "b.parquet"], "size_bytes": [100, 100]})
INDEXED = pa.table({"path": ["b.parquet", "a.parquet"], "row_count": [10, 10], "size_bytes": [100, 100]})


def wrong(stored: dict[str, Any], found: dict[str, Any], kind: pa.DataType | None = None) -> list[tuple[str, Any, Any]]:
    kind = stats_type(kind or pa.string())
    rows = wrong_cells(pa.array(["f"]), {("s", "a"): pa.array([stored], kind)}, {("s", "a"): pa.array([found], kind)})
    assert all((row["path"], row["column"]) == ("f", "s.a") for row in rows.to_pylist())
    return [(row["cell"], row["stored"], row["found"]) for row in rows.to_pylist()]


@pytest.mark.parametrize(
    "stored",
    [
        {},
        {"min": "a", "min_exact": False},
        {"max": "z", "max_exact": False},
        {"min": None, "max": None, "min_exact": False, "max_exact": False},
        {"null_count": None, "nan_count": None, "value_count": None},
    ],
)
def test_what_is_right_wider_or_unknown_is_not_wrong(stored: dict[str, Any]) -> None:
    assert wrong({**TRUE, **stored}, TRUE) == []


@pytest.mark.parametrize(
    ("stored", "cell"),
    [
        ({"min": "c"}, ("min", "c", "b")),
        ({"min": "c", "min_exact": False}, ("min", "c", "b")),
        ({"max": "x"}, ("max", "x", "y")),
        ({"min": "a"}, ("min_exact", "a", "b")),
        ({"max": "z"}, ("max_exact", "z", "y")),
        ({"null_count": 0}, ("null_count", "0", "1")),
        ({"value_count": 6}, ("value_count", "6", "5")),
    ],
)
def test_each_wrong_cell_is_named_once(stored: dict[str, Any], cell: tuple[str, str, str]) -> None:
    assert [(name, str(said), str(true)) for name, said, true in wrong({**TRUE, **stored}, TRUE)] == [
        (cell[0], cell[1], cell[2])
    ]


def test_a_found_bound_that_is_not_exact_judges_only_what_it_can() -> None:
    vague = {**TRUE, "min": "a", "max": "z", "min_exact": False, "max_exact": False}
    assert wrong(TRUE, vague) == []
    assert wrong({**TRUE, "min": "A"}, vague) == [("min_exact", "A", "a")]
    assert wrong({**TRUE, "min": "~"}, vague) == [("min", "~", "a")]
    assert wrong(TRUE, {**TRUE, "min": None, "max": None, "min_exact": False, "max_exact": False}) == []


def test_a_bound_of_no_value_is_wrong_and_so_is_nan() -> None:
    nothing = {**TRUE, "min": None, "max": None, "min_exact": False, "max_exact": False, "null_count": 5}
    assert wrong({**TRUE, "null_count": 5}, nothing) == [("min", "b", "no value"), ("max", "y", "no value")]
    number = {**TRUE, "min": -0.0, "max": 4.0}
    assert wrong({**number, "min": 0.0}, number, pa.float64()) == []
    assert [cell for cell, _, _ in wrong({**number, "max": math.nan}, number, pa.float64())] == ["max"]


@pytest.mark.parametrize(
    ("kind", "low", "high", "text"),
    [
        (pa.bool_(), False, True, "true"),
        (pa.binary(), b"\x00", b"\xff", "x'ff'"),
        (pa.timestamp("us", "UTC"), 0, 17 * 10**14, "2023-11-14 22:13:20.000000Z"),
        (pa.date32(), -700000, 20000, "2024-10-04"),
    ],
    ids=str,
)
def test_values_of_every_type_have_a_text(kind: pa.DataType, low: Any, high: Any, text: str) -> None:
    true = {**TRUE, "min": low, "max": low}
    ((cell, said, _),) = wrong({**true, "max": high}, true, kind)
    assert (cell, said) == ("max_exact", text)


def test_counts_of_files_are_compared() -> None:
    found = different_counts(pa.array(["a", "b", "c"]), "row_count", pa.array([1, 2, None]), pa.array([1, 3, 4]))
    assert found.to_pylist() == [{"path": "b", "column": None, "cell": "row_count", "stored": "2", "found": "3"}]


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


def test_a_file_that_vanished_from_the_folder_is_named_and_its_footer_is_not_read() -> None:
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


def test_other_sizes_and_row_counts_are_named_with_both_numbers() -> None:
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
