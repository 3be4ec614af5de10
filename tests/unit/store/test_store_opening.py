"""Locations as users and Spark's catalog write them, and the URIs that Spark reads back."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbt.adapters.zlayout.errors import UnsupportedError
from dbt.adapters.zlayout.store import open_store, qualified
from dbt.adapters.zlayout.store.cloud import CloudStore
from dbt.adapters.zlayout.store.local import LocalStore


@pytest.mark.parametrize(
    ("location", "folder"),
    [
        ("/w/t", "/w/t"),
        ("/w/a b%20c", "/w/a b%20c"),
        ("file:/w/t", "/w/t"),
        ("file:///w/t", "/w/t"),
        ("file://localhost/w/t", "/w/t"),
        ("file:/w/a%20b", "/w/a b"),
        ("FILE:/w/t", "/w/t"),
    ],
)
def test_local_locations_open_their_folder(location: str, folder: str) -> None:
    store = open_store(location)
    assert isinstance(store, LocalStore)
    assert store.local_path("x") == Path(folder) / "x"


@pytest.mark.parametrize("location", ["hdfs://n/t", "dbfs:/t", "w/t", "", "file:w/t", "file://host/w/t"])
def test_other_locations_are_refused_with_what_is_allowed(location: str) -> None:
    with pytest.raises(UnsupportedError, match=r"allowed are|full path|file:///path"):
        open_store(location)


def test_an_unknown_scheme_is_named() -> None:
    with pytest.raises(UnsupportedError, match=r"'hdfs'.*s3a.*location_root"):
        open_store("hdfs://namenode/t")


def test_cloud_locations_keep_the_scheme_of_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_SKIP_SIGNATURE", "true")
    store = open_store("s3a://bucket/warehouse/a%20b/")
    assert isinstance(store, CloudStore)
    assert store.root_uri == "s3a://bucket/warehouse/a%20b"


def test_the_root_uri_is_escaped() -> None:
    assert LocalStore("/w/a b/é%").root_uri == "file:///w/a%20b/%C3%A9%25"


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("a.parquet", "file:///t/a.parquet"),
        ("k=a%2Fb/x", "file:///t/k=a%252Fb/x"),
        ("k=a b/x", "file:///t/k=a%20b/x"),
        ("k=é/x", "file:///t/k=%C3%A9/x"),
        ('k=#?[]"\\^`{|}/x', "file:///t/k=%23%3F%5B%5D%22%5C%5E%60%7B%7C%7D/x"),
        ("k=a:b,c;d&e+f/x", "file:///t/k=a:b,c;d&e+f/x"),
    ],
)
def test_a_qualified_path_escapes_what_a_uri_may_not_hold(path: str, uri: str) -> None:
    assert qualified("file:///t", path) == uri
    assert qualified("file:///t/", path) == uri
