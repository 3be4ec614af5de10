"""A log entry: everything that one version changed, as one JSON file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dbt.adapters.zlayout.errors import CorruptError
from dbt.adapters.zlayout.timeline.action import Action
from dbt.adapters.zlayout.timeline.file_columns import files_from_columns, files_to_columns
from dbt.adapters.zlayout.timeline.files import DataFiles
from dbt.adapters.zlayout.timeline.json_file import from_json_bytes, read_fields, to_json_bytes

IndexSlices = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Commit:
    """One version of the table.

    Attributes:
        version: Position in the log, from 0.
        instant: The instant of the transaction.
        action: Its action.
        operation: What the user asked for (`Operation`, or another word).
        committed_ms: The writer's clock when it wrote this entry, milliseconds since the epoch.
        last_instant: The highest instant of this and all earlier versions.
        adds: Files that this version adds.
        removes: Paths of files that it removes (before it adds: a path in both is replaced).
        schema_json: Spark's StructType as JSON, opaque here; partition columns included.
        partition_by: Names of the partition columns.
        layout: How the files are clustered and sized; JSON.
        curve: Path of the curve model, or None.
        index: All live slices of each partition of the metadata table, oldest first.
        summary: What was done: rows, files, bytes, seconds; JSON.
        properties: Of the table; JSON.
        aborts: The instant that this entry rolled back for good, or None.
    """

    version: int
    instant: str
    action: Action
    operation: str
    committed_ms: int
    last_instant: str
    adds: DataFiles
    removes: tuple[str, ...]
    schema_json: str
    partition_by: tuple[str, ...]
    layout: Mapping[str, Any] = field(default_factory=dict)
    curve: str | None = None
    index: IndexSlices = field(default_factory=dict)
    summary: Mapping[str, Any] = field(default_factory=dict)
    properties: Mapping[str, Any] = field(default_factory=dict)
    aborts: str | None = None

    def to_json(self) -> bytes:
        """Return the bytes of the log entry."""
        return to_json_bytes(
            {
                "version": self.version,
                "instant": self.instant,
                "action": self.action.value,
                "operation": self.operation,
                "committed_ms": self.committed_ms,
                "last_instant": self.last_instant,
                "aborts": self.aborts,
                "summary": dict(self.summary),
                "schema_json": self.schema_json,
                "partition_by": list(self.partition_by),
                "layout": dict(self.layout),
                "curve": self.curve,
                "index": {name: list(slices) for name, slices in self.index.items()},
                "properties": dict(self.properties),
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
        header = CommitHeader.from_content(content, path)
        schema_json, partition_by, layout, curve, index, properties, removes, adds = read_fields(
            content,
            path,
            schema_json=str,
            partition_by=list,
            layout=dict,
            curve=(str, type(None)),
            index=dict,
            properties=dict,
            removes=list,
            adds=dict,
        )
        return cls(
            version=header.version,
            instant=header.instant,
            action=header.action,
            operation=header.operation,
            committed_ms=header.committed_ms,
            last_instant=header.last_instant,
            adds=files_from_columns(adds, tuple(partition_by), path),
            removes=tuple(removes),
            schema_json=schema_json,
            partition_by=tuple(partition_by),
            layout=layout,
            curve=curve,
            index={name: tuple(slices) for name, slices in index.items()},
            summary=header.summary,
            properties=properties,
            aborts=header.aborts,
        )


@dataclass(frozen=True)
class CommitHeader:
    """A version without its files, as the history lists it."""

    version: int
    instant: str
    action: Action
    operation: str
    committed_ms: int
    last_instant: str
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
        return cls.from_content(from_json_bytes(data, path), path)

    @classmethod
    def from_content(cls, content: dict[str, Any], path: str) -> CommitHeader:
        """Take the header from the parsed JSON of a log entry."""
        version, instant, action, operation, committed_ms, last_instant, summary, removes, adds, aborts = read_fields(
            content,
            path,
            version=int,
            instant=str,
            action=str,
            operation=str,
            committed_ms=int,
            last_instant=str,
            summary=dict,
            removes=list,
            adds=dict,
            aborts=(str, type(None)),
        )
        if action not in {member.value for member in Action}:
            raise CorruptError(f"{path}: unknown action {action!r}; a newer release may have written it: upgrade")
        added = adds.get("path")
        files_added = len(added) if isinstance(added, list) else 0
        return cls(
            version,
            instant,
            Action(action),
            operation,
            committed_ms,
            last_instant,
            summary,
            files_added,
            len(removes),
            aborts,
        )
