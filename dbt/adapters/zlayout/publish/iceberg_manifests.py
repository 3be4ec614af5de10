"""Iceberg's manifests and manifest lists: written by pyiceberg, with the same bytes each time, and changed in place.

Each entry of a manifest is one Avro block. A manifest that loses files is written again from the blocks that it has,
without understanding more of them than whether the file is added, kept or deleted.
"""

from __future__ import annotations

import hashlib
import io
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from pyiceberg.conversions import from_bytes
from pyiceberg.manifest import (
    DataFile,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    PartitionFieldSummary,
    write_manifest,
    write_manifest_list,
)
from pyiceberg.manifest import read_manifest_list as parse_manifest_list
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.types import DecimalType, NestedField

from dbt.adapters.zlayout.errors import CorruptError

if TYPE_CHECKING:
    from pyiceberg.io import InputFile, OutputFile
    from pyiceberg.types import PrimitiveType

# Avro separates blocks by 16 bytes that should not occur in them. Random ones would differ between publishers.
_SYNC = b"zlayout.manifest"
_CODEC: Final = "deflate"
_EXISTING, _DELETED = 0, 2
# Of decimals.
DIGITS_OF_EIGHT_BYTES, WIDE_BYTES = 18, 16


@dataclass(frozen=True)
class Address:
    """Where a snapshot's new files go, and what it is called in them.

    Attributes:
        location: The table's folder, not escaped.
        stem: What the paths of its files begin with, relative to the folder.
        snapshot_id: The snapshot's id.
        sequence_number: Its sequence number.
    """

    location: str
    stem: str
    snapshot_id: int
    sequence_number: int

    def of(self, path: str) -> str:
        """Returns the location of a file of the table."""
        return f"{self.location}/{path}"

    def path_of(self, content: bytes, name: str) -> str:
        """Returns the path of a new file.

        Files with other content have other paths: a slow publisher must not overwrite what a faster one has published.
        """
        return f"{self.stem}-{hashlib.sha256(content).hexdigest()[:12]}-{name}.avro"


class _Buffer(io.BytesIO):
    """A file in memory, as pyiceberg opens and measures files."""

    def __init__(self, location: str, content: bytes = b"") -> None:
        super().__init__(content)
        self.location = location

    def create(self, overwrite: bool = False) -> _Buffer:  # noqa: ARG002 - pyiceberg passes it
        return self

    def open(self, seekable: bool = True) -> _Buffer:  # noqa: ARG002 - pyiceberg passes it
        return self

    def close(self) -> None:
        """Keeps the content."""

    def __len__(self) -> int:
        return self.getbuffer().nbytes


def new_manifest(
    entries: Sequence[DataFile], schema: Mapping[str, Any], spec: Mapping[str, Any], name: str, address: Address
) -> tuple[str, bytes, ManifestFile]:
    """Returns the path and content of a manifest of added files, and its entry in a manifest list.

    Args:
        entries: The files, at least one.
        schema: The table's schema, as its metadata has it.
        spec: The partition spec, as its metadata has it.
        name: The manifest's name among those of the snapshot.
        address: The snapshot.
    """
    buffer = _Buffer(name)
    specification = PartitionSpec.model_validate(spec)
    writer = write_manifest(
        2,
        specification,
        Schema.model_validate(schema),
        cast("OutputFile", buffer),
        address.snapshot_id,
        _CODEC,
    )
    with writer:
        for each in entries:
            writer.add_entry(
                ManifestEntry.from_args(
                    status=ManifestEntryStatus.ADDED, snapshot_id=address.snapshot_id, data_file=each
                )
            )
    content = _with_own_sync(buffer.getvalue(), writer._writer.sync_bytes)
    path = address.path_of(content, name)
    buffer.location = address.of(path)
    manifest = writer.to_manifest_file()
    kinds = [specified.field_type for specified in specification.partition_type(writer._schema).fields]
    for summary, kind in zip(manifest.partitions or [], kinds, strict=True):
        if isinstance(kind, DecimalType) and kind.precision > DIGITS_OF_EIGHT_BYTES:
            # In the order of `PARTITION_FIELD_SUMMARY_TYPE`.
            for position in (2, 3):
                summary._data[position] = _widened(summary._data[position])
    return path, content, manifest


