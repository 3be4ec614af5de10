"""Freshness: where a table's files, its index and its folder disagree."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.pruning.statistics.validation import contiguous
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles

NO_INDEX_ROW = "the index has no row for this live file"
LOST_FILE_ADVICE = (
    "read or roll back to a version without it, rebuild the table (--full-refresh), or give its rows up with "
    "zlayout_refresh_index and drop_missing: true"
)
MISSING_ON_DISK = f"the table lists this file, but it is not in the folder: queries fail; {LOST_FILE_ADVICE}"
ORPHAN = "the file is in the folder, but no version lists it"


def stale_entries(
    snapshot_files: DataFiles,
    stored: pa.Table,
    index_rows: pa.Table,
    *,
    footer_row_counts: Callable[[Sequence[str]], Mapping[str, int]],
    retained_paths: Collection[str] = (),
) -> pa.Table:
    """Compares the live files with the index and with the folder.

    Args:
        snapshot_files: The live files.
        stored: Data files found in the folder: ``path``, ``size_bytes``.
        index_rows: The rows of the index, from `TableIndex.rows`: ``path``, ``row_count``, ``size_bytes``.
        footer_row_counts: Reads row counts from the footers of existing files, by path.
        retained_paths: Retained files of older versions and files of running writes, which are not orphans.

    Returns:
        ``path`` and ``reason``, sorted, one row for each disagreement; empty if everything is fresh.
    """
    live = pa.table({name: contiguous(snapshot_files.column(name)) for name in ("path", "row_count", "size_bytes")})
    present = live.filter(pc.is_in(live.column("path"), value_set=contiguous(stored.column("path"))))
    counts = footer_row_counts(present.column("path").to_pylist())
    footers = pa.table(
        {"path": pa.array(counts.keys(), pa.string()), "row_count": pa.array(counts.values(), pa.int64())}
    )
    found = [
        _only_left(live, index_rows, NO_INDEX_ROW),
        _only_left(live, stored, MISSING_ON_DISK),
        _only_left(stored, live, ORPHAN, except_for=retained_paths),
        _different(live, index_rows, "size_bytes", "bytes", "the index"),
        _different(live, index_rows, "row_count", "rows", "the index"),
        _different(live, stored, "size_bytes", "bytes", "the folder"),
        _different(live, footers, "row_count", "rows", "the file's footer"),
    ]
    return pa.concat_tables(found).sort_by([("path", "ascending"), ("reason", "ascending")])


def _only_left(left: pa.Table, right: pa.Table, reason: str, *, except_for: Collection[str] = ()) -> pa.Table:
    known = pc.is_in(left.column("path"), value_set=contiguous(right.column("path")))
    excepted = pc.is_in(left.column("path"), value_set=pa.array(list(except_for), pa.string()))
    paths = left.column("path").filter(pc.invert(pc.or_(known, excepted)))
    return pa.table({"path": paths, "reason": pa.repeat(reason, len(paths))})


def _different(live: pa.Table, other: pa.Table, column: str, unit: str, where: str) -> pa.Table:
    rows = pc.index_in(live.column("path"), value_set=contiguous(other.column("path")))
    ours, theirs = live.column(column), other.column(column).take(rows)
    differs = pc.fill_null(pc.not_equal(ours, theirs), False)
    paths, ours, theirs = (values.filter(differs) for values in (live.column("path"), ours, theirs))
    texts = [values.cast(pa.string()) for values in (ours, theirs)]
    reasons = pc.binary_join_element_wise(f"{unit}: the table has ", texts[0], f", {where} has ", texts[1], "")
    return pa.table({"path": paths, "reason": reasons})
