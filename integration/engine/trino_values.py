"""Values of Spark and of Trino in one spelling."""

import datetime as dt
import struct
from decimal import Decimal

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)


def plain(value, digits=6):
    """A value as a text of its own kind: structs and maps as lists, times with a zone as seconds of so many digits."""
    if isinstance(value, dict):
        return [plain(each, digits) for each in value.values()]
    if isinstance(value, (list, tuple)):
        return [plain(each, digits) for each in value]
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        left_out = 10 ** (6 - digits)
        whole = ((value - _EPOCH) // dt.timedelta(microseconds=1) + left_out // 2) // left_out
        return f"{whole * left_out} microseconds"
    if isinstance(value, (bytes, bytearray)):
        return value.hex()
    return str(value) if isinstance(value, (Decimal, dt.date)) else value


def single(value):
    """A number as 32 bits hold it: Trino tells it as the shortest decimal number that means it."""
    return value if value is None else struct.unpack("f", struct.pack("f", value))[0]


def pairs(value):
    """The same with each map as the pairs that Arrow has for it. The structs of Trino's client are tuples."""
    if isinstance(value, dict):
        return [(pairs(key), pairs(each)) for key, each in value.items()]
    return [pairs(each) for each in value] if isinstance(value, (list, tuple)) else value
