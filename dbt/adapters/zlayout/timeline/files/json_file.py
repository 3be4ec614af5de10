"""JSON files of the timeline: writes compact bytes and reads checked values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from dbt.adapters.zlayout.errors import CorruptError, NewerFormatError

FORMAT_VERSION = 1
RESTORE = "restore it, or rebuild the table with --full-refresh, which keeps this folder and writes to a new one"


def to_json_bytes(content: Mapping[str, Any]) -> bytes:
    """Returns a JSON object as UTF-8, with the format version as its first field."""
    return json.dumps({"format_version": FORMAT_VERSION, **content}, ensure_ascii=False, separators=(",", ":")).encode()


def from_json_bytes(data: bytes, path: str, remedy: str = RESTORE) -> dict[str, Any]:
    """Parses a JSON object written by `to_json_bytes`; ``remedy`` is what to do about a damaged one.

    Raises:
        CorruptError: It is not such an object.
        NewerFormatError: A newer release has written it.
    """
    try:
        content = json.loads(data)
        if b"\\u" in data:
            # Unpaired surrogates cannot be written anywhere, so they are rejected here.
            json.dumps(content, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise CorruptError(f"{path} is not JSON ({error}); {remedy}") from error
    if not isinstance(content, dict):
        raise CorruptError(f"{path} is not a JSON object; {remedy}")
    version = content.get("format_version")
    if type(version) is int and version > FORMAT_VERSION:
        raise NewerFormatError(
            f"{path} has format_version {version}, this release reads {FORMAT_VERSION}; "
            "a newer release of dbt-zlayout has written it: upgrade"
        )
    if version != FORMAT_VERSION:
        raise CorruptError(f"{path} has format_version {version!r}, which no release has written; {remedy}")
    return content


def read_fields(
    content: Mapping[str, Any], path: str, remedy: str = RESTORE, /, **types: type | tuple[type, ...]
) -> tuple[Any, ...]:
    """Returns the named fields of a JSON object, in the order of the arguments.

    Raises:
        CorruptError: A field is missing, has another type, or is a number beyond 64 bits.
    """
    for name, type_ in types.items():
        if name not in content or not _is_of_type(content[name], type_):
            found = type(content[name]).__name__ if name in content else "nothing"
            raise CorruptError(
                f"{path}: field {name!r} holds {found}; the file was damaged or written by other software; {remedy}"
            )
    return tuple(content[name] for name in types)


def _is_of_type(value: object, type_: type | tuple[type, ...]) -> bool:
    if isinstance(value, bool):
        return type_ is bool
    return isinstance(value, type_) and (not isinstance(value, int) or -(2**63) <= value < 2**63)
