"""The manifest of either dbt engine, which is not trusted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from dbt.artifacts.schemas.manifest import WritableManifest

from dbt.adapters.zlayout.adapter.node_lookup import table_of
from dbt.adapters.zlayout.cli.manifest import Manifest
from dbt.adapters.zlayout.errors import ConfigError

OF_V2 = Path(__file__).parents[2] / "fixtures" / "manifest_v2.json"
NODE = {"resource_type": "model", "name": "orders", "unique_id": "model.p.orders", "schema": "s", "alias": "o"}


def written(folder, content):
    path = folder / "manifest.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_the_manifest_of_the_other_engine_gives_the_settings_below_meta():
    """The program itself wrote the file, as a slow test of the command line checks; dbt-core reads it too."""
    assert WritableManifest.from_dict(json.loads(OF_V2.read_bytes())).metadata.dbt_version == "2.0.0-preview.196"
    (node,) = Manifest.read(OF_V2).tables().values()
    assert table_of("orders", {node["unique_id"]: node}) == "`main`.`of_v2`"
    assert {key: node["config"][key] for key in ("zorder", "target_file_size")} == {
        "zorder": ["k"],
        "target_file_size": 4000,
    }


def test_only_what_becomes_a_table_is_taken(tmp_path):
    nodes = {"m": NODE, "t": {"resource_type": "test", "name": 1}, "s": {**NODE, "resource_type": "seed"}, "x": None}
    assert set(Manifest.read(written(tmp_path, {"nodes": nodes})).tables()) == {"m", "s"}


def test_tests_of_this_package_are_taken_too(tmp_path):
    def a_test(kind):
        return {**NODE, "resource_type": "test", "test_metadata": {"name": kind, "kwargs": {"predicate": "a = 1"}}}

    nodes = {"own": a_test("zlayout_prunes_at_least"), "other": a_test("not_null"), "odd": a_test(7)}
    (found,) = Manifest.read(written(tmp_path, {"nodes": nodes})).tables().values()
    assert found["test_metadata"]["kwargs"] == {"predicate": "a = 1"}


@pytest.mark.parametrize(
    ("node", "config"),
    [
        ({}, {}),
        ({"config": None}, {}),
        ({"config": {"zorder": ["k"], "publish": None}}, {"zorder": ["k"]}),
        ({"config": {"meta": {"zlayout": {"zorder": "k"}}}}, {"zorder": "k"}),
        ({"meta": {"zlayout": {"zorder": "k"}}}, {"zorder": "k"}),
        ({"config": {"meta": {}}, "meta": {"zlayout": {"zorder": "k"}}}, {"zorder": "k"}),
        (
            {"config": {"zorder": "own", "meta": {"zlayout": {"zorder": "k", "verify": True}}}},
            {"zorder": "own", "verify": True},
        ),
        ({"config": {"meta": {"zlayout": "text"}}, "meta": []}, {}),
    ],
)
def test_settings_come_from_the_config_and_else_from_meta(tmp_path, node, config):
    (found,) = Manifest.read(written(tmp_path, {"nodes": {"m": {**NODE, **node}}})).tables().values()
    assert {key: value for key, value in found["config"].items() if key != "meta"} == config


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "cannot be read"),
        ("[" * 100_000, "cannot be read"),
        ("[]", "is not a manifest"),
        ('{"nodes": []}', "is not a manifest"),
        (
            {"nodes": {"m": {**NODE, "schema": None, "alias": 3}}},
            r"m: schema is None, not text\n.*m: alias is 3, not text",
        ),
    ],
)
def test_a_file_that_is_no_manifest_is_refused(tmp_path, content, message):
    with pytest.raises(ConfigError, match=message):
        Manifest.read(written(tmp_path, content)).tables()


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"nowhere.json.*\n.*target/manifest.json"):
        Manifest.read(tmp_path / "nowhere.json")
