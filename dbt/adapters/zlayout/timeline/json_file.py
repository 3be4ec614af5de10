"""JSON files of the timeline: compact bytes out, checked values in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from dbt.adapters.zlayout.errors import CorruptError

FORMAT_VERSION = 1


def to_json_bytes(content: Mapping[str, Any]) -> bytes:
    """Return a JSON object as UTF-8, with the format version as its first field."""
    return json.dumps({"format_version": FORMAT_VERSION, **content}, ensure_ascii=False, separators=(",", ":")).encode()


def from_json_bytes(data: bytes, path: str) -> dict[str, Any]:
    """Parse a JSON object written by `to_json_bytes`.

    Raises:
        CorruptError: It is no such object, or of a format that this release does not know.
    """
    try:
        content = json.loads(data)
    except ValueError as error:
        raise CorruptError(
            f"{path} is not JSON ({error}); restore it, or rebuild the table (--full-refresh)"
        ) from error
    if not isinstance(content, dict):
        raise CorruptError(f"{path} is not a JSON object; restore it, or rebuild the table (--full-refresh)")
    version = content.get("format_version")
    if version != FORMAT_VERSION:
        raise CorruptError(
            f"{path} has format_version {version!r}, this release reads {FORMAT_VERSION}; "
            "a newer release of dbt-zlayout may have written it: upgrade"
        )
    return content


def read_fields(content: Mapping[str, Any], path: str, **types: type | tuple[type, ...]) -> tuple[Any, ...]:
    """Return the named fields of a JSON object, in the order of the arguments.

    Raises:
        CorruptError: A field is missing or of another type.
    """
    for name, type_ in types.items():
        if name not in content or not isinstance(content[name], type_):
            found = type(content[name]).__name__ if name in content else "nothing"
            raise CorruptError(
                f"{path}: field {name!r} holds {found}; the file was damaged or written by other software"
            )
    return tuple(content[name] for name in types)
