"""The layout report: what `TableReport` says about tables, worst first, as HTML, as lines of text, and as JSON."""

from __future__ import annotations

import datetime as dt
import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup

from dbt.adapters.zlayout.adapter.output import json_text
from dbt.adapters.zlayout.errors import UnsupportedError
from dbt.adapters.zlayout.layout.clustering_measures import ClusteringMeasures
from dbt.adapters.zlayout.layout.file_map import FileMap
from dbt.adapters.zlayout.layout.table_verdict import Level, Problem, TableVerdict
from dbt.adapters.zlayout.quantities import counted, number_text, size_text
from dbt.adapters.zlayout.table.layout_report import ReportedCondition, TableReport

# Together the maps have at most this many rectangles, so that a report of 50 tables stays below 3 MB.
_ALL_FILES, _FEWEST_FILES, _MOST_FILES = 12_000, 100, 1_500
_PLACES = 10_000
_MOST_BINS = 60
_LISTED_FILES, _LISTED_VERSIONS = 10, 20
_LONGEST_PATH, _LONGEST_PREDICATE = 90, 200
_SIGNS = {Level.GOOD: "✓", Level.FAIR: "△", Level.POOR: "✗", Level.BROKEN: "!"}
_MOST_LINES = 20


@dataclass(frozen=True)
class Unreadable:
    """A table that could not be opened.

    Attributes:
        verdict: The verdict, which says why.
    """

    name: str
    verdict: TableVerdict


@dataclass(frozen=True)
class Section:
    """What another operation says about the project, shown above the tables. Without lines, nothing is shown.

    Attributes:
        title: The heading.
        lines: A sentence each, with the command that solves it or ''.
    """

    title: str
    lines: Sequence[tuple[str, str]] = ()


