"""Damaged metadata: one kind of error that names the file, and advice that is damaged is passed over."""

from __future__ import annotations

import json
import os
import random
import threading
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt.adapters.zlayout.errors import ConflictError, CorruptError, NewerFormatError, StoreError, ZlayoutError
from dbt.adapters.zlayout.index.slice_reading import open_slice, read_columns
from dbt.adapters.zlayout.table.measures import commit_history
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.files.naming import CHECKPOINT_HINT, CLEAN_FOLDER, log_path
from dbt.adapters.zlayout.timeline.files.table_file import (
    ManagementLevel,
    TableFile,
    create_table_file,
    read_table_file,
)
from dbt.adapters.zlayout.timeline.log.snapshot import row_count, version_from_hint
from dbt.adapters.zlayout.timeline.retention.cleaning import clean
from dbt.adapters.zlayout.timeline.retention.orphans import orphans
from dbt.adapters.zlayout.timeline.retention.past import last_clean, version_at_time, version_of_instant
from dbt.adapters.zlayout.timeline.transactions.change import Change
from dbt.adapters.zlayout.timeline.transactions.recovery import recover
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction

HOUR_MS = 3_600_000
DEEP = b"[" * 100_000


def _edited(table, fields):
    path = log_path(0)
    table.store.put(path, json.dumps({**json.loads(table.store.read(path)), **fields}).encode())
    return path


@pytest.mark.parametrize(
    "fields",
    [
        {"instant": "yesterday"},
        {"instant": "20240231000000000", "last_instant": "20240231000000000"},
        {"last_instant": "99999999999999999"},
        {"last_instant": "٢٠٢٤٠١٠١٠٠٠٠٠٠٠٠٠"},
        {"committed_ms": 10**17},
        {"committed_ms": 10**400},
        {"committed_ms": -1},
        {"committed_ms": True},
        {"version": 10**30},
        {"version": -1},
        {"partition_by": [1]},
        {"partition_by": ["k"]},
        {"index": {"files": "x"}},
        {"index": {"files": None}},
        {"removes": [["x"]]},
        {"schema_json": "\ud800"},
        {"schema_json": "{"},
        {"schema_json": "{}"},
        {"schema_json": '"long"'},
        {"schema_json": '{"type":"struct","fields":[{"name":"id"}]}'},
        {"schema_json": '{"type":"struct","fields":[{"name":"a","type":{"type":"map","keyType":"long"}}]}'},
        {"schema_json": "[" * 100_000},
        {"format_version": "1"},
        {"format_version": None},
    ],
)
def test_a_field_that_no_release_writes_is_damage_and_the_file_is_named(table, fields) -> None:
    table.overwrite()
    path = _edited(table, fields)
    with pytest.raises(CorruptError, match=path) as found:
        table.timeline().snapshot()
    assert not isinstance(found.value, NewerFormatError)
    with pytest.raises(CorruptError, match=path):
        table.append()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", DEEP, b'{"a":' * 50_000, b"9" * 10_000, b"null"])
def test_an_entry_that_is_no_entry_is_damage_and_the_file_is_named(table, content) -> None:
    table.overwrite()
    table.store.put(log_path(0), content)
    with pytest.raises(CorruptError, match=rf"{log_path(0)}.*--full-refresh"):
        table.timeline().snapshot()


@pytest.mark.parametrize("fields", [{"format_version": 2}, {"operation": "vacuum"}, {"action": "savepoint"}])
def test_what_a_newer_release_has_written_asks_for_an_upgrade(table, fields) -> None:
    table.overwrite()
    path = _edited(table, fields)
    for look in (table.timeline().snapshot, table.timeline().history, table.append):
        with pytest.raises(NewerFormatError, match=f"{path}.*upgrade"):
            look()


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("gone")])
def test_a_name_of_an_entry_that_is_no_file_ends_the_commit_with_what_to_do(table, make) -> None:
    table.overwrite()
    make(table.store.local_path(log_path(1)))
    with pytest.raises(CorruptError, match=rf"{log_path(1)} is not a file .*remove it"):
        table.append()
    assert table.timeline().latest_version() == 0


