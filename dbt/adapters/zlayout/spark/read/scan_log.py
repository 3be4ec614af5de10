"""The scan log: one line for each scan that a file index has planned, so that advice knows what queries ask.

It is a folder of text files with one JSON object per line. Nothing here may stop or slow a query: a line that cannot be
written is left out, and the folder never takes more than about 16 MB.
"""

from __future__ import annotations

import json
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dbt.adapters.zlayout.config.scalars import word_of
from dbt.adapters.zlayout.config.table_type import INSTANT, OP, SEQ
from dbt.adapters.zlayout.config.workload import WeightedCondition, merged
from dbt.adapters.zlayout.curve.value_ranges import within_ranges
from dbt.adapters.zlayout.errors import ConfigError
from dbt.adapters.zlayout.predicate.expr import (
    And,
    Compare,
    Constant,
    Expr,
    In,
    IsNotNull,
    IsNotTrue,
    IsNull,
    IsTrue,
    Not,
    NotIn,
    NotStartsWith,
    Or,
    StartsWith,
    Unknown,
    columns_of,
    leaves,
)
from dbt.adapters.zlayout.predicate.literals import folded_name, literal
from dbt.adapters.zlayout.predicate.normal_form import conjuncts, normal_form

SCAN_LOG = "spark.zlayout.scanLog"
CONSTANTS = "spark.zlayout.scanLogConstants"
SCANS_FOLDER = "zlayout/scans"
"""Where a dbt project has its scan log, below its target folder."""
SOURCE = "scan log"

_LOG = logging.getLogger(__name__)
_MOST_LINE_BYTES = 4 << 10
_MOST_FILE_BYTES = 1 << 20
_MOST_FILES = 16
_MOST_VALUES, _MOST_RANGES = 100, 12
_MOST_TEXT = 3 << 10
_LOG_COLUMNS = frozenset({OP, INSTANT, SEQ})
_SUFFIX = ".jsonl"
_URI = re.compile(r"[A-Za-z][\w+.-]+:/")
# Names in backquotes stay. Literals of other types begin with a word: DATE '2024-01-31', X'0A'.
_NAME_OR_LITERAL = re.compile(
    r"`(?:[^`]|``)*`"
    r"|(?:\b(?:DATE|TIME|TIMESTAMP(?:_NTZ|_LTZ)?|INTERVAL|X)\s*)?'(?:[^'\\]|\\.)*'"
    r"|(?<![\w.`])\d[\w.]*",
    re.DOTALL | re.IGNORECASE,
)


@dataclass(frozen=True)
class LoggedScan:
    """One line of the log.

    Attributes:
        at_ms: When the scan was planned, in milliseconds since 1970.
        table: ``schema.table``.
        version: The version that was read.
        shape: The conditions with ``?`` for each constant; ``''`` without conditions.
        where: The conditions with their constants, as SQL; None if the log leaves constants out.
        files_read: Files that the scan reads.
        bytes_read: Size of the files that the scan reads.
        seconds: How long planning took.
    """

    at_ms: int
    table: str
    version: int
    shape: str
    where: str | None
    files_total: int
    files_read: int
    bytes_total: int
    bytes_read: int
    seconds: float


class ScanLog:
    """Appends lines to a folder, from any thread. Several processes can write to one folder.

    Args:
        folder: The folder. It is created with the first line.
        constants: Whether lines have the constants of conditions.
    """

    def __init__(self, folder: Path, *, constants: bool = True) -> None:
        self.folder = folder
        self.constants = constants
        self._lock = threading.Lock()
        self._file: Path | None = None
        self._bytes = 0

    def add(self, scan: LoggedScan) -> None:
        """Appends a line. Never raises."""
        try:
            line = (json.dumps(vars(scan), ensure_ascii=False) + "\n").encode()
            if len(line) > _MOST_LINE_BYTES:
                line = (json.dumps(vars(replace(scan, where=None, shape="…")), ensure_ascii=False) + "\n").encode()
            with self._lock:
                try:
                    self._append(line)
                except FileNotFoundError:  # someone has deleted the folder
                    self._file = None
                    self._append(line)
        except Exception:
            _LOG.debug("a scan is not logged", exc_info=True)

    def _append(self, line: bytes) -> None:
        if self._file is None or self._bytes + len(line) > _MOST_FILE_BYTES:
            self.folder.mkdir(parents=True, exist_ok=True)
            for old in sorted(self.folder.glob(f"*{_SUFFIX}"))[: -(_MOST_FILES - 1)]:
                old.unlink(missing_ok=True)
            self._file = self.folder / f"{time.time_ns():020}-{os.getpid()}{_SUFFIX}"
            self._bytes = 0
        with self._file.open("ab") as file:
            file.write(line)
        self._bytes += len(line)


