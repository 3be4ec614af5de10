"""What every store promises, as classes of tests; whoever has a store to try gives them a fixture ``store``."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable

import pytest

from dbt.adapters.zlayout.errors import AlreadyExistsError, FileMissingError, StoreError
from dbt.adapters.zlayout.store import Store

LEADS_OUT = ["../x", "/x", "k=1/../../x", "..", ".", "", "a//b", "./x", "x/", "x\x00"]
STRANGE_NAMES = ["k=a%2Fb/x 1.parquet", "é/日本/ñ.json", "k=a#?[]{}~'&+$!/y", "_hidden/.dot", "a.b/c,d;e=f", "%41/% "]
BIG_BYTES = 8 << 20


def listed(store: Store, prefix: str, *, recursive: bool = False) -> list[str]:
    """Paths of a listing without the store's own scratch files."""
    return [file.path for file in store.list(prefix, recursive=recursive) if not file.path.startswith(".zlayout")]


def together(works: list[Callable[[], None]]) -> None:
    """Runs each work in a thread of its own, all at once; the first failure is raised."""
    start = threading.Barrier(len(works))
    failures: list[BaseException] = []

    def run(work: Callable[[], None]) -> None:
        start.wait()
        try:
            work()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def winners(store: Store, path: str, contents: list[bytes]) -> list[bytes]:
    """Lets threads create one file, each with its own content; returns the contents of those that succeeded."""
    won: list[bytes] = []

    def create(content: bytes) -> Callable[[], None]:
        def work() -> None:
            try:
                store.create(path, content)
            except AlreadyExistsError:
                return
            won.append(content)

        return work

    together([create(content) for content in contents])
    return won


