"""The registry of settings, and the signatures that repeat a part of it for the sake of types."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from dbt.adapters.zlayout.config.clustering import CLUSTER_SETTINGS
from dbt.adapters.zlayout.config.settings import OWN_KEYS, SETTINGS, Scope, Setting
from dbt.adapters.zlayout.table.ztable import ZTable

BY_KEY = {setting.key: setting for setting in SETTINGS if setting.scope is not Scope.PROFILE}


def test_a_key_is_declared_once() -> None:
    assert len(BY_KEY) == len([each for each in SETTINGS if each.scope is not Scope.PROFILE])
    assert set(OWN_KEYS) == {key for key, each in BY_KEY.items() if each.scope is not Scope.DBT}


@pytest.mark.parametrize("setting", BY_KEY.values(), ids=lambda setting: setting.key)
def test_a_default_is_a_value_that_a_user_may_write(setting: Setting[Any]) -> None:
    problems: list[str] = []
    assert setting.read({setting.key: setting.default}, problems) == setting.default_value
    assert problems == []


@pytest.mark.parametrize("method", [ZTable.write, ZTable.adopt])
def test_keywords_have_the_defaults_of_their_settings(method: Any) -> None:
    keywords = {each.name: each.default for each in inspect.signature(method).parameters.values()}
    named = {key: keywords[key] for key in keywords.keys() & set(OWN_KEYS)}
    assert named == {key: BY_KEY[key].default for key in named}


def test_write_takes_every_setting_of_a_table_and_names_it() -> None:
    keywords, documented = inspect.signature(ZTable.write).parameters, inspect.getdoc(ZTable.write) or ""
    for key, setting in BY_KEY.items():
        if setting.scope is Scope.TABLE:
            assert key in keywords
        elif setting.scope is Scope.MERGE_ON_READ:
            assert key in keywords or f"``{key}``" in documented


def test_cluster_takes_every_setting_of_a_clustering_and_names_it() -> None:
    documented = inspect.getdoc(ZTable.cluster) or ""
    named = [key for key in CLUSTER_SETTINGS if f"``{key}``" in documented]
    assert {*named, "cluster_max_bytes", "rewrite_all"} == set(CLUSTER_SETTINGS)
