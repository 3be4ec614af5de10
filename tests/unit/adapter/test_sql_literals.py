"""Literals hold the value that went in."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.zlayout.adapter.column import ZlayoutColumn
from dbt.adapters.zlayout.adapter.sql_literals import literal, quoted_identifier, string_literal


def unescaped(text: str) -> str:
    """Spark's reading of a literal: a backslash gives the character after it."""
    assert text[0] == text[-1] == "'"
    out, position, body = [], 0, text[1:-1]
    while position < len(body):
        if body[position] == "\\":
            position += 1
        else:
            assert body[position] != "'", "the literal ends too early"
        out.append(body[position])
        position += 1
    return "".join(out)


@given(st.text())
def test_spark_reads_a_string_literal_back_as_the_same_text(text: str) -> None:
    assert unescaped(string_literal(text)) == text


@given(st.text(min_size=1))
def test_a_quoted_identifier_never_ends_inside_the_name(name: str) -> None:
    quoted = quoted_identifier(name)
    assert quoted[1:-1].replace("``", "").count("`") == 0
    assert quoted[1:-1].replace("``", "`") == name


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "null"),
        (True, "true"),
        (12345678901234567890, "12345678901234567890"),
        (Decimal("1E+3"), "1000"),
        (Decimal("0.10"), "0.10"),
        (Decimal("NaN"), "'NaN'"),
        (1.5, "1.5d"),
        (float("inf"), "'inf'"),
        (dt.date(2024, 2, 29), "'2024-02-29'"),
        (dt.datetime(2024, 2, 29, 1, 2, 3, 4), "'2024-02-29 01:02:03.000004'"),  # noqa: DTZ001 # seeds have no zone
        ("it's", "'it\\'s'"),
    ],
)
def test_values_of_seeds_keep_their_digits_and_quotes(value: object, expected: str) -> None:
    assert literal(value) == expected


def test_a_column_with_a_backquote_in_its_name_is_quoted_whole() -> None:
    assert ZlayoutColumn("a`b", "string").quoted == "`a``b`"


@given(st.text())
def test_spark_finds_no_variable_in_a_string_literal(text: str) -> None:
    # Source: org.apache.spark.internal.config.ConfigReader.REF_RE.
    assert not re.search(r"\$\{(?:(\w+?):)?(\S+?)\}", string_literal(f"{text}${{env:HOME}}{text}"))
    assert unescaped(string_literal(f"{text}${{env:HOME}}")) == f"{text}${{env:HOME}}"
