"""The contract that every store keeps; each test runs on each of them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import obstore.store
import pytest

from dbt.adapters.zlayout.errors import AlreadyExistsError, FileMissingError
from dbt.adapters.zlayout.store import Store
from dbt.adapters.zlayout.store.cloud import CloudStore
from dbt.adapters.zlayout.store.local import LocalStore

STRANGE_NAMES = ["k=a%2Fb/x 1.parquet", "é/日本/ñ.json", "k=a:b#?[]{}~'&+$!/y", "_hidden/.dot", "a.b/c,d;e=f"]


def _local(folder: Path) -> Store:
    return LocalStore(folder / "table é")


def _memory(folder: Path) -> Store:
    return CloudStore("s3://bucket/table", obstore.store.MemoryStore())


def _obstore_local(folder: Path) -> Store:
    (folder / "bucket").mkdir()
    return CloudStore("s3://bucket/table", obstore.store.LocalStore(prefix=folder / "bucket"))


@pytest.fixture(params=[_local, _memory, _obstore_local], ids=["local", "memory", "obstore_local"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    make: Callable[[Path], Store] = request.param
    return make(tmp_path)


def _listed(store: Store, prefix: str, *, recursive: bool = False) -> list[str]:
    return [file.path for file in store.list(prefix, recursive=recursive) if not file.path.startswith(".zlayout")]


def test_what_is_put_is_read(store: Store) -> None:
    store.put("a/b.json", b"one")
    store.put("a/b.json", b"two")
    assert store.read("a/b.json") == b"two"


def test_an_empty_file_is_a_file(store: Store) -> None:
    store.create("empty", b"")
    assert store.exists("empty")
    assert store.read("empty") == b""


@pytest.mark.parametrize("name", STRANGE_NAMES)
def test_names_are_taken_as_they_are(store: Store, name: str) -> None:
    store.create(name, b"x")
    assert store.read(name) == b"x"
    assert store.exists(name)
    assert store.stat(name).path == name
    assert _listed(store, "", recursive=True) == [name]
    assert _listed(store, name.rpartition("/")[0]) == [name]
    store.delete([name])
    assert not store.exists(name)


def test_create_leaves_an_existing_file_alone(store: Store) -> None:
    store.create("x", b"first")
    with pytest.raises(AlreadyExistsError, match="x"):
        store.create("x", b"second")
    assert store.read("x") == b"first"


def test_create_sees_a_file_that_was_put(store: Store) -> None:
    store.put("x", b"first")
    with pytest.raises(AlreadyExistsError):
        store.create("x", b"second")


def test_of_many_creators_one_wins(store: Store) -> None:
    start = threading.Barrier(8)
    won: list[int] = []

    def create(number: int) -> None:
        start.wait()
        try:
            store.create("log/0", str(number).encode())
        except AlreadyExistsError:
            return
        won.append(number)

    threads = [threading.Thread(target=create, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [str(number).encode() for number in won] == [store.read("log/0")]


@pytest.mark.parametrize("folder", ["", "log"])
def test_a_missing_file_is_named(store: Store, folder: str) -> None:
    path = f"{folder}/nothing" if folder else "nothing"
    with pytest.raises(FileMissingError, match="nothing"):
        store.read(path)
    with pytest.raises(FileMissingError, match="nothing"):
        store.stat(path)
    assert not store.exists(path)


def test_a_folder_is_no_file(store: Store) -> None:
    store.put("a/b/c", b"x")
    assert not store.exists("a/b")


def test_a_missing_folder_lists_nothing(store: Store) -> None:
    assert store.list("nowhere") == []
    assert store.list("nowhere", recursive=True) == []


def test_a_listing_stays_in_its_folder_and_is_sorted(store: Store) -> None:
    for path in ["a/2", "a/1", "a/b/3", "ab/4", "5"]:
        store.put(path, b"xyz")
    assert _listed(store, "") == ["5"]
    assert _listed(store, "a") == ["a/1", "a/2"]
    assert _listed(store, "a", recursive=True) == ["a/1", "a/2", "a/b/3"]
    assert _listed(store, "", recursive=True) == ["5", "a/1", "a/2", "a/b/3", "ab/4"]


def test_a_listing_tells_size_and_time_as_stat_does(store: Store) -> None:
    store.put("a/1", b"xyz")
    (listed,) = store.list("a")
    assert listed == store.stat("a/1")
    assert listed.size_bytes == 3
    assert listed.modified_ms > 1_600_000_000_000


def test_put_file_moves_a_local_file(store: Store) -> None:
    local_file = store.local_scratch() / "finished"
    local_file.write_bytes(b"rows")
    store.put_file("k=1/part.parquet", local_file)
    assert store.read("k=1/part.parquet") == b"rows"
    assert not local_file.exists()


def test_deleting_what_is_gone_is_no_error(store: Store) -> None:
    store.put("a", b"x")
    store.put("b", b"x")
    store.delete(["nothing", "a", "no/where", "b"])
    assert _listed(store, "", recursive=True) == []


def test_a_tree_is_deleted_whole_and_alone(store: Store) -> None:
    for path in ["a/1", "a/b/2", "ab/3"]:
        store.put(path, b"x")
    store.delete_tree("a")
    store.delete_tree("nowhere")
    assert _listed(store, "", recursive=True) == ["ab/3"]
    store.delete_tree("")
    assert _listed(store, "", recursive=True) == []


def test_local_paths_hold_the_bytes(store: Store) -> None:
    store.put("a/b c", b"x")
    local = store.local_path("a/b c")
    assert local is None or local.read_bytes() == b"x"
