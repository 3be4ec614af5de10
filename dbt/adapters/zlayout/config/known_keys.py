"""Unknown keys: suggestions for misspelled keys, and the keys of dbt and dbt-spark, which are never reported."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable

from dbt.adapters.zlayout.config.settings import OWN_KEYS, Scope, keys_of

DBT_KEYS = frozenset(keys_of(Scope.DBT)) | frozenset(
    """
    _extra access alias anchors as_columnstruct batch_size begin buckets build_after catalog_name check_cols
    clustered_by column_types columns concurrent_batches contract create_notebook cluster_id database
    dbt_valid_to_current delimiter deprecation_date description docs enabled entry_point error_if expected_rows
    expected_sql fail_calc file_format force freshness full_refresh grants group hard_deletes indexes index_url
    invalidate_hard_deletes job_cluster_config language latest_version latest_version_pointer limit lookback
    materialized merge_with_schema_evolution meta model name on_configuration_change on_error options packages
    partitions persist_docs post-hook post_hook pre-hook pre_hook predicates quote quote_columns quoting
    runtime_version schema severity snapshot_meta_column_names snapshot_table_column_names sql_header static_analysis
    store_failures store_failures_as strategy submission_method tags target_database target_schema tblproperties timeout
    transient type updated_at user_folder_for_python unlogged version versions warn_if where
    """.split()  # noqa: SIM905 # ninety words read better as text
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
        for sentence in near_misses([key], ())
        or [f"`{key}` is not a setting; allowed are {', '.join(sorted(allowed))}"]
    ]


def near_misses(keys: Iterable[str], known_other_keys: Collection[str]) -> list[str]:
    """Returns a sentence for each unknown key that resembles a setting of this package; ignores all others.

    >>> near_misses(["zorder_by", "retain_version", "tags"], DBT_KEYS)
    ['`zorder_by`: did you mean `zorder`?', '`retain_version`: did you mean `retain_versions`?']
    """
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
            sentences.append(f"`{key}`: no such key; remove it, or use one of {', '.join(sorted(OWN_KEYS))}")
    return sentences
