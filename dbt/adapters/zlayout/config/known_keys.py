"""Known keys: those of dbt and dbt-spark, suggestions for misspelled ones, and settings below ``meta.zlayout``.

Engines accept keys that they do not know below ``meta``.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from dbt.adapters.zlayout.config.settings import LOCATION_ROOT, OWN_KEYS, Scope, keys_of

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
_META = "meta"
# What `meta.zlayout` may hold. dbt-spark's own macros read this key from the config.
_ALLOWED_IN_META = frozenset(OWN_KEYS) - {LOCATION_ROOT.key}


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

    >>> near_misses(["zorder_by", "tags", "uniqe_key"], DBT_KEYS)
    ['`zorder_by`: did you mean `zorder`?', '`uniqe_key`: did you mean `unique_key`?']
    >>> near_misses(["zordering"], ())
    ['`zordering`: did you mean `zorder`?']
    """
    sentences = []
    dbts = [key for key in keys_of(Scope.DBT) if key in known_other_keys]
    for key in keys:
        if key in OWN_KEYS or key in known_other_keys:
            continue
        folded = key.lower().replace("-", "_")
        plain = folded.removeprefix(_PREFIX).lstrip("_")
        near = [_OTHER_WORDS[plain]] if plain in _OTHER_WORDS else difflib.get_close_matches(plain, OWN_KEYS, 3, 0.75)
        # A key with an ending is more likely than one with another beginning.
        near.sort(key=lambda each: not plain.startswith(each))
        near = near or difflib.get_close_matches(plain, dbts, 1, 0.9)
        if near:
            sentences.append(f"`{key}`: did you mean `{near[0]}`?")
        elif folded.startswith(_PREFIX):
            sentences.append(
                f"`{key}` is not a key of this adapter; remove it, or use one of {', '.join(sorted(OWN_KEYS))}"
            )
    return sentences


def with_meta_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what is set in a config and in its ``meta.zlayout``. A setting in the config itself takes precedence.

    Other keys of ``meta.zlayout`` are left out; `meta_problems` names them.

    >>> with_meta_settings({"curve": "hilbert", "meta": {"zlayout": {"zorder": "id", "curve": "zorder"}}})["curve"]
    'hilbert'
    """
    found = _ours(config)
    settings = {key: found[key] for key in found if key in _ALLOWED_IN_META} if isinstance(found, Mapping) else {}
    return {key: value for each in (settings, config) for key, value in each.items() if value is not None}


def settings_among(keys: Iterable[str], config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns those of some settings that are set in a config or in its ``meta.zlayout``.

    Args:
        config: A mapping, or the object that dbt passes to hooks, which only has ``get``.
    """
    keys = tuple(keys)
    found = with_meta_settings({key: config.get(key) for key in (*keys, _META)})
    return {key: found[key] for key in keys if key in found}


def meta_problems(config: Mapping[str, Any]) -> list[str]:
    """Returns a sentence for each problem of ``meta.zlayout`` itself, such as a key that is no setting."""
    found = _ours(config)
    if found is None:
        return []
    if not isinstance(found, Mapping):
        return [f"meta.zlayout: {found!r} is not a mapping; write settings under it, such as zorder: [id]"]
    problems = unknown_settings((str(key) for key in found if key != LOCATION_ROOT.key), _ALLOWED_IN_META)
    if LOCATION_ROOT.key in found:
        problems.append(f"{LOCATION_ROOT.key} is read from the config only; set it there")
    return [f"meta.zlayout: {each}" for each in problems]


def _ours(config: Mapping[str, Any]) -> object:
    meta = config.get(_META)
    return meta.get(_PREFIX) if isinstance(meta, Mapping) else None
