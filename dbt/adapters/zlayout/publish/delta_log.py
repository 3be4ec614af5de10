"""A Delta log beside the data: each version of the table is a version of a Delta table too, with its statistics.

Readers of Delta open the folder by its path. They cannot write to it, see `WRITER_FEATURE`. Delta counts its own
versions from 0. Each one names in its ``commitInfo`` the version and the instant of the table that it shows.
Source: the Delta transaction log protocol, https://github.com/delta-io/delta/blob/master/PROTOCOL.md
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dbt.adapters.zlayout.errors import AlreadyExistsError, CorruptError, StoreError, UnsupportedError
from dbt.adapters.zlayout.pruning.statistics.validation import contiguous
from dbt.adapters.zlayout.publish.adopted_files import check_readable, opened
from dbt.adapters.zlayout.publish.delta_values import partition_texts, statistics_texts
from dbt.adapters.zlayout.publish.publication import (
    INSTANT,
    LOG_RECORDS,
    TABLE_ID,
    VERSION,
    PublishedTable,
    changes_base_rows,
    check_written_by,
    mark,
    oldest_seen,
    read_if_there,
)
from dbt.adapters.zlayout.store import Store, StoredFile
from dbt.adapters.zlayout.store.uri import escaped
from dbt.adapters.zlayout.timeline.files.action import Operation
from dbt.adapters.zlayout.timeline.files.bounded_parquet import BoundedParquet
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles
from dbt.adapters.zlayout.timeline.files.instant import HOUR_MS
from dbt.adapters.zlayout.timeline.files.naming import is_base_path, is_own_name
from dbt.adapters.zlayout.timeline.log.entry import TableState
from dbt.adapters.zlayout.timeline.log.file_slices import base_files, log_files
from dbt.adapters.zlayout.timeline.log.snapshot import Snapshot

FOLDER = "_delta_log"
# Written by no other software, so engines that write Delta tables refuse to write to this one. All can read it.
WRITER_FEATURE = "zlayoutManaged"
_HINT = f"{FOLDER}/_last_checkpoint"
_COMMIT = re.compile(r"([0-9]{20})\.json")
_CHECKPOINT = re.compile(r"([0-9]{20})\.checkpoint\.parquet")
_CHECKPOINT_EVERY = 10
# A checkpoint lists every file, so large tables get checkpoints less often. Their first commit gets one at once,
# because readers load a checkpoint faster than a commit with a line for each file. Readers replay at most this many
# commits.
_MOST_COMMITS = 100
_FILES_PER_COMMIT = 1_000
_REDO = "switch publishing off (zlayout_publish with off: true) and on again, which writes a new one"
_SCHEMA = "zlayout.schema"
_TIMESTAMP_NTZ = "timestamp_ntz"
# The other keys of a field's metadata mean something to Delta only with features that the table does not declare.
_KEPT_METADATA = ("comment", "__CHAR_VARCHAR_TYPE_STRING")
_OPERATIONS = {
    Operation.MERGE.value: "MERGE",
    Operation.DELETE.value: "DELETE",
    Operation.CLUSTERING.value: "OPTIMIZE",
    Operation.COMPACTION.value: "OPTIMIZE",
    Operation.ROLLBACK.value: "RESTORE",
    Operation.ADOPT.value: "CONVERT",
}
# A file that is written again in its place differs in one of these.
_IDENTITY = ["path", "size", "modificationTime"]
_TEXT_MAP = pa.map_(pa.string(), pa.string())
_ADD = pa.struct(
    [
        ("path", pa.string()),
        ("partitionValues", _TEXT_MAP),
        ("size", pa.int64()),
        ("modificationTime", pa.int64()),
        ("dataChange", pa.bool_()),
        ("stats", pa.string()),
    ]
)
_TEXTS = pa.list_(pa.string())
_CHECKPOINT_SCHEMA = pa.schema(
    [
        ("txn", pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())])),
        ("add", _ADD),
        (
            "remove",
            pa.struct([("path", pa.string()), ("deletionTimestamp", pa.int64()), ("dataChange", pa.bool_())]),
        ),
        (
            "metaData",
            pa.struct(
                [
                    ("id", pa.string()),
                    ("format", pa.struct([("provider", pa.string()), ("options", _TEXT_MAP)])),
                    ("schemaString", pa.string()),
                    ("partitionColumns", _TEXTS),
                    ("configuration", _TEXT_MAP),
                    ("createdTime", pa.int64()),
                ]
            ),
        ),
        (
            "protocol",
            pa.struct(
                [
                    ("minReaderVersion", pa.int32()),
                    ("minWriterVersion", pa.int32()),
                    ("readerFeatures", _TEXTS),
                    ("writerFeatures", _TEXTS),
                ]
            ),
        ),
    ]
)


@dataclass(frozen=True)
class DeltaVersion:
    """What the newest version of the Delta table shows.

    Attributes:
        number: Delta's number of it.
        instant: The instant of that version. The log may have lost the version and made another with its number.
        schema: Digest of the columns and partition columns.
    """

    number: int
    version: int
    instant: str
    schema: str


def commit_path(number: int) -> str:
    """Returns the path of a Delta commit."""
    return f"{FOLDER}/{number:020d}.json"


def _checkpoint_path(number: int) -> str:
    return f"{FOLDER}/{number:020d}.checkpoint.parquet"


def published(store: Store, table_id: str) -> DeltaVersion | None:
    """Returns what readers of Delta see; None if there is no Delta log, or only what a withdrawal that died has left.

    Raises:
        UnsupportedError: Other software has written the Delta log, or another table of this package.
        CorruptError: The newest commit or checkpoint is damaged.
    """
    files = store.list(FOLDER)
    if _has_cut_checkpoint(store, files):
        raise CorruptError(f"{FOLDER} has a checkpoint of another size than was written; publish again to replace it")
    return _published_in(store, files, table_id)


def _published_in(store: Store, files: Sequence[StoredFile], table_id: str) -> DeltaVersion | None:
    numbers = _numbers(files, _COMMIT)
    if not numbers:
        return None
    found = _read_published(store, max(numbers), table_id)
    # Another publisher may delete old commits while files are listed.
    return found if _is_complete(files) or _is_complete(store.list(FOLDER)) else None


def _is_complete(files: Sequence[StoredFile]) -> bool:
    """Returns whether readers find every commit, from the first one or from the newest checkpoint on."""
    commits = set(_numbers(files, _COMMIT))
    begin = max(_numbers(files, _CHECKPOINT), default=-1)
    return commits.issuperset(range(begin + 1, max(commits, default=-1) + 1))


def published_since(store: Store, table_id: str, since_ms: float) -> DeltaVersion | None:
    """Returns the oldest of what Delta's readers have seen since a time, in milliseconds since the epoch.

    Raises:
        UnsupportedError, CorruptError: As for `published`.
    """
    published_ms = {number: each.modified_ms for each in store.list(FOLDER) for number in _numbers([each], _COMMIT)}
    if not published_ms:
        return None
    return _read_published(store, oldest_seen(published_ms, max(published_ms), since_ms), table_id)


def catch_up(source: PublishedTable, table_id: str, retain_hours: float) -> None:
    """Publishes every version that the Delta log does not show yet, oldest first; the newest if there is no Delta log.

    A commit is a function of the version, and its file is created only if it does not exist. So it does not matter how
    many publishers work at the same time. Commits older than ``retain_hours`` are deleted once a newer checkpoint
    exists.

    Raises:
        UnsupportedError: Other software has written the Delta log, or a file holds what readers would misread.
        CorruptError: The Delta log is damaged.
        StoreError: The store failed.
    """
    store, timeline = source.store, source.timeline
    # In this order: a version is published after its commit, so the newest version is never older than the one seen.
    files = store.list(FOLDER)
    seen, newest = _published_in(store, files, table_id), timeline.snapshot()
    if seen is None and not _is_complete(files):
        withdraw(store, table_id)
    written = None
    while seen is None or (seen.version, seen.instant) != (newest.version, newest.instant):
        following, content = _next(source, table_id, seen, newest)
        try:
            store.create(commit_path(following.number), content)
            seen = written = following
        except AlreadyExistsError:  # another publisher was faster
            before, seen, newest = seen, _published_in(store, store.list(FOLDER), table_id), timeline.snapshot()
            if seen == before:
                raise
    if written is not None or _has_cut_checkpoint(store, files):
        _checkpoint_if_due(source, seen, table_id, newest, retain_hours)


def withdraw(store: Store, table_id: str) -> None:
    """Deletes the Delta log, if it is this table's, damaged or not. That of other software is never touched.

    What is deleted first makes the log incomplete: a reader finds no Delta table, and never an old version.
    """
    paths = sorted(file.path for file in store.list(FOLDER))
    # The newest commit may be damaged.
    newest = [path for path in paths if path.endswith(".json")][-2:]
    if not any(mark(table_id) in read_if_there(store, path) for path in newest):
        return
    for path in [_HINT, *paths]:
        store.delete([path])
    store.delete_tree(FOLDER)


def _next(
    source: PublishedTable, table_id: str, seen: DeltaVersion | None, newest: Snapshot
) -> tuple[DeltaVersion, bytes]:
    """Returns the next Delta commit after the one that readers see."""
    if seen is None:
        return _commit(source, table_id, 0, newest, newest.files, (), None, newest)
    if seen.version >= newest.version or source.commit(seen.version).instant != seen.instant:
        # The table's log has lost versions that Delta's readers have seen: the Delta table continues from the versions
        # that remain.
        return _jump(source, table_id, seen, newest)
    commit = source.commit(seen.version + 1)
    removed = [escaped(path) for path in commit.removes if is_base_path(path)]
    snapshot = None
    if commit.layout.get("table_type"):
        snapshot = newest if commit.version == newest.version else source.timeline.snapshot(commit.version)
    try:
        return _commit(source, table_id, seen.number + 1, commit, commit.adds, removed, seen.schema, snapshot)
    except UnsupportedError:
        if commit.version == newest.version:
            raise
        # A file that readers would misread may be gone again by now.
        return _jump(source, table_id, seen, newest)


def _jump(source: PublishedTable, table_id: str, seen: DeltaVersion, newest: Snapshot) -> tuple[DeltaVersion, bytes]:
    """Returns a Delta commit that leads from what readers see to the newest version, whatever lies between."""
    live, _ = _replayed(source.store, seen.number)
    as_shown = {(each["path"], each["size"], each["modificationTime"]) for each in live.select(_IDENTITY).to_pylist()}
    files = newest.files
    stored = (files[name].to_pylist() for name in ("path", "size_bytes", "modified_ms"))
    there = [(escaped(path), size, modified) for path, size, modified in zip(*stored, strict=True)]
    kept = {path for path, _, _ in there}
    gone = [path for path in live["path"].to_pylist() if path not in kept]
    added = files.take(pa.array([at for at, each in enumerate(there) if each not in as_shown], pa.int64()))
    return _commit(source, table_id, seen.number + 1, newest, added, gone, None, newest, data_change=True)


def _commit(
    source: PublishedTable,
    table_id: str,
    number: int,
    state: TableState,
    added: DataFiles,
    removed: Collection[str],
    schema: str | None,
    snapshot: Snapshot | None,
    *,
    data_change: bool | None = None,
) -> tuple[DeltaVersion, bytes]:
    """Returns a Delta commit and what its readers see.

    Args:
        source: The table.
        number: The Delta version of the commit.
        state: The version to show.
        added: Files to add.
        removed: Paths in Delta's spelling. A path that is added again is not removed: no version may hold both.
        schema: Digest of the columns before; None writes them.
        snapshot: All files of the version; may be None for a table without logs.
        data_change: Whether rows have changed since the Delta commit before; None asks the version.
    """
    hidden = 0 if snapshot is None else log_files(snapshot.files).total_rows
    data_change = changes_base_rows(state) if data_change is None else data_change
    adds = _adds(source, state, base_files(added), data_change)
    again = {each["path"] for each in adds}
    lines: list[Mapping[str, Any]] = [
        {
            "commitInfo": {
                "timestamp": state.committed_ms,
                "operation": _OPERATIONS.get(state.operation, "WRITE"),
                "operationParameters": {},
                "engineInfo": "dbt-zlayout",
                TABLE_ID: table_id,
                VERSION: state.version,
                INSTANT: state.instant,
                _SCHEMA: _schema_digest(state),
                **({LOG_RECORDS: hidden} if hidden else {}),
            }
        }
    ]
    if schema != _schema_digest(state):
        lines += [{"protocol": protocol(state.schema_json)}, {"metaData": _metadata(state, table_id)}]
    lines.append({"txn": _transaction(state, table_id)})
    lines += [
        {"remove": {"path": path, "deletionTimestamp": state.committed_ms, "dataChange": data_change}}
        for path in removed
        if path not in again
    ]
    lines += [{"add": each} for each in adds]
    text = "".join(json.dumps(line, separators=(",", ":"), ensure_ascii=False) + "\n" for line in lines)
    return DeltaVersion(number, state.version, state.instant, _schema_digest(state)), text.encode()


def _transaction(state: TableState, table_id: str) -> dict[str, Any]:
    return {"appId": f"zlayout-{table_id}", "version": state.version, "lastUpdated": state.committed_ms}


def _metadata(state: TableState, table_id: str) -> dict[str, Any]:
    return {
        "id": table_id,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": delta_schema(state.schema_json),
        "partitionColumns": list(state.partition_by),
        "configuration": {TABLE_ID: table_id},
        "createdTime": state.committed_ms,
    }


def _schema_digest(state: TableState) -> str:
    text = json.dumps([delta_schema(state.schema_json), list(state.partition_by)])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _adds(source: PublishedTable, state: TableState, files: DataFiles, data_change: bool) -> list[dict[str, Any]]:
    if not len(files):
        return []
    paths = contiguous(files["path"])
    column_stats = source.statistics(state, files)
    for each in opened(source.store, [path for path in paths.to_pylist() if not is_own_name(path)]):
        check_readable(each, state, column_stats, "delta")
    kinds = {each["name"]: each["type"] for each in json.loads(state.schema_json)["fields"]}
    columns = [partition_texts(files.partition_values(name), name, kinds[name]) for name in files.partition_by]
    return [
        {
            "path": escaped(path),
            "partitionValues": dict(zip(files.partition_by, values, strict=True)),
            "size": size,
            "modificationTime": modified,
            "dataChange": data_change,
            "stats": stats,
        }
        for path, size, modified, stats, *values in zip(
            paths.to_pylist(),
            files["size_bytes"].to_pylist(),
            files["modified_ms"].to_pylist(),
            statistics_texts(paths, contiguous(files["row_count"]), column_stats, kinds),
            *columns,
            strict=True,
        )
    ]


def _numbers(files: Sequence[StoredFile], pattern: re.Pattern[str]) -> list[int]:
    found = (pattern.fullmatch(file.path.rpartition("/")[2]) for file in files)
    return [int(match[1]) for match in found if match]


def _read_published(store: Store, number: int, table_id: str) -> DeltaVersion:
    path = commit_path(number)
    content = store.read(path)
    first = content.partition(b"\n")[0]
    if first.endswith(b"}"):
        check_written_by(table_id, path, content, "delta")
    if not first.endswith(b"}") or not content.endswith(b"\n"):
        raise CorruptError(f"{path} ends within a line; {_REDO}")
    try:
        info = json.loads(first)["commitInfo"]
        return DeltaVersion(number, int(info[VERSION]), str(info[INSTANT]), str(info[_SCHEMA]))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptError(f"{path} is not a Delta commit of this package ({error}); {_REDO}") from error


def _checkpoint_if_due(
    source: PublishedTable, written: DeltaVersion, table_id: str, state: Snapshot, retain_hours: float
) -> None:
    """Writes a checkpoint if one is due.

    One is due every few commits, when the columns have changed, when the last one is damaged, and at once for a large
    table without any.

    DuckDB reads values of all files since the last checkpoint in the newest types, even of files that are removed.
    """
    store, number = source.store, written.number
    files = store.list(FOLDER)
    commits = min(_MOST_COMMITS, max(_CHECKPOINT_EVERY, len(state.files) // _FILES_PER_COMMIT))
    if len(state.files) <= _FILES_PER_COMMIT or _numbers(files, _CHECKPOINT):
        newest, schema = _newest_checkpoint(store, files, table_id)
        if number - newest < commits and schema == written.schema:
            return
    try:
        live, others = _replayed(store, number)
    except CorruptError:
        live, others = _of_state(source, state, table_id)
    parts = [_rows(name, pa.array([each], _CHECKPOINT_SCHEMA.field(name).type)) for name, each in others.items()]
    parts.append(_rows("add", live.to_struct_array().combine_chunks()))
    table = pa.concat_tables(parts)
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", use_dictionary=False)
    content = bytes(sink.getvalue())
    store.put(_checkpoint_path(number), content)
    hint = {
        "version": number,
        "size": table.num_rows,
        "sizeInBytes": len(content),
        "tags": {_SCHEMA: written.schema},
    }
    store.put(_HINT, json.dumps(hint).encode())
    # The commits and checkpoints below it are needed only for old versions, whose files are cleaned after these hours.
    now_ms = store.stat(_HINT).modified_ms
    old = sorted(
        file.path
        for file in files
        if file.modified_ms < now_ms - retain_hours * HOUR_MS
        and any(below < number for pattern in (_COMMIT, _CHECKPOINT) for below in _numbers([file], pattern))
    )
    store.delete(old)


def _newest_checkpoint(store: Store, files: Sequence[StoredFile], table_id: str) -> tuple[int, str | None]:
    """Returns the Delta version at which readers begin, and the digest of its columns; None if it must be replaced."""
    number = max(_numbers(files, _CHECKPOINT), default=None)
    if number is None:
        return 0, _read_published(store, 0, table_id).schema
    hint = _hint_of(store, number)
    try:
        return number, None if hint is None or _is_cut(hint, files) else hint["tags"][_SCHEMA]
    except (KeyError, TypeError):
        return number, None


def _has_cut_checkpoint(store: Store, files: Sequence[StoredFile]) -> bool:
    number = max(_numbers(files, _CHECKPOINT), default=None)
    hint = None if number is None else _hint_of(store, number)
    return hint is not None and _is_cut(hint, files)


def _hint_of(store: Store, number: int) -> Mapping[str, Any] | None:
    """Returns what the hint says of a checkpoint; None if it is of another one or cannot be read."""
    try:
        hint = json.loads(store.read(_HINT))
        return hint if hint["version"] == number else None
    except (StoreError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _is_cut(hint: Mapping[str, Any], files: Sequence[StoredFile]) -> bool:
    """Returns whether a checkpoint has another size than its publisher gave it. Earlier releases did not record it."""
    path = _checkpoint_path(hint["version"])
    return any(each.path == path and each.size_bytes != hint.get("sizeInBytes", each.size_bytes) for each in files)


def _of_state(source: PublishedTable, state: Snapshot, table_id: str) -> tuple[pa.Table, dict[str, Any]]:
    """Returns what `_replayed` would return if the log were whole, from the version that it shows."""
    adds = [
        {**each, "partitionValues": list(each["partitionValues"].items())}
        for each in _adds(source, state, base_files(state.files), data_change=False)
    ]
    others = {
        "txn": _transaction(state, table_id),
        "metaData": _metadata(state, table_id),
        "protocol": protocol(state.schema_json),
    }
    return pa.Table.from_pylist(adds, pa.schema(list(_ADD))), others


def _rows(name: str, values: pa.Array) -> pa.Table:
    columns = [
        values.cast(each.type) if each.name == name else pa.nulls(len(values), each.type) for each in _CHECKPOINT_SCHEMA
    ]
    return pa.table(columns, schema=_CHECKPOINT_SCHEMA)


def _replayed(store: Store, number: int) -> tuple[pa.Table, dict[str, Any]]:
    """Returns the live add actions of a Delta version, and its newest txn, metaData and protocol by name.

    Raises:
        CorruptError: A commit is missing or damaged.
    """
    start = max((each for each in _numbers(store.list(FOLDER), _CHECKPOINT) if each <= number), default=None)
    others: dict[str, Any] = {}
    old = pa.table({each.name: pa.array([], each.type) for each in _ADD})
    if start is not None:
        path = _checkpoint_path(start)
        try:
            stored = BoundedParquet(store.read(path)).read().cast(_CHECKPOINT_SCHEMA)
        except (CorruptError, pa.ArrowException, ValueError) as error:
            raise CorruptError(f"{path} is not a Delta checkpoint ({error}); {_REDO}") from error
        others = {
            name: found[0].as_py() for name in ("txn", "metaData", "protocol") if len(found := stored[name].drop_null())
        }
        old = pa.Table.from_struct_array(stored["add"].drop_null())
    new: dict[str, Mapping[str, Any]] = {}
    touched: set[str] = set()
    for each in range(0 if start is None else start + 1, number + 1):
        path = commit_path(each)
        try:
            for line in store.read(path).splitlines():
                ((name, action),) = json.loads(line).items()
                if name in ("add", "remove"):
                    touched.add(action["path"])
                    new.pop(action["path"], None)
                    if name == "add":
                        new[action["path"]] = {**action, "partitionValues": list(action["partitionValues"].items())}
                elif name != "commitInfo":
                    others[name] = action
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise CorruptError(f"{path} is not a Delta commit of this package ({error}); {_REDO}") from error
    kept = old.filter(pc.invert(pc.is_in(old["path"], value_set=pa.array(sorted(touched), pa.string()))))
    return pa.concat_tables([kept, pa.Table.from_pylist(list(new.values()), pa.schema(list(_ADD)))]), others


def delta_schema(schema_json: str) -> str:
    """Returns the ``schemaString`` for Spark's JSON of a schema. Every column may be null."""
    return json.dumps(_type(json.loads(schema_json)), separators=(",", ":"), ensure_ascii=False)


