import pytest

from dbt.adapters.zlayout.adapter.materialize.model_settings import cluster_settings, read_model, unused_settings
from dbt.adapters.zlayout.config.known_keys import meta_problems, settings_among, with_meta_settings
from dbt.adapters.zlayout.errors import ConfigError


def model(**config):
    return {"name": "orders", "config": {"materialized": "zordered_table", **config}}


def test_a_model_takes_its_settings_from_meta_and_its_config_wins():
    found = read_model(model(curve="hilbert", meta={"zlayout": {"zorder": ["id"], "curve": "linear"}}), None)
    assert found.table_config.clustering.columns == (("id",),)
    assert found.table_config.clustering.curve == "hilbert"


def test_clustering_settings_come_from_meta_too():
    found = read_model(model(zorder="id", meta={"zlayout": {"cluster_max_bytes": "1gb"}}), None)
    assert found.cluster_settings["max_bytes"] == "1gb"


def test_hooks_pass_an_object_that_only_has_get():
    class Config:
        def get(self, key):
            return {"verify": True, "meta": {"zlayout": {"cluster_min_gain": 0.5}}}.get(key)

    assert cluster_settings(Config()) == {"verify": True, "cluster_min_gain": 0.5}
    assert settings_among(("verify", "cluster_min_gain", "curve"), Config()) == {
        "verify": True,
        "cluster_min_gain": 0.5,
    }


@pytest.mark.parametrize(
    ("meta", "problem"),
    [
        ({"zlayout": {"zordr": ["id"]}}, "meta.zlayout: `zordr`: did you mean `zorder`?"),
        ({"zlayout": {"owner": "me"}}, "meta.zlayout: `owner` is not a setting; allowed are "),
        ({"zlayout": {"unique_key": "id"}}, "meta.zlayout: `unique_key` is not a setting"),
        ({"zlayout": ["zorder"]}, "meta.zlayout: ['zorder'] is not a mapping"),
        ({"zlayout": {"location_root": "/lake"}}, "meta.zlayout: location_root is read from the config only"),
        ({"zlayout": {"curve": "spiral"}}, "curve: 'spiral'"),
        ({"zlayout": {1: "id"}}, "meta.zlayout: `1` is not a setting"),
    ],
)
def test_what_is_wrong_in_meta_is_named(meta, problem):
    with pytest.raises(ConfigError) as raised:
        read_model(model(zorder="id", meta=meta), None)
    assert any(each.startswith(problem) for each in raised.value.problems)


@pytest.mark.parametrize("config", [{}, {"meta": None}, {"meta": {}}, {"meta": {"owner": "me"}}, {"meta": "text"}])
def test_other_metadata_is_left_alone(config):
    assert with_meta_settings(config) == {key: value for key, value in config.items() if value is not None}
    assert meta_problems(config) == []


WRONG = {"zordr": ["id"], "location_root": "/lake", True: 1}


def test_each_key_that_meta_may_not_have_is_named_once_and_sets_nothing():
    config = {"meta": {"zlayout": WRONG}}
    problems = meta_problems(config)
    for key in map(str, WRONG):
        assert sum(key in each.split("allowed are")[0] for each in problems) == 1, key
    assert with_meta_settings(config) == config
    with pytest.raises(ConfigError) as raised:
        read_model(model(zorder="id", **config), None)
    assert list(raised.value.problems) == problems


@pytest.mark.parametrize("settings", [WRONG, ["zorder"], {"owner": "me"}])
def test_the_meta_of_a_view_is_checked_too(settings):
    with pytest.raises(ConfigError) as raised:
        unused_settings({"name": "orders", "config": {"materialized": "view", "meta": {"zlayout": settings}}})
    assert list(raised.value.problems) == meta_problems({"meta": {"zlayout": settings}})
