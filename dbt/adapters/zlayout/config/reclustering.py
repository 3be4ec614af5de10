"""Reclustering settings: when a table is clustered again, which files are worth it and how much a run may rewrite."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast, get_args

from dbt.adapters.zlayout.config.file_sizing import parse_size
from dbt.adapters.zlayout.config.scalars import as_number, parse_boolean, parse_choice, parse_integer

ClusteringMode = Literal["off", "inline", "deferred"]

RECLUSTERING_KEYS = (
    "clustering",
    "cluster_every",
    "cluster_min_gain",
    "cluster_max_bytes",
    "min_file_size",
    "max_file_size",
    "max_group_size",
    "min_input_files",
    "max_concurrent_groups",
    "partial_progress",
    "max_commits",
    "rewrite_all",
    "verify",
)
# Keys that control how a clustering run works, as opposed to when a model starts one.
CLUSTER_SETTINGS = tuple(key for key in RECLUSTERING_KEYS if key not in ("clustering", "cluster_every"))

_MIN_FILE_SHARE, _MAX_FILE_SHARE = 0.75, 1.8


@dataclass(frozen=True)
class ReclusteringConfig:
    """When clustering runs, what it rewrites and how.

    Attributes:
        mode: 'inline' clusters as part of a run that adds rows, 'deferred' only writes a plan for a later job, 'off'
            clusters only on request.
        every: In the modes 'inline' and 'deferred': commits between clusterings.
        min_gain: Smallest share of the bytes that queries read from a group of files that its rewrite must save.
        max_bytes: Most bytes that a run rewrites; None for no limit.
        min_file_bytes: Files below this size are small; None for 75 % of the target size.
        max_file_bytes: Files above this size are split; None for 180 % of the target size.
        max_group_bytes: Most bytes that are rewritten together.
        min_input_files: Number of small files that are combined even if they do not fill a file.
        max_concurrent_groups: Number of groups that are rewritten at the same time.
        partial_progress: Whether groups are committed in several versions, so that finished groups survive a failure.
        max_commits: With partial progress: most commits of a run.
        rewrite_all: Rewrites every file, whether it gains or not.
        verify: Compares checksums of all columns before the commit.
    """

    mode: ClusteringMode = "off"
    every: int = 1
    min_gain: float = 0.2
    max_bytes: int | None = None
    min_file_bytes: int | None = None
    max_file_bytes: int | None = None
    max_group_bytes: int = 100 << 30
    min_input_files: int = 5
    max_concurrent_groups: int = 4
    partial_progress: bool = False
    max_commits: int = 10
    rewrite_all: bool = False
    verify: bool = False

    def file_limits(self, target_bytes: int) -> tuple[int, int]:
        """Returns the sizes below which a file is small and above which it is too large."""
        low = round(_MIN_FILE_SHARE * target_bytes) if self.min_file_bytes is None else self.min_file_bytes
        high = round(_MAX_FILE_SHARE * target_bytes) if self.max_file_bytes is None else self.max_file_bytes
        return low, high


def parse_reclustering(raw: Mapping[str, object], problems: list[str]) -> ReclusteringConfig:
    """Reads the keys of `RECLUSTERING_KEYS`; sizes are like ``target_file_size``, ``cluster_min_gain`` is in (0, 1)."""
    default = ReclusteringConfig()
    whole = {
        key: parse_integer(key, raw.get(key), problems, default=fallback, low=low, high=high)
        for key, fallback, low, high in (
            ("cluster_every", default.every, 1, 1_000_000),
            ("min_input_files", default.min_input_files, 1, 1_000_000),
            ("max_concurrent_groups", default.max_concurrent_groups, 1, 1_000),
            ("max_commits", default.max_commits, 1, 10_000),
        )
    }
    min_file_bytes = _optional_size("min_file_size", raw, problems)
    max_file_bytes = _optional_size("max_file_size", raw, problems)
    if min_file_bytes is not None and max_file_bytes is not None and min_file_bytes >= max_file_bytes:
        problems.append(
            f"min_file_size: {raw['min_file_size']!r} is not below max_file_size ({raw['max_file_size']!r})"
        )
    return ReclusteringConfig(
        mode=cast(
            ClusteringMode,
            parse_choice(
                "clustering", raw.get("clustering"), problems, default="off", allowed=get_args(ClusteringMode)
            ),
        ),
        every=whole["cluster_every"],
        min_gain=_parse_gain(raw.get("cluster_min_gain"), problems, default.min_gain),
        max_bytes=_optional_size("cluster_max_bytes", raw, problems),
        min_file_bytes=min_file_bytes,
        max_file_bytes=max_file_bytes,
        max_group_bytes=_optional_size("max_group_size", raw, problems) or default.max_group_bytes,
        min_input_files=whole["min_input_files"],
        max_concurrent_groups=whole["max_concurrent_groups"],
        partial_progress=parse_boolean("partial_progress", raw.get("partial_progress"), problems),
        max_commits=whole["max_commits"],
        rewrite_all=parse_boolean("rewrite_all", raw.get("rewrite_all"), problems),
        verify=parse_boolean("verify", raw.get("verify"), problems),
    )


def _optional_size(key: str, raw: Mapping[str, object], problems: list[str]) -> int | None:
    return None if raw.get(key) is None else parse_size(key, raw[key], problems)


def _parse_gain(value: object, problems: list[str], default: float) -> float:
    if value is None:
        return default
    share = as_number(value)
    if not 0 < share < 1:
        problems.append(f"cluster_min_gain: {value!r} is not a share between 0 and 1, such as 0.2")
        return default
    return share
