"""What only the local store promises: modes, hidden unfinished files, errors of the file system."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dbt.adapters.zlayout.errors import AlreadyExistsError, StoreError, UnsupportedError
from dbt.adapters.zlayout.store.local import LocalStore
from dbt.adapters.zlayout.store.protocol import MOST_BYTES_READ


def test_files_get_the_mode_of_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        store = LocalStore(tmp_path)
        store.create("created", b"x")
        store.put("put", b"x")
    finally:
        os.umask(before)
    assert [oct((tmp_path / name).stat().st_mode & 0o777) for name in ("created", "put")] == ["0o640", "0o640"]


def test_a_failed_write_leaves_no_file_and_no_scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = LocalStore(tmp_path)

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    for write in (store.create, store.put):
        with pytest.raises(StoreError, match="No space left"):
            write("log/1", b"x")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_file_larger_than_any_metadata_is_refused_and_not_read(tmp_path: Path) -> None:
    with (tmp_path / "log.json").open("wb") as file:
        file.truncate(MOST_BYTES_READ + 1)  # a hole, which takes no disk
    with pytest.raises(StoreError, match=r"log\.json has 2,147,483,649 bytes; .* has at most 2,147,483,648"):
        LocalStore(tmp_path).read("log.json")


def test_a_file_system_without_hard_links_is_refused_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(UnsupportedError, match=r"hard links.*location_root"):
        LocalStore(tmp_path).create("log/1", b"x")


def test_a_place_that_is_a_file_is_named_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "lake").write_text("no folder")
    with pytest.raises(StoreError, match=rf"{tmp_path}/lake/t cannot hold a table: .*/lake is a file.*location_root"):
        LocalStore(tmp_path / "lake" / "t").create("log/1", b"x")


def test_a_file_in_place_of_a_folder_is_not_a_name_that_is_taken(tmp_path: Path) -> None:
    store, local = LocalStore(tmp_path), tmp_path / "finished"
    store.put("a/folder", b"")
    local.write_bytes(b"x")
    for write in (
        lambda: store.create("a/folder/1", b""),
        lambda: store.create("a/folder/deeper/1", b""),
        lambda: store.put("a/folder/1", b""),
        lambda: store.put_file("a/folder/1", local),
    ):
        with pytest.raises(StoreError, match="a/folder is a file, not a folder; move it away") as error:
            write()
        assert not isinstance(error.value, AlreadyExistsError)


def test_a_place_that_may_not_be_written_is_named_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(StoreError, match=r"Permission denied.*location_root"):
        LocalStore(tmp_path / "t").create("log/1", b"x")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(StoreError, match=rf"cannot write to {tmp_path}; set location_root"):
        LocalStore(tmp_path / "t").create("log/1", b"x")


def test_a_file_on_another_file_system_is_copied_and_then_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = LocalStore(tmp_path / "table")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(b"rows")
    replace = Path.replace

    def across(self: Path, target: Path) -> Path:
        if self == elsewhere:
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", across)
    store.put_file("k=1/part.parquet", elsewhere)
    assert store.read("k=1/part.parquet") == b"rows"
    assert not elsewhere.exists()
    assert [file.path for file in store.list("", recursive=True)] == ["k=1/part.parquet"]


def test_scratch_is_hidden_from_spark_and_below_the_root(tmp_path: Path) -> None:
    scratch = LocalStore(tmp_path).local_scratch()
    assert scratch.is_dir()
    assert scratch.relative_to(tmp_path).parts[0].startswith(".")


def test_of_several_processes_one_creates(tmp_path: Path) -> None:
    program = """
import sys
from dbt.adapters.zlayout.errors import AlreadyExistsError
from dbt.adapters.zlayout.store.local import LocalStore
store = LocalStore(sys.argv[1])
won = []
print("ready", flush=True)
input()
for version in range(50):
    try:
        store.create(f"log/{version}", sys.argv[2].encode())
        won.append(version)
    except AlreadyExistsError:
        pass
print(*won)
"""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path), str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )
        for number in range(3)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    answers = [process.communicate()[0].split() for process in processes]
    assert sorted(int(version) for won in answers for version in won) == list(range(50))
    store = LocalStore(tmp_path)
    for number, won in enumerate(answers):
        assert all(store.read(f"log/{version}") == str(number).encode() for version in won)
