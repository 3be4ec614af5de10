"""Partition statistics beside random changes: after every commit they are what all live files together say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slices_in_memory import MemoryStore

from dbt.adapters.zlayout.index.footers.footer import ColumnFooter, FooterStatistics, footer_table
from dbt.adapters.zlayout.index.footers.parquet_values import Bounds
from dbt.adapters.zlayout.index.statistics.column_stats import bounds_of_stats
from dbt.adapters.zlayout.index.statistics.merge import merge_statistics
from dbt.adapters.zlayout.index.statistics.tracked import TrackedColumn
from dbt.adapters.zlayout.index.table_index import TableIndex
from dbt.adapters.zlayout.pruning.statistics.validation import contiguous
from dbt.adapters.zlayout.spark.commit import commit_files as index_update
from dbt.adapters.zlayout.spark.commit.commit_files import IndexUpdate, Renewed
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.files.data_files import DataFile, DataFiles
from dbt.adapters.zlayout.timeline.log.snapshot import Snapshot

A = TrackedColumn(("a",), pa.int64())
FIELDS = ("minimum", "maximum", "minimum_exact", "maximum_exact", "null_count", "nan_count")


class Table:
    """Versions of a table without data: what the files would hold is drawn."""

    def __init__(self, partition_by: tuple[str, ...]) -> None:
        self.store = MemoryStore()
        self.rows: dict[str, FooterStatistics] = {}
        self.head = Snapshot(
            version=0,
            instant="0" * 17,
            action=Action.COMMIT,
            operation=Operation.APPEND.value,
            committed_ms=0,
            last_instant="0" * 17,
            schema_json='{"type":"struct","fields":[]}',
            partition_by=partition_by,
            files=DataFiles.empty(partition_by),
        )

    def new_files(self, drawn: list[tuple[str | None, int, int, int]]) -> DataFiles:
        found = []
        for partition, low, width, nulls in drawn:
            path = f"f{len(self.rows)}.parquet"
            rows = nulls + 2
            self.rows[path] = FooterStatistics(rows, (ColumnFooter(Bounds(low, low + width), nulls, 0, rows),))
            values = tuple((name, partition) for name in self.head.partition_by)
            found.append(DataFile(path, values, rows, 100 + rows, 7, path))
        return DataFiles.of(found, self.head.partition_by)

    def stats(self, files: DataFiles) -> pa.Table:
        paths = files["path"].to_pylist()
        return footer_table(paths, [self.rows[path] for path in paths], [A])

    def commit(self, adds: DataFiles, removes: tuple[str, ...], base: Snapshot, renewed: Renewed | None = None) -> None:
        """Commits on top of the head what began with ``base``."""
        instant = f"{self.head.version + 1:017d}"
        update = IndexUpdate(self.store, instant, adds, self.stats(adds), removes, renewed=renewed)  # type: ignore[arg-type] # reads and puts
        update(base)  # the try that lost the race
        files = self.head.files.minus(removes).plus(adds)
        self.head = replace(self.head, version=self.head.version + 1, index=update(self.head), files=files)

    def stored(self) -> list[tuple[Any, ...]]:
        types = {name: pa.string() for name in self.head.partition_by}
        index = TableIndex(self.store, self.head.index, partition_types=types)
        found = index.partition_statistics(self.head.files, {A.path})
        bounds = found.statistics.column(A.path)
        assert index.problems == []
        if bounds is None:
            return []
        return list(zip(*(getattr(bounds, name).to_pylist() for name in FIELDS), strict=True))

    def recomputed(self) -> list[tuple[Any, ...]]:
        files = self.head.files
        types = {name: pa.string() for name in self.head.partition_by}
        groups = TableIndex(self.store, {}, partition_types=types).partition_statistics(files, ()).partition_of_file
        stats = contiguous(self.stats(files).column("c0"))
        merged = merge_statistics(stats, groups, int(groups.max(initial=-1)) + 1)
        bounds = bounds_of_stats(merged)
        return list(zip(*(getattr(bounds, name).to_pylist() for name in FIELDS), strict=True))


FILES = st.lists(
    st.tuples(st.sampled_from(["x", "y", "", None]), st.integers(-9, 9), st.integers(0, 5), st.integers(0, 2)),
    max_size=4,
)


@settings(deadline=None, max_examples=25)
@given(st.sampled_from([("p",), ()]), st.data())
def test_partition_statistics_equal_the_recomputed_after_any_changes(
    partition_by: tuple[str, ...], data: st.DataObject
) -> None:
    table = Table(partition_by)
    table.commit(table.new_files([("x", 1, 1, 0), (None, 5, 2, 1)]), (), table.head)
    older = table.head
    for _ in range(data.draw(st.integers(1, 14))):
        live = table.head.files["path"].to_pylist()
        removes = tuple(data.draw(st.lists(st.sampled_from(live), unique=True, max_size=5))) if live else ()
        base = data.draw(st.sampled_from([older, table.head]))
        older = table.head
        table.commit(table.new_files(data.draw(FILES)), removes, base)
        assert table.stored() == table.recomputed()


def test_a_delete_restates_only_the_partition_that_lost_a_file() -> None:
    table = Table(("p",))
    table.commit(table.new_files([("x", 1, 1, 0), ("x", 8, 1, 0), ("y", 3, 1, 0)]), (), table.head)
    before = table.head
    table.commit(table.new_files([]), ("f1.parquet",), before)
    assert len(table.head.index["partition_stats"]) == 2
    assert table.stored() == [(1, 2, True, True, 0, 0), (3, 4, True, True, 0, 0)]


def test_partitions_too_large_to_restate_are_unknown_until_the_next_base(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_update, "_MOST_RESTATED_FILES", 1)
    table = Table(("p",))
    table.commit(table.new_files([("x", 1, 1, 0)] * 3 + [("y", 3, 1, 0)] * 2), (), table.head)
    table.commit(table.new_files([]), ("f0.parquet", "f3.parquet"), table.head)
    assert table.stored() == [(None, None, False, False, None, None)] * 2
    while len(table.head.index["column_stats"]) > 1:
        table.commit(table.new_files([("z", 0, 1, 0)]), (), table.head)
    assert table.stored() == table.recomputed()


def test_eleven_commits_leave_few_slices() -> None:
    table = Table(("p",))
    for _ in range(25):
        table.commit(table.new_files([("x", 1, 1, 0)]), (), table.head)
        assert max(len(paths) for paths in table.head.index.values()) <= 10
    assert table.stored() == table.recomputed()


def test_slices_of_the_former_index_partition_of_files_are_kept_unread_until_the_next_base() -> None:
    table = Table(("p",))
    table.head = replace(table.head, index={"files": ("gone.parquet",)})
    table.commit(table.new_files([("x", 1, 1, 0)]), (), table.head)
    assert table.head.index["files"] == ("gone.parquet",)
    assert table.stored() == table.recomputed()
    while len(table.head.index["column_stats"]) != 1 or table.head.version == 1:
        table.commit(table.new_files([("x", 1, 1, 0)]), (), table.head)
    assert set(table.head.index) == {"column_stats", "partition_stats"}


def test_a_base_without_new_files_follows_other_partition_columns() -> None:
    table = Table(("p",))
    table.commit(table.new_files([("x", 1, 1, 0)]), (), table.head)
    live = table.head.files
    update = IndexUpdate(
        table.store,  # type: ignore[arg-type] # reads and puts
        "1" * 17,
        DataFiles.empty(),
        table.stats(DataFiles.empty()),
        renewed=Renewed(live, table.stats(live)),
    )
    table.head = replace(table.head, index=update(table.head))
    assert table.stored() == table.recomputed()


def test_renewed_statistics_of_a_file_that_changed_meanwhile_are_not_believed() -> None:
    table = Table(())
    table.commit(table.new_files([("x", 1, 1, 0), ("x", 5, 1, 0)]), (), table.head)
    read = table.head.files
    wide = {"f0.parquet": (0, 20), "f1.parquet": (30, 40)}
    stats = [FooterStatistics(2, (ColumnFooter(Bounds(*wide[path]), 0, 0, 2),)) for path in wide]
    renewed = Renewed(read, footer_table(list(wide), stats, [A]))
    changed = DataFile("f1.parquet", (), 2, 999, 8, "f1")
    table.commit(DataFiles.of([changed]), ("f1.parquet",), table.head)
    table.commit(DataFiles.empty(), (), table.head, renewed)
    found = TableIndex(table.store, table.head.index).statistics(table.head.files, {A.path}).column(A.path)
    assert found is not None
    known = dict(zip(table.head.files["path"].to_pylist(), found.maximum.to_pylist(), strict=True))
    assert known == {"f0.parquet": 20, "f1.parquet": 6}
