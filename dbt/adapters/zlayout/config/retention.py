"""Retention settings: how long the files of older versions are kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dbt.adapters.zlayout.config.scalars import parse_hours, parse_integer

_DEFAULT_VERSIONS = 3
_DEFAULT_HOURS = 24.0


@dataclass(frozen=True)
class RetentionConfig:
    """Which versions cleaning keeps; either rule is enough to keep a version.

    Attributes:
        versions: Number of newest versions to keep.
        hours: Versions that were current within this many hours are kept.
    """

    versions: int = _DEFAULT_VERSIONS
    hours: float = _DEFAULT_HOURS


def parse_retention(raw: Mapping[str, object], problems: list[str]) -> RetentionConfig:
    """Reads ``retain_versions`` and ``retain_hours``."""
    versions = parse_integer(
        "retain_versions", raw.get("retain_versions"), problems, default=_DEFAULT_VERSIONS, low=1, high=1_000_000
    )
    return RetentionConfig(
        versions, parse_hours("retain_hours", raw.get("retain_hours"), problems, default=_DEFAULT_HOURS)
    )
