"""Cluster plan: the groups to rewrite and the layout before and after, for people, programs and the timeline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dbt.adapters.zlayout.config.clustering import ALONG_CURVE, ClusterStrategy, ClusterStrategyName, parse_strategy
from dbt.adapters.zlayout.config.column_names import format_column_path
from dbt.adapters.zlayout.curve.keys import Comparable, comparable
from dbt.adapters.zlayout.curve.model import CurveModel, PartitionKey
from dbt.adapters.zlayout.errors import CorruptError, NewerFormatError
from dbt.adapters.zlayout.layout.cost import CostModel
from dbt.adapters.zlayout.layout.depth import is_deeper, overlap_depth, ranks_of
from dbt.adapters.zlayout.layout.key_space import KeyBounds, boxes_of
from dbt.adapters.zlayout.quantities import counted
from dbt.adapters.zlayout.timeline.files.naming import data_paths

_BYTES_BEYOND = 16


@dataclass(frozen=True)
class LayoutState:
    """A layout in three figures.

    Attributes:
        depth: Average number of files, itself included, whose boxes intersect a file's box; 1.0 is best.
        files_read: Average number of files that a point query on one of the keys reads, over constants and weighted
            keys.
    """

    files: int
    depth: float
    files_read: float


@dataclass(frozen=True)
class PlannedGroup:
    """Files that are rewritten together.

    Attributes:
        partition: As in the folder names; empty for a table without partitions.
        reason: 'overlap', 'small', 'large' or 'all'; 'partition_by' if all files move to other folders.
        files_after: Number of files that replace them.
        saves: Share of the bytes read by queries that the rewrite saves; None if that was not the reason.
        strategy: How the rows are arranged. With ``binpack`` the files are in the order in which they are packed.
    """

    partition: str
    paths: tuple[str, ...]
    rows: int
    size_bytes: int
    reason: str
    files_after: int
    saves: float | None
    strategy: ClusterStrategy = ALONG_CURVE

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values. Releases that know no strategies read groups along the curve, and refuse others."""
        plain = {**vars(self), "paths": list(self.paths)}
        strategy: ClusterStrategy = plain.pop("strategy")
        if strategy.name != "curve":
            plain["strategy"] = strategy.name
        if strategy.sort_by:
            plain["sort_by"] = [format_column_path(path) for path in strategy.sort_by]
        return plain


@dataclass(frozen=True)
class LeftGroup:
    """A group that was not rewritten.

    Attributes:
        partition: As in the folder names; empty for a table without partitions.
        reason: Why it is left as it is.
    """

    partition: str
    files: int
    reason: str

    def line(self, verb: str) -> str:
        """Returns what happened to the group, as a line of a list."""
        place = f" in {self.partition}" if self.partition else ""
        return f"  {verb} a group of {counted(self.files, 'file')}{place}: {self.reason}"


