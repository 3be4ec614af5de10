"""Publications: what every format shows of a version, who wrote it, and which versions its readers see.

Every file that publishes a version names the table, the version and its instant by the keys here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.errors import FileMissingError, UnsupportedError, ZlayoutError
from dbt.adapters.zlayout.index.table_index import TableIndex
from dbt.adapters.zlayout.pruning.statistics.validation import contiguous
from dbt.adapters.zlayout.store import Store
from dbt.adapters.zlayout.timeline.files.action import MOVES_ROWS
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles
from dbt.adapters.zlayout.timeline.log.entry import Commit, TableState
from dbt.adapters.zlayout.timeline.timeline import Timeline

TABLE_ID, VERSION, INSTANT = "zlayout.table_id", "zlayout.version", "zlayout.instant"
# The key that counts records in logs of the version, which readers do not see.
LOG_RECORDS = "zlayout.log_records_not_shown"


def mark(table_id: str) -> bytes:
    """Returns the bytes by which every file that publishes a version of a table is known."""
    return f'"{TABLE_ID}":{json.dumps(table_id)}'.encode()


def check_written_by(table_id: str, path: str, content: bytes, format_name: str) -> None:
    """Checks that a file was written for the table.

    Raises:
        UnsupportedError: Another table or other software wrote it.
    """
    if mark(table_id) not in content:
        raise foreign(path, "another table" if f'"{TABLE_ID}"'.encode() in content else "other software", format_name)


def foreign(path: str, writer: str, format_name: str) -> UnsupportedError:
    """Returns the error for a file of another writer, which publishing would overwrite."""
    folder = path.partition("/")[0]
    return UnsupportedError(
        f"{path} was written by {writer}; move the folder {folder} away, or remove '{format_name}' from publish"
    )


def misspelled_folder(name: str, text: str, kind: str, format_name: str) -> UnsupportedError:
    """Returns the error for a partition folder whose text is not a value of the column."""
    return UnsupportedError(
        f"the partition folder '{name}={text}' is not spelled as a value of type {kind}, so readers of {format_name} "
        f"cannot read its value; rewrite this partition, or remove '{format_name}' from publish"
    )


def read_if_there(store: Store, path: str) -> bytes:
    """Returns the content of a file, empty if there is none. Another process may be withdrawing the format."""
    try:
        return store.read(path)
    except FileMissingError:
        return b""


def changes_base_rows(state: TableState) -> bool:
    """Returns whether readers see other rows than before. They do not see logs, so a compaction shows them new rows."""
    return state.operation not in MOVES_ROWS or bool(state.layout.get("table_type"))


class PublishedTable:
    """The log entries and statistics of the published table. All formats share it, so each version is read once.

    Args:
        store: The table's folder.
        timeline: Its log.
    """

    def __init__(self, store: Store, timeline: Timeline) -> None:
        self.store, self.timeline = store, timeline
        self._commits: dict[int, Commit] = {}
        self._statistics: tuple[str, pa.Array, pa.Table] | None = None

    def commit(self, version: int) -> Commit:
        """Returns the log entry of a version, as `Timeline.read`."""
        if version not in self._commits:
            before = {each: commit for each, commit in self._commits.items() if each == version - 1}
            self._commits = {**before, version: self.timeline.read(version)}
        return self._commits[version]

    def statistics(self, state: TableState, files: DataFiles) -> pa.Table:
        """Returns what the index of a version has about files, as `TableIndex.stored`."""
        paths = contiguous(files["path"])
        known = self._statistics
        if known is not None and known[0] == state.instant and known[1].equals(paths):
            return known[2]
        # Usually the commit's own slices cover its files. Only a rollback adds files that older slices cover.
        own = {name: [path for path in slices if state.instant in path] for name, slices in state.index.items()}
        found = TableIndex(self.store, own).stored(files)
        if found.num_rows < len(files):
            found = TableIndex(self.store, state.index).stored(files)
        self._statistics = (state.instant, paths, found)
        return found


def lag_of(readers: str, newest: int, look: Callable[[], int | None]) -> Iterator[str]:
    """Yields a sentence if readers do not see the newest version, or if it is unknown what they see.

    ``look`` returns the version that they see, None if they see none.
    """
    try:
        seen = look()
    except ZlayoutError as error:
        yield f"it is unknown what readers of {readers} see: {error}"
        return
    if seen != newest:
        now = "no version" if seen is None else f"version {seen}"
        yield f"readers of {readers} see {now} instead of version {newest}"


def oldest_seen(published_ms: Mapping[int, int], newest: int, since_ms: float) -> int:
    """Returns the number of the file that readers followed at a time, or the oldest one that is left.

    >>> oldest_seen({1: 100, 2: 200, 3: 300}, newest=3, since_ms=250)
    2

    Args:
        published_ms: When each version was published, by the number of its file.
        newest: The number that readers follow now.
        since_ms: The time; infinite for now.
    """
    number = newest
    while published_ms.get(number, 0) > since_ms and number - 1 in published_ms:
        number -= 1
    return number


def all_finite(stats: pa.StructArray) -> pa.BooleanArray:
    """Returns for each file whether a column of floating-point numbers is known to hold no NaN and no infinity.

    Readers disagree on whether NaN is above all numbers or outside their order, and JSON has neither.

    Args:
        stats: The column's statistics, struct[n].
    """
    bounds = pc.and_kleene(pc.is_finite(stats.field("min")), pc.is_finite(stats.field("max")))
    return pc.fill_null(pc.and_kleene(bounds, pc.equal(stats.field("nan_count"), 0)), False)
