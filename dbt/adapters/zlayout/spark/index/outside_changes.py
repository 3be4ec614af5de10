"""Applies what other tools did in the folder of a managed table: files that they deleted or added.

Missing files, which the table lists and the folder lacks, are dropped from it. Orphans, which another tool wrote into
the folder, are appended. Each happens only if asked for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dbt.adapters.zlayout.errors import ConflictError, UnsupportedError
from dbt.adapters.zlayout.index.footers.footer import footer_table
from dbt.adapters.zlayout.index.statistics.partitions import typed_partition_values
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog, TableRef, unescaped
from dbt.adapters.zlayout.spark.commit.after_commit import AfterCommit
from dbt.adapters.zlayout.spark.commit.commit_files import commit_files
from dbt.adapters.zlayout.spark.commit.publish import publish_committed
from dbt.adapters.zlayout.spark.files.existing_files import (
    GLOB,
    ambiguous_folder,
    footers_found,
    listed_files,
    wait_a_tick,
)
from dbt.adapters.zlayout.spark.index.collected_statistics import Collected, collect, examining
from dbt.adapters.zlayout.spark.jobs.jobs import Progress, short_message
from dbt.adapters.zlayout.spark.schema.types import as_plain_text, fields_of, raw_fields, split_partition_columns
from dbt.adapters.zlayout.spark.snapshot.table_layout import TableLayout, merges_on_read
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot
from dbt.adapters.zlayout.store import Store, qualified
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles
from dbt.adapters.zlayout.timeline.log.file_slices import base_files, groups_with_logs
from dbt.adapters.zlayout.timeline.log.snapshot import Snapshot, row_count, with_more_rows
from dbt.adapters.zlayout.timeline.retention.orphans import foreign_files
from dbt.adapters.zlayout.timeline.retention.past import DROPPED, DROPPED_AS_MISSING
from dbt.adapters.zlayout.timeline.timeline import Timeline
from dbt.adapters.zlayout.timeline.transactions.change import Change
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NEXT = "move it out of the folder, or insert its rows with a query"
_ROW_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
_LEAF = (
    "path",
    "physical_type",
    "length",
    "logical_type",
    "converted_type",
    "precision",
    "scale",
    "max_definition_level",
    "max_repetition_level",
)
_NULLABILITY = {"nullable", "containsNull", "valueContainsNull", "metadata"}


def missing_files(store: Store, files: DataFiles) -> tuple[str, ...]:
    """Returns the paths of files that are not in the folder. It lists the folder once."""
    if not len(files):
        return ()
    stored = pa.array([each.path for each in store.list("", recursive=True)], pa.string())
    return tuple(files.filter(pc.invert(pc.is_in(files["path"], value_set=stored)))["path"].to_pylist())


def drop_missing(
    spark: SparkSession, name: TableRef, opened: TableSnapshot, progress: Progress | None
) -> tuple[int, int]:
    """Commits a version without the missing files. Their rows are lost.

    Returns:
        The number of files dropped, and of rows in them.

    Raises:
        UnsupportedError: The table is only indexed, or logs depend on a missing file.
        ConflictError: Another writer changed these files in the meantime.
    """
    if not opened.managed:
        raise UnsupportedError(
            f"{name} is only indexed: a refresh takes in what its folder holds; refresh it without drop_missing"
        )
    timeline = opened.timeline
    with Transaction.begin(timeline, Action.COMMIT, Operation.DELETE) as transaction:
        base = transaction.known_base(name)
        missing = missing_files(opened.store, base.files)
        if not missing:
            return 0, 0
        _check_may_drop(name, base.files, missing)
        gone = base_files(base.files.filter(pc.is_in(base.files["path"], value_set=pa.array(missing))))
        summary = {
            "rows": 0,
            "rows_deleted": gone.total_rows,
            "files_added": 0,
            "files_removed": len(missing),
            "bytes_added": 0,
            "data_passes": 0,
            DROPPED: DROPPED_AS_MISSING,
        }
        tracked = TableLayout.of_version(base).tracked
        nothing = base.files[:0]
        change = Change(
            nothing,
            missing,
            properties=partial(with_more_rows, start=row_count(base), more=-gone.total_rows)
            if opened.merges_on_read
            else None,
            summary=summary,
        )
        commit = commit_files(timeline.store, transaction, change, footer_table([], [], tracked))
    publish_committed(Catalog(spark), name, opened, AfterCommit(commit.version, progress))
    return len(missing), gone.total_rows


def _check_may_drop(name: TableRef, files: DataFiles, missing: tuple[str, ...]) -> None:
    """Refuses to drop logs, and base files that logs change: other rows would come back or lose their values."""
    grouped = pa.array(sorted(groups_with_logs(files)), pa.string())
    together = files.filter(pc.is_in(files["group"], value_set=grouped))["path"].to_pylist()
    if needed := sorted(set(missing) & set(together)):
        raise UnsupportedError(
            f"{name} is merge_on_read, and {needed[0]} is in a file group with logs, whose files need each other: read "
            "or roll back to a version without it, or rebuild the table (--full-refresh). Nothing was dropped"
        )


def take_orphans(spark: SparkSession, name: TableRef, opened: TableSnapshot, progress: Progress | None) -> int:
    """Appends the files of other tools in a managed table's folder, all of them or none.

    Files with this package's names that no version lists are left over from failed writers. They are never taken.

    Returns:
        The number of files appended.

    Raises:
        UnsupportedError: A file does not fit the table, or the table is only indexed or merge-on-read.
        ConflictError: The files changed in the meantime, or another writer changed the columns.
    """
    if not opened.managed:
        raise UnsupportedError(
            f"{name} is only indexed: every file in its folder already belongs to it; refresh it without take_orphans"
        )
    timeline = opened.timeline
    if not foreign_files(timeline):
        return 0
    catalog = Catalog(spark)
    with Transaction.begin(timeline, Action.COMMIT, Operation.APPEND) as transaction:
        base = transaction.known_base(name)
        if merges_on_read(base.layout):
            raise UnsupportedError(
                f"{name} is merge_on_read, which takes rows by key and not by file: read the files and upsert them"
            )
        collected = _collected_orphans(spark, name, timeline, base, progress)
        files = collected.files
        if not len(files):
            return 0
        summary = {
            "rows": files.total_rows,
            "rows_inserted": files.total_rows,
            "files_added": len(files),
            "files_removed": 0,
            "bytes_added": files.total_bytes,
            "data_passes": 0,
            "taken": "orphans",
        }
        commit = commit_files(timeline.store, transaction, Change(files, summary=summary), collected.column_stats)
    publish_committed(catalog, name, opened, AfterCommit(commit.version, progress))
    return len(files)


def _collected_orphans(
    spark: SparkSession, name: TableRef, timeline: Timeline, base: Snapshot, progress: Progress | None
) -> Collected:
    store = timeline.store
    paths = pa.array([each.path for each in foreign_files(timeline)], pa.string())
    listed = listed_files(store, base.partition_by)
    files = listed.filter(pc.is_in(listed["path"], value_set=paths))
    if misplaced := sorted(set(paths.to_pylist()) - set(files["path"].to_pylist())):
        folders = "/".join(f"{each}=…" for each in base.partition_by) or "the table's folder itself"
        raise UnsupportedError(f"{name}: {misplaced[0]} is outside of {folders}; {_NEXT}")
    _check_partitions(name, files, base)
    wait_a_tick(store, files)
    footers = footers_found(store, files["path"].to_pylist())
    # One file of each schema is checked, because each check runs a Spark query that reads the footer of one file.
    named = zip(files["path"].to_pylist(), footers, strict=True)
    alike = {_schema_key(footer): path for path, footer in named if footer is not None}
    for path in alike.values():
        _check_columns(spark, name, path, qualified(store.root_uri, path), base)
    tracked = TableLayout.of_version(base).tracked
    examine = examining(spark, store, base.schema_json, base.partition_by, progress)
    collected = collect(store, files, tracked, examine, footers=footers)
    if collected.unreadable:
        raise UnsupportedError(f"{name}: {collected.unreadable[0]} is not a Parquet file, or cannot be read; {_NEXT}")
    if not pc.all(collected.files.same_as(listed_files(store, base.partition_by)), min_count=0).as_py():
        raise ConflictError(f"{name}: files in its folder changed while they were read; run it again")
    return collected


def _schema_key(footer: pq.FileMetaData) -> tuple[object, ...]:
    """Returns what Spark takes a file's columns from: Parquet's schema, and the one that Spark itself stores."""
    leaves = (footer.schema.column(number) for number in range(footer.num_columns))
    columns = [tuple(str(getattr(leaf, name)) for name in _LEAF) for leaf in leaves]
    return (*columns, (footer.metadata or {}).get(_ROW_SCHEMA))


def _check_partitions(name: TableRef, files: DataFiles, base: Snapshot) -> None:
    types = {each.name: each.arrow_type for each in fields_of(base.schema_json)}
    for column in base.partition_by:
        texts = files.partition_values(column)
        kind = types[column]
        # A timestamp is spelled in the time zone of the session that wrote it, which is not known here.
        known = typed_partition_values(texts, kind, "UTC").known if kind is not None else pa.repeat(True, len(files))
        if not pc.all(known, min_count=0).as_py():
            position = known.to_pylist().index(False)
            raise UnsupportedError(
                f"{name}: {files[position].path}: {column}={texts[position].as_py()} is not a value of type {kind};"
                f" {_NEXT}"
            )
    if problem := ambiguous_folder(files, base.partition_by, base.schema_json):
        raise UnsupportedError(f"{name}: {problem}; {_NEXT}")


def _check_columns(spark: SparkSession, name: TableRef, path: str, uri: str, base: Snapshot) -> None:
    """Checks that a file has the table's columns, by name and type, in any order."""
    try:
        # Otherwise Spark would read folders as partition columns.
        reader = spark.read.option(GLOB, False).option("recursiveFileLookup", True)
        # Spark takes the text as a path, and decodes nothing.
        found = _types(raw_fields(reader.parquet(unescaped(uri)).schema.json()))
    except Exception as error:
        raise UnsupportedError(f"{name}: {path} cannot be read: {short_message(error)}; {_NEXT}") from error
    wanted = _types(raw_fields(split_partition_columns(base.schema_json, base.partition_by)[0]))
    problems = [f"column `{each}` is not in the table" for each in found if each not in wanted]
    problems += [f"it lacks column `{each}`" for each in wanted if each not in found]
    problems += [
        f"column `{each}` is {json.dumps(found[each])}, not {json.dumps(kind)}"
        for each, kind in wanted.items()
        if each in found and found[each] != kind
    ]
    if problems:
        raise UnsupportedError(f"{name}: {path} does not fit: {'; '.join(problems)}; {_NEXT}")


def _types(fields: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {each["name"]: _without_nullability(as_plain_text(each["type"], collated=True)) for each in fields}


def _without_nullability(kind: Any) -> Any:
    """Returns a type without nullability and metadata."""
    if isinstance(kind, list):
        return [_without_nullability(each) for each in kind]
    if not isinstance(kind, dict):
        return kind
    return {key: _without_nullability(value) for key, value in kind.items() if key not in _NULLABILITY}
