"""Laws of the curve: orders are never inverted, curves are bijections, cuts part every row one way."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbt.adapters.zlayout.curve.cuts import build_tree
from dbt.adapters.zlayout.curve.keys import comparable
from dbt.adapters.zlayout.curve.model import CurveModel
from dbt.adapters.zlayout.curve.orders import concatenate, hilbert_positions, interleave
from dbt.adapters.zlayout.curve.quantiles import Boundaries
from dbt.adapters.zlayout.errors import CorruptError

LAW = settings(deadline=None, max_examples=80)
UTC = dt.timezone.utc
SHORT = st.text(st.characters(exclude_categories=("Cs",)), max_size=80)
BEGINNINGS = ("https://example.com/" + "é/" * 40, "http://example.com/" + "x" * 130, "\U0010ffff" * 16)
TEXT = SHORT | st.tuples(st.sampled_from(BEGINNINGS), SHORT).map("".join)
VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.bool_(): st.booleans(),
    pa.int8(): st.integers(-128, 127),
    pa.int16(): st.integers(-(2**15), 2**15 - 1),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats(),
    pa.decimal128(9, 2): st.decimals(-9999999, 9999999, places=2),
    pa.decimal128(18, 0): st.integers(-(10**18) + 1, 10**18 - 1).map(Decimal),
    pa.decimal128(19, 0): st.integers(-(10**19) + 1, 10**19 - 1).map(Decimal),
    pa.decimal128(38, 0): st.integers(-(10**38) + 1, 10**38 - 1).map(Decimal),
    pa.date32(): st.dates(),
    pa.timestamp("us", tz="UTC"): st.datetimes(timezones=st.just(UTC)),
    pa.timestamp("us"): st.datetimes(),
    pa.time64("us"): st.times(),
    pa.duration("us"): st.timedeltas(dt.timedelta(microseconds=-(2**62)), dt.timedelta(microseconds=2**62)),
    pa.string(): TEXT,
    pa.binary(): st.binary(max_size=80),
}


def spark_order(value: Any) -> Any:
    """A Python value that compares as Spark compares; the order that the vectors must agree with."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return value.encode() if isinstance(value, str) else value


@st.composite
def columns(draw: st.DrawFn) -> pa.Array:
    type_ = draw(st.sampled_from(list(VALUES)))
    values = draw(st.lists(st.none() | VALUES[type_], max_size=30))
    array = pa.array(values, type_)
    return array.dictionary_encode() if draw(st.booleans()) else array


@LAW
@given(columns())
def test_values_order_as_spark_orders_them(column: pa.Array) -> None:
    found = comparable(column)
    rows = column.to_pylist()
    assert found.nulls.tolist() == [row is None for row in rows]
    present = [(spark_order(row), found.values[number]) for number, row in enumerate(rows) if row is not None]
    ordered = sorted(present, key=lambda pair: pair[0])
    for (first, first_value), (second, second_value) in pairwise(ordered):
        assert first_value <= second_value
        told_apart = not isinstance(first, bytes) or first.rstrip(b"\0") != second.rstrip(b"\0")
        assert (first_value < second_value) == (first < second and told_apart)


@LAW
@given(columns(), columns(), st.integers(2, 12))
def test_ranks_never_invert_an_order(sampled: pa.Array, later: pa.Array, buckets: int) -> None:
    if sampled.type != later.type:
        later = sampled
    boundaries = Boundaries.of_column(sampled, buckets)
    assert (boundaries.values[1:] > boundaries.values[:-1]).all()
    ranks = boundaries.ranks_of(later).tolist()
    rows = later.to_pylist()
    assert [rank == 0 for rank in ranks] == [row is None for row in rows]
    ordered = sorted((spark_order(row), rank) for row, rank in zip(rows, ranks, strict=True) if row is not None)
    assert all(first[1] <= second[1] for first, second in pairwise(ordered))
    codes = boundaries.codes(boundaries.ranks_of(later))
    assert all(code < 1 << boundaries.bits for code in codes.tolist())


WIDTHS = st.lists(st.integers(0, 21), min_size=1, max_size=8).filter(lambda bits: sum(bits) <= 63)


def cells(draw: st.DrawFn, bits: list[int]) -> list[np.ndarray[Any, Any]]:
    rows = draw(st.integers(1, 20))
    return [
        np.array(draw(st.lists(st.integers(0, (1 << each) - 1), min_size=rows, max_size=rows)), np.uint64)
        for each in bits
    ]


@st.composite
def cells_and_bits(draw: st.DrawFn) -> tuple[list[np.ndarray[Any, Any]], list[int]]:
    bits = draw(WIDTHS)
    return cells(draw, bits), bits


def slow_z(cell: list[int], bits: list[int]) -> int:
    """Bit by bit: round after round each column that has bits left gives its next, wider columns first."""
    digits = ""
    for round_ in range(max(bits)):
        for column in sorted(range(len(bits)), key=lambda number: -bits[number]):
            if round_ < bits[column]:
                digits += f"{cell[column]:0{bits[column]}b}"[round_]
    return int(digits or "0", 2)


