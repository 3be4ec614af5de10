"""The output of the run-operations on versions, as text or JSON: history, rollback, clean and publish."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dbt.adapters.zlayout.adapter.reports import json_text
from dbt.adapters.zlayout.quantities import aligned_lines, counted, size_text

if TYPE_CHECKING:
    from dbt.adapters.zlayout.spark.files.write_summary import CommitSummary
    from dbt.adapters.zlayout.timeline.retention.cleaning import CleanResult

_HISTORY = (
    "version",
    "committed at",
    "operation",
    "rows",
    "+rows",
    "~rows",
    "-rows",
    "+files",
    "-files",
    "bytes added",
)
_NUMBERS = (0, 3, 4, 5, 6, 7, 8, 9)
_FIGURES = ("rows", "rows_inserted", "rows_updated", "rows_deleted", "files_added", "files_removed", "bytes_added")


def history_report(table: str, rows: Sequence[Mapping[str, Any]], *, as_json: bool) -> str:
    """Returns the versions of a table, with times in UTC."""
    if as_json:
        return json_text([{**row, "committed_at": _utc(row["committed_at"])} for row in rows])
    cells = [
        (
            str(row["version"]),
            _utc(row["committed_at"]),
            row["operation"],
            *(_number(row[name]) for name in _FIGURES),
        )
        for row in rows
    ]
    return "\n".join([table, *aligned_lines([_HISTORY, *cells], right=_NUMBERS)])


def rollback_report(table: str, to_version: int, done: CommitSummary, *, as_json: bool) -> str:
    """Returns what a rollback did."""
    if as_json:
        return json_text({"table": table, "to_version": to_version, **done.to_dict()})
    return (
        f"{table}: version {done.version} restores version {to_version}: {counted(done.rows, 'row')}, "
        f"{counted(done.files_added, 'file')} restored, {counted(done.files_removed, 'file')} removed"
    )


def clean_report(cleaned: Mapping[str, CleanResult], *, dry_run: bool, as_json: bool) -> str:
    """Returns what a clean of some tables deleted or would delete."""
    if as_json:
        return json_text([{"table": table, "dry_run": dry_run, **vars(result)} for table, result in cleaned.items()])
    if not cleaned:
        return "No dbt-zlayout table to clean."
    verb = "would delete" if dry_run else "deleted"
    lines = []
    for table, result in cleaned.items():
        oldest = "" if result.oldest_version is None else f"; the oldest readable version is {result.oldest_version}"
        lines.append(f"{table}: {verb} {counted(result.files, 'file')} ({size_text(result.bytes)}){oldest}")
        lines += [f"  not deleted: {problem}" for problem in result.failed]
        if dry_run:
            lines += [f"  {path}" for path in result.paths]
    return "\n".join(lines)


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _utc(moment: dt.datetime) -> str:
    """Returns the time to the millisecond, in the form that ``zlayout_at(timestamp=…)`` accepts."""
    return f"{moment.astimezone(dt.timezone.utc):%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03d} UTC"


def publish_report(seen: Mapping[str, Mapping[str, int | None]], *, as_json: bool) -> str:
    """Returns the version of each table that readers of each format see.

    >>> print(publish_report({"shop.orders": {"delta": 7}, "shop.items": {}}, as_json=False))
    shop.orders: delta readers see version 7
    shop.items: not published
    """
    if as_json:
        return json_text([{"table": table, "published": dict(formats)} for table, formats in seen.items()])
    if not seen:
        return "No dbt-zlayout table to publish."
    lines = []
    for table, formats in seen.items():
        for name, version in formats.items():
            lines.append(f"{table}: {name} readers see {'no version' if version is None else f'version {version}'}")
        if not formats:
            lines.append(f"{table}: not published")
    return "\n".join(lines)
