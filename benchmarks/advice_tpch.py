"""TPC-H's 22 queries: rows in the files that they open with hand-picked keys, advised ones, and z-order of others.

usage: python benchmarks/advice_tpch.py [--scale-factor 1] [--home FOLDER] [--files 48]
No Spark: files are made of all rows of lineitem and orders as each layout makes them, and the package's own pruning
says which of them a query's filters open. Filters are those that reach the two tables; constants are drawn as TPC-H
draws them. Advice sees three draws, figures are of twenty others. Delta's and Iceberg's z-order are made as their
sources make them: Delta interleaves the bits of 1,000 ranges of each key, Iceberg those of the values' first eight
bytes; both cut the result at equal numbers of rows. A lookup workload is the second one.
"""

from __future__ import annotations

import argparse
import datetime as dt
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from dbt.adapters.zlayout.advice.advice import Present, Query, TableSize, advise
from dbt.adapters.zlayout.advice.sample import FilesOfSample, Layout, Sample, Weighted, shares_read
from dbt.adapters.zlayout.config.workload import WeightedCondition
from dbt.adapters.zlayout.curve.orders import interleave
from dbt.adapters.zlayout.predicate.expr import And, Column, Compare, Constant, Expr, In, Op, Or

COLUMNS = {
    "lineitem": [
        *("l_orderkey", "l_partkey", "l_suppkey", "l_quantity", "l_discount", "l_returnflag"),
        *("l_shipdate", "l_commitdate", "l_receiptdate", "l_shipinstruct", "l_shipmode"),
    ],
    "orders": ["o_orderkey", "o_custkey", "o_orderdate", "o_orderstatus", "o_orderpriority"],
}
HAND_PICKED = {
    "lineitem": [
        ("l_shipdate",),
        ("l_shipdate", "l_partkey"),
        ("l_shipdate", "l_orderkey"),
        ("l_shipdate", "l_shipmode", "l_receiptdate"),
    ],
    "orders": [("o_orderdate",), ("o_orderdate", "o_custkey"), ("o_orderdate", "o_orderkey")],
}
SAMPLED, BYTES_OF_FILE = 1 << 16, 4 << 20
MODES = ["AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK"]
TRUE = Constant(True)
Random = np.random.Generator
Bits = npt.NDArray[np.uint64]


class Filters:
    """Conditions on the columns of one table."""

    def __init__(self, schema: pa.Schema, table: pa.Table) -> None:
        self._schema, self._table = schema, table

    def between(self, name: str, low: object, below: object) -> Expr:
        """``low <= column < below``; None for no limit."""
        ends = ((Op.GE, low), (Op.LT, below))
        return And(tuple(self.compare(op, name, end) for op, end in ends if end is not None))

    def compare(self, op: Op, name: str, value: object) -> Expr:
        """A comparison with a constant."""
        kind = self._schema.field(name).type
        return Compare(op, Column((name,), kind), pa.scalar(value).cast(kind))

    def one_of(self, name: str, values: Sequence[object]) -> Expr:
        """An IN list."""
        kind = self._schema.field(name).type
        return In(Column((name,), kind), pa.array(values).cast(kind))

    def of_a_row(self, name: str, random: Random) -> Expr:
        """``column = value of a random row``."""
        return self.compare(
            Op.EQ, name, self._table.column(name)[int(random.integers(0, self._table.num_rows))].as_py()
        )