@dataclass
class _Process:
    """The logs of this process.

    Attributes:
        log: The log of the sessions that do not say otherwise.
        any_log: Whether a session may have a log. Until then, no scan asks its session.
        opened: The logs, by folder and by whether they have constants.
    """

    log: ScanLog | None = None
    any_log: bool = False
    opened: dict[tuple[Path, bool], ScanLog] = field(default_factory=dict)


_PROCESS = _Process()


def active_log(setting: Callable[[str], str]) -> ScanLog | None:
    """Returns the log of a session; None if its scans are not logged.

    Args:
        setting: Returns a setting of the session, ``''`` if it is not set.

    Raises:
        ConfigError: A value is not allowed.
    """
    if not _PROCESS.any_log:
        return None
    return _log_of(setting(SCAN_LOG), setting(CONSTANTS), _PROCESS.log)


def start_for_session(folder: str, constants: str) -> None:
    """Checks the settings of a session, whose scans are logged from now on.

    Args:
        folder: ``spark.zlayout.scanLog``; ``''`` if it is not set.
        constants: ``spark.zlayout.scanLogConstants``, in the same way.

    Raises:
        ConfigError: A value is not allowed.
    """
    found = _log_of(folder, constants, None)
    _PROCESS.any_log = _PROCESS.any_log or found is not None


def start_for_project(parameters: Mapping[str, str], default: Path | None) -> None:
    """Logs the scans of this process, except those of sessions that say otherwise.

    Args:
        parameters: The Spark configuration of the project's profile.
        default: The folder if the configuration names none; None for no log.

    Raises:
        ConfigError: A value is not allowed.
    """
    folder, constants = (str(parameters.get(key, "")) for key in (SCAN_LOG, CONSTANTS))
    _PROCESS.log = _log_of(folder or str(default or ""), constants, None)
    _PROCESS.any_log = _PROCESS.any_log or _PROCESS.log is not None


def _log_of(folder: str, constants: str, otherwise: ScanLog | None) -> ScanLog | None:
    """Returns the log that settings ask for; ``otherwise``, if they do not say."""
    word = constants.strip().lower()
    if word not in ("", "true", "false"):
        raise ConfigError([f"{CONSTANTS}: {constants!r} is not true or false"])
    # A profile's YAML makes false of `off`.
    if word_of(folder) == "off":
        return None
    if _URI.match(folder):
        raise ConfigError([f"{SCAN_LOG}: {folder!r} is a URI; name a local folder, or 'off'"])
    path = Path(folder) if folder else None if otherwise is None else otherwise.folder
    if path is None:
        return None
    with_constants = word == "true" if word else otherwise is None or otherwise.constants
    found = _PROCESS.opened.get((path, with_constants))
    return found or _PROCESS.opened.setdefault((path, with_constants), ScanLog(path, constants=with_constants))


def read_scans(folder: str | os.PathLike[str]) -> list[LoggedScan]:
    """Returns the lines of a log, oldest first. Lines that cannot be read are left out.

    Args:
        folder: The folder; one that does not exist has no lines.
    """
    found = [scan for path in sorted(Path(folder).glob(f"*{_SUFFIX}")) for scan in _lines_of(path)]
    return sorted(found, key=lambda each: each.at_ms)


def logged_workload(scans: Iterable[LoggedScan], tables: Collection[str]) -> tuple[WeightedCondition, ...]:
    """Returns the conditions that scans of a table had, with how often they had them as weights.

    Args:
        scans: From `read_scans`. Those without constants are left out.
        tables: Names that the table has, ``schema.table`` with or without backquotes: a merge-on-read table has one for
            its files too.
    """
    plain = set(map(folded_name, tables))
    return merged(
        WeightedCondition(scan.where or "true", 1.0, SOURCE)
        for scan in scans
        if folded_name(scan.table) in plain and scan.where is not None
    )


def _lines_of(path: Path) -> Iterator[LoggedScan]:
    try:
        text = path.read_text("utf-8", errors="replace") if path.stat().st_size <= 2 * _MOST_FILE_BYTES else ""
    except OSError:
        return
    for line in text.splitlines():
        try:
            yield _scan_of(json.loads(line))
        except (ValueError, TypeError, KeyError, RecursionError, OverflowError):  # noqa: PERF203 # a damaged line is left out
            continue


