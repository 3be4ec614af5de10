"""Where a published Iceberg table is registered: one note for each catalog entry, below ``.zlayout/catalogs``.

A note is written before its entry and deleted after it. So whoever switches the catalog, renames the table or drops it
finds each entry that may be there, also those that could not be removed at the time.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as OutOfTime
from contextlib import suppress
from dataclasses import dataclass
from threading import Event, Thread
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import unquote

from dbt.adapters.zlayout.config.column_names import parse_column_path
from dbt.adapters.zlayout.config.table_config import PublishingConfig
from dbt.adapters.zlayout.errors import (
    CorruptError,
    FileMissingError,
    StoreError,
    UnsupportedError,
)
from dbt.adapters.zlayout.publish.publication import lag_of
from dbt.adapters.zlayout.store import Store
from dbt.adapters.zlayout.timeline.files.json_file import from_json_bytes, read_fields, to_json_bytes
from dbt.adapters.zlayout.timeline.files.naming import CATALOG_NOTES_FOLDER
from dbt.adapters.zlayout.timeline.files.table_file import read_table_file
from dbt.adapters.zlayout.timeline.timeline import Timeline

if TYPE_CHECKING:
    from types import ModuleType

    from dbt.adapters.zlayout.publish.iceberg_catalog import CatalogEntry

_PATIENCE_SECONDS = 30.0
# Threads that wait for a catalog that has not answered in time, by its name.
_WAITING: dict[str, Thread] = {}

T = TypeVar("T")


@dataclass(frozen=True)
class Registration:
    """An entry that a table has in a catalog, or may have.

    Attributes:
        catalog: The catalog's name in pyiceberg's configuration.
        identifier: Namespace and name in it.
    """

    catalog: str
    identifier: tuple[str, ...]

    def __str__(self) -> str:
        return f"{'.'.join(self.identifier)} in catalog '{self.catalog}'"

    @property
    def path(self) -> str:
        """The path of its note."""
        text = json.dumps([self.catalog, *self.identifier])
        return f"{CATALOG_NOTES_FOLDER}/{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"


def _wanted_registration(store: Store, publishing: PublishingConfig) -> Registration | None:
    """Returns the entry that a table should have by its settings: named as in Spark's catalog, in small letters."""
    table_file = read_table_file(store) if publishing.catalog else None
    if table_file is None or not publishing.catalog:
        return None
    return Registration(publishing.catalog, tuple(each.lower() for each in parse_column_path(table_file.name)))


def noted_registrations(store: Store) -> Mapping[Registration, str]:
    """Returns the entries that a table may have, each with the folder's location at the time."""
    found = {}
    for file in store.list(CATALOG_NOTES_FOLDER):
        with suppress(FileMissingError):  # another process has removed the entry
            content = from_json_bytes(store.read(file.path), file.path)
            catalog, identifier, location = read_fields(content, file.path, catalog=str, identifier=list, location=str)
            found[Registration(catalog, tuple(map(str, identifier)))] = location
    return found


def register(store: Store, table_id: str, publishing: PublishingConfig) -> Iterator[tuple[Registration, Exception]]:
    """Brings the entries of a table up to date: the one of its settings leads to the newest metadata, all others go.

    Yields:
        Each entry that could not be brought up to date, with the error.
    """
    wanted, noted = _wanted_registration(store, publishing), noted_registrations(store)
    location = unquote(store.root_uri)
    if wanted is not None:
        try:
            check_known(wanted.catalog)
            if noted.get(wanted) is None:
                store.put(wanted.path, _note(wanted, location))
            _in_time(store, table_id, wanted, noted.get(wanted), lambda entry: entry.point())
            if noted.get(wanted, location) != location:
                store.put(wanted.path, _note(wanted, location))
        except Exception as error:
            yield wanted, error
    for each, former in noted.items():
        if each != wanted:
            try:
                _in_time(store, table_id, each, former, lambda entry: entry.remove())
                store.delete([each.path])
            except Exception as error:
                yield each, error


