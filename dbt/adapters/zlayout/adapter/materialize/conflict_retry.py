"""Retries a query and its write when another writer committed first."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dbt.adapters.zlayout.errors import ConflictError

if TYPE_CHECKING:
    from dbt.adapters.zlayout.spark.files.write_summary import CommitSummary

MOST_REPEATS = 3


def until_committed(run: Callable[[], CommitSummary], tell: Callable[[str], None]) -> CommitSummary:
    """Runs a query and its write. Runs both again when a concurrent commit conflicts with them.

    Nothing is retried after the commit: a later failure is a `CommittedError`, not a conflict.

    Args:
        run: Evaluates the query on the current tables and commits.
        tell: Receives a sentence before each retry.

    Raises:
        ConflictError: Every attempt met a conflict. The table is as the other writers left it.
    """
    for repeat in range(1, MOST_REPEATS + 1):
        try:
            return run()
        except ConflictError as conflict:  # noqa: PERF203 # each attempt is a whole query
            tell(f"another writer committed first ({conflict}); running the query again ({repeat} of {MOST_REPEATS})")
    return run()
