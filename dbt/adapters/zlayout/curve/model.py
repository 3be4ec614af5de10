"""The curve of one table: boundaries, bits and cuts, made once from a sample and stored with the commit."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dbt.adapters.zlayout.curve import hilbert, zorder
from dbt.adapters.zlayout.curve.cuts import Tree, build_tree
from dbt.adapters.zlayout.curve.keys import comparable
from dbt.adapters.zlayout.curve.quantiles import BUCKETS, Boundaries, bits_for
from dbt.adapters.zlayout.errors import CorruptError
from dbt.adapters.zlayout.predicate.expr import ColumnPath

PartitionKey = tuple["str | None", ...]
Keys = Sequence[pa.Array | pa.ChunkedArray]

_FORMAT = 1
_FEWEST_GROUP_ROWS, _MOST_GROUP_ROWS = 1 << 15, 1 << 20
_GROUPS_OF_A_FILE = 8


@dataclass(frozen=True)
class Placement:
    """Where rows go: ``file`` int32[n] and ``leaf`` int32[n] within their partition."""

    file: npt.NDArray[np.int32]
    leaf: npt.NDArray[np.int32]


@dataclass(frozen=True)
class Sizing:
    """What the cuts were made for.

    Attributes:
        rows_per_file: Rows of a file of the wanted size.
        row_group_rows: Rows of a row group.
        total_rows: Rows of the table then.
        sampled_rows: Rows of the sample.
    """

    rows_per_file: int
    row_group_rows: int
    total_rows: int
    sampled_rows: int


@dataclass(frozen=True)
class CurveModel:
    """How keys become places.

    Attributes:
        columns: The keys.
        types: Their Arrow types, as text.
        curve: 'zorder', 'hilbert' or 'linear'.
        boundaries: Of each key.
        sizing: What the cuts were made for.
        tree: The cuts of a table without partitions, or of a partition that has no tree of its own.
        partition_trees: The cuts of partitions that were in the sample.
        shares: By partition and file, into how many files its rows are dealt, where one value is too heavy for one.
    """

    columns: tuple[ColumnPath, ...]
    types: tuple[str, ...]
    curve: str
    boundaries: tuple[Boundaries, ...]
    sizing: Sizing
    tree: Tree
    partition_trees: Mapping[PartitionKey, Tree]
    shares: Mapping[tuple[PartitionKey, int], int]

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
    ) -> CurveModel:
        """Makes a curve from a uniform sample.

        Args:
            sample: One column a key, in their order.
            columns: The keys' paths.
            curve: 'zorder', 'hilbert' or 'linear'.
            total_rows: Rows that the sample stands for.
            bytes_per_row: Compressed size of a row.
            target_file_bytes: Size of a file.
            row_group_rows: Rows of a row group; None for about eight groups a file.
            partition_keys: The partition of each sampled row; None for a table without partitions.
        """
        values = [comparable(sample.column(number)) for number in range(sample.num_columns)]
        boundaries = tuple(Boundaries.of_sample(each, BUCKETS) for each in values)
        ranks = [each.ranks(value) for each, value in zip(boundaries, values, strict=True)]
        rows_per_file = max(1, round(target_file_bytes / max(bytes_per_row, 1e-9)))
        group_rows = row_group_rows or min(
            _MOST_GROUP_ROWS, max(_FEWEST_GROUP_ROWS, -(-rows_per_file // _GROUPS_OF_A_FILE))
        )
        sizing = Sizing(rows_per_file, group_rows, total_rows, sample.num_rows)
        cut = _Cutting(sizing, curve == "linear", total_rows / max(1, sample.num_rows))
        if partition_keys is None:
            tree, shares = cut.tree(ranks)
            trees: dict[PartitionKey, Tree] = {}
            all_shares: dict[tuple[PartitionKey, int], int] = {((), file): count for file, count in shares.items()}
        else:
            tree = build_tree(ranks, 1, _GROUPS_OF_A_FILE, linear=curve == "linear")
            trees, all_shares = {}, {}
            for key, rows in _rows_by_key(partition_keys).items():
                trees[key], shares = cut.tree([each[rows] for each in ranks])
                all_shares |= {(key, file): count for file, count in shares.items()}
        types = tuple(str(sample.column(number).type) for number in range(sample.num_columns))
        return cls(tuple(columns), types, curve, boundaries, sizing, tree, trees, all_shares)

    @property
    def row_group_rows(self) -> int:
        """Rows of a row group."""
        return self.sizing.row_group_rows

    @cached_property
    def bits(self) -> tuple[int, ...]:
        """Bits of each key on the curve; the widest are shortened until all fit."""
        bits = [bits_for(len(each.values) + 1) for each in self.boundaries]
        while sum(bits) > zorder.MOST_BITS:
            bits[bits.index(max(bits))] -= 1
        return tuple(bits)

    def place(self, keys: Keys, partition_key: PartitionKey = ()) -> Placement:
        """File and leaf of each row of one partition.

        Args:
            keys: One array[n] a key.
            partition_key: Raw values of the partition columns.
        """
        tree = self.partition_trees.get(partition_key, self.tree)
        leaf = tree.leaf_of(self._ranks(keys))
        return Placement(tree.file_of_leaf[leaf], leaf)

    def curve_values(self, keys: Keys) -> npt.NDArray[np.uint64]:
        """Position of each row on the curve.

        Returns:
            uint64[n].
        """
        codes = []
        for ranks, boundaries, bits in zip(self._ranks(keys), self.boundaries, self.bits, strict=True):
            full = bits_for(len(boundaries.values) + 1)
            codes.append(ranks.astype(np.uint64) >> np.uint64(full - bits))
        if self.curve == "linear":
            return zorder.concatenate(codes, self.bits)
        if self.curve == "zorder":
            return zorder.interleave(codes, self.bits)
        side = min(max(self.bits, default=0), zorder.MOST_BITS // max(1, len(codes)))
        # A key of few values spans the whole side, as one of many does.
        scaled = [
            code << np.uint64(side - bits) if bits <= side else code >> np.uint64(bits - side)
            for code, bits in zip(codes, self.bits, strict=True)
        ]
        return hilbert.encode(scaled, side)

    def files_of(self, partition_key: PartitionKey) -> int:
        """Files that the cuts give a partition."""
        return self.partition_trees.get(partition_key, self.tree).file_count

    def fits(self, columns: Sequence[ColumnPath], types: Sequence[pa.DataType], curve: str) -> bool:
        """Whether the curve is one for these keys, so that its cuts can serve again."""
        return (self.columns, self.types, self.curve) == (tuple(columns), tuple(str(each) for each in types), curve)

    def to_bytes(self) -> bytes:
        """The stored form: an Arrow file of arrays, with the rest as JSON beside them."""
        arrays: dict[str, Any] = {}
        for number, each in enumerate(self.boundaries):
            arrays[f"boundaries{number}"] = each.values
        keys = list(self.partition_trees)
        for number, tree in enumerate([self.tree, *self.partition_trees.values()]):
            arrays |= {f"{name}{number}": getattr(tree, name) for name in _TREE_ARRAYS}
        facts = {
            "format": _FORMAT,
            "columns": self.columns,
            "types": self.types,
            "curve": self.curve,
            "sizing": vars(self.sizing),
            "partitions": keys,
            "shares": [[key, file, count] for (key, file), count in self.shares.items()],
        }
        names, values = list(arrays), [_to_arrow(each) for each in arrays.values()]
        table = pa.table({"name": names, "kind": [str(each.dtype) for each in arrays.values()], "data": values})
        sink = io.BytesIO()
        schema = table.schema.with_metadata({b"zlayout.curve": json.dumps(facts).encode()})
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.ipc.new_file(sink, schema, options=options) as writer:
            writer.write_table(table.cast(schema))
        return sink.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes) -> CurveModel:
        """The model of its stored form.

        Raises:
            CorruptError: The content is no such form.
        """
        try:
            table = pa.ipc.open_file(pa.BufferReader(content)).read_all()
            facts = json.loads(table.schema.metadata[b"zlayout.curve"])
            if facts["format"] != _FORMAT:
                raise CorruptError(f"the curve has format {facts['format']}; this release reads {_FORMAT}: upgrade")
            rows = table.to_pylist()
            arrays = {row["name"]: np.frombuffer(row["data"], dtype=row["kind"]) for row in rows}
            keys = [tuple(key) for key in facts["partitions"]]
            trees = [Tree(*(arrays[f"{name}{i}"] for name in _TREE_ARRAYS)) for i in range(len(keys) + 1)]
            return cls(
                tuple(tuple(path) for path in facts["columns"]),
                tuple(facts["types"]),
                facts["curve"],
                tuple(Boundaries(arrays[f"boundaries{i}"]) for i in range(len(facts["columns"]))),
                Sizing(**facts["sizing"]),
                trees[0],
                dict(zip(keys, trees[1:], strict=True)),
                {(tuple(key), file): count for key, file, count in facts["shares"]},
            )
        except (pa.ArrowException, KeyError, TypeError, ValueError, OSError) as error:
            raise CorruptError(f"the stored curve cannot be understood: {error}") from error

    def _ranks(self, keys: Keys) -> list[npt.NDArray[np.int32]]:
        return [each.ranks(comparable(key)) for each, key in zip(self.boundaries, keys, strict=True)]


_TREE_ARRAYS = ("column", "threshold", "left", "file_of_leaf")


@dataclass(frozen=True)
class _Cutting:
    sizing: Sizing
    linear: bool
    rows_of_a_sampled_row: float

    def tree(self, ranks: Sequence[npt.NDArray[np.int32]]) -> tuple[Tree, dict[int, int]]:
        """The cuts of one partition, and the files whose rows are too many for one."""
        rows = len(ranks[0]) * self.rows_of_a_sampled_row
        files = max(1, round(rows / self.sizing.rows_per_file))
        groups = max(1, round(min(rows, self.sizing.rows_per_file) / self.sizing.row_group_rows))
        tree = build_tree(ranks, files, groups, linear=self.linear)
        counts = np.bincount(tree.file_of_leaf[tree.leaf_of(ranks)], minlength=tree.file_count)
        wanted = np.round(counts * self.rows_of_a_sampled_row / self.sizing.rows_per_file).astype(int)
        return tree, {file: int(count) for file, count in enumerate(wanted) if count > 1}


def _rows_by_key(keys: Sequence[PartitionKey]) -> dict[PartitionKey, npt.NDArray[np.int64]]:
    rows: dict[PartitionKey, list[int]] = {}
    for row, key in enumerate(keys):
        rows.setdefault(key, []).append(row)
    return {key: np.array(each) for key, each in rows.items()}


def _to_arrow(values: npt.NDArray[Any]) -> bytes:
    return np.ascontiguousarray(values).tobytes()
