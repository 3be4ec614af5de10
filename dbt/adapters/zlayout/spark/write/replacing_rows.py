"""The strategies append, delete, replace-where and insert-overwrite: a condition or the partition decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from pyspark.sql import functions

from dbt.adapters.zlayout.curve.model import PartitionKey
from dbt.adapters.zlayout.errors import ConfigError, WriteError
from dbt.adapters.zlayout.pruning.statistics.verdict import Verdict
from dbt.adapters.zlayout.spark.catalog.schema_evolution import cast_to
from dbt.adapters.zlayout.spark.files.file_report import FileReport
from dbt.adapters.zlayout.spark.schema.log_columns import FILE
from dbt.adapters.zlayout.spark.write.change_plan import Rewrite, RowCounts, Target, nothing_removed
from dbt.adapters.zlayout.spark.write.strict_evaluation import filtered, verdict_of_files
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def append(frame: DataFrame) -> Rewrite:
    """Plans to add rows."""
    return Rewrite(frame, nothing_removed, lambda written, _: RowCounts(inserted=written))


def delete(target: Target, condition: str, *, frame: DataFrame | None = None) -> Rewrite:
    """Plans to delete rows, and to insert others in their place.

    If the index shows that every row of a file meets the condition, or none does, the file is not read.

    Args:
        target: The table.
        condition: SQL, as in a WHERE clause. Rows for which it is not TRUE stay.
        frame: Incoming rows, in the table's future columns. None if there are none.

    Raises:
        ConfigError: The condition does not fit the table.
    """
    found = verdict_of_files(target.opened, filtered(target.rows(), condition, target.subject))
    whole = found == Verdict.ALL_ROWS
    hits = _hits(target, condition, found == Verdict.READ)
    touched = target.mask(hits)
    counted = target.opened.files["row_count"].to_numpy()
    partly = target.mask([number for number, rows in hits.items() if rows < counted[number]])
    rows = frame
    if partly.any():
        kept = cast_to(target.rows(partly).where(f"not coalesce(({condition}), false)"), target.layout.schema_json)
        rows = kept if frame is None else kept.unionByName(frame)
    gone, deleted = touched | whole, sum(hits.values()) + target.row_count(whole)
    stay = target.row_count(partly) - sum(rows for number, rows in hits.items() if partly[number])

    def key_conflict(added: DataFiles) -> str | None:
        meets = filtered(target.rows_of(added), condition, target.subject).limit(1).count()
        return f"it wrote rows that meet {condition}" if meets else None

    return Rewrite(
        rows=rows,
        removes=(lambda _: target.paths(gone)) if gone.any() else nothing_removed,
        counts=lambda written, _: RowCounts(inserted=written - stay, deleted=deleted),
        # A plain delete may count as done before the other commit. A delete that inserts rows may not.
        key_conflict=None if frame is None else key_conflict,
    )


def overwrite(target: Target, frame: DataFrame, partitions: Sequence[Mapping[str, object]] | str | None) -> Rewrite:
    """Plans to replace whole partitions.

    Args:
        target: The table.
        frame: Incoming rows, in the table's future columns.
        partitions: None for the partitions of these rows (the whole table if it has no partitions), 'all' for the
            whole table, or a list of exactly the partitions to replace.

    Raises:
        ConfigError: A partition does not name exactly the table's partition columns.
    """
    columns = target.layout.partition_by
    whole = partitions == "all" or (partitions is None and not columns)
    listed = None if whole or partitions is None else _keys(partitions, columns, target.subject)
    files = target.opened.files
    keys = [tuple(value for _, value in each.partition) for each in files]
    replaced: set[PartitionKey] = set(listed or ())

    def removes(written: Sequence[FileReport]) -> tuple[str, ...]:
        came = {tuple(value for _, value in each.file.partition) for each in written}
        if listed is not None and (outside := sorted(came - listed, key=repr)):
            shown = ", ".join(f"{name}={value}" for name, value in zip(columns, outside[0], strict=True))
            raise WriteError(
                f"{target.subject}: the query has rows of partition {shown}, which is not among those to replace; "
                "filter the query, or list that partition too. The table is unchanged"
            )
        replaced.update(came)
        gone = [path for path, key in zip(files["path"].to_pylist(), keys, strict=True) if whole or key in replaced]
        return tuple(gone)

    def key_conflict(added: DataFiles) -> str | None:
        theirs = {tuple(value for _, value in each.partition) for each in added}
        return "it wrote rows of a partition that this overwrite replaces" if whole or theirs & replaced else None

    return Rewrite(frame, removes, lambda written, before: RowCounts(inserted=written, deleted=before), key_conflict)


def _hits(target: Target, condition: str, files: np.ndarray) -> dict[int, int]:
    """Returns how many rows of each file meet the condition, by the file's number. Files without any are left out."""
    if not files.any():
        return {}
    matching = target.rows_with_file(None if files.all() else files).where(condition)
    found = matching.groupBy(FILE).agg(functions.count("*").alias("rows")).collect()
    return {target.file_number(row[FILE]): row["rows"] for row in found}


def _keys(partitions: object, columns: tuple[str, ...], subject: str) -> set[PartitionKey]:
    if isinstance(partitions, str) or not isinstance(partitions, Sequence):
        raise ConfigError(
            [f"partitions: {partitions!r} is not allowed; give None, 'all' or [{{'day': '2024-01-01'}}, …]"],
            subject,
        )
    found: set[PartitionKey] = set()
    for each in partitions:
        named = {str(key).lower(): value for key, value in each.items()} if isinstance(each, Mapping) else {}
        if set(named) != {name.lower() for name in columns}:
            raise ConfigError(
                [f"partitions: {each!r} must name exactly the partition columns ({', '.join(columns) or 'none'})"],
                subject,
            )
        found.add(tuple(None if named[name.lower()] is None else str(named[name.lower()]) for name in columns))
    return found
