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
        stats_expressions: The expressions with statistics, as SQL; None keeps those that the table has.
    """

    bloom: tuple[ColumnPath, ...] | None = settings.BLOOM.default_value
    stats_expressions: tuple[str, ...] | None = settings.STATS_EXPRESSIONS.default_value

    def after(self, before: OptionalIndexes, usable: Collection[ColumnPath]) -> OptionalIndexes:
        """Returns these settings, with what they leave open as earlier settings have it.

        Args:
            before: The earlier settings.
            usable: The columns of the table that can have Bloom filters. Others are no longer kept.

        >>> kept = OptionalIndexes().after(OptionalIndexes((("id",), ("gone",))), [("id",), ("name",)])
        >>> kept, OptionalIndexes(()).after(kept, [("id",)])
        (OptionalIndexes(bloom=(('id',),), stats_expressions=None), OptionalIndexes(bloom=(), stats_expressions=None))
        """
        expressions = before.stats_expressions if self.stats_expressions is None else self.stats_expressions
        kept = replace(self, stats_expressions=expressions)
        if self.bloom is not None or before.bloom is None:
            return kept
        return replace(kept, bloom=tuple(path for path in before.bloom if path in usable))

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
        bloom = {settings.BLOOM.key: [list(path) for path in self.bloom]} if self.bloom else {}
        expressions = self.stats_expressions
        return {**bloom, **({settings.STATS_EXPRESSIONS.key: list(expressions)} if expressions else {})}

    @classmethod
    def of_stored(cls, layout: Mapping[str, Any]) -> OptionalIndexes:
        """Returns the settings that a version stores."""
        listed = layout.get(settings.BLOOM.key)
        expressions = layout.get(settings.STATS_EXPRESSIONS.key)
        return cls(
            None if listed is None else tuple(tuple(path) for path in listed),
            None if expressions is None else tuple(map(str, expressions)),
        )


def indexed_as(layout: Mapping[str, Any], indexes: OptionalIndexes) -> dict[str, Any]:
    """Returns what a version stores, but with other optional parts of the index."""
    keys = (settings.BLOOM.key, settings.STATS_EXPRESSIONS.key)
    return {**{key: value for key, value in layout.items() if key not in keys}, **indexes.stored()}
