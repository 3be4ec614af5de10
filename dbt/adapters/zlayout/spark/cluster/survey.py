"""Surveys a table's layout before a clustering: bounds, sizes and cost of its files, from the index alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.config.clustering import ClusteringConfig
from dbt.adapters.zlayout.config.column_names import format_column_path
from dbt.adapters.zlayout.curve.keys import Comparable, comparable, is_orderable
from dbt.adapters.zlayout.curve.model import CurveModel
from dbt.adapters.zlayout.layout.cluster_plan import LayoutState, deepens, layout_state
from dbt.adapters.zlayout.layout.cost import CostModel
from dbt.adapters.zlayout.layout.key_space import Boxes, Floats, KeyBounds, boxes_of, fullest_bucket
from dbt.adapters.zlayout.lazy import cached_property
from dbt.adapters.zlayout.predicate.expr import ColumnPath
from dbt.adapters.zlayout.pruning.statistics.column_bounds import ColumnBounds
from dbt.adapters.zlayout.spark.schema.table_schema import type_at
from dbt.adapters.zlayout.spark.snapshot.table_layout import TableLayout
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot

# Rows between two neighbouring boundaries cannot be cut apart: if they exceed one file, the key needs new boundaries.
_MOST_FILES_IN_A_BUCKET = 1.0


@dataclass(frozen=True)
class Survey:
    """The files of one version, as seen by clustering.

    Attributes:
        layout: The wanted layout of the files.
        max_file_bytes: A file larger than this is too large.
        files_with_logs: Number of files of the version that are left out because log files change their rows.
    """

    opened: TableSnapshot
    layout: TableLayout
    max_file_bytes: int
    files_with_logs: int = 0

    @cached_property
    def stored(self) -> CurveModel | None:
        """The table's curve, if it was made for this layout."""
        schema, keys = self.layout.data_schema, self.layout.keys
        if not keys or any(_ordered_type(schema, path) is None for path in keys):
            return None
        return self.layout.stored_model(self.opened.store, self.opened.snapshot)

    @cached_property
    def rows(self) -> npt.NDArray[np.int64]:
        """int64[n], number of rows of each file."""
        return np.asarray(self.opened.files["row_count"].to_numpy(), np.int64)

    @cached_property
    def size_bytes(self) -> npt.NDArray[np.int64]:
        """int64[n], size of each file."""
        return np.asarray(self.opened.files["size_bytes"].to_numpy(), np.int64)

    @cached_property
    def bounds(self) -> tuple[KeyBounds, ...]:
        """Bounds of each key, per file."""
        statistics = self.opened.statistics.statistics(self.opened.files, self.layout.keys)
        kinds = [_ordered_type(self.layout.data_schema, path) for path in self.layout.keys]
        return tuple(
            _key_bounds(None if kind is None else statistics.column(path), kind or pa.int64(), statistics.row_count)
            for path, kind in zip(self.layout.keys, kinds, strict=True)
        )

    @cached_property
    def marks(self) -> tuple[Comparable, ...]:
        """Stored boundaries of each key. Empty without a stored curve."""
        if self.stored is None:
            return ()
        return tuple(Comparable(each.values, np.zeros(len(each.values), bool)) for each in self.stored.boundaries)

    @cached_property
    def boxes(self) -> Boxes:
        """Position of each file in the key space."""
        return boxes_of(self.bounds, self.rows, self.marks)

    @cached_property
    def cost_model(self) -> CostModel:
        """Model of what it costs to read the files."""
        clustering = self.layout.config.clustering
        target = self.layout.config.file_sizing.target_file_bytes
        asked = None if self.stored is None else self.stored.asked
        weights = None if asked is None else asked.key_weights()
        return CostModel.of(target, self.max_file_bytes, len(self.layout.keys), clustering.curve, weights)

    def sorted_by(self, columns: tuple[ColumnPath, ...]) -> Survey:
        """Returns the survey of the same files as a sort by other columns sees them."""
        config = self.layout.config
        clustering = ClusteringConfig(columns, "linear")
        return replace(self, layout=replace(self.layout, config=replace(config, clustering=clustering)))

    def outgrown(self) -> tuple[str, ...]:
        """Returns the keys whose stored boundaries no longer divide the rows finely enough."""
        target = self.layout.config.file_sizing.target_file_bytes
        files = self.size_bytes.sum() / target
        return tuple(
            format_column_path(path)
            for path, key, marks in zip(self.layout.keys, self.bounds, self.marks, strict=False)
            if fullest_bucket(key, self.rows, marks) * files > _MOST_FILES_IN_A_BUCKET
        )

    @cached_property
    def cost(self) -> Floats:
        """float64[n], bytes that a query reads of each file on average."""
        return self.cost_model.cost(self.boxes, self.size_bytes)

    @cached_property
    def state(self) -> LayoutState:
        """The layout in three figures."""
        return layout_state(self.bounds, self.rows, self.opened.partition_of_file, self.cost_model, self.marks)

    @cached_property
    def as_built(self) -> npt.NDArray[np.bool_]:
        """bool[n], files that the last build cut for the current target size."""
        built: Mapping[str, Any] = self.opened.snapshot.layout.get("built", {})
        if built.get("target_file_bytes") != self.layout.config.file_sizing.target_file_bytes:
            return ~self.opened.all_files()
        paths = self.opened.files["path"].combine_chunks()
        found: npt.NDArray[np.bool_] = pc.ends_with(paths, f"_{built['instant']}.parquet").to_numpy(False)
        return found

    def deepens(self, removed: npt.NDArray[np.bool_], added: Sequence[KeyBounds]) -> bool:
        """Returns whether a rewrite would make the files overlap more deeply than now.

        Args:
            removed: bool[n], files to remove, all of one partition.
            added: Bounds of each key for the new files.
        """
        partition = self.opened.partition_of_file
        neighbours = partition == partition[np.argmax(removed)]
        return deepens([each.take(neighbours) for each in self.bounds], removed[neighbours], added)

    def state_after(
        self,
        removed: npt.NDArray[np.bool_],
        added: Sequence[tuple[int, tuple[KeyBounds, ...], npt.NDArray[np.int64]]],
    ) -> LayoutState:
        """Returns the layout as it would be after a rewrite.

        Args:
            removed: bool[n], files to remove.
            added: New files: number of their partition, bounds of each key, number of rows.
        """
        partition, rows = self.opened.partition_of_file[~removed], self.rows[~removed]
        bounds = [each.take(~removed) for each in self.bounds]
        for number, keys, more in added:
            partition = np.concatenate([partition, np.full(len(more), number)])
            rows = np.concatenate([rows, more])
            bounds = [each.plus(other) for each, other in zip(bounds, keys, strict=True)]
        return layout_state(bounds, rows, partition, self.cost_model, self.marks)


def _ordered_type(schema: pa.Schema, path: ColumnPath) -> pa.DataType | None:
    """Returns the type at a path; None if Arrow lacks it, or has no order for it, as for a struct."""
    try:
        kind = type_at(schema, path)
    except KeyError:
        return None
    return kind if is_orderable(kind) else None


def _key_bounds(bounds: ColumnBounds | None, kind: pa.DataType, row_count: pa.Array) -> KeyBounds:
    if bounds is None:
        nothing = comparable(pa.nulls(len(row_count), kind))
        return KeyBounds(nothing, nothing, np.zeros(len(row_count), bool))
    empty = pc.fill_null(pc.equal(bounds.null_count, row_count), False)
    return KeyBounds(comparable(bounds.minimum), comparable(bounds.maximum), empty.to_numpy(zero_copy_only=False))
