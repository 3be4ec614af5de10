"""A table at one version, ready for scans: its files in partition order, with their index."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.config.table_config import OptionalIndexes
from dbt.adapters.zlayout.errors import StoreError, TableNotFoundError, UnsupportedError
from dbt.adapters.zlayout.index.slice_reading import SHARED, SHARED_FILTERS, SHARED_LOOKUPS
from dbt.adapters.zlayout.index.table_index import CachedStatistics, TableIndex
from dbt.adapters.zlayout.lazy import cached_property
from dbt.adapters.zlayout.predicate.expr import EXPRESSION, Expr
from dbt.adapters.zlayout.predicate.literals import column_name
from dbt.adapters.zlayout.pruning.scan import (
    STAGES,
    PartitionCondition,
    Preselection,
    ScanPlan,
    ScanReport,
    plan_scan,
    report_scan,
)
from dbt.adapters.zlayout.publish import delta_log
from dbt.adapters.zlayout.publish.spark_manifest import check_log_not_lost
from dbt.adapters.zlayout.spark.schema.table_schema import with_log_columns
from dbt.adapters.zlayout.spark.schema.types import fields_of
from dbt.adapters.zlayout.spark.snapshot.table_layout import merges_on_read
from dbt.adapters.zlayout.store import Store, StoredFile, open_store, qualified
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles
from dbt.adapters.zlayout.timeline.files.naming import METADATA_FOLDER, is_data_path, log_path
from dbt.adapters.zlayout.timeline.files.table_file import ManagementLevel, TableFile, read_table_file, table_above
from dbt.adapters.zlayout.timeline.log.snapshot import Snapshot
from dbt.adapters.zlayout.timeline.timeline import Timeline


@dataclass(frozen=True)
class TableSnapshot:
    """One version of a managed or indexed table.

    Attributes:
        timeline: The table's timeline. It has read this version, so finding a newer one reads only what is newer.
        location: Absolute URI of the folder, as the catalog has it.
        snapshot: The snapshot of the version.
        timezone: The session's time zone, in which timestamps in partition values are read.
        managed: Whether the table is managed, or only indexed.
        entry_file: The version's log entry. It changes if the table is dropped and created again.
    """

    timeline: Timeline
    table_id: str
    location: str
    snapshot: Snapshot
    timezone: str
    managed: bool
    entry_file: StoredFile

    @classmethod
    def newest(cls, location: str, timezone: str) -> TableSnapshot | None:
        """Opens the newest version of the table at a location; returns None if the folder holds no such table.

        Raises:
            TableNotFoundError: No version has been committed yet.
            CorruptError: The log is damaged or missing.
        """
        store = open_store(location)
        table_file = read_table_file(store)
        if table_file is None:
            check_log_not_lost(store)
            return None
        timeline = Timeline(store)
        try:
            snapshot = timeline.snapshot()
        except TableNotFoundError:
            check_log_not_lost(store)
            raise
        return cls.at(timeline, table_file, location, snapshot, timezone)

    @classmethod
    def at(
        cls, timeline: Timeline, table_file: TableFile, location: str, snapshot: Snapshot, timezone: str
    ) -> TableSnapshot:
        """Opens a table at a snapshot that was already read."""
        managed = table_file.level is ManagementLevel.MANAGED
        entry_file = timeline.store.stat(log_path(snapshot.version))
        return cls(timeline, table_file.table_id, location, snapshot, timezone, managed, entry_file)

    def with_files(self, files: DataFiles) -> TableSnapshot:
        """Returns the table as if it had only these files."""
        return replace(self, snapshot=replace(self.snapshot, files=files))

    def at_snapshot(self, snapshot: Snapshot) -> TableSnapshot:
        """Returns the same table at another snapshot."""
        return replace(self, snapshot=snapshot, entry_file=self.store.stat(log_path(snapshot.version)))

    @property
    def store(self) -> Store:
        """The store of the table's folder."""
        return self.timeline.store

    @property
    def identity(self) -> tuple[str, str, int, str]:
        """Table id, folder, version and time zone. Table snapshots of equal identity have equal rows.

        A copied folder keeps its table id, and may have other rows at the same version.
        """
        return self.table_id, self.location, self.version, self.timezone

    @property
    def version(self) -> int:
        """The version of the snapshot."""
        return self.snapshot.version

    @property
    def schema_json(self) -> str:
        """Spark's JSON of the columns of the files, including log columns; partition columns last."""
        if merges_on_read(self.snapshot.layout):
            return with_log_columns(self.snapshot.schema_json, self.partition_columns)
        return self.snapshot.schema_json

    @property
    def row_schema_json(self) -> str:
        """Spark's JSON of the columns of the rows, without log columns."""
        return self.snapshot.schema_json

    @property
    def merges_on_read(self) -> bool:
        """Whether this is a merge-on-read table, whose rows come from base and log files together."""
        return merges_on_read(self.snapshot.layout)

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """Names of the partition columns."""
        return self.snapshot.partition_by

    def is_current(self) -> bool:
        """Returns whether this is still the newest version, and the folder still this table's. Takes two calls."""
        try:
            same = self.store.stat(self.entry_file.path) == self.entry_file
        except StoreError:
            return False
        return same and not self.store.exists(log_path(self.version + 1))

    @cached_property
    def files(self) -> DataFiles:
        """All files, ordered by partition."""
        return self.snapshot.files.take(pa.array(self._order))

    @cached_property
    def partition_keys(self) -> Sequence[tuple[str | None, ...]]:
        """The raw values of each partition; one empty tuple if the table has no partition columns."""
        return self._partitions[0]

    @cached_property
    def partition_of_file(self) -> npt.NDArray[np.int64]:
        """Position of each file's partition in ``partition_keys``, in ascending order."""
        return self._partitions[1][self._order]

    @cached_property
    def index(self) -> TableIndex:
        """The index of the snapshot."""
        types = {each.name: each.arrow_type for each in fields_of(self.schema_json)}
        partition_types = {name: kind for name in self.partition_columns if (kind := types[name]) is not None}
        return TableIndex(
            self.store,
            self.snapshot.index,
            partition_types=partition_types,
            timezone=self.timezone,
            read=partial(SHARED.read, self.store),
            read_filters=partial(SHARED_FILTERS.read, self.store),
            read_lookups=partial(SHARED_LOOKUPS.read, self.store),
        )

    @cached_property
    def statistics(self) -> CachedStatistics:
        """The statistics of ``files`` in the index."""
        return CachedStatistics(self.index, self.files)

    def scan(self, expr: Expr, before: Preselection | None = None, stages_wanted: Collection[str] = STAGES) -> ScanPlan:
        """Chooses the files that may hold a matching row. Positions refer to ``files``."""
        return plan_scan(expr, self.files, self.statistics, before, stages_wanted)

    def report(self, plan: ScanPlan, expr: Expr, conditions: Sequence[PartitionCondition] = ()) -> ScanReport:
        """Explains a scan plan of `scan`, and advises no index that the table has."""
        found = report_scan(plan, expr, self.files, self.statistics, conditions)
        indexed = {
            path[1] if path[0] == EXPRESSION else column_name(path)
            for _, columns in OptionalIndexes.of_stored(self.snapshot.layout).column_sets
            for path in columns
        }
        conjuncts = tuple(
            replace(each, looked_for=None) if each.looked_for in indexed else each for each in found.conjuncts
        )
        return replace(found, conjuncts=conjuncts)

    def all_files(self) -> npt.NDArray[np.bool_]:
        """Returns a mask that is True for every file."""
        return np.ones(len(self.files), dtype=bool)

    def uris(self) -> pa.Array:
        """Returns the absolute escaped URI of each file as an Arrow array of strings."""
        paths = self.files.column("path").combine_chunks()
        if not len(paths):
            return paths
        # Escapes all paths as one text. The separator needs no escape, and no path has two slashes in a row.
        joined = qualified(self.store.root_uri, "//".join(paths.to_pylist()))
        head = joined[: len(self.store.root_uri) + 1]
        escaped = pc.split_pattern(pa.array([joined[len(head) :]]), "//").flatten()
        return pc.binary_join_element_wise(head, escaped, "")

    def file_uris(self) -> list[str]:
        """Returns the absolute escaped URI of each file as a list."""
        uris: list[str] = self.uris().to_pylist()
        return uris

    def root_path(self) -> str:
        """Returns the folder as Hadoop's ``Path`` prints it: unescaped, and ``file:`` without the empty host."""
        return unquote(self.location).rstrip("/").replace("file:///", "file:/")

    @cached_property
    def _order(self) -> npt.NDArray[np.int64]:
        return np.argsort(self._partitions[1], kind="stable")

    @cached_property
    def _partitions(self) -> tuple[Sequence[tuple[str | None, ...]], npt.NDArray[np.int64]]:
        files = self.snapshot.files
        if not self.partition_columns or not len(files):
            return [()] if not self.partition_columns else [], np.zeros(len(files), dtype=np.int64)
        keys = pa.table(
            [files.partition_values(name) for name in self.partition_columns], names=list(self.partition_columns)
        )
        text = pc.binary_join_element_wise(
            *(pc.fill_null(pc.binary_join_element_wise("v", keys.column(i), ""), "n") for i in range(keys.num_columns)),
            "\x00",
        )
        encoded = text.combine_chunks().dictionary_encode()
        numbers = encoded.indices.to_numpy().astype(np.int64)
        _, first = np.unique(numbers, return_index=True)
        columns = [keys.column(i).take(pa.array(first)).to_pylist() for i in range(keys.num_columns)]
        return list(zip(*columns, strict=True)), numbers


