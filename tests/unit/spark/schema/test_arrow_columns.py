from decimal import Decimal

import pyarrow as pa
import pytest

from dbt.adapters.zlayout.spark.schema.arrow_columns import key_table, lower_half, short_decimal

VALUES = [
    Decimal("-12.34"),
    None,
    Decimal("9999999999999999.99"),
    Decimal("-9999999999999999.99"),
    Decimal("0.00"),
    None,
]


@pytest.mark.parametrize(
    ("digits", "kind"), [(9, pa.decimal128), (10, pa.decimal64), (18, pa.decimal64), (19, pa.decimal128)]
)
def test_decimals_are_made_short_where_files_hold_eight_bytes(digits, kind):
    assert short_decimal(pa.decimal128(digits, 2)) == kind(digits, 2)


def test_other_types_stay():
    assert short_decimal(pa.int64()) == pa.int64()


@pytest.mark.parametrize("start", [0, 1, 2])
@pytest.mark.parametrize("values", [VALUES, [each for each in VALUES if each is not None]], ids=["nulls", "none"])
def test_halves_are_the_same_numbers(values, start):
    array = pa.array(values, pa.decimal128(18, 2)).slice(start)
    found = lower_half(array)
    assert found.type == pa.decimal64(18, 2)
    assert found.to_pylist() == values[start:]
    assert found.null_count == array.null_count


def test_no_decimals_at_all():
    assert lower_half(pa.array([], pa.decimal128(12, 2))).to_pylist() == []


def test_a_key_that_was_made_short_is_what_curves_know():
    rows = pa.table({"price": lower_half(pa.array(VALUES, pa.decimal128(18, 2)))})
    assert key_table(rows, [("price",)]).column("0").to_pylist() == VALUES
    assert key_table(rows, [("price",)]).schema.field("0").type == pa.decimal128(18, 2)
