"""The lock: what important conditions read, in a file for git, and which of them read more now, and why."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbt.adapters.zlayout.adapter.dbt_errors import one_line
from dbt.adapters.zlayout.adapter.node_lookup import (
    Nodes,
    chosen_tables,
    opened_table,
    table_if_there,
    table_of,
    tables_of,
)
from dbt.adapters.zlayout.adapter.operations.advising import ProjectWorkload
from dbt.adapters.zlayout.adapter.operations.arguments import number_between
from dbt.adapters.zlayout.adapter.operations.progress import with_progress
from dbt.adapters.zlayout.adapter.output import json_text, write_whole
from dbt.adapters.zlayout.errors import CancelledError, ConfigError, UnsupportedError, ZlayoutError
from dbt.adapters.zlayout.predicate.literals import folded_name, plain_name
from dbt.adapters.zlayout.quantities import counted
from dbt.adapters.zlayout.table.explanation import ConditionReads
from dbt.adapters.zlayout.table.ztable import ZTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOLERANCE = 0.25
LAYOUT = ("zorder", "partition_by", "bloom", "lookup", "stats_expressions")
"""What a lock keeps of a table's settings, by key."""
_FORMAT = 1
LOCK_FILE = "layout.lock.json"
_WRITE = "`dbt run-operation zlayout_lock` or `zlayout lock`"

_ADD = "add them to the model's config, or with zlayout_index"
_LOST = (
    ("zorder", "the model no longer clusters by {}"),
    ("partition_by", "the model is no longer partitioned by {}"),
    ("bloom", f"the table no longer has Bloom filters on {{}}: {_ADD}"),
    ("lookup", f"the table no longer has lookup indexes of {{}}: {_ADD}"),
    ("stats_expressions", f"the table no longer has statistics of {{}}: {_ADD}"),
)
_MOST_CONDITIONS = 20
_MOST_TOLERANCE = 10.0
_MOST_FILES = 1 << 40
_MOST_BYTES = 16 << 20


@dataclass(frozen=True)
class LockedCondition:
    """What a condition read when the lock was written.

    Attributes:
        opened: Share of the rows in the files that it read, 0 … 1. A check compares only this.
        files_read: Files that it read, for people.
        files_total: Files of the table then.
    """

    condition: str
    opened: float
    files_read: int
    files_total: int


@dataclass(frozen=True)
class LockedTable:
    """One table of a lock.

    Attributes:
        layout: The columns and expressions of each setting of `LAYOUT`.
        conditions: What its conditions read.
    """

    layout: Mapping[str, tuple[str, ...]]
    conditions: tuple[LockedCondition, ...]

    def to_dict(self) -> dict[str, Any]:
        """Returns the table as a lock file has it."""
        conditions = {
            each.condition: {"opened": each.opened, "files": f"{each.files_read} of {each.files_total}"}
            for each in self.conditions
        }
        return {**{key: list(self.layout[key]) for key in LAYOUT}, "conditions": conditions}

    @classmethod
    def of_dict(cls, values: Mapping[str, Any]) -> LockedTable:
        """Reads a table of a lock file.

        Raises:
            AttributeError, KeyError, TypeError, ValueError: It is damaged.
        """
        conditions = []
        for condition, reads in values["conditions"].items():
            read, _, total = str(reads["files"]).partition(" of ")
            if not 0 <= int(read) <= int(total) < _MOST_FILES:
                raise ValueError(f"files: {str(reads['files'])[:40]!r} is not 'READ of TOTAL'")
            conditions.append(LockedCondition(str(condition), _share(reads, "opened", 1.0), int(read), int(total)))
        # Locks of earlier releases have no indexes but Bloom filters.
        lists = {
            key: values[key] if key in ("zorder", "partition_by", "bloom") else values.get(key, ()) for key in LAYOUT
        }
        for key, names in lists.items():
            if not isinstance(names, Sequence) or isinstance(names, str):
                raise TypeError(f"{key}: not a list")
        return cls({key: tuple(map(str, names)) for key, names in lists.items()}, tuple(conditions))


