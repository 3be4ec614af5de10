"""Spark's manifest: the log of its file sink, which every Spark session reads instead of listing the folder.

A manifest without a log shows that the log of the folder was lost.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.errors import CorruptError, StoreError
from dbt.adapters.zlayout.quantities import counted
from dbt.adapters.zlayout.store import Store
from dbt.adapters.zlayout.store.uri import escaped, qualified
from dbt.adapters.zlayout.timeline.files.naming import (
    LOG_FOLDER,
    METADATA_FOLDER,
    SPARK_MANIFEST_FOLDER,
    TABLE_FILE,
    is_base_path,
)
from dbt.adapters.zlayout.timeline.log.snapshot import Snapshot
from dbt.adapters.zlayout.timeline.timeline import Timeline

_MANIFEST = re.compile(r"(\d+)\.compact")
_OF_A_STREAM = re.compile(r"\d+")
_HEADER = "v1"
_KEPT = 3
_BLOCK_SIZE_BYTES = 128 * 1024 * 1024
_REBUILD = "rebuild with --full-refresh, which leaves this folder untouched"
_CALL = "run ZTable.adopt(spark, '<schema>.<table>', zorder=[…], managed=True)"
_ADOPT = f"To keep them, {_CALL}: they begin a new log. Or {_REBUILD}"
_CONTINUE = f"Restore the file, or {_CALL}, which goes on with the log. Or {_REBUILD}"
_HAS_LOGS = "Some of them are logs of a merge_on_read table, which cannot be adopted: " + _REBUILD


def manifest_path(version: int) -> str:
    """Returns the path of a version's manifest."""
    return f"{SPARK_MANIFEST_FOLDER}/{version}.compact"


def manifest_bytes(root_uri: str, snapshot: Snapshot) -> bytes:
    """Returns the manifest of a snapshot: the line 'v1', then one `SinkFileStatus` of Spark per line as JSON.

    The table's root is an escaped URI.
    """
    files = snapshot.files
    if not len(files):
        return _HEADER.encode()
    uris = [escaped(path) for path in files["path"].to_pylist()]
    lines = pc.binary_join_element_wise(
        '{"path":"' + qualified(root_uri, ""),
        pa.array(uris, pa.string()),
        '","size":',
        files["size_bytes"].combine_chunks().cast(pa.string()),
        ',"isDir":false,"modificationTime":',
        files["modified_ms"].combine_chunks().cast(pa.string()),
        f',"blockReplication":1,"blockSize":{_BLOCK_SIZE_BYTES},"action":"add"}}',
        "",
    )
    return "\n".join([_HEADER, *lines.to_pylist()]).encode()


def publish(store: Store, snapshot: Snapshot) -> None:
    """Publishes a snapshot to every Spark session; idempotent.

    Versions must be published in order and without gaps: Spark takes the distance of the two newest manifests as the
    interval at which its log is compacted, and expects other files if that is not 1. `catch_up` ensures this.
    """
    path, content = manifest_path(snapshot.version), manifest_bytes(store.root_uri, snapshot)
    # The file may exist with other content: edited by hand, or from a version that the log lost and that was redone.
    if not store.exists(path) or store.read(path) != content:
        store.put(path, content)


def listed_paths(store: Store) -> tuple[int, list[str]] | None:
    """Returns the version that Spark sees and the paths of its files, relative to the root.

    Returns None if there is no manifest, or if a streaming query of Spark wrote it, with one entry per batch.

    Raises:
        CorruptError: The manifest cannot be understood, or lists files outside the folder.
    """
    names = _names(store)
    versions = [int(match[1]) for match in map(_MANIFEST.fullmatch, names) if match]
    if not versions or any(map(_OF_A_STREAM.fullmatch, names)):
        return None
    path = manifest_path(max(versions))
    root = unquote(store.root_uri).rstrip("/") + "/"
    try:
        header, *lines = store.read(path).decode().splitlines()
        uris = [unquote(json.loads(line)["path"]) for line in lines]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptError(f"{path} is not a Spark manifest ({error})") from error
    outside = [uri for uri in uris if not uri.startswith(root)]
    if header != _HEADER or outside:
        problem = f"lists {outside[0]}, which is not below {root}" if outside else f"begins with {header!r}, not 'v1'"
        raise CorruptError(f"{path} {problem}")
    return max(versions), [uri.removeprefix(root) for uri in uris]


