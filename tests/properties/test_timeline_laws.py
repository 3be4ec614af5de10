"""Laws of the log: replay equals a model, and a clean never takes what a retained version needs."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from dbt.adapters.zlayout.store.local import LocalStore
from dbt.adapters.zlayout.store.protocol import is_inside
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.files.data_files import DataFile, DataFiles
from dbt.adapters.zlayout.timeline.files.naming import (
    CHECKPOINT_FOLDER,
    LOG_FOLDER,
    METADATA_FOLDER,
    SPARK_MANIFEST_FOLDER,
)
from dbt.adapters.zlayout.timeline.log.entry import Commit
from dbt.adapters.zlayout.timeline.log.runtime import Runtime
from dbt.adapters.zlayout.timeline.log.snapshot import checkpoint_bytes, replay, snapshot_from_checkpoint
from dbt.adapters.zlayout.timeline.retention.cleaning import clean
from dbt.adapters.zlayout.timeline.timeline import Timeline
from dbt.adapters.zlayout.timeline.transactions.change import Change
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction

TEXT = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=8)
PATHS = TEXT.filter(lambda path: is_inside(path) and not path.startswith((METADATA_FOLDER, SPARK_MANIFEST_FOLDER)))


def _file(path: str, size_bytes: int, partition: tuple[tuple[str, str | None], ...] = ()) -> DataFile:
    return DataFile(path, partition, 1, size_bytes, 2, "g")


def _commit(version: int, adds: DataFiles, removes: tuple[str, ...], partition_by: tuple[str, ...] = ()) -> Commit:
    return Commit(
        version=version,
        instant=f"{version:017d}",
        action=Action.COMMIT,
        operation="merge",
        committed_ms=version,
        last_instant=f"{version:017d}",
        adds=adds,
        removes=removes,
        schema_json='{"type":"struct","fields":[]}',
        partition_by=partition_by,
    )


# Few names, so that files are removed, added again, and replaced in place.
STEPS = st.lists(
    st.tuples(st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 99)), st.sets(st.sampled_from("abcdef"))),
    min_size=1,
    max_size=8,
)


@given(STEPS, st.integers(0, 8))
def test_replay_equals_a_dictionary_from_any_checkpoint(steps, checkpoint_after) -> None:
    live: dict[str, int] = {}
    commits = []
    for version, (adds, removes) in enumerate(steps):
        for path in removes:
            live.pop(path, None)
        live.update(adds)
        commits.append(
            _commit(version, DataFiles.of([_file(path, size) for path, size in adds.items()]), tuple(sorted(removes)))
        )
    cut = min(checkpoint_after, len(commits) - 1)
    start = replay(None, commits[:cut]) if cut else None
    snapshot = replay(start, commits[cut:])
    assert {file.path: file.size_bytes for file in snapshot.files} == live
    assert len(snapshot.files) == len(live)


@given(
    st.lists(st.tuples(PATHS, st.none() | st.text(st.characters(exclude_categories=("Cs",)), max_size=5)), max_size=6),
    st.lists(TEXT, unique=True, max_size=2),
    st.dictionaries(TEXT, st.integers() | TEXT, max_size=2),
)
def test_an_entry_and_a_checkpoint_are_read_as_written(rows, partition_by, layout) -> None:
    files = DataFiles.of(
        [_file(path, 1, tuple((name, value) for name in partition_by)) for path, value in rows], partition_by
    )
    commit = Commit(
        version=3,
        instant="20240101000000000",
        action=Action.REPLACECOMMIT,
        operation="overwrite",
        committed_ms=1,
        last_instant="20240101000000000",
        adds=files,
        removes=tuple(path for path, _ in rows),
        schema_json='{"type":"struct","fields":[]}',
        partition_by=tuple(partition_by),
        layout=layout,
        curve=".zlayout/curve/c",
        index={"files": (".zlayout/index/a", ".zlayout/index/b")},
        summary=layout,
        properties=layout,
    )
    assert Commit.from_json(commit.to_json(), "x") == commit
    snapshot = replay(None, [commit])
    assert snapshot_from_checkpoint(checkpoint_bytes(snapshot), "x") == snapshot


@contextmanager
def _table() -> Iterator[tuple[LocalStore, Timeline, list[int]]]:
    clock = [1_700_000_000_000]

    def now_ms() -> int:
        clock[0] += 1
        return clock[0]

    with tempfile.TemporaryDirectory() as folder, patch.object(os, "fsync", lambda _: None):
        store = LocalStore(folder)
        yield store, Timeline(store, Runtime(now_ms=now_ms, heartbeat_seconds=None)), clock


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from([Operation.OVERWRITE, Operation.APPEND, Operation.MERGE, Operation.ROLLBACK]),
        st.integers(0, 5),
        st.sampled_from([0, 1, 1, 3]),
    ),
    min_size=1,
    max_size=14,
)


def _run(store: LocalStore, timeline: Timeline, operation: Operation, pick: int) -> None:
    with Transaction.begin(timeline, Action.REPLACECOMMIT, operation) as transaction:
        base = transaction.base
        new = []
        for i in range(2):
            path = f"{i:08x}_{transaction.instant}.parquet"
            store.put(path, b"x")
            new.append(_file(path, 1))
        removes = tuple(base.files["path"].to_pylist()[: pick + 1]) if operation is Operation.MERGE else ()
        adds = DataFiles.of(new)
        if operation is Operation.ROLLBACK:
            store.delete([file.path for file in new])
            adds = timeline.snapshot(max(0, base.version - pick % 2)).files
        transaction.commit(Change(adds, removes=removes, schema_json='{"type":"struct","fields":[]}'))


@settings(max_examples=25, deadline=None)
@given(OPERATIONS, st.integers(2, 4), st.integers(0, 6))
def test_a_clean_never_deletes_a_file_of_a_retained_version(operations, retain_versions, retain_hours) -> None:
    with _table() as (store, timeline, clock):
        _run(store, timeline, Operation.OVERWRITE, 0)
        commits_ms = [clock[0]]
        for operation, pick, hours in operations:
            clock[0] += hours * 3_600_000
            _run(store, timeline, operation, pick)
            commits_ms.append(timeline.snapshot().committed_ms)
            if pick % 2:
                clean(timeline, retain_versions, retain_hours, clock[0])
            on_disk = {file.path for file in store.list("")}
            newest = len(commits_ms) - 1
            for version in range(newest + 1):
                replaced_ms = commits_ms[version + 1] if version < newest else clock[0]
                if version > newest - retain_versions or replaced_ms >= clock[0] - retain_hours * 3_600_000:
                    assert set(timeline.snapshot(version).files["path"].to_pylist()) <= on_disk


@settings(max_examples=20, deadline=None)
@given(
    OPERATIONS,
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["delete", "cut", "garbage", "swap"])), max_size=4),
)
def test_no_damage_to_checkpoints_changes_a_snapshot(operations, damages) -> None:
    with _table() as (store, timeline, _):
        _run(store, timeline, Operation.OVERWRITE, 0)
        for operation, pick, _hours in operations:
            _run(store, timeline, operation, pick)
        commits = timeline.entries(0, len(operations))
        expected = replay(None, commits)
        for position, damage in damages:
            files = store.list(CHECKPOINT_FOLDER)
            if not files:
                break
            path = files[position % len(files)].path
            content = store.read(path)
            if damage == "delete":
                store.delete([path])
            elif damage == "cut":
                store.put(path, content[: len(content) // 2])
            elif damage == "garbage":
                store.put(path, b"\xffPAR1")
            else:
                store.put(path, store.read(files[-1].path))
        fresh = Timeline(store)
        assert fresh.latest_version() == len(operations)
        found = fresh.snapshot()
        assert _sorted(found.files) == _sorted(expected.files)
        assert (found.instant, found.index, found.schema_json) == (
            expected.instant,
            expected.index,
            expected.schema_json,
        )
        assert len(store.list(LOG_FOLDER)) == len(operations) + 1


def _sorted(files: DataFiles) -> pa.Table:
    return files.arrow.sort_by("path")
