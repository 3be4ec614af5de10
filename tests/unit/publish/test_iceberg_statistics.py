"""Entries of data files: pyiceberg reads the bounds as the values that they were, and nothing unproven is said."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.conversions import from_bytes
from pyiceberg.schema import Schema

from dbt.adapters.zlayout.errors import UnsupportedError
from dbt.adapters.zlayout.index.statistics.column_stats import column_stats_table, stats_type
from dbt.adapters.zlayout.publish.iceberg_schema import IcebergSchema, field_id
from dbt.adapters.zlayout.publish.iceberg_statistics import arrow_type, data_file_entries
from dbt.adapters.zlayout.timeline.files.data_files import DataFile, DataFiles

X = field_id(("x",))


def schema_of(word: str, *partition_by: str) -> IcebergSchema:
    fields = [{"name": name, "type": word, "nullable": True, "metadata": {}} for name in ("x", *partition_by)]
    return IcebergSchema.of(json.dumps({"type": "struct", "fields": fields}), partition_by)


def entry(word: str, low, high, nulls=0, nans=0, count=5, rows=5, exact=(True, True)):
    """The entry of a file with these statistics."""
    schema = schema_of(word)
    kind = stats_type(arrow_type(schema.leaves()[("x",)]))
    row = dict(zip(kind.names, (low, high, *exact, nulls, nans, count), strict=True))
    stats = column_stats_table(pa.array(["f"]), [("x",)], [pa.array([row], kind)])
    (found,) = data_file_entries("file:///t", DataFiles.of([DataFile("f", (), rows, 9, 9, "g")]), stats, schema)
    return found


def bounds(word: str, found) -> tuple:
    kind = Schema.model_validate(schema_of(word).to_json(0)).find_field("x").field_type
    return tuple(from_bytes(kind, each[X]) for each in (found.lower_bounds, found.upper_bounds))


@pytest.mark.parametrize(
    ("word", "low", "high", "read"),
    [
        ("boolean", False, True, (False, True)),
        ("byte", -128, 127, (-128, 127)),
        ("integer", -(2**31), 2**31 - 1, (-(2**31), 2**31 - 1)),
        ("long", -(2**63), 2**63 - 1, (-(2**63), 2**63 - 1)),
        ("double", -1e-300, 1e300, (-1e-300, 1e300)),
        ("float", -0.5, 2.0, (-0.5, 2.0)),
        ("date", dt.date(1, 1, 1), dt.date(9999, 12, 31), (-719162, 2932896)),
        ("timestamp_ntz", -999_999, 1_767_225_600_000_000, (-999_999, 1_767_225_600_000_000)),
        ("string", "", "é😀", ("", "é😀")),
        ("binary", b"", b"\xff", (b"", b"\xff")),
    ],
)  # fmt: skip
def test_pyiceberg_reads_the_bounds(word, low, high, read) -> None:
    assert bounds(word, entry(word, low, high)) == read


@given(st.integers(-(10**38) + 1, 10**38 - 1), st.sampled_from([0, 5, 38]))
def test_decimals_are_read_as_they_were(number, scale) -> None:
    value = Decimal(f"{number}E-{scale}")
    found = entry(f"decimal(38,{scale})", value, value)
    assert bounds(f"decimal(38,{scale})", found) == (value, value)
    assert len(found.lower_bounds[X]) == 16


def test_decimals_of_up_to_18_digits_take_the_fewest_bytes() -> None:
    for value, size in ((0, 1), (127, 1), (128, 2), (-128, 1), (-129, 2)):
        assert len(entry("decimal(18,0)", Decimal(value), Decimal(value)).lower_bounds[X]) == size


@pytest.mark.parametrize(
    ("low", "high", "nans"), [(1.0, 2.0, 1), (1.0, 2.0, None), (-math.inf, 2.0, 0), (1.0, math.inf, 0), (1.0, None, 0)]
)
def test_there_are_no_bounds_where_nan_or_infinity_may_be(low, high, nans) -> None:
    found = entry("double", low, high, nans=nans)
    assert (found.lower_bounds, found.upper_bounds) == (None, None)
    assert found.nan_value_counts == (None if nans is None else {X: nans})


def test_files_of_nothing_but_nan_do_not_count_them_since_readers_would_skip_them_for_greater_numbers() -> None:
    assert entry("double", None, None, nans=5).nan_value_counts is None
    assert entry("double", None, None, nulls=2, nans=3).nan_value_counts is None
    assert entry("double", None, None, nulls=None, nans=5).nan_value_counts is None
    assert entry("double", 1.0, 1.0, nulls=1, nans=3).nan_value_counts == {X: 3}
    assert entry("double", 1.0, 1.0, nans=0).nan_value_counts == {X: 0}


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_bounds_of_zero_are_left_out_since_their_sign_is_unknown(zero) -> None:
    low, high = entry("double", zero, 2.0), entry("double", -2.0, zero)
    assert (low.lower_bounds, high.upper_bounds) == (None, None)
    assert (set(low.upper_bounds), set(high.lower_bounds)) == ({X}, {X})
    assert entry("decimal(9,2)", Decimal("0.00"), Decimal("0.00")).lower_bounds == {X: b"\0"}


@pytest.mark.parametrize("word", ["long", "timestamp", "date"])
def test_bounds_that_no_row_has_are_left_out_since_readers_answer_minimum_and_maximum_by_them(word) -> None:
    found = entry(word, 1, 2, exact=(False, True))
    assert (found.lower_bounds, set(found.upper_bounds)) == (None, {X})
    assert entry(word, 1, 2, exact=(True, None)).upper_bounds is None


@pytest.mark.parametrize(("word", "low", "high"), [("string", "a", "b"), ("binary", b"a", b"b")])
def test_bounds_of_texts_may_be_cut(word, low, high) -> None:
    assert bounds(word, entry(word, low, high, exact=(False, False))) == (low, high)


def test_counts_are_as_known_and_all_nulls_have_no_bounds() -> None:
    found = entry("long", None, None, nulls=5)
    assert (found.value_counts, found.null_value_counts, found.lower_bounds) == ({X: 5}, {X: 5}, None)
    assert entry("long", 1, 2, nulls=None).null_value_counts is None


def test_statistics_of_another_number_of_rows_are_not_used() -> None:
    found = entry("long", 1, 2, count=4)
    assert (found.value_counts, found.null_value_counts, found.lower_bounds, found.upper_bounds) == (None,) * 4


def test_statistics_in_another_type_give_counts_only() -> None:
    stats = pa.array([dict(zip(stats_type(pa.string()).names, ("1", "2", True, True, 0, 0, 5), strict=True))],
                     stats_type(pa.string()))  # fmt: skip
    table = column_stats_table(pa.array(["f"]), [("x",)], [stats])
    files = DataFiles.of([DataFile("f", (), 5, 9, 9, "g")])
    (found,) = data_file_entries("file:///t", files, table, schema_of("long"))
    assert (found.value_counts, found.lower_bounds) == ({X: 5}, None)


@pytest.mark.parametrize(
    ("word", "text", "value"),
    [
        *(
            ("integer", "-7", -7),
            ("string", "a b/%=é", "a b/%=é"),
            ("date", "1970-01-02", 1),
            ("boolean", "true", True),
        ),
        *(("decimal(20,2)", "1.50", Decimal("1.50")), ("timestamp_ntz", "1970-01-01 00:00:01", 1_000_000)),
    ],
)
def test_partition_values_are_in_the_record_and_in_the_bounds(word, text, value) -> None:
    schema, p = schema_of(word, "p"), field_id(("p",))
    files = DataFiles.of(
        [DataFile("f", (("p", text),), 5, 9, 9, "g"), DataFile("n", (("p", None),), 4, 9, 9, "g")], ("p",)
    )
    found, null = data_file_entries("file:///t", files, column_stats_table(pa.array([], pa.string()), [], []), schema)
    assert (found.partition[0], null.partition[0]) == (value, None)
    kind = Schema.model_validate(schema.to_json(0)).find_field("p").field_type
    assert from_bytes(kind, found.lower_bounds[p]) == from_bytes(kind, found.upper_bounds[p]) == value
    assert (found.null_value_counts[p], null.null_value_counts[p], null.lower_bounds) == (0, 4, None)


def test_a_folder_that_is_no_value_of_the_column_is_named() -> None:
    files = DataFiles.of([DataFile("f", (("p", "1e3"),), 5, 9, 9, "g")], ("p",))
    with pytest.raises(UnsupportedError, match="'p=1e3' is not spelled as a value of type int"):
        data_file_entries("x", files, column_stats_table(pa.array([], pa.string()), [], []), schema_of("integer", "p"))
