"""What a run does when another writer was first: its query and its write once more, a few times."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dbt.adapters.zlayout.errors import ConflictError

if TYPE_CHECKING:
    from dbt.adapters.zlayout.spark.files.write_summary import CommitSummary

MOST_REPEATS = 3


def until_committed(run: Callable[[], CommitSummary], tell: Callable[[str], None]) -> CommitSummary:
    """Runs a query and its write, again where a concurrent commit stood against it.

    Nothing runs again once its commit is done: what fails after it is a `CommittedError` and no conflict.

    Args:
        run: Evaluates the query on the tables as they are now, and commits.
        tell: Gets a sentence before each repeat.

    Raises:
        ConflictError: It did so in every repeat; the table is as the others left it.
    """
    for repeat in range(1, MOST_REPEATS + 1):
        try:
            return run()
        except ConflictError as conflict:  # noqa: PERF203 # each try is a whole query
            tell(f"another writer was first ({conflict}); the query runs again ({repeat} of {MOST_REPEATS})")
    return run()
