"""Hands the adapter's lines, which dbt prints in a run, to a caller that is not dbt."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dbt_common.events.base_types import EventLevel, EventMsg
from dbt_common.events.event_manager_client import get_event_manager

_SHOWN = {EventLevel.INFO.value, EventLevel.WARN.value, EventLevel.ERROR.value}


@contextmanager
def progress_to(tell: Callable[[str], None]) -> Iterator[None]:
    """Within the context, each line that a run would print on the terminal is handed to a function instead."""

    def show(message: EventMsg) -> None:
        if message.info.level in _SHOWN:
            tell(str(getattr(message.info, "msg", "")).removeprefix("Zlayout adapter: "))

    manager = get_event_manager()
    # Without a run's own loggers, dbt prints every line on stdout.
    before = list(manager.loggers)
    manager.loggers.clear()
    manager.callbacks.append(show)
    try:
        yield
    finally:
        manager.callbacks.remove(show)
        manager.loggers[:] = before