def manifest_list(manifests: Sequence[ManifestFile], parent: int | None, address: Address) -> tuple[str, bytes]:
    """Returns the path and content of a manifest list."""
    buffer = _Buffer("list")
    writer = write_manifest_list(
        2,
        cast("OutputFile", buffer),
        address.snapshot_id,
        parent,
        address.sequence_number,
        _CODEC,
    )
    with writer:
        writer.add_manifests(list(manifests))
    content = _with_own_sync(buffer.getvalue(), writer._writer.sync_bytes)
    return address.path_of(content, "list"), content


def read_manifest_list(content: bytes, path: str) -> list[ManifestFile]:
    """Returns the manifests in a list that still have files.

    Raises:
        CorruptError: The content is not a manifest list.
    """
    try:
        found = list(parse_manifest_list(cast("InputFile", _Buffer(path, content))))
    except Exception as error:  # whatever pyiceberg raises for damaged bytes
        raise CorruptError(f"{path} is not a manifest list ({error})") from error
    return [each for each in found if live_files(each)]


def live_files(manifest: ManifestFile) -> int:
    """Returns the number of files in a manifest."""
    return (manifest.added_files_count or 0) + (manifest.existing_files_count or 0)


def entries_of(content: bytes, manifest: ManifestFile) -> Iterator[tuple[str, bytes, bytes | None]]:
    """Yields each file that a manifest has: its location, its entry as that of a file that is kept, and its block.

    The block is None if it holds another entry than that.

    Raises:
        CorruptError: The content is not a manifest of this package.
    """
    inherited = [manifest.added_snapshot_id, manifest.sequence_number, manifest.sequence_number]
    try:
        at = content.index(_SYNC) + len(_SYNC)
        while at < len(content):
            begin = at
            count, at = _number(content, at)
            length, at = _number(content, at)
            end = at + length
            if count != 1 or content[end : end + len(_SYNC)] != _SYNC:
                raise ValueError(f"a block at byte {at} that it did not write")
            entry = zlib.decompress(content[at:end], -15)
            status, start = _number(entry, 0)
            numbers, start = _snapshot_and_sequences(entry, start)
            if status != _DELETED:
                data_file = entry[start:]
                known = [own if own is not None else other for own, other in zip(numbers, inherited, strict=True)]
                block = content[begin : end + len(_SYNC)] if status == _EXISTING else None
                yield _location(data_file), _entry(_EXISTING, known) + data_file, block
            at = end + len(_SYNC)
    except (ValueError, IndexError, zlib.error) as error:
        raise CorruptError(f"{manifest.manifest_path} is not a manifest of this package ({error})") from error