def test_the_error_about_a_damaged_record_of_a_clean_says_to_delete_it(table) -> None:
    table.overwrite()
    record = f"{CLEAN_FOLDER}/20240101000000000.json"
    for content in (b"{", b"[]", b"{}", b'{"format_version": 1}'):
        table.store.put(record, content)
        with pytest.raises(CorruptError, match=rf"{record}.*; delete this file"):
            last_clean(table.store)


def test_a_damaged_hint_is_ignored(table) -> None:
    for _ in range(12):
        table.overwrite()
    hints = [DEEP, b"", b"\xff", b'{"version": true}', b'{"version": -1}', b'{"version": 1e3}', b"[1]", b"7" * 9999]
    hints += [json.dumps({"version": 10**each}).encode() for each in (2, 18, 19, 20, 300, 4000)]
    for hint in hints:
        table.store.put(CHECKPOINT_HINT, hint)
        assert version_from_hint(hint) in (None, 100, 10**18, 10**19)
        assert table.timeline().latest_version() == 11
    assert table.append().version == 12


@pytest.mark.parametrize("instant", ["99991231235959999", "99999999999999999", "20241301000000000", "٢" * 17])
def test_a_state_file_of_an_odd_instant_is_none(table, instant) -> None:
    table.overwrite()
    for name in (f"{instant}.commit.requested", f"{instant}.compaction.requested", f"clean/{instant}.json"):
        table.store.put(f".zlayout/timeline/{name}", b"{}")
    table.append()
    clean(table.timeline(), 1, 0, table.now_ms + HOUR_MS)
    assert table.timeline().latest_version() == 1


@pytest.mark.parametrize("pid", [0, -1, 2**31, 2**62, 10**40])
def test_a_plan_of_a_process_that_cannot_be_is_damaged(table, pid) -> None:
    table.overwrite()
    transaction = Transaction.begin(table.timeline(), Action.COMMIT, Operation.APPEND)
    content = json.loads(table.store.read(transaction.inflight_path))
    content["writer"]["pid"] = pid
    table.store.put(transaction.inflight_path, json.dumps(content).encode())
    assert recover(table.timeline()).rolled_back == ()
    transaction.rollback()


def test_a_pipe_is_neither_read_nor_listed(table) -> None:
    table.overwrite()
    root = table.store.local_path("")
    os.mkfifo(root / "pipe.parquet")
    os.mkfifo(root / ".zlayout/timeline/20240101000000000.commit.requested")
    done: list[object] = []

    def look() -> None:
        for read in (lambda: table.store.read("pipe.parquet"), lambda: table.store.read_tail("pipe.parquet", 8)):
            with pytest.raises(StoreError, match="not a regular file"):
                read()
        done.append(table.append())
        done.append(orphans(table.timeline()))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    thread.join(60)
    assert len(done) == 2
    assert done[1] == []


def _parquet(table: pa.Table, **options: object) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", write_statistics=False, **options)
    return bytes(sink.getvalue())


def _repeated(text: str, rows: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array([text])).cast(pa.string())


@pytest.mark.parametrize(
    "column",
    [
        pa.array([7] * 20_000_000, pa.int8()),
        _repeated("x" * 200_000, 2000),
        pa.StructArray.from_arrays([_repeated("x" * 200_000, 2000)], ["min"]),
    ],
    ids=["many equal rows", "a long text in every row", "the same in a struct"],
)
def test_a_slice_that_would_fill_the_memory_is_damaged(column) -> None:
    content = _parquet(pa.table({"path": column}))
    assert len(content) < 100_000
    before = pa.total_allocated_bytes()
    with pytest.raises(CorruptError, match="in memory"):
        read_columns(open_slice(content), ["path"])
    assert pa.total_allocated_bytes() - before < 64 << 20


