"""The metadata files of a published Iceberg table: which is the newest, whether it is ours, and what it says.

A publisher keeps its own notes in the properties: the version and instant shown, and files that were replaced.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from dbt.adapters.zlayout.config.table_config import RetentionConfig
from dbt.adapters.zlayout.errors import CorruptError, UnsupportedError
from dbt.adapters.zlayout.publish.iceberg_schema import IcebergSchema, may_follow, partition_types
from dbt.adapters.zlayout.publish.publication import INSTANT, TABLE_ID, VERSION, check_written_by, foreign
from dbt.adapters.zlayout.store import Store, StoredFile
from dbt.adapters.zlayout.timeline.log.entry import TableState

FOLDER = "metadata"
HINT = f"{FOLDER}/version-hint.text"
NUMBER, REPLACED = "zlayout.metadata_number", "zlayout.replaced_files"
REDO = "switch publishing off (zlayout_publish with off: true) and on again, which rewrites it"
_SAME_STORE = {"s3a": "s3", "abfss": "abfs"}
_VERSION_FILE = re.compile(r"v(0|[1-9][0-9]*)\.metadata\.json")


@dataclass(frozen=True)
class IcebergVersion:
    """What the newest metadata of the Iceberg table shows.

    Attributes:
        instant: The instant of that version. The log may have lost the version and made another with its number.
    """

    number: int
    version: int
    instant: str
    metadata: Mapping[str, Any] = field(compare=False)


@dataclass(frozen=True)
class Replaced:
    """Files of metadata that newer snapshots do not need.

    Attributes:
        number: The first metadata file whose snapshot does not need them.
        since_ms: When it replaced them.
    """

    number: int
    since_ms: int
    paths: tuple[str, ...]

    def to_json(self) -> list[Any]:
        """Returns what the properties hold."""
        return [self.number, self.since_ms, list(self.paths)]


def metadata_path(number: int) -> str:
    """Returns the path of a metadata file."""
    return f"{FOLDER}/v{number}.metadata.json"


def to_bytes(metadata: Mapping[str, Any]) -> bytes:
    """Returns the content of a metadata file."""
    return json.dumps(metadata, separators=(",", ":"), ensure_ascii=False).encode()


def read_published(store: Store, listed: Sequence[StoredFile], table_id: str) -> IcebergVersion | None:
    """Returns what readers see; None if there is no metadata.

    Raises:
        UnsupportedError: Other software has written metadata, or another table of this package.
        CorruptError: The newest metadata cannot be read.
    """
    check_names(listed)
    numbers = metadata_numbers(listed)
    if not numbers:
        return None
    number = max(numbers)
    path = metadata_path(number)
    content = store.read(path)
    check_written_by(table_id, path, content, "iceberg")
    try:
        metadata = json.loads(content)
        properties = metadata["properties"]
        summary = current_snapshot(metadata)["summary"]
        if properties[NUMBER] != str(number) or summary.get(TABLE_ID) != table_id:
            raise UnsupportedError(
                f"{path} was written by other software, on top of what this table has published; {REDO}"
            )
        return IcebergVersion(number, int(properties[VERSION]), str(properties[INSTANT]), metadata)
    except (ValueError, KeyError, TypeError, AttributeError, StopIteration, RecursionError) as error:
        raise CorruptError(f"{path} is not Iceberg metadata of this package ({error}); {REDO}") from error


def current_snapshot(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the snapshot that readers see."""
    found: Mapping[str, Any] = next(
        each for each in metadata["snapshots"] if each["snapshot-id"] == metadata["current-snapshot-id"]
    )
    return found


def is_here(store: Store, metadata: Mapping[str, Any]) -> bool:
    """Returns whether metadata names the files of this folder, perhaps by a link or another scheme of the same store.

    Its paths are absolute.
    """
    location, root = str(metadata.get("location")), store.local_path("")
    if _place(location) == _place(unquote(store.root_uri)):
        return True
    return root is not None and Path(location.removeprefix("file://")).resolve() == root.resolve()


def _place(location: str) -> str:
    scheme, mark, path = location.partition("://")
    return f"{_SAME_STORE.get(scheme, scheme)}{mark}{path}"


def metadata_numbers(files: Iterable[StoredFile]) -> list[int]:
    """Returns the numbers of the metadata files among some files."""
    found = (_VERSION_FILE.fullmatch(file.path.rpartition("/")[2]) for file in files)
    return [int(match[1]) for match in found if match]


def check_names(files: Iterable[StoredFile]) -> None:
    """Checks the names of metadata files.

    Raises:
        UnsupportedError: A file has a name that only other software gives.
    """
    for each in files:
        if ".metadata.json" in each.path and not metadata_numbers([each]):
            raise foreign(each.path, "other software", "iceberg")


def schema_of(metadata: Mapping[str, Any]) -> IcebergSchema:
    """Returns the current columns."""
    fields = next(each["fields"] for each in metadata["schemas"] if each["schema-id"] == metadata["current-schema-id"])
    return IcebergSchema(fields, tuple(each["name"] for each in metadata["partition-specs"][-1]["fields"]))


def schema_id_of(metadata: Mapping[str, Any] | None, schema: IcebergSchema) -> int:
    """Returns the number that a schema has or gets after some metadata."""
    if not metadata:
        return 0
    same = [each["schema-id"] for each in metadata["schemas"] if each["fields"] == list(schema.fields)]
    return int(same[0] if same else max(each["schema-id"] for each in metadata["schemas"]) + 1)


def spec_id_of(metadata: Mapping[str, Any] | None, schema: IcebergSchema) -> int:
    """Returns the number that the partition spec of a schema has or gets after some metadata."""
    if not metadata:
        return 0
    spec = metadata["partition-specs"][-1]
    same = spec["fields"] == schema.spec(0)["fields"] and partition_types(schema_of(metadata)) == partition_types(
        schema
    )
    return int(spec["spec-id"]) + (not same)


def may_continue(metadata: Mapping[str, Any], schema: IcebergSchema) -> bool:
    """Returns whether the snapshots so far and one with this schema can be in one table."""
    before = schema_of(metadata)
    if spec_id_of(metadata, schema) != metadata["default-spec-id"] or not may_follow(before.types(), schema.types()):
        return False
    earlier = {each for old in metadata["schemas"] for each in IcebergSchema(old["fields"], ()).ids()}
    # A column that comes back has no values in the files before, which snapshots with the earlier column do show.
    return not (earlier & set(schema.ids())) - set(before.ids())


def replaced_in(metadata: Mapping[str, Any]) -> list[Replaced]:
    """Returns the files that publishers have replaced and perhaps not yet deleted."""
    listed = json.loads(metadata.get("properties", {}).get(REPLACED, "[]"))
    return [Replaced(number, since_ms, tuple(paths)) for number, since_ms, paths in listed]


def retained(
    snapshots: Sequence[dict[str, Any]], state: TableState, now_ms: int, retain_ms: int
) -> list[dict[str, Any]]:
    """Returns the snapshots whose version the table retains, oldest first."""
    versions = state.layout.get("retention", {}).get("versions", RetentionConfig.versions)
    return [
        each
        for number, each in enumerate(snapshots)
        if number == len(snapshots) - 1
        or now_ms - snapshots[number + 1]["timestamp-ms"] < retain_ms
        or int(snapshots[number + 1]["summary"][VERSION]) > state.version - versions + 1
    ]
