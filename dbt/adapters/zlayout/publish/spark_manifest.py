"""Spark's manifest: the log of its file sink, which every Spark session reads instead of listing the folder."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.errors import FileMissingError, StoreError
from dbt.adapters.zlayout.store import Store
from dbt.adapters.zlayout.store.uri import escaped, qualified
from dbt.adapters.zlayout.timeline.log import Timeline
from dbt.adapters.zlayout.timeline.naming import SPARK_MANIFEST_FOLDER
from dbt.adapters.zlayout.timeline.snapshot import Snapshot

_MANIFEST = re.compile(r"(\d+)\.compact")
_HEADER = "v1"
_BLOCK_SIZE_BYTES = 128 * 1024 * 1024


def manifest_path(version: int) -> str:
    """Return the manifest of a version."""
    return f"{SPARK_MANIFEST_FOLDER}/{version}.compact"


def manifest_bytes(root_uri: str, snapshot: Snapshot) -> bytes:
    """Return the manifest of a snapshot: `SinkFileStatus` of Spark, one JSON object a line after the line 'v1'.

    Args:
        root_uri: The table's root as an escaped URI.
        snapshot: The snapshot.
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
    """Show a snapshot to every Spark session; doing it again changes nothing.

    Versions must be published in order and without gaps: Spark takes the distance of the two newest manifests for the
    interval at which its log is compacted, and expects other files where that is not 1. `catch_up` sees to it.
    """
    path, content = manifest_path(snapshot.version), manifest_bytes(store.root_uri, snapshot)
    # Another file may have its name: edited by hand, or of a version that the log has lost and that came anew.
    if not store.exists(path) or store.read(path) != content:
        store.put(path, content)


def shows(store: Store, snapshot: Snapshot) -> bool:
    """Tell whether the newest manifest lists the files of a snapshot, and nothing else."""
    if published_version(store) != snapshot.version:
        return False
    try:
        found = store.read(manifest_path(snapshot.version))
    except StoreError:
        return False
    return sorted(found.split(b"\n")) == sorted(manifest_bytes(store.root_uri, snapshot).split(b"\n"))


def published_version(store: Store) -> int | None:
    """Return the version that Spark sees, None where there is no manifest."""
    return max(_published(store), default=None)


def catch_up(store: Store, timeline: Timeline) -> int | None:
    """Publish every version that is not published yet, oldest first.

    Returns:
        The version that Spark sees afterwards; None for a table without versions.
    """
    # Manifests first: each came after its entry, so one beyond the newest entry is of a version that the log has lost.
    published = _published(store)
    newest = timeline.latest_version()
    if newest is None:
        return None
    lost = sorted((version for version in published if version > newest), reverse=True)
    # Without any manifest the newest alone will do: there is no older one for Spark to compare it with.
    first = min(newest, max((version for version in published if version <= newest), default=newest - 1) + 1)
    for version in range(first, newest + 1):
        publish(store, timeline.snapshot(None if version == newest else version))
    store.delete(manifest_path(version) for version in lost)
    return newest


def retire(store: Store, keep: int = 3) -> None:
    """Delete all but the newest manifests, oldest first; a reader that has just chosen one must still find it."""
    old = sorted(_published(store))[:-keep]
    store.delete(manifest_path(version) for version in old)


def unpublish(store: Store) -> None:
    """Delete the manifest: Spark lists the folder again."""
    # Newest last: until the end Spark sees a manifest that is whole.
    versions = sorted(_published(store))
    store.delete(manifest_path(version) for version in versions)
    store.delete_tree(SPARK_MANIFEST_FOLDER)


def _published(store: Store) -> list[int]:
    try:
        names = [file.path.rpartition("/")[2] for file in store.list(SPARK_MANIFEST_FOLDER)]
    except FileMissingError:
        return []
    return [int(match[1]) for match in map(_MANIFEST.fullmatch, names) if match]
