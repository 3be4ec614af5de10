"""Optional parts of the index: what a table's index has besides statistics, because its settings ask for it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dbt.adapters.zlayout.config import settings
from dbt.adapters.zlayout.config.column_names import ColumnSet, described_set
from dbt.adapters.zlayout.predicate.expr import ColumnPath

_KEYS = (settings.BLOOM.key, settings.LOOKUP.key, settings.STATS_EXPRESSIONS.key)


@dataclass(frozen=True)
class OptionalIndexes:
    """The optional parts of a table's index.

    Attributes:
        bloom: The columns with Bloom filters; None keeps those that the table has.
        lookup: The columns of each lookup index; None keeps those that the table has.
        stats_expressions: The expressions with statistics, as SQL; None keeps those that the table has.
    """

    bloom: tuple[ColumnPath, ...] | None = settings.BLOOM.default_value
    lookup: tuple[ColumnSet, ...] | None = settings.LOOKUP.default_value
    stats_expressions: tuple[str, ...] | None = settings.STATS_EXPRESSIONS.default_value

    def after(self, before: OptionalIndexes, usable: Collection[ColumnPath]) -> OptionalIndexes:
        """Returns these settings, with what they leave open as earlier settings have it.

        Args:
            before: The earlier settings.
            usable: The columns of the table that can have such an index. Others are no longer kept.

        >>> kept = OptionalIndexes().after(OptionalIndexes((("id",), ("gone",))), [("id",), ("name",)])
        >>> kept.bloom, OptionalIndexes(()).after(kept, [("id",)]).bloom
        ((('id',),), ())
        """
        found = self
        if self.bloom is None and before.bloom is not None:
            found = replace(found, bloom=tuple(path for path in before.bloom if path in usable))
        if self.lookup is None and before.lookup is not None:
            found = replace(found, lookup=tuple(each for each in before.lookup if set(each) <= set(usable)))
        if self.stats_expressions is None:
            found = replace(found, stats_expressions=before.stats_expressions)
        return found

    @property
    def column_sets(self) -> tuple[tuple[str, ColumnSet], ...]:
        """The columns of each index, with the setting that names them."""
        bloom = [(settings.BLOOM.key, (path,)) for path in self.bloom or ()]
        return (*bloom, *((settings.LOOKUP.key, columns) for columns in self.lookup or ()))

    def partition_problems(self, partition_by: Collection[str]) -> list[str]:
        """Returns a sentence for each index on a partition column: files have one value of it."""
        return [
            f"{key}: {described_set((path,))} is a partition column, of which each file has one value; "
            f"leave it out of {key}"
            for key, columns in self.column_sets
            for path in columns
            if path[0] in partition_by
        ]

    def stored(self) -> dict[str, Any]:
        """Returns the settings as a version stores them."""
        bloom = {settings.BLOOM.key: [list(path) for path in self.bloom]} if self.bloom else {}
        sets = [[list(path) for path in columns] for columns in self.lookup or ()]
        lookup = {settings.LOOKUP.key: sets} if sets else {}
        expressions = self.stats_expressions
        return {**bloom, **lookup, **({settings.STATS_EXPRESSIONS.key: list(expressions)} if expressions else {})}

    @classmethod
    def of_stored(cls, layout: Mapping[str, Any]) -> OptionalIndexes:
        """Returns the settings that a version stores."""
        bloom, lookup, expressions = (layout.get(key) for key in _KEYS)
        return cls(
            None if bloom is None else tuple(tuple(path) for path in bloom),
            None if lookup is None else tuple(tuple(tuple(path) for path in columns) for columns in lookup),
            None if expressions is None else tuple(map(str, expressions)),
        )


def indexed_as(layout: Mapping[str, Any], indexes: OptionalIndexes) -> dict[str, Any]:
    """Returns what a version stores, but with other optional parts of the index."""
    return {**{key: value for key, value in layout.items() if key not in _KEYS}, **indexes.stored()}
