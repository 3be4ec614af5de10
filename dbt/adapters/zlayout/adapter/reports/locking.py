"""The content of a lock file, and the output of zlayout_lock."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbt.adapters.zlayout.adapter.reports import json_text
from dbt.adapters.zlayout.errors import ConfigError
from dbt.adapters.zlayout.quantities import counted

TOLERANCE = 0.25
LAYOUT = ("zorder", "partition_by", "bloom", "lookup", "stats_expressions")
"""What a lock keeps of a table's settings, by key."""
_FORMAT = 1


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
            conditions.append(LockedCondition(str(condition), float(reads["opened"]), int(read), int(total)))
        # Locks of earlier releases have no indexes but Bloom filters.
        lists = {
            key: values[key] if key in ("zorder", "partition_by", "bloom") else values.get(key, ()) for key in LAYOUT
        }
        return cls({key: tuple(map(str, names)) for key, names in lists.items()}, tuple(conditions))


@dataclass(frozen=True)
class Lock:
    """The content of a lock file.

    Attributes:
        tables: Each locked table, by ``schema.table``.
        tolerance: By which share a condition may read more before the check fails.
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
            ConfigError: It is no lock file, or one of a later release.
        """
        try:
            content = json.loads(text)
            version = content["format_version"]
            if version != _FORMAT:
                raise ConfigError([f"format_version is {version!r}; this release reads {_FORMAT}"], subject)
            tables = {str(name): LockedTable.of_dict(table) for name, table in content["tables"].items()}
            return cls(tables, float(content["tolerance"]))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ConfigError([f"is not a lock file ({error}); write it again with zlayout_lock"], subject) from error


@dataclass(frozen=True)
class Worse:
    """A condition that reads more than the lock allows.

    Attributes:
        table: ``schema.table``.
        condition: The condition; None if the whole table is gone.
        locked: What it read when the lock was written; None if the whole table is gone.
        files_read: Files that it reads now; None if that is unknown.
        files_total: Files of the table now; None if that is unknown.
        cause: Why.
    """

    table: str
    condition: str | None
    locked: LockedCondition | None
    files_read: int | None
    files_total: int | None
    cause: str

    def sentence(self) -> str:
        """Returns what is worse, and the cause."""
        if self.condition is None or self.locked is None:
            return f"{self.table}: {self.cause}"
        if self.files_read is None or self.files_total is None:
            return f"{self.table}: `{self.condition}`: {self.cause}"
        was = f"{self.locked.files_read:,}"
        if self.locked.files_total != self.files_total:
            was += f" of {self.locked.files_total:,}"
        now = f"now reads {self.files_read:,} of {counted(self.files_total, 'file')}, was {was}"
        return f"{self.table}: `{self.condition}` {now}; cause: {self.cause}"

    def to_dict(self) -> dict[str, Any]:
        """Returns it as plain values for JSON."""
        locked = None if self.locked is None else vars(self.locked)
        return {**vars(self), "locked": locked, "sentence": self.sentence()}


def check_report(found: Sequence[Worse], checked: int, *, as_json: bool) -> str:
    """Returns what reads more than the lock allows, of a number of conditions."""
    if as_json:
        return json_text([each.to_dict() for each in found])
    if not found:
        return f"{counted(checked, 'condition')} {'reads' if checked == 1 else 'read'} no more than the lock allows."
    return "\n".join(each.sentence() for each in found)
