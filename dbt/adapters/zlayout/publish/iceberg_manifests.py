"""Iceberg's manifests and manifest lists: written by pyiceberg, with the same bytes each time, and changed in place.

Each entry of a manifest is one Avro block. A manifest is written again from the blocks of others, without understanding
more of them than which file each is, and whether it is added, kept or deleted.

Readers open every manifest, so there should be few. A commit writes a manifest again if it loses a file, so none should
be large. Therefore a manifest is full from some size on, and those that are not full are put together. They stay below
twice that size. Iceberg's MergeAppend does the same with fewer, larger manifests, and Hudi compacts its timeline so.
"""

from __future__ import annotations

import hashlib
import io
import struct
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import isqrt
from typing import TYPE_CHECKING, Any, Final, cast

from pyiceberg.conversions import from_bytes
from pyiceberg.manifest import (
    DataFile,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestWriterV2,
    PartitionFieldSummary,
    construct_partition_summaries,
    data_file_with_partition,
    manifest_entry_schema_with_data_file,
    write_manifest_list,
)
from pyiceberg.manifest import read_manifest_list as parse_manifest_list
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.types import DecimalType, NestedField, StructType

from dbt.adapters.zlayout.errors import CorruptError

if TYPE_CHECKING:
    from pyiceberg.io import InputFile, OutputFile
    from pyiceberg.typedef import TableVersion
    from pyiceberg.types import PrimitiveType


# Avro separates blocks by 16 bytes that should not occur in them. Random ones would differ between publishers. These
# are no text, so that no path has them.
_SYNC = hashlib.sha256(b"zlayout.manifest").digest()[:16]
_CODEC: Final = "deflate"
# The compression as Avro's header names it.
_PLAIN, _DEFLATED = b"\x14avro.codec\x08null", b"\x14avro.codec\x0edeflate"
# An entry's status as Avro has it.
_EXISTING, _ADDED, _DELETED = 0, 2, 4
# What comes before stored bytes in deflate: that they are stored, their number, and its complement.
_STORED = struct.Struct("<BHH")
# Of decimals.
DIGITS_OF_EIGHT_BYTES, WIDE_BYTES = 18, 16
# pyiceberg spends on opening a manifest what it spends on 35 of the files in it. Some 500 files with the statistics of
# four columns take this size.
_FULL_BYTES = 128 << 10
# How many manifests a commit reads only to put them together. More than one are left when the size of a full one grows.
_MOST_READ = 8