def is_published(store: Store, snapshot: Snapshot) -> bool:
    """Returns whether the newest manifest lists exactly the files of a snapshot."""
    if published_version(store) != snapshot.version:
        return False
    try:
        found = store.read(manifest_path(snapshot.version))
    except StoreError:
        return False
    return sorted(found.split(b"\n")) == sorted(manifest_bytes(store.root_uri, snapshot).split(b"\n"))


def published_version(store: Store) -> int | None:
    """Returns the version that Spark sees, None if there is no manifest."""
    return max(_published(store), default=None)


def catch_up(store: Store, timeline: Timeline) -> int | None:
    """Publishes every version that is not published yet, oldest first.

    Returns:
        The version that Spark sees afterwards; None for a table without versions.
    """
    # Manifests are read first. Each is written after its log entry, so one above the newest entry is of a lost version.
    published = _published(store)
    newest = timeline.latest_version()
    if newest is None:
        return None
    lost = sorted(version for version in published if version > newest)
    # Without any manifest, the newest one is enough: Spark has no older one to compare it with.
    first = min(newest, max((version for version in published if version <= newest), default=newest - 1) + 1)
    if lost:
        _go_down(store, lost, timeline.snapshot())
    for version in range(first, newest + 1):
        publish(store, timeline.snapshot(None if version == newest else version))
    # A version committed in the meantime may have been overwritten by the descent.
    return catch_up(store, timeline) if lost and timeline.latest_version() != newest else newest


def _go_down(store: Store, lost: list[int], snapshot: Snapshot) -> None:
    """Publishes a snapshot, then deletes the manifests above it; Spark can read each intermediate state."""
    top, content = lost[-1], manifest_bytes(store.root_uri, snapshot)
    for version in _steps_down(top, snapshot.version):
        store.put(manifest_path(version), content)
        # The newest is deleted last: until then, its distance to the one below is not valid.
        store.delete(manifest_path(each) for each in lost if version < each < top)
        store.delete([manifest_path(top)])
        top = version


def _steps_down(top: int, bottom: int) -> Iterator[int]:
    """Yields versions from below `top` down to `bottom`, at distances that Spark can read.

    Spark takes the distance of the two newest manifests as its compaction interval, which must divide the newest
    version plus one.
    """
    while top > bottom:
        top -= next(step for step in range(top - bottom, 0, -1) if (top + 1) % step == 0)
        yield top


def retire(store: Store, keep: int = _KEPT) -> None:
    """Deletes all but the newest manifests, oldest first; a reader that has just chosen one must still find it."""
    old = sorted(_published(store))[:-keep]
    store.delete(manifest_path(version) for version in old)


def _published(store: Store) -> list[int]:
    return [int(match[1]) for match in map(_MANIFEST.fullmatch, _names(store)) if match]


def _names(store: Store) -> list[str]:
    return [file.path.rpartition("/")[2] for file in store.list(SPARK_MANIFEST_FOLDER)]


def check_log_not_lost(store: Store) -> None:
    """Refuses a folder that has a manifest of this adapter, but no log or no identity file.

    Raises:
        CorruptError: The folder is in that state; the message names what is left and the next step.
    """
    left = listed_paths(store)
    if left is None:
        return
    if not store.exists(TABLE_FILE) and store.list(LOG_FOLDER):
        rescue = f"Restore the file, or {_REBUILD}" if _has_logs(left[1]) else _CONTINUE
        raise CorruptError(f"{store.root_uri}: {TABLE_FILE} is gone, but the log is there. {rescue}")
    raise CorruptError(f"{_problem(store, *left)}. {_HAS_LOGS if _has_logs(left[1]) else _ADOPT}")


def paths_to_adopt(store: Store) -> list[str] | None:
    """Returns the files listed by the manifest of a folder without a log; None if there is no manifest.

    Raises:
        CorruptError: Some are log files, which cannot be read on their own.
    """
    left = listed_paths(store)
    if left is None:
        return None
    if _has_logs(left[1]):
        raise CorruptError(f"{_problem(store, *left)}. {_HAS_LOGS}")
    return left[1]


def _problem(store: Store, version: int, paths: list[str]) -> str:
    return (
        f"{store.root_uri}: the log in {METADATA_FOLDER} is gone, and the history with it. "
        f"{manifest_path(version)} is left: queries still read version {version}, {counted(len(paths), 'file')}"
    )


def _has_logs(paths: list[str]) -> bool:
    return not all(map(is_base_path, paths))
