"""Table state: the fields that log entries and checkpoints share, written and read in one place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from dbt.adapters.zlayout.errors import CorruptError, NewerFormatError
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.files.instant import LAST_MS, is_instant
from dbt.adapters.zlayout.timeline.files.json_file import RESTORE, read_fields
from dbt.adapters.zlayout.timeline.files.naming import CURVE_FOLDER, INDEX_FOLDER
from dbt.adapters.zlayout.timeline.files.paths import own_path

IndexSlices = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, kw_only=True)
class Step:
    """Identifies a version and the transaction that made it.

    Attributes:
        version: Position in the log, from 0.
        instant: The instant of the transaction.
        action: Its action.
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

    def step_fields(self) -> dict[str, Any]:
        """Return these fields for JSON."""
        return {
            "version": self.version,
            "instant": self.instant,
            "action": self.action.value,
            "operation": self.operation,
            "committed_ms": self.committed_ms,
            "last_instant": self.last_instant,
        }


@dataclass(frozen=True, kw_only=True)
class TableState(Step):
    """The table at a version, except for its files.

    Attributes:
        schema_json: Spark's StructType as JSON, opaque here; includes partition columns.
        partition_by: Names of the partition columns.
        layout: How the files are clustered and sized; JSON.
        curve: Path of the curve model, or None.
        index: All live slices of each partition of the metadata table, oldest first.
        properties: Table properties; JSON.
    """

    schema_json: str
    partition_by: tuple[str, ...]
    layout: Mapping[str, Any] = field(default_factory=dict)
    curve: str | None = None
    index: IndexSlices = field(default_factory=dict)
    properties: Mapping[str, Any] = field(default_factory=dict)

    def state(self) -> dict[str, Any]:
        """Return the table's state as keyword arguments for another version with the same state."""
        return {each.name: getattr(self, each.name) for each in fields(TableState)}

    def state_fields(self) -> dict[str, Any]:
        """Return the fields of the table's state for JSON, including those of `Step`."""
        return {
            **self.step_fields(),
            "schema_json": self.schema_json,
            "partition_by": list(self.partition_by),
            "layout": dict(self.layout),
            "curve": self.curve,
            "index": {name: list(slices) for name, slices in self.index.items()},
            "properties": dict(self.properties),
        }


def read_step(content: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Read the fields of a `Step` from parsed JSON.

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
            f"{path}: version {found['version']} of {' and '.join(times)} at {found['committed_ms']} cannot be; "
            f"the file was damaged or written by other software; {RESTORE}"
        )
    return {**found, "action": Action(found["action"])}


def read_state(content: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Read the fields of a `TableState` from parsed JSON.

    Raises:
        CorruptError: One is missing or has another type.
    """
    # Comes first, because a file written by a newer release may look damaged.
    step = read_step(content, path)
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
    if not all(isinstance(name, str) for name in partition_by) or not all(
        isinstance(slices, list) for slices in index.values()
    ):
        raise CorruptError(f"{path}: its partition columns or its index are no names; {RESTORE}")
    return {
        **step,
        "schema_json": schema_json,
        "partition_by": tuple(partition_by),
        "layout": layout,
        "curve": None if curve is None else own_path(curve, CURVE_FOLDER, path),
        "index": {name: tuple(own_path(each, INDEX_FOLDER, path) for each in slices) for name, slices in index.items()},
        "properties": properties,
    }
