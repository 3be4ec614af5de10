"""Makes the next metadata of a published Iceberg table: the manifests of a commit, its snapshot and its statistics.

What is written for a version is a function of it and of the metadata before.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.manifest import ManifestFile

from dbt.adapters.zlayout.errors import AlreadyExistsError, CorruptError, FileMissingError, UnsupportedError
from dbt.adapters.zlayout.pruning.statistics.validation import contiguous
from dbt.adapters.zlayout.publish.adopted_files import AdoptedFile, check_readable, opened, refused
from dbt.adapters.zlayout.publish.iceberg_manifests import (
    AddedEntries,
    Address,
    KeptManifest,
    Part,
    full_bytes,
    grouped,
    live_files,
    manifest_list,
    manifest_of,
    new_files,
    parts_of,
    read_manifest_list,
)
from dbt.adapters.zlayout.publish.iceberg_metadata import (
    FOLDER,
    NUMBER,
    REDO,
    REPLACED,
    IcebergVersion,
    Replaced,
    current_snapshot,
    is_here,
    may_continue,
    metadata_numbers,
    metadata_path,
    replaced_in,
    retained,
    schema_id_of,
    spec_id_of,
)
from dbt.adapters.zlayout.publish.iceberg_schema import (
    IcebergSchema,
    field_id,
    ids_in,
    mapping_of_file,
    merged_mapping,
    partition_types,
)
from dbt.adapters.zlayout.publish.iceberg_statistics import data_file_entries
from dbt.adapters.zlayout.publish.publication import (
    INSTANT,
    LOG_RECORDS,
    TABLE_ID,
    VERSION,
    PublishedTable,
    changes_base_rows,
)
from dbt.adapters.zlayout.store import StoredFile
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles
from dbt.adapters.zlayout.timeline.files.instant import HOUR_MS
from dbt.adapters.zlayout.timeline.files.naming import is_base_path, is_own_name
from dbt.adapters.zlayout.timeline.log.entry import Commit, TableState
from dbt.adapters.zlayout.timeline.log.file_slices import base_files, log_files
from dbt.adapters.zlayout.timeline.log.snapshot import Snapshot

_T = TypeVar("_T")
_MAPPING = "schema.name-mapping.default"
_METADATA_KEPT = 10
_THREADS = 8
# Lists are short. Threads of their own would cost more than they gain.
_READ = pa.ipc.IpcReadOptions(use_threads=False)
_WRITE = pa.ipc.IpcWriteOptions(compression="zstd", use_threads=False)
_FILES = pa.schema([("path", pa.string()), ("rows", pa.int64()), ("bytes", pa.int64()), ("manifest", pa.string())])


@dataclass(frozen=True)
class _Content:
    """The files of one snapshot in manifests.

    Attributes:
        operation: What the snapshot did, in Iceberg's words.
        manifests: The entries of its manifest list.
        files: Its data files, with the manifest of each, as `_FILES`.
        changes: Counts of the change, for its summary.
        written: New metadata files by path.
        replaced: Paths of metadata files that it does not need any more.
        names: The name mapping of files of other software that it adds.
    """

    operation: str
    manifests: Sequence[ManifestFile]
    files: pa.Table
    changes: Mapping[str, int]
    written: Mapping[str, bytes]
    replaced: tuple[str, ...]
    names: Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class _Manifests:
    """A snapshot's manifests.

    Attributes:
        listed: The entries of its manifest list.
        written: Those that it writes, by path.
        moved: In which new manifest the files of an earlier one are now; None if it had none but those removed.
        of_added: The manifest of each file that it adds.
    """

    listed: Sequence[ManifestFile]
    written: Mapping[str, bytes]
    moved: Mapping[str, str | None]
    of_added: Sequence[str]


class Publisher:
    """Makes the next metadata of one table."""

    def __init__(self, source: PublishedTable, table_id: str, retain_hours: float) -> None:
        self._source = source
        self._store = store = source.store
        self._table_id = table_id
        self._retain_ms = int(retain_hours * HOUR_MS)
        # A local disk gains little.
        self._threads = _THREADS if store.local_path(FOLDER) is None else 1
        # Iceberg's paths are not escaped.
        self._here = self._location = unquote(store.root_uri)

    def write_next(self, seen: IcebergVersion | None, newest: Snapshot, listed: Collection[str]) -> IcebergVersion:
        """Writes the next version's files, and returns its metadata, which the caller writes to publish it.

        ``seen`` is what readers see, None for no table. ``listed`` are the files of metadata.
        """
        self._location = seen.metadata["location"] if seen and is_here(self._store, seen.metadata) else self._here
        if seen is None:
            # Numbers of an earlier publication are lower, so that a file of a publisher from then is never the newest.
            return self._whole_version(newest.version + 1, newest, None, listed)
        moved = seen.metadata.get("location") != self._location
        if moved or seen.version >= newest.version or self._source.commit(seen.version).instant != seen.instant:
            # The folder was moved or copied, or the log has lost versions that readers have seen.
            return self._whole_version(seen.number + 1, newest, seen, listed)
        commit = self._source.commit(seen.version + 1)
        try:
            return self._next_version(commit, seen, newest, listed)
        except UnsupportedError:
            if commit.version == newest.version:
                raise
            # A file that readers would misread may be gone again by now.
            return self._whole_version(seen.number + 1, newest, seen, listed)

    def _next_version(
        self, commit: Commit, seen: IcebergVersion, newest: Snapshot, listed: Collection[str]
    ) -> IcebergVersion:
        """Writes the version after the one that readers see."""
        schema = IcebergSchema.of(commit.schema_json, commit.partition_by)
        files = self._files_of(seen) if may_continue(seen.metadata, schema) else None
        if files is None:
            state = newest if newest.version == commit.version else self._source.timeline.snapshot(commit.version)
            return self._whole_version(seen.number + 1, state, seen, listed)
        added, removed = _changed_files(commit, files)
        records = _log_records(newest) if newest.version == commit.version else None
        if not len(added) and not len(removed):
            return self._metadata_of(seen.number + 1, commit, schema, seen, None, listed, records)
        address = self._address(seen.number + 1, commit)
        content = self._changed_version(commit, schema, seen, files, added, removed, address)
        return self._metadata_of(seen.number + 1, commit, schema, seen, content, listed, records)

    def delete_old(self, written: IcebergVersion, listed: Iterable[StoredFile]) -> None:
        """Deletes what readers of the new metadata and of recent ones do not need."""
        there = {each.path for each in listed}
        gone = [
            path
            for each in self._expired(replaced_in(written.metadata), written.metadata)
            for path in each.paths
            if path in there
        ]
        now_ms = self._store.stat(metadata_path(written.number)).modified_ms
        gone += [
            each.path
            for each in listed
            for number in metadata_numbers([each])
            if number <= written.number - _METADATA_KEPT and each.modified_ms < now_ms - self._retain_ms
        ]
        if gone:
            self._store.delete(gone)

    def _expired(self, replaced: Iterable[Replaced], metadata: Mapping[str, Any]) -> list[Replaced]:
        """Returns the replaced files that no reader needs any more."""
        oldest = min(each["sequence-number"] for each in metadata["snapshots"])
        until_ms = metadata["last-updated-ms"] - self._retain_ms
        return [each for each in replaced if each.number <= oldest and each.since_ms <= until_ms]

    def _address(self, number: int, state: TableState) -> Address:
        digest = hashlib.sha256(f"{self._table_id} {number} {state.instant}".encode()).digest()
        stem = f"{FOLDER}/{number:08d}-{state.instant}"
        return Address(self._location, stem, int.from_bytes(digest[:8], "big") >> 1, number)

    def _files_of(self, seen: IcebergVersion) -> pa.Table | None:
        """Returns the files that readers see, with their manifests; None if the list of them was lost.

        Raises:
            AlreadyExistsError: Another publisher was faster, and has deleted it.
        """
        path = _files_path(current_snapshot(seen.metadata))
        try:
            content = pa.BufferReader(self._store.read(path))
            return pa.ipc.open_file(content, options=_READ).read_all().cast(_FILES)
        except (FileMissingError, pa.ArrowException, OSError, ValueError) as error:
            following = metadata_path(seen.number + 1)
            if self._store.exists(following):
                raise AlreadyExistsError(following) from error
            return None

    def _whole_version(
        self, number: int, state: Snapshot, seen: IcebergVersion | None, listed: Collection[str]
    ) -> IcebergVersion:
        """Writes a version as if it were the first: new manifests of all its files."""
        schema = IcebergSchema.of(state.schema_json, state.partition_by)
        address = self._address(number, state)
        files = base_files(state.files)
        if files.partition_by:
            order = [(f"p{position}", "ascending") for position in range(len(files.partition_by))]
            keys = {f"p{position}": files.partition_values(name) for position, name in enumerate(files.partition_by)}
            rows = pa.table({**keys, "row": pa.array(range(len(files)), pa.int64())})
            files = files.take(contiguous(rows.sort_by([*order, ("row", "ascending")])["row"]))
        column_stats = self._source.statistics(state, files)
        new = self._new_files(column_stats, schema, files, seen, address)
        manifests = self._manifests([], new, _FILES.empty_table(), schema, len(files), address)
        table = _sized(files).append_column("manifest", pa.array(manifests.of_added, pa.string()))
        changes = _counts("added", table)
        old = sorted(each for each in listed if each.endswith((".avro", ".files")))
        operation = "overwrite" if seen else "append"
        names = self._names_in(state, column_stats, schema, files, first=seen is None)
        content = _Content(operation, manifests.listed, table, changes, manifests.written, tuple(old), names)
        return self._metadata_of(number, state, schema, seen, content, listed, _log_records(state), anew=True)

    def _changed_version(
        self,
        commit: Commit,
        schema: IcebergSchema,
        seen: IcebergVersion,
        files: pa.Table,
        added: DataFiles,
        removed: pa.Table,
        address: Address,
    ) -> _Content:
        """Writes what a commit changes: its files, and again the manifests that lose files or are not full."""
        path = self._relative(current_snapshot(seen.metadata)["manifest-list"])
        before = read_manifest_list(self._store.read(path), path)
        column_stats = self._source.statistics(commit, added)
        new = self._new_files(column_stats, schema, added, seen, address)
        kept = files.filter(pc.invert(pc.is_in(files["path"], value_set=contiguous(removed["path"]))))
        manifests = self._manifests(before, new, removed, schema, kept.num_rows + len(added), address)
        sized = _sized(added)
        of_added = sized.append_column("manifest", pa.array(manifests.of_added, pa.string()))
        table = pa.concat_tables([_with_new_manifests(kept, manifests.moved), of_added])
        operation = _operation(len(added), removed.num_rows) if changes_base_rows(commit) else "replace"
        changes = {**_counts("added", sized), **_counts("deleted", removed)}
        replaced = (*manifests.moved, path, _files_path(current_snapshot(seen.metadata)))
        names = self._names_in(commit, column_stats, schema, added, first=False)
        return _Content(operation, manifests.listed, table, changes, manifests.written, replaced, names)

    def _manifests(
        self,
        before: Sequence[ManifestFile],
        new: AddedEntries,
        removed: pa.Table,
        schema: IcebergSchema,
        files: int,
        address: Address,
    ) -> _Manifests:
        """Returns a snapshot's manifests.

        ``removed`` are the rows of `_FILES` that it removes, and ``files`` is how many files it has.
        """
        old = {self._relative(each.manifest_path): each for each in before}
        lost = Counter(removed["manifest"].to_pylist())
        if not lost.keys() <= old.keys():
            raise CorruptError(f"{FOLDER} does not list {min(lost.keys() - old.keys())}, which has files; {REDO}")
        # A manifest begins with the columns, however many files are in it.
        columns_bytes = len(json.dumps(schema.to_json(0)))
        size_bytes = {path: max(each.manifest_length - columns_bytes, 0) for path, each in old.items()}
        full = full_bytes(sum(size_bytes.values()) + new.size_bytes, files)
        parts = {f"new{number}": part for number, part in enumerate(new.parts(full))}
        names_of_new = [name for name, part in parts.items() for _ in range(part.added.files)]
        sizes = {name: KeptManifest(len(part.added.content), is_written=True) for name, part in parts.items()}
        for path, each in old.items():
            left, deleted_before = live_files(each) - lost[path], each.deleted_files_count or 0
            if left:
                size = size_bytes[path] * left // (live_files(each) + deleted_before)
                # What an earlier snapshot deleted is left out as soon as possible.
                sizes[path] = KeptManifest(size, is_written=path in lost or deleted_before > 0)
        names = list(sizes)
        groups = [[names[position] for position in group] for group in grouped(list(sizes.values()), full)]
        again = [path for path in old if path in lost or any(path in group for group in groups)]
        gone: dict[str, dict[str, int]] = {path: {} for path in again}
        for row in removed.to_pylist():
            gone[row["manifest"]][row["path"]] = row["rows"]
        deleted: list[Part] = []
        for path, content in zip(again, self._each(self._store.read, again), strict=True):
            parts[path], deletes = parts_of(content, old[path], gone[path], address)
            deleted += [deletes] if gone[path] else []
        put_together = [[parts[name] for name in group] for group in groups]
        if deleted:
            open_bytes = sum(sizes[name].size_bytes for name in groups[-1]) if groups else full
            if open_bytes >= full or open_bytes + sum(len(each.deleted.content) for each in deleted) >= 2 * full:
                # The next snapshot leaves it out without reading it.
                put_together.append([])
            put_together[-1] += deleted
        types = list(partition_types(schema).values())
        made = [manifest_of(each, f"files{number}", types, address) for number, each in enumerate(put_together)]
        moved = {name: made[number][0] for number, group in enumerate(groups) for name in group}
        return _Manifests(
            [*(entry for _, _, entry in made), *(each for path, each in old.items() if path not in again)],
            {path: content for path, content, _ in made},
            {path: moved.get(path) for path in again},
            [moved[name] for name in names_of_new],
        )

    def _new_files(
        self,
        column_stats: pa.Table,
        schema: IcebergSchema,
        files: DataFiles,
        seen: IcebergVersion | None,
        address: Address,
    ) -> AddedEntries:
        """Returns the entries of files that a version adds."""
        entries = data_file_entries(self._location, files, column_stats, schema)
        schema_json = schema.to_json(schema_id_of(seen.metadata if seen else None, schema))
        return new_files(
            entries, schema_json, schema.spec(spec_id_of(seen.metadata if seen else None, schema)), address
        )

    def _names_in(
        self, state: TableState, column_stats: pa.Table, schema: IcebergSchema, files: DataFiles, *, first: bool
    ) -> Sequence[Mapping[str, Any]]:
        """Returns the name mapping of added files of other software, whose ids must not mean other columns.

        ``first`` also reads the names in files that Spark's writer wrote for this table, of whatever columns it had.
        """
        paths = files["path"].to_pylist()
        columns = {each["name"] for each in schema.fields}
        names: Sequence[Mapping[str, Any]] = []
        for each in opened(self._store, [path for path in paths if not is_own_name(path)]):
            _check_file_ids(each, columns)
            check_readable(each, state, column_stats, "iceberg")
            names = merged_mapping(names, mapping_of_file(each.columns))
        if first and state.layout.get("writer") == "spark":
            for each in opened(self._store, filter(is_own_name, paths)):
                names = merged_mapping(names, mapping_of_file(each.columns))
        return names

    def _metadata_of(
        self,
        number: int,
        state: TableState,
        schema: IcebergSchema,
        seen: IcebergVersion | None,
        content: _Content | None,
        listed: Collection[str],
        log_records: int | None,
        *,
        anew: bool = False,
    ) -> IcebergVersion:
        """Writes a snapshot's manifests and manifest list, and returns the metadata that shows it.

        Args:
            schema: Its columns.
            seen: What readers see before.
            content: The new snapshot; None if the data files are the same as before.
            log_records: Rows in logs, which are not shown; None if that is unknown.
            anew: Whether earlier snapshots are given up.
        """
        before = seen.metadata if seen else {}
        now_ms = max(state.committed_ms, before.get("last-updated-ms", 0))
        snapshots = [] if anew else list(before.get("snapshots", []))
        history = [] if anew else list(before.get("snapshot-log", []))
        replaced = replaced_in(before)
        schema_id, spec_id = schema_id_of(before, schema), spec_id_of(before, schema)
        if content is not None:
            address = self._address(number, state)
            parent = snapshots[-1]["snapshot-id"] if snapshots else None
            snapshot, written = self._snapshot(address, state, content, parent, schema_id, now_ms)
            snapshots.append(snapshot)
            history.append({"snapshot-id": address.snapshot_id, "timestamp-ms": now_ms})
            # A publisher that died may have written some of the new files before.
            gone = [each for each in content.replaced if each not in written]
            if gone:
                # Only publishers read the lists of files.
                lists = tuple(each for each in gone if each.endswith(".files"))
                others = tuple(each for each in gone if not each.endswith(".files"))
                replaced += [Replaced(0, 0, lists), Replaced(number, now_ms, others)]
        snapshots = retained(snapshots, state, now_ms, self._retain_ms)
        kept = {each["snapshot-id"] for each in snapshots}
        schemas = [each for each in before.get("schemas", []) if each["schema-id"] != schema_id and not anew]
        schemas = [
            each for each in schemas if any(each["schema-id"] == snapshot["schema-id"] for snapshot in snapshots)
        ]
        # Readers refuse a file without ids if it has a column that is not mapped, such as one that was dropped.
        earlier = json.loads(before.get("properties", {}).get(_MAPPING, "[]"))
        names = merged_mapping(merged_mapping(schema.name_mapping(), earlier), content.names if content else ())
        current = snapshots[-1]
        metadata: dict[str, Any] = {
            "format-version": 2,
            "table-uuid": _uuid(self._table_id),
            "location": self._location,
            "last-sequence-number": current["sequence-number"],
            "last-updated-ms": now_ms,
            "last-column-id": max([*schema.ids(), before.get("last-column-id", 0)]),
            "current-schema-id": schema_id,
            "schemas": [*schemas, schema.to_json(schema_id)],
            "default-spec-id": spec_id,
            "partition-specs": [schema.spec(spec_id)],
            "last-partition-id": max(schema.last_partition_id(), before.get("last-partition-id", 0)),
            "default-sort-order-id": 0,
            "sort-orders": [{"order-id": 0, "fields": []}],
            "properties": {
                TABLE_ID: self._table_id,
                VERSION: str(state.version),
                INSTANT: state.instant,
                NUMBER: str(number),
                **({LOG_RECORDS: str(log_records)} if log_records else {}),
                "gc.enabled": "false",
                _MAPPING: json.dumps(names, ensure_ascii=False, separators=(",", ":")),
            },
            "current-snapshot-id": current["snapshot-id"],
            "refs": {"main": {"snapshot-id": current["snapshot-id"], "type": "branch"}},
            "snapshots": snapshots,
            "snapshot-log": [each for each in history if each["snapshot-id"] in kept],
            "metadata-log": [],
        }
        there, expired = set(listed), self._expired(replaced, metadata)
        replaced = [each for each in replaced if each not in expired or not there.isdisjoint(each.paths)]
        if replaced:
            metadata["properties"][REPLACED] = json.dumps(
                [each.to_json() for each in replaced if each.paths], separators=(",", ":")
            )
        return IcebergVersion(number, state.version, state.instant, metadata)

    def _snapshot(
        self, address: Address, state: TableState, content: _Content, parent: int | None, schema_id: int, now_ms: int
    ) -> tuple[dict[str, Any], Collection[str]]:
        """Writes a snapshot's files; returns its entry in the metadata, and their paths."""
        path, listing = manifest_list(content.manifests, parent, address)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, content.files.schema, options=_WRITE) as writer:
            writer.write_table(content.files.combine_chunks())  # or each commit would add a batch
        written = {
            **content.written,
            _sibling(path, ".files"): bytes(sink.getvalue()),
            path: listing,
        }
        self._each(lambda path: self._store.put(path, written[path]), list(written))
        totals = {key.replace("added-", "total-"): value for key, value in _counts("added", content.files).items()}
        snapshot = {
            "snapshot-id": address.snapshot_id,
            **({} if parent is None else {"parent-snapshot-id": parent}),
            "sequence-number": address.sequence_number,
            "timestamp-ms": now_ms,
            "manifest-list": address.of(path),
            "schema-id": schema_id,
            "summary": {
                "operation": content.operation,
                TABLE_ID: self._table_id,
                VERSION: str(state.version),
                INSTANT: state.instant,
                "zlayout.operation": state.operation,
                **{key: str(value) for key, value in content.changes.items() if value},
                **{key: str(value) for key, value in totals.items()},
            },
        }
        return snapshot, written.keys()

    def _each(self, access: Callable[[str], _T], paths: Sequence[str]) -> list[_T]:
        """Returns what an access to each file returns."""
        if self._threads == 1 or len(paths) == 1:
            return list(map(access, paths))
        with ThreadPoolExecutor(self._threads) as pool:
            return list(pool.map(access, paths))

    def _relative(self, location: str) -> str:
        """Returns the path of a metadata file from its location."""
        prefix = f"{self._location}/"
        path = location.removeprefix(prefix)
        if not location.startswith(prefix) or not path.startswith(f"{FOLDER}/"):
            raise CorruptError(f"{location} is not in {prefix}{FOLDER}: the table was moved; {REDO}")
        return path


