"""Progress lines of run-operations."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from dbt.adapters.events.logging import AdapterLogger

from dbt.adapters.zlayout.quantities import counted
from dbt.adapters.zlayout.table.ztable import ZTable

_LOG = AdapterLogger("Zlayout")
_T = TypeVar("_T")
_SILENT_SECONDS = 10.0


def progress_of(table: ZTable) -> Callable[[str], None]:
    """Returns what logs the lines of an operation on a table, with the table's name."""
    return lambda line: _LOG.info(f"{table.name}: {line}")


def with_progress(items: Sequence[_T], phase: str, unit: str) -> Iterator[_T]:
    """Yields the items, and logs every ten seconds how many of them are done, even while a single one takes long.

    Args:
        phase: What is done with the items.
        unit: What one item is.
    """
    done, started, ended = 0, time.monotonic(), threading.Event()

    def tell() -> None:
        while not ended.wait(_SILENT_SECONDS):
            _LOG.info(f"{phase}: {done:,} of {counted(len(items), unit)}, {time.monotonic() - started:,.0f} s")

    threading.Thread(target=tell, name="zlayout-progress", daemon=True).start()
    try:
        for each in items:
            yield each
            done += 1
    finally:
        ended.set()
