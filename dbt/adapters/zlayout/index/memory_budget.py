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
            self._held[key] = weakref.ref(holder), size_bytes
            self._held.move_to_end(key)
            for dead in [each for each, (known, _) in self._held.items() if known() is None]:
                del self._held[dead]
            taken = sum(size for _, size in self._held.values())
            excess: list[tuple[Holder | None, Hashable]] = []
            while taken > self.most_bytes and len(self._held) > 1:
                (_, oldest), (known, size) = self._held.popitem(last=False)
                excess.append((known(), oldest))
                taken -= size
        for other, gone in excess:
            if other is not None:
                other.forget(gone)

    def use(self, holder: Holder, names: Iterable[Hashable]) -> None:
        """Marks what a holder has as used."""
        with self._lock:
            for name in names:
                if (id(holder), name) in self._held:
                    self._held.move_to_end((id(holder), name))


# What was read of slices, and the statistics of tables that are open, in the order of their files.
HELD = MemoryBudget(512 << 20)
