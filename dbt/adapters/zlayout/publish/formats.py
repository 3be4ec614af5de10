"""The table formats in which a table is published for other engines, and what all of them share.

Publishing is a projection of the log: a version that is not published yet is published by the next writer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Protocol

from dbt.adapters.zlayout.errors import ZlayoutError
from dbt.adapters.zlayout.publish import delta_log
from dbt.adapters.zlayout.publish.delta_schema import unpublishable
from dbt.adapters.zlayout.store import Store
from dbt.adapters.zlayout.timeline.timeline import Timeline


class PublishedFormat(Protocol):
    """A module that publishes in one format. See `delta_log` for the meaning of its functions."""

    def shown(self, store: Store, table_id: str) -> Shown | None:
        """Return what readers of the format see."""
        ...

    def catch_up(self, store: Store, timeline: Timeline, table_id: str, retain_hours: float) -> None:
        """Publish what is not published yet."""
        ...

    def withdraw(self, store: Store, table_id: str) -> None:
        """Delete what was published."""
        ...


class Shown(Protocol):
    """What readers of a format see."""

    @property
    def version(self) -> int:
        """The version of the table."""
        ...

    @property
    def instant(self) -> str:
        """The instant of that version."""
        ...


FORMATS: Mapping[str, PublishedFormat] = MappingProxyType({"delta": delta_log})


def problems_of(formats: Collection[str], schema_json: str, partition_by: Collection[str]) -> list[str]:
    """Return a sentence for each column that cannot be published in one of the formats."""
    return unpublishable(schema_json, partition_by) if "delta" in formats else []


def publish_formats(
    store: Store, timeline: Timeline, table_id: str, formats: Collection[str], retain_hours: float
) -> Iterator[tuple[str, Exception]]:
    """Publish the newest version in the given formats, and withdraw it from all others.

    Yields:
        Each format that failed, with its error. The others are published all the same.
    """
    for name, each in FORMATS.items():
        try:
            if name in formats:
                each.catch_up(store, timeline, table_id, retain_hours)
            else:
                each.withdraw(store, table_id)
        except Exception as error:  # noqa: PERF203 - a format must not stop the others, nor the commit
            yield name, error


def versions_shown(store: Store, table_id: str, formats: Collection[str]) -> dict[str, int | None]:
    """Return the version that readers of each format see; None if they see none."""
    found = {name: FORMATS[name].shown(store, table_id) for name in formats if name in FORMATS}
    return {name: None if each is None else each.version for name, each in found.items()}


def what_lags(store: Store, table_id: str, formats: Collection[str], newest: int) -> Iterator[str]:
    """Yield a sentence for each format whose readers do not see the newest version."""
    for name in formats:
        try:
            seen = versions_shown(store, table_id, [name]).get(name)
        except ZlayoutError as error:
            yield f"it is unknown what readers of {name} see: {error}"
            continue
        if seen != newest:
            now = "no version" if seen is None else f"version {seen}"
            yield f"readers of {name} see {now} and not version {newest}"
