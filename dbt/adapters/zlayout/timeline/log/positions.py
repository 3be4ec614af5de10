"""How far a table has taken the changes of other tables, as a part of its state.

The position is in the properties of the version that holds the rows made from these changes, so that no crash
separates the two. Clustering, compaction and changes by others keep it, and a rollback restores the older position.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dbt.adapters.zlayout.errors import WriteError

# Maps the name of a table to the position in it.
_POSITIONS = "changes_taken"


@dataclass(frozen=True)
class Position:
    """A version of another table, up to which its changes were taken.

    Attributes:
        table: The id of the table.
        instant: Its instant. It distinguishes the version from one of the same number after the table was restored.
    """

    table: str
    version: int
    instant: str


@dataclass(frozen=True)
class ChangesTaken:
    """The changes of one table that a write takes.

    Attributes:
        source: The name of the table, ``schema.table``.
        since: The position from which it takes them; None if there was none.
        until: The position after the write.
        due: Whether the position must be stored even if the write changes no rows.
    """

    source: str
    since: Position | None
    until: Position
    due: bool


def positions_of(properties: Mapping[str, Any]) -> dict[str, Position]:
    """Returns the positions in other tables by their names. Leaves out malformed ones."""
    found = properties.get(_POSITIONS)
    positions = {}
    for source, each in found.items() if isinstance(found, Mapping) else ():
        if isinstance(each, Mapping):
            table, version, instant = (each.get(name) for name in ("table", "version", "instant"))
            if isinstance(table, str) and isinstance(version, int) and isinstance(instant, str):
                positions[source] = Position(table, version, instant)
    return positions


def with_changes_taken(
    properties: Mapping[str, Any], taken: Sequence[ChangesTaken], subject: str = ""
) -> dict[str, Any]:
    """Returns the properties of a version that holds what was made from the changes.

    ``properties`` are those of the version before it.

    Raises:
        WriteError: Another write has taken changes since.
    """
    before = positions_of(properties)
    for each in taken:
        if before.get(each.source) != each.since:
            raise WriteError(
                f"{subject}: another run took the changes of {each.source} in the meantime, so this run would take "
                "them twice; nothing of it is visible; run the model again"
            )
    return with_positions(properties, {**before, **{each.source: each.until for each in taken}})


def with_positions(properties: Mapping[str, Any], positions: Mapping[str, Position]) -> dict[str, Any]:
    """Returns properties with these positions and no others."""
    kept = {key: value for key, value in properties.items() if key != _POSITIONS}
    return {**kept, _POSITIONS: {source: asdict(each) for source, each in positions.items()}} if positions else kept
