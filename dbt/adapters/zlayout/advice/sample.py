"""A sample of rows, the statistics that files of these rows have in any layout, and what queries read from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.curve.cuts import build_tree
from dbt.adapters.zlayout.curve.keys import Comparable, comparable
from dbt.adapters.zlayout.curve.quantiles import Boundaries
from dbt.adapters.zlayout.curve.query_boxes import QueryBoxes, QueryRanks
from dbt.adapters.zlayout.lazy import cached_property
from dbt.adapters.zlayout.predicate.expr import And, Column, ColumnPath, Compare, Expr, In, Op
from dbt.adapters.zlayout.predicate.normal_form import conjuncts, normal_form
from dbt.adapters.zlayout.pruning.evaluation import Evaluation
from dbt.adapters.zlayout.pruning.statistics.column_bounds import ColumnBounds
from dbt.adapters.zlayout.pruning.statistics.verdict import Verdict

Rows = npt.NDArray[np.intp]

_BUCKETS_PER_FILE = 16
_FEWEST_BUCKETS, _MOST_BUCKETS = 1 << 10, 1 << 15
Shares = npt.NDArray[np.float64]

FALSE_POSITIVES = 0.01
"""The share of files that a Bloom filter keeps although they lack the value."""
_MOSTLY_UNIQUE = 0.9


@dataclass(frozen=True, eq=False)
class SampledColumn:
    """One column of a sample, as ranks among its values.

    Attributes:
        values: The distinct values without null and NaN, in ascending order.
        rank: int64[n], the position of each row's value in ``values``; ``len(values)`` for NaN, -1 for null.
    """

    values: pa.Array
    rank: npt.NDArray[np.int64]

    @classmethod
    def of(cls, column: pa.ChunkedArray | pa.Array) -> SampledColumn:
        """Ranks the values of a column of an orderable type."""
        whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        if pa.types.is_dictionary(whole.type):
            whole = whole.cast(whole.type.value_type)
        distinct = pc.unique(whole).drop_null()
        is_nan = np.zeros(len(whole), bool)
        if pa.types.is_floating(whole.type):
            distinct = distinct.filter(pc.invert(pc.is_nan(distinct)))
            is_nan = pc.fill_null(pc.is_nan(whole), False).to_numpy(zero_copy_only=False)
        values = distinct.take(pc.sort_indices(distinct))
        found = pc.index_in(whole, value_set=values)
        rank = pc.fill_null(found, -1).to_numpy(zero_copy_only=False).astype(np.int64)
        rank[is_nan] = len(values)
        return cls(values, rank)

    def of_rows(self, rows: Rows) -> SampledColumn:
        """Returns the same column for some rows."""
        return SampledColumn(self.values, self.rank[rows])

    @property
    def distinct_count(self) -> int:
        """The number of distinct values, without null and NaN."""
        return len(np.unique(self.rank[(self.rank >= 0) & (self.rank < len(self.values))]))

    @property
    def is_null(self) -> npt.NDArray[np.bool_]:
        """bool[n], true where the column is null."""
        found: npt.NDArray[np.bool_] = self.rank < 0
        return found


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows of one table, of the columns that matter to a workload.

    Attributes:
        columns: By path; all have n rows.
        row_count: n.
        untracked: Columns whose statistics the table lacks, unless they are keys.
    """

    columns: Mapping[ColumnPath, SampledColumn]
    row_count: int
    untracked: frozenset[ColumnPath] = frozenset()

    @classmethod
    def of(cls, rows: pa.Table, paths: Sequence[ColumnPath], untracked: frozenset[ColumnPath] = frozenset()) -> Sample:
        """Takes a table with one column for each path, in order."""
        columns = {path: SampledColumn.of(column) for path, column in zip(paths, rows.columns, strict=True)}
        return cls(columns, rows.num_rows, untracked)

    def of_rows(self, rows: Rows) -> Sample:
        """Returns the same columns for some rows."""
        return Sample({path: each.of_rows(rows) for path, each in self.columns.items()}, len(rows), self.untracked)

    def halves(self, seed: int) -> tuple[Sample, Sample]:
        """Returns two samples without a common row."""
        order = np.random.default_rng(seed).permutation(self.row_count)
        middle = len(order) // 2
        return self.of_rows(order[:middle]), self.of_rows(order[middle:])

    def at_most(self, rows: int) -> Sample:
        """Returns a random part of the sample, or all of it."""
        if rows >= self.row_count:
            return self
        return self.of_rows(np.sort(np.random.default_rng(0).choice(self.row_count, rows, replace=False)))


@dataclass(frozen=True)
class Layout:
    """How the rows of a table are laid out.

    Attributes:
        zorder: The clustering keys, most important first.
        linear: Whether rows are sorted by the first key, then the second, and so on.
        asked: What queries ask of the keys, if the cuts follow them.
    """

    zorder: tuple[ColumnPath, ...] = ()
    partition_by: tuple[ColumnPath, ...] = ()
    linear: bool = False
    asked: QueryBoxes | None = None