def changed_manifest(
    parts: Sequence[tuple[bytes, ManifestFile]],
    gone: Mapping[str, int],
    name: str,
    spec_types: Sequence[str],
    address: Address,
) -> tuple[str, bytes, ManifestFile]:
    """Returns one manifest in place of others of the same partition spec: its path, its content, and its entry.

    Args:
        parts: The manifests that it replaces, with their content.
        gone: Locations of files that the snapshot deletes, and their rows. They may be in other manifests.
        name: The new manifest's name among those of the snapshot.
        spec_types: The Iceberg types of the partition columns.
        address: The snapshot.
    """
    blocks, kept, deleted, deleted_rows = [b""], 0, 0, 0
    expected = 0
    for content, manifest in parts:
        expected += live_files(manifest)
        for location, entry, block in entries_of(content, manifest):
            if location in gone:
                deleted += 1
                deleted_rows += gone[location]
                _, start = _number(entry, 0)
                (_, *sequences), start = _snapshot_and_sequences(entry, start)
                entry = _entry(_DELETED, [address.snapshot_id, *sequences]) + entry[start:]  # noqa: PLW2901
            else:
                kept += 1
                if block is not None:
                    blocks.append(block)
                    continue
            packed = zlib.compress(entry)[2:-4]
            blocks += [_varint(1), _varint(len(packed)), packed, _SYNC]
        blocks[0] = content[: content.index(_SYNC) + len(_SYNC)]
        if kept + deleted != expected:
            raise CorruptError(f"{manifest.manifest_path} has not as many files as its list says")
    content = b"".join(blocks)
    path = address.path_of(content, name)
    manifests = [manifest for _, manifest in parts]
    rows = sum((each.added_rows_count or 0) + (each.existing_rows_count or 0) for each in manifests)
    entry_in_list = ManifestFile.from_args(
        _table_format_version=2,
        manifest_path=address.of(path),
        manifest_length=len(content),
        partition_spec_id=manifests[-1].partition_spec_id,
        content=ManifestContent.DATA,
        sequence_number=address.sequence_number,
        min_sequence_number=min(each.min_sequence_number for each in manifests),
        added_snapshot_id=address.snapshot_id,
        added_files_count=0,
        existing_files_count=kept,
        deleted_files_count=deleted,
        added_rows_count=0,
        existing_rows_count=rows - deleted_rows,
        deleted_rows_count=deleted_rows,
        partitions=_combined_summaries([each.partitions or [] for each in manifests], spec_types),
    )
    return path, content, entry_in_list


def _combined_summaries(
    summaries: Sequence[Sequence[PartitionFieldSummary]], types: Sequence[str]
) -> list[PartitionFieldSummary]:
    """Returns what is known about the partitions of several manifests together."""
    united = []
    for number, kind in enumerate(types):
        parts = [each[number] for each in summaries]
        parsed = cast("PrimitiveType", NestedField(1, "x", kind).field_type)
        lows = [each.lower_bound for each in parts if each.lower_bound is not None]
        highs = [each.upper_bound for each in parts if each.upper_bound is not None]
        united.append(
            PartitionFieldSummary.from_args(
                contains_null=any(each.contains_null for each in parts),
                contains_nan=any(each.contains_nan for each in parts),
                lower_bound=min(lows, key=lambda each: from_bytes(parsed, each), default=None),
                upper_bound=max(highs, key=lambda each: from_bytes(parsed, each), default=None),
            )
        )
    return united


def _widened(bound: bytes | None) -> bytes | None:
    """Returns the bound of a decimal in 16 bytes; DuckDB 1.4 reads decimals of more than 18 digits from no fewer."""
    if bound is None:
        return None
    return int.from_bytes(bound, "big", signed=True).to_bytes(WIDE_BYTES, "big", signed=True)


def _with_own_sync(content: bytes, sync: bytes) -> bytes:
    return content.replace(sync, _SYNC)


def _number(content: bytes, at: int) -> tuple[int, int]:
    """Returns the integer at a position, and the position after it. Avro's integers have the lowest bits first."""
    value = shift = 0
    while True:
        byte = content[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
        shift += 7


def _varint(number: int) -> bytes:
    value = (number << 1) ^ (number >> 63)
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def _snapshot_and_sequences(entry: bytes, at: int) -> tuple[list[int | None], int]:
    """Returns snapshot id, sequence number and file sequence number, each of which may be null."""
    found: list[int | None] = []
    for _ in range(3):
        branch, at = _number(entry, at)
        value: int | None = None
        if branch:
            value, at = _number(entry, at)
        found.append(value)
    return found, at


def _entry(status: int, numbers: Sequence[int | None]) -> bytes:
    parts = [b"\x00" if each is None else b"\x02" + _varint(each) for each in numbers]
    return b"".join([_varint(status), *parts])


def _location(data_file: bytes) -> str:
    _, at = _number(data_file, 0)  # rows or deletes
    length, at = _number(data_file, at)
    return data_file[at : at + length].decode()
