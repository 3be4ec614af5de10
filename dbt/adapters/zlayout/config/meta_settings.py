"""Settings under ``meta.zlayout``, which is where engines accept keys that they do not know."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dbt.adapters.zlayout.config.known_keys import unknown_settings
from dbt.adapters.zlayout.config.settings import LOCATION_ROOT, OWN_KEYS

_META, _OURS = "meta", "zlayout"
# dbt-spark's own macros read the key from the config.
_ALLOWED = frozenset(OWN_KEYS) - {LOCATION_ROOT.key}


def with_meta_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what is set in a config and in its ``meta.zlayout``. A setting in the config itself takes precedence.

    Other keys of ``meta.zlayout`` are left out; `meta_problems` names them.

    >>> with_meta_settings({"curve": "hilbert", "meta": {"zlayout": {"zorder": "id", "curve": "zorder"}}})["curve"]
    'hilbert'
    """
    found = _ours(config)
    settings = {key: found[key] for key in found if key in _ALLOWED} if isinstance(found, Mapping) else {}
    return {key: value for each in (settings, config) for key, value in each.items() if value is not None}


def settings_among(keys: Iterable[str], config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns those of some settings that are set in a config or in its ``meta.zlayout``.

    Args:
        keys: The settings.
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
    problems = unknown_settings((str(key) for key in found if key != LOCATION_ROOT.key), _ALLOWED)
    if LOCATION_ROOT.key in found:
        problems.append(f"{LOCATION_ROOT.key} is read from the config only; set it there")
    return [f"meta.zlayout: {each}" for each in problems]


def _ours(config: Mapping[str, Any]) -> object:
    meta = config.get(_META)
    return meta.get(_OURS) if isinstance(meta, Mapping) else None
