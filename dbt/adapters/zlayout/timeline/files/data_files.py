"""The data files of a snapshot, as one Arrow table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, overload

import pyarrow as pa
import pyarrow.compute as pc

# Columns that say whether a file is the one that the index describes.
IDENTITY = ("row_count", "size_bytes", "modified_ms")


@dataclass(frozen=True)
class DataFile:
    """One Parquet file of a table.

    Attributes:
        path: Relative to the table's root, '/'-separated, the real name (nothing is URI-escaped).
        partition: (column, raw string value or None for null) in the order of partition_by.
        row_count: Rows of the file.
        size_bytes: Length of the file.
        modified_ms: Time of the last modification, milliseconds since the epoch.
        group: The file group, which stays the same when the file is rewritten.
    """

    path: str
    partition: tuple[tuple[str, str | None], ...]
    row_count: int
    size_bytes: int
    modified_ms: int
    group: str


def files_schema(partition_by: Sequence[str]) -> pa.Schema:
    """Returns the schema of `DataFiles.arrow`.

    Args:
        partition_by: Names of the partition columns, which are the string fields of the struct column `partition`.
            Every table has that column; without partitions it has no fields.
    """
    return pa.schema(
        [
            pa.field("path", pa.string(), nullable=False),
            pa.field("partition", pa.struct([pa.field(name, pa.string()) for name in partition_by]), nullable=False),
            pa.field("row_count", pa.int64(), nullable=False),
            pa.field("size_bytes", pa.int64(), nullable=False),
            pa.field("modified_ms", pa.int64(), nullable=False),
            pa.field("group", pa.string(), nullable=False),
        ]
    )


class DataFiles(Sequence[DataFile]):
    """Data files as vectors; `DataFile` objects are only created on access.

    Args:
        arrow: A table with the schema `files_schema(partition_by)`.
    """

    __slots__ = ("arrow",)

    def __init__(self, arrow: pa.Table) -> None:
        self.arrow = arrow

    @classmethod
    def empty(cls, partition_by: Sequence[str] = ()) -> DataFiles:
        """Returns an empty list of files for a table with these partition columns."""
        return cls(files_schema(partition_by).empty_table())

    @classmethod
    def of(cls, files: Iterable[DataFile], partition_by: Sequence[str] = ()) -> DataFiles:
        """Builds from file objects; their partition values must be those of `partition_by`, in its order."""
        rows = list(files)
        return cls.from_columns(
            partition_by,
            path=[file.path for file in rows],
            partition_values=[[file.partition[i][1] for file in rows] for i in range(len(partition_by))],
            row_count=[file.row_count for file in rows],
            size_bytes=[file.size_bytes for file in rows],
            modified_ms=[file.modified_ms for file in rows],
            group=[file.group for file in rows],
        )

    @classmethod
    def from_columns(
        cls,
        partition_by: Sequence[str],
        *,
        path: Sequence[str] | pa.Array,
        partition_values: Sequence[Sequence[str | None] | pa.Array],
        row_count: Sequence[int] | pa.Array,
        size_bytes: Sequence[int] | pa.Array,
        modified_ms: Sequence[int] | pa.Array,
        group: Sequence[str] | pa.Array,
    ) -> DataFiles:
        """Builds from whole columns, each of length n_files.

        ``partition_values`` has one column of strings (null = null) for each name in ``partition_by``.
        """
        schema = files_schema(partition_by)
        if partition_by:
            values = [_array(column, pa.string()) for column in partition_values]
            partition = pa.StructArray.from_arrays(values, fields=list(schema.field("partition").type))
        else:
            partition = pa.array([{}] * len(path), schema.field("partition").type)
        columns = [
            _array(path, pa.string()),
            partition,
            _array(row_count, pa.int64()),
            _array(size_bytes, pa.int64()),
            _array(modified_ms, pa.int64()),
            _array(group, pa.string()),
        ]
        return cls(pa.Table.from_arrays(columns, schema=schema))

    def __len__(self) -> int:
        return int(self.arrow.num_rows)

    def __iter__(self) -> Iterator[DataFile]:
        for row in self.arrow.to_pylist():
            yield _data_file(row)

    @overload
    def __getitem__(self, key: int) -> DataFile: ...
    @overload
    def __getitem__(self, key: slice) -> DataFiles: ...
    @overload
    def __getitem__(self, key: str) -> pa.ChunkedArray: ...
    def __getitem__(self, key: int | slice | str) -> DataFile | DataFiles | pa.ChunkedArray:
        """Returns a file by position, several files by a slice, or a column by name."""
        if isinstance(key, str):
            return self.arrow[key]
        if isinstance(key, slice):
            return self.take(pa.array(range(*key.indices(len(self))), pa.int64()))
        position = key + len(self) if key < 0 else key
        if not 0 <= position < len(self):
            raise IndexError(f"file {key} of {len(self)}")
        return _data_file(self.arrow.slice(position, 1).to_pylist()[0])

    def __eq__(self, other: object) -> bool:
        """Returns whether both hold the same files in the same order."""
        if not isinstance(other, DataFiles):
            return NotImplemented
        return bool(self.arrow.schema.equals(other.arrow.schema) and self.arrow.equals(other.arrow))

    __hash__ = None  # type: ignore[assignment]  # compared by content, which is expensive to hash

    def __repr__(self) -> str:
        return f"DataFiles({len(self)} files, {self.total_rows} rows, {self.total_bytes} bytes)"

    @property
    def partition_by(self) -> tuple[str, ...]:
        """Names of the partition columns."""
        return tuple(field.name for field in self.arrow.schema.field("partition").type)

    @property
    def total_rows(self) -> int:
        """Rows of all files."""
        return int(pc.sum(self.arrow["row_count"], min_count=0).as_py())

    @property
    def total_bytes(self) -> int:
        """Bytes of all files."""
        return int(pc.sum(self.arrow["size_bytes"], min_count=0).as_py())

    def column(self, name: str) -> pa.ChunkedArray:
        """Returns a column of `files_schema`."""
        return self.arrow.column(name)

    def to_pylist(self) -> list[dict[str, Any]]:
        """Returns one dictionary per file."""
        rows: list[dict[str, Any]] = self.arrow.to_pylist()
        return rows

    def partition_values(self, column: str) -> pa.Array:
        """Returns the raw values of a partition column.

        Returns:
            Strings, length n_files, null = null.

        Raises:
            KeyError: The table is not partitioned by this column.
        """
        if column not in self.partition_by:
            raise KeyError(f"{column!r} is not a partition column of {list(self.partition_by)}")
        values = pc.struct_field(self.arrow["partition"], [self.partition_by.index(column)])
        return values.combine_chunks() if values.num_chunks != 1 else values.chunk(0)

    def take(self, positions: pa.Array) -> DataFiles:
        """Returns the files at these positions (int64), in that order."""
        return DataFiles(self.arrow.take(positions))

    def filter(self, keep: pa.Array | pa.ChunkedArray) -> DataFiles:
        """Returns the files where a boolean vector of length n_files is true."""
        return DataFiles(self.arrow.filter(keep))

    def minus(self, paths: Iterable[str] | pa.Array | pa.ChunkedArray) -> DataFiles:
        """Returns the files whose path is not one of these."""
        gone = _array(paths if isinstance(paths, (pa.Array, pa.ChunkedArray)) else list(paths), pa.string())
        if not len(gone):
            return self
        return self.filter(pc.invert(pc.is_in(self.arrow["path"], value_set=gone)))

    def same_as(self, others: DataFiles, figures: Sequence[str] = ("size_bytes", "modified_ms")) -> pa.Array:
        """Returns for each file whether the other files hold it unchanged: the same path, and the same figures.

        Args:
            others: The files to compare with, by path.
            figures: The columns that must be equal.
        """

        def whole(files: DataFiles, name: str) -> pa.Array:
            return files.arrow[name].combine_chunks()

        position = pc.index_in(whole(self, "path"), value_set=whole(others, "path"))
        same = [pc.equal(whole(self, name), whole(others, name).take(position)) for name in figures]
        return pc.fill_null(reduce(pc.and_kleene, same), False)

    def plus(self, more: DataFiles) -> DataFiles:
        """Returns these files, then `more`.

        Raises:
            ValueError: The two are partitioned by different columns.
        """
        if self.partition_by != more.partition_by:
            raise ValueError(f"files partitioned by {self.partition_by} and by {more.partition_by} do not mix")
        return DataFiles(pa.concat_tables([self.arrow, more.arrow]).combine_chunks())


def _data_file(row: dict[str, Any]) -> DataFile:
    return DataFile(
        path=row["path"],
        partition=tuple(row["partition"].items()),
        row_count=row["row_count"],
        size_bytes=row["size_bytes"],
        modified_ms=row["modified_ms"],
        group=row["group"],
    )


def _array(values: Any, type_: pa.DataType) -> pa.Array:
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    return values.cast(type_) if isinstance(values, pa.Array) else pa.array(values, type_)
