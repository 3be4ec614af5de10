"""Advice for one table: the layout and the indexes with which a workload reads less, and what the change costs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from dbt.adapters.zlayout.advice.reading import (
    Shares,
    Weighted,
    rows_of_a_value,
    share_of_files_with_a_value,
    shares_read,
    values_wanted,
)
from dbt.adapters.zlayout.advice.redrawn import ranges_of, redrawn
from dbt.adapters.zlayout.advice.sample import FilesOfSample, Layout, Sample
from dbt.adapters.zlayout.advice.search import Problem, best_layout, sampled_files
from dbt.adapters.zlayout.advice.workload import Query
from dbt.adapters.zlayout.config.column_names import format_column_path
from dbt.adapters.zlayout.predicate.expr import ColumnPath, Expr, columns_of
from dbt.adapters.zlayout.predicate.normal_form import normal_form
from dbt.adapters.zlayout.quantities import counted, size_text

Change = Literal["none", "cluster", "layout"]
OpenedNow = Callable[[Expr], float]

MIN_GAIN = 0.1
"""A change is advised if it saves at least this share of the rows that are opened now."""
BLEND = 0.4
"""The share of other queries among those that a layout is judged by: most are the workload's with other constants."""
_RANGES = 0.5
"""The share of ranges on single present keys among the other queries: someone chose these keys."""
_RANGE = 0.02

_SEEDS = (1, 2, 3)
_HELD_OUT_FROM = 8
_JUDGED_QUERIES = 100
_FEW_ROWS_OF_A_VALUE = 16
_FEW_FILES_OF_A_VALUE = 0.5


@dataclass(frozen=True)
class TableSize:
    """How large a table is, and its files.

    Attributes:
        rows: Rows of the table.
        files: Files of the table.
        size_bytes: Size of all files.
        target_file_bytes: Target size of a file.
    """

    rows: int
    files: int
    size_bytes: int
    target_file_bytes: int

    @property
    def files_then(self) -> int:
        """How many files a rewrite makes."""
        return max(1, round(self.size_bytes / self.target_file_bytes))


@dataclass(frozen=True)
class Present:
    """How a table is laid out and indexed now.

    Attributes:
        layout: Its keys and partition columns.
        bloom: Its columns with Bloom filters.
        opened: Returns the share of rows that lie in files which a predicate reads. None for a table that is not yet
            written: then rows lie in no order.
    """

    layout: Layout = field(default_factory=Layout)
    bloom: tuple[ColumnPath, ...] = ()
    opened: OpenedNow | None = None


@dataclass(frozen=True)
class PredicateAdvice:
    """What one condition of the workload reads.

    Attributes:
        predicate: The condition.
        weight: Its weight.
        source: Where it comes from.
        opened_now: Share of rows in the files that it reads now, 0 … 1.
        opened_then: The same with the advice, as expected.
    """

    predicate: str
    weight: float
    source: str
    opened_now: float
    opened_then: float