def _uuid(table_id: str) -> str:
    try:
        return str(uuid.UUID(table_id))
    except ValueError:
        return str(uuid.uuid5(uuid.NAMESPACE_OID, table_id))


def _sibling(path: str, suffix: str) -> str:
    return path.removesuffix(".avro") + suffix


def _files_path(snapshot: Mapping[str, Any]) -> str:
    return _sibling(FOLDER + "/" + snapshot["manifest-list"].rpartition("/")[2], ".files")


def _changed_files(commit: Commit, files: pa.Table) -> tuple[DataFiles, pa.Table]:
    """Returns the files that a commit adds, and the rows of `_FILES` that it removes or replaces."""
    added = base_files(commit.adds)
    gone = pa.array([*filter(is_base_path, commit.removes), *added["path"].to_pylist()], pa.string())
    return added, files.filter(pc.is_in(files["path"], value_set=gone))


def _log_records(state: Snapshot) -> int:
    return log_files(state.files).total_rows


def _sized(files: DataFiles) -> pa.Table:
    return pa.table({"path": files["path"], "rows": files["row_count"], "bytes": files["size_bytes"]})


def _counts(kind: str, files: pa.Table) -> dict[str, int]:
    rows, size = (int(pc.sum(files[name], min_count=0).as_py()) for name in ("rows", "bytes"))
    size_key = {"added": "added-files-size", "deleted": "removed-files-size"}[kind]
    return {f"{kind}-data-files": files.num_rows, f"{kind}-records": rows, size_key: size}


def _with_new_manifests(files: pa.Table, moved: Mapping[str, str | None]) -> pa.Table:
    """Returns files with the new manifests of those whose manifest was written again."""
    old = pa.array(list(moved), pa.string())
    new = pa.array(list(moved.values()), pa.string()).take(pc.index_in(contiguous(files["manifest"]), value_set=old))
    return files.set_column(3, "manifest", pc.coalesce(new, contiguous(files["manifest"])))


def _operation(added: int, removed: int) -> str:
    if not removed:
        return "append"
    return "overwrite" if added else "delete"


def _check_file_ids(file: AdoptedFile, columns: Collection[str]) -> None:
    ids = ids_in(file.columns)
    known = any(each is not None for each in ids.values())
    if known and any(each != field_id(path) for path, each in ids.items() if path[0] in columns):
        problem = "has field ids of other software, by which Iceberg's readers would take columns for others"
        raise refused(file, problem, "iceberg")
