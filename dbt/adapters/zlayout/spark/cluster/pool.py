"""Writes the groups of a plan in one thread pool, and yields each batch for its commit as soon as it ends."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

from dbt.adapters.zlayout.spark.cluster.group_writer import WrittenGroup
from dbt.adapters.zlayout.spark.cluster.planning import CutGroup
from dbt.adapters.zlayout.spark.files.written_file import FileReport
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction

# Groups submitted per thread, running or queued, so that threads have work even while a batch is being committed.
_AHEAD = 2

Write = Callable[[CutGroup, Transaction], tuple[FileReport, ...]]


@dataclass(eq=False)
class Batch:
    """Groups that are committed together.

    Attributes:
        groups: All groups of the batch.
        transaction: The transaction that their files are written for. The receiver of the batch ends it.
        written: Groups whose new files are in place.
        failed: Groups that failed, each with its error.
    """

    groups: Sequence[CutGroup]
    transaction: Transaction
    written: list[WrittenGroup] = field(default_factory=list)
    failed: list[tuple[CutGroup, Exception]] = field(default_factory=list)

    @property
    def has_ended(self) -> bool:
        """Whether every group is written or has failed."""
        return len(self.written) + len(self.failed) == len(self.groups)


def ended_batches(write: Write, batches: Iterable[Batch], at_once: int) -> Generator[Batch, None, None]:
    """Writes the groups of all batches in one pool. A group that fails does not stop the others.

    Close the iterator if you stop early: it waits for running writes and rolls back batches that were not yielded.

    Args:
        write: Writes one group.
        batches: The batches, in the order of their rewrite. The next one is requested when the pool runs low on groups.
        at_once: Number of groups to write at the same time.

    Yields:
        Each batch, as it ends.
    """
    pending: dict[Future[tuple[FileReport, ...]], tuple[Batch, CutGroup]] = {}
    begun: list[Batch] = []
    pool = ThreadPoolExecutor(at_once)

    def ended() -> Iterator[Batch]:
        for future in wait(pending, return_when=FIRST_COMPLETED).done:
            batch, cut = pending.pop(future)
            error = future.exception()
            if error is None:
                batch.written.append((cut, future.result()))
            elif isinstance(error, Exception):
                batch.failed.append((cut, error))
            else:
                raise error
            if batch.has_ended:
                begun.remove(batch)
                yield batch

    try:
        for batch in batches:
            begun.append(batch)
            pending |= {pool.submit(write, cut, batch.transaction): (batch, cut) for cut in batch.groups}
            while len(pending) >= _AHEAD * at_once:
                yield from ended()
        while pending:
            yield from ended()
    finally:
        pool.shutdown(cancel_futures=True)
        for batch in begun:
            batch.transaction.rollback()