@dataclass(frozen=True)
class ClusterPlan:
    """What a clustering run would do.

    Attributes:
        version: The table version that was examined.
        groups: In the order of their rewrite.
        after: The layout that a sample of the keys predicts.
        resampled: Keys whose stored boundaries no longer fit the data and are therefore replaced.
        files_with_logs: Files that were not considered because logs change their rows.
        groups_failed: Groups that would be worth rewriting, but whose keys cannot be read.
    """

    version: int
    groups: tuple[PlannedGroup, ...]
    before: LayoutState
    after: LayoutState
    resampled: tuple[str, ...] = ()
    files_with_logs: int = 0
    groups_failed: tuple[LeftGroup, ...] = ()

    @property
    def bytes_rewritten(self) -> int:
        """Size of the files to rewrite."""
        return sum(each.size_bytes for each in self.groups)

    @property
    def files_removed(self) -> int:
        """Number of files to rewrite."""
        return sum(len(each.paths) for each in self.groups)

    @property
    def files_added(self) -> int:
        """Number of files that replace them."""
        return sum(each.files_after for each in self.groups)

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values, including the paths of each group."""
        return {
            "version": self.version,
            "bytes_rewritten": self.bytes_rewritten,
            "files_removed": self.files_removed,
            "files_added": self.files_added,
            "before": vars(self.before),
            "after": vars(self.after),
            "resampled": list(self.resampled),
            "files_with_logs": self.files_with_logs,
            "groups": [each.to_dict() for each in self.groups],
        }


def layout_state(
    keys: Sequence[KeyBounds],
    rows: npt.NDArray[np.int64],
    partition: npt.NDArray[np.int64],
    model: CostModel,
    boundaries: Sequence[Comparable],
) -> LayoutState:
    """Measures a layout.

    Args:
        keys: Bounds of each key, for n files.
        rows: int64[n].
        partition: int64[n], number of each file's partition.
        model: The weights of the keys.
        boundaries: As for `boxes_of`.
    """
    count = len(rows)
    if not keys:
        return LayoutState(count, float(np.bincount(partition).max(initial=0)), float(count))
    depth = overlap_depth(*_lows_and_highs(keys), partition)
    read = float(model.share_read(boxes_of(keys, rows, boundaries)).sum())
    return LayoutState(count, round(depth, 4), round(read, 4))


def deepens(keys: Sequence[KeyBounds], removed: npt.NDArray[np.bool_], added: Sequence[KeyBounds]) -> bool:
    """Returns whether the files of a partition overlap more deeply after some are replaced, see `is_deeper`.

    Args:
        keys: Bounds of each key, for n files.
        removed: bool[n], files that are removed.
        added: Bounds of each key, for the new files.
    """
    all_keys = [key.plus(more) for key, more in zip(keys, added, strict=True)]
    lows, highs = ranks_of(*_lows_and_highs(all_keys))
    return is_deeper(lows, highs, np.flatnonzero(removed), np.arange(len(removed), len(lows[0])))


def _lows_and_highs(
    keys: Sequence[KeyBounds],
) -> tuple[list[npt.NDArray[Any]], list[npt.NDArray[Any]], npt.NDArray[np.bool_]]:
    """Returns smallest and largest values per key, and the files with an unknown one, as `overlap_depth` takes them."""
    unknown = np.logical_or.reduce([key.low.nulls | key.high.nulls for key in keys])
    return [key.low.values for key in keys], [key.high.values for key in keys], unknown


def scheduled_groups(raw: Sequence[Mapping[str, Any]]) -> tuple[PlannedGroup, ...]:
    """Reads the groups written by `PlannedGroup.to_dict`. A damaged plan has no groups.

    Raises:
        NewerFormatError: A group has a strategy that this release does not know.
    """
    try:
        names = {each.get("strategy") for each in raw}
        unknown = sorted(str(each) for each in names - {None, *get_args(ClusterStrategyName)})
        found = () if unknown else tuple(map(_scheduled_group, raw))
    except (AttributeError, KeyError, TypeError, ValueError, CorruptError):
        return ()
    if unknown:
        raise NewerFormatError(
            f"a pending plan has the strategy {unknown[0]!r}, which a newer release of dbt-zlayout has written: upgrade"
        )
    return found if all(each.paths for each in found) else ()


def _scheduled_group(raw: Mapping[str, Any]) -> PlannedGroup:
    plain = {**raw, "paths": data_paths(raw["paths"], "a plan")}
    problems: list[str] = []
    strategy = parse_strategy(plain.pop("strategy", None), plain.pop("sort_by", None), problems)
    if problems:
        raise ValueError(problems[0])
    return PlannedGroup(**plain, strategy=strategy)


@dataclass(frozen=True, eq=False)
class Forecast:
    """The files that would replace a group.

    Attributes:
        bounds: The bounds of each key, for n files.
        rows: int64[n].
        size_bytes: int64[n].
    """

    bounds: tuple[KeyBounds, ...]
    rows: npt.NDArray[np.int64]
    size_bytes: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.rows)


def forecast(
    sample: pa.Table, model: CurveModel, partition_key: PartitionKey, total_rows: int, total_bytes: int
) -> Forecast:
    """Cuts a sample as the rows would be cut.

    Args:
        sample: One column per key; at least one row.
        model: With cuts for the group.
        partition_key: The partition of the rows; () for a table without partitions.
        total_rows: Rows that the sample represents.
        total_bytes: Their size in files.
    """
    file = model.place(sample.columns, partition_key or None).file
    present, number, counts = np.unique(file, return_inverse=True, return_counts=True)
    parts = np.array([model.shares.get((partition_key, int(each)), 1) for each in present])
    # A few bytes more than boundaries have, to compare bounds with those of files.
    taken = [each.most_bytes + _BYTES_BEYOND for each in model.boundaries]
    keys = [comparable(column, most) for column, most in zip(sample.columns, taken, strict=True)]
    bounds = tuple(_bounds(each, number, parts) for each in keys)
    share = np.repeat(counts / len(file) / parts, parts)
    rows = np.maximum(1, np.rint(share * total_rows)).astype(np.int64)
    return Forecast(bounds, rows, np.rint(share * total_bytes).astype(np.int64))


def forecast_packs(
    keys: Sequence[KeyBounds],
    packs: Sequence[npt.NDArray[np.int64]],
    rows: npt.NDArray[np.int64],
    size_bytes: npt.NDArray[np.int64],
) -> Forecast:
    """Returns the files that hold the rows of several files each: their bounds span those of the files.

    Args:
        keys: Bounds of each key, for n files.
        packs: Positions of the files whose rows each new file holds.
        rows: int64[n].
        size_bytes: int64[n].
    """
    number = np.repeat(np.arange(len(packs)), [len(pack) for pack in packs])
    files = np.concatenate(packs)
    ones = np.ones(len(packs), np.int64)
    bounds = []
    for key in (each.take(files) for each in keys):
        low, high = (_bounds(side, number, ones) for side in (key.low, key.high))
        unknown = np.bincount(number, key.unknown, len(packs)) > 0
        empty = np.bincount(number, ~key.empty, len(packs)) == 0
        bounds.append(
            KeyBounds(
                Comparable(low.low.values, low.low.nulls | unknown),
                Comparable(high.high.values, high.high.nulls | unknown),
                empty,
            )
        )
    sums = [np.bincount(number, each[files], len(packs)).astype(np.int64) for each in (rows, size_bytes)]
    return Forecast(tuple(bounds), sums[0], sums[1])


def _bounds(key: Comparable, file: npt.NDArray[Any], parts: npt.NDArray[np.int64]) -> KeyBounds:
    """Returns the smallest and largest value of each file, repeated for each part that shares its rows."""
    count = len(parts)
    filled = np.flatnonzero(~key.nulls)
    ordered = filled[np.lexsort((key.values[filled], file[filled]))]
    owner = file[ordered]
    firsts, lasts = np.searchsorted(owner, np.arange(count)), np.searchsorted(owner, np.arange(count), side="right") - 1
    empty = lasts < firsts
    values = key.values[ordered] if len(ordered) else np.zeros(1, key.values.dtype)
    low, high = values[np.where(empty, 0, firsts)], values[np.where(empty, 0, lasts)]
    return KeyBounds(
        Comparable(np.repeat(low, parts), np.repeat(empty, parts)),
        Comparable(np.repeat(high, parts), np.repeat(empty, parts)),
        np.repeat(empty, parts),
    )