@dataclass(frozen=True)
class Address:
    """Where a snapshot's new files go, and what it is called in them.

    Attributes:
        location: The table's folder, not escaped.
        stem: What the paths of its files begin with, relative to the folder.
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
        return f"{self.stem}-{_digest(content)}-{name}.avro"


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


class _Writer(ManifestWriterV2):
    """A writer of manifests that all Avro libraries read.

    pyiceberg takes all letters for those that a name of Avro may have.
    """

    def _with_partition(self, format_version: TableVersion) -> Schema:
        fields = [
            NestedField(each.field_id, _ascii(each.name), each.field_type, required=each.required)
            for each in self._spec.partition_type(self._schema).fields
        ]
        data_file = data_file_with_partition(StructType(*fields), format_version)
        return manifest_entry_schema_with_data_file(format_version, data_file)


def _ascii(name: str) -> str:
    """Escapes letters as pyiceberg escapes other characters."""
    return "".join(each if each.isascii() else f"_x{ord(each):X}" for each in name)


@dataclass(frozen=True)
class Entries:
    """Entries of one status.

    Attributes:
        content: Their blocks.
        files: How many they are.
        rows: How many rows their files have.
    """

    content: bytes = b""
    files: int = 0
    rows: int = 0


@dataclass(frozen=True)
class Part:
    """What goes from one manifest into a new one.

    Attributes:
        spec_id: The number of its partition spec.
        sequence_number: The sequence number of its snapshot.
        min_sequence_number: The lowest of its files.
        partitions: What is known about their partitions.
        kept: The files that it had before.
        added: The files that the snapshot adds.
        deleted: The files that the snapshot deletes.
    """

    header: bytes
    spec_id: int
    sequence_number: int
    min_sequence_number: int
    partitions: Sequence[PartitionFieldSummary]
    kept: Entries = Entries()
    added: Entries = Entries()
    deleted: Entries = Entries()


@dataclass(frozen=True)
class AddedEntries:
    """The entries of files that a snapshot adds.

    Attributes:
        blocks: Their entries.
        header: The header of a manifest of them.
        sequence_number: The snapshot's sequence number.
    """

    files: Sequence[DataFile]
    blocks: Sequence[bytes]
    header: bytes
    spec: PartitionSpec
    columns: Schema
    sequence_number: int

    @property
    def size_bytes(self) -> int:
        """The size of the entries."""
        return sum(map(len, self.blocks))

    def parts(self, full: int) -> list[Part]:
        """Returns the entries in parts for a full manifest each, but for the last one."""
        return [self._part(begin, end) for begin, end in cut([len(each) for each in self.blocks], full)]

    def _part(self, begin: int, end: int) -> Part:
        files = self.files[begin:end]
        kinds = [specified.field_type for specified in self.spec.partition_type(self.columns).fields]
        partitions = construct_partition_summaries(self.spec, self.columns, [each.partition for each in files])
        for summary, kind in zip(partitions, kinds, strict=True):
            if isinstance(kind, DecimalType) and kind.precision > DIGITS_OF_EIGHT_BYTES:
                # In the order of `PARTITION_FIELD_SUMMARY_TYPE`.
                for position in (2, 3):
                    summary._data[position] = _widened(summary._data[position])
        added = Entries(b"".join(self.blocks[begin:end]), len(files), sum(each.record_count for each in files))
        number = self.sequence_number
        return Part(self.header, self.spec.spec_id, number, number, partitions, added=added)


def new_files(
    files: Sequence[DataFile], schema: Mapping[str, Any], spec: Mapping[str, Any], address: Address
) -> AddedEntries:
    """Returns the entries of added files.

    Schema and partition spec are as the table's metadata has them.
    """
    specification, columns = PartitionSpec.model_validate(spec), Schema.model_validate(schema)
    if not files:
        return AddedEntries((), (), b"", specification, columns, address.sequence_number)
    buffer = _Buffer("new")
    # Entries are compressed below.
    writer = _Writer(specification, columns, cast("OutputFile", buffer), address.snapshot_id, "null")
    with writer:
        for each in files:
            writer.add_entry(
                ManifestEntry.from_args(
                    status=ManifestEntryStatus.ADDED, snapshot_id=address.snapshot_id, data_file=each
                )
            )
    header, *plain, _ = buffer.getvalue().split(writer._writer.sync_bytes)
    header = header.replace(_PLAIN, _DEFLATED, 1)
    blocks = list(map(_added_block, plain))
    return AddedEntries(files, blocks, header, specification, columns, address.sequence_number)


def parts_of(content: bytes, manifest: ManifestFile, gone: Mapping[str, int], address: Address) -> tuple[Part, Part]:
    """Returns what is left of a manifest, and what a snapshot deletes of it. What earlier ones deleted is left out.

    Args:
        manifest: Its entry in the manifest list. For files that it added, only that entry may know the snapshot.
        gone: Paths of its files that the snapshot deletes, and their rows.
        address: The snapshot.

    Raises:
        CorruptError: The content is not a manifest of this package.
    """
    path = manifest.manifest_path
    if f"-{_digest(content)}-" not in path:
        raise CorruptError(f"{path} is not what this package has written")
    locations = {address.of(each).encode(): rows for each, rows in gone.items()}
    try:
        if manifest.added_files_count or manifest.deleted_files_count:
            kept, deleted = _searched(content, manifest, locations, address)
        else:
            kept, deleted = _cut_out(content, locations, address)
    except (ValueError, IndexError) as error:
        raise CorruptError(f"{path} is not a manifest of this package ({error})") from error
    rows = (manifest.added_rows_count or 0) + (manifest.existing_rows_count or 0)
    rows_gone = sum(gone.values())
    left = Part(
        content[: content.index(_SYNC)],
        manifest.partition_spec_id,
        manifest.sequence_number,
        manifest.min_sequence_number,
        manifest.partitions or [],
        kept=Entries(kept, live_files(manifest) - len(gone), rows - rows_gone),
    )
    return left, replace(left, kept=Entries(), deleted=Entries(deleted, len(gone), rows_gone))


def _searched(content: bytes, manifest: ManifestFile, gone: Collection[bytes], address: Address) -> tuple[bytes, bytes]:
    """Returns the entries that stay and those of files that go, from a manifest that has added or deleted some."""
    prefix = address.of("").encode()
    inherited = [manifest.added_snapshot_id, manifest.sequence_number, manifest.sequence_number]
    kept, deleted = [], []
    for block in _blocks(content, content.index(_SYNC) + len(_SYNC)):
        head, tail = place = _head_of(block)
        status = block[head]
        if status == _DELETED:
            continue
        if block[block.index(prefix, head, tail) : tail] in gone:
            deleted.append(_changed(block, place, _DELETED, inherited, address.snapshot_id))
        else:
            kept.append(block if status == _EXISTING else _changed(block, place, _EXISTING, inherited))
    if (len(kept), len(deleted)) != (live_files(manifest) - len(gone), len(gone)):
        raise ValueError("it does not hold the files that the manifest list counts")
    return b"".join(kept), b"".join(deleted)


def _cut_out(content: bytes, gone: Collection[bytes], address: Address) -> tuple[bytes, bytes]:
    """Returns the entries that stay and those of removed files, from a manifest that has added or deleted none."""
    blocks, deleted = [], []
    known: list[int | None] = [None, None, None]
    for location in gone:
        # No path has what separates blocks.
        name = _varint(len(location)) + location
        at = content.index(name)
        begin, end = content.rindex(_SYNC, 0, at) + len(_SYNC), content.index(_SYNC, at) + len(_SYNC)
        block = content[begin:end]
        place = _head_of(block)
        if place[1] != at + len(name) - begin:
            raise ValueError(f"{location!r} is in a block that it did not write")
        blocks.append((begin, end))
        deleted.append(_changed(block, place, _DELETED, known, address.snapshot_id))
    kept, start = [], content.index(_SYNC) + len(_SYNC)
    for begin, end in sorted(blocks):
        kept.append(content[start:begin])
        start = end
    kept.append(content[start:])
    return b"".join(kept), b"".join(deleted)


def manifest_of(
    parts: Sequence[Part], name: str, spec_types: Sequence[str], address: Address
) -> tuple[str, bytes, ManifestFile]:
    """Returns a new manifest: its path, its content, and its entry in the manifest list.

    Args:
        parts: What is in it, of the same partition spec.
        name: Its name among those of the snapshot.
        spec_types: The Iceberg types of the partition columns.
        address: The snapshot.
    """
    newest = max(parts, key=lambda each: each.sequence_number)
    kept, added, deleted = (
        Entries(
            b"".join(each.content for each in entries),
            sum(each.files for each in entries),
            sum(each.rows for each in entries),
        )
        for entries in zip(*((each.kept, each.added, each.deleted) for each in parts), strict=True)
    )
    content = b"".join([newest.header, _SYNC, kept.content, added.content, deleted.content])
    path = address.path_of(content, name)
    manifest = ManifestFile.from_args(
        _table_format_version=2,
        manifest_path=address.of(path),
        manifest_length=len(content),
        partition_spec_id=newest.spec_id,
        content=ManifestContent.DATA,
        sequence_number=address.sequence_number,
        min_sequence_number=min(each.min_sequence_number for each in parts),
        added_snapshot_id=address.snapshot_id,
        added_files_count=added.files,
        existing_files_count=kept.files,
        deleted_files_count=deleted.files,
        added_rows_count=added.rows,
        existing_rows_count=kept.rows,
        deleted_rows_count=deleted.rows,
        partitions=_combined_summaries([each.partitions for each in parts], spec_types),
    )
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
    content = buffer.getvalue().replace(writer._writer.sync_bytes, _SYNC)
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


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]


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


@lru_cache(maxsize=4096)
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


def _blocks(content: bytes, at: int) -> Iterator[bytes]:
    """Yields the blocks of a manifest, which begin at a position."""
    while at < len(content):
        _, start = _number(content, at)
        size, start = _number(content, start)
        end = start + size + len(_SYNC)
        yield content[at:end]
        at = end


def _head_of(block: bytes) -> tuple[int, int]:
    """Returns where the stored part of a block begins and ends: the entry up to the file's location."""
    count, at = _number(block, 0)
    length, at = _number(block, at)
    begin = at + _STORED.size
    kind, size, inverse = _STORED.unpack_from(block, at)
    if (count, kind, size ^ inverse) != (1, 0, 0xFFFF) or at + length + len(_SYNC) != len(block):
        raise ValueError("a block that it did not write")
    return begin, begin + size