def months(start: dt.date, count: int) -> dt.date:
    """The date some months later."""
    number = start.year * 12 + start.month - 1 + count
    return dt.date(number // 12, number % 12 + 1, 1)


def lineitem_scans(on: Filters, random: Random) -> list[Expr]:
    """The filters that reach lineitem, one for each scan of the 22 queries."""
    year, day = dt.date(int(random.integers(1993, 1998)), 1, 1), dt.date(1995, 3, int(random.integers(1, 32)))
    discount, lowest = int(random.integers(2, 10)), int(random.integers(1, 11))
    month = months(dt.date(1993, 1, 1), int(random.integers(0, 58)))
    quarter = months(dt.date(1993, 1, 1), int(random.integers(0, 58)))
    modes = [MODES[each] for each in random.choice(7, 2, replace=False)]
    cents = [f"0.{each:02d}" for each in (discount - 1, discount + 1)]
    q6 = And(
        (
            on.between("l_shipdate", year, months(year, 12)),
            on.compare(Op.GE, "l_discount", cents[0]),
            on.compare(Op.LE, "l_discount", cents[1]),
            on.compare(Op.LT, "l_quantity", str(int(random.integers(24, 26)))),
        )
    )
    sizes = [(lowest, lowest + 10), (lowest + 9, lowest + 20), (lowest + 19, lowest + 30)]
    q19 = And(
        (
            on.one_of("l_shipmode", ["AIR", "AIR REG"]),
            on.compare(Op.EQ, "l_shipinstruct", "DELIVER IN PERSON"),
            Or(tuple(on.between("l_quantity", str(low), str(high + 1)) for low, high in sizes)),
        )
    )
    return [
        on.compare(Op.LE, "l_shipdate", dt.date(1998, 12, 1) - dt.timedelta(int(random.integers(60, 121)))),  # 1
        on.compare(Op.GT, "l_shipdate", day),  # 3
        q6,
        on.between("l_shipdate", dt.date(1995, 1, 1), dt.date(1997, 1, 1)),  # 7
        on.compare(Op.EQ, "l_returnflag", "R"),  # 10
        And((on.one_of("l_shipmode", modes), on.between("l_receiptdate", year, months(year, 12)))),  # 12
        on.between("l_shipdate", month, months(month, 1)),  # 14
        on.between("l_shipdate", quarter, months(quarter, 3)),  # 15
        q19,
        on.between("l_shipdate", year, months(year, 12)),  # 20
        *[TRUE] * 11,  # 4, 5, 8, 9, 17 twice, 18 twice, 21 three times
    ]


def orders_scans(on: Filters, random: Random) -> list[Expr]:
    """The filters that reach orders."""
    year = dt.date(int(random.integers(1993, 1998)), 1, 1)
    quarter = months(dt.date(1993, 1, 1), int(random.integers(0, 58)))
    returned = months(dt.date(1993, 2, 1), int(random.integers(0, 24)))
    return [
        on.compare(Op.LT, "o_orderdate", dt.date(1995, 3, int(random.integers(1, 32)))),  # 3
        on.between("o_orderdate", quarter, months(quarter, 3)),  # 4
        on.between("o_orderdate", year, months(year, 12)),  # 5
        on.between("o_orderdate", dt.date(1995, 1, 1), dt.date(1997, 1, 1)),  # 8
        on.between("o_orderdate", returned, months(returned, 3)),  # 10
        on.compare(Op.EQ, "o_orderstatus", "F"),  # 21
        *[TRUE] * 6,  # 7, 9, 12, 13, 18, 22
    ]


def lineitem_lookups(on: Filters, random: Random) -> list[Expr]:
    """A service desk: parts and suppliers of a time, most of it the last half year."""
    recent = dt.date(1998, 6, 1) + dt.timedelta(int(random.integers(0, 150)))
    week = dt.date(1992, 2, 1) + dt.timedelta(int(random.integers(0, 2400)))
    return [
        *(on.between("l_shipdate", recent, recent + dt.timedelta(3)) for _ in range(4)),
        And((on.of_a_row("l_suppkey", random), on.between("l_shipdate", recent, None))),
        on.of_a_row("l_partkey", random),
        on.of_a_row("l_partkey", random),
        on.between("l_receiptdate", week, week + dt.timedelta(7)),
    ]


def orders_lookups(on: Filters, random: Random) -> list[Expr]:
    """The same for orders: customers, and days of the last half year."""
    recent = dt.date(1998, 3, 1) + dt.timedelta(int(random.integers(0, 150)))
    return [
        *(on.between("o_orderdate", recent, recent + dt.timedelta(3)) for _ in range(4)),
        on.of_a_row("o_custkey", random),
        on.of_a_row("o_custkey", random),
        And((on.compare(Op.EQ, "o_orderpriority", "1-URGENT"), on.between("o_orderdate", recent, None))),
    ]


class Cut(FilesOfSample):
    """Files at equal numbers of rows along given positions."""

    def __init__(self, whole: Sample, positions: Bits, files: int) -> None:
        super().__init__(whole, Layout(), 1)
        number = np.empty(whole.row_count, np.int64)
        # Rows of one position stay together, as a range partitioning leaves them.
        ordered = np.sort(positions)
        ends = ordered[(np.arange(1, files) * len(ordered)) // files]
        number = np.searchsorted(np.unique(ends), positions, side="right")
        self._order = np.argsort(number, kind="stable")
        sorted_numbers = number[self._order]
        self._starts = np.flatnonzero(np.r_[True, sorted_numbers[1:] != sorted_numbers[:-1]])
        self.rows = np.diff(np.r_[self._starts, len(number)]).astype(np.int64)
        self._known = {}


def delta_positions(whole: Sample, keys: Sequence[str]) -> Bits:
    """Interleaved numbers of 1,000 ranges of each key."""
    codes = []
    for name in keys:
        rank = whole.columns[(name,)].rank
        bounds = np.unique(np.quantile(rank, np.arange(1, 1000) / 1000, method="nearest"))
        codes.append(np.searchsorted(bounds, rank).astype(np.uint64))
    return interleave(codes, [10] * len(keys)) if len(keys) > 1 else codes[0]


def iceberg_positions(table: pa.Table, keys: Sequence[str]) -> Bits:
    """Interleaved bits of the first eight bytes of values, of which only those that differ among rows are kept."""
    words = [_eight_bytes(table.column(name).combine_chunks()) for name in keys]
    found, used = np.zeros(table.num_rows, np.uint64), 0
    differs = [np.bitwise_or.reduce(word ^ word[0]) for word in words]
    for bit in range(63, -1, -1):
        for word, mask in zip(words, differs, strict=True):
            if used < 62 and (int(mask) >> bit) & 1:
                found = (found << np.uint64(1)) | ((word >> np.uint64(bit)) & np.uint64(1))
                used += 1
    return found


def _eight_bytes(column: pa.Array) -> Bits:
    if pa.types.is_string(column.type) or pa.types.is_string_view(column.type):
        texts = column.cast(pa.string()).dictionary_encode()
        words = [int.from_bytes(each.as_py().encode()[:8].ljust(8, b"\0"), "big") for each in texts.dictionary]
        return np.array(words, np.uint64)[texts.indices.to_numpy()]
    numbers = column.cast(pa.int32()).cast(pa.int64()) if pa.types.is_date32(column.type) else column.cast(pa.int64())
    return numbers.to_numpy().astype(np.int64).view(np.uint64) ^ np.uint64(1 << 63)


def measured(table: pa.Table, name: str, scans: Callable[[Filters, Random], list[Expr]], files: int) -> list[list[str]]:
    """The rows of the table: ways, keys, and the share of rows in opened files."""
    paths = [(column,) for column in table.column_names]
    whole, on = Sample.of(table, paths), Filters(table.schema, table)
    known = [each for seed in range(3) for each in scans(on, np.random.default_rng(seed))]
    later = [each for seed in range(100, 120) for each in scans(on, np.random.default_rng(seed))]
    weighted = Weighted.of(later, [1.0] * len(later))

    def opened(made: FilesOfSample) -> float:
        return weighted.mean(shares_read(weighted, made))

    sample = whole.at_most(SAMPLED, 1)
    lines = []
    for keys in HAND_PICKED[name]:
        layout = Layout(tuple((key,) for key in keys))
        lines += [("hand-picked, ours", keys, opened(FilesOfSample(whole, layout, files, sample)))]
        lines += [("hand-picked, Delta", keys, opened(Cut(whole, delta_positions(whole, keys), files)))]
        lines += [("hand-picked, Iceberg", keys, opened(Cut(whole, iceberg_positions(table, keys), files)))]
    given = [Query(WeightedCondition(str(number)), each) for number, each in enumerate(known)]
    size = TableSize(table.num_rows, files, files * BYTES_OF_FILE, BYTES_OF_FILE)
    found = advise(sample, given, size, Present(), may_partition=False, may_index=False)
    advised = Layout(tuple((key,) for key in found.zorder), asked=found.asked)
    how = " (cuts follow the workload)" if found.by_workload else ""
    share = opened(FilesOfSample(whole, advised, files, sample))
    best = min(each for way, _, each in lines if way == "hand-picked, ours")
    lines += [(f"auto{how}", found.zorder, share)]
    return [[way, ", ".join(keys), f"{each:.1%}", f"{each / best:.0%}"] for way, keys, each in lines]


def main() -> None:
    """Prints a table for each workload and table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale-factor", type=float, default=1.0)
    parser.add_argument("--home", type=Path, default=Path("/tmp/advice_tpch"))
    parser.add_argument("--files", type=int, default=48, help="of lineitem; orders have a quarter")
    given = parser.parse_args()
    folder = given.home / f"sf{given.scale_factor:g}"
    if not folder.is_dir():
        program = Path(sys.executable).with_name("tpchgen-cli")
        tables = [f"--tables={name}" for name in COLUMNS]
        scale = f"--scale-factor={given.scale_factor}"
        subprocess.run([program, "parquet", scale, *tables, f"--output-dir={folder}", "--quiet"], check=True)
    workloads = {
        "22 queries": {"lineitem": lineitem_scans, "orders": orders_scans},
        "service desk": {"lineitem": lineitem_lookups, "orders": orders_lookups},
    }
    print("| workload | table | layout | keys | rows opened | of the best hand-picked |\n|---|---|---|---|---|---|")
    for table_name, columns in COLUMNS.items():
        found = next(iter(sorted(folder.glob(f"{table_name}*"))))
        table = pq.read_table(found, columns=columns)
        plain = [pa.string() if pa.types.is_string_view(each.type) else each.type for each in table.schema]
        table = table.cast(pa.schema(list(zip(table.column_names, plain, strict=True))))
        files = given.files if table_name == "lineitem" else given.files // 4
        for workload, scans in workloads.items():
            for line in measured(table, table_name, scans[table_name], files):
                print("|", " | ".join([workload, table_name, *line]), "|", flush=True)


if __name__ == "__main__":
    main()
