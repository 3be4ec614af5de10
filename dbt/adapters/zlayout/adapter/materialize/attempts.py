"""Which attempts to write one table run at the same time in this process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dbt.adapters.zlayout.predicate.literals import folded_name
from dbt.adapters.zlayout.spark.jobs.jobs import check_not_cancelled

_LOOK_AGAIN_SECONDS, _SILENT_SECONDS = 1.0, 10.0


class Attempts:
    """Lets first attempts to write a table run side by side, and repeated ones alone.

    Batches of one run are written side by side. Those that change the same file conflict, and only the first to commit
    succeeds. If the others repeated side by side, with each other or with further batches, some could meet a conflict
    each time until they give up.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._first = self._waiting = 0
        self._alone = False

    @contextmanager
    def first(self, tell: Callable[[str], None]) -> Iterator[None]:
        """Runs a first attempt. Waits for repeated ones, with a line every ten seconds."""
        with self._changed:
            self._wait_until(lambda: not self._alone and not self._waiting, tell)
            self._first += 1
        try:
            yield
        finally:
            with self._changed:
                self._first -= 1
                self._changed.notify_all()

    @contextmanager
    def repeated(self, tell: Callable[[str], None]) -> Iterator[None]:
        """Runs a repeated attempt. Waits for all others that run, with a line every ten seconds."""
        with self._changed:
            self._waiting += 1
            try:
                self._wait_until(lambda: not self._alone and not self._first, tell)
                self._alone = True
            finally:
                self._waiting -= 1
                self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._alone = False
                self._changed.notify_all()

    def _wait_until(self, ready: Callable[[], bool], tell: Callable[[str], None]) -> None:
        """Waits with the lock, which others get in the meantime.

        Raises:
            CancelledError: This thread was cancelled.
        """
        begun, lines = time.monotonic(), 1
        while not ready():
            check_not_cancelled()
            self._changed.wait(_LOOK_AGAIN_SECONDS)
            if (seconds := time.monotonic() - begun) >= lines * _SILENT_SECONDS:
                tell(f"waits for other batches of this run, {seconds:,.0f} s")
                lines += 1


def attempts_at(table: str) -> Attempts:
    """Returns the attempts to write a table, given by its name."""
    return _OF_TABLES.setdefault(folded_name(table), Attempts())


_OF_TABLES: dict[str, Attempts] = {}
