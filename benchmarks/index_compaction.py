"""What a commit pays for its index: a delta, and every tenth time a base slice in place of all of them.

usage: python benchmarks/index_compaction.py [columns, default 32]
Tables of which only the index exists: a base of some files and deltas of one file each, as appends leave them. Timed is
what the commit does between its data and its log entry: with nine slices, when one more is written, and with ten, when
all of them become one. A process a table; median of nine runs, the least, and the least processor time; milliseconds.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
from planning import bounds_of, files_of, milliseconds

from dbt.adapters.zlayout.index.slice_writing import COLUMN_STATS
from dbt.adapters.zlayout.spark.commit.commit_files import IndexUpdate
from dbt.adapters.zlayout.store.local import LocalStore
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.files.instant import instant_of
from dbt.adapters.zlayout.timeline.log.snapshot import Snapshot, replay
from dbt.adapters.zlayout.timeline.transactions.change import Change, Signature, entry_after

START_MS = 1_700_000_000_000
COUNTS = (1_000, 10_000, 100_000)


def line(count: int, columns: int) -> str:
    """One line of the table, in this process."""
    every = files_of(count + 10)
    bounds = bounds_of(every, columns)
    parts = [(0, count), *((count + number, 1) for number in range(10))]
    versions: list[Snapshot] = []
    head: Snapshot | None = None
    with tempfile.TemporaryDirectory() as folder:
        store = LocalStore(Path(folder))

        def update(number: int, attempt: int = 0) -> IndexUpdate:
            start, length = parts[number]
            chosen = pa.array(range(start, start + length))
            instant = instant_of(START_MS + 1_000 * number + attempt)
            return IndexUpdate(store, instant, every.take(chosen), bounds.slice(start, length))

        for number in range(10):
            signature = Signature(
                instant_of(START_MS + 1_000 * number), Action.COMMIT, Operation.APPEND.value, START_MS + number
            )
            change = Change(
                update(number).adds, schema_json='{"type":"struct","fields":[]}', partition_by=(), layout={}
            )
            head = replay(head, [entry_after(head, change, signature, update(number), None)])
            versions.append(head)
        nine, ten = versions[8], versions[9]
        assert [len(each.index[COLUMN_STATS]) for each in (nine, ten)] == [9, 10]
        attempts = iter(range(1, 1_000))
        delta = milliseconds(lambda: update(9, next(attempts))(nine))
        base = milliseconds(lambda: update(10, next(attempts))(ten))
        assert all(len(paths) == 1 for paths in update(10, next(attempts))(ten).values())
    return f"| {count:,} | {delta} | {base} |"


def main() -> None:
    """Runs each line in a process of its own."""
    columns = int(sys.argv[1]) if len(sys.argv) > 1 else 32
    if len(sys.argv) > 2:
        print(line(int(sys.argv[2]), columns), flush=True)
        return
    print("| files | delta ms | least | processor | base ms | least | processor |\n|---|---|---|---|---|---|---|")
    for count in COUNTS:
        subprocess.run([sys.executable, __file__, str(columns), str(count)], check=True)


if __name__ == "__main__":
    main()