class StoreContract:
    """What one process at a time sees."""

    def test_what_is_put_is_read(self, store: Store) -> None:
        store.put("a/b.json", b"one")
        store.put("a/b.json", b"two")
        assert store.read("a/b.json") == b"two"

    def test_an_empty_file_is_a_file(self, store: Store) -> None:
        store.create("empty", b"")
        assert store.exists("empty")
        assert store.read("empty") == b""
        assert store.read_tail("empty", 8) == b""

    @pytest.mark.parametrize("name", STRANGE_NAMES)
    def test_names_are_taken_as_they_are(self, store: Store, name: str) -> None:
        store.create(name, b"x")
        assert store.read(name) == b"x"
        assert store.exists(name)
        assert store.stat(name).path == name
        assert listed(store, "", recursive=True) == [name]
        assert listed(store, name.rpartition("/")[0]) == [name]
        store.delete([name])
        assert not store.exists(name)

    def test_create_leaves_an_existing_file_alone(self, store: Store) -> None:
        store.create("x", b"first")
        with pytest.raises(AlreadyExistsError, match="x"):
            store.create("x", b"second")
        assert store.read("x") == b"first"

    def test_create_sees_a_file_that_was_put(self, store: Store) -> None:
        store.put("x", b"first")
        with pytest.raises(AlreadyExistsError):
            store.create("x", b"second")

    def test_a_name_is_free_again_after_a_deletion(self, store: Store) -> None:
        store.create("x", b"first")
        store.delete(["x"])
        store.create("x", b"second")
        assert store.read("x") == b"second"

    @pytest.mark.parametrize("path", LEADS_OUT)
    def test_nothing_is_deleted_by_a_path_that_may_lead_out(self, store: Store, path: str) -> None:
        store.put("x", b"kept")
        with pytest.raises(StoreError, match="is not the path of a file below the table's folder"):
            store.delete(iter([path, "x"]))
        assert listed(store, "", recursive=True) == ["x"]

    def test_a_file_larger_than_any_metadata_is_not_read(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys.modules[type(store).__module__], "MOST_BYTES_READ", 3)
        store.put("largest", b"123")
        store.put("larger", b"1234")
        assert store.read("largest") == b"123"
        with pytest.raises(StoreError, match="larger has 4 bytes; a metadata file has at most"):
            store.read("larger")
        assert store.read_tail("larger", 2) == b"34"

    def test_a_lost_create_leaves_no_scratch(self, store: Store) -> None:
        store.create("x", b"first")
        with pytest.raises(AlreadyExistsError):
            store.create("x", b"second")
        assert [file.path for file in store.list("", recursive=True)] == ["x"]

    @pytest.mark.parametrize("folder", ["", "log"])
    def test_a_missing_file_is_named(self, store: Store, folder: str) -> None:
        path = f"{folder}/nothing" if folder else "nothing"
        for look in (
            store.read,
            store.stat,
            lambda name: store.read_tail(name, 8),
            lambda name: store.read_ranges(name, [0], [1]),
        ):
            with pytest.raises(FileMissingError, match="nothing"):
                look(path)
        with pytest.raises(FileMissingError, match="nothing"):
            store.move(path, "target")
        assert not store.exists(path)
        assert not store.exists("target")

    def test_a_folder_is_no_file(self, store: Store) -> None:
        store.put("a/b/c", b"x")
        assert not store.exists("a/b")

    def test_a_missing_folder_lists_nothing(self, store: Store) -> None:
        assert store.list("nowhere") == []
        assert store.list("nowhere", recursive=True) == []
        assert store.list("", recursive=True) == []

    def test_a_file_is_no_folder_to_list(self, store: Store) -> None:
        store.put("a/b", b"x")
        assert store.list("a/b") == []

    def test_a_listing_stays_in_its_folder_and_is_sorted(self, store: Store) -> None:
        for path in ["a/2", "a/1", "a/b/3", "ab/4", "5", "a/B/6", "a/10", "a-/7"]:
            store.put(path, b"xyz")
        assert listed(store, "") == ["5"]
        assert listed(store, "a") == ["a/1", "a/10", "a/2"]
        assert listed(store, "a", recursive=True) == ["a/1", "a/10", "a/2", "a/B/6", "a/b/3"]
        assert listed(store, "", recursive=True) == ["5", "a-/7", "a/1", "a/10", "a/2", "a/B/6", "a/b/3", "ab/4"]

    def test_a_listing_goes_down_as_deep_as_there_are_folders(self, store: Store) -> None:
        deep = "/".join(f"k{level}=v" for level in range(30)) + "/file"
        store.create(deep, b"x")
        assert listed(store, "k0=v", recursive=True) == [deep]
        assert listed(store, "k0=v") == []
        store.delete_tree("k0=v")
        assert not store.exists(deep)

    def test_a_listing_tells_size_and_time_as_stat_does(self, store: Store) -> None:
        store.put("a/1", b"xyz")
        (found,) = store.list("a")
        assert found == store.stat("a/1")
        assert found.size_bytes == 3
        assert found.modified_ms > 1_600_000_000_000

    def test_a_big_file_comes_back_whole(self, store: Store) -> None:
        content = bytes(range(256)) * (BIG_BYTES // 256)
        store.create("big", content)
        assert store.stat("big").size_bytes == BIG_BYTES
        assert store.read("big") == content

    def test_the_tail_of_a_file_is_its_last_bytes(self, store: Store) -> None:
        store.put("a", b"0123456789")
        assert store.read_tail("a", 3) == b"789"
        assert store.read_tail("a", 10) == b"0123456789"
        assert store.read_tail("a", 64) == b"0123456789"

    def test_parts_of_a_file_come_in_the_order_asked_for(self, store: Store) -> None:
        store.put("a", b"0123456789")
        assert store.read_ranges("a", [7, 0, 2], [3, 1, 4]) == [b"789", b"0", b"2345"]
        assert store.read_ranges("a", [], []) == []

    def test_a_part_beyond_the_end_is_an_error(self, store: Store) -> None:
        store.put("a", b"0123456789")
        with pytest.raises(StoreError):
            store.read_ranges("a", [0, 8], [2, 4])

    def test_put_file_moves_a_local_file(self, store: Store) -> None:
        for content in (b"rows", b"other rows"):
            local_file = store.local_scratch() / "finished é"
            local_file.write_bytes(content)
            store.put_file("k=1/part.parquet", local_file)
            assert store.read("k=1/part.parquet") == content
            assert not local_file.exists()

    def test_move_renames_within_the_store(self, store: Store) -> None:
        store.put("staging/out/k=a%20b/part 1", b"rows")
        store.put("k=a%20b/there", b"old")
        store.move("staging/out/k=a%20b/part 1", "k=a%20b/new")
        store.move("k=a%20b/new", "k=a%20b/there")
        assert listed(store, "", recursive=True) == ["k=a%20b/there"]
        assert store.read("k=a%20b/there") == b"rows"

    def test_deleting_what_is_gone_is_no_error(self, store: Store) -> None:
        store.put("a", b"x")
        store.put("b", b"x")
        store.delete(["nothing", "a", "no/where", "b"])
        assert listed(store, "", recursive=True) == []

    def test_a_tree_is_deleted_whole_and_alone(self, store: Store) -> None:
        for path in ["a/1", "a/b/2", "ab/3"]:
            store.put(path, b"x")
        store.delete_tree("a")
        store.delete_tree("nowhere")
        assert listed(store, "", recursive=True) == ["ab/3"]
        store.delete_tree("")
        assert listed(store, "", recursive=True) == []

    def test_local_paths_hold_the_bytes(self, store: Store) -> None:
        store.put("a/b c", b"x")
        local = store.local_path("a/b c")
        assert local is None or local.read_bytes() == b"x"


class StoreRaces:
    """What several at once see."""

    def test_of_many_creators_one_wins_and_its_file_is_whole(self, store: Store) -> None:
        contents = [bytes([65 + number]) * 50_000 for number in range(8)]
        for version in range(10):
            won = winners(store, f"log/{version}", contents)
            assert won == [store.read(f"log/{version}")]

    def test_a_reader_sees_a_created_file_whole_or_not_at_all(self, store: Store) -> None:
        content = b"x" * (1 << 20)
        seen: list[int] = []

        def create() -> None:
            for version in range(5):
                store.create(f"log/{version}", content)

        def read() -> None:
            version = 0
            while version < 5:
                try:
                    seen.append(len(store.read(f"log/{version}")))
                    version += 1
                except FileMissingError:  # noqa: PERF203 - the reader is early
                    continue

        together([create, read, read])
        assert set(seen) == {len(content)}

    def test_a_reader_sees_the_old_or_the_new_file_while_it_is_replaced(self, store: Store) -> None:
        versions = [bytes([97 + number]) * (200_000 + number) for number in range(8)]
        store.put("hint", versions[0])
        done = threading.Event()
        seen: list[bytes] = []

        def replace() -> None:
            try:
                for content in versions:
                    store.put("hint", content)
            finally:
                done.set()

        def read() -> None:
            while not done.is_set():
                seen.append(store.read("hint"))

        together([replace, read, read])
        assert seen
        assert set(seen) <= set(versions)
        assert store.read("hint") == versions[-1]
