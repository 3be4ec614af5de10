"""What a workload asks for in the key space of a table: boxes, for cuts that know the queries."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dbt.adapters.zlayout.advice.reading import Weighted
from dbt.adapters.zlayout.advice.sample import FilesOfSample, Layout, Sample
from dbt.adapters.zlayout.curve.asked import MOST_BOXES, Asked
from dbt.adapters.zlayout.curve.keys import key_type
from dbt.adapters.zlayout.predicate.expr import ColumnPath
from dbt.adapters.zlayout.pruning.evaluation import verdicts_of_normal
from dbt.adapters.zlayout.pruning.statistics.column_bounds import ColumnBounds
from dbt.adapters.zlayout.pruning.statistics.verdict import Verdict

_STEPS = 1024
_MOST_RUNS = 8

Run = tuple[int, int]


def asked_of(queries: Weighted, sample: Sample, keys: Sequence[ColumnPath]) -> Asked | None:
    """Returns the boxes that queries ask for; None if no query limits a key.

    Pruning itself decides, on files that are thin slices of one key: so functions, lists and alternatives count as in a
    scan. Alternatives on one key become several boxes that share the weight.

    Args:
        queries: The queries.
        sample: Rows of the table.
        keys: Columns of the sample.
    """
    slices = [_Slices(sample, path) for path in keys]
    boxes: list[list[Run | None]] = []
    weights: list[float] = []
    for predicate, weight in zip(queries.predicates, queries.weights.tolist(), strict=True):
        runs = [each.runs(predicate) for each in slices]
        if not all(runs) or all(found == [None] for found in runs):
            continue
        split = max(range(len(runs)), key=lambda number: len(runs[number]))
        alternatives = runs[split] if len(runs[split]) <= _MOST_RUNS else [_hull(runs[split])]
        for run in alternatives:
            boxes.append([run if number == split else _hull(found) for number, found in enumerate(runs)])
            weights.append(weight / len(alternatives))
    if not boxes:
        return None
    chosen, shares = _at_most(np.asarray(weights), MOST_BOXES)
    kept = [boxes[each] for each in chosen]
    ends = [slices[number].ends([box[number] for box in kept]) for number in range(len(keys))]
    return Asked(tuple(low for low, _ in ends), tuple(high for _, high in ends), shares)


class _Slices:
    """Files that each hold a thin slice of the values of one column, in ascending order."""

    def __init__(self, sample: Sample, path: ColumnPath) -> None:
        self._files = FilesOfSample(sample, Layout((path,)), _STEPS)
        self._path = path
        self.row_count = self._files.row_count
        self._bounds = self._files.column(path)

    def column(self, path: ColumnPath) -> ColumnBounds | None:
        """Returns statistics of this column only."""
        return self._bounds if path == self._path else None

    def runs(self, predicate: object) -> list[Run | None]:
        """Returns the runs of slices that a predicate reads; [None] if it reads all, [] if it reads none."""
        kept: npt.NDArray[np.bool_] = verdicts_of_normal(predicate, self) != Verdict.SKIP
        if kept.all():
            return [None]
        edges = np.flatnonzero(np.diff(np.r_[False, kept, False].astype(np.int8)))
        return [(int(first), int(end) - 1) for first, end in edges.reshape(-1, 2)]

    def ends(self, runs: Sequence[Run | None]) -> tuple[pa.Array, pa.Array]:
        """Returns the lowest and the highest value of each run; null where it has no limit."""
        bounds, last = self._bounds, len(self.row_count) - 1
        first = pa.array([None if run is None or run[0] == 0 else run[0] for run in runs], pa.int64())
        end = pa.array([None if run is None or run[1] == last else run[1] for run in runs], pa.int64())
        kind = key_type(bounds.type)
        return bounds.minimum.take(first).cast(kind), bounds.maximum.take(end).cast(kind)


def _hull(runs: Sequence[Run | None]) -> Run | None:
    known = [run for run in runs if run is not None]
    return (known[0][0], known[-1][1]) if len(known) == len(runs) else None


def _at_most(weights: npt.NDArray[np.float64], most: int) -> tuple[list[int], npt.NDArray[np.float64]]:
    """Draws by weight if there are too many."""
    shares = weights / weights.sum()
    if len(weights) <= most:
        return list(range(len(weights))), shares
    times = np.random.default_rng(0).multinomial(most, shares)
    chosen = np.flatnonzero(times)
    return chosen.tolist(), times[chosen] / most
