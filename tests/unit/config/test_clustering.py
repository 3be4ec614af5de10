"""Settings of clustering: what they may be, and what is said where they are not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dbt.adapters.zlayout.config.clustering import (
    AutoKeys,
    ClusterStrategy,
    ReclusteringConfig,
    parse_reclustering,
    parse_strategy,
)
from dbt.adapters.zlayout.config.table_config import TableConfig, parse_table_config, read_stored, stored_settings
from dbt.adapters.zlayout.errors import ConfigError


def test_without_settings_nothing_is_clustered_unasked():
    problems = []
    assert parse_reclustering({}, problems) == ReclusteringConfig()
    assert (problems, ReclusteringConfig().mode) == ([], "off")


def test_every_setting_is_read():
    found = parse_table_config(
        {
            "clustering": "Inline",
            "cluster_every": "5",
            "cluster_min_gain": "0.1",
            "cluster_max_bytes": "10gb",
            "min_file_size": "64mb",
            "max_file_size": 300_000_000,
            "max_group_size": "1tb",
            "min_input_files": 3,
            "max_concurrent_groups": 2,
            "partial_progress": True,
            "max_commits": 4,
            "rewrite_all": "false",
            "verify": "true",
        }
    ).reclustering
    assert found == ReclusteringConfig(
        mode="inline",
        every=5,
        min_gain=0.1,
        max_bytes=10 << 30,
        min_file_bytes=64 << 20,
        max_file_bytes=300_000_000,
        max_group_bytes=1 << 40,
        min_input_files=3,
        max_concurrent_groups=2,
        partial_progress=True,
        max_commits=4,
        rewrite_all=False,
        verify=True,
    )


def test_sizes_of_files_follow_the_wanted_size():
    assert ReclusteringConfig().file_limits(1000) == (750, 1800)
    assert ReclusteringConfig(min_file_bytes=1, max_file_bytes=2).file_limits(1000) == (1, 2)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"clustering": "nightly"}, "clustering: 'nightly' is not one of off, inline, deferred"),
        ({"cluster_every": 0}, "cluster_every: 0 is not a whole number from 1"),
        ({"cluster_min_gain": 20}, "cluster_min_gain: 20 is not a share between 0 and 1, such as 0.2"),
        ({"cluster_min_gain": "much"}, "cluster_min_gain: 'much'"),
        ({"cluster_min_gain": True}, "cluster_min_gain: True"),
        ({"cluster_max_bytes": "10"}, "cluster_max_bytes: '10' is below 1kb"),
        ({"max_group_size": "big"}, "max_group_size: 'big' is not a size"),
        ({"min_file_size": "2mb", "max_file_size": "1mb"}, "min_file_size: '2mb' is not below max_file_size ('1mb')"),
        ({"min_input_files": 0}, "min_input_files: 0 is not a whole number from 1"),
        ({"partial_progress": "perhaps"}, "partial_progress: 'perhaps' is not true or false"),
        ({"cluster_evry": 3}, "did you mean `cluster_every`?"),
    ],
)
def test_a_wrong_setting_says_what_is_allowed(settings, message):
    with pytest.raises(ConfigError) as error:
        parse_table_config(settings)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("strategy", "sort_by", "found"),
    [
        (None, None, ClusterStrategy()),
        ("Curve", None, ClusterStrategy("curve")),
        ("binpack", None, ClusterStrategy("binpack")),
        ("sort", "a, b.c", ClusterStrategy("sort", (("a",), ("b", "c")))),
        ("sort", ["a, b"], ClusterStrategy("sort", (("a, b",),))),
    ],
)
def test_strategies_are_read(strategy, sort_by, found):
    problems = []
    assert (parse_strategy(strategy, sort_by, problems), problems) == (found, [])


@pytest.mark.parametrize(
    ("strategy", "sort_by", "message"),
    [
        ("zip", None, "strategy: 'zip' is not one of curve, binpack, sort"),
        (7, None, "strategy: 7 is not one of curve, binpack, sort"),
        ("sort", None, "sort_by: strategy 'sort' needs the columns to sort by"),
        ("sort", [], "sort_by: strategy 'sort' needs the columns"),
        ("sort", "a, a", "sort_by: column 'a' is listed twice"),
        ("sort", 7, "sort_by: 7 is not a list of columns"),
        ("binpack", ["a"], "sort_by: strategy 'binpack' does not sort by columns; set strategy 'sort'"),
        (None, ["a"], "sort_by: strategy 'curve' does not sort by columns"),
    ],
)
def test_a_wrong_strategy_says_what_is_allowed(strategy, sort_by, message):
    problems = []
    parse_strategy(strategy, sort_by, problems)
    assert len(problems) == 1
    assert problems[0].startswith(message)


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
