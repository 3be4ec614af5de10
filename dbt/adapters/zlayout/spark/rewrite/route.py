"""The map side of a rewrite: assigns rows to leaves and sends them as compressed Arrow blobs, never as JVM rows.

Each blob carries an int, its slot. Spark's hash partitioning sends it to the reduce task that writes the blob's file.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.curve.model import CurveModel, PartitionKey
from dbt.adapters.zlayout.predicate.expr import ColumnPath
from dbt.adapters.zlayout.spark.files.arrow_source import ArrowSource
from dbt.adapters.zlayout.spark.schema.arrow_columns import keep_freed_memory, key_table, table_buffer, typed
from dbt.adapters.zlayout.store import open_store

ROUTED_SCHEMA = "slot int, part string, file int, share int, leaf int, blob binary"
_FLUSH_BYTES = 96 << 20
_BLOB_BYTES = 4 << 20
_MOST_PIECES = 1 << 10
_SEED = 42


@dataclass(frozen=True)
class RouteTask:
    """Task spec: everything that a map task needs.

    Attributes:
        schema: Arrow types of the rows. Partition columns come last, as text.
        keys: Clustering keys.
        model: The curve with its cuts, as ``CurveModel.to_bytes`` returns it.
        slot_of: The slot of ``(partition text, file, share)``. A hash spreads triples without one over ``slots``.
        slots: A slot for each reduce task.
        shares: The number of files that share the rows of ``(partition text, file)``, if one value has too many rows
            for one file.
    """

    schema: pa.Schema
    keys: tuple[ColumnPath, ...]
    partition_by: tuple[str, ...]
    model: bytes
    slot_of: Mapping[tuple[str, int, int], int]
    slots: tuple[int, ...]
    shares: Mapping[tuple[str, int], int]

    def batches(self, incoming: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Routes rows that Spark hands over."""
        yield from self._route(typed(batch, self.schema) for batch in incoming)

    def staged(
        self, root_uri: str, paths: tuple[str, ...], incoming: Iterable[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """Routes the rows of staged files. The incoming rows are positions in ``paths``."""
        wanted = (paths[position] for batch in incoming for position in batch.column(0).to_pylist())
        yield from self._route(staged_batches(root_uri, wanted))

    def read(self, source: ArrowSource, incoming: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Routes the rows of files. The incoming rows are numbers of the source's units."""
        keep_freed_memory()
        numbers = (number for batch in incoming for number in batch.column(0).to_pylist())
        model = CurveModel.from_bytes(self.model)
        for rows in _in_large_tables(source.tables(numbers)):
            yield from self._emit(model, source.partition, rows.unify_dictionaries())

    def _route(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        keep_freed_memory()
        model = CurveModel.from_bytes(self.model)
        for rows in _in_large_tables(pa.Table.from_batches([batch], self.schema) for batch in batches):
            for key, part in by_partition(rows, self.partition_by):
                yield from self._emit(model, key, part)

    def _emit(self, model: CurveModel, key: PartitionKey, part: pa.Table) -> Iterator[pa.RecordBatch]:
        placement = model.place(key_table(part, self.keys).columns, key)
        order = np.argsort(_narrow(placement.leaf), kind="stable")
        leaves = placement.leaf[order]
        starts = np.flatnonzero(np.r_[True, leaves[1:] != leaves[:-1]])
        ends = np.r_[starts[1:], len(leaves)]
        [sorted_rows] = part.combine_chunks().take(pa.array(order)).combine_chunks().to_batches()
        files = placement.file[order]
        text = json.dumps(key)
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            run = sorted_rows.slice(start, end - start)
            yield from self._blobs(run, text, int(files[start]), int(leaves[start]))

    def _blobs(self, run: pa.RecordBatch, text: str, file: int, leaf: int) -> Iterator[pa.RecordBatch]:
        shares = self.shares.get((text, file), 1)
        pieces = _pieces(run)
        if run.num_rows >= shares:
            pieces = max(pieces, shares)
        rows = -(-run.num_rows // pieces)
        first = int(np.random.default_rng().integers(shares))
        for number, start in enumerate(range(0, run.num_rows, rows)):
            share = (first + number) % shares
            slot = self.slot_of.get((text, file, share))
            if slot is None:
                slot = self.slots[zlib.crc32(f"{text}/{file}/{share}".encode()) % len(self.slots)]
            yield _routed_row(slot, text, file, share, leaf, run.slice(start, rows))


@dataclass(frozen=True)
class InOrder:
    """Task spec of a map task for a table without keys. Its rows keep the order of the query.

    Attributes:
        schema: Arrow types of the rows. Partition columns come last, as text.
        root_uri: URI of the table's folder.
        paths: Paths of the staged files.
        starts: The share of all rows that come before each staged file.
        files: Number of files of each partition, by its text.
        slot_of: As in `RouteTask`.
    """

    schema: pa.Schema
    root_uri: str
    paths: tuple[str, ...]
    starts: tuple[float, ...]
    partition_by: tuple[str, ...]
    files: Mapping[str, int]
    slot_of: Mapping[tuple[str, int, int], int]

    def __call__(self, incoming: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Routes the rows of staged files. The incoming rows are positions in ``paths``."""
        for position in (each for batch in incoming for each in batch.column(0).to_pylist()):
            rows = pa.Table.from_batches(staged_batches(self.root_uri, [self.paths[position]]), self.schema)
            for key, part in by_partition(rows, self.partition_by):
                text = json.dumps(key)
                file = int(self.starts[position] * self.files[text])
                [run] = part.combine_chunks().to_batches()
                step = -(-run.num_rows // _pieces(run))
                for number, start in enumerate(range(0, run.num_rows, step)):
                    leaf = position * _MOST_PIECES + number
                    yield _routed_row(self.slot_of[text, file, 0], text, file, 0, leaf, run.slice(start, step))


def _pieces(run: pa.RecordBatch) -> int:
    """Returns the number of blobs in which to send some rows."""
    return min(_MOST_PIECES, max(1, -(-int(run.nbytes) // _BLOB_BYTES)))


def _routed_row(slot: int, text: str, file: int, share: int, leaf: int, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Returns one row of ``ROUTED_SCHEMA``."""
    numbers = {"slot": slot, "part": text, "file": file, "share": share, "leaf": leaf}
    columns = [pa.array([value], pa.string() if name == "part" else pa.int32()) for name, value in numbers.items()]
    return pa.RecordBatch.from_arrays([*columns, _one_binary(table_buffer(rows))], names=[*numbers, "blob"])


def _in_large_tables(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yields the same rows in fewer, larger tables that fit into a worker's memory."""
    held: list[pa.Table] = []
    held_bytes = 0
    for table in tables:
        if not table.num_rows:
            continue
        held.append(table)
        held_bytes += table.nbytes
        if held_bytes >= _FLUSH_BYTES:
            yield pa.concat_tables(held)
            held, held_bytes = [], 0
    if held:
        yield pa.concat_tables(held)


def _narrow(leaves: npt.NDArray[np.int32]) -> npt.NDArray[Any]:
    """Returns the same numbers in two bytes each if they fit, because numpy sorts those by radix."""
    return leaves.astype(np.uint16) if len(leaves) and int(leaves.max()) <= np.iinfo(np.uint16).max else leaves


def _one_binary(content: pa.Buffer) -> pa.Array:
    """Returns an array with one value, without copying it."""
    ends = pa.array([0, content.size], pa.int32()).buffers()[1]
    return pa.Array.from_buffers(pa.binary(), 1, [None, ends, content])


def by_partition(rows: pa.Table, partition_by: tuple[str, ...]) -> Iterator[tuple[PartitionKey, pa.Table]]:
    """Yields each partition's key, as text values, and its rows without the partition columns.

    An empty text becomes null, as Spark writes it.
    """
    if not partition_by:
        yield (), rows
        return
    columns = [_null_if_empty(rows.column(name)) for name in partition_by]
    data = rows.drop_columns(list(partition_by))
    codes = np.zeros(rows.num_rows, dtype=np.int64)
    dictionaries = []
    for column in columns:
        encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
        encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
        values = encoded.dictionary.to_pylist()
        _, codes = np.unique(codes * max(1, len(values)) + encoded.indices.to_numpy(), return_inverse=True)
        dictionaries.append((values, encoded.indices.to_numpy()))
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.r_[True, codes[order][1:] != codes[order][:-1]])
    ends = np.r_[starts[1:], len(order)]
    grouped = data.take(pa.array(order)) if len(starts) > 1 else data
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        row = int(order[start])
        key = tuple(values[indices[row]] for values, indices in dictionaries)
        yield key, grouped.slice(start, end - start)


def _null_if_empty(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)


def staged_batches(root_uri: str, paths: Iterable[str]) -> Iterator[pa.RecordBatch]:
    """Yields the rows of staged files, batch by batch."""
    store = open_store(root_uri)
    for path in paths:
        local = store.local_path(path)
        source = pa.memory_map(str(local)) if local is not None else pa.BufferReader(store.read(path))
        with source, pa.ipc.open_file(source) as reader:
            for number in range(reader.num_record_batches):
                yield reader.get_batch(number)


def slot_keys(partitions: int) -> np.ndarray:
    """Returns, for each partition number, an int that Spark's hash partitioning over ``partitions`` sends there.

    Source: ``HashPartitioning`` is ``pmod(murmur3(key, seed 42), partitions)`` (``Murmur3_x86_32.hashInt``). Spark 4.1
    has ``repartitionById`` for this. Earlier versions do not.

    Returns:
        int32[partitions]. ``keys[p]`` goes to partition ``p``.
    """
    keys = np.full(partitions, -1, dtype=np.int64)
    start, step = 0, max(64, 8 * partitions)
    while (keys < 0).any():
        candidates = np.arange(start, start + step, dtype=np.int32)
        landed = np.mod(murmur3_of_ints(candidates).astype(np.int64), partitions)
        first, where = np.unique(landed, return_index=True)
        open_ = keys[first] < 0
        keys[first[open_]] = candidates[where[open_]]
        start += step
    return keys.astype(np.int32)


def murmur3_of_ints(values: np.ndarray) -> np.ndarray:
    """Returns Spark's hash of ints.

    Args:
        values: int32[n].

    Returns:
        int32[n].
    """
    with np.errstate(over="ignore"):
        mixed = values.astype(np.int32).view(np.uint32) * np.uint32(0xCC9E2D51)
        mixed = _rotated(mixed, 15) * np.uint32(0x1B873593)
        state = _rotated(np.uint32(_SEED) ^ mixed, 13) * np.uint32(5) + np.uint32(0xE6546B64)
        state ^= np.uint32(4)
        state = (state ^ (state >> np.uint32(16))) * np.uint32(0x85EBCA6B)
        state = (state ^ (state >> np.uint32(13))) * np.uint32(0xC2B2AE35)
        return (state ^ (state >> np.uint32(16))).view(np.int32)


def _rotated(values: np.ndarray, bits: int) -> np.ndarray:
    return (values << np.uint32(bits)) | (values >> np.uint32(32 - bits))
