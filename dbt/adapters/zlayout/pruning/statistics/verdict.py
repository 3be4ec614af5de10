"""Verdicts: the results of pruning for each file, and how the results of parts combine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from dbt.adapters.zlayout.predicate.remedies import Remedy

Flags = npt.NDArray[np.bool_]
"""One flag per file."""


class Verdict(IntEnum):
    """What to do with a file.

    Attributes:
        SKIP: No row can make the predicate TRUE.
        READ: Some row may make it TRUE.
        ALL_ROWS: Every row makes it TRUE.
    """

    SKIP = 0
    READ = 1
    ALL_ROWS = 2


@dataclass(frozen=True)
class WhyNot:
    """Why a part of a predicate can skip no file at all.

    Attributes:
        remedy: What would help; None if nothing would.
    """

    text: str
    remedy: Remedy | None = None


@dataclass(frozen=True)
class Match:
    """The result of one part of a predicate for each file.

    Attributes:
        possible: Some row may make it TRUE; false is a proof that none does.
        certain: Every row makes it TRUE; true is a proof.
        why_not: Why the part can skip no file at all; None if it can.
    """

    possible: Flags
    certain: Flags
    why_not: WhyNot | None = None

    def verdicts(self) -> npt.NDArray[np.int8]:
        """Returns a `Verdict` per file, as int8."""
        kept = np.where(self.certain, np.int8(Verdict.ALL_ROWS), np.int8(Verdict.READ))
        return np.where(self.possible, kept, np.int8(Verdict.SKIP)).astype(np.int8)

    def none_true(self, may_have_rows: Flags) -> Match:
        """Returns the match of ``IS NOT TRUE`` of the part: no row is TRUE only if every row makes the part TRUE."""
        return Match(may_have_rows & ~self.certain, ~self.possible, self.why_not)


def all_of(parts: Sequence[Match]) -> Match:
    """Combines parts by AND, which can skip files if any part can."""
    useless = [part.why_not for part in parts if part.why_not is not None]
    return Match(
        possible=np.logical_and.reduce([part.possible for part in parts]),
        certain=np.logical_and.reduce([part.certain for part in parts]),
        why_not=useless[0] if len(useless) == len(parts) else None,
    )


def any_of(parts: Sequence[Match]) -> Match:
    """Combines parts by OR, which can skip files only if every part can."""
    useless = [part.why_not for part in parts if part.why_not is not None]
    return Match(
        possible=np.logical_or.reduce([part.possible for part in parts]),
        certain=np.logical_or.reduce([part.certain for part in parts]),
        why_not=useless[0] if useless else None,
    )


def either_of(readings: Sequence[Match]) -> Match:
    """Combines readings of one condition: what one of them proves holds."""
    useless = [each.why_not for each in readings if each.why_not is not None]
    return Match(
        possible=np.logical_and.reduce([each.possible for each in readings]),
        certain=np.logical_or.reduce([each.certain for each in readings]),
        why_not=useless[0] if len(useless) == len(readings) else None,
    )
