"""An Iceberg table beside the data: each version of the table is a snapshot of an Iceberg table too, with statistics.

Readers open the folder by its path: ``metadata/version-hint.text`` names the newest ``metadata/v<N>.metadata.json``.
Creating that file publishes a version. It names in its properties the version and the instant that it shows.
Source: the Iceberg table specification, https://iceberg.apache.org/spec/
"""

from __future__ import annotations

from collections.abc import Sequence

from dbt.adapters.zlayout.errors import AlreadyExistsError, FileMissingError, UnsupportedError
from dbt.adapters.zlayout.publish.iceberg_metadata import (
    FOLDER,
    HINT,
    IcebergVersion,
    check_names,
    is_here,
    metadata_numbers,
    metadata_path,
    read_published,
    to_bytes,
)
from dbt.adapters.zlayout.publish.publication import PublishedTable, mark, oldest_seen, read_if_there
from dbt.adapters.zlayout.store import Store, StoredFile
from dbt.adapters.zlayout.timeline.log.snapshot import Snapshot


def published(store: Store, table_id: str) -> IcebergVersion | None:
    """Returns what readers of Iceberg see; None if there is no Iceberg table, or only that of another folder.

    Readers follow the hint, which is written after the metadata.

    Raises:
        UnsupportedError: Other software has written metadata, or another table of this package.
        CorruptError: The metadata cannot be read.
    """
    return _published_in(store, store.list(FOLDER), table_id)


def _published_in(store: Store, listed: Sequence[StoredFile], table_id: str) -> IcebergVersion | None:
    newest = read_published(store, listed, table_id)
    if newest is None or not is_here(store, newest.metadata):
        return None
    hint = read_if_there(store, HINT).strip()
    if hint == str(newest.number).encode():
        return newest
    hinted = [each for each in listed if hint in (str(number).encode() for number in metadata_numbers([each]))]
    return read_published(store, hinted, table_id) or newest


def published_since(store: Store, table_id: str, since_ms: float) -> IcebergVersion | None:
    """Returns the oldest of what Iceberg's readers have seen since a time, in milliseconds since the epoch.

    Raises:
        UnsupportedError, CorruptError: As for `published`.
    """
    listed = store.list(FOLDER)
    now = _published_in(store, listed, table_id)
    if now is None:
        return None
    published_ms = {number: each.modified_ms for each in listed for number in metadata_numbers([each])}
    number = oldest_seen(published_ms, now.number, since_ms)
    if number == now.number:
        return now
    return read_published(store, [each for each in listed if metadata_numbers([each]) == [number]], table_id)


def catch_up(source: PublishedTable, table_id: str, retain_hours: float) -> None:
    """Publishes every version that the Iceberg table does not show yet, oldest first; the newest if there is none.

    What is written depends only on the version and on the metadata before it, and the metadata file is created only
    if it does not exist. So it does not matter how many publishers work at the same time. Snapshots and metadata that
    were replaced more than ``retain_hours`` ago are deleted.

    Raises:
        UnsupportedError: Other software has written metadata, a file has columns that Iceberg's readers would take for
            others, or pyiceberg is not installed.
        CorruptError: The metadata is damaged.
        StoreError: The store failed.
    """
    try:
        from dbt.adapters.zlayout.publish.iceberg_publisher import Publisher  # noqa: PLC0415 - slow, and optional
    except ImportError as error:
        raise UnsupportedError(
            "publishing as Iceberg needs pyiceberg; install it with: pip install 'dbt-zlayout[iceberg]'"
        ) from error
    store, timeline = source.store, source.timeline
    # In this order: a version is published after its commit, so the newest version is never older than the one seen.
    listed = store.list(FOLDER)
    seen, newest = read_published(store, listed, table_id), timeline.snapshot()
    publisher = Publisher(source, table_id, retain_hours)
    while seen is None or not _is_current(store, seen, newest):
        try:
            following = publisher.write_next(seen, newest, {each.path for each in listed})
            store.create(metadata_path(following.number), to_bytes(following.metadata))
        except (AlreadyExistsError, FileMissingError):  # another publisher was faster
            listed = store.list(FOLDER)
            before, seen, newest = seen, read_published(store, listed, table_id), timeline.snapshot()
            if seen == before:
                raise
            continue
        _lead_readers(store, following.number)
        publisher.delete_old(following, listed)
        seen = following
        if seen.version < newest.version:
            listed = store.list(FOLDER)
    if read_if_there(store, HINT).strip() != str(seen.number).encode():
        _lead_readers(store, seen.number)


def _is_current(store: Store, seen: IcebergVersion, newest: Snapshot) -> bool:
    return (seen.version, seen.instant) == (newest.version, newest.instant) and is_here(store, seen.metadata)


def _lead_readers(store: Store, number: int) -> None:
    """Writes the hint, and again if a faster publisher has written a later one before."""
    store.put(HINT, str(number).encode())
    if store.exists(metadata_path(number + 1)):
        _lead_readers(store, max(metadata_numbers(store.list(FOLDER))))


def withdraw_if_moved(store: Store, table_id: str) -> None:
    """Deletes the Iceberg table if the folder was moved: its paths are absolute. The next publisher writes it again."""
    seen = read_published(store, store.list(FOLDER), table_id)
    if seen is not None and not is_here(store, seen.metadata):
        withdraw(store, table_id)


def withdraw(store: Store, table_id: str) -> None:
    """Deletes the Iceberg table, if it is this table's, damaged or not. That of other software is never touched.

    Readers see the newest version until they see no table.
    """
    listed = store.list(FOLDER)
    numbers = sorted(metadata_numbers(listed))
    # The newest file may be damaged.
    if not any(mark(table_id) in read_if_there(store, metadata_path(each)) for each in numbers[-2:]):
        return
    check_names(listed)
    store.delete([HINT])
    for number in numbers:
        store.delete([metadata_path(number)])
    store.delete_tree(FOLDER)
