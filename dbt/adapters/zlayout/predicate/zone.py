"""Time zones as lists of offset changes, taken from the engine that evaluates the queries."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Zone:
    """A time zone; zones with the same name are equal.

    The offset changes (jumps) come from the engine and not from this machine's zone database: versions of that database
    differ, and a local time that is an hour off would skip a file that holds a matching row.

    Attributes:
        name: As the session spells it.
        jumps_us: int64, ascending; the instants of the jumps in microseconds since 1970.
        offsets_us: int64, one more than jumps; local time minus UTC before the first jump, between two, after the last.
        known_until_us: After this instant the zone may have jumps that are not listed; None if the list is complete.
    """

    name: str
    jumps_us: npt.NDArray[np.int64] = field(compare=False, repr=False)
    offsets_us: npt.NDArray[np.int64] = field(compare=False, repr=False)
    known_until_us: int | None = field(compare=False, repr=False)

    @classmethod
    def fixed(cls, name: str, offset_us: int) -> Zone:
        """Returns a zone without jumps."""
        return cls(name, np.empty(0, np.int64), np.array([offset_us], np.int64), None)
