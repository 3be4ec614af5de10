"""Locations as users and Spark's catalog write them, and the URIs that Spark reads back."""

from __future__ import annotations

import re
import subprocess
import sys
import uuid
from pathlib import Path

import obstore
import pytest
from obstore.store import MemoryStore

from dbt.adapters.zlayout.errors import UnsupportedError
from dbt.adapters.zlayout.store import check_create_if_absent, open_store, qualified
from dbt.adapters.zlayout.store.cloud import CloudStore
from dbt.adapters.zlayout.store.local import LocalStore
from dbt.adapters.zlayout.store.uri import without_login


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


@pytest.mark.parametrize("location", ["oss://b/t", "dbfs:/t", "w/t", "", "file:w/t", "file://host/w/t"])
def test_other_locations_are_refused_with_what_is_allowed(location: str) -> None:
    with pytest.raises(UnsupportedError, match=r"allowed are|full path|file:///path"):
        open_store(location)


def test_an_unknown_scheme_is_named() -> None:
    with pytest.raises(UnsupportedError, match=r"'oss'.*hdfs.*s3a.*location_root"):
        open_store("oss://bucket/t")


def test_a_known_scheme_without_the_promise_is_refused_with_the_reason() -> None:
    with pytest.raises(UnsupportedError, match=r"'wasbs' \(a rename there may overwrite; write abfss.*allowed are"):
        open_store("wasbs://container@account.blob.core.windows.net/t")


PROGRAM = """
import sys
from dbt.adapters.zlayout.errors import UnsupportedError
from dbt.adapters.zlayout.store import open_store
try:
    open_store(sys.argv[1])
except UnsupportedError as error:
    print(error)
"""


@pytest.mark.parametrize("scheme", ["hdfs", "viewfs"])
def test_without_a_jvm_a_hadoop_file_system_is_refused_with_what_to_do(scheme: str) -> None:
    """A process of its own, as a Python worker is one."""
    location = f"{scheme}://namenode/t"
    answer = subprocess.run([sys.executable, "-c", PROGRAM, location], capture_output=True, text=True, check=True)
    assert re.search(f"'{location}'.*JVM.*writer: spark", answer.stdout)


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


@pytest.mark.parametrize(
    "location",
    [
        "s3://key:secret@bucket/t",
        "s3a://key:se/cret@bucket/t",
        "s3://key:secret",
        "s3://key@bucket/t",
        "gs://:secret@bucket/t",
        "hdfs://user:secret@namenode:8020/t",
        "abfss://container:secret@account.dfs.core.windows.net/t",
        "file://user:secret@localhost/t",
        "oss://key:secret@bucket/t",
        "s3://bucket/t?X-Amz-Signature=secret",
        "abfss://container@account.dfs.core.windows.net/t?sv=1&sig=secret",
    ],
)
def test_login_details_in_a_location_are_refused_and_not_repeated(location: str) -> None:
    with pytest.raises(UnsupportedError, match="contains login details") as caught:
        open_store(location)
    shown = str(caught.value)
    assert not re.search("secret|cret@|key[@:]|user[@:]", shown)
    assert without_login(location) in shown


@pytest.mark.parametrize(
    "location",
    [
        "/w/a:b@c",
        "file:///w/a:b@c",
        "file:///w/a?b=c",
        "s3://bucket/a:b@c",
        "hdfs://namenode:8020/a@b",
        "hdfs://[::1]:8020/a",
        "abfss://container@account.dfs.core.windows.net/t",
    ],
)
def test_a_location_without_login_details_is_shown_as_it_is(location: str) -> None:
    assert without_login(location) == location


class _Counting(CloudStore):
    def __init__(self) -> None:
        super().__init__(f"s3://bucket/{uuid.uuid4().hex}", MemoryStore())
        self.creates = 0

    def create(self, path: str, data: bytes) -> None:
        self.creates += 1
        super().create(path, data)


class _Overwriting(_Counting):
    """As a service does that ignores the condition of a put."""

    def create(self, path: str, data: bytes) -> None:
        self.creates += 1
        obstore.put(self._objects, path, data)


def test_a_place_that_keeps_the_promise_is_tried_once_and_left_clean() -> None:
    store = _Counting()
    check_create_if_absent(store)
    check_create_if_absent(store)
    assert store.creates == 2
    assert store.list("", recursive=True) == []


def test_a_place_that_overwrites_is_refused_each_time_and_left_clean() -> None:
    store = _Overwriting()
    for _ in range(2):
        with pytest.raises(UnsupportedError, match=rf"{store.root_uri}.*overwrites.*If-None-Match.*location_root"):
            check_create_if_absent(store)
    assert store.creates == 4
    assert store.list("", recursive=True) == []


def test_a_local_place_costs_nothing(tmp_path: Path) -> None:
    check_create_if_absent(LocalStore(tmp_path))
    assert list(tmp_path.iterdir()) == []
