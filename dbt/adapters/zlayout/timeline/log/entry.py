"""Log entries: everything that one version changed, as one JSON file; checkpoints share the fields of its state."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import pyarrow as pa

from dbt.adapters.zlayout.errors import CorruptError, NewerFormatError
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles
from dbt.adapters.zlayout.timeline.files.instant import LAST_MS, is_instant
from dbt.adapters.zlayout.timeline.files.json_file import RESTORE, from_json_bytes, read_fields, to_json_bytes
from dbt.adapters.zlayout.timeline.files.naming import (
    CURVE_FOLDER,
    INDEX_FOLDER,
    check_data_paths,
    data_paths,
    own_path,
)

IndexSlices = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, kw_only=True)
class Step:
    """Identifies a version and the transaction that made it.

    Attributes:
        version: Position in the log, from 0.
        instant: The instant of the transaction.
        operation: What the user asked for, the value of an `Operation`.
        committed_ms: The writer's clock when it wrote the version, milliseconds since the epoch; never before that of
            the previous version.
        last_instant: The highest instant of this and all earlier versions.
    """

    version: int
    instant: str
    action: Action
    operation: str
    committed_ms: int
    last_instant: str


@dataclass(frozen=True, kw_only=True)
class TableState(Step):
    """The table at a version, except for its files.

    Attributes:
        schema_json: Spark's StructType as JSON; includes partition columns.
        layout: How the files are clustered and sized; JSON.
        curve: Path of the curve model, or None.
        index: All live slices of each index partition, oldest first.
        properties: Table properties; JSON.
    """

    schema_json: str
    partition_by: tuple[str, ...]
    layout: Mapping[str, Any] = field(default_factory=dict)
    curve: str | None = None
    index: IndexSlices = field(default_factory=dict)
    properties: Mapping[str, Any] = field(default_factory=dict)

    def state(self) -> dict[str, Any]:
        """Returns the table's state as keyword arguments for another version with the same state."""
        return {each.name: getattr(self, each.name) for each in fields(TableState)}

    def state_fields(self) -> dict[str, Any]:
        """Returns the fields of the table's state for JSON, including those of `Step`."""
        return {
            **{each.name: getattr(self, each.name) for each in fields(Step)},
            "schema_json": self.schema_json,
            "partition_by": list(self.partition_by),
            "layout": dict(self.layout),
            "curve": self.curve,
            "index": {name: list(slices) for name, slices in self.index.items()},
            "properties": dict(self.properties),
        }


