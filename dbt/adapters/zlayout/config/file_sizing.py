"""Size settings of data files and their row groups."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from dbt.adapters.zlayout.config.scalars import as_integer, parse_integer

_UNITS = {"b": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30, "tb": 1 << 40}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)", re.IGNORECASE)
_DEFAULT_FILE_BYTES = 128 << 20
_MIN_BYTES = 1 << 10
_MAX_FILE_BYTES = 64 << 30


@dataclass(frozen=True)
class FileSizingConfig:
    """Target sizes of the writer.

    Attributes:
        target_file_bytes: Compressed size of a data file.
        row_group_rows: Rows per row group, or None to let the layout choose.
    """

    target_file_bytes: int = _DEFAULT_FILE_BYTES
    row_group_rows: int | None = None


def parse_file_sizing(raw: Mapping[str, object], problems: list[str]) -> FileSizingConfig:
    """Reads ``target_file_size`` (``'128mb'``, or bytes as a number) and ``row_group_rows``."""
    rows = raw.get("row_group_rows")
    return FileSizingConfig(
        target_file_bytes=_target_bytes(raw.get("target_file_size"), problems),
        row_group_rows=None
        if rows is None
        else parse_integer("row_group_rows", rows, problems, default=1, low=1, high=100_000_000),
    )


def parse_size(key: str, value: object, problems: list[str]) -> int | None:
    """Reads a size such as ``'128mb'``, or a number of bytes; adds a sentence and returns None if it is wrong."""
    size_bytes = as_integer(value)
    if size_bytes is None and isinstance(value, str) and (match := _SIZE.fullmatch(value.strip())):
        unit = _UNITS.get(match[2].lower())
        size_bytes = None if unit is None else int(float(match[1]) * unit)
    if size_bytes is None:
        problems.append(f"{key}: {value!r} is not a size (write '128mb'; kb, mb, gb and tb, or bytes as a number)")
    elif not size_bytes >= _MIN_BYTES:
        problems.append(f"{key}: {value!r} is below 1kb")
        return None
    return size_bytes


def _target_bytes(value: object, problems: list[str]) -> int:
    if value is None:
        return _DEFAULT_FILE_BYTES
    size_bytes = parse_size("target_file_size", value, problems)
    if size_bytes is not None and size_bytes > _MAX_FILE_BYTES:
        problems.append(f"target_file_size: {value!r} is above 64gb")
        return _DEFAULT_FILE_BYTES
    return _DEFAULT_FILE_BYTES if size_bytes is None else size_bytes
