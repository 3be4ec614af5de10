"""Catalogs as Spark fills them."""

from __future__ import annotations

from typing import Any


class AnyStatistics:
    """Equal to whatever a catalog says of a relation's size."""

    __hash__ = None  # type: ignore[assignment] # equality says nothing of it

    def __eq__(self, other: object) -> bool:
        return isinstance(other, dict) and "has_stats" in other


def counted_from_zero(catalog: dict[str, Any]) -> dict[str, Any]:
    """A catalog whose columns count from 0 instead of 1."""
    for node in (*catalog["nodes"].values(), *catalog["sources"].values()):
        node["columns"] = {name: {**column, "index": column["index"] - 1} for name, column in node["columns"].items()}
    return catalog
