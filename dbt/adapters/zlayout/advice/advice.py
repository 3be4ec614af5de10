"""Advice for one table: the layout and the indexes with which a workload reads less, and what the change costs."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import mean
from typing import Any, Literal

import numpy as np

from dbt.adapters.zlayout.advice.asked_boxes import Asking
from dbt.adapters.zlayout.advice.other_queries import ranges_of, redrawn
from dbt.adapters.zlayout.advice.sample import (
    FilesOfSample,
    Layout,
    Sample,
    Shares,
    Weighted,
    limited_by_value,
    rows_of_a_value,
    share_of_files_with_a_value,
    shares_read,
    values_wanted,
)
from dbt.adapters.zlayout.advice.search import SearchTask, best_layouts, sampled_files
from dbt.adapters.zlayout.advice.table_settings import (
    PresentSettings,
    SettingAdvice,
    file_size,
    missing_expressions,
    row_groups,
    statistics_columns,
)
from dbt.adapters.zlayout.config.column_names import format_column_path
from dbt.adapters.zlayout.config.workload import WeightedCondition
from dbt.adapters.zlayout.curve.query_boxes import QueryBoxes
from dbt.adapters.zlayout.lazy import cached_property
from dbt.adapters.zlayout.predicate.expr import ColumnPath, Expr, columns_of, leaves
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
_RANGES_OF_A_KEY = 8
_ASKED_ROWS = 1 << 14

_SEEDS = (1, 2, 3)
_ANY = 1 << 40
_HELD_OUT_FROM = 8
_JUDGED_QUERIES = 100
_FEW_ROWS_OF_A_VALUE = 16
_FEW_FILES_OF_A_VALUE = 0.5


@dataclass(frozen=True)
class Query:
    """A condition of a workload, parsed from SQL into a predicate.

    Attributes:
        condition: As it was given.
        predicate: What it means for the table.
    """

    condition: WeightedCondition
    predicate: Expr

    @property
    def weight(self) -> float:
        """The weight of the condition."""
        return self.condition.weight


@dataclass(frozen=True)
class TableSize:
    """How large a table is, and its files.

    Attributes:
        size_bytes: Size of all files.
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
        lookup: Its columns with a lookup index of their own.
        settings: Further settings.
    """

    layout: Layout = field(default_factory=Layout)
    bloom: tuple[ColumnPath, ...] = ()
    opened: OpenedNow | None = None
    lookup: tuple[ColumnPath, ...] = ()
    settings: PresentSettings = field(default_factory=PresentSettings)


@dataclass(frozen=True)
class PredicateAdvice:
    """What one condition of the workload reads.

    Attributes:
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
        change: 'layout': other keys or partition columns pay off; 'cluster': the keys are good, but the files do not
            follow them; 'none': leave the layout as it is.
        zorder: The keys, most important first: the advised ones, or the present ones if no change pays off.
        partition_by: The partition columns, in the same way.
        lookup: Those new columns of ``bloom`` with few rows per value. A lookup index serves them better.
        bloom: Columns for Bloom filters: those of the table, and those that would pay.
        zorder_now: The present keys.
        partition_by_now: The present partition columns.
        bloom_now: The columns that have Bloom filters.
        opened_now: Share of rows in the files that a query of the workload reads now, on average, 0 … 1.
        opened_then: The same with the advice, as expected.
        by_workload: Whether the cuts of the advised layout follow the queries of the workload.
        gains: What the change saves of the opened rows, once for each seed: with constants, rows and cuts that the
            search has not seen.
        min_gain: The gain that a change must have for every seed.
        files_then: Files after a rewrite.
        rewrite_bytes: Bytes that the change reads and writes; 0 if there is nothing to do.
        saved_bytes: Bytes that a query of the workload reads less on average.
        payback_queries: After how many queries the change has saved what it reads and writes; None if it saves nothing.
        predicates: Each condition of the workload, those that read most first.
        why: The advice in a sentence.
        notes: What limits the figures.
        settings: Further settings that the workload would choose otherwise.
        asked: What cuts that follow the workload are made from.
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
    by_workload: bool
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
    settings: tuple[SettingAdvice, ...] = ()
    asked: QueryBoxes | None = field(default=None, repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Returns the advice as plain values for JSON. docs/advice.md lists the fields."""
        found = {name: value for name, value in vars(self).items() if name != "asked"}
        lists = {name: [vars(each) for each in getattr(self, name)] for name in ("predicates", "settings")}
        return {**found, **lists}


def advise(
    sample: Sample,
    queries: Sequence[Query],
    size: TableSize,
    present: Present,
    min_gain: float = MIN_GAIN,
    *,
    may_partition: bool = True,
    may_choose_keys: bool = True,
    may_index: bool = True,
) -> Advice:
    """Judges the layout of a table and searches for a better one.

    Args:
        sample: Rows of the table, with all columns that the workload filters on and all present keys.
        queries: The workload, at least one query.
        min_gain: The gain that a change must have for every seed, 0 … 1.
        may_partition: Whether other partition columns may be advised.
        may_choose_keys: Whether other keys may be advised. Otherwise only other cuts are.
        may_index: Whether the figures count Bloom filters that would pay. Otherwise these are only named.
    """
    advising = _Advising(sample, queries, size, present, min_gain, may_partition, may_choose_keys, may_index)
    return advising.run()


@dataclass(frozen=True)
class _Judged:
    """Mean shares of rows that are opened, over the seeds, and for each seed."""

    now: tuple[float, ...]
    clustered: tuple[float, ...]
    then: tuple[float, ...]


def _gains(over: Sequence[float], of: Sequence[float]) -> tuple[float, ...]:
    """Returns the share that each new share of rows saves of an old one."""
    return tuple(1 - new / old if old > 0 else 0.0 for old, new in zip(over, of, strict=True))


@dataclass
class _Advising:
    sample: Sample
    queries: Sequence[Query]
    size: TableSize
    present: Present
    min_gain: float
    may_partition: bool
    may_choose_keys: bool
    may_index: bool
    _now: dict[int, tuple[Expr, float]] = field(default_factory=dict)
    _judges: dict[int, tuple[Weighted, float, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.weights = [each.weight for each in self.queries]
        self.predicates = [normal_form(each.predicate) for each in self.queries]
        self.workload = Weighted.of(self.predicates, self.weights)
        self.files = self.size.files_then
        self.judged_files = sampled_files(self.files, self.sample.row_count // 2)

    def run(self) -> Advice:
        kept = self._found_by_value((*self.present.bloom, *self.present.lookup))
        # Filters come without a rewrite, so keys have to save what filters do not: filters that pay in the present
        # layout, and in the best one.
        bloom = self._bloom(self.present.layout, kept) if self.may_index else ()
        layouts = best_layouts(self._search_task({**kept, **self._found_by_value(bloom)}))
        more = self._bloom(layouts[0], kept) if self.may_index else ()
        found = {**kept, **self._found_by_value((*bloom, *more))}
        if not set(more) <= set(bloom):
            layouts = best_layouts(self._search_task(found))
        layout = self.present.layout
        for candidate in layouts:
            change, gains = self._change(candidate, self._judged(candidate, found))
            if change == "layout":
                layout = self._as_stored(candidate, found)
                break
        opened_now = np.asarray([self._opened(each) for each in self.predicates])
        advice = self._advice(change, layout, self._bloom(layout, kept), kept, gains, opened_now)
        if change != "none" and self.present.opened is not None and advice.opened_then >= advice.opened_now:
            # Only the other queries, which are blended into the workload, gain.
            layout = self.present.layout
            advice = self._advice("none", layout, self._bloom(layout, kept), kept, (0.0,) * len(gains), opened_now)
        return advice

    def _as_stored(self, layout: Layout, found: Mapping[ColumnPath, float]) -> Layout:
        """Returns the layout with what all queries ask for, and not only those that chose it."""
        if layout.asked is None:
            return layout
        queries = self._blended(range(len(self.predicates)), 0)
        asked = Asking(queries, self.sample.at_most(_ASKED_ROWS), found).of(layout.zorder)
        return replace(layout, asked=asked or layout.asked)

    def _search_task(self, found: Mapping[ColumnPath, float]) -> SearchTask:
        return SearchTask(
            self.sample,
            self._blended(self._split[0], 0),
            self.files,
            self.present.layout,
            found,
            self.may_partition,
            self.may_choose_keys,
        )

    def _blended(self, chosen: Sequence[int], seed: int) -> Weighted:
        predicates = [self.predicates[each] for each in chosen]
        weights = [self.weights[each] for each in chosen]
        other = [
            redrawn(predicate, self.sample, seed * 1_000_003 + number) for number, predicate in enumerate(predicates)
        ]
        ranges = [
            each
            for number in range(_RANGES_OF_A_KEY)
            for each in ranges_of(self.sample, self.present.layout.zorder, _RANGE, seed * _RANGES_OF_A_KEY + number)
        ]
        others = Weighted.of(other, weights)
        if ranges:
            others = others.mixed(Weighted.of(ranges, [1.0] * len(ranges)), _RANGES)
        return Weighted.of(predicates, weights).mixed(others, BLEND)

    @cached_property
    def _split(self) -> tuple[Sequence[int], Sequence[int]]:
        """The queries that choose, and those that judge: half of each shape, or both times the only one."""
        every = range(len(self.predicates))
        if len(every) < _HELD_OUT_FROM:
            return every, every
        alike: dict[Hashable, list[int]] = {}
        for number in every:
            alike.setdefault(_shape(self.predicates[number]), []).append(number)
        choose, judge = [], []
        for numbers in alike.values():
            choose += numbers[::2]
            judge += numbers[1::2] or numbers
        return sorted(choose), sorted(judge)

    def _judged(self, layout: Layout, found: Mapping[ColumnPath, float]) -> _Judged:
        now, clustered, then = [], [], []
        for seed in _SEEDS:
            queries, opened, fresh = self._judged_present(seed, found)
            now.append(opened)
            clustered.append(fresh)
            is_present = layout == self.present.layout
            then.append(fresh if is_present else queries.mean(self._shares(layout, queries, found, seed)))
        return _Judged(tuple(now), tuple(clustered), tuple(then))

    def _judged_present(self, seed: int, found: Mapping[ColumnPath, float]) -> tuple[Weighted, float, float]:
        """Returns the queries that judge, and what they open now, and with the present layout freshly clustered."""
        if seed not in self._judges:
            queries = self._blended(self._split[1], seed).at_most(_JUDGED_QUERIES, seed)
            opened = fresh = queries.mean(self._shares(self.present.layout, queries, found, seed))
            if self.present.opened is not None:
                shares = np.asarray([self._opened(each) for each in queries.predicates])
                opened = queries.mean(limited_by_value(queries, shares, found))
            self._judges[seed] = queries, opened, fresh
        return self._judges[seed]

    def _change(self, layout: Layout, judged: _Judged) -> tuple[Change, tuple[float, ...]]:
        least = tuple(map(min, judged.now, judged.clustered))
        gains = _gains(least, judged.then)
        if layout != self.present.layout and min(gains) >= self.min_gain:
            return "layout", tuple(round(each, 4) for each in _gains(judged.now, judged.then))
        by_clustering = _gains(judged.now, judged.clustered)
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
            found: As for `shares_read`.
            now: The shares now.
            whole: Whether the table is rewritten. Otherwise only indexes are added to the files as they are.
        """
        queries = self.workload
        if not whole:
            return limited_by_value(queries, now, found)
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
        """Returns the columns whose Bloom filters would pay in a layout, in addition to those that exist."""
        queries = self.workload
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
        kept: Mapping[ColumnPath, float],
        gains: tuple[float, ...],
        now: Shares,
    ) -> Advice:
        queries = self.workload
        found = {**kept, **self._found_by_value(bloom if self.may_index else ())}
        then = now
        if change != "none" or (bloom and self.may_index):
            then = self._opened_then(layout, found, now, whole=change != "none")
        opened_now, opened_then = queries.mean(now), queries.mean(then)
        saved = max(0, round((opened_now - opened_then) * self.size.size_bytes))
        # A rewrite reads and writes the table; filters alone read it.
        cost = self.size.size_bytes * (2 if change != "none" else 1 if bloom and self.may_index else 0)
        rows = [
            PredicateAdvice(each.condition.sql, each.weight, each.condition.source, round(old, 4), round(new, 4))
            for each, old, new in zip(self.queries, now.tolist(), then.tolist(), strict=True)
        ]
        few = [path for path in bloom if rows_of_a_value(self.sample, path, self.size.rows) <= _FEW_ROWS_OF_A_VALUE]
        advice = Advice(
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
            by_workload=layout.asked is not None,
            asked=layout.asked,
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
            settings=tuple(self._settings(layout, found, opened_then)),
        )
        # Without a second file, no layout and no filter skips anything.
        why = advice.notes[0] if self.files == 1 else _why_of(advice, with_filters=self.may_index)
        return replace(advice, why=why)

    def _settings(self, layout: Layout, found: Mapping[ColumnPath, float], opened: float) -> Iterator[SettingAdvice]:
        """Yields the settings that the workload would choose otherwise, with the advised layout and indexes.

        Args:
            found: As for `shares_read`.
            opened: Share of rows that a query opens with the advice.
        """
        if self.present.opened is None or not self.may_index:
            return
        queries = self.workload

        def shares_of_files(files: int, *, with_all: bool = False) -> list[float]:
            sample = replace(self.sample, untracked=frozenset()) if with_all else self.sample
            made = sampled_files(files, sample.row_count // 2)
            halves = [sample.halves(seed) for seed in _SEEDS]
            return [
                queries.mean(shares_read(queries, FilesOfSample(read, layout, made, cut), found))
                for cut, read in halves
            ]

        now, target, bytes_ = self.present.settings, self.size.target_file_bytes, self.size.size_bytes
        most = sampled_files(_ANY, self.sample.row_count // 2)
        yield from file_size(target, bytes_, most, shares_of_files, opened, self.min_gain)
        rows_per_file = self.size.rows / max(1, self.size.files)
        yield from row_groups(now.row_group_rows, rows_per_file, self.size.files, shares_of_files, self.min_gain)
        used = {path for each in self.predicates for path in columns_of(each)}
        missing = sorted(self.sample.untracked.intersection(used).difference(layout.zorder, layout.partition_by))
        shares = [mean(shares_of_files(self.files, with_all=each)) for each in (False, True)] if missing else []
        if not shares or shares[0] <= 0 or 1 - shares[1] / shares[0] < self.min_gain:
            missing = []
        kept = {*used, *layout.zorder, *self.present.layout.zorder, *now.merge_keys}
        yield from statistics_columns(now.stats_columns, now.tracked or (), kept, missing, shares)
        yield from missing_expressions(now.expressions or {})

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


def _why_of(advice: Advice, *, with_filters: bool = True) -> str:
    """Returns the advice in a sentence.

    Args:
        with_filters: Whether its figures count the Bloom filters that it names.
    """
    filters = [each for each in advice.bloom if each not in advice.bloom_now]
    if not with_filters and filters:
        plain = _why_of(replace(advice, bloom=advice.bloom_now))
        exact = [each for each in filters if each in advice.lookup]
        others = [each for each in filters if each not in exact]
        named = [f"{key}: [{', '.join(names)}]" for key, names in (("lookup", exact), ("bloom", others)) if names]
        return f"{plain}; {' and '.join(named)} would save more"
    now = f"a query of this workload opens {advice.opened_now:.1%} of the rows"
    keys, parts = ", ".join(advice.zorder), ", ".join(advice.partition_by)
    and_filters = f" and Bloom filters on {', '.join(filters)}" if filters else ""
    if advice.change == "layout":
        what = f"cluster by {keys}" if keys else "no clustering keys"
        if advice.by_workload:
            what += " with cuts that follow the workload"
        if advice.partition_by != advice.partition_by_now:
            what += f", partition by {parts}" if parts else ", without partitions"
        return f"{what}{and_filters}: {now}, then {advice.opened_then:.1%}"
    if advice.change == "cluster":
        return f"cluster the table by its keys ({keys}){and_filters}: {now}, then {advice.opened_then:.1%}"
    if filters:
        return f"keep the keys; add Bloom filters on {', '.join(filters)}: {now}, then {advice.opened_then:.1%}"
    return f"keep the layout: {now}, and no change would save {advice.min_gain:.0%} of that"


def _shape(predicate: Expr) -> Hashable:
    """Returns what queries have in common that differ in constants only."""
    kinds = (
        (type(each).__name__, str(getattr(each, "op", "")), *sorted(columns_of(each))) for each in leaves(predicate)
    )
    return tuple(sorted(kinds, key=repr))


def _names(paths: Sequence[ColumnPath]) -> tuple[str, ...]:
    return tuple(map(format_column_path, paths))
