"""Profiles: defaults, errors, and settings that are never overridden."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest
import yaml
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.zlayout.adapter.session.credentials import ZlayoutCredentials
from dbt.include.zlayout import PACKAGE_PATH


def credentials(**profile: object) -> ZlayoutCredentials:
    data = ZlayoutCredentials.translate_aliases({"schema": "s", **profile})
    ZlayoutCredentials.validate(data)
    return ZlayoutCredentials.from_dict(data)


def test_a_profile_needs_only_a_schema() -> None:
    found = credentials()
    assert (found.type, found.method, found.schema, found.location_root) == ("zlayout", "session", "s", None)


@pytest.mark.parametrize("method", ["thrift", "http", "odbc", "carrier pigeon"])
def test_the_error_for_another_method_names_the_allowed_one(method: str) -> None:
    with pytest.raises(DbtRuntimeError) as caught:
        credentials(method=method)
    assert f"'{method}'" in str(caught.value)
    assert "'session'" in str(caught.value)
    assert "type: spark" in str(caught.value)


def test_the_error_for_a_misspelled_key_suggests_a_key() -> None:
    with pytest.raises(DbtRuntimeError, match=r"locaton_root.*did you mean 'location_root'"):
        credentials(locaton_root="/data")


def test_one_error_has_all_problems_of_a_profile() -> None:
    with pytest.raises(DbtRuntimeError) as caught:
        credentials(method="odbc", server_side_parameter={})
    assert "method" in str(caught.value)
    assert "did you mean 'server_side_parameters'" in str(caught.value)


def test_a_profile_without_schema_is_refused() -> None:
    with pytest.raises(DbtRuntimeError, match="schema"):
        ZlayoutCredentials.from_dict({})


def test_ansi_mode_is_off_as_in_dbt_spark_unless_the_profile_sets_it() -> None:
    assert credentials().server_side_parameters["spark.sql.ansi.enabled"] == "false"
    chosen = credentials(server_side_parameters={"spark.sql.ansi.enabled": True})
    assert chosen.server_side_parameters["spark.sql.ansi.enabled"] == "true"


def test_parameters_reach_spark_as_text() -> None:
    assert (
        credentials(server_side_parameters={"spark.sql.shuffle.partitions": 4}).server_side_parameters[
            "spark.sql.shuffle.partitions"
        ]
        == "4"
    )


@pytest.mark.parametrize(
    ("root", "expected"),
    [
        (None, None),
        ("/data/lake", "/data/lake/s"),
        ("/data/lake/", "/data/lake/s"),
        ("s3a://b/l", "s3a://b/l/s"),
        ("/", "/s"),
    ],
)
def test_tables_of_a_schema_are_in_its_folder_under_the_root(root: str | None, expected: str | None) -> None:
    assert credentials(location_root=root).schema_root("s") == expected


def test_a_relative_root_starts_at_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert credentials(location_root="./lake").schema_root("s") == str(tmp_path / "lake" / "s")
    assert credentials(location_root="file:/lake").schema_root("s") == "file:/lake/s"


def test_the_error_for_an_unknown_scheme_names_the_allowed_ones() -> None:
    with pytest.raises(DbtRuntimeError, match=r"location_root: 'foo://lake' has the scheme 'foo'.*allowed are .*s3a"):
        ZlayoutCredentials.validate({"schema": "s", "location_root": "foo://lake"})


def test_dbt_init_only_asks_for_keys_of_a_profile() -> None:
    template = yaml.safe_load((Path(PACKAGE_PATH) / "profile_template.yml").read_text())
    asked = set(template["prompts"]) - {"threads"}
    assert template["fixed"] == {"type": "zlayout"}
    assert asked <= {field.name for field in fields(ZlayoutCredentials)}


def test_the_sample_profile_is_a_valid_one() -> None:
    (profile,) = yaml.safe_load((Path(PACKAGE_PATH) / "sample_profiles.yml").read_text()).values()
    target = dict(profile["outputs"][profile["target"]])
    assert (target.pop("type"), target.pop("threads")) == ("zlayout", 1)
    assert credentials(**target).schema == "analytics"


def test_debug_shows_no_spark_configuration_because_it_may_hold_secrets() -> None:
    found = credentials(server_side_parameters={"spark.hadoop.fs.s3a.secret.key": "hush"}, location_root="/data")
    assert "hush" not in str(dict(found.connection_info()))
    assert dict(found.connection_info())["location_root"] == "/data"


def test_login_details_in_the_location_root_are_refused_and_not_repeated() -> None:
    with pytest.raises(DbtRuntimeError, match=r"location_root: 's3://…@bucket/x' contains login details") as caught:
        credentials(location_root="s3://key:secret@bucket/x")
    assert "secret" not in str(caught.value)