class FilesOfSample:
    """The files that a layout makes of a sample, with the statistics that pruning reads.

    Args:
        sample: The rows.
        layout: Its columns are in the sample.
        files: Target number of files of the whole table.
        made_from: The rows that the cuts are made from, with the same columns; None for the sample itself.
    """

    def __init__(self, sample: Sample, layout: Layout, files: int, made_from: Sample | None = None) -> None:
        self._sample = sample
        self._unknown = sample.untracked.difference(layout.zorder, layout.partition_by)
        number = _file_of_row(sample, made_from or sample, layout, files)
        self._order = np.argsort(number, kind="stable")
        ordered = number[self._order]
        self._starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if len(ordered) else np.zeros(0, int)
        self.rows = np.diff(np.r_[self._starts, len(ordered)]).astype(np.int64)
        self._known: dict[ColumnPath, ColumnBounds] = {}

    @cached_property
    def row_count(self) -> pa.Array:
        """int64, sampled rows of each file."""
        return pa.array(self.rows, pa.int64())

    def column(self, path: ColumnPath) -> ColumnBounds | None:
        """Returns the statistics of a column; None if the sample does not have it, or the table not its statistics."""
        column = self._sample.columns.get(path)
        if column is None or path in self._unknown:
            return None
        if path not in self._known:
            self._known[path] = self._bounds(column)
        return self._known[path]

    def _bounds(self, column: SampledColumn) -> ColumnBounds:
        rank, count = column.rank[self._order], len(column.values)
        is_value = (rank >= 0) & (rank < count)
        low = np.minimum.reduceat(np.where(is_value, rank, count), self._starts)
        high = np.maximum.reduceat(np.where(is_value, rank, -1), self._starts)
        empty = high < 0
        exact = pa.repeat(True, len(self._starts))
        return ColumnBounds(
            type=column.values.type,
            minimum=column.values.take(pa.array(np.minimum(low, max(0, count - 1)), mask=empty)),
            maximum=column.values.take(pa.array(high, mask=empty)),
            minimum_exact=exact,
            maximum_exact=exact,
            null_count=pa.array(np.add.reduceat((rank < 0).astype(np.int64), self._starts)),
            nan_count=pa.array(np.add.reduceat((rank == count).astype(np.int64), self._starts)),
        )


def _file_of_row(sample: Sample, made_from: Sample, layout: Layout, files: int) -> npt.NDArray[np.int64]:
    buckets = min(_MOST_BUCKETS, max(_FEWEST_BUCKETS, _BUCKETS_PER_FILE * files))
    keys = [_keys(sample, made_from, path, buckets) for path in layout.zorder]
    asked = _asked(made_from, layout, [key[2] for key in keys])
    part, part_made_from, parts = _partitions(sample, made_from, layout.partition_by)
    found = np.zeros(sample.row_count, np.int64)
    first = 0
    for number in range(parts):
        rows, source = np.flatnonzero(part == number), np.flatnonzero(part_made_from == number)
        wanted = max(1, round(files * len(source) / max(1, made_from.row_count)))
        if not keys or wanted == 1:
            # Without keys, rows come in no order that a condition could use.
            found[rows] = first + np.arange(len(rows)) % wanted
            first += wanted
            continue
        tree = build_tree([key[1][source] for key in keys], wanted, 1, linear=layout.linear, asked=asked)
        found[rows] = first + tree.file_of_leaf[tree.leaf_of([key[0][rows] for key in keys])]
        first += tree.file_count
    return found


def _keys(
    sample: Sample, made_from: Sample, path: ColumnPath, buckets: int
) -> tuple[npt.NDArray[np.unsignedinteger], npt.NDArray[np.unsignedinteger], Boundaries]:
    """Returns the ranks of both samples, and the boundaries, which are of the one that cuts are made from."""
    source, column = made_from.columns[path], sample.columns[path]
    known = Comparable(np.maximum(source.rank, 0), source.is_null)
    boundaries = Boundaries.of_sample(known, buckets)
    if sample is made_from:
        ranks = boundaries.ranks(known)
        return ranks, ranks, boundaries
    return boundaries.ranks(Comparable(np.maximum(column.rank, 0), column.is_null)), boundaries.ranks(known), boundaries


def _asked(made_from: Sample, layout: Layout, boundaries: Sequence[Boundaries]) -> QueryRanks | None:
    """Returns what queries ask for, as ranks among boundaries of positions in the list of values."""
    if layout.asked is None or not boundaries:
        return None
    values = [comparable(made_from.columns[path].values) for path in layout.zorder]
    low = [_places(column, ends, "left") for column, ends in zip(values, layout.asked.low, strict=True)]
    high = [_places(column, ends, "right") for column, ends in zip(values, layout.asked.high, strict=True)]
    return QueryBoxes(tuple(low), tuple(high), layout.asked.weights).ranks(boundaries)


def _places(values: Comparable, ends: pa.Array, side: Literal["left", "right"]) -> pa.Array:
    """Returns the position of each end in a list of values: of the next value, or of the one before."""
    keys = comparable(ends)
    found = np.searchsorted(values.values, keys.values, side) - (side == "right")
    return pa.array(found.astype(np.int64), pa.int64(), mask=keys.nulls)


