"""Random tables for the laws of expressions: many small files, each with narrow windows of values around hard places."""

import datetime
import random
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq

DAY_S = 86_400
FILES, ROWS_A_FILE = 48, 14

SCHEMA = pa.schema(
    [
        ("id", pa.int32()),
        ("g", pa.int32()),
        ("b", pa.int8()),
        ("h", pa.int16()),
        ("i", pa.int32()),
        ("l", pa.int64()),
        ("f", pa.float32()),
        ("x", pa.float64()),
        ("de", pa.decimal128(10, 2)),
        ("dw", pa.decimal128(38, 4)),
        ("d", pa.date32()),
        ("ts", pa.timestamp("us", "UTC")),
        ("n", pa.timestamp("us")),
        ("s", pa.string()),
        ("bi", pa.binary()),
        ("bo", pa.bool_()),
        ("st", pa.struct([("v", pa.int32()), ("t", pa.string()), ("w", pa.int32())])),
    ]
)


def _epoch(text):
    return int(datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.timezone.utc).timestamp())


# Jumps of Berlin, New York, St John's (at one minute past midnight), Kathmandu, Apia (a day left out), Lord Howe (half
# an hour), local mean times, ends of months and years, dates before 1582 and far away.
INSTANTS = [
    *map(
        _epoch,
        (
            "2021-03-28 01:00",
            "2021-10-31 01:00",
            "2021-03-14 07:00",
            "2021-11-07 06:00",
            "2010-11-07 02:31",
            "1985-12-31 18:30",
            "2011-12-30 10:00",
            "2021-04-03 15:00",
            "1893-03-31 23:06",
            "1883-11-18 17:00",
            "2021-12-31 23:00",
            "2024-02-29 12:00",
            "1970-01-01 00:00",
            "1969-12-31 23:59",
            "1582-10-15 00:00",
            "1582-10-04 12:00",
            "1200-06-01 00:00",
            "2045-10-29 01:00",
            "2060-03-28 01:00",
            "9999-12-31 12:00",
        ),
    )
]
TEXTS = [
    "",
    "a",
    "ab",
    "abc",
    "abd",
    "B",
    "Berlin",
    "berlin",
    "I",
    "Istanbul",
    "i",
    "zz",
    "ß",
    "é",
    "日本",
    "\U0010ffff",
]
TEXTS += ["a%b", "a_b", "a\\b", "it's", "x\x00y", "\uffff", "ab\U0010ffff", "null", "12", "9", "2021-05-05"]
FLOATS = [0.0, -0.0, 0.5, 1.5, 2.5, -2.5, 1e-300, 1e18, -1e18, 3.4e38, 1e300, 0.1, 100.05, float("inf"), float("-inf")]


def _around(rng, center, spread, low, high):
    return max(low, min(high, center + rng.randint(-spread, spread)))


def _integers(rng, bits):
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    center = rng.choice([0, 0, 7, 95, -3, -100, low, high, low + 5, high - 5, high // 2, 10**4, 10**9, 2**53])
    spread = rng.choice([0, 1, 3, 20, 200])
    return lambda: _around(rng, center, spread, low, high)


def _floats(rng, narrow):
    center = rng.choice([v for v in FLOATS if not narrow or abs(v) <= 3.4e38 or v in (FLOATS[-1], FLOATS[-2])])
    spread = rng.choice([0, 0.01, 1, 30])
    return lambda: center + rng.choice([0, spread, -spread, spread * rng.random()])


def _decimals(rng, digits, scale):
    limit = 10**digits - 1
    center = (
        rng.choice([0, 5, 150, -150, 99_995, limit, -limit, limit // 2])
        if digits < 38
        else rng.choice([0, 5, 150_000, 10**33, -(10**33)])
    )
    spread = rng.choice([0, 1, 10, 300])
    return lambda: Decimal(f"{_around(rng, center, spread, -limit, limit)}E-{scale}")


def _times(rng):
    center = rng.choice(INSTANTS) * 1_000_000
    spread = rng.choice([0, 5, 600, 3_600, 7_200, DAY_S, 40 * DAY_S])
    return lambda: center + rng.randint(-spread, spread) * 1_000_000 + rng.choice([0, 0, 1, 999_999])


def _texts(rng):
    few = rng.sample(TEXTS, rng.choice([1, 2, 3]))
    begins = rng.choice(["", "", "ber", "Ber", "k0", "日"])
    return lambda: begins + rng.choice(few) + rng.choice(["", "", "x", "z"])


def _maybe_null(rng, make):
    share = rng.choice([0, 0, 0, 0.3, 1])
    return lambda: None if rng.random() < share else make()


def _maybe_nan(rng, make):
    share = rng.choice([0, 0, 0.2, 1])
    return lambda: float("nan") if rng.random() < share else make()


def _one_file(rng, number):
    times, walls = _times(rng), _times(rng)
    first = rng.choice(INSTANTS) // DAY_S
    spread = rng.choice([0, 1, 6, 40, 400])
    values, inner = _texts(rng), _integers(rng, 8)
    truths = rng.choice([[True], [False], [True, False]])
    makers = {
        "b": _integers(rng, 8),
        "h": _integers(rng, 16),
        "i": _integers(rng, 32),
        "l": _integers(rng, 64),
        "f": _maybe_nan(rng, _floats(rng, narrow=True)),
        "x": _maybe_nan(rng, _floats(rng, narrow=False)),
        "de": _decimals(rng, 10, 2),
        "dw": _decimals(rng, 38, 4),
        "d": lambda: first + rng.randint(-spread, spread),
        "ts": times,
        "n": walls,
        "s": values,
        "bi": lambda: values().encode(),
        "bo": lambda: rng.choice(truths),
        "st": lambda: {"v": inner(), "t": values(), "w": inner()},
    }
    makers = {name: _maybe_null(rng, make) for name, make in makers.items()}
    base = number * ROWS_A_FILE
    return [
        {"id": base + row, "g": number} | {name: make() for name, make in makers.items()} for row in range(ROWS_A_FILE)
    ]


def random_rows(seed):
    """An Arrow table of FILES * ROWS_A_FILE rows; each value of g is one file."""
    rng = random.Random(seed)
    rows = [row for number in range(FILES) for row in _one_file(rng, number)]
    arrays = []
    for field in SCHEMA:
        values = [row[field.name] for row in rows]
        if pa.types.is_timestamp(field.type):
            arrays.append(pa.array(values, pa.int64()).cast(field.type))
        elif pa.types.is_date32(field.type):
            arrays.append(pa.array(values, pa.int32()).cast(field.type))
        else:
            arrays.append(pa.array(values, field.type))
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def write_rows(table, path):
    """The rows as one Parquet file that Spark can read."""
    pq.write_table(table, path)