@dataclass(frozen=True)
class Advice:
    """The advice for one table.

    Attributes:
        change: 'layout': other keys or partition columns pay; 'cluster': the keys are good, but the files do not follow
            them; 'none': leave the layout as it is.
        zorder: The keys, most important first: the advised ones, or the present ones if no change pays.
        partition_by: The partition columns, likewise.
        lookup: Columns with few rows per value that queries look for and that neither keys nor other indexes serve.
        bloom: Columns for Bloom filters: those of the table, and those that would pay.
        zorder_now: The present keys.
        partition_by_now: The present partition columns.
        bloom_now: The columns that have Bloom filters.
        opened_now: Share of rows in the files that a query of the workload reads now, on average, 0 … 1.
        opened_then: The same with the advice, as expected.
        gains: What the change saves of the opened rows, once for each seed: with constants, rows and cuts that the
            search has not seen.
        min_gain: The gain that a change must have for every seed.
        rows: Rows of the table.
        files: Files of the table.
        files_then: Files after a rewrite.
        size_bytes: Size of the table.
        rewrite_bytes: Bytes that the change reads and writes; 0 if there is nothing to do.
        saved_bytes: Bytes that a query of the workload reads less on average.
        payback_queries: After how many queries the change has saved what it reads and writes; None if it saves nothing.
        predicates: Each condition of the workload, those that read most first.
        why: The advice in a sentence.
        notes: What limits the figures.
    """

    change: Change
    zorder: tuple[str, ...]
    partition_by: tuple[str, ...]
    lookup: tuple[str, ...]
    bloom: tuple[str, ...]
    zorder_now: tuple[str, ...]
    partition_by_now: tuple[str, ...]
    bloom_now: tuple[str, ...]
    opened_now: float
    opened_then: float
    gains: tuple[float, ...]
    min_gain: float
    rows: int
    files: int
    files_then: int
    size_bytes: int
    rewrite_bytes: int
    saved_bytes: int
    payback_queries: int | None
    predicates: tuple[PredicateAdvice, ...]
    why: str
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Returns the advice as plain values for JSON. docs/advice.md has the schema."""
        return {**vars(self), "predicates": [vars(each) for each in self.predicates]}


def advise(
    sample: Sample,
    queries: Sequence[Query],
    size: TableSize,
    present: Present,
    min_gain: float = MIN_GAIN,
    *,
    may_partition: bool = True,
) -> Advice:
    """Judges the layout of a table and searches a better one.

    Args:
        sample: Rows of the table, with all columns that the workload filters on and all present keys.
        queries: The workload, at least one query.
        size: Of the table.
        present: The layout now.
        min_gain: The gain that a change must have for every seed, 0 … 1.
        may_partition: Whether other partition columns may be advised.
    """
    return _Advising(sample, queries, size, present, min_gain, may_partition).run()


@dataclass(frozen=True)
class _Judged:
    """Mean shares of rows that are opened, over the seeds, and for each seed."""

    now: tuple[float, ...]
    clustered: tuple[float, ...]
    then: tuple[float, ...]

    def gains(self, over: Sequence[float], of: Sequence[float]) -> tuple[float, ...]:
        return tuple(1 - new / old if old > 0 else 0.0 for old, new in zip(over, of, strict=True))


class _Advising:
    def __init__(
        self,
        sample: Sample,
        queries: Sequence[Query],
        size: TableSize,
        present: Present,
        min_gain: float,
        may_partition: bool,
    ) -> None:
        self.may_partition = may_partition
        self.sample = sample
        self.queries = queries
        self.size = size
        self.present = present
        self.min_gain = min_gain
        self.weights = [each.weight for each in queries]
        self.predicates = [normal_form(each.predicate) for each in queries]
        self.files = size.files_then
        self.judged_files = sampled_files(self.files, sample.row_count // 2)
        self._now: dict[int, tuple[Expr, float]] = {}

    def run(self) -> Advice:
        kept = self._found_by_value(self.present.bloom)
        layout = best_layout(self._problem(kept))
        bloom = self._bloom(layout, kept)
        if bloom:
            # With filters for some columns, others may be the better keys.
            layout = best_layout(self._problem({**kept, **self._found_by_value(bloom)}))
            bloom = self._bloom(layout, kept)
        found = {**kept, **self._found_by_value(bloom)}
        judged = self._judged(layout, kept)
        change, gains = self._change(layout, judged)
        if change != "layout":
            layout = self.present.layout
            bloom = self._bloom(layout, kept)
            found = {**kept, **self._found_by_value(bloom)}
        opened_now = np.asarray([self._opened(each) for each in self.predicates])
        if change == "none" and not bloom:
            opened_then = opened_now
        else:
            opened_then = self._opened_then(layout, found, opened_now, whole=change != "none")
        return self._advice(change, layout, bloom, gains, opened_now, opened_then)

    def _problem(self, found: Mapping[ColumnPath, float]) -> Problem:
        train = range(len(self.predicates))
        if len(self.predicates) >= _HELD_OUT_FROM:
            train = range(0, len(self.predicates), 2)
        return Problem(self.sample, self._blended(train, 0), self.files, self.present.layout, found, self.may_partition)

    def _blended(self, chosen: Sequence[int], seed: int) -> Weighted:
        predicates = [self.predicates[each] for each in chosen]
        weights = [self.weights[each] for each in chosen]
        other = [
            redrawn(predicate, self.sample, seed * 1_000_003 + number) for number, predicate in enumerate(predicates)
        ]
        ranges = ranges_of(self.sample, self.present.layout.zorder, _RANGE, seed)
        others = Weighted.of(other, weights)
        if ranges:
            others = others.mixed(Weighted.of(ranges, [1.0] * len(ranges)), _RANGES)
        return Weighted.of(predicates, weights).mixed(others, BLEND)

    def _held_out(self) -> Sequence[int]:
        every = range(len(self.predicates))
        return every[1::2] if len(every) >= _HELD_OUT_FROM else every

    def _judged(self, layout: Layout, found: Mapping[ColumnPath, float]) -> _Judged:
        now, clustered, then = [], [], []
        for seed in _SEEDS:
            queries = _at_most(self._blended(self._held_out(), seed), seed)
            clustered.append(queries.mean(self._shares(self.present.layout, queries, found, seed)))
            if self.present.opened is None:
                now.append(clustered[-1])
            else:
                now.append(queries.mean(np.asarray([self._opened(each) for each in queries.predicates])))
            then.append(
                clustered[-1]
                if layout == self.present.layout
                else queries.mean(self._shares(layout, queries, found, seed))
            )
        return _Judged(tuple(now), tuple(clustered), tuple(then))

    def _change(self, layout: Layout, judged: _Judged) -> tuple[Change, tuple[float, ...]]:
        least = tuple(map(min, judged.now, judged.clustered))
        gains = judged.gains(least, judged.then)
        if layout != self.present.layout and min(gains) >= self.min_gain:
            return "layout", tuple(round(each, 4) for each in judged.gains(judged.now, judged.then))
        by_clustering = judged.gains(judged.now, judged.clustered)
        if self.present.layout.zorder and min(by_clustering) >= self.min_gain:
            return "cluster", tuple(round(each, 4) for each in by_clustering)
        return "none", tuple(round(max(0.0, each), 4) for each in gains)

    def _shares(self, layout: Layout, queries: Weighted, found: Mapping[ColumnPath, float], seed: int) -> Shares:
        cut, read = self.sample.halves(seed)
        return shares_read(queries, FilesOfSample(read, layout, self.judged_files, cut), found)

    def _opened_then(
        self,
        layout: Layout,
        found: Mapping[ColumnPath, float],
        now: Shares,
        *,
        whole: bool,
    ) -> Shares:
        """Returns the expected share for each condition, on average over the seeds.

        Args:
            layout: The layout.
            found: As for `shares_read`.
            now: The shares now.
            whole: Whether the table is rewritten. Otherwise only indexes are added to the files as they are.
        """
        queries = Weighted.of(self.predicates, self.weights)
        if not whole:
            limits = [
                min(
                    [1.0, *(count * found[path] + 0.01 * share for path, count in values_wanted(each) if path in found)]
                )
                for each, share in zip(self.predicates, now.tolist(), strict=True)
            ]
            limited: Shares = np.minimum(now, np.asarray(limits))
            return limited
        every = np.asarray([self._shares(layout, queries, found, seed) for seed in _SEEDS])
        shares: Shares = every.mean(axis=0)
        return shares

    def _opened(self, predicate: Expr) -> float:
        known = self._now.get(id(predicate))
        if known is None:
            if self.present.opened is not None:
                share = self.present.opened(predicate)
            else:
                share = float(shares_read(Weighted.of([predicate], [1.0]), self._unwritten_files)[0])
            # Keeps the predicate, so that its id is not used again.
            known = self._now[id(predicate)] = (predicate, share)
        return known[1]

    @cached_property
    def _unwritten_files(self) -> FilesOfSample:
        return FilesOfSample(self.sample, self.present.layout, self.judged_files)

    def _found_by_value(self, columns: Sequence[ColumnPath]) -> dict[ColumnPath, float]:
        return {
            path: share_of_files_with_a_value(self.sample, path, self.size.rows, self.files)
            for path in columns
            if path in self.sample.columns
        }

    def _bloom(self, layout: Layout, kept: Mapping[ColumnPath, float]) -> tuple[ColumnPath, ...]:
        """Returns the columns whose Bloom filters would pay in a layout, besides those that exist."""
        queries = Weighted.of(self.predicates, self.weights)
        wanted = {path for each in self.predicates for path, _ in values_wanted(each)}
        usable = [
            path
            for path in sorted(wanted)
            if path in self.sample.columns and path not in kept and path not in layout.partition_by
        ]
        found = {path: share for path, share in self._found_by_value(usable).items() if share < _FEW_FILES_OF_A_VALUE}
        if not found:
            return ()
        files = FilesOfSample(self.sample, layout, self.judged_files)
        chosen: dict[ColumnPath, float] = dict(kept)
        before = queries.mean(shares_read(queries, files, chosen))
        for path, share in found.items():
            after = queries.mean(shares_read(queries, files, {**chosen, path: share}))
            if before > 0 and 1 - after / before >= self.min_gain:
                chosen[path], before = share, after
        return tuple(path for path in chosen if path not in kept)

    def _advice(
        self,
        change: Change,
        layout: Layout,
        bloom: tuple[ColumnPath, ...],
        gains: tuple[float, ...],
        now: Shares,
        then: Shares,
    ) -> Advice:
        queries = Weighted.of(self.predicates, self.weights)
        opened_now, opened_then = queries.mean(now), queries.mean(then)
        saved = max(0, round((opened_now - opened_then) * self.size.size_bytes))
        # A rewrite reads and writes the table; filters alone read it.
        cost = self.size.size_bytes * (2 if change != "none" else 1 if bloom else 0)
        rows = [
            PredicateAdvice(each.condition.sql, each.weight, each.condition.source, round(old, 4), round(new, 4))
            for each, old, new in zip(self.queries, now.tolist(), then.tolist(), strict=True)
        ]
        few = [path for path in bloom if rows_of_a_value(self.sample, path, self.size.rows) <= _FEW_ROWS_OF_A_VALUE]
        found = Advice(
            change=change,
            zorder=_names(layout.zorder),
            partition_by=_names(layout.partition_by),
            lookup=_names(few),
            bloom=_names((*self.present.bloom, *bloom)),
            zorder_now=_names(self.present.layout.zorder),
            partition_by_now=_names(self.present.layout.partition_by),
            bloom_now=_names(self.present.bloom),
            opened_now=round(opened_now, 4),
            opened_then=round(opened_then, 4),
            gains=gains,
            min_gain=self.min_gain,
            rows=self.size.rows,
            files=self.size.files,
            files_then=self.files if change != "none" else self.size.files,
            size_bytes=self.size.size_bytes,
            rewrite_bytes=cost,
            saved_bytes=saved if cost else 0,
            payback_queries=math.ceil(cost / saved) if cost and saved else None,
            predicates=tuple(sorted(rows, key=lambda each: (-each.weight * each.opened_now, each.predicate))),
            why="",
            notes=self._notes(),
        )
        return replace(found, why=why_of(found))

    def _notes(self) -> tuple[str, ...]:
        notes = []
        if self.files == 1:
            size, target = size_text(self.size.size_bytes), size_text(self.size.target_file_bytes)
            notes.append(
                f"the table has {size} and makes one file of the target size ({target}), so no layout skips anything; "
                "lower target_file_size for more files"
            )
        elif self.judged_files < self.files:
            notes.append(
                f"judged with {counted(self.judged_files, 'file')} instead of {counted(self.files, 'file')}, which read"
                " a larger share: the sample has no more rows"
            )
        unusable = [
            each.condition.sql
            for each, predicate in zip(self.queries, self.predicates, strict=True)
            if not columns_of(predicate) and each.condition.sql.strip().lower() != "true"
        ]
        if unusable:
            notes.append(f"no layout helps {', '.join(map(repr, unusable[:3]))}; zlayout_explain says why")
        return tuple(notes)


def why_of(advice: Advice) -> str:
    """Returns the advice in a sentence."""
    now = f"a query of this workload opens {advice.opened_now:.1%} of the rows"
    keys, parts = ", ".join(advice.zorder), ", ".join(advice.partition_by)
    filters = [each for each in advice.bloom if each not in advice.bloom_now]
    with_filters = f" and Bloom filters on {', '.join(filters)}" if filters else ""
    if advice.change == "layout":
        what = f"cluster by {keys}" if keys else "no clustering keys"
        if advice.partition_by != advice.partition_by_now:
            what += f", partition by {parts}" if parts else ", without partitions"
        return f"{what}{with_filters}: {now}, then {advice.opened_then:.1%}"
    if advice.change == "cluster":
        return f"cluster the table by its keys ({keys}){with_filters}: {now}, then {advice.opened_then:.1%}"
    if filters:
        return f"keep the keys; add Bloom filters on {', '.join(filters)}: {now}, then {advice.opened_then:.1%}"
    return f"keep the layout: {now}, and no change saves {advice.min_gain:.0%} of that for every seed"


def _at_most(queries: Weighted, seed: int) -> Weighted:
    if len(queries.predicates) <= _JUDGED_QUERIES:
        return queries
    times = np.random.default_rng(seed).multinomial(_JUDGED_QUERIES, queries.weights)
    chosen = np.flatnonzero(times)
    return Weighted.of([queries.predicates[each] for each in chosen], times[chosen].tolist())


def _names(paths: Sequence[ColumnPath]) -> tuple[str, ...]:
    return tuple(map(format_column_path, paths))