def _read_step(content: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Reads the fields of a `Step` from parsed JSON.

    Raises:
        CorruptError: One is missing or has another type.
        NewerFormatError: This release does not know the action or operation.
    """
    types = {"version": int, "instant": str, "action": str, "operation": str, "committed_ms": int, "last_instant": str}
    found = dict(zip(types, read_fields(content, path, **types), strict=True))
    for field_, words in (("action", Action), ("operation", Operation)):
        if found[field_] not in {member.value for member in words}:
            raise NewerFormatError(
                f"{path}: unknown {field_} {found[field_]!r}; a newer release of dbt-zlayout has written it: upgrade"
            )
    times = found["instant"], found["last_instant"]
    if found["version"] < 0 or not all(map(is_instant, times)) or not 0 <= found["committed_ms"] <= LAST_MS:
        raise CorruptError(
            f"{path}: version {found['version']} of {' and '.join(times)} at {found['committed_ms']} is impossible; "
            f"the file was damaged or written by other software; {RESTORE}"
        )
    return {**found, "action": Action(found["action"])}


@functools.lru_cache(maxsize=256)
def _is_schema(text: str) -> bool:
    """Returns whether a text is Spark's JSON of a struct, with names and types at each level.

    >>> _is_schema('{"type": "struct", "fields": [{"name": "id", "type": "long"}]}'), _is_schema('"long"')
    (True, False)
    """
    try:
        schema = json.loads(text)
        return isinstance(schema, dict) and schema.get("type") == "struct" and _is_type(schema)
    except (ValueError, RecursionError):
        return False


def _is_type(kind: Any) -> bool:
    """Returns whether parsed JSON has the form of a type. Names of simple types are Spark's to know."""
    if not isinstance(kind, dict):
        return isinstance(kind, str)
    if kind.get("type") == "struct":
        columns = kind.get("fields")
        return isinstance(columns, list) and all(
            isinstance(each, dict) and isinstance(each.get("name"), str) and _is_type(each.get("type"))
            for each in columns
        )
    parts = {"array": ("elementType",), "map": ("keyType", "valueType")}.get(str(kind.get("type")), ())
    return all(_is_type(kind.get(part)) for part in parts)


def read_state(content: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Reads the fields of a `TableState` from parsed JSON.

    Raises:
        CorruptError: One is missing or has another type.
    """
    # Comes first, because a file written by a newer release may look damaged.
    step = _read_step(content, path)
    schema_json, partition_by, layout, curve, index, properties = read_fields(
        content,
        path,
        schema_json=str,
        partition_by=list,
        layout=dict,
        curve=(str, type(None)),
        index=dict,
        properties=dict,
    )
    if not _is_schema(schema_json):
        raise CorruptError(f"{path}: its schema_json is not a schema of Spark; {RESTORE}")
    if not all(isinstance(name, str) for name in partition_by) or not all(
        isinstance(slices, list) for slices in index.values()
    ):
        raise CorruptError(f"{path}: its partition columns or its index slices are not lists of names; {RESTORE}")
    return {
        **step,
        "schema_json": schema_json,
        "partition_by": tuple(partition_by),
        "layout": layout,
        "curve": None if curve is None else own_path(curve, CURVE_FOLDER, path),
        "index": {name: tuple(own_path(each, INDEX_FOLDER, path) for each in slices) for name, slices in index.items()},
        "properties": properties,
    }


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
        """Returns the bytes of the log entry."""
        return to_json_bytes(
            {
                **self.state_fields(),
                "aborts": self.aborts,
                "summary": dict(self.summary),
                "removes": list(self.removes),
                "adds": _files_to_columns(self.adds),
            }
        )

    @classmethod
    def from_json(cls, data: bytes, path: str) -> Commit:
        """Parses the bytes of a log entry.

        Raises:
            CorruptError: They are not what `to_json` writes.
        """
        content = from_json_bytes(data, path)
        state = read_state(content, path)
        summary, removes, adds, aborts = _read_change(content, path)
        return cls(
            **state,
            adds=_files_from_columns(adds, state["partition_by"], path),
            removes=data_paths(removes, path),
            summary=summary,
            aborts=aborts,
        )


@dataclass(frozen=True, kw_only=True)
class CommitHeader(Step):
    """A version without its files, as listed in the history.

    Attributes:
        summary: Rows, files, bytes and seconds of the operation.
        aborts: The instant that it permanently rolled back, or None.
    """

    summary: Mapping[str, Any]
    files_added: int
    files_removed: int
    aborts: str | None

    @classmethod
    def from_json(cls, data: bytes, path: str) -> CommitHeader:
        """Parses the header of a log entry.

        Raises:
            CorruptError: The bytes are not a log entry.
        """
        content = from_json_bytes(data, path)
        summary, removes, adds, aborts = _read_change(content, path)
        added = adds.get("path")
        return cls(
            **_read_step(content, path),
            summary=summary,
            files_added=len(added) if isinstance(added, list) else 0,
            files_removed=len(removes),
            aborts=aborts,
        )


def _read_change(content: Mapping[str, Any], path: str) -> tuple[Any, ...]:
    return read_fields(content, path, summary=dict, removes=list, adds=dict, aborts=(str, type(None)))


def _files_to_columns(files: DataFiles) -> dict[str, Any]:
    """Returns a JSON-compatible object with one list for each column, and one for each partition column."""
    partition = [files.partition_values(name).to_pylist() for name in files.partition_by]
    return {name: partition if name == "partition" else files[name].to_pylist() for name in files.arrow.schema.names}


def _files_from_columns(columns: dict[str, Any], partition_by: tuple[str, ...], path: str) -> DataFiles:
    """Parses the result of `_files_to_columns`.

    ``path`` is the file that contains it, for errors.

    Raises:
        CorruptError: A column is missing, or has another length or type.
    """
    try:
        if len(columns["partition"]) != len(partition_by):
            raise CorruptError(f"{path}: files have {len(columns['partition'])} partition columns, not {partition_by}")
        files = DataFiles.from_columns(
            partition_by,
            path=columns["path"],
            partition_values=columns["partition"],
            row_count=columns["row_count"],
            size_bytes=columns["size_bytes"],
            modified_ms=columns["modified_ms"],
            group=columns["group"],
        )
        # Arrow checks lengths only on demand, and a null would cause an error only much later.
        files.arrow.validate(full=True)
        check_data_paths(files["path"], path)
        if any(files[name].null_count for name in files.arrow.schema.names):
            raise CorruptError(f"{path}: a file lacks its path, size, time, row count or group")
    except (KeyError, TypeError, ValueError, OverflowError, pa.ArrowException) as error:
        raise CorruptError(f"{path}: its list of files is damaged ({error}); {RESTORE}") from error
    return files
