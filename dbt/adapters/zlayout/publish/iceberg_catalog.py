"""The entry of a published Iceberg table in a catalog of pyiceberg: it leads to the newest metadata file.

pyiceberg commits to a catalog by writing a metadata file of its own. Here the file exists already, so the SQL, Hive and
Glue catalogs get only the part of their commit that swaps the entry, if nobody has swapped it before. A REST catalog
registers the file over the entry. No call purges files.
Source: ``MetastoreCatalog.commit_table`` of pyiceberg 0.12; the REST specification's ``registerTable``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from pyiceberg.catalog import Catalog, MetastoreCatalog, load_catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NoSuchIcebergTableError,
    NoSuchNamespaceError,
    NoSuchPropertyException,
    NoSuchTableError,
    RESTError,
    TableAlreadyExistsError,
)
from pyiceberg.table import StagedTable, Table
from pyiceberg.table.metadata import TableMetadataUtil
from pyiceberg.utils.config import Config

from dbt.adapters.zlayout.errors import StoreError, UnsupportedError, ZlayoutError
from dbt.adapters.zlayout.publish.iceberg_metadata import (
    FOLDER,
    NUMBER,
    IcebergVersion,
    is_here,
    metadata_path,
    read_published,
    to_bytes,
)
from dbt.adapters.zlayout.publish.publication import INSTANT, TABLE_ID, VERSION
from dbt.adapters.zlayout.store import Store
from dbt.adapters.zlayout.store.uri import without_login

_TRIES = 5
_MOST_CHARACTERS = 300
_FEWEST_CHARACTERS = 3
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"<>)]+|(?<=url: )\S+")
# Iceberg's own server, and others that are made of it, cannot overwrite in catalogs of most kinds.
_UNSUPPORTED = re.compile("unsupported|not supported|overwrite", re.IGNORECASE)
_FASTER = (CommitFailedException, TableAlreadyExistsError, NoSuchTableError)


def check_known(name: str) -> None:
    """Checks that pyiceberg's configuration has a catalog.

    Raises:
        UnsupportedError: It has not.
    """
    _config_of(name)


@contextmanager
def opened(name: str) -> Iterator[Catalog]:
    """Opens a catalog by its name.

    Raises:
        UnsupportedError: pyiceberg knows no such catalog, or cannot register tables in it.
        StoreError: The catalog failed, or pyiceberg lacks what it needs for this kind. The message has no address and
            no login.
    """
    config = _config_of(name)
    try:
        with load_catalog(name, **config) as catalog:
            yield catalog
    except ZlayoutError:
        raise
    except NotImplementedError:
        kind = config.get("type", "this")
        raise UnsupportedError(
            f"pyiceberg cannot register tables in a catalog of type {kind}; it can in those of type rest, sql, glue "
            "and hive"
        ) from None
    except Exception as error:
        raise StoreError(f"catalog '{name}' failed: {_harmless(error, config)}") from None


@dataclass(frozen=True)
class CatalogEntry:
    """The entry of one table.

    Attributes:
        identifier: Namespace and name in it.
        former_locations: Where else the folder was when the table was registered.
    """

    catalog: Catalog
    identifier: tuple[str, ...]
    store: Store
    table_id: str
    former_locations: Sequence[str] = ()

    def version(self) -> int | None:
        """Returns the version of the table that the catalog's readers see, None if there is no entry.

        Raises:
            UnsupportedError: The entry is of another table.
        """
        seen = self._seen(repair=False)
        return None if seen is None else int(seen.metadata.properties[VERSION])

    def point(self) -> None:
        """Leads the entry to the newest metadata file of the folder. Nothing happens if the folder has none.

        The folder is looked at after the entry. So whoever is slower never puts an older version in place of a newer
        one; where the catalog cannot compare, the loop repairs it.

        Raises:
            UnsupportedError: The entry is of another table.
            StoreError: Other publishers were faster each time.
        """
        for _ in range(_TRIES):
            seen = self._seen(repair=True)
            newest = read_published(self.store, self.store.list(FOLDER), self.table_id)
            if newest is None or (seen is not None and _is_at(seen, newest)):
                return
            namespace = self.identifier[:-1]
            if seen is None and not self.catalog.namespace_exists(namespace):
                self.catalog.create_namespace_if_not_exists(namespace)
            with suppress(*_FASTER):
                self._put(seen)
        raise StoreError(
            f"the entry could not be changed {_TRIES} times: other publishers were faster, or the catalog cannot load "
            "it; look at it there, and drop it if nothing uses it"
        )

    def remove(self) -> None:
        """Removes the entry, if it is this table's. Files stay."""
        try:
            seen = self._seen(repair=True)
        except UnsupportedError:
            return
        if seen is not None:
            with suppress(NoSuchTableError):
                self.catalog.drop_table(self.identifier)

    def _seen(self, *, repair: bool) -> Table | None:
        """Returns the entry, None if there is none, or if it is ours and has lost its file.

        Args:
            repair: Drop an entry of ours that has lost its file.
        """
        try:
            table = self.catalog.load_table(self.identifier)
        except (NoSuchIcebergTableError, NoSuchPropertyException):
            raise UnsupportedError(f"the entry is a table of another format; {_OTHERS}") from None
        except (NoSuchTableError, NoSuchNamespaceError, FileNotFoundError) as error:
            # A REST catalog says that there is no table if there is no file, and names the file.
            locations = (unquote(self.store.root_uri), *self.former_locations)
            if any(f"{urlsplit(each).path}/{FOLDER}/" in str(error) for each in locations):
                if repair:
                    with suppress(NoSuchTableError):
                        self.catalog.drop_table(self.identifier)
            elif isinstance(error, FileNotFoundError):
                raise UnsupportedError(f"the entry leads to a metadata file that is not there; {_OTHERS}") from None
            return None
        self._check_own(table)
        return table

    def _check_own(self, table: Table) -> None:
        if table.metadata.properties.get(TABLE_ID) != self.table_id:
            other = "of another table of this package" if TABLE_ID in table.metadata.properties else "of other software"
            raise UnsupportedError(f"the entry is {other}; {_OTHERS}")
        if not is_here(self.store, {"location": table.metadata.location}):
            raise UnsupportedError(
                f"the entry leads to {without_login(table.metadata.location)}, and this folder is a copy of that "
                "table; give the copy an id of its own with ZTable.register. If the table has moved, drop the entry"
            )

    def _put(self, seen: Table | None) -> None:
        if isinstance(self.catalog, MetastoreCatalog):
            with suppress(NotImplementedError):
                self._swap(self.catalog)
                return
        location = self._newest()[0]
        if seen is None:
            self.catalog.register_table(self.identifier, location)
            return
        try:
            self.catalog.register_table(self.identifier, location, overwrite=True)
        except (TableAlreadyExistsError, NotImplementedError, RESTError) as error:
            if isinstance(error, RESTError) and not _UNSUPPORTED.search(str(error)):
                raise
            # For a moment readers find no table.
            self.catalog.drop_table(self.identifier)
            self.catalog.register_table(self.identifier, location)

    def _swap(self, catalog: MetastoreCatalog) -> None:
        """Commits to a catalog with the metadata file that exists, in place of one that it would write."""

        def staged(current: Table | None, *_: object) -> StagedTable:
            if current is not None:
                self._check_own(current)
            location, metadata = self._newest()
            content = TableMetadataUtil.parse_raw(to_bytes(metadata).decode())
            return StagedTable(self.identifier, content, location, catalog._load_file_io(location=location), catalog)

        catalog._update_and_stage_table = staged  # type: ignore[assignment, method-assign]
        catalog._write_metadata = lambda **_: None  # type: ignore[method-assign]
        catalog.commit_table(staged(None), (), ())

    def _newest(self) -> tuple[str, Mapping[str, Any]]:
        newest = read_published(self.store, self.store.list(FOLDER), self.table_id)
        if newest is None:
            raise StoreError("the table is no longer published as Iceberg")
        return f"{unquote(self.store.root_uri)}/{metadata_path(newest.number)}", newest.metadata