@dataclass(frozen=True)
class Lock:
    """The content of a lock file.

    Attributes:
        tables: Each locked table, by ``schema.table``.
        tolerance: The share by which a condition may read more before the check fails.
    """

    tables: Mapping[str, LockedTable]
    tolerance: float = TOLERANCE

    def to_text(self) -> str:
        """Returns the file's text: sorted, one value a line, so that git shows what changes."""
        tables = {name: table.to_dict() for name, table in sorted(self.tables.items())}
        content = {"format_version": _FORMAT, "tolerance": self.tolerance, "tables": tables}
        return json.dumps(content, indent=2, ensure_ascii=False, sort_keys=False) + "\n"

    @classmethod
    def of_text(cls, text: str, subject: str) -> Lock:
        """Reads the text of a lock file.

        Raises:
            ConfigError: It is no lock file.
            UnsupportedError: A later release wrote it.
        """
        try:
            content = json.loads(text)
            version = content["format_version"]
            if isinstance(version, int) and version > _FORMAT:
                raise UnsupportedError(
                    f"{subject} has format_version {version}, and this release reads {_FORMAT}: update dbt-zlayout, or "
                    f"delete the file and write it again with {_WRITE}"
                )
            if version != _FORMAT:
                raise ValueError(f"format_version: {version!r} is not {_FORMAT}")
            tables = {str(name): LockedTable.of_dict(table) for name, table in content["tables"].items()}
            return cls(tables, _share(content, "tolerance", _MOST_TOLERANCE))
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise ConfigError([f"is not a lock file ({error}); write it again with {_WRITE}"], subject) from error


@dataclass(frozen=True)
class Regression:
    """A condition that reads more than the lock allows.

    Attributes:
        table: ``schema.table``.
        locked: The condition, and what it read when the lock was written; None if the whole table is gone.
        files_read: Files that it reads now; None if that is unknown.
        files_total: Files of the table now; None if that is unknown.
        cause: Why.
    """

    table: str
    locked: LockedCondition | None
    files_read: int | None
    files_total: int | None
    cause: str

    def sentence(self) -> str:
        """Returns what is worse, and the cause."""
        if self.locked is None:
            return f"{self.table}: {self.cause}"
        subject = f"{self.table}: `{self.locked.condition}`"
        if self.files_read is None or self.files_total is None:
            return f"{subject}: {self.cause}"
        was = f"{self.locked.files_read:,}"
        if self.locked.files_total != self.files_total:
            was += f" of {self.locked.files_total:,}"
        now = f"now reads {self.files_read:,} of {counted(self.files_total, 'file')}, was {was}"
        return f"{subject} {now}; cause: {self.cause}"

    def to_dict(self) -> dict[str, Any]:
        """Returns it as plain values for JSON."""
        return {
            "table": self.table,
            "condition": None if self.locked is None else self.locked.condition,
            "locked": None if self.locked is None else vars(self.locked),
            "files_read": self.files_read,
            "files_total": self.files_total,
            "cause": self.cause,
            "sentence": self.sentence(),
        }


def check_text(found: Sequence[Regression], checked: int, *, as_json: bool) -> str:
    """Returns what reads more than the lock allows, of a number of conditions."""
    if as_json:
        return json_text([each.to_dict() for each in found])
    if not found:
        return f"{counted(checked, 'condition')} {'reads' if checked == 1 else 'read'} no more than the lock allows."
    return "\n".join(each.sentence() for each in found)


def read_lock(path: Path) -> Lock:
    """Reads a lock file.

    Raises:
        ConfigError: It does not exist, or is no lock file.
    """
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise ConfigError([f"is larger than {_MOST_BYTES >> 20} MB, so it is not a lock file"], str(path))
        text = path.read_text("utf-8")
    except FileNotFoundError as error:
        raise ConfigError([f"does not exist; write it with {_WRITE}"], str(path)) from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError([f"cannot be read ({error}); write it again with {_WRITE}"], str(path)) from error
    return Lock.of_text(text, str(path))


