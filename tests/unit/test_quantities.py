"""Numbers, counts and sizes as people read them."""

from __future__ import annotations

import pytest

from dbt.adapters.zlayout.quantities import counted, number_text, size_text


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0"), (1_200, "1,200"), (2.9444, "2.9"), (3.0, "3"), (0.96, "1"), (1234.5, "1,234.5")]
)
def test_a_number_has_at_most_one_decimal(number: float, text: str) -> None:
    assert number_text(number) == text


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 files"), (1, "1 file"), (1.0, "1 file"), (1.1, "1.1 files"), (1_200, "1,200 files")]
)
def test_only_one_has_the_singular(number: float, text: str) -> None:
    assert counted(number, "file") == text


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (1023, "1,023 bytes"),
        (1024, "1.0 KiB"),
        (18_022, "17.6 KiB"),
        (1 << 40, "1.0 TiB"),
        (3 << 50, "3,072.0 TiB"),
    ],
)
def test_a_size_has_the_unit_that_reads_best(size_bytes: float, text: str) -> None:
    assert size_text(size_bytes) == text
