"""Which cells contradict what was found, and which only know less."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from dbt.adapters.zlayout.index.statistics.column_stats import stats_type
from dbt.adapters.zlayout.index.verification import different_counts, wrong_cells

TRUE = {
    "min": "b",
    "max": "y",
    "min_exact": True,
    "max_exact": True,
    "null_count": 1,
    "nan_count": 0,
    "value_count": 5,
}


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