@LAW
@given(cells_and_bits())
def test_z_values_equal_the_slow_reference(case: tuple[list[np.ndarray[Any, Any]], list[int]]) -> None:
    codes, bits = case
    values = interleave(codes, bits)
    assert values.tolist() == [
        slow_z(list(cell), bits) for cell in zip(*(each.tolist() for each in codes), strict=True)
    ]


@LAW
@given(cells_and_bits(), st.data())
def test_z_values_rise_with_any_one_column(
    case: tuple[list[np.ndarray[Any, Any]], list[int]], data: st.DataObject
) -> None:
    codes, bits = case
    column = data.draw(st.integers(0, len(bits) - 1))
    raised = [each.copy() for each in codes]
    room = np.uint64((1 << bits[column]) - 1)
    raised[column] = np.minimum(raised[column] + np.uint64(data.draw(st.integers(0, 1 << bits[column]))), room)
    before, after = interleave(codes, bits), interleave(raised, bits)
    assert ((after > before) == (raised[column] > codes[column])).all()


@LAW
@given(cells_and_bits())
def test_linear_values_order_as_tuples_do(case: tuple[list[np.ndarray[Any, Any]], list[int]]) -> None:
    codes, bits = case
    rows = list(zip(*(each.tolist() for each in codes), strict=True))
    values = concatenate(codes, bits).tolist()
    assert [row for _, row in sorted(zip(values, rows, strict=True))] == sorted(rows)


def slow_hilbert(cell: list[int], bits: int) -> int:
    """Skilling's algorithm as published, one cell at a time."""
    axes = list(cell)
    bit = 1 << (bits - 1)
    while bit > 1:
        low = bit - 1
        for column in range(len(axes)):
            if axes[column] & bit:
                axes[0] ^= low
            else:
                exchanged = (axes[0] ^ axes[column]) & low
                axes[0] ^= exchanged
                axes[column] ^= exchanged
        bit >>= 1
    for column in range(1, len(axes)):
        axes[column] ^= axes[column - 1]
    gray, bit = 0, 1 << (bits - 1)
    while bit > 1:
        if axes[-1] & bit:
            gray ^= bit - 1
        bit >>= 1
    return slow_z([axis ^ gray for axis in axes], [bits] * len(axes))


@st.composite
def square_cells(draw: st.DrawFn) -> tuple[list[np.ndarray[Any, Any]], int]:
    dimensions = draw(st.integers(1, 8))
    bits = draw(st.integers(1, 63 // dimensions))
    return cells(draw, [bits] * dimensions), bits


@LAW
@given(square_cells())
def test_hilbert_equals_the_slow_reference(case: tuple[list[np.ndarray[Any, Any]], int]) -> None:
    codes, bits = case
    positions = hilbert_positions(codes, bits)
    assert positions.tolist() == [slow_hilbert(list(c), bits) for c in zip(*(e.tolist() for e in codes), strict=True)]


@pytest.mark.parametrize(("dimensions", "bits"), [(1, 6), (2, 1), (2, 6), (3, 4), (4, 3), (5, 2), (8, 1), (8, 2)])
def test_hilbert_visits_every_cell_once_in_steps_of_one(dimensions: int, bits: int) -> None:
    cells = np.indices((1 << bits,) * dimensions).reshape(dimensions, -1)
    positions = hilbert_positions(list(cells), bits)
    assert sorted(positions.tolist()) == list(range(cells.shape[1]))
    path = cells[:, np.argsort(positions)]
    assert (np.abs(np.diff(path, axis=1)).sum(axis=0) == 1).all()


@LAW
@given(
    st.lists(st.lists(st.integers(0, 9), min_size=40, max_size=40), min_size=1, max_size=3),
    st.integers(1, 12),
    st.integers(1, 4),
    st.booleans(),
)
def test_each_leaf_is_a_box_and_boxes_do_not_meet(rows: list[list[int]], files: int, leaves: int, linear: bool) -> None:
    sample = [np.array(each, np.uint16) for each in rows]
    tree = build_tree(sample, files, leaves, linear=linear)
    leaf = tree.leaf_of(sample)
    assert set(leaf.tolist()) == set(range(tree.leaf_count))
    assert tree.file_count <= files
    assert (np.diff(tree.file_of_leaf) >= 0).all()
    for number in range(tree.leaf_count):
        mine = leaf == number
        inside = np.logical_and.reduce([(r >= r[mine].min()) & (r <= r[mine].max()) for r in sample])
        assert (leaf[inside] == number).all()


@LAW
@given(st.data())
def test_damage_to_a_stored_model_is_noticed_or_harmless(data: st.DataObject) -> None:
    content = bytearray(STORED)
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        model = CurveModel.from_bytes(bytes(content))
    except CorruptError:
        return
    if tuple(map(str, model.types)) == ("int64", "string"):
        placement = model.place(SAMPLE.columns)
        assert int(placement.leaf.max()) < model.tree.leaf_count


SAMPLE = pa.table({"0": pa.array(range(500)), "1": [str(number % 77) for number in range(500)]})
STORED = CurveModel.build(
    SAMPLE, [("a",), ("b",)], "zorder", total_rows=10**6, bytes_per_row=10, target_file_bytes=10**6, row_group_rows=None
).to_bytes()