def _changed(
    block: bytes,
    place: tuple[int, int],
    status: int,
    inherited: Sequence[int | None],
    snapshot_id: int | None = None,
) -> bytes:
    """Returns the block of a file with another status and, if ``snapshot_id`` is given, another snapshot.

    ``place`` is what `_head_of` returns for the block.
    """
    head, tail = place
    numbers, start = _snapshot_and_sequences(block, head + 1)
    known = [own if own is not None else other for own, other in zip(numbers, inherited, strict=True)]
    if snapshot_id is not None:
        known[0] = snapshot_id
    return _block(status, known, block[start:tail], block[tail : -len(_SYNC)])


def _added_block(plain: bytes) -> bytes:
    """Returns a block as manifests have it from one that is not compressed."""
    _, at = _number(plain, 0)
    _, at = _number(plain, at)
    numbers, start = _snapshot_and_sequences(plain, at + 1)
    _, at = _number(plain, start)  # rows or deletes
    length, at = _number(plain, at)
    end = at + length
    return _block(_ADDED, numbers, plain[start:end], zlib.compress(plain[end:])[2:-4])


def _block(status: int, numbers: Sequence[int | None], location: bytes, deflated: bytes) -> bytes:
    """Returns the block of an entry.

    Deflate has compressed and stored parts. All up to the file's location is stored, so that a file is found, and its
    entry changed, without compressing anything again.

    Args:
        status: The entry's status as Avro has it.
        numbers: Its snapshot id, sequence number and file sequence number.
        location: The beginning of the data file's record.
        deflated: The rest of it, compressed.
    """
    parts = [b"\x00" if each is None else b"\x02" + _varint(each) for each in numbers]
    head = b"".join([bytes([status]), *parts, location])
    stored = _STORED.pack(0, len(head), len(head) ^ 0xFFFF)
    return b"".join([_varint(1), _varint(len(stored) + len(head) + len(deflated)), stored, head, deflated, _SYNC])


