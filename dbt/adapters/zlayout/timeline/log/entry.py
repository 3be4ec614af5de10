"""Log entries: everything that one version changed, as one JSON file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dbt.adapters.zlayout.timeline.files.data_files import DataFiles
from dbt.adapters.zlayout.timeline.files.file_columns import files_from_columns, files_to_columns
from dbt.adapters.zlayout.timeline.files.json_file import from_json_bytes, read_fields, to_json_bytes
from dbt.adapters.zlayout.timeline.files.paths import data_paths
from dbt.adapters.zlayout.timeline.log.state import Step, TableState, read_state, read_step


@dataclass(frozen=True, kw_only=True)
class Commit(TableState):
    """One version of the table.

    Attributes:
        adds: Files that this version adds.
        removes: Paths of files that it removes (removals come first: a path in both is replaced).
        summary: Rows, files, bytes and seconds of the operation; JSON.
        aborts: The instant that this entry permanently rolled back, or None.
    """

    adds: DataFiles
    removes: tuple[str, ...]
    summary: Mapping[str, Any] = field(default_factory=dict)
    aborts: str | None = None

    def to_json(self) -> bytes:
        """Return the bytes of the log entry."""
        return to_json_bytes(
            {
                **self.state_fields(),
                "aborts": self.aborts,
                "summary": dict(self.summary),
                "removes": list(self.removes),
                "adds": files_to_columns(self.adds),
            }
        )

    @classmethod
    def from_json(cls, data: bytes, path: str) -> Commit:
        """Parse the bytes of a log entry.

        Raises:
            CorruptError: They are not what `to_json` writes.
        """
        content = from_json_bytes(data, path)
        state = read_state(content, path)
        summary, removes, adds, aborts = _read_change(content, path)
        return cls(
            **state,
            adds=files_from_columns(adds, state["partition_by"], path),
            removes=data_paths(removes, path),
            summary=summary,
            aborts=aborts,
        )


@dataclass(frozen=True, kw_only=True)
class CommitHeader(Step):
    """A version without its files, as listed in the history.

    Attributes:
        summary: Rows, files, bytes and seconds of the operation.
        files_added: Number of files that it added.
        files_removed: Number of files that it removed.
        aborts: The instant that it permanently rolled back, or None.
    """

    summary: Mapping[str, Any]
    files_added: int
    files_removed: int
    aborts: str | None

    @classmethod
    def from_json(cls, data: bytes, path: str) -> CommitHeader:
        """Parse the header of a log entry.

        Raises:
            CorruptError: The bytes are not a log entry.
        """
        content = from_json_bytes(data, path)
        summary, removes, adds, aborts = _read_change(content, path)
        added = adds.get("path")
        return cls(
            **read_step(content, path),
            summary=summary,
            files_added=len(added) if isinstance(added, list) else 0,
            files_removed=len(removes),
            aborts=aborts,
        )


def _read_change(content: Mapping[str, Any], path: str) -> tuple[Any, ...]:
    return read_fields(content, path, summary=dict, removes=list, adds=dict, aborts=(str, type(None)))