_OTHERS = "it is left alone: rename or drop it there, or rename this table, or set another publish_catalog"


def _is_at(table: Table, newest: IcebergVersion) -> bool:
    properties = table.metadata.properties
    return (properties.get(NUMBER), properties.get(INSTANT)) == (str(newest.number), newest.instant)


def _config_of(name: str) -> Mapping[str, Any]:
    """Returns what pyiceberg's configuration says about a catalog. It is read each time: it may change."""
    try:
        config = Config()
        found, known = config.get_catalog_config(name), config.get_known_catalogs()
    except Exception as error:
        # The message would have lines of the file.
        raise UnsupportedError(f"pyiceberg cannot read {_FILES} ({type(error).__name__}); correct it") from None
    if not found:
        there = f", which has {', '.join(sorted(known))}" if known else ", which names none"
        variable = re.sub(r"[^A-Z0-9]", "_", name.upper())
        raise UnsupportedError(
            f"there is no catalog {name!r} in pyiceberg's configuration{there}; pyiceberg reads {_FILES}, and "
            f"variables such as PYICEBERG_CATALOG__{variable}__URI, whose single '_' becomes '-' in the name"
        )
    return found


_FILES = "the first .pyiceberg.yaml in PYICEBERG_HOME, the home directory or the working directory"


def _harmless(error: Exception, config: Mapping[str, Any]) -> str:
    """Returns the first line of an error without addresses and without values of the configuration."""
    text = f"{type(error).__name__}: {error}".strip().splitlines()[0]
    text = _ADDRESS.sub("…", text)
    for value in sorted(_values(config), key=len, reverse=True):
        text = text.replace(value, "…")
    return text if len(text) <= _MOST_CHARACTERS else text[:_MOST_CHARACTERS] + " …"


def _values(config: Mapping[str, Any]) -> set[str]:
    found: set[str] = set()
    for key, value in config.items():
        if isinstance(value, Mapping):
            found |= _values(value)
        elif key != "type":
            parts = urlsplit(str(value))
            login = (parts.username, parts.password, parts.hostname, parts.netloc, parts.query)
            found |= {str(value), *(each for each in login if each)}
    return {each for each in found if len(each) >= _FEWEST_CHARACTERS}
