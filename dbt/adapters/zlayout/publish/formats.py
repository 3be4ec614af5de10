"""The table formats in which a table is published for other engines, and what all of them share.

Publishing is a projection of the log: a version that is not published yet is published by the next writer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Protocol

from dbt.adapters.zlayout.config.table_config import PublishingConfig
from dbt.adapters.zlayout.errors import ZlayoutError
from dbt.adapters.zlayout.publish import delta_log, iceberg_table
from dbt.adapters.zlayout.publish.catalog_registration import register, what_lags_in_catalogs
from dbt.adapters.zlayout.publish.delta_log import leaf_types
from dbt.adapters.zlayout.publish.iceberg_schema import columns_taken_for_one
from dbt.adapters.zlayout.publish.publication import PublishedTable, lag_of
from dbt.adapters.zlayout.store import Store
from dbt.adapters.zlayout.timeline.timeline import Timeline

# The types of Spark that Delta and Iceberg have too.
_PUBLISHABLE = {"boolean", "byte", "short", "integer", "long", "float", "double", "string", "binary"}
_PUBLISHABLE |= {"date", "timestamp", "timestamp_ntz"}
_WITH_NUMBERS = re.compile(r"decimal\(\d+,\s*\d+\)|(var)?char\(\d+\)")
_DEFAULT = "EXISTS_DEFAULT"
_COLLATIONS = "__COLLATIONS"
# The folder names of such partitions depend on the session that wrote or reads them.
_NO_FOLDERS = {
    "Delta": {
        "timestamp": "its folder names are in the session's time zone",
        "binary": "its folder names are not text",
    },
    "Iceberg": {
        "timestamp": "its folder names are in the session's time zone",
        "binary": "its folder names are not text",
        **dict.fromkeys(("float", "double"), "readers round the values of such folders"),
    },
}


class PublishedFormat(Protocol):
    """A module that publishes in one format. See `delta_log` for the meaning of its functions."""

    def published(self, store: Store, table_id: str) -> PublishedVersion | None:
        """Returns what readers of the format see."""
        ...

    def published_since(self, store: Store, table_id: str, since_ms: float) -> PublishedVersion | None:
        """Returns the oldest of what they have seen since a time."""
        ...

    def catch_up(self, source: PublishedTable, table_id: str, retain_hours: float) -> None:
        """Publishes what is not published yet."""
        ...

    def withdraw(self, store: Store, table_id: str) -> None:
        """Deletes what was published."""
        ...


class PublishedVersion(Protocol):
    """What readers of a format see."""

    @property
    def version(self) -> int:
        """The version of the table."""
        ...

    @property
    def instant(self) -> str:
        """The instant of that version."""
        ...


FORMATS: Mapping[str, PublishedFormat] = MappingProxyType({"delta": delta_log, "iceberg": iceberg_table})


def _unpublishable_columns(format_: str, schema_json: str, partition_by: Collection[str]) -> list[str]:
    """Returns a sentence for each column that a Delta or an Iceberg table cannot have."""
    schema = json.loads(schema_json)
    problems = [
        f"publish: column '{name}' has type {word}, which {format_} tables do not have; cast it, or do not publish"
        for name, word in leaf_types(schema, "")
        if word not in _PUBLISHABLE and not _WITH_NUMBERS.fullmatch(word)
    ]
    for name, each in _fields(schema, ""):
        metadata = each.get("metadata") or {}
        if _DEFAULT in metadata:
            problems.append(
                f"publish: column '{name}' has a default, which {format_} readers would not see in old files"
            )
        if _COLLATIONS in metadata:
            problems.append(f"publish: column '{name}' has a collation, which {format_} readers do not know")
    for each in schema["fields"]:
        name, kind = each["name"], each["type"]
        if name in partition_by and isinstance(kind, str) and kind in _NO_FOLDERS[format_]:
            problems.append(
                f"publish: partition column '{name}' has type {kind}: {_NO_FOLDERS[format_][kind]}; cast it"
            )
    return problems


def _fields(kind: Any, name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yields the name and the field of each column and of each field of a struct, as Spark's JSON has them."""
    if isinstance(kind, str):
        return
    for each in kind.get("fields", ()):
        below = f"{name}.{each['name']}" if name else each["name"]
        yield below, each
        yield from _fields(each["type"], below)
    for part in ("elementType", "keyType", "valueType"):
        if part in kind:
            yield from _fields(kind[part], name)


def problems_of(formats: Collection[str], schema_json: str, partition_by: Collection[str]) -> list[str]:
    """Returns a sentence for each column that cannot be published in one of the formats."""
    problems = _unpublishable_columns("Delta", schema_json, partition_by) if "delta" in formats else []
    if "iceberg" in formats:
        found = _unpublishable_columns("Iceberg", schema_json, partition_by)
        problems += found or columns_taken_for_one(schema_json)
    return problems


def publish_formats(
    store: Store, timeline: Timeline, table_id: str, publishing: PublishingConfig, retain_hours: float
) -> Iterator[tuple[str, Exception]]:
    """Publishes the newest version in the formats and the catalog of the settings, and withdraws it from all others.

    Yields:
        Each format and each entry of a catalog that failed, with its error. The others are published anyway.
    """
    formats, source = publishing.formats or (), PublishedTable(store, timeline)
    failed = set()
    if publishing.formats is not None and "iceberg" not in formats:
        # First of all: an entry must not lead to metadata that is gone.
        yield from _registered(store, table_id, publishing)
    for name, each in FORMATS.items():
        try:
            if name in formats:
                each.catch_up(source, table_id, retain_hours)
            else:
                each.withdraw(store, table_id)
        except Exception as error:  # noqa: PERF203 - a format must not stop the others, nor the commit
            failed.add(name)
            yield name, error
    if "iceberg" in formats and "iceberg" not in failed:
        yield from _registered(store, table_id, publishing)


def _registered(store: Store, table_id: str, publishing: PublishingConfig) -> Iterator[tuple[str, Exception]]:
    try:
        for registration, error in register(store, table_id, publishing):
            yield str(registration), error
    except Exception as error:  # it must not stop the commit
        yield "iceberg in catalogs", error


def published_versions(store: Store, table_id: str, formats: Collection[str]) -> dict[str, int | None]:
    """Returns the version that readers of each format see; None if they see none."""
    return {name: _published_version(store, table_id, name) for name in formats if name in FORMATS}


def _published_version(store: Store, table_id: str, name: str) -> int | None:
    found = FORMATS[name].published(store, table_id)
    return None if found is None else found.version


def oldest_published_version(store: Store, table_id: str, formats: Collection[str], since_ms: float) -> int | None:
    """Returns the oldest version that readers of any format have seen since a time; None if they see none.

    The time is in milliseconds since the epoch; infinite for now.

    Raises:
        StoreError, CorruptError, UnsupportedError: It is unknown what they see.
    """
    found = [FORMATS[name].published_since(store, table_id, since_ms) for name in formats if name in FORMATS]
    return min((each.version for each in found if each is not None), default=None)


def what_lags(store: Store, table_id: str, publishing: PublishingConfig, newest: int) -> Iterator[str]:
    """Yields a sentence for each format and each catalog whose readers do not see the newest version."""
    for name in publishing.formats or ():
        if name in FORMATS:
            yield from lag_of(name, newest, partial(_published_version, store, table_id, name))
    if publishing.formats is not None:
        try:
            yield from what_lags_in_catalogs(store, table_id, publishing, newest)
        except ZlayoutError as error:
            yield f"it is unknown what readers of catalogs see: {error}"
