"""What the advice saves: rows that queries open with hand-picked keys, with any order of them, and with the advised.

Runs without Spark: `python benchmarks/advice.py` prints the tables of `advice.md`. Keys are chosen from a sample of
65,536 rows and 120 queries of each workload; figures are shares of all 400,000 rows in the files that 120 other queries
open, and that queries of an unbiased mix open.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from dbt.adapters.zlayout.advice.advice import Present, Query, TableSize, advise
from dbt.adapters.zlayout.advice.sample import FilesOfSample, Layout, Sample, Weighted, shares_read
from dbt.adapters.zlayout.config.workload import WeightedCondition
from dbt.adapters.zlayout.predicate.expr import And, Column, Compare, Expr, Op

ROWS, SAMPLED, QUERIES = 400_000, 1 << 16, 120
NAMES = ("at", "customer", "amount", "region")
PATHS = tuple((name,) for name in NAMES)
HAND_PICKED = Layout(PATHS)
SEEDS = (1, 2, 3)
Draw = Callable[[np.random.Generator], Expr]


def events(seed: int, *, skewed: bool) -> pa.Table:
    """Bursts in time, few customers with most rows, amounts with a long tail; or all of it uniform."""
    random = np.random.default_rng(seed)
    year = 365 * 86_400
    if not skewed:
        columns = [random.integers(0, top, ROWS) for top in (year, 200_000, 1_000_000, 12)]
        return pa.table(dict(zip(NAMES, columns, strict=True)))
    bursts = np.sort(random.integers(0, year, 400))
    loud = bursts[random.integers(0, 400, ROWS)] + random.exponential(900, ROWS).astype(np.int64)
    at = np.where(random.random(ROWS) < 0.3, random.integers(0, year, ROWS), loud)
    customer = (random.zipf(1.3, ROWS) % 200_000) * 7919 % 200_000
    amount = np.round(random.lognormal(3.5, 1.4, ROWS), 2)
    region = random.choice(12, ROWS, p=random.dirichlet(np.full(12, 0.6)))
    return pa.table(dict(zip(NAMES, (at, customer, amount, region), strict=True)))


class Queries:
    """Draws queries on a table: points by rows, and ranges that hold a share of the rows."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table
        self._sorted = {name: np.sort(table.column(name).to_numpy()) for name in NAMES}

    def point(self, name: str) -> Draw:
        return lambda random: self._compare(name, Op.EQ, self._sorted[name][random.integers(0, ROWS)])

    def range(self, name: str, share: float, last: float = 1.0) -> Draw:
        def draw(random: np.random.Generator) -> Expr:
            wide = int(share * last * ROWS)
            first = int(ROWS * (1 - last)) + int(random.integers(0, max(1, int(ROWS * last) - wide)))
            ordered = self._sorted[name]
            high = ordered[min(ROWS - 1, first + wide)]
            return And((self._compare(name, Op.GE, ordered[first]), self._compare(name, Op.LE, high)))

        return draw

    def _compare(self, name: str, op: Op, value: object) -> Expr:
        kind = self._table.schema.field(name).type
        return Compare(op, Column((name,), kind), pa.scalar(value).cast(kind))

    def workload(self, kind: str, seed: int) -> list[Expr]:
        """Returns queries: of the unbiased mix, or of a workload that leans to one side."""
        at, customer, region = self.range("at", 0.02), self.point("customer"), self.point("region")
        amount, recent = self.range("amount", 0.02), self.range("at", 0.2, 0.05)
        mixed = [(at,), (customer,), (self.range("at", 0.05), region), (customer, self.range("at", 0.1)), (amount,)]
        kinds: dict[str, list[tuple[Draw, ...]]] = {
            "unbiased mix": [*mixed, (self.range("amount", 0.05), self.range("at", 0.05), region)],
            "last keys": [*[(amount,)] * 6, *[(region, self.range("amount", 0.05))] * 3, (at,)],
            "hot recent days": [*[(recent,)] * 5, *[(recent, customer)] * 3, (customer,), (amount,)],
            "customers": [*[(customer,)] * 8, (at,), (customer, region)],
        }
        random = np.random.default_rng(seed)
        shapes = kinds[kind]
        return [And(tuple(draw(random) for draw in shapes[number % len(shapes)])) for number in range(QUERIES)]


class Tables:
    """The files of all rows in any layout, each laid out once."""

    def __init__(self, whole: Sample, sample: Sample, files: int) -> None:
        self._whole, self._sample, self._files = whole, sample, files
        self._known: dict[Layout, FilesOfSample] = {}

    def opened(self, layout: Layout, queries: list[Expr]) -> float:
        """The mean share of all rows in the files that queries open."""
        if layout not in self._known:
            self._known[layout] = FilesOfSample(self._whole, layout, self._files, self._sample)
        weighted = Weighted.of(queries, [1.0] * len(queries))
        return weighted.mean(shares_read(weighted, self._known[layout]))


def measured(seed: int, files: int, *, skewed: bool) -> Iterator[tuple[str, list[float], str, float]]:
    """Yields for each workload the shares with hand-picked keys, the best order of them, and the advised keys."""
    table = events(seed, skewed=skewed)
    whole, queries = Sample.of(table, PATHS), Queries(table)
    sample = whole.at_most(SAMPLED, seed)
    tables = Tables(whole, sample, files)
    unbiased = queries.workload("unbiased mix", 900 + seed)
    for kind in ("unbiased mix", "last keys", "hot recent days", "customers"):
        known, later = queries.workload(kind, 100 + seed), queries.workload(kind, 200 + seed)
        started = time.perf_counter()
        given = [Query(WeightedCondition(str(number)), each) for number, each in enumerate(known)]
        # As `zorder: auto` does: Bloom filters are not counted on.
        size = TableSize(ROWS, files, files << 20, 1 << 20)
        advice = advise(sample, given, size, Present(HAND_PICKED), may_index=False)
        seconds = time.perf_counter() - started
        keys, folders = (tuple((name,) for name in names) for names in (advice.zorder, advice.partition_by))
        advised = Layout(keys, folders, asked=advice.asked)
        orders = [Layout(keys) for keys in itertools.permutations(PATHS)]
        best = min(tables.opened(order, later) for order in orders)
        shares = [
            tables.opened(HAND_PICKED, later),
            best,
            tables.opened(advised, later),
            tables.opened(HAND_PICKED, unbiased),
            tables.opened(advised, unbiased),
        ]
        yield (
            kind,
            shares,
            ", ".join(advice.zorder)
            + (f" by {advice.partition_by[0]}" if advice.partition_by else "")
            + (", cuts by queries" if advice.by_workload else ""),
            seconds,
        )


def main() -> None:
    """Prints a table for each number of files."""
    for files in map(int, sys.argv[1:] or ["32", "100"]):
        print(f"\n{files} files\n")
        print("| rows | workload | hand-picked | best order | advised | mix: hand-picked | mix: advised | keys | s |")
        print("|---|---|---|---|---|---|---|---|---|")
        for skewed in (True, False):
            found = [list(measured(seed, files, skewed=skewed)) for seed in SEEDS]
            for runs in zip(*found, strict=True):
                shares = np.mean([run[1] for run in runs], axis=0)
                cells = [f"{each:.1%}" for each in shares]
                keys = "; ".join(dict.fromkeys(run[2] for run in runs))
                seconds = max(run[3] for run in runs)
                name = "skewed" if skewed else "uniform"
                print("|", " | ".join([name, runs[0][0], *cells, keys, f"{seconds:.0f}"]), "|", flush=True)


if __name__ == "__main__":
    main()