def managed_in_folder(location: str, timezone: str, subject: str) -> TableSnapshot:
    """Returns the newest version of the managed table in a folder.

    Args:
        location: URI of the folder.
        subject: The folder, for error messages.

    Raises:
        TableNotFoundError: The folder holds no table, or a table without a version.
        UnsupportedError: The table is only indexed, or no table can be there.
        CorruptError: The log is damaged or missing.
    """
    store = open_store(location)
    local = store.local_path("")
    if local is not None and local.is_file():
        raise TableNotFoundError(f"{subject} is a file; give the folder of a table")
    opened = TableSnapshot.newest(location, timezone)
    if opened is None:
        raise TableNotFoundError(f"{subject} holds no dbt-zlayout table: {_content(location, store)}")
    if not opened.managed:
        raise UnsupportedError(
            f"{subject} is only indexed: other tools write it, and the catalog knows its columns; open it by its name "
            "with ZTable.for_name"
        )
    return opened


def _content(location: str, store: Store) -> str:
    if (above := table_above(location)) is not None:
        return f"it is inside the table at {above}; give that folder"
    local = store.local_path("")
    if local is not None and not local.exists():
        return "there is no such folder; check the path"
    stored = [each.path for each in store.list("", recursive=True)]
    if any(path.startswith(f"{delta_log.FOLDER}/") for path in stored):
        return "it is a Delta table of other software; read it with a reader of Delta"
    below = sorted(path.partition(f"/{METADATA_FOLDER}/")[0] for path in stored if f"/{METADATA_FOLDER}/" in path)
    if below:
        return f"it is above the table in {below[0]}; give the table's own folder"
    if any(map(is_data_path, stored)):
        return (
            "it holds Parquet files that other tools wrote; give it a catalog entry (create table … using parquet "
            "location …), and index it with ZTable.adopt"
        )
    return f"it holds other files, such as {min(stored)}; check the path" if stored else "it is empty; check the path"
