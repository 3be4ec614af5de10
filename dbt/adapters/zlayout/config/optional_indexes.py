"""Optional parts of the index: what a table's index has besides statistics, because its settings ask for it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dbt.adapters.zlayout.config import settings
from dbt.adapters.zlayout.config.column_names import format_column_path
from dbt.adapters.zlayout.predicate.expr import ColumnPath


@dataclass(frozen=True)
class OptionalIndexes:
    """The optional parts of a table's index.

    Attributes:
        bloom: The columns with Bloom filters; None keeps those that the table has.
    """

    bloom: tuple[ColumnPath, ...] | None = settings.BLOOM.default_value

    def after(self, before: OptionalIndexes, usable: Collection[ColumnPath]) -> OptionalIndexes:
        """Returns these settings, with what they leave open as earlier settings have it.

        Args:
            before: The earlier settings.
            usable: The columns of the table that can have Bloom filters. Others are no longer kept.

        >>> kept = OptionalIndexes().after(OptionalIndexes((("id",), ("gone",))), [("id",), ("name",)])
        >>> kept, OptionalIndexes(()).after(kept, [("id",)])
        (OptionalIndexes(bloom=(('id',),)), OptionalIndexes(bloom=()))
        """
        if self.bloom is not None or before.bloom is None:
            return self
        return replace(self, bloom=tuple(path for path in before.bloom if path in usable))

    def partition_problems(self, partition_by: Collection[str]) -> list[str]:
        """Returns a sentence for each column with filters that is a partition column: files have one value of it."""
        return [
            f"bloom: column '{format_column_path(path)}' is a partition column, of which each file has one value; "
            "leave it out of bloom"
            for path in self.bloom or ()
            if path[0] in partition_by
        ]

    def stored(self) -> dict[str, Any]:
        """Returns the settings as a version stores them."""
        return {settings.BLOOM.key: [list(path) for path in self.bloom]} if self.bloom else {}

    @classmethod
    def of_stored(cls, layout: Mapping[str, Any]) -> OptionalIndexes:
        """Returns the settings that a version stores."""
        listed = layout.get(settings.BLOOM.key)
        return cls(None if listed is None else tuple(tuple(path) for path in listed))


def indexed_as(layout: Mapping[str, Any], indexes: OptionalIndexes) -> dict[str, Any]:
    """Returns what a version stores, but with other optional parts of the index."""
    return {**{key: value for key, value in layout.items() if key != settings.BLOOM.key}, **indexes.stored()}