def protocol(schema_json: str) -> dict[str, Any]:
    """Returns the ``protocol`` action for a schema."""
    if _TIMESTAMP_NTZ not in {word for _, word in leaf_types(json.loads(schema_json), "")}:
        return {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": [WRITER_FEATURE]}
    features = ["timestampNtz"]
    writer_features = [*features, WRITER_FEATURE]
    return {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": features,
        "writerFeatures": writer_features,
    }


def leaf_types(kind: Any, name: str) -> Iterator[tuple[str, str]]:
    """Yields the name and type of each leaf of a type, as Spark's JSON has them."""
    if isinstance(kind, str):
        yield name, kind
        return
    if kind["type"] == "struct":
        for each in kind["fields"]:
            yield from leaf_types(each["type"], f"{name}.{each['name']}" if name else each["name"])
    elif kind["type"] in ("array", "map"):
        for part in ("elementType", "keyType", "valueType"):
            if part in kind:
                yield from leaf_types(kind[part], name)
    else:
        yield name, str(kind["type"])


def _type(kind: Any) -> Any:
    """Returns a type without constraints on nulls and without metadata that only Spark understands."""
    if isinstance(kind, str):
        return "string" if re.fullmatch(r"(var)?char\(\d+\)", kind) else kind
    if kind["type"] == "struct":
        return {"type": "struct", "fields": list(map(_field, kind["fields"]))}
    nested = {part: _type(kind[part]) for part in ("elementType", "keyType", "valueType") if part in kind}
    nullable = {"array": "containsNull", "map": "valueContainsNull"}[kind["type"]]
    return {"type": kind["type"], **nested, nullable: True}


def _field(each: Any) -> dict[str, Any]:
    metadata = {key: value for key, value in (each.get("metadata") or {}).items() if key in _KEPT_METADATA}
    return {"name": each["name"], "type": _type(each["type"]), "nullable": True, "metadata": metadata}
