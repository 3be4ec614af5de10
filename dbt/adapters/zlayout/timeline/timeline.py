"""The timeline: finds the newest version, reads any version, and appends one by create-if-absent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import islice

import pyarrow as pa

from dbt.adapters.zlayout.errors import (
    AlreadyExistsError,
    CorruptError,
    FileMissingError,
    StoreError,
    TableNotFoundError,
)
from dbt.adapters.zlayout.store import Store, StoredFile
from dbt.adapters.zlayout.timeline.files.json_file import RESTORE
from dbt.adapters.zlayout.timeline.files.naming import (
    CHECKPOINT_FOLDER,
    CHECKPOINT_HINT,
    LOG_FOLDER,
    checkpoint_path,
    log_path,
    version_in_name,
)
from dbt.adapters.zlayout.timeline.log.entry import Commit, CommitHeader
from dbt.adapters.zlayout.timeline.log.runtime import Runtime
from dbt.adapters.zlayout.timeline.log.snapshot import (
    CHECKPOINT_EVERY,
    Snapshot,
    checkpoint_bytes,
    hint_bytes,
    replay,
    snapshot_from_checkpoint,
    version_from_hint,
)

# Number of versions to probe one by one after the newest checkpoint; beyond that a listing is cheaper.
_PROBES = 4 * CHECKPOINT_EVERY


class Timeline:
    """The versions of one table.

    Args:
        runtime: Clock, pause and identity of this process.
    """

    def __init__(self, store: Store, runtime: Runtime | None = None) -> None:
        self.store = store
        self.runtime = runtime or Runtime()
        # The newest snapshot that was read, and the file of its log entry.
        self._cached: tuple[Snapshot, StoredFile] | None = None

    def latest_version(self) -> int | None:
        """Returns the newest version, or None if there is none yet.

        Searches from the newest checkpoint on and does not list the history, unless the hint to that checkpoint is
        missing, damaged or outdated.
        """
        return self._version_from(self._recall())

    def newest(self) -> Snapshot | None:
        """Returns the table at its newest version, or None if there is none yet.

        Raises:
            CorruptError: An entry of the log is damaged or missing.
        """
        known = self._recall()
        version = self._version_from(known)
        if version is None or (known is not None and known.version == version):
            return known
        snapshot = self._at(version, known)
        self._cache(snapshot)
        return snapshot

    def read(self, version: int) -> Commit:
        """Returns the log entry of a version.

        Raises:
            FileMissingError: There is no such version.
            CorruptError: The entry cannot be understood.
        """
        path = log_path(version)
        commit = Commit.from_json(self.store.read(path), path)
        if commit.version != version:
            raise CorruptError(
                f"{path} says it is version {commit.version}; the log was copied or renamed by hand; {RESTORE}"
            )
        return commit

    def snapshot(self, version: int | None = None) -> Snapshot:
        """Returns the table at a version, by default the newest.

        Raises:
            TableNotFoundError: The table has no such version.
            CorruptError: An entry of the log is damaged or missing.
        """
        if version is None:
            newest = self.newest()
            if newest is None:
                raise TableNotFoundError(
                    f"{self.store.root_uri} has no committed version; run the model that builds it"
                )
            return newest
        if version < 0 or not self.store.exists(log_path(version)):
            raise TableNotFoundError(
                f"{self.store.root_uri} has no version {version}; the newest is {self.latest_version()}"
            )
        return self._at(version, self._recall())

    def history(self, limit: int | None = None) -> list[CommitHeader]:
        """Returns the versions, newest first, without their files."""
        return list(islice(self.headers(), limit))

    def headers(self) -> Iterator[CommitHeader]:
        """Yields the versions, newest first, without their files. Each is read when it is asked for."""
        newest = self.latest_version()
        for version in range(-1 if newest is None else newest, -1, -1):
            path = log_path(version)
            yield CommitHeader.from_json(self.store.read(path), path)

    def append(self, commit: Commit, before: Snapshot | None) -> Snapshot:
        """Writes a log entry unless its version exists, and a checkpoint when one is due.

        ``before`` is the snapshot of the previous version.

        Raises:
            AlreadyExistsError: Another writer has committed that version.
            CorruptError: Something that is not a file has the name of the entry.
            StoreError: The store failed; it is unknown whether the version exists.
        """
        path = log_path(commit.version)
        try:
            self.store.create(path, commit.to_json())
        except AlreadyExistsError as error:
            if not self.store.exists(path):
                raise CorruptError(
                    f"{path} is not a file but a folder, a pipe or a broken link, so version {commit.version} cannot "
                    "be written; remove it. If it was a log entry, restore that entry"
                ) from error
            raise
        snapshot = replay(before, [commit])
        # The version is committed; the rest only makes reading cheaper, so it may fail.
        with suppress(StoreError):
            if commit.version and commit.version % CHECKPOINT_EVERY == 0:
                self.store.put(checkpoint_path(snapshot.version), checkpoint_bytes(snapshot))
                self.store.put(CHECKPOINT_HINT, hint_bytes(snapshot.version))
            self._cache(snapshot)
        return snapshot

    def entries(self, first: int, last: int) -> list[Commit]:
        """Returns the log entries of versions `first` to `last`, both included.

        Raises:
            CorruptError: One of them is damaged or missing.
        """
        try:
            return [self.read(version) for version in range(first, last + 1)]
        except FileMissingError as error:
            raise CorruptError(
                f"{self.store.root_uri}: the log has a gap before version {last} ({error}); {RESTORE}"
            ) from error

    def _version_from(self, known: Snapshot | None) -> int | None:
        version = known.version if known else self._hinted_version()
        if version is None:
            return self._listed_version()
        for _ in range(_PROBES):
            if not self.store.exists(log_path(version + 1)):
                return version
            version += 1
        return self._listed_version()

    def _at(self, version: int, known: Snapshot | None) -> Snapshot:
        start = known if known is not None and known.version <= version else self._checkpoint_before(version)
        return start if start is not None and start.version == version else self._replayed(start, version)

    def _replayed(self, start: Snapshot | None, version: int) -> Snapshot:
        try:
            return replay(start, self.entries(start.version + 1 if start else 0, version))
        except (pa.ArrowException, ValueError) as error:
            raise CorruptError(
                f"{log_path(version)}: it does not fit the entries of the log before it ({error}); {RESTORE}"
            ) from error

    def _hinted_version(self) -> int | None:
        try:
            hint = version_from_hint(self.store.read(CHECKPOINT_HINT))
        except StoreError:
            return None
        return hint if hint is not None and self.store.exists(log_path(hint)) else None

    def _listed_version(self) -> int | None:
        versions = [version_in_name(file.path) for file in self.store.list(LOG_FOLDER)]
        return max((version for version in versions if version is not None), default=None)

    def _checkpoint_before(self, version: int) -> Snapshot | None:
        if version < CHECKPOINT_EVERY:
            return None
        hint = self._hinted_version()
        if hint is not None and hint <= version < hint + CHECKPOINT_EVERY:
            snapshot = self._read_checkpoint(hint)
            if snapshot is not None:
                return snapshot
        stored = [version_in_name(file.path) for file in self.store.list(CHECKPOINT_FOLDER)]
        for candidate in sorted((at for at in stored if at is not None and at <= version), reverse=True):
            snapshot = self._read_checkpoint(candidate)
            if snapshot is not None:
                return snapshot
        return None

    def _read_checkpoint(self, version: int) -> Snapshot | None:
        # Checkpoints are optional: one that cannot be read costs time, but not the table.
        path = checkpoint_path(version)
        try:
            snapshot = snapshot_from_checkpoint(self.store.read(path), path)
        except (StoreError, CorruptError):
            return None
        return snapshot if snapshot.version == version else None

    def _cache(self, snapshot: Snapshot) -> None:
        self._cached = snapshot, self.store.stat(log_path(snapshot.version))

    def _recall(self) -> Snapshot | None:
        # The folder may have been dropped and recreated since: then the entry is another file.
        if self._cached is None:
            return None
        snapshot, entry_file = self._cached
        with suppress(StoreError):
            if self.store.stat(entry_file.path) == entry_file:
                return snapshot
        self._cached = None
        return None
