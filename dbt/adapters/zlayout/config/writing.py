"""Writer settings: where data files go and how they are written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast, get_args

from dbt.adapters.zlayout.config.scalars import parse_choice
from dbt.adapters.zlayout.store.opening import place_problem
from dbt.adapters.zlayout.store.uri import without_login

WriterName = Literal["arrow", "spark"]
CompressionName = Literal["zstd", "snappy", "gzip", "lz4", "none"]


@dataclass(frozen=True)
class WritingConfig:
    """The writer and its output.

    Attributes:
        location_root: Parent folder of the table's folder, or None for the default location.
        writer: ``arrow`` writes in Python workers, ``spark`` uses Spark's own writer.
        compression: Codec of the pages, by its pyarrow name.
    """

    location_root: str | None = None
    writer: WriterName = "arrow"
    compression: CompressionName = "zstd"


def parse_writing(raw: Mapping[str, object], problems: list[str]) -> WritingConfig:
    """Reads ``location_root``, ``writer`` and ``compression``; ``uncompressed`` is an alias of ``none``."""
    root = raw.get("location_root")
    if root is not None and (not isinstance(root, str) or not root.strip()):
        problems.append(f"location_root: {root!r} is not a folder (write a path or a URI such as s3://bucket/folder)")
        root = None
    elif root is not None and (problem := place_problem(root.strip())) is not None:
        problems.append(f"location_root: {without_login(root)!r} {problem}")
    writer = parse_choice("writer", raw.get("writer"), problems, default="arrow", allowed=get_args(WriterName))
    codecs = (*get_args(CompressionName), "uncompressed")
    codec = parse_choice("compression", raw.get("compression"), problems, default="zstd", allowed=codecs)
    return WritingConfig(
        location_root=root.strip() if isinstance(root, str) else None,
        writer=cast(WriterName, writer),
        compression=cast(CompressionName, "none" if codec == "uncompressed" else codec),
    )
