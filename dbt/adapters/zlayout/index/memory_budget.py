"""A limit of memory for what can be read again: the least recently used goes first, wherever it is held."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from threading import Lock
from typing import Protocol


class Holder(Protocol):
    """Holds things by name, and can do without them."""

    def forget(self, name: Hashable) -> None:
        """Drops what it holds under a name."""
        ...


@dataclass
class MemoryBudget:
    """What some holders may keep together. A holder that is gone frees its part.

    Attributes:
        most_bytes: The limit. One thing may be larger.
    """

    most_bytes: int
    _held: OrderedDict[tuple[int, Hashable], tuple[weakref.ref[Holder], int]] = field(default_factory=OrderedDict)
    _taken: int = 0
    _lock: Lock = field(default_factory=Lock)

    @property
    def held_bytes(self) -> int:
        """What is held now."""
        with self._lock:
            return sum(size for holder, size in self._held.values() if holder() is not None)

    def keep(self, holder: Holder, name: Hashable, size_bytes: int) -> None:
        """Counts what a holder has under a name, in place of what was counted; makes others forget to stay below."""
        with self._lock:
            key = id(holder), name
            _, before = self._held.pop(key, (None, 0))
            self._held[key] = weakref.ref(holder), size_bytes
            self._taken += size_bytes - before
            excess = self._excess() if self._taken > self.most_bytes else []
        for other, gone in excess:
            if other is not None:
                other.forget(gone)

    def _excess(self) -> list[tuple[Holder | None, Hashable]]:
        """Removes what is gone, and then what was used least recently, until the rest is below the limit."""
        for dead in [key for key, (known, _) in self._held.items() if known() is None]:
            self._taken -= self._held.pop(dead)[1]
        excess: list[tuple[Holder | None, Hashable]] = []
        while self._taken > self.most_bytes and len(self._held) > 1:
            (_, name), (known, size) = self._held.popitem(last=False)
            self._taken -= size
            excess.append((known(), name))
        return excess

    def use(self, holder: Holder, names: Iterable[Hashable]) -> None:
        """Marks what a holder has as used."""
        with self._lock:
            for name in names:
                if (id(holder), name) in self._held:
                    self._held.move_to_end((id(holder), name))


# What was read of slices, and the statistics of tables that are open, in the order of their files.
HELD = MemoryBudget(512 << 20)
