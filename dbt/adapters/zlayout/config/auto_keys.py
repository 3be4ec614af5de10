"""Keys that the workload chooses: `zorder: auto`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from dbt.adapters.zlayout.config import settings
from dbt.adapters.zlayout.config.workload import WeightedCondition

AUTO = "auto"
_STORED = "auto_keys"


@dataclass(frozen=True)
class AutoKeys:
    """Whether the workload chooses the keys.

    Attributes:
        wanted: Whether it does.
        workload: Conditions that queries put on the table, as the settings name them.
        why: Why the present keys and cuts were chosen, in a sentence; None if nothing was chosen yet.
    """

    wanted: bool = False
    workload: tuple[WeightedCondition, ...] = ()
    why: str | None = None

    def after(self, before: AutoKeys) -> AutoKeys:
        """Returns these settings with the reason of earlier ones, unless there is a new one."""
        return replace(self, why=self.why or before.why) if self.wanted or self.workload else self

    def stored(self) -> dict[str, Any]:
        """Returns the settings as a version stores them."""
        if self.wanted:
            return {_STORED: {"why": self.why}}
        return {} if self.why is None else {_STORED: {"why": self.why, "keys": False}}

    @classmethod
    def of_stored(cls, layout: Mapping[str, Any]) -> AutoKeys:
        """Returns the settings that a version stores."""
        stored = layout.get(_STORED)
        if stored is None:
            return cls()
        why = stored["why"]
        return cls(wanted=bool(stored.get("keys", True)), why=None if why is None else str(why))


def parse_auto_keys(raw: Mapping[str, object], problems: list[str]) -> AutoKeys:
    """Reads `zorder: auto` and ``workload``."""
    return AutoKeys(is_auto(raw.get(settings.ZORDER.key)), settings.WORKLOAD.read(raw, problems) or ())


def is_auto(zorder: object) -> bool:
    """Returns whether a value of ``zorder`` is the word 'auto'. A column of that name is written as a list."""
    return isinstance(zorder, str) and zorder.strip().lower() == AUTO
