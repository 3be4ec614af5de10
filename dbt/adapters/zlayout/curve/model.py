"""The curve model of one table: boundaries, bits and cuts, built once from a sample and stored with the commit.

In a file it is one row of Arrow lists, with the scalars as JSON metadata. Reading validates all of it.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dbt.adapters.zlayout.curve.cuts import Sizing, Tree, build_tree
from dbt.adapters.zlayout.curve.keys import is_orderable, key_type
from dbt.adapters.zlayout.curve.orders import (
    MAX_BITS,
    balanced_bits,
    concatenate,
    hilbert_positions,
    interleave,
    leading_bits,
)
from dbt.adapters.zlayout.curve.quantiles import Boundaries
from dbt.adapters.zlayout.curve.query_boxes import MOST_BOXES, QueryBoxes
from dbt.adapters.zlayout.errors import CorruptError
from dbt.adapters.zlayout.lazy import cached_property
from dbt.adapters.zlayout.predicate.expr import ColumnPath

Keys = Sequence[pa.Array | pa.ChunkedArray]
PartitionKey = tuple["str | None", ...]
FORMAT_VERSION = 2

_FACTS = b"zlayout.curve"
_CURVES = ("zorder", "hilbert", "linear")
_NODE_ARRAYS = ("column", "threshold", "left", "right")
_LEAF_ARRAYS = ("file_of_leaf", "leaf_size")
_UNREADABLE = "the stored curve cannot be understood ({}); rebuild the table (--full-refresh) to make a new one"


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
        types: Their Arrow types, as returned by `key_type`.
        curve: 'zorder', 'hilbert' or 'linear': the order of rows inside a leaf; 'linear' also cuts along it.
        boundaries: The boundaries of each key.
        sizing: The sizes that the cuts were made for.
        tree: The cuts of a table without partitions. In a partitioned table: the cuts of partitions that have no tree
            of their own, a single file.
        partition_trees: The cuts of the partitions in the sample, by their raw values.
        asked: What queries ask for, if the cuts follow them. Cuts that are made later follow them, too.
    """

    columns: tuple[ColumnPath, ...]
    types: tuple[pa.DataType, ...]
    curve: str
    boundaries: tuple[Boundaries, ...]
    sizing: Sizing
    tree: Tree
    partition_trees: Mapping[PartitionKey, Tree]
    asked: QueryBoxes | None = None

    @classmethod
    def build(  # noqa: PLR0913 - one keyword for each fact about the rows
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
        asked: QueryBoxes | None = None,
    ) -> CurveModel:
        """Builds a curve model from a uniform sample.

        Args:
            sample: One column per key, in key order; may have no rows.
            columns: The paths of the keys.
            curve: 'zorder', 'hilbert' or 'linear'.
            total_rows: Rows that the sample represents.
            bytes_per_row: Size of a row in a file.
            row_group_rows: Target rows of a row group; None for about eight groups per file.
            partition_keys: The partition of each sampled row; None for a table without partitions.
            along: A curve model for these keys whose boundaries are reused, so that its rows and these share one order.
            spans: As for `build_tree`; None if the sample covers the whole table.
            asked: What queries ask for. None for what ``along`` knows.

        Raises:
            UnsupportedError: A key has a type without order.
        """
        sizing = Sizing.of(total_rows, sample.num_rows, bytes_per_row, target_file_bytes, row_group_rows)
        if along is not None:
            boundaries = along.boundaries
        else:
            boundaries = tuple(Boundaries.of_column(each, sizing.buckets) for each in sample.columns)
        ranks = [each.ranks_of(column) for each, column in zip(boundaries, sample.columns, strict=True)]
        trees = {}
        asked = along.asked if asked is None and along is not None else asked
        asked_ranks = None if asked is None else asked.ranks(boundaries)
        cuts: dict[str, Any] = {"linear": curve == "linear", "spans": spans, "asked": asked_ranks}
        if partition_keys is None:
            tree = build_tree(ranks, *sizing.files_and_leaves(sample.num_rows), **cuts)
        else:
            rows = min(sizing.rows_per_file, total_rows)
            tree = build_tree(ranks, 1, sizing.leaves(rows), **cuts)
            for key, members in _rows_by_key(partition_keys).items():
                part = [column[members] for column in ranks]
                trees[key] = build_tree(part, *sizing.files_and_leaves(len(members)), **cuts)
        types = tuple(key_type(column.type) for column in sample.columns)
        return cls(tuple(columns), types, curve, boundaries, sizing, tree, trees, asked)

    @property
    def row_group_rows(self) -> int:
        """Target rows of a row group."""
        return self.sizing.row_group_rows

    @cached_property
    def bits(self) -> tuple[int, ...]:
        """Bits of each key on the curve, at most 63 in all."""
        own = [each.bits for each in self.boundaries]
        if self.curve == "linear":
            return leading_bits(own)
        if self.curve == "hilbert":
            return tuple(min(each, MAX_BITS // len(own)) for each in own)
        return balanced_bits(own)

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
        tree, boundaries = self._cuts_of(partition_key or ())
        leaf = tree.leaf_of([each.ranks_of(key) for each, key in zip(boundaries, keys, strict=True)])
        return Placement(tree.file_of_leaf[leaf], leaf)

    def curve_values(self, keys: Keys) -> npt.NDArray[np.uint64]:
        """Returns the position of each row on the curve, the sort order inside a leaf.

        Args:
            keys: As for `place`.

        Returns:
            uint64[n]
        """
        codes = [
            boundaries.codes(boundaries.ranks_of(key)) >> np.uint64(boundaries.bits - bits)
            for boundaries, key, bits in zip(self.boundaries, keys, self.bits, strict=True)
        ]
        if self.curve == "linear":
            return concatenate(codes, self.bits)
        if self.curve == "zorder":
            return interleave(codes, self.bits)
        side = max(self.bits)
        # A key with few values is stretched over the side, so that the first halving of the space halves the key too.
        wide = [code << np.uint64(side - bits) for code, bits in zip(codes, self.bits, strict=True) if bits]
        return hilbert_positions(wide, side) if wide else np.zeros(len(keys[0]), np.uint64)

    def fits(self, columns: Sequence[ColumnPath], types: Sequence[pa.DataType], curve: str) -> bool:
        """Returns whether the model is for these keys and this curve, so that its cuts can be reused."""
        return (self.columns, self.types, self.curve) == (
            tuple(columns),
            tuple(key_type(each) for each in types),
            curve,
        )

    def to_bytes(self) -> bytes:
        """Returns an Arrow file: boundaries and an empty list of the type of each key, then all trees in sequence."""
        trees = [self.tree, *self.partition_trees.values()]
        columns: dict[str, pa.Array] = {}
        for number, (type_, boundaries) in enumerate(zip(self.types, self.boundaries, strict=True)):
            columns[f"type_{number}"] = pa.array([[]], pa.list_(type_))
            columns[f"boundaries_{number}"] = _one_list(boundaries.values)
        columns["nodes"] = _one_list(np.array([len(tree.column) for tree in trees], np.int32))
        columns["leaves"] = _one_list(np.array([tree.leaf_count for tree in trees], np.int32))
        for name in (*_NODE_ARRAYS, *_LEAF_ARRAYS):
            columns[name] = _one_list(np.concatenate([getattr(tree, name) for tree in trees]))
        if self.asked is not None:
            columns["asked_weights"] = _one_list(self.asked.weights)
            for number, (low, high) in enumerate(zip(self.asked.low, self.asked.high, strict=True)):
                columns[f"asked_low_{number}"], columns[f"asked_high_{number}"] = _as_list(low), _as_list(high)
        facts = {
            "format_version": FORMAT_VERSION,
            "columns": self.columns,
            "curve": self.curve,
            "nullable": [each.nullable for each in self.boundaries],
            "widths": [each.values.dtype.itemsize for each in self.boundaries],
            "sizing": asdict(self.sizing),
            "partitions": list(self.partition_trees),
        }
        table = pa.table(columns).replace_schema_metadata({_FACTS: json.dumps(facts).encode()})
        sink = io.BytesIO()
        with pa.ipc.new_file(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
            writer.write_table(table)
        return sink.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes) -> CurveModel:
        """Reads a serialized model.

        Raises:
            CorruptError: The content is not a serialized model, or is from a later release.
        """
        try:
            table = pa.ipc.open_file(pa.BufferReader(content)).read_all()
            table.validate(full=True)
            facts = json.loads(table.schema.metadata[_FACTS])
            version = facts["format_version"]
        except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
            raise CorruptError(_UNREADABLE.format(error)) from error
        if version != FORMAT_VERSION:
            raise CorruptError(_UNREADABLE.format(f"format_version {version!r}, this release reads {FORMAT_VERSION}"))
        try:
            return _model(table, facts)
        except (pa.ArrowException, KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
            raise CorruptError(_UNREADABLE.format(error)) from error

    def _tree_of(self, partition_key: PartitionKey) -> Tree:
        return self.partition_trees.get(partition_key, self.tree)

    def _cuts_of(self, partition_key: PartitionKey) -> tuple[Tree, tuple[Boundaries, ...]]:
        """Returns a partition's tree over ranks among only those boundaries that the tree compares, and these."""
        key = partition_key if partition_key in self.partition_trees else None
        if key not in self._cuts:
            tree = self._tree_of(partition_key)
            threshold, few = tree.threshold.copy(), []
            for number, boundaries in enumerate(self.boundaries):
                nodes = tree.column == number
                merged, threshold[nodes] = boundaries.merged(tree.threshold[nodes])
                few.append(merged)
            self._cuts[key] = replace(tree, threshold=threshold), tuple(few)
        return self._cuts[key]

    @cached_property
    def _cuts(self) -> dict[PartitionKey | None, tuple[Tree, tuple[Boundaries, ...]]]:
        return {}


def _rows_by_key(keys: Sequence[PartitionKey]) -> dict[PartitionKey, npt.NDArray[np.intp]]:
    numbers: dict[PartitionKey, int] = {}
    number_of_row = np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.intp)
    order = np.argsort(number_of_row, kind="stable")
    ends = np.cumsum(np.bincount(number_of_row, minlength=len(numbers)))
    return dict(zip(numbers, np.split(order, ends[:-1]), strict=True)) if numbers else {}


def _model(table: pa.Table, facts: dict[str, Any]) -> CurveModel:
    columns = tuple(tuple(str(name) for name in path) for path in facts["columns"])
    types = tuple(table.schema.field(f"type_{number}").type.value_type for number in range(len(columns)))
    _check(bool(columns) and facts["curve"] in _CURVES and all(map(is_orderable, types)), "keys or curve")
    partitions = [tuple(key) for key in facts["partitions"]]
    trees = _trees(table, len(columns))
    _check(len(trees) == len(partitions) + 1, "partitions")
    described = zip(facts["nullable"], facts["widths"], strict=True)
    boundaries = tuple(
        Boundaries(_boundary_values(table, number, int(width)), bool(nullable))
        for number, (nullable, width) in enumerate(described)
    )
    _check(len(boundaries) == len(columns), "boundaries")
    sizing = Sizing(**{name: int(value) for name, value in facts["sizing"].items()})
    _check(sizing.rows_per_file > 0 and sizing.row_group_rows > 0, "sizing")
    return CurveModel(
        columns=columns,
        types=types,
        curve=facts["curve"],
        boundaries=boundaries,
        sizing=sizing,
        tree=trees[0],
        partition_trees=dict(zip(partitions, trees[1:], strict=True)),
        asked=_asked(table, types) if "asked_weights" in table.schema.names else None,
    )


def _asked(table: pa.Table, types: Sequence[pa.DataType]) -> QueryBoxes:
    weights = _list(table, "asked_weights", np.float64)
    _check(0 < len(weights) <= MOST_BOXES and bool(np.all(np.isfinite(weights) & (weights > 0))), "queries")
    low, high = (
        tuple(table.column(f"asked_{end}_{number}").chunk(0).flatten() for number in range(len(types)))
        for end in ("low", "high")
    )
    fits = [
        len(each) == len(weights) and each.type == kind
        for ends in (low, high)
        for each, kind in zip(ends, types, strict=True)
    ]
    _check(all(fits), "queries")
    return QueryBoxes(low, high, weights)


def _trees(table: pa.Table, keys: int) -> list[Tree]:
    node_ends = np.cumsum(_list(table, "nodes", np.int64))
    leaf_ends = np.cumsum(_list(table, "leaves", np.int64))
    _check(len(node_ends) == len(leaf_ends) > 0, "trees")
    types = {"column": np.int16, "leaf_size": np.float64}
    pieces = {}
    for names, ends in ((_NODE_ARRAYS, node_ends), (_LEAF_ARRAYS, leaf_ends)):
        for name in names:
            values = _list(table, name, types.get(name, np.int32))
            _check(len(values) == ends[-1], name)
            pieces[name] = np.split(values, ends[:-1])
    trees = [Tree(*arrays) for arrays in zip(*(pieces[name] for name in (*_NODE_ARRAYS, *_LEAF_ARRAYS)), strict=True)]
    for tree in trees:
        _check_tree(tree, keys)
    return trees


def _check_tree(tree: Tree, keys: int) -> None:
    """Checks that every path ends in a leaf that exists and compares only keys that exist."""
    nodes, leaves = len(tree.column), tree.leaf_count
    children = np.concatenate([tree.left, tree.right])
    parents = np.tile(np.arange(nodes), 2)
    inner = children >= 0
    _check(leaves == nodes + 1, "leaves")
    _check(bool(np.all((tree.column >= 0) & (tree.column < keys) & (tree.threshold >= 0))), "nodes")
    _check(bool(np.all(children[inner] > parents[inner]) and np.all(children < nodes)), "children")
    _check(bool(np.array_equal(np.sort(-1 - children[~inner]), np.arange(leaves if nodes else 0))), "leaves")
    steps = np.diff(tree.file_of_leaf)
    _check(int(tree.file_of_leaf[0]) == 0 and bool(np.all((steps == 0) | (steps == 1))), "files")
    _check(bool(np.all(np.isfinite(tree.leaf_size) & (tree.leaf_size >= 0))), "sizes")


def _boundary_values(table: pa.Table, number: int, width: int) -> npt.NDArray[Any]:
    values = table.column(f"boundaries_{number}").chunk(0).flatten()
    if pa.types.is_fixed_size_binary(values.type):
        _check(values.type.byte_width == width, "boundaries")
        padded = (
            np.frombuffer(values.buffers()[1], np.uint8)[: len(values) * width]
            if len(values)
            else np.zeros(0, np.uint8)
        )
        found: npt.NDArray[Any] = padded.view(f"S{width}")
    else:
        found = _list(table, f"boundaries_{number}", np.int64)
    _check(bool(np.all(found[1:] > found[:-1])), "boundaries")
    return found


def _one_list(values: npt.NDArray[Any]) -> pa.Array:
    if values.dtype.kind == "S":
        width = values.dtype.itemsize
        buffer = pa.py_buffer(np.ascontiguousarray(values).tobytes())
        items = pa.Array.from_buffers(pa.binary(width), len(values), [None, buffer])
    else:
        items = pa.array(values)
    return _as_list(items)


def _as_list(items: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array([0, len(items)], pa.int32()), items)


def _list(table: pa.Table, name: str, dtype: Any) -> npt.NDArray[Any]:
    values = table.column(name).chunk(0).flatten()
    _check(not values.null_count, name)
    found: npt.NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return found.astype(dtype, casting="same_kind")


def _check(holds: bool, what: Sequence[str] | str) -> None:
    if not holds:
        raise ValueError(f"its {what} do not fit together")
