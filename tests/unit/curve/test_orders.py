from __future__ import annotations

import numpy as np
import pytest

from dbt.adapters.zlayout.curve.orders import balanced_bits, concatenate, interleave, leading_bits


def test_two_equal_columns_alternate_from_the_first_column_on() -> None:
    codes = [np.array([0b10, 0b01], np.uint16), np.array([0b01, 0b11], np.uint16)]
    assert interleave(codes, [2, 2]).tolist() == [0b1001, 0b0111]


def test_the_wider_column_leads_each_round() -> None:
    assert interleave([np.array([1], np.uint16), np.array([0], np.uint16)], [1, 3]).tolist() == [0b0100]


def test_a_column_of_no_bits_takes_no_part() -> None:
    codes = [np.array([0, 0], np.uint16), np.array([1, 2], np.uint16)]
    assert interleave(codes, [0, 2]).tolist() == [1, 2]
    assert interleave([codes[0]], [0]).tolist() == [0, 0]


def test_sixty_three_bits_fit_and_more_are_refused() -> None:
    codes = [np.array([(1 << 40) - 1], np.uint64), np.array([(1 << 23) - 1], np.uint64)]
    assert interleave(codes, [40, 23]).tolist() == [(1 << 63) - 1]
    with pytest.raises(ValueError, match="64 bits do not fit into 63"):
        interleave(codes, [40, 24])


def test_shaving_takes_from_the_widest_columns_only() -> None:
    assert balanced_bits([40, 30, 3]) == (30, 30, 3)
    assert balanced_bits([10] * 8) == (8, 8, 8, 8, 8, 8, 8, 7)
    assert balanced_bits([5, 6]) == (5, 6)


def test_linear_order_is_by_the_first_column_then_the_second() -> None:
    codes = [np.array([1, 0, 1], np.uint16), np.array([0, 7, 2], np.uint16)]
    assert concatenate(codes, [1, 3]).tolist() == [8, 7, 10]


def test_linear_order_gives_up_bits_of_the_last_columns_first() -> None:
    assert leading_bits([20, 20, 20, 20]) == (20, 20, 20, 3)
    assert leading_bits([20, 20, 23, 5]) == (20, 20, 23, 0)
