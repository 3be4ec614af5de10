"""Checkpoints: a whole snapshot as one Parquet file, so that opening a table costs O(recent), not O(history)."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dbt.adapters.zlayout.errors import CorruptError
from dbt.adapters.zlayout.timeline.files.bounded_parquet import BoundedParquet
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles
from dbt.adapters.zlayout.timeline.files.json_file import from_json_bytes, to_json_bytes
from dbt.adapters.zlayout.timeline.files.naming import check_data_paths
from dbt.adapters.zlayout.timeline.log.entry import read_state
from dbt.adapters.zlayout.timeline.log.snapshot import Snapshot

CHECKPOINT_EVERY = 10
# Names of entries and checkpoints have 20 digits.
_MOST_VERSIONS = 10**20
_STATE_KEY = b"zlayout.snapshot"
_PLAIN_COLUMNS = ("path", "row_count", "size_bytes", "modified_ms", "group")


def checkpoint_bytes(snapshot: Snapshot) -> bytes:
    """Returns a snapshot as a Parquet file: its files are the rows, everything else is in the file's metadata."""
    files = snapshot.files
    # Parquet has no struct without fields, so partition values are stored as columns named by position.
    columns = {name: files[name] for name in _PLAIN_COLUMNS}
    columns |= {f"partition_{i}": files.partition_values(name) for i, name in enumerate(files.partition_by)}
    table = pa.table(columns).replace_schema_metadata({_STATE_KEY: to_json_bytes(snapshot.state_fields())})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    return bytes(sink.getvalue())


def snapshot_from_checkpoint(data: bytes, path: str) -> Snapshot:
    """Parses the result of `checkpoint_bytes`.

    Raises:
        CorruptError: It is not a checkpoint.
    """
    try:
        # Threads would cost more than they gain: the file is in memory and has one row group.
        table = BoundedParquet(data).read(use_threads=False)
        content = from_json_bytes((table.schema.metadata or {})[_STATE_KEY], path)
        return _snapshot(table, content, path)
    except (KeyError, TypeError, ValueError, OverflowError, pa.ArrowException, CorruptError) as error:
        raise CorruptError(f"{path} is not a checkpoint ({error}); delete it: the log holds the same state") from error


def _snapshot(table: pa.Table, content: dict[str, Any], path: str) -> Snapshot:
    state = read_state(content, path)
    partition_by = state["partition_by"]
    files = DataFiles.from_columns(
        partition_by,
        partition_values=[table[f"partition_{i}"] for i in range(len(partition_by))],
        **{name: table[name] for name in _PLAIN_COLUMNS},
    )
    check_data_paths(files["path"], path)
    return Snapshot(files=files, **state)


def hint_bytes(version: int) -> bytes:
    """Returns the content of the hint file, which names the newest checkpoint."""
    return json.dumps({"version": version}).encode()


def version_from_hint(data: bytes) -> int | None:
    """Returns the version in a hint, or None if the hint cannot be understood."""
    try:
        version = json.loads(data)["version"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return version if type(version) is int and 0 <= version < _MOST_VERSIONS else None
