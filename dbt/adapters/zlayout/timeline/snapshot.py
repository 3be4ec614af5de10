"""A snapshot: the whole state of the table at one version, and the replay of the log that gives it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.timeline.action import Action
from dbt.adapters.zlayout.timeline.entry import Commit, IndexSlices
from dbt.adapters.zlayout.timeline.files import DataFiles


@dataclass(frozen=True)
class Snapshot:
    """The state of a table at one version.

    Attributes:
        version: The version.
        instant: Of the transaction that made it.
        action: Of that transaction.
        operation: Of that transaction.
        committed_ms: When it was written, milliseconds since the epoch.
        last_instant: The highest instant of this and all earlier versions.
        files: The live data files.
        schema_json: Spark's StructType as JSON, opaque here.
        partition_by: Names of the partition columns.
        layout: How the files are clustered and sized.
        curve: Path of the curve model, or None.
        index: Live slices of each partition of the metadata table, oldest first.
        properties: Of the table.
    """

    version: int
    instant: str
    action: Action
    operation: str
    committed_ms: int
    last_instant: str
    files: DataFiles
    schema_json: str
    partition_by: tuple[str, ...]
    layout: Mapping[str, Any] = field(default_factory=dict)
    curve: str | None = None
    index: IndexSlices = field(default_factory=dict)
    properties: Mapping[str, Any] = field(default_factory=dict)


def replay(start: Snapshot | None, commits: Sequence[Commit]) -> Snapshot:
    """Return the snapshot after some versions.

    Args:
        start: The snapshot before the first of them, None for version 0.
        commits: At least one version, without gaps, oldest first.
    """
    last = commits[-1]
    return Snapshot(
        version=last.version,
        instant=last.instant,
        action=last.action,
        operation=last.operation,
        committed_ms=last.committed_ms,
        last_instant=last.last_instant,
        files=_live_files(start.files if start else None, commits),
        schema_json=last.schema_json,
        partition_by=last.partition_by,
        layout=last.layout,
        curve=last.curve,
        index=last.index,
        properties=last.properties,
    )


def _live_files(start: DataFiles | None, commits: Sequence[Commit]) -> DataFiles:
    # A file lives if nothing removed it after it was added; within one version the removal comes first.
    # All versions are decided at once: step i + 1 is commits[i], step 0 the start.
    added = [files for files in (start, *(commit.adds for commit in commits)) if files is not None]
    first_step = 0 if start is not None else 1
    add_step = np.repeat(np.arange(first_step, first_step + len(added)), [len(files) for files in added])
    live = [(files, step) for step, files in enumerate(added, first_step) if len(files)]
    partition_by = commits[-1].partition_by
    removed = pa.array([path for commit in commits for path in commit.removes], pa.string())
    remove_step = np.repeat(np.arange(1, len(commits) + 1), [len(commit.removes) for commit in commits])

    paths = pa.chunked_array([files["path"].combine_chunks() for files, _ in live], pa.string())
    last_removed = _last_step(removed, remove_step)
    position = pc.index_in(paths, value_set=last_removed["path"]).combine_chunks()
    removed_at = last_removed["step"].take(position).fill_null(-1).to_numpy()
    alive = add_step >= removed_at
    if pc.count_distinct(paths).as_py() != len(paths):
        # The same path added again without a removal: the later entry knows its size and time.
        last_added = _last_step(paths, add_step)
        latest = last_added["step"].take(pc.index_in(paths, value_set=last_added["path"]).combine_chunks()).to_numpy()
        alive &= add_step == latest

    kept: list[DataFiles] = []
    row = 0
    for files, _ in live:
        mask = alive[row : row + len(files)]
        row += len(files)
        if mask.all():
            kept.append(files)
        elif mask.any():
            kept.append(files.filter(pa.array(mask)))
    if not kept:
        return DataFiles.empty(partition_by)
    return DataFiles(pa.concat_tables([files.arrow for files in kept]).combine_chunks())


def _last_step(paths: pa.Array | pa.ChunkedArray, steps: np.ndarray[Any, Any]) -> pa.Table:
    grouped = (
        pa.table({"path": paths, "step": pa.array(steps, pa.int64())}).group_by("path").aggregate([("step", "max")])
    )
    return pa.table({"path": grouped["path"].combine_chunks(), "step": grouped["step_max"].combine_chunks()})
