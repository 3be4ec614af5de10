"""The curve model of one table: boundaries, bits and cuts, built once from a sample and stored with the commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dbt.adapters.zlayout.curve import hilbert, linear, model_bytes, zorder
from dbt.adapters.zlayout.curve.cuts import Tree, build_tree
from dbt.adapters.zlayout.curve.keys import comparable, key_type
from dbt.adapters.zlayout.curve.quantiles import Boundaries
from dbt.adapters.zlayout.curve.sizing import PartitionKey, Sizing
from dbt.adapters.zlayout.predicate.expr import ColumnPath

Keys = Sequence[pa.Array | pa.ChunkedArray]


@dataclass(frozen=True, eq=False)
class Placement:
    """The place of each row of one partition.

    Attributes:
        file: int32[n].
        leaf: int32[n], numbered through all files of the partition.
    """

    file: npt.NDArray[np.int32]
    leaf: npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class CurveModel:
    """Maps keys to files, leaves and curve positions.

    Attributes:
        columns: The key columns.
        types: Their Arrow types, as returned by `key_type`.
        curve: 'zorder', 'hilbert' or 'linear': the order of rows inside a leaf; 'linear' also cuts along it.
        boundaries: Of each key.
        sizing: The sizes that the cuts were made for.
        tree: The cuts of a table without partitions. In a partitioned table: the cuts of partitions that have no tree
            of their own, a single file.
        partition_trees: The cuts of the partitions in the sample, by their raw values.
    """

    columns: tuple[ColumnPath, ...]
    types: tuple[pa.DataType, ...]
    curve: str
    boundaries: tuple[Boundaries, ...]
    sizing: Sizing
    tree: Tree
    partition_trees: Mapping[PartitionKey, Tree]

    @classmethod
    def build(
        cls,
        sample: pa.Table,
        columns: Sequence[ColumnPath],
        curve: str,
        *,
        total_rows: int,
        bytes_per_row: float,
        target_file_bytes: int,
        row_group_rows: int | None,
        partition_keys: Sequence[PartitionKey] | None = None,
        along: CurveModel | None = None,
        spans: Sequence[float] | None = None,
    ) -> CurveModel:
        """Builds a curve model from a uniform sample.

        Args:
            sample: One column per key, in key order; may have no rows.
            columns: The paths of the keys.
            curve: 'zorder', 'hilbert' or 'linear'.
            total_rows: Rows that the sample represents.
            bytes_per_row: Size of a row in a file.
            target_file_bytes: Target size of a file.
            row_group_rows: Target rows of a row group; None for about eight groups per file.
            partition_keys: The partition of each sampled row; None for a table without partitions.
            along: A curve model for these keys whose boundaries are reused, so that its rows and these share one order.
            spans: As for `build_tree`; None if the sample covers the whole table.

        Raises:
            UnsupportedError: A key has a type without order.
        """
        sizing = Sizing.of(total_rows, sample.num_rows, bytes_per_row, target_file_bytes, row_group_rows)
        keys = [comparable(column) for column in sample.columns]
        if along is not None:
            boundaries = along.boundaries
        else:
            boundaries = tuple(Boundaries.of_sample(each, sizing.buckets) for each in keys)
        ranks = [each.ranks(key) for each, key in zip(boundaries, keys, strict=True)]
        trees = {}
        cuts: dict[str, Any] = {"linear": curve == "linear", "spans": spans}
        if partition_keys is None:
            tree = build_tree(ranks, *sizing.files_and_leaves(sample.num_rows), **cuts)
        else:
            rows = min(sizing.rows_per_file, total_rows)
            tree = build_tree(ranks, 1, sizing.leaves(rows), **cuts)
            for key, members in _rows_by_key(partition_keys).items():
                part = [column[members] for column in ranks]
                trees[key] = build_tree(part, *sizing.files_and_leaves(len(members)), **cuts)
        types = tuple(key_type(column.type) for column in sample.columns)
        return cls(tuple(columns), types, curve, boundaries, sizing, tree, trees)

    @property
    def row_group_rows(self) -> int:
        """Target rows of a row group."""
        return self.sizing.row_group_rows

    @cached_property
    def bits(self) -> tuple[int, ...]:
        """Bits of each key on the curve, at most 63 in all."""
        own = [each.bits for each in self.boundaries]
        if self.curve == "linear":
            return linear.leading(own)
        if self.curve == "hilbert":
            return tuple(min(each, zorder.MAX_BITS // len(own)) for each in own)
        return zorder.shaved(own)

    @cached_property
    def shares(self) -> Mapping[tuple[PartitionKey, int], int]:
        """By partition and file, the number of files that share its rows, where too many values are equal to cut."""
        trees = self.partition_trees or {(): self.tree}
        return {
            (key, file): count
            for key, tree in trees.items()
            for file, count in enumerate(np.rint(tree.file_size).astype(int).tolist())
            if count > 1
        }

    def files_of(self, partition_key: PartitionKey = ()) -> int:
        """Returns the number of files that the cuts make of a partition."""
        return self._tree_of(partition_key).file_count

    def place(self, keys: Keys, partition_key: PartitionKey | None = None) -> Placement:
        """Returns file and leaf of each row of one partition.

        Args:
            keys: One column[n] per key, of the types that the model was built for.
            partition_key: Raw values of the partition columns; None or () for a table without partitions.
        """
        tree = self._tree_of(partition_key or ())
        leaf = tree.leaf_of(self._ranks(keys))
        return Placement(tree.file_of_leaf[leaf], leaf)

    def curve_values(self, keys: Keys) -> npt.NDArray[np.uint64]:
        """Returns the position of each row on the curve, the sort order inside a leaf.

        Args:
            keys: As for `place`.

        Returns:
            uint64[n]
        """
        codes = [
            boundaries.codes(ranks) >> np.uint64(boundaries.bits - bits)
            for boundaries, ranks, bits in zip(self.boundaries, self._ranks(keys), self.bits, strict=True)
        ]
        if self.curve == "linear":
            return linear.concatenate(codes, self.bits)
        if self.curve == "zorder":
            return zorder.interleave(codes, self.bits)
        side = max(self.bits)
        # A key with few values is stretched over the side, so that the first halving of the space halves the key too.
        wide = [code << np.uint64(side - bits) for code, bits in zip(codes, self.bits, strict=True) if bits]
        return hilbert.encode(wide, side) if wide else np.zeros(len(keys[0]), np.uint64)

    def fits(self, columns: Sequence[ColumnPath], types: Sequence[pa.DataType], curve: str) -> bool:
        """Whether the model is for these keys and this curve, so that its cuts can be reused."""
        return (self.columns, self.types, self.curve) == (
            tuple(columns),
            tuple(key_type(each) for each in types),
            curve,
        )

    def drift(self, rows_per_leaf: npt.NDArray[Any], partition_key: PartitionKey | None = None) -> float:
        """Returns how far rows have outgrown the cuts: the fullest file relative to the mean.

        A file that was fuller than the mean when the cuts were made, because its values are equal, is compared with its
        share at that time: new cuts could not split it either.

        Args:
            rows_per_leaf: Rows that are in each leaf now.
            partition_key: The partition of the leaves.

        Returns:
            1.0 if rows are still spread as they were, k if a file holds k times its share.
        """
        tree = self._tree_of(partition_key or ())
        rows = np.bincount(tree.file_of_leaf, weights=rows_per_leaf, minlength=tree.file_count)
        if not rows.sum():
            return 1.0
        expected = np.maximum(tree.file_size / max(tree.file_size.sum(), 1e-9), 1 / tree.file_count)
        return max(1.0, float(np.max(rows / rows.sum() / expected)))

    def to_bytes(self) -> bytes:
        """Serializes the model, see `model_bytes`."""
        return model_bytes.encode(vars(self))

    @classmethod
    def from_bytes(cls, content: bytes) -> CurveModel:
        """Reads a serialized model.

        Raises:
            CorruptError: The content is not a serialized model, or is from a later release.
        """
        return cls(**model_bytes.decode(content))

    def _tree_of(self, partition_key: PartitionKey) -> Tree:
        return self.partition_trees.get(partition_key, self.tree)

    def _ranks(self, keys: Keys) -> list[npt.NDArray[Any]]:
        return [each.ranks_of(key) for each, key in zip(self.boundaries, keys, strict=True)]


def _rows_by_key(keys: Sequence[PartitionKey]) -> dict[PartitionKey, npt.NDArray[np.intp]]:
    numbers: dict[PartitionKey, int] = {}
    number_of_row = np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.intp)
    order = np.argsort(number_of_row, kind="stable")
    ends = np.cumsum(np.bincount(number_of_row, minlength=len(numbers)))
    return dict(zip(numbers, np.split(order, ends[:-1]), strict=True)) if numbers else {}
