"""Heartbeat of a transaction: rewrites its inflight file as long as its writer is alive."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from dbt.adapters.zlayout.errors import StoreError
from dbt.adapters.zlayout.timeline.transactions.pending import Plan

if TYPE_CHECKING:
    from dbt.adapters.zlayout.timeline.timeline import Timeline


class Heartbeat:
    """A thread that rewrites the inflight file, so that other machines see that the writer is alive.

    Args:
        timeline: The table's timeline.
        path: The inflight file.
        plan: Its content.
        every_seconds: The pause between two beats.
    """

    def __init__(self, timeline: Timeline, path: str, plan: Plan, every_seconds: float) -> None:
        self._timeline = timeline
        self._path = path
        self._plan = plan
        self._every_seconds = every_seconds
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="zlayout-heartbeat", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the heartbeat; when this returns, no beat is in progress."""
        self._stopped.set()
        self._thread.join()

    def _beat(self) -> None:
        store = self._timeline.store
        while not self._stopped.wait(self._every_seconds):
            # The next beat makes up for a failed one; a file that was deleted must not be recreated.
            with suppress(StoreError):
                if store.exists(self._path):
                    plan = replace(self._plan, heartbeat_ms=self._timeline.runtime.now_ms())
                    store.put(self._path, plan.to_json())
