"""Serialization of a curve model: one row of Arrow lists with the scalars as JSON metadata; reading validates all."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dbt.adapters.zlayout.curve.cuts import Tree
from dbt.adapters.zlayout.curve.keys import is_orderable
from dbt.adapters.zlayout.curve.quantiles import Boundaries
from dbt.adapters.zlayout.curve.sizing import Sizing
from dbt.adapters.zlayout.errors import CorruptError

FORMAT_VERSION = 2

_FACTS = b"zlayout.curve"
_CURVES = ("zorder", "hilbert", "linear")
_NODE_ARRAYS = ("column", "threshold", "left", "right")
_LEAF_ARRAYS = ("file_of_leaf", "leaf_size")
_UNREADABLE = "the stored curve cannot be understood ({}); rebuild the table (--full-refresh) to make a new one"


def encode(fields: Mapping[str, Any]) -> bytes:
    """Returns an Arrow file with the boundaries and an empty list of the type of each key, then all trees in sequence.

    Args:
        fields: The fields of the model, as `decode` returns them.
    """
    trees = [fields["tree"], *fields["partition_trees"].values()]
    columns: dict[str, pa.Array] = {}
    for number, (type_, boundaries) in enumerate(zip(fields["types"], fields["boundaries"], strict=True)):
        columns[f"type_{number}"] = pa.array([[]], pa.list_(type_))
        columns[f"boundaries_{number}"] = _one_list(boundaries.values)
    columns["nodes"] = _one_list(np.array([len(tree.column) for tree in trees], np.int32))
    columns["leaves"] = _one_list(np.array([tree.leaf_count for tree in trees], np.int32))
    for name in (*_NODE_ARRAYS, *_LEAF_ARRAYS):
        columns[name] = _one_list(np.concatenate([getattr(tree, name) for tree in trees]))
    facts = {
        "format_version": FORMAT_VERSION,
        "columns": fields["columns"],
        "curve": fields["curve"],
        "nullable": [each.nullable for each in fields["boundaries"]],
        "widths": [each.values.dtype.itemsize for each in fields["boundaries"]],
        "sizing": asdict(fields["sizing"]),
        "partitions": list(fields["partition_trees"]),
    }
    table = pa.table(columns).replace_schema_metadata({_FACTS: json.dumps(facts).encode()})
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    return sink.getvalue()


def decode(content: bytes) -> dict[str, Any]:
    """Returns the fields of the model.

    Raises:
        CorruptError: The content was not written by `encode`, or is from a later release.
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
        return _fields(table, facts)
    except (pa.ArrowException, KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise CorruptError(_UNREADABLE.format(error)) from error


def _fields(table: pa.Table, facts: dict[str, Any]) -> dict[str, Any]:
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
    return {
        "columns": columns,
        "types": types,
        "curve": facts["curve"],
        "boundaries": boundaries,
        "sizing": sizing,
        "tree": trees[0],
        "partition_trees": dict(zip(partitions, trees[1:], strict=True)),
    }


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
    return pa.ListArray.from_arrays(pa.array([0, len(items)], pa.int32()), items)


def _list(table: pa.Table, name: str, dtype: Any) -> npt.NDArray[Any]:
    values = table.column(name).chunk(0).flatten()
    _check(not values.null_count, name)
    found: npt.NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return found.astype(dtype, casting="same_kind")


def _check(holds: bool, what: Sequence[str] | str) -> None:
    if not holds:
        raise ValueError(f"its {what} do not fit together")