@dataclass(frozen=True)
class KeptManifest:
    """The part of a manifest that a commit keeps.

    Attributes:
        size_bytes: The size of the entries that stay, about.
        is_written: Whether the commit writes it in any case, since it is new or loses files.
    """

    size_bytes: int
    is_written: bool


def full_bytes(entries_bytes: int, files: int) -> int:
    """Returns the size from which on a manifest is full: a constant, and that of √n files in a table of very many.

    >>> full_bytes(25_000_000, files=100_000), full_bytes(1_000_000_000, files=4_000_000)
    (131072, 500000)
    """
    return max(_FULL_BYTES, isqrt(files) * entries_bytes // max(files, 1))


def grouped(manifests: Sequence[KeptManifest], full: int) -> list[list[int]]:
    """Returns the positions of manifests that become one each. The others stay as they are.

    At most one manifest of those that the commit reads or writes is not full afterwards.

    >>> kept = [KeptManifest(40, True), KeptManifest(130, False), KeptManifest(50, False), KeptManifest(110, True)]
    >>> grouped(kept, full=100)
    [[3], [0, 2]]

    A manifest that the commit leaves without files is not among ``manifests``.
    """
    written = [position for position, each in enumerate(manifests) if each.is_written]
    read = [position for position, each in enumerate(manifests) if not each.is_written and each.size_bytes < full]
    groups = [[position] for position in written if manifests[position].size_bytes >= full]
    open_group: list[int] = []
    for position in [*(each for each in written if manifests[each].size_bytes < full), *read[:_MOST_READ]]:
        open_group.append(position)
        if sum(manifests[each].size_bytes for each in open_group) >= full:
            groups.append(open_group)
            open_group = []
    if len(open_group) > 1 or any(manifests[each].is_written for each in open_group):
        groups.append(open_group)
    return groups


def cut(sizes: Sequence[int], full: int) -> list[tuple[int, int]]:
    """Returns ranges of new entries, each for one manifest that stays full if it loses a third of its entries.

    >>> cut([60, 60, 60, 60, 60], full=100)
    [(0, 3), (3, 5)]
    """
    ranges, begin, total = [], 0, 0
    for end, size in enumerate(sizes, 1):
        total += size
        if 2 * total >= 3 * full:
            ranges.append((begin, end))
            begin, total = end, 0
    return [*ranges, (begin, len(sizes))] if begin < len(sizes) else ranges
