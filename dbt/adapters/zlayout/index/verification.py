"""Index verification: finds cells of an index that contradict the files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.config.column_names import format_column_path
from dbt.adapters.zlayout.predicate.expr import ColumnPath

SCHEMA = pa.schema([(name, pa.string()) for name in ("path", "column", "cell", "stored", "found")])
_COUNTS = ("null_count", "nan_count", "value_count")
LOST_FILE = "file"
_NO_VALUE = "no value"


def wrong_cells(
    paths: pa.Array, stored: Mapping[ColumnPath, pa.StructArray], found: Mapping[ColumnPath, pa.StructArray]
) -> pa.Table:
    """Compares statistics cell by cell.

    An unknown value contradicts nothing. A bound that is not exact is correct as long as it bounds.

    Args:
        paths: Of the files, or of the partition folders.
        stored: Statistics in the index, arrays of `stats_type` as long as ``paths``.
        found: Statistics from the files, for the same columns and types.

    Returns:
        ``path``, ``column``, ``cell``, ``stored``, ``found``: text, one row for each wrong cell.
    """
    wrong = [
        _rows(paths, path, cell, mask, says, truth)
        for path, stats in stored.items()
        for cell, mask, says, truth in _wrong(stats, found[path])
    ]
    return pa.concat_tables([SCHEMA.empty_table(), *wrong])


def different_counts(paths: pa.Array, cell: str, stored: pa.Array, found: pa.Array) -> pa.Table:
    """Compares a count of each file; null is unknown."""
    return _rows(paths, (), cell, _is_true(pc.not_equal(stored, found)), stored, found)


def lost_files(paths: pa.Array, found: str) -> pa.Table:
    """Returns such rows for files that the table lists but no query can read.

    Args:
        paths: Of the files.
        found: What exists instead, and the next step.
    """
    stored, there = (pa.repeat(pa.scalar(text, pa.string()), len(paths)) for text in ("listed by the table", found))
    return _rows(paths, (), LOST_FILE, pa.repeat(True, len(paths)), stored, there)


def _wrong(stored: pa.StructArray, found: pa.StructArray) -> Iterator[tuple[str, pa.Array, pa.Array, pa.Array]]:
    for count in _COUNTS:
        said, true = stored.field(count), found.field(count)
        yield count, _is_true(pc.not_equal(said, true)), said, true
    counts = [found.field(name) for name in _COUNTS]
    empty = _is_true(pc.equal(pc.add(counts[0], counts[1]), counts[2]))
    for side, other, beyond, before in (("min", "max", pc.greater, pc.less), ("max", "min", pc.less, pc.greater)):
        said, true = _comparable(stored.field(side)), _comparable(found.field(side))
        exact, truly = (pc.fill_null(each.field(f"{side}_exact"), False) for each in (stored, found))
        # Wrong are: a bound inside the real one or beyond all values, a bound where there is no value, and NaN.
        is_wrong = pc.or_(
            pc.and_(_is_true(beyond(said, true)), truly),
            pc.or_(_is_true(beyond(said, _comparable(found.field(other)))), pc.and_(empty, pc.is_valid(said))),
        )
        if pa.types.is_floating(said.type):
            is_wrong = pc.or_(is_wrong, _is_true(pc.is_nan(said)))
        truth = pc.if_else(empty, pa.scalar(_NO_VALUE), _text(found.field(side)))
        yield side, is_wrong, stored.field(side), truth
        loose = pc.and_(pc.and_(exact, _is_true(before(said, true))), pc.invert(is_wrong))
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
