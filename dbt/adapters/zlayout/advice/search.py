"""Searches for the layout with which a workload reads least: keys by greedy insertion, and partition columns.

What is found on one half of a sample is judged on the other half, with queries that the search has not seen.
Source of the idea: qd-tree (Z. Yang et al., SIGMOD 2020) and MTO (J. Ding et al., SIGMOD 2021), which cut by queries;
here queries choose the keys, and then the cuts if that saves more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from dbt.adapters.zlayout.advice.asked_boxes import Asking
from dbt.adapters.zlayout.advice.sample import FilesOfSample, Layout, Sample, Weighted, shares_read
from dbt.adapters.zlayout.predicate.expr import ColumnPath, columns_of

Found = Mapping[ColumnPath, float]

_MOST_KEYS = 4
_MOST_CANDIDATES = 8
_SEARCHED_ROWS = 1 << 14
_SEARCHED_FILES = 128
_SEARCHED_QUERIES, _COMPARED_QUERIES = 48, 256
_WORTH_A_KEY = 0.02
_ROWS_OF_A_FILE = 24
_PARTITION_SHARE = 0.75
"""Partitions must have at least this share of a target-size file on average."""


@dataclass(frozen=True)
class SearchTask:
    """What the search is about.

    Attributes:
        sample: Rows of the table.
        queries: The workload, blended with queries of the same shapes and other constants.
        files: Files of the target size that the table makes.
        now: The present layout.
        found_by_value: As for `shares_read`.
        may_partition: Whether other partition columns may be chosen.
        may_choose_keys: Whether other keys may be chosen. Otherwise only the cuts are.
    """

    sample: Sample
    queries: Weighted
    files: int
    now: Layout
    found_by_value: Found
    may_partition: bool = True
    may_choose_keys: bool = True


def sampled_files(files: int, rows: int) -> int:
    """Returns how many files a sample of some rows can stand for: fewer if each would have too few rows."""
    return max(1, min(files, rows // _ROWS_OF_A_FILE))


def best_layouts(task: SearchTask) -> list[Layout]:
    """Returns the layouts with which the queries read least, the best one first.

    The first may have cuts that follow the queries; then the second is the best one without. The last is the present
    layout if none without such cuts reads less.
    """
    sample = task.sample.at_most(_SEARCHED_ROWS)
    files = min(_SEARCHED_FILES, sampled_files(task.files, sample.row_count))
    asking = Asking(task.queries, sample, task.found_by_value)
    return _Search(replace(task, sample=sample, files=files), asking).run()


class _Search:
    def __init__(self, task: SearchTask, asking: Asking) -> None:
        self._task = task
        self._asking = asking
        self._quick = replace(task, queries=task.queries.at_most(_SEARCHED_QUERIES))
        self._close = replace(task, queries=task.queries.at_most(_COMPARED_QUERIES))
        self._known: dict[Layout, float] = {}
        self._known_closely: dict[Layout, float] = {}
        self._candidates = _candidates(task)

    def run(self) -> list[Layout]:
        now = self._task.now
        best = self._best_by_rows() if self._task.may_choose_keys else replace(now, asked=None)
        if self._close_cost(best) >= self._close_cost(now) * (1 - _WORTH_A_KEY):
            best = now
        cut = self._best_by_queries(best)
        if cut is None:
            return [best]
        # With more keys, cuts that follow the queries read less of what the workload does not ask.
        more = set(cut.zorder) > set(best.zorder)
        most = self._close_cost(best) * (1 + _WORTH_A_KEY if more else 1 - _WORTH_A_KEY)
        return [cut, best] if self._close_cost(cut) <= most else [best]

    def _best_by_queries(self, by_rows: Layout) -> Layout | None:
        """Returns the best layout whose cuts follow the queries; None if none can."""
        now, partition = self._task.now, by_rows.partition_by
        if now.linear:
            return None
        present = _without(now.zorder, partition)
        starts = [present]
        if self._task.may_choose_keys:
            columns = _without(self._candidates, partition)
            starts += [by_rows.zorder, (*present, *_without(columns, present))[:_MOST_KEYS], columns[:_MOST_KEYS]]
        found: Layout | None = None
        for keys in dict.fromkeys(starts):
            layout = self._cut(keys, partition)
            if layout is not None and (
                found is None or self._close_cost(layout) < self._close_cost(found) * (1 - _WORTH_A_KEY)
            ):
                found = layout
        if found is None or not self._task.may_choose_keys:
            return found
        return self._thinned(found)

    def _thinned(self, layout: Layout) -> Layout:
        """Leaves out further keys than the present ones unless they pay."""
        while further := _without(layout.zorder, self._task.now.zorder):
            rest = [_without(layout.zorder, (path,)) for path in further if len(layout.zorder) > 1]
            tried = [self._cut(keys, layout.partition_by) for keys in rest]
            least = min((each for each in tried if each is not None), key=self._close_cost, default=None)
            if least is None or self._close_cost(least) > self._close_cost(layout) * (1 + _WORTH_A_KEY):
                return layout
            layout = least
        return layout

    def _cut(self, keys: tuple[ColumnPath, ...], partition: tuple[ColumnPath, ...]) -> Layout | None:
        asked = self._asking.of(keys) if keys else None
        if asked is None:
            return None
        weights = dict(zip(keys, asked.key_weights(), strict=True))
        # The order of keys decides where no query asks for anything.
        if set(keys) != set(self._task.now.zorder):
            keys = tuple(sorted(keys, key=lambda path: -weights[path]))
        return Layout(keys, partition, asked=self._asking.of(keys))

    def _best_by_rows(self) -> Layout:
        now = self._task.now
        best, keys = now, self._keys(now.partition_by)
        choices = [replace(now, zorder=keys, linear=False, asked=None)]
        if self._task.may_partition:
            choices += [Layout(self._keys(partition), partition) for partition in self._partitions()]
        for layout in choices:
            if self._cost(layout) < self._cost(best) * (1 - _WORTH_A_KEY):
                best = layout
        return best

    def _keys(self, partition: tuple[ColumnPath, ...]) -> tuple[ColumnPath, ...]:
        """Returns the best keys: each column is tried at each place, as long as one more pays."""
        kept = _without(self._task.now.zorder, partition)
        starts = [(), kept] if kept and not self._task.now.linear else [()]
        grown = [self._grown(start, partition) for start in starts]
        return min(grown, key=lambda keys: self._cost(Layout(keys, partition)))

    def _grown(self, keys: tuple[ColumnPath, ...], partition: tuple[ColumnPath, ...]) -> tuple[ColumnPath, ...]:
        cost = self._cost(Layout(keys, partition))
        while True:
            tried = [(self._cost(Layout(each, partition)), each) for each in self._neighbours(keys, partition)]
            least = min(tried, default=(cost, keys))
            # Drop a key if that costs nothing; add one only if it pays.
            needed = cost * (1 - _WORTH_A_KEY) if len(least[1]) >= len(keys) else cost
            if least[0] >= needed:
                return keys
            cost, keys = least

    def _neighbours(
        self, keys: tuple[ColumnPath, ...], partition: tuple[ColumnPath, ...]
    ) -> Iterator[tuple[ColumnPath, ...]]:
        for number in range(len(keys)):
            rest = keys[:number] + keys[number + 1 :]
            yield rest
            if len(keys) > 1:
                yield (keys[number], *rest)
        if len(keys) < _MOST_KEYS:
            for path in self._candidates:
                if path not in keys and path not in partition:
                    yield from ((*keys[:place], path, *keys[place:]) for place in range(len(keys) + 1))

    def _partitions(self) -> Iterable[tuple[ColumnPath, ...]]:
        """Yields other partition columns: none, and each column with few enough values."""
        if self._task.now.partition_by:
            yield ()
        for path in self._candidates:
            column = self._task.sample.columns[path]
            kind = column.values.type
            if (
                len(path) > 1
                or pa.types.is_floating(kind)
                or pa.types.is_binary(kind)
                or (path,) == self._task.now.partition_by
            ):
                continue
            count = column.distinct_count + bool(column.is_null.any())
            if 1 < count <= self._task.files / _PARTITION_SHARE:
                yield (path,)

    def _cost(self, layout: Layout) -> float:
        if layout not in self._known:
            self._known[layout] = _mean_share(self._quick, layout)
        return self._known[layout]

    def _close_cost(self, layout: Layout) -> float:
        """Returns the cost by more queries, so that rare ones count, too."""
        if layout not in self._known_closely:
            self._known_closely[layout] = _mean_share(self._close, layout)
        return self._known_closely[layout]


def _mean_share(task: SearchTask, layout: Layout) -> float:
    """Returns the share of rows that the queries open on average in a layout."""
    files = FilesOfSample(task.sample, layout, task.files)
    return task.queries.mean(shares_read(task.queries, files, task.found_by_value))


def _without(paths: Iterable[ColumnPath], others: Collection[ColumnPath]) -> tuple[ColumnPath, ...]:
    return tuple(path for path in paths if path not in others)


def _candidates(task: SearchTask) -> list[ColumnPath]:
    """Returns the columns that may become keys, those of the heaviest queries first."""
    weight: dict[ColumnPath, float] = {}
    for predicate, share in zip(task.queries.predicates, task.queries.weights.tolist(), strict=True):
        for path in columns_of(predicate):
            if path in task.sample.columns:
                weight[path] = weight.get(path, 0.0) + share
    ordered = sorted(weight, key=lambda path: (-weight[path], path))
    return [path for path in ordered if task.sample.columns[path].distinct_count > 1][:_MOST_CANDIDATES]
