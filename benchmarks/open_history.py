"""What a long history costs a reader: a table of 10 and one of 10,000 versions are opened, by its log and checkpoints.

usage: python benchmarks/open_history.py [versions, default 10000] [files, default 100]
Three histories on this machine's disk: 'replaced', where each version adds a file and removes one, so that the table
stays as it is; 'appended', where each adds a file, so that the table grows; 'unmarked', the first one without the hint
to the newest checkpoint, as after a copy by hand.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from dbt.adapters.zlayout.store.local import LocalStore
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.files.data_files import DataFile, DataFiles
from dbt.adapters.zlayout.timeline.files.instant import instant_of
from dbt.adapters.zlayout.timeline.files.naming import CHECKPOINT_HINT, data_file_path
from dbt.adapters.zlayout.timeline.timeline import Timeline
from dbt.adapters.zlayout.timeline.transactions.change import Change, Signature, entry_after

SHORT = 10
OPENINGS = 31
START_MS = 1_700_000_000_000
SCHEMA_JSON = '{"type":"struct","fields":[]}'


def data_files(first: int, count: int, version: int) -> DataFiles:
    instant = instant_of(START_MS + version)
    names = [f"{number:016x}" for number in range(first, first + count)]
    return DataFiles.of([DataFile(data_file_path("", name, instant), (), 1_000, 50_000, 1, name) for name in names])


def make(store: LocalStore, versions: int, files: int, replaces: bool) -> None:
    """Append real log entries, with their checkpoints; data files are only named."""
    timeline = Timeline(store)
    head = None
    for version in range(versions):
        first = version == 0
        removes = (head.files[0].path,) if head is not None and replaces else ()
        change = Change(
            data_files(version + files, files if first else 1, version),
            removes=removes,
            schema_json=SCHEMA_JSON if first else None,
        )
        operation = Operation.OVERWRITE if first else Operation.MERGE
        signature = Signature(instant_of(START_MS + version), Action.COMMIT, operation.value, START_MS + version)
        head = timeline.append(entry_after(head, change, signature, None, head), head)


def open_ms(store: LocalStore) -> list[float]:
    """Milliseconds of each opening by a reader that knows nothing yet."""
    times = []
    for _ in range(OPENINGS):
        start = time.perf_counter()
        Timeline(store).snapshot()
        times.append(1000 * (time.perf_counter() - start))
    return times


def compare(name: str, short: LocalStore, long: LocalStore) -> None:
    open_ms(long)
    # In turn, so that neither gains by its place.
    short_ms, long_ms = (statistics.median(each) for each in zip(*[_pair(short, long) for _ in range(3)], strict=True))
    sizes = [len(Timeline(store).snapshot().files) for store in (short, long)]
    shown = [f"{ms:10.2f} ms{size:8,d} files" for ms, size in zip((short_ms, long_ms), sizes, strict=True)]
    print(f"{name:12s}{shown[0]}{shown[1]:>28s}{long_ms / short_ms:9.2f} x")


def _pair(short: LocalStore, long: LocalStore) -> tuple[float, float]:
    return statistics.median(open_ms(short)), statistics.median(open_ms(long))


def main(versions: int, files: int) -> None:
    os.fsync = lambda _: None  # making the history is not measured
    print(f"opening, median of 3 x {OPENINGS}; {files} files at first")
    print(f"{'history':12s}{f'{SHORT} versions':>26s}{f'{versions:,} versions':>28s}{'ratio':>11s}")
    with tempfile.TemporaryDirectory() as folder:
        for name, replaces in (("replaced", True), ("appended", False)):
            stores = [LocalStore(Path(folder) / f"{name}_{count}") for count in (SHORT, versions)]
            start = time.perf_counter()
            for store, count in zip(stores, (SHORT, versions), strict=True):
                make(store, count, files, replaces)
            commit_ms = 1000 * (time.perf_counter() - start) / versions
            compare(name, *stores)
            if replaces:
                print(f"{'':12s}({commit_ms:.2f} ms a commit while it was made)")
                for store in stores:
                    store.delete([CHECKPOINT_HINT])
                compare("unmarked", *stores)


if __name__ == "__main__":
    arguments = [int(each) for each in sys.argv[1:]]
    main(*[*arguments, *[10_000, 100][len(arguments) :]])