@pytest.mark.parametrize("rows", [1, 1000, 300_000])
def test_a_slice_of_many_files_whose_statistics_are_all_alike_is_read(rows) -> None:
    paths = pa.array([f"day=2024-01-01/part-{number:05d}-c0ffee.c000.snappy.parquet" for number in range(rows)])
    bounds = pa.StructArray.from_arrays([_repeated("x" * 64, rows), _repeated("y" * 64, rows)], ["min", "max"])
    columns = pa.table({"path": paths, "c0": bounds})
    reader = open_slice(_parquet(columns))
    assert read_columns(reader, ["path"]).num_rows == rows
    assert read_columns(reader, ["c0"]).num_rows == rows


ODD = [
    None,
    True,
    -1,
    0,
    10**12,
    2**63,
    10**400,
    1.5,
    "",
    "x",
    "\ud800",
    "../x",
    [],
    ["x"],
    [None],
    {},
    {"x": 1},
    "9" * 17,
]


def _places(content, at=()):
    for key, value in content.items() if isinstance(content, dict) else enumerate(content):
        yield (*at, key)
        if isinstance(value, (dict, list)):
            yield from _places(value, (*at, key))


def _mutated(content, rng):
    place = rng.choice(list(_places(content)))
    holder = content
    for key in place[:-1]:
        holder = holder[key]
    if rng.random() < 0.2 and isinstance(holder, dict):
        del holder[place[-1]]
    else:
        holder[place[-1]] = rng.choice(ODD)
    return json.dumps(content).encode()


def _use_all_of(table) -> None:
    timeline = table.timeline()
    newest = timeline.latest_version()
    for look in (
        lambda: [row_count(timeline.snapshot(version)) for version in range((newest or 0) + 1)],
        lambda: commit_history(timeline.history()),
        lambda: read_table_file(table.store),
        lambda: version_at_time(timeline, 0, "t"),
        lambda: version_of_instant(timeline, "20240101000000000", "t"),
        lambda: orphans(timeline),
        lambda: recover(timeline),
        table.append,
        lambda: clean(timeline, 1, 0, table.now_ms + HOUR_MS),
    ):
        with suppress(ZlayoutError):
            look()


@pytest.mark.parametrize("rounds", [25, pytest.param(5_700, marks=pytest.mark.exhaustive)])
def test_damage_of_any_file_is_an_error_of_this_package_or_none(table, rounds) -> None:
    rng = random.Random(15)
    create_table_file(table.store, TableFile.new(ManagementLevel.MANAGED, "s.t", 1))
    for _ in range(3):
        table.overwrite()
    for _ in range(9):
        table.append()
    clean(table.timeline(), 1, 0, table.now_ms + HOUR_MS)
    Transaction.begin(table.timeline(), Action.COMMIT, Operation.APPEND)
    whole = {file.path: table.store.read(file.path) for file in table.store.list("", recursive=True)}
    metadata = sorted(path for path in whole if path.startswith(".zlayout/"))
    assert any(path.startswith(CLEAN_FOLDER) for path in metadata)
    for _ in range(rounds):
        path = rng.choice(metadata)
        if path.endswith(".parquet") or rng.random() < 0.3:
            content = bytearray(whole[path])
            for _ in range(rng.randint(1, 8)):
                content[rng.randrange(len(content))] = rng.randrange(256)
            content = bytes(content)[: rng.randint(0, len(content)) if rng.random() < 0.2 else None]
        else:
            content = _mutated(json.loads(whole[path]), rng)
        table.store.put(path, content)
        _use_all_of(table)
        table.store.delete_tree("")
        for name, data in whole.items():
            table.store.put(name, data)


def test_a_damaged_version_that_wins_a_race_is_no_conflict(table) -> None:
    table.overwrite()
    with suppress(CorruptError), Transaction.begin(table.timeline(), Action.COMMIT, Operation.APPEND) as transaction:
        table.store.put(log_path(1), b"{")
        with pytest.raises(CorruptError, match=log_path(1)) as found:
            transaction.commit(Change(table.write(transaction)))
        assert not isinstance(found.value, ConflictError)