def forget_registrations(store: Store) -> None:
    """Deletes the notes of a copied table: the entries are those of the original."""
    store.delete_tree(CATALOG_NOTES_FOLDER)


def what_lags_in_catalogs(store: Store, table_id: str, publishing: PublishingConfig, newest: int) -> Iterator[str]:
    """Yields a sentence for each entry that is not as it should be."""
    wanted, noted = _wanted_registration(store, publishing), noted_registrations(store)
    for each in noted:
        if each != wanted:
            yield f"{each} is not removed yet"
    if wanted is None:
        return

    def seen() -> int | None:
        check_known(wanted.catalog)
        return _in_time(store, table_id, wanted, noted.get(wanted), lambda entry: entry.version())

    yield from lag_of(str(wanted), newest, seen)


def check_known(catalog: str) -> None:
    """Checks that pyiceberg knows a catalog.

    Raises:
        UnsupportedError: It does not, or is not installed.
    """
    _module().check_known(catalog)


def _note(registration: Registration, location: str) -> bytes:
    return to_json_bytes(
        {"catalog": registration.catalog, "identifier": list(registration.identifier), "location": location}
    )


def _module() -> ModuleType:
    try:
        from dbt.adapters.zlayout.publish import iceberg_catalog  # noqa: PLC0415 - slow, and optional
    except ImportError as error:
        raise UnsupportedError(
            "a catalog needs pyiceberg; install it with: pip install 'dbt-zlayout[iceberg]'"
        ) from error
    except Exception as error:
        # pyiceberg reads its configuration as it is imported. The message would have lines of the file.
        raise UnsupportedError(
            f"pyiceberg cannot read its configuration, .pyiceberg.yaml ({type(error).__name__}); correct it"
        ) from None
    return iceberg_catalog


def _in_time(
    store: Store,
    table_id: str,
    registration: Registration,
    former_location: str | None,
    work: Callable[[CatalogEntry], T],
) -> T:
    """Does something with an entry in a thread of its own, and waits for it for a bounded time.

    A thread that comes too late undoes what it may have done: the table may have been published again, or withdrawn.

    Raises:
        StoreError: The catalog failed, or did not answer in time.
    """
    module, name = _module(), registration.catalog
    before = _WAITING.get(name)
    if before is not None and before.is_alive():
        raise StoreError(f"catalog '{name}' has not answered an earlier request yet; check it, then publish again")
    future: Future[T] = Future()

    def run(work: Callable[[CatalogEntry], object]) -> object:
        with module.opened(name) as catalog:
            former = () if former_location is None else (former_location,)
            return work(module.CatalogEntry(catalog, registration.identifier, store, table_id, former))

    def thread() -> None:
        try:
            future.set_result(run(work))  # type: ignore[arg-type] # what the work returns
        except BaseException as error:
            future.set_exception(error)
        if too_late.is_set():
            with suppress(Exception):
                run(_as_settings_say(store, registration))

    too_late = Event()
    running = Thread(target=thread, name=f"zlayout: catalog {name}", daemon=True)
    running.start()
    try:
        return future.result(_PATIENCE_SECONDS)
    except OutOfTime:
        if future.done():
            raise
        too_late.set()
        _WAITING[name] = running
        raise StoreError(f"catalog '{name}' has not answered within {_PATIENCE_SECONDS:g} seconds") from None


def _as_settings_say(store: Store, registration: Registration) -> Callable[[CatalogEntry], None]:
    """Returns what the table's settings now say about an entry."""
    with suppress(CorruptError, StoreError):
        newest = Timeline(store).newest()
        publishing = PublishingConfig() if newest is None else PublishingConfig.of_stored(newest.layout)
        if _wanted_registration(store, publishing) == registration:
            return lambda entry: entry.point()
    return lambda entry: entry.remove()