def most_files(tables: int) -> int:
    """Returns how many files the map of each table may have, for a number of tables."""
    return max(_FEWEST_FILES, min(_MOST_FILES, _ALL_FILES // max(1, tables)))


def worst_first(tables: Sequence[TableReport | Unreadable]) -> list[TableReport | Unreadable]:
    """Returns tables in the order of the report: the worst first, then by name."""
    return sorted(tables, key=lambda each: (tuple(-part for part in each.verdict.badness), each.name))


def report_page(
    title: str,
    tables: Sequence[TableReport | Unreadable],
    now: dt.datetime,
    *,
    sections: Sequence[Section] = (),
    with_dbt: bool = True,
) -> str:
    """Returns the report as one HTML file that needs no network.

    Args:
        title: The subject of the report, such as the name of a dbt project.
        tables: The tables, in any order.
        now: When the report was made, in UTC.
        sections: What other operations say.
        with_dbt: Whether commands are run-operations of dbt; else those of ``zlayout``.

    Raises:
        UnsupportedError: The plotting library is not installed.
    """
    folder = Path(__file__).parent
    environment = Environment(loader=FileSystemLoader(folder, encoding="utf-8"), autoescape=True, trim_blocks=True)
    environment.filters |= {"size": size_text, "number": number_text, "counted": counted, "times": _time}
    ordered = worst_first(tables)
    shown = [_shown(number, each, with_dbt) for number, each in enumerate(ordered)]
    levels = [
        (level.name.lower(), _SIGNS[level], sum(each.verdict.level is level for each in ordered), level.word)
        for level in reversed(Level)
    ]
    return environment.get_template("page.html.j2").render(
        title=title,
        made=f"{now:%Y-%m-%d %H:%M} UTC",
        tables=shown,
        levels=[each for each in levels if each[2]],
        sections=[each for each in sections if each.lines],
        style=Markup((folder / "page.css").read_text("utf-8")),
        script=Markup((folder / "page.js").read_text("utf-8")),
        vega=Markup(vega_script()) if shown else "",
    )


def _shown(number: int, table: TableReport | Unreadable, with_dbt: bool) -> dict[str, Any]:
    """Returns what the template needs of a table."""
    found: dict[str, Any] = {
        "id": f"table-{number + 1}",
        "name": table.name,
        "level": table.verdict.level.name.lower(),
        "sign": _SIGNS[table.verdict.level],
        "word": table.verdict.level.word,
        "sentence": table.verdict.sentence.partition(": ")[2],
        "problems": [(each, _command(each, with_dbt)) for each in table.verdict.problems],
        "readable": isinstance(table, TableReport),
    }
    if isinstance(table, Unreadable):
        return found
    return {**found, "it": table, "plots": _plots(table), "data": _data(table), "logs": _log_text(table)}


def _command(problem: Problem, with_dbt: bool) -> str:
    return "" if problem.remedy is None else problem.remedy.text(with_dbt=with_dbt)


def _plots(table: TableReport) -> list[dict[str, Any]]:
    """Returns the plots of a table: name, title, a sentence that says what each shows, and its numbers."""
    made = (_map_plot, _depth_plot, _storage_plot, _reads_plot, _rows_plot, _bytes_plot)
    return [plot for make in made if (plot := make(table)) is not None]


def _map_plot(table: TableReport) -> dict[str, Any] | None:
    found = table.map
    if found is None:
        return None
    shown = len(found.files)
    some = "" if shown == found.total_files else f"{shown:,} of "
    widths = np.mean([axis.end - axis.start for axis in found.axes], axis=0)
    widest = np.argsort(-widths, kind="stable")[:_LISTED_FILES].tolist()
    files = found.files.to_pylist()
    return {
        "name": "map",
        "title": "Layout map",
        "text": (
            f"Each rectangle is one of {some}{counted(found.total_files, 'file')}, over the rows that it may hold when "
            "all rows are sorted by a column. Small rectangles are good: a lookup reads those that cover its value"
        ),
        "caption": "The files with the widest bounds, which most lookups read",
        "head": ["file", "rows", *(axis.column for axis in found.axes)],
        "body": [
            [
                _short(files[at]["path"], _LONGEST_PATH),
                number_text(files[at]["row_count"]),
                *(f"{axis.lowest[at]} … {axis.highest[at]}" for axis in found.axes),
            ]
            for at in widest
        ],
        "axes": [axis.column for axis in found.axes],
        "reads": bool(table.reads),
    }


def _depth_plot(table: TableReport) -> dict[str, Any] | None:
    layouts = _layouts(table)
    if not layouts:
        return None
    averages = ", ".join(f"{layout.average_depth:,.2f} {when}" for when, layout in layouts)
    tops = sorted({top for _, layout in layouts for top, count in layout.depth_histogram.items() if count})
    return {
        "name": "depth",
        "title": "Depth" if len(layouts) == 1 else "Depth, before and after the last clustering",
        "text": (
            f"How many files overlap a file, itself included, for {', '.join(layouts[-1][1].columns)}. "
            f"1 is best. Average depth: {averages}{_measured(layouts[-1][1])}"
        ),
        "caption": "Files by depth",
        "head": ["depth up to", *(when for when, _ in layouts)],
        "body": [[number_text(top), *(_files_at(each, top) for _, each in layouts)] for top in tops],
    }


def _measured(layout: ClusteringMeasures) -> str:
    measured = layout.overlap.measured_files
    return f", measured on {measured:,} of {counted(layout.files, 'file')}" if measured < layout.files else ""


def _files_at(layout: ClusteringMeasures, depth: int) -> str:
    return number_text(layout.depth_histogram.get(depth, 0))


def _layouts(table: TableReport) -> list[tuple[str, ClusteringMeasures]]:
    """Returns the layouts to compare: before and after the last clustering where both are known, and now."""
    found = []
    if table.before is not None and table.after is not None:
        found += [("before", table.before)]
        if table.clustered != table.version:
            found += [(f"after version {table.clustered}", table.after)]
    if table.layout is not None and table.layout.files:
        found += [("now", table.layout)]
    return found


def _reads_plot(table: TableReport) -> dict[str, Any] | None:
    if not table.reads or table.map is None:
        return None
    return {
        "name": "reads",
        "title": "Conditions by files",
        "text": (
            "Which files each condition reads, in the order of the layout map's first column. Files in full colour "
            "are read, pale ones are skipped"
        ),
        "caption": "What each condition reads",
        "head": ["condition", "from", "weight", "files read"],
        "body": [
            [
                _short(each.condition.sql, _LONGEST_PREDICATE),
                each.condition.source,
                number_text(each.condition.weight),
                each.problem or f"{int(each.read.sum()):,} of {len(each.read):,}",
            ]
            for each in table.reads
        ],
        "rows": len(table.reads),
    }


def _rows_plot(table: TableReport) -> dict[str, Any] | None:
    if not table.versions:
        return None
    newest = table.versions[-1]
    return {
        "name": "rows",
        "title": "Versions: rows",
        "text": f"Rows of {counted(len(table.versions), 'version')}, and what made each. Now {newest.rows:,}",
        "caption": f"{counted(min(_LISTED_VERSIONS, len(table.versions)), 'version')}, newest first",
        "head": ["version", "committed at", "operation", "rows", "files", "+files", "-files", "size", "readable"],
        "body": [
            [
                number_text(each.version),
                _time(each.committed_ms),
                each.operation,
                number_text(each.rows),
                number_text(each.files),
                number_text(each.files_added),
                number_text(each.files_removed),
                size_text(each.size_bytes),
                "yes" if each.readable else "no, cleaned",
            ]
            for each in table.versions[: -_LISTED_VERSIONS - 1 : -1]
        ],
    }


def _bytes_plot(table: TableReport) -> dict[str, Any] | None:
    if not table.versions:
        return None
    return {
        "name": "bytes",
        "title": "Versions: bytes",
        "text": f"Size of the files of each version, now {size_text(table.versions[-1].size_bytes)}",
    }


def _storage_plot(table: TableReport) -> dict[str, Any]:
    parts = _storage(table)
    return {
        "name": "storage",
        "title": "Bytes on disk",
        "text": "; ".join(f"{what}: {size_text(size)}" for what, size in parts),
        "caption": "What the data files in the folder are for",
        "head": ["what", "size"],
        "body": [[what, size_text(size)] for what, size in parts],
    }


def _storage(table: TableReport) -> list[tuple[str, int]]:
    found = table.storage
    parts = [("newest version", found.live), ("older versions", found.retained)]
    strays = [("left behind by writers", found.left_behind), ("of other tools", found.foreign)]
    return parts + [each for each in strays if each[1]]


def _log_text(table: TableReport) -> str:
    if not table.logs:
        return ""
    if not table.logs["log_records"]:
        return "no records in logs"
    return (
        f"{counted(table.logs['log_records'], 'record')} in {counted(table.logs['log_files'], 'log file')} "
        f"({size_text(table.logs['log_bytes'])}) of {counted(table.logs['unmerged_commits'], 'commit')}, the oldest of "
        f"{_instant(str(table.logs['oldest_log']))}"
    )


def _data(table: TableReport) -> dict[str, Any]:
    """Returns what the plots of a table draw."""
    found: dict[str, Any] = {
        "versions": [
            [each.version, _time(each.committed_ms), each.operation, each.rows, each.size_bytes, each.files]
            for each in table.versions
        ],
        "storage": [list(part) for part in _storage(table)],
        "depth": [
            [when, [[top, count] for top, count in layout.depth_histogram.items() if count]]
            for when, layout in _layouts(table)
        ],
    }
    if table.map is not None:
        found["map"] = _map_data(table.map, table.reads)
        found["reads"] = [_bins(each, table.map) for each in table.reads]
    return found


def _map_data(found: FileMap, reads: Sequence[ReportedCondition]) -> dict[str, Any]:
    data: dict[str, Any] = {
        "axes": [
            {
                "name": axis.column,
                "start": (axis.start * _PLACES).round().astype(int).tolist(),
                "end": (axis.end * _PLACES).round().astype(int).tolist(),
                "low": list(axis.lowest),
                "high": list(axis.highest),
                "ticks": list(axis.ticks),
            }
            for axis in found.axes
        ],
        "path": [_short(path, _LONGEST_PATH) for path in found.files["path"].to_pylist()],
        "rows": found.files["row_count"].to_pylist(),
        "bytes": found.files["size_bytes"].to_pylist(),
        "minute": [at // 60_000 for at in found.files["modified_ms"].to_pylist()],
    }
    if reads:
        total = sum(each.condition.weight for each in reads)
        often = sum(each.condition.weight * each.read[found.positions] for each in reads)
        data["often"] = np.round(np.asarray(often) / total, 3).tolist()
    return data


def _bins(reads: ReportedCondition, found: FileMap) -> list[Any]:
    """Returns a condition, and the share of files that it reads in each of some bins of files."""
    read = reads.read[found.positions].astype(float)
    edges = np.unique(np.linspace(0, len(read), min(_MOST_BINS, len(read)) + 1).astype(int))
    shares = np.add.reduceat(read, edges[:-1]) / np.diff(edges)
    return [_short(reads.condition.sql, _LONGEST_PREDICATE), np.round(shares, 3).tolist()]


def _values(table: TableReport | Unreadable) -> dict[str, Any]:
    found: dict[str, Any] = {"table": table.name, "verdict": table.verdict.to_dict()}
    if isinstance(table, Unreadable):
        return found
    return {
        **found,
        "location": table.location,
        "version": table.version,
        "rows": table.rows,
        "files": table.files,
        "bytes": table.size_bytes,
        "zorder": list(table.zorder),
        "curve": table.curve,
        "partition_by": list(table.partition_by),
        "table_type": table.table_type,
        "storage": vars(table.storage),
        "clustering": None if table.layout is None else table.layout.to_dict(),
        "last_clustering": {
            "version": table.clustered,
            "depth_before": None if table.before is None else table.before.average_depth,
            "depth_after": None if table.after is None else table.after.average_depth,
        },
        "logs": dict(table.logs),
        "conditions": [
            {
                "predicate": each.condition.sql,
                "source": each.condition.source,
                "weight": each.condition.weight,
                "files_read": int(each.read.sum()),
                "files": len(each.read),
                "problem": each.problem,
            }
            for each in table.reads
        ],
        "versions": [vars(each) for each in table.versions],
        "problems_of_the_index": list(table.problems),
    }


def _short(text: str, most: int) -> str:
    line = re.sub(r"\s+", " ", text)
    return line if len(line) <= most else f"{line[: most // 3]}…{line[-(most - most // 3 - 1) :]}"


def _time(time_ms: int) -> str:
    return f"{dt.datetime.fromtimestamp(time_ms / 1000, dt.timezone.utc):%Y-%m-%d %H:%M}"


def _instant(digits: str) -> str:
    return f"{digits[:4]}-{digits[4:6]}-{digits[6:8]} {digits[8:10]}:{digits[10:12]} UTC"


@functools.cache
def vega_script() -> str:
    """Returns the script, about 0.9 MB, so that it cannot end an HTML script element early.

    The library takes seconds to put it together, so a process does it once.

    Raises:
        UnsupportedError: The library is not installed.
    """
    try:
        import vl_convert  # noqa: PLC0415 # optional
    except ImportError as error:
        raise UnsupportedError(
            f"the report draws its plots with Vega, which is not installed ({error}); run "
            "pip install 'dbt-zlayout[report]', or ask for json"
        ) from error
    script: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def report_text(tables: Sequence[TableReport | Unreadable], path: str, size_bytes: int) -> str:
    """Returns where the report is, and the verdict on each table, worst first."""
    lines = [f"{path}: the report of {counted(len(tables), 'table')}, {size_text(size_bytes)}"]
    lines += [f"  {each.name}  {each.verdict.sentence}" for each in tables[:_MOST_LINES]]
    if len(tables) > _MOST_LINES:
        lines.append(f"  … and {counted(len(tables) - _MOST_LINES, 'more table')}")
    return "\n".join(lines)


def report_json(tables: Sequence[TableReport | Unreadable], path: str | None) -> str:
    """Returns the report as JSON, worst first, and where its page is."""
    return json_text({"path": path, "tables": [_values(each) for each in worst_first(tables)]})