def made_lock(session: SparkSession, model: str | None, nodes: Nodes, target: Path | None, tolerance: object) -> Lock:
    """Measures what the conditions of a project read now.

    Args:
        model: The only model to lock; None for all.
        nodes: ``graph.nodes``, or the nodes of a manifest.
        target: As for `ProjectWorkload`.
        tolerance: The share by which a condition may read more; None for a quarter.
    """
    allowed = TOLERANCE if tolerance is None else _tolerance(tolerance)
    workload = ProjectWorkload(session, nodes, target)
    tables = {}
    chosen = chosen_tables(session, model, nodes)
    for table in with_progress(chosen, "measuring the tables", "table"):
        conditions = [each.sql for each in workload.foremost(table, _MOST_CONDITIONS)]
        found = [reads for reads in table.reads(conditions) if reads is not None]
        tables[plain_name(table.name)] = _locked(table, found)
    return Lock(tables, allowed)


def _check_lock(session: SparkSession, lock: Lock, model: str | None, nodes: Nodes) -> tuple[list[Regression], int]:
    """Returns the conditions that read more than the lock allows, and tables that are gone; and how many were checked.

    Shares are compared, not counts: a condition may open about one file more, since small data has few files.

    Args:
        model: The only model to check; None for all tables of the lock.
        nodes: ``graph.nodes``, or the nodes of a manifest.

    Raises:
        ConfigError: The lock does not have the table of the model.
    """
    if model is not None:
        table = opened_table(session, table_of(model, nodes))
        found = check_table(table, lock)
        return found, len(lock.tables[plain_name(table.name)].conditions)
    spelled = {folded_name(each): each for each in tables_of(nodes)}
    found = []
    with_conditions = sorted((name, locked) for name, locked in lock.tables.items() if locked.conditions)
    for name, locked in with_progress(with_conditions, "measuring the tables", "table"):
        found += _of_table(session, name, spelled.get(folded_name(name)), locked, lock.tolerance)
    return found, sum(len(each.conditions) for each in lock.tables.values())


def _of_table(
    session: SparkSession, name: str, spelled: str | None, locked: LockedTable, tolerance: float
) -> list[Regression]:
    """Returns the conditions on a table that read more than a lock allows; one entry if the table cannot be read.

    Args:
        name: ``schema.table``, as in the lock.
        spelled: The name in backquotes; None if the project has no such table.
    """
    why = f"the table does not exist, or is no table of this project; build it, or write the lock again with {_WRITE}"
    try:
        table = None if spelled is None else table_if_there(session, spelled)
        if table is not None:
            return list(_regressions(table, name, locked, tolerance))
    except CancelledError:
        raise
    except ZlayoutError as error:
        why = one_line(error)
    return [Regression(name, None, None, None, why)]


def check_table(table: ZTable, lock: Lock) -> list[Regression]:
    """Returns the conditions on one table that read more than a lock allows.

    Raises:
        ConfigError: The lock does not have the table.
    """
    name = plain_name(table.name)
    if name not in lock.tables:
        raise ConfigError([f"the lock has no table {name}; write it again with {_WRITE}"], LOCK_FILE)
    return list(_regressions(table, name, lock.tables[name], lock.tolerance))


def _regressions(table: ZTable, name: str, locked: LockedTable, tolerance: float) -> Iterator[Regression]:
    found = table.reads([each.condition for each in locked.conditions])
    for condition, reads in zip(locked.conditions, found, strict=True):
        if reads is None:
            misfit = _misfit(table, condition.condition)
            why = f"{misfit}; change the model or the condition, or write the lock again with {_WRITE}"
            yield Regression(name, condition, None, None, why)
        elif reads.rows_total and not _within(condition, reads, tolerance, len(locked.layout["zorder"])):
            cause = _cause(table, locked, reads)
            yield Regression(name, condition, reads.files_read, reads.files_total, cause)


def _misfit(table: ZTable, condition: str) -> str:
    """Returns why Spark cannot read a condition."""
    try:
        table.explain(condition)
    except ZlayoutError as error:
        return "; ".join(error.problems) if isinstance(error, ConfigError) else one_line(error)
    return "the condition does not fit the table's columns any more"


