"""Checks whether the index matches the folder, for the freshness test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.index.freshness import NO_INDEX_ROW, ORPHAN, stale_entries
from dbt.adapters.zlayout.index.table_index import TableIndex
from dbt.adapters.zlayout.publish.spark_manifest import manifest_path, shows
from dbt.adapters.zlayout.spark.files.existing_files import read_footers
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot
from dbt.adapters.zlayout.store import Store
from dbt.adapters.zlayout.timeline.files.naming import is_data_path
from dbt.adapters.zlayout.timeline.retention.orphans import orphans


def stale_files(opened: TableSnapshot) -> pa.Table:
    """Returns the files about which snapshot, index and folder disagree.

    Returns:
        ``path`` string, ``reason`` string, sorted. No rows if everything is fresh.
    """
    store, files = opened.store, opened.snapshot.files
    stored = [each for each in store.list("", recursive=True) if is_data_path(each.path)]
    on_disk = pa.table(
        {
            "path": pa.array([each.path for each in stored], pa.string()),
            "size_bytes": pa.array([each.size_bytes for each in stored], pa.int64()),
        }
    )

    def row_counts(paths: Sequence[str]) -> Mapping[str, int]:
        return {path: _row_count(store, path) for path in paths}

    index_rows = TableIndex(store, opened.snapshot.index).rows()
    if not opened.managed:
        # Every file in an indexed table's folder is live. If no version lists a file, the index is behind.
        found = stale_entries(files, on_disk, index_rows, footer_row_counts=row_counts)
        behind = pc.replace_substring(found.column("reason"), ORPHAN, NO_INDEX_ROW)
        return found.set_column(1, "reason", behind)
    timeline = opened.timeline
    lost = {each.path for each in orphans(timeline)}
    retained = {each.path for each in stored} - lost
    found = stale_entries(files, on_disk, index_rows, footer_row_counts=row_counts, retained_paths=retained)
    # Sessions that skip files read the log and all others the manifest. Both must agree on the newest version.
    newest = timeline.snapshot()
    if shows(store, newest):
        return found
    other = {"path": [manifest_path(newest.version)], "reason": [_OTHER_MANIFEST]}
    return pa.concat_tables([found, pa.table(other, found.schema)])


def _row_count(store: Store, path: str) -> int:
    try:
        return int(read_footers(store, [path])[0].num_rows)
    except (OSError, pa.ArrowException):
        return -1  # no row count equals this, so the file is reported


_OTHER_MANIFEST = "Spark's manifest is missing, or lists other files than the newest version"
