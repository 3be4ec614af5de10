"""Made-up rows, and queries on them."""

from dataclasses import replace

import numpy as np
import pyarrow as pa

from dbt.adapters.zlayout.advice.advice import Present, Query, TableSize, advise
from dbt.adapters.zlayout.advice.sample import FilesOfSample, Layout, Sample, Weighted, shares_read
from dbt.adapters.zlayout.advice.table_settings import PresentSettings
from dbt.adapters.zlayout.config.workload import WeightedCondition
from dbt.adapters.zlayout.predicate.expr import And, Column, Compare, Op
from dbt.adapters.zlayout.pruning.evaluation import verdicts

ROWS = 16_384
FILES = 64


def rows(seed=1):
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "at": pa.array(np.sort(random.integers(0, 1_000_000, ROWS))),
            "customer": pa.array(random.integers(0, 2_000, ROWS)),
            "amount": pa.array(np.round(random.lognormal(3, 1, ROWS), 2)),
            "region": pa.array([f"r{each}" for each in random.choice(12, ROWS)]),
            "id": pa.array(random.permutation(10 * ROWS)[:ROWS]),
            "serial": pa.array(np.arange(ROWS)),
        }
    )


TABLE = rows()
PATHS = [(name,) for name in TABLE.column_names]
SAMPLE = Sample.of(TABLE, PATHS)


def column(name):
    return Column((name,), TABLE.schema.field(name).type)


def equal(name, value):
    return Compare(Op.EQ, column(name), pa.scalar(value, column(name).type))


def between(name, low, high):
    kind = column(name).type
    ends = (Compare(Op.GE, column(name), pa.scalar(low, kind)), Compare(Op.LT, column(name), pa.scalar(high, kind)))
    return And(ends)


def query(predicate, weight=1.0):
    return Query(WeightedCondition(predicate.sql(), weight), predicate)


def advised(
    queries,
    now=Layout(),  # noqa: B008 - frozen
    *,
    bloom=(),
    lookup=(),
    opened=None,
    target=1 << 20,
    mebibytes=FILES,
    min_gain=0.1,
    settings=None,
    untracked=(),
    **options,
):
    if settings is not None or untracked or mebibytes != FILES:
        fresh = FilesOfSample(SAMPLE, now, (mebibytes << 20) // target)
        opened = opened or (lambda each: float(shares_read(Weighted.of([each], [1.0]), fresh)[0]))
    size = TableSize(ROWS * 100, (mebibytes << 20) // target, mebibytes << 20, target)
    sample = replace(SAMPLE, untracked=frozenset((name,) for name in untracked))
    present = Present(now, bloom, opened, lookup, settings or PresentSettings())
    return advise(sample, queries, size, present, min_gain, **options)


def opened_share(layout, predicate, files=FILES, seed=9):
    """What a table with this layout opens, of rows that no search has seen."""
    fresh = Sample.of(rows(seed), PATHS)
    made = FilesOfSample(fresh, layout, files)
    return float(made.rows[verdicts(predicate, made) != 0].sum()) / ROWS
