"""The layout map: where files lie when all rows are sorted by each of some columns, for the picture of a layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dbt.adapters.zlayout.config.column_names import format_column_path
from dbt.adapters.zlayout.layout.expected_reads import RowRanges, row_ranges
from dbt.adapters.zlayout.layout.spans import spans_of, validated
from dbt.adapters.zlayout.predicate.expr import ColumnPath
from dbt.adapters.zlayout.pruning.statistics.column_bounds import SomeStatistics, Statistics
from dbt.adapters.zlayout.pruning.statistics.validation import Facts
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles

TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)
# Half the distance of two ticks.
_NEAR = 0.125
_MOST_CHARACTERS = 24


@dataclass(frozen=True, eq=False)
class MapAxis:
    """One column of a layout map.

    Attributes:
        column: As spelled in settings.
        start: float64[m], 0 … 1: where each file begins among all rows, sorted by the column.
        end: float64[m]: where it ends.
        lowest: The smallest value of each file as text; '' if it is unknown or there is none.
        highest: The greatest value.
        ticks: About which value lies at each place of `TICKS`.
    """

    column: str
    start: npt.NDArray[np.float64]
    end: npt.NDArray[np.float64]
    lowest: Sequence[str]
    highest: Sequence[str]
    ticks: Sequence[str]


@dataclass(frozen=True, eq=False)
class FileMap:
    """The files of a table by the range of each column that they cover.

    Attributes:
        axes: One for each column.
        files: The m files that are shown: all, or a sample spread evenly over the first column.
        positions: int64[m], which files of the table these are.
        total_files: Files of the table with rows.
    """

    axes: tuple[MapAxis, ...]
    files: DataFiles
    positions: npt.NDArray[np.int64]
    total_files: int


def file_map(
    files: DataFiles, statistics: Statistics, types: Mapping[ColumnPath, pa.DataType], most_files: int
) -> FileMap:
    """Places files among the rows of the table, sorted by each column.

    Args:
        files: n files. Those without rows are left out.
        statistics: The statistics of these files.
        types: The columns, one or more, and their types in the table.
        most_files: The most files in the map, always the same ones.
    """
    rows = files.column("row_count").to_numpy()
    with_rows = np.flatnonzero(rows > 0)
    measured = SomeStatistics(statistics, with_rows)
    facts = validated(measured, types)
    ranges = {
        path: row_ranges(spans_of(facts[path], kind, len(with_rows)), rows[with_rows]) for path, kind in types.items()
    }
    first = next(iter(ranges.values()))
    order = np.lexsort((first.end, first.start))
    if len(order) > most_files:
        # One of each stretch, at a random place: with even steps, tiles of a regular layout would all be of one row.
        places = np.arange(most_files) + np.random.default_rng(0).random(most_files)
        order = order[(places * (len(order) / most_files)).astype(np.int64)]
    axes = tuple(_axis(path, facts[path], ranges[path], order) for path in types)
    positions = with_rows[order]
    return FileMap(axes, files.take(pa.array(positions)), positions, len(with_rows))


def _axis(path: ColumnPath, facts: Facts | None, ranges: RowRanges, order: npt.NDArray[np.int64]) -> MapAxis:
    if facts is None:
        unknown = [""] * len(order)
        ticks = [""] * len(TICKS)
        return MapAxis(format_column_path(path), ranges.start[order], ranges.end[order], unknown, unknown, ticks)
    at = pa.array(order)
    return MapAxis(
        column=format_column_path(path),
        start=ranges.start[order],
        end=ranges.end[order],
        lowest=_texts(facts.minimum.take(at)),
        highest=_texts(facts.maximum.take(at)),
        ticks=_ticks(facts, ranges),
    )


def _ticks(facts: Facts, ranges: RowRanges) -> list[str]:
    """Returns for each tick the bound of a file that lies nearest to it; empty if none is nearer than the next tick."""
    found = []
    for place in TICKS:
        to_start = np.where(
            ranges.has_values & facts.minimum.is_valid().to_numpy(False), abs(ranges.start - place), 2.0
        )
        to_end = np.where(ranges.has_values & facts.maximum.is_valid().to_numpy(False), abs(ranges.end - place), 2.0)
        if not len(to_start) or min(to_start.min(), to_end.min()) > _NEAR:
            found.append("")
            continue
        bounds, nearest = (facts.minimum, to_start) if to_start.min() <= to_end.min() else (facts.maximum, to_end)
        found += _texts(bounds.slice(int(nearest.argmin()), 1))
    return found


def _texts(values: pa.Array) -> list[str]:
    texts = [_text(each) for each in values.to_pylist()]
    return [text if len(text) <= _MOST_CHARACTERS else text[: _MOST_CHARACTERS - 1] + "…" for text in texts]


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return f"x'{value[:_MOST_CHARACTERS].hex()}'"
    if isinstance(value, float):
        return f"{value:.6g}"
    return "" if value is None else str(value).removesuffix("+00:00").removesuffix(" 00:00:00")
