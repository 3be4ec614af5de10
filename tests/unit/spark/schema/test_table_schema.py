"""Literals hold the value that went in."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.zlayout.spark.schema.table_schema import string_literal


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


@given(st.text())
def test_spark_finds_no_variable_in_a_string_literal(text: str) -> None:
    # Source: org.apache.spark.internal.config.ConfigReader.REF_RE.
    assert not re.search(r"\$\{(?:(\w+?):)?(\S+?)\}", string_literal(f"{text}${{env:HOME}}{text}"))
    assert unescaped(string_literal(f"{text}${{env:HOME}}")) == f"{text}${{env:HOME}}"