def _scan_of(values: Any) -> LoggedScan:
    where = values["where"]
    numbers = ("files_total", "files_read", "bytes_total", "bytes_read")
    return LoggedScan(
        at_ms=int(values["at_ms"]),
        table=str(values["table"]),
        version=int(values["version"]),
        shape=str(values["shape"]),
        where=None if where is None else str(where),
        seconds=float(values["seconds"]),
        **{name: int(values[name]) for name in numbers},
    )


def condition_text(predicate: Expr) -> str:
    """Returns the conditions of a predicate that a log can hold, as SQL that Spark reads; ``''`` if there are none.

    Parts that pruning does not understand are left out, and so are tests for null beside other conditions on the
    column. A list that is too long for a line becomes a few ranges.
    """
    kept = [part for part in _telling(conjuncts(normal_form(predicate))) if not _has_unknown(part)]
    if not kept:
        return ""
    text = ""
    for most_values, ranges in ((_MOST_VALUES, _MOST_RANGES), (_MOST_RANGES, _MOST_RANGES), (1, 1)):
        text = And(tuple(_short(part, most_values, ranges) for part in kept)).sql()
        if len(text) <= _MOST_TEXT:
            break
    return text


def _telling(parts: Sequence[Expr]) -> list[Expr]:
    """Returns the parts without those on columns of logs, which a query of a merge-on-read table adds.

    Tests for null, which Spark adds to other conditions, are left out too, unless there are no others.
    """
    asked = [part for part in parts if not any(path[0] in _LOG_COLUMNS for path in columns_of(part))]
    return [part for part in asked if not isinstance(part, IsNotNull)] or asked


def shape_of(predicate: Expr) -> str:
    """Returns the conditions of a predicate with ``?`` for each constant; ``''`` if there are none."""
    parts = _telling(conjuncts(normal_form(predicate)))
    return " AND ".join(dict.fromkeys(without_literals(_shape(part)) for part in parts))


def without_literals(sql: str) -> str:
    """Returns SQL with ``?`` for each literal.

    >>> without_literals("lower(`a 1`) = 'x 5' OR date_add(day, 7) > DATE '2024-01-31' OR n2 % 1.5D = 3")
    'lower(`a 1`) = ? OR date_add(day, ?) > ? OR n2 % ? = ?'
    """
    return _NAME_OR_LITERAL.sub(lambda found: found[0] if found[0].startswith("`") else "?", sql)


def looks_up_log_keys(predicate: Expr) -> bool:
    """Returns whether a scan wants no base rows: a query of a merge-on-read table also scans the keys of the logs."""
    return any(
        columns_of(part) == {(OP,)} and not any(isinstance(leaf, IsNull) for leaf in leaves(part))
        for part in conjuncts(normal_form(predicate))
    )


def _has_unknown(part: Expr) -> bool:
    return any(isinstance(leaf, Unknown) for leaf in leaves(part))


def _short(expr: Expr, most_values: int, ranges: int) -> Expr:
    match expr:
        case And(children) | Or(children):
            return type(expr)(tuple(_short(each, most_values, ranges) for each in children))
        case Not(child) | IsTrue(child) | IsNotTrue(child):
            return replace(expr, child=_short(child, most_values, ranges))
        case In(operand, values) if len(values) > most_values:
            return within_ranges(operand, values, values, ranges)
        case In(operand, values, has_null) if len(values) > _MOST_RANGES:
            # The text of the predicate itself leaves out what comes after the first values.
            listed = [*map(literal, values.sort()), *(["NULL"] if has_null else [])]
            return Unknown(f"{operand.sql()} IN ({', '.join(listed)})", "")
        case NotIn(_, values) if len(values) > _MOST_RANGES:
            return Constant(True)
    return expr


def _shape(expr: Expr) -> str:  # noqa: PLR0911 - one return per kind of node
    match expr:
        case And(children):
            return " AND ".join(f"({_shape(child)})" if isinstance(child, Or) else _shape(child) for child in children)
        case Or(children):
            return f"({' OR '.join(dict.fromkeys(map(_shape, children)))})"
        case IsTrue(child) | IsNotTrue(child) | Not(child):
            return f"({_shape(child)}) {type(expr).__name__}"
        case Compare(op, operand):
            return f"{operand.sql()} {op.value} ?"
        case In(operand) | NotIn(operand):
            return f"{operand.sql()} {'IN' if isinstance(expr, In) else 'NOT IN'} (?)"
        case StartsWith(operand) | NotStartsWith(operand):
            return f"{operand.sql()} {'LIKE' if isinstance(expr, StartsWith) else 'NOT LIKE'} ?"
        case Unknown():
            return "…"
    return expr.sql()
