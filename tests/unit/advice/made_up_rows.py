"""Made-up rows, and queries on them."""

import numpy as np
import pyarrow as pa

from dbt.adapters.zlayout.advice.advice import Present, TableSize, advise
from dbt.adapters.zlayout.advice.sample import FilesOfSample, Layout, Sample
from dbt.adapters.zlayout.advice.workload import Query
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


def advised(queries, now=Layout(), *, bloom=(), opened=None, target=1 << 20, min_gain=0.1):  # noqa: B008 - frozen
    size = TableSize(ROWS * 100, FILES, FILES << 20, target)
    return advise(SAMPLE, queries, size, Present(now, bloom, opened), min_gain)


def opened_share(layout, predicate, files=FILES, seed=9):
    """What a table with this layout opens, of rows that no search has seen."""
    fresh = Sample.of(rows(seed), PATHS)
    made = FilesOfSample(fresh, layout, files)
    return float(made.rows[verdicts(predicate, made) != 0].sum()) / ROWS