def _within(locked: LockedCondition, reads: ConditionReads, tolerance: float, keys: int) -> bool:
    """Returns whether a condition reads as the lock allows, in a table that may have fewer files now.

    Besides the rows that it wants, a condition reads what else is in the files at the edges: about ``n ** (-1 / k)`` of
    the rows in n files that are clustered by k keys. This is more if the files are fewer.
    """
    edges, edges_then = (math.pow(max(1, each), -1 / max(1, keys)) for each in (reads.files_total, locked.files_total))
    share = locked.opened + max(0.0, edges - edges_then)
    return reads.opened <= max(share * (1 + tolerance), share + 1.5 / max(1, reads.files_total)) + 1e-9


def _cause(table: ZTable, locked: LockedTable, reads: ConditionReads) -> str:
    now = _layout_of(table)
    lost = [
        sentence.format(", ".join(gone))
        for key, sentence in _LOST
        # A partition column needs no place among the keys.
        if (gone := [each for each in locked.layout[key] if each not in (*now[key], *now["partition_by"])])
    ]
    if lost:
        return "; ".join(lost)
    useless = [each for each in reads.parts if each.is_useless]
    if useless:
        return f"{useless[0].sql} cannot skip files: {useless[0].why_not}"
    if now["zorder"] != locked.layout["zorder"]:
        return f"the model clusters by {', '.join(now['zorder'])} instead of {', '.join(locked.layout['zorder'])}"
    return "files overlap more than when the lock was written; cluster the table (zlayout_cluster)"


def _layout_of(table: ZTable) -> dict[str, tuple[str, ...]]:
    information = table.information()
    return {key: tuple(information[key]) for key in LAYOUT}


def _locked(table: ZTable, found: Sequence[ConditionReads]) -> LockedTable:
    return LockedTable(
        _layout_of(table),
        tuple(
            LockedCondition(each.condition, round(each.opened, 4), each.files_read, each.files_total)
            for each in sorted(found, key=lambda each: each.condition)
        ),
    )


def _tolerance(given: object) -> float:
    return number_between("zlayout_lock: tolerance", given, 0.0, _MOST_TOLERANCE)


def _share(values: Mapping[str, Any], key: str, most: float) -> float:
    found = float(values[key])
    if not 0 <= found <= most:
        raise ValueError(f"{key}: {values[key]!r} is not a number from 0 to {most:g}")
    return found


def _lock_before(path: Path, *, required: bool) -> Lock | None:
    """Returns what a lock file has; None without one, or if it is not required and cannot be read."""
    if not path.exists():
        return None
    try:
        return read_lock(path)
    except ConfigError:
        if required:
            raise
        return None


def lock_report(
    session: SparkSession,
    model: str | None,
    nodes: Nodes,
    target: Path | None,
    path: Path,
    *,
    check: bool = False,
    tolerance: object = None,
    as_json: bool = False,
) -> tuple[str, bool]:
    """Writes a lock file, or checks the tables against one.

    Args:
        model: The only model; None for all. A lock of one model keeps what the file has of other tables.
        nodes: ``graph.nodes``, or the nodes of a manifest.
        target: As for `ProjectWorkload`.
        path: The lock file.
        check: Whether to check instead of writing.
        tolerance: As for `made_lock`. None for that of the file, if there is one.

    Returns:
        The report, and whether the check passes.

    Raises:
        ConfigError: The file is missing or damaged, or cannot be written, or no condition is known.
    """
    if check:
        lock = read_lock(path)
        if tolerance is not None:
            lock = replace(lock, tolerance=_tolerance(tolerance))
        found, checked = _check_lock(session, lock, model, nodes)
        return check_text(found, checked, as_json=as_json), not found
    before = _lock_before(path, required=model is not None)
    lock = made_lock(session, model, nodes, target, tolerance)
    if not any(table.conditions for table in lock.tables.values()):
        raise ConfigError(
            ["no condition is known: run or compile the project, or give its models a workload"], "zlayout_lock"
        )
    if before is not None:
        kept = before.tables if model is not None else {}
        lock = Lock({**kept, **lock.tables}, before.tolerance if tolerance is None else lock.tolerance)
    text = lock.to_text()
    write_whole(path, text)
    conditions = [len(each.conditions) for each in lock.tables.values() if each.conditions]
    line = f"{path}: {counted(sum(conditions), 'condition')} on {counted(len(conditions), 'table')}"
    return (text.rstrip() if as_json else line), True
