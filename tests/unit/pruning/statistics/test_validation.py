import datetime

import pyarrow as pa
import pytest

from dbt.adapters.zlayout.pruning.statistics.validation import is_ordered, widened, widens

DAY, INSTANT, WALL = pa.date32(), pa.timestamp("us", tz="UTC"), pa.timestamp("us")
KINDS = [
    pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.decimal128(10, 2),
    pa.decimal128(12, 2), pa.decimal128(12, 4), pa.decimal128(11, 4), pa.decimal128(9, 0), pa.decimal128(10, 0),
    pa.decimal128(5, 0), pa.decimal128(3, 0), pa.decimal128(21, 2), pa.decimal128(20, 2), DAY, INSTANT,
    pa.timestamp("us", tz="Europe/Berlin"), WALL, pa.timestamp("ns"), pa.string(), pa.large_string(), pa.binary(),
    pa.large_binary(), pa.time64("us"), pa.duration("us"),
]  # fmt: skip
WIDER = {
    pa.int8(): {"int16", "int32", "int64", "float", "double", *(f"decimal128{each}" for each in (
        "(10, 2)", "(12, 2)", "(12, 4)", "(11, 4)", "(9, 0)", "(10, 0)", "(5, 0)", "(3, 0)", "(21, 2)", "(20, 2)"))},
    pa.int16(): {"int32", "int64", "float", "double", *(f"decimal128{each}" for each in (
        "(10, 2)", "(12, 2)", "(12, 4)", "(11, 4)", "(9, 0)", "(10, 0)", "(5, 0)", "(21, 2)", "(20, 2)"))},
    pa.int32(): {"int64", "double", *(f"decimal128{each}" for each in (
        "(12, 2)", "(10, 0)", "(21, 2)", "(20, 2)"))},
    pa.int64(): {"decimal128(21, 2)"},
    pa.float32(): {"double"},
    pa.decimal128(10, 2): {"decimal128(12, 2)", "decimal128(12, 4)", "decimal128(21, 2)", "decimal128(20, 2)"},
    pa.decimal128(12, 2): {"decimal128(21, 2)", "decimal128(20, 2)"},
    pa.decimal128(11, 4): {"decimal128(12, 4)"},
    pa.decimal128(3, 0): {"decimal128(10, 2)", "decimal128(12, 2)", "decimal128(12, 4)", "decimal128(11, 4)",
                          "decimal128(9, 0)", "decimal128(10, 0)", "decimal128(5, 0)", "decimal128(21, 2)",
                          "decimal128(20, 2)"},
    pa.decimal128(20, 2): {"decimal128(21, 2)"},
    pa.decimal128(21, 2): set(),
    DAY: {"timestamp[us]", "timestamp[ns]"},
    INSTANT: {"timestamp[us, tz=Europe/Berlin]"},
    WALL: {"timestamp[ns]"},
    pa.bool_(): set(),
    pa.time64("us"): set(),
    pa.duration("us"): set(),
    pa.float64(): set(),
    pa.string(): {"large_string"},
    pa.large_string(): {"string"},
    pa.binary(): {"large_binary"},
    pa.large_binary(): {"binary"},
}  # fmt: skip


@pytest.mark.parametrize("source", WIDER, ids=str)
def test_a_type_widens_to_those_that_hold_all_of_its_values_in_their_order(source):
    assert {str(target) for target in KINDS if widens(source, target)} == WIDER[source] | {str(source)}


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_what_is_compared_has_an_order(kind):
    assert is_ordered(kind)


@pytest.mark.parametrize("kind", [pa.list_(pa.int8()), pa.struct([("a", pa.int8())]), pa.month_day_nano_interval()])
def test_other_types_have_none(kind):
    assert not is_ordered(kind)


def test_values_that_do_not_fit_are_not_widened():
    assert widened(pa.array([datetime.date(9999, 1, 1)]), pa.timestamp("ns")) is None
    assert widened(pa.array([1], pa.int64()), pa.float64()) is None
    assert widened(pa.array([1], pa.int32()), pa.float64()).to_pylist() == [1.0]
