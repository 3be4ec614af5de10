"""`zorder: auto` keeps the table's keys until something is chosen, and a version stores why."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dbt.adapters.zlayout.config.auto_keys import AutoKeys
from dbt.adapters.zlayout.config.table_config import TableConfig, parse_table_config, read_stored, stored_settings
from dbt.adapters.zlayout.errors import ConfigError


def test_the_word_auto_is_no_column() -> None:
    config = parse_table_config({"zorder": " Auto ", "materialized": "zordered_table", "workload": ["a = 1"]})
    assert config.clustering.columns == ()
    assert config.auto_keys.wanted
    assert [each.sql for each in config.auto_keys.workload] == ["a = 1"]
    assert parse_table_config({"zorder": ["auto"]}).clustering.columns == (("auto",),)


def test_a_wrong_workload_is_named_with_the_other_problems() -> None:
    with pytest.raises(ConfigError) as error:
        parse_table_config({"zorder": "auto", "workload": [("a", 0)], "curve": "peano"})
    assert len(error.value.problems) == 2


def test_later_writes_keep_keys_and_reason() -> None:
    auto = parse_table_config({"zorder": "auto"})
    chosen = replace(
        auto,
        clustering=replace(auto.clustering, columns=(("a",), ("gone",))),
        auto_keys=replace(auto.auto_keys, why="cluster by a"),
    )
    after = auto.after(chosen, [("a",), ("b",)])
    assert (after.clustering.columns, after.auto_keys.why) == ((("a",),), "cluster by a")
    other = replace(auto, clustering=replace(auto.clustering, columns=(("b",),)))
    assert other.after(chosen, [("a",), ("b",)]).clustering.columns == (("b",),)
    fixed = parse_table_config({"zorder": "b"}).after(chosen, [("a",), ("b",)])
    assert (fixed.clustering.columns, fixed.auto_keys) == ((("b",),), AutoKeys())


def test_a_version_stores_that_keys_are_chosen_and_why() -> None:
    auto = parse_table_config({"zorder": "auto"})
    chosen = replace(auto, auto_keys=replace(auto.auto_keys, why="cluster by a"))
    assert read_stored(stored_settings(chosen), ()).auto_keys == AutoKeys(wanted=True, why="cluster by a")
    assert "auto_keys" not in stored_settings(TableConfig())
