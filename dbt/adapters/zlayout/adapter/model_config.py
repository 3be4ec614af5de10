"""The config keys that models of this adapter may use beyond dbt's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import List, Optional, Union  # noqa: UP035 # mashumaro reads the annotations at run time

from dbt.adapters.spark.impl import SparkConfig


# ruff: noqa: UP006, UP007, UP045 # mashumaro reads the annotations at run time
@dataclass
class ZlayoutConfig(SparkConfig):
    """Settings of a table. `dbt.adapters.zlayout.config` defines the values that each one allows."""

    zorder: Optional[Union[List[str], str]] = None
    curve: Optional[str] = None
    target_file_size: Optional[Union[str, int]] = None
    row_group_rows: Optional[int] = None
    stats_columns: Optional[Union[List[str], str, int]] = None
    retain_versions: Optional[int] = None
    retain_hours: Optional[float] = None
    writer: Optional[str] = None
    compression: Optional[str] = None
    partition_overwrite: Optional[str] = None
    merge_exclude_columns: Optional[Union[List[str], str]] = None
    matched_condition: Optional[str] = None
    not_matched_condition: Optional[str] = None
    deleted_when: Optional[str] = None
    skip_matched_step: Optional[bool] = None
    skip_not_matched_step: Optional[bool] = None
    source_alias: Optional[str] = None
    target_alias: Optional[str] = None
    clustering: Optional[str] = None
    cluster_every: Optional[int] = None
    cluster_min_gain: Optional[float] = None
    cluster_max_bytes: Optional[Union[str, int]] = None
    min_file_size: Optional[Union[str, int]] = None
    max_file_size: Optional[Union[str, int]] = None
    max_group_size: Optional[Union[str, int]] = None
    min_input_files: Optional[int] = None
    max_concurrent_groups: Optional[int] = None
    partial_progress: Optional[bool] = None
    max_commits: Optional[int] = None
    rewrite_all: Optional[bool] = None
    verify: Optional[bool] = None
    table_type: Optional[str] = None
    ordering: Optional[Union[List[str], str]] = None
    update_partition_path: Optional[bool] = None
    small_file_limit: Optional[Union[str, int]] = None
    log_max_size: Optional[Union[str, int]] = None
    bucket_buffer_size: Optional[Union[str, int]] = None
    buffer_size: Optional[Union[str, int]] = None
    compaction: Optional[str] = None
    compact_every: Optional[int] = None
    compaction_min_log_ratio: Optional[float] = None
    compaction_max_logs: Optional[int] = None
    compaction_strategy: Optional[str] = None
    compaction_max_bytes: Optional[Union[str, int]] = None
    retain_deletes_hours: Optional[float] = None
