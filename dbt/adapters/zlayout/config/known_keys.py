"""Known settings: the adapter's own keys, and those of dbt and dbt-spark, which never count as misspellings."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable

from dbt.adapters.zlayout.config.reclustering import RECLUSTERING_KEYS
from dbt.adapters.zlayout.config.table_type import TABLE_TYPE_KEYS

OWN_KEYS = (
    "zorder",
    "curve",
    "partition_by",
    "target_file_size",
    "row_group_rows",
    "stats_columns",
    "retain_versions",
    "retain_hours",
    "location_root",
    "writer",
    "compression",
    "partition_overwrite",
    "matched_condition",
    "not_matched_condition",
    "deleted_when",
    "skip_matched_step",
    "skip_not_matched_step",
    "source_alias",
    "target_alias",
    *RECLUSTERING_KEYS,
    *TABLE_TYPE_KEYS,
)

DBT_KEYS = frozenset(
    {
        "_extra",
        "access",
        "alias",
        "anchors",
        "as_columnstruct",
        "batch_size",
        "begin",
        "buckets",
        "build_after",
        "catalog_name",
        "check_cols",
        "clustered_by",
        "column_types",
        "columns",
        "concurrent_batches",
        "contract",
        "create_notebook",
        "cluster_id",
        "database",
        "dbt_valid_to_current",
        "delimiter",
        "deprecation_date",
        "description",
        "docs",
        "enabled",
        "entry_point",
        "error_if",
        "event_time",
        "expected_rows",
        "expected_sql",
        "fail_calc",
        "file_format",
        "force",
        "freshness",
        "full_refresh",
        "grants",
        "group",
        "hard_deletes",
        "incremental_predicates",
        "incremental_strategy",
        "indexes",
        "index_url",
        "invalidate_hard_deletes",
        "job_cluster_config",
        "language",
        "latest_version",
        "limit",
        "lookback",
        "materialized",
        "merge_exclude_columns",
        "merge_update_columns",
        "merge_with_schema_evolution",
        "meta",
        "model",
        "name",
        "on_configuration_change",
        "on_error",
        "on_schema_change",
        "options",
        "packages",
        "partitions",
        "persist_docs",
        "post-hook",
        "post_hook",
        "pre-hook",
        "pre_hook",
        "predicates",
        "quote",
        "quote_columns",
        "quoting",
        "runtime_version",
        "schema",
        "severity",
        "snapshot_meta_column_names",
        "snapshot_table_column_names",
        "sql_header",
        "static_analysis",
        "store_failures",
        "store_failures_as",
        "strategy",
        "submission_method",
        "tags",
        "target_database",
        "target_schema",
        "tblproperties",
        "timeout",
        "transient",
        "type",
        "unique_key",
        "updated_at",
        "user_folder_for_python",
        "unlogged",
        "version",
        "versions",
        "warn_if",
        "where",
    }
)


# Names that other adapters use.
_OTHER_WORDS = {
    "cluster_by": "zorder",
    "cluster_keys": "zorder",
    "liquid_clustered_by": "zorder",
    "partitioned_by": "partition_by",
    "sort_by": "zorder",
    "z_order_by": "zorder",
    "zorder_by": "zorder",
}
_PREFIX = "zlayout"


def unknown_settings(given: Iterable[str], allowed: Collection[str]) -> list[str]:
    """Returns a sentence for each keyword argument that is not allowed."""
    return [
        sentence
        for key in given
        if key not in allowed
        for sentence in near_misses([key], ()) or [f"`{key}` is no setting; there are {', '.join(sorted(allowed))}"]
    ]


def near_misses(keys: Iterable[str], known_other_keys: Collection[str]) -> list[str]:
    """Returns a sentence for each unknown key that resembles one of ours; other unknown keys are ignored."""
    sentences = []
    for key in keys:
        if key in OWN_KEYS or key in known_other_keys:
            continue
        folded = key.lower().replace("-", "_")
        plain = folded.removeprefix(_PREFIX).lstrip("_")
        near = [_OTHER_WORDS[plain]] if plain in _OTHER_WORDS else difflib.get_close_matches(plain, OWN_KEYS, 1, 0.75)
        if near:
            sentences.append(f"`{key}`: did you mean `{near[0]}`?")
        elif folded.startswith(_PREFIX):
            sentences.append(f"`{key}`: no such key; take it out, or take one of {', '.join(sorted(OWN_KEYS))}")
    return sentences
