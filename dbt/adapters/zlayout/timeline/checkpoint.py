"""Checkpoints: a whole snapshot as one Parquet file, so that opening costs O(recent), not O(history)."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dbt.adapters.zlayout.errors import CorruptError
from dbt.adapters.zlayout.timeline.action import Action
from dbt.adapters.zlayout.timeline.files import DataFiles
from dbt.adapters.zlayout.timeline.json_file import from_json_bytes, read_fields, to_json_bytes
from dbt.adapters.zlayout.timeline.snapshot import Snapshot

CHECKPOINT_EVERY = 10
_STATE_KEY = b"zlayout.snapshot"
_PLAIN_COLUMNS = ("path", "row_count", "size_bytes", "modified_ms", "group")


def checkpoint_bytes(snapshot: Snapshot) -> bytes:
    """Return a snapshot as a Parquet file: its files are the rows, all else is in the file's metadata."""
    files = snapshot.files
    state = {
        "version": snapshot.version,
        "instant": snapshot.instant,
        "action": snapshot.action.value,
        "operation": snapshot.operation,
        "committed_ms": snapshot.committed_ms,
        "last_instant": snapshot.last_instant,
        "schema_json": snapshot.schema_json,
        "partition_by": list(snapshot.partition_by),
        "layout": dict(snapshot.layout),
        "curve": snapshot.curve,
        "index": {name: list(slices) for name, slices in snapshot.index.items()},
        "properties": dict(snapshot.properties),
    }
    # Parquet has no struct without fields, so partition values are columns named by position.
    columns = {name: files[name] for name in _PLAIN_COLUMNS}
    columns |= {f"partition_{i}": files.partition_values(name) for i, name in enumerate(files.partition_by)}
    table = pa.table(columns).replace_schema_metadata({_STATE_KEY: to_json_bytes(state)})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    return bytes(sink.getvalue())


def snapshot_from_checkpoint(data: bytes, path: str) -> Snapshot:
    """Parse what `checkpoint_bytes` made.

    Raises:
        CorruptError: It is no checkpoint.
    """
    try:
        table = pq.read_table(pa.BufferReader(data))
        state = from_json_bytes((table.schema.metadata or {})[_STATE_KEY], path)
        return _snapshot(table, state, path)
    except (KeyError, ValueError, OSError, pa.ArrowException) as error:
        raise CorruptError(f"{path} is no checkpoint ({error}); it may be deleted, the log holds the same") from error


def _snapshot(table: pa.Table, state: dict[str, Any], path: str) -> Snapshot:
    version, instant, action, operation, committed_ms, last_instant, schema_json, partition_by = read_fields(
        state,
        path,
        version=int,
        instant=str,
        action=str,
        operation=str,
        committed_ms=int,
        last_instant=str,
        schema_json=str,
        partition_by=list,
    )
    layout, curve, index, properties = read_fields(
        state, path, layout=dict, curve=(str, type(None)), index=dict, properties=dict
    )
    files = DataFiles.from_columns(
        partition_by,
        partition_values=[table[f"partition_{i}"] for i in range(len(partition_by))],
        **{name: table[name] for name in _PLAIN_COLUMNS},
    )
    return Snapshot(
        version=version,
        instant=instant,
        action=Action(action),
        operation=operation,
        committed_ms=committed_ms,
        last_instant=last_instant,
        files=files,
        schema_json=schema_json,
        partition_by=tuple(partition_by),
        layout=layout,
        curve=curve,
        index={name: tuple(slices) for name, slices in index.items()},
        properties=properties,
    )


def hint_bytes(version: int) -> bytes:
    """Return the content of the hint file, which names the newest checkpoint."""
    return json.dumps({"version": version}).encode()


def version_from_hint(data: bytes) -> int | None:
    """Return the version that a hint names, or None where it cannot be understood."""
    try:
        version = json.loads(data)["version"]
    except (ValueError, KeyError, TypeError):
        return None
    return version if isinstance(version, int) and version >= 0 else None