def _partitions(
    sample: Sample, made_from: Sample, columns: Sequence[ColumnPath]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], int]:
    """Returns the partition of each row of both samples, and how many partitions there are."""
    if not columns:
        return np.zeros(sample.row_count, np.int64), np.zeros(made_from.row_count, np.int64), 1
    both = [np.concatenate([each.columns[path].rank for each in (sample, made_from)]) for path in columns]
    _, number = np.unique(np.stack(both, axis=1), axis=0, return_inverse=True)
    number = number.reshape(-1).astype(np.int64)
    return number[: sample.row_count], number[sample.row_count :], int(number.max(initial=-1)) + 1


@dataclass(frozen=True)
class Weighted:
    """Predicates in normal form, with weights that sum to 1.

    Attributes:
        weights: float64[n].
    """

    predicates: tuple[Expr, ...]
    weights: Shares

    @classmethod
    def of(cls, predicates: Sequence[Expr], weights: Sequence[float]) -> Weighted:
        """Brings predicates to their normal form, and weights to the sum 1."""
        given = np.asarray(weights, np.float64)
        return cls(tuple(map(normal_form, predicates)), given / given.sum())

    def mixed(self, other: Weighted, share: float) -> Weighted:
        """Returns both, where the other's part has a share of the weights."""
        weights = np.concatenate([self.weights * (1 - share), other.weights * share])
        return Weighted((*self.predicates, *other.predicates), weights)

    def at_most(self, count: int, seed: int = 0) -> Weighted:
        """Returns all predicates, or as many draws by weight if there are more than ``count``."""
        if len(self.predicates) <= count:
            return self
        times = np.random.default_rng(seed).multinomial(count, self.weights)
        chosen = np.flatnonzero(times)
        return Weighted.of([self.predicates[each] for each in chosen], times[chosen].tolist())

    def mean(self, shares: Shares) -> float:
        """Returns the weighted mean of one number for each predicate."""
        return float(self.weights @ shares)


def shares_read(
    queries: Weighted, files: FilesOfSample, found_by_value: Mapping[ColumnPath, float] | None = None
) -> Shares:
    """Returns for each query the share of the rows that lie in files it reads.

    Args:
        found_by_value: For each column whose values an index of files finds, such as by Bloom filters, the share of all
            files that hold a value of it on average.
    """
    total = max(1, int(files.rows.sum()))
    found = []
    # One evaluation for all queries: the statistics of a column are validated once.
    evaluation = Evaluation(And(queries.predicates), files)
    for predicate in queries.predicates:
        kept = evaluation.match(predicate).verdicts() != Verdict.SKIP
        found.append(float(files.rows[kept].sum()) / total)
    return limited_by_value(queries, np.asarray(found, np.float64), found_by_value or {})


def limited_by_value(queries: Weighted, shares: Shares, found_by_value: Mapping[ColumnPath, float]) -> Shares:
    """Returns the shares of the rows that queries read if an index of files also finds values of some columns.

    Args:
        shares: What they read without that index.
        found_by_value: See `shares_read`.
    """
    limits = [
        [count * found_by_value[path] for path, count in values_wanted(each) if path in found_by_value]
        for each in queries.predicates
    ]
    least = np.asarray([min(each, default=1.0) for each in limits])
    reached: Shares = np.minimum(shares, least + FALSE_POSITIVES * shares)
    return reached


def values_wanted(normal: Expr) -> list[tuple[ColumnPath, int]]:
    """Returns the columns that a predicate compares with values by ``=`` or ``IN``, and with how many.

    Args:
        normal: In normal form. Only conditions that every row must meet count.
    """
    found: list[tuple[ColumnPath, int]] = []
    for part in conjuncts(normal):
        match part:
            case Compare(Op.EQ | Op.EQ_NULL_SAFE, Column(path), value) if value.is_valid:
                found.append((path, 1))
            case In(Column(path), values):
                found.append((path, len(values)))
    return found


def rows_of_a_value(sample: Sample, path: ColumnPath, table_rows: int) -> float:
    """Returns how many rows of the table have the same value of a column on average, at least 1.

    Source of the estimate of distinct values: M. Charikar et al., Towards estimation error guarantees for distinct
    values (GEE), PODS 2000.

    Args:
        sample: A uniform sample of the table.
        path: A column of the sample.
    """
    column = sample.columns[path]
    ranks = column.rank[column.rank >= 0]
    if not len(ranks):
        return 1.0
    counts = np.unique(ranks, return_counts=True)[1]
    once = int((counts == 1).sum())
    factor = max(1.0, table_rows / sample.row_count)
    distinct = np.sqrt(factor) * once + (len(counts) - once)
    if once > _MOSTLY_UNIQUE * len(ranks):
        distinct = factor * len(counts)
    return max(1.0, table_rows / max(1.0, float(distinct)))


def share_of_files_with_a_value(sample: Sample, path: ColumnPath, table_rows: int, files: int) -> float:
    """Returns which share of the files holds a value of a column on average, if its rows lie anywhere."""
    rows = rows_of_a_value(sample, path, table_rows)
    return float(1 - (1 - 1 / max(1, files)) ** rows)
