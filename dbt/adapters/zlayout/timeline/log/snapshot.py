"""Snapshots: the whole state of a table at one version. Made by replaying the log, and stored as checkpoints.

A checkpoint is a snapshot as one Parquet file, so that opening a table costs O(recent), not O(history).
The properties of a snapshot hold the row count, where files hold several versions of a row, and the batches of streams.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dbt.adapters.zlayout.errors import CorruptError
from dbt.adapters.zlayout.timeline.files.bounded_parquet import BoundedParquet
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles
from dbt.adapters.zlayout.timeline.files.json_file import from_json_bytes, to_json_bytes
from dbt.adapters.zlayout.timeline.files.naming import check_data_paths
from dbt.adapters.zlayout.timeline.log.entry import Commit, TableState, read_state

Batch = tuple[str, int]

_ROWS = "rows"
# Maps the id of a streaming query to the number of its last batch.
_BATCHES = "stream_batches"

CHECKPOINT_EVERY = 10
# Names of entries and checkpoints have 20 digits.
_MOST_VERSIONS = 10**20
_STATE_KEY = b"zlayout.snapshot"
_PLAIN_COLUMNS = ("path", "row_count", "size_bytes", "modified_ms", "group")


@dataclass(frozen=True, kw_only=True)
class Snapshot(TableState):
    """The state of a table at one version.

    Attributes:
        files: The live data files.
    """

    files: DataFiles


def replay(start: Snapshot | None, commits: Sequence[Commit]) -> Snapshot:
    """Returns the snapshot after a sequence of versions.

    Args:
        start: The snapshot before the first of them, None for version 0.
        commits: At least one version, without gaps, oldest first.
    """
    files = _live_files(start.files if start else None, commits)
    return Snapshot(files=files, **commits[-1].state())


def _live_files(start: DataFiles | None, commits: Sequence[Commit]) -> DataFiles:
    # A file is live if nothing removed it after it was added; within one version removals come first.
    # All versions are evaluated at once: step i + 1 is commits[i], step 0 is the start.
    added = [files for files in (start, *(commit.adds for commit in commits)) if files is not None]
    first_step = 0 if start is not None else 1
    add_step = np.repeat(np.arange(first_step, first_step + len(added)), [len(files) for files in added])
    live = [files for files in added if len(files)]
    partition_by = commits[-1].partition_by
    removed = pa.array([path for commit in commits for path in commit.removes], pa.string())
    remove_step = np.repeat(np.arange(1, len(commits) + 1), [len(commit.removes) for commit in commits])

    paths = pa.chunked_array([files["path"].combine_chunks() for files in live], pa.string())
    last_removed = _last_step(removed, remove_step)
    position = pc.index_in(paths, value_set=last_removed["path"]).combine_chunks()
    removed_at = last_removed["step"].take(position).fill_null(-1).to_numpy()
    alive = add_step >= removed_at
    if pc.count_distinct(paths).as_py() != len(paths):
        # The same path was added again without a removal: the later entry has its current size and time.
        last_added = _last_step(paths, add_step)
        latest = last_added["step"].take(pc.index_in(paths, value_set=last_added["path"]).combine_chunks()).to_numpy()
        alive &= add_step == latest

    kept: list[DataFiles] = []
    row = 0
    for files in live:
        mask = alive[row : row + len(files)]
        row += len(files)
        if mask.any():
            kept.append(files if mask.all() else files.filter(pa.array(mask)))
    if not kept:
        return DataFiles.empty(partition_by)
    return DataFiles(pa.concat_tables([files.arrow for files in kept]).combine_chunks())


def _last_step(paths: pa.Array | pa.ChunkedArray, steps: np.ndarray[Any, Any]) -> pa.Table:
    each = pa.table({"path": paths, "step": pa.array(steps, pa.int64())})
    grouped = each.group_by("path", use_threads=False).aggregate([("step", "max")])
    return pa.table({"path": grouped["path"].combine_chunks(), "step": grouped["step_max"].combine_chunks()})


def row_count(snapshot: Snapshot) -> int:
    """Returns the number of rows of a version."""
    counted = snapshot.properties.get(_ROWS)
    return counted if isinstance(counted, int) else snapshot.files.total_rows


def with_more_rows(properties: Mapping[str, Any], start: int, more: int) -> dict[str, Any]:
    """Returns the properties after a delta commit.

    Args:
        properties: The properties of the previous version.
        start: Row count of an earlier version without logs; used if the properties have no count yet.
        more: Number of rows added minus rows removed.
    """
    return {**properties, _ROWS: int(properties.get(_ROWS, start)) + more}


def is_taken(properties: Mapping[str, Any], batch: Batch | None) -> bool:
    """Returns whether a batch (query id, number) is in the table; streams repeat batches their checkpoint lacks."""
    return batch is not None and batch[1] <= properties.get(_BATCHES, {}).get(batch[0], -1)


def with_batch(properties: Mapping[str, Any], batch: Batch | None) -> dict[str, Any]:
    """Returns the properties of a version that adds a batch; None for a version without a batch."""
    taken = {} if batch is None else {_BATCHES: {**properties.get(_BATCHES, {}), batch[0]: batch[1]}}
    return {**properties, **taken}


def batches_of(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the properties of a version that record its batches."""
    return {key: value for key, value in properties.items() if key == _BATCHES}


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
        state = read_state(from_json_bytes((table.schema.metadata or {})[_STATE_KEY], path), path)
        files = DataFiles.from_columns(
            state["partition_by"],
            partition_values=[table[f"partition_{i}"] for i in range(len(state["partition_by"]))],
            **{name: table[name] for name in _PLAIN_COLUMNS},
        )
        check_data_paths(files["path"], path)
        return Snapshot(files=files, **state)
    except (KeyError, TypeError, ValueError, OverflowError, pa.ArrowException, CorruptError) as error:
        raise CorruptError(f"{path} is not a checkpoint ({error}); delete it: the log holds the same state") from error


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
