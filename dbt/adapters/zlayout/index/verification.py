"""Index verification: finds cells that contradict the files, and where table, index and folder disagree."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.config.column_names import format_column_path
from dbt.adapters.zlayout.predicate.expr import ColumnPath
from dbt.adapters.zlayout.pruning.statistics.validation import contiguous
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles

SCHEMA = pa.schema([(name, pa.string()) for name in ("path", "column", "cell", "stored", "found")])
_COUNTS = ("null_count", "nan_count", "value_count")
LOST_FILE = "file"
_NO_VALUE = "no value"
NO_INDEX_ROW = "the index has no row for this live file"
LOST_FILE_ADVICE = (
    "read or roll back to a version without it, rebuild the table (--full-refresh), or give its rows up with "
    "zlayout_refresh_index and drop_missing: true, which needs a file group without logs"
)
MISSING_ON_DISK = f"the table lists this file, but it is not in the folder: queries fail; {LOST_FILE_ADVICE}"
ORPHAN = "the file is in the folder, but no version lists it"


def wrong_cells(
    paths: pa.Array, stored: Mapping[ColumnPath, pa.StructArray], found: Mapping[ColumnPath, pa.StructArray]
) -> pa.Table:
    """Compares statistics cell by cell.

    An unknown value contradicts nothing. A bound that is not exact is correct as long as it bounds.

    Args:
        paths: The paths of the files, or of the partition folders.
        stored: Statistics in the index, arrays of `stats_type` as long as ``paths``.
        found: Statistics from the files, for the same columns and types.

    Returns:
        ``path``, ``column``, ``cell``, ``stored``, ``found``: text, one row for each wrong cell.
    """
    wrong = [
        _rows(paths, path, cell, is_wrong, stored_cell, found_cell)
        for path, stats in stored.items()
        for cell, is_wrong, stored_cell, found_cell in _wrong(stats, found[path])
    ]
    return pa.concat_tables([SCHEMA.empty_table(), *wrong])


def different_counts(paths: pa.Array, cell: str, stored: pa.Array, found: pa.Array) -> pa.Table:
    """Compares a count of each file; null is unknown."""
    return _rows(paths, (), cell, _is_true(pc.not_equal(stored, found)), stored, found)


def lost_files(paths: pa.Array, found: str) -> pa.Table:
    """Returns rows as `wrong_cells` for files that the table lists but no query can read.

    Args:
        paths: The paths of the files.
        found: What exists instead, and the next step.
    """
    stored, instead = (pa.repeat(pa.scalar(text, pa.string()), len(paths)) for text in ("listed by the table", found))
    return _rows(paths, (), LOST_FILE, pa.repeat(True, len(paths)), stored, instead)


def values_that_lack(paths: pa.Array, kinds: pa.Array, columns: pa.Array, missing: pa.Array) -> pa.Table:
    """Returns rows as `wrong_cells` for Bloom filters and lookup entries that lack values of their files.

    Args:
        paths: The paths of the files.
        kinds: 'bloom' or 'lookup'.
        columns: Names of the columns.
        missing: How many values each of them lacks.
    """
    counted = pc.binary_join_element_wise(missing.cast(pa.string()), "values that it lacks", " ")
    is_filter = pc.equal(kinds, "bloom")
    stored = pc.if_else(is_filter, "an incomplete filter", "incomplete entries")
    cells = [*map(contiguous, (paths, columns, kinds, stored, counted))]
    return pa.Table.from_arrays(cells, schema=SCHEMA)


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


def _wrong(stored: pa.StructArray, found: pa.StructArray) -> Iterator[tuple[str, pa.Array, pa.Array, pa.Array]]:
    """Yields for each cell of the struct: its name, where it is wrong, the stored values and the found values."""
    for count in _COUNTS:
        count_stored, count_found = stored.field(count), found.field(count)
        yield count, _is_true(pc.not_equal(count_stored, count_found)), count_stored, count_found
    counts = [found.field(name) for name in _COUNTS]
    empty = _is_true(pc.equal(pc.add(counts[0], counts[1]), counts[2]))
    for side, other, beyond, before in (("min", "max", pc.greater, pc.less), ("max", "min", pc.less, pc.greater)):
        bound, real = _comparable(stored.field(side)), _comparable(found.field(side))
        exact, real_exact = (pc.fill_null(each.field(f"{side}_exact"), False) for each in (stored, found))
        # A bound is wrong if it lies inside the real one or beyond all values, if there is no value, and if it is NaN.
        is_wrong = pc.or_(
            pc.and_(_is_true(beyond(bound, real)), real_exact),
            pc.or_(_is_true(beyond(bound, _comparable(found.field(other)))), pc.and_(empty, pc.is_valid(bound))),
        )
        if pa.types.is_floating(bound.type):
            is_wrong = pc.or_(is_wrong, _is_true(pc.is_nan(bound)))
        found_text = pc.if_else(empty, pa.scalar(_NO_VALUE), _text(found.field(side)))
        yield side, is_wrong, stored.field(side), found_text
        loose = pc.and_(pc.and_(exact, _is_true(before(bound, real))), pc.invert(is_wrong))
        yield f"{side}_exact", loose, stored.field(side), found.field(side)


def _comparable(values: pa.Array) -> pa.Array:
    return values.cast(pa.int8()) if pa.types.is_boolean(values.type) else values


def _is_true(condition: pa.Array) -> pa.Array:
    return pc.fill_null(condition, False)


def _rows(
    paths: pa.Array, column: ColumnPath, cell: str, mask: pa.Array, stored: pa.Array, found: pa.Array
) -> pa.Table:
    where = paths.filter(mask)
    name = pa.scalar(format_column_path(column) if column else None, pa.string())
    values = (_text(each.filter(mask)) for each in (stored, found))
    return pa.Table.from_arrays(
        [where, *(pa.repeat(each, len(where)) for each in (name, cell)), *values], schema=SCHEMA
    )


def _text(values: pa.Array) -> pa.Array:
    if pa.types.is_binary(values.type):
        return pa.array([None if each is None else f"x'{each.hex()}'" for each in values.to_pylist()], pa.string())
    return values.cast(pa.string())


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
