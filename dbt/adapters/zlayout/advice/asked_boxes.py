"""What a workload asks for in the key space of a table: boxes, for cuts that know the queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.advice.sample import FilesOfSample, Layout, Sample, Weighted, values_wanted
from dbt.adapters.zlayout.curve.keys import MOST_TEXT_BYTES, key_type
from dbt.adapters.zlayout.curve.query_boxes import MOST_BOXES, QueryBoxes
from dbt.adapters.zlayout.predicate.expr import And, ColumnPath, Expr
from dbt.adapters.zlayout.pruning.evaluation import Evaluation
from dbt.adapters.zlayout.pruning.statistics.column_bounds import ColumnBounds
from dbt.adapters.zlayout.pruning.statistics.verdict import Verdict

_STEPS = 1024
_MOST_RUNS = 8

Run = tuple[int, int]


class Asking:
    """The boxes that queries ask for, on any keys.

    Pruning itself decides, on files that are thin slices of one key: so functions, lists and alternatives count as in a
    scan. Alternatives on one key become several boxes that share the weight.

    Args:
        sample: Rows of the table.
        found_by_value: As for `shares_read`. Queries that an index serves have little to gain from cuts.
    """

    def __init__(
        self, queries: Weighted, sample: Sample, found_by_value: Mapping[ColumnPath, float] | None = None
    ) -> None:
        self._sample = sample
        self._queries = queries.predicates
        self._weights = [
            weight * _left_to_cuts(predicate, found_by_value or {})
            for predicate, weight in zip(queries.predicates, queries.weights.tolist(), strict=True)
        ]
        self._slices: dict[ColumnPath, _Slices] = {}

    def of(self, keys: Sequence[ColumnPath]) -> QueryBoxes | None:
        """Returns the boxes; None if no query limits a key.

        Args:
            keys: Columns of the sample.
        """
        slices = [self._slices_of(path) for path in keys]
        boxes: list[list[Run | None]] = []
        weights: list[float] = []
        for number, weight in enumerate(self._weights):
            runs = [each.runs[number] for each in slices]
            if not all(runs) or all(found == [None] for found in runs):
                continue
            split = max(range(len(runs)), key=lambda key: len(runs[key]))
            alternatives = runs[split] if len(runs[split]) <= _MOST_RUNS else [_hull(runs[split])]
            for run in alternatives:
                boxes.append([run if key == split else _hull(found) for key, found in enumerate(runs)])
                weights.append(weight / len(alternatives))
        if not boxes:
            return None
        chosen, shares = _at_most(np.asarray(weights), MOST_BOXES)
        ends = [each.ends([boxes[box][key] for box in chosen]) for key, each in enumerate(slices)]
        return QueryBoxes(tuple(low for low, _ in ends), tuple(high for _, high in ends), shares)

    def _slices_of(self, path: ColumnPath) -> _Slices:
        if path not in self._slices:
            self._slices[path] = _Slices(self._sample, path, self._queries)
        return self._slices[path]


def _left_to_cuts(predicate: Expr, found: Mapping[ColumnPath, float]) -> float:
    """Returns the share of files that indexes leave to a query."""
    return min([1.0, *(count * found[path] for path, count in values_wanted(predicate) if path in found)])


class _Slices:
    """Files that each hold a thin slice of the values of one column, in ascending order.

    Attributes:
        row_count: int64, sampled rows of each slice.
        runs: For each query the runs of slices that it reads; [None] if it reads all, [] if it reads none.
    """

    def __init__(self, sample: Sample, path: ColumnPath, queries: Sequence[Expr]) -> None:
        files = FilesOfSample(sample, Layout((path,)), _STEPS)
        bounds = files.column(path)
        if bounds is None:
            raise KeyError(path)
        self._path, self._bounds = path, bounds
        self.row_count = files.row_count
        evaluation = Evaluation(And(tuple(queries)), self)
        self.runs = [self._runs(evaluation, each) for each in queries]

    def column(self, path: ColumnPath) -> ColumnBounds | None:
        """Returns statistics of this column only."""
        return self._bounds if path == self._path else None

    def _runs(self, evaluation: Evaluation, predicate: Expr) -> list[Run | None]:
        kept: npt.NDArray[np.bool_] = evaluation.match(predicate).verdicts() != Verdict.SKIP
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
        return _short(bounds.minimum.take(first).cast(kind)), _short(bounds.maximum.take(end).cast(kind))


def _short(values: pa.Array) -> pa.Array:
    """Returns texts and binary without what is too far behind to matter to cuts."""
    if pa.types.is_string(values.type):
        return pc.utf8_slice_codeunits(values, 0, MOST_TEXT_BYTES)
    return pc.binary_slice(values, 0, MOST_TEXT_BYTES) if pa.types.is_binary(values.type) else values


def _hull(runs: Sequence[Run | None]) -> Run | None:
    known = [run for run in runs if run is not None]
    return (known[0][0], known[-1][1]) if len(known) == len(runs) else None


def _at_most(weights: npt.NDArray[np.float64], most: int) -> tuple[list[int], npt.NDArray[np.float64]]:
    """Draws by weight if there are too many."""
    shares = weights / weights.sum()
    if len(weights) <= most:
        some = np.flatnonzero(shares > 0)  # a tiny weight beside a huge one is nothing
        return some.tolist(), shares[some]
    times = np.random.default_rng(0).multinomial(most, shares)
    chosen = np.flatnonzero(times)
    return chosen.tolist(), times[chosen] / most
