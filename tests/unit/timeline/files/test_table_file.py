"""Files of other tables and other folders stay theirs, wherever they lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbt.adapters.zlayout.errors import UnsupportedError
from dbt.adapters.zlayout.store.local import LocalStore
from dbt.adapters.zlayout.timeline.files.naming import data_file_path
from dbt.adapters.zlayout.timeline.files.table_file import (
    FOLDER_NOTE,
    NOTE_BYTES,
    ManagementLevel,
    TableFile,
    check_not_inside_a_table,
    check_removable,
    create_table_file,
    put_folder_note,
)
from dbt.adapters.zlayout.timeline.retention.cleaning import clean
from dbt.adapters.zlayout.timeline.retention.orphans import orphans
from dbt.adapters.zlayout.timeline.transactions.recovery import delete_written

HOUR_MS = 3_600_000
LONG_AGO = "20200101000000000"
LOST = data_file_path("", "0" * 8, LONG_AGO)


def a_table(folder: Path) -> LocalStore:
    store = LocalStore(folder)
    create_table_file(store, TableFile.new(ManagementLevel.MANAGED, "z.t", 0))
    return store


def cleaned(table) -> set[str]:
    paths = set(clean(table.timeline(), 1, 0, 4_000_000_000_000, orphans=True).paths)
    return {path for path in paths if not path.startswith(".zlayout")}


@pytest.mark.parametrize("folder", ["inner", "k=1"])
def test_a_clean_leaves_the_files_of_a_table_inside_of_the_table(table, tmp_path: Path, folder: str) -> None:
    table.overwrite()
    inner = a_table(tmp_path / "t" / folder)
    inner.put(LOST, b"rows")
    table.store.put(LOST, b"rows")
    assert cleaned(table) == {LOST}
    assert [file.path for file in orphans(table.timeline())] == []
    delete_written(table.timeline(), [LONG_AGO])
    assert inner.exists(LOST)


def test_a_clean_takes_lost_files_from_the_folders_of_the_table_alone(table) -> None:
    table.overwrite()
    elsewhere = [f"{folder}/{LOST}" for folder in ("copy", "k=1", "a/b")]
    for path in (LOST, *elsewhere):
        table.store.put(path, b"rows")
    assert cleaned(table) == {LOST}
    assert [file.path for file in orphans(table.timeline())] == sorted(elsewhere)


def test_a_clean_follows_no_link_and_a_loop_of_links_is_no_failure(table, tmp_path: Path) -> None:
    table.overwrite()
    (tmp_path / "others").mkdir()
    (tmp_path / "others" / LOST).write_bytes(b"rows")
    (tmp_path / "t" / "linked").symlink_to(tmp_path / "others")
    (tmp_path / "t" / "loop").symlink_to(tmp_path / "t")
    (tmp_path / "t" / "itself.parquet").symlink_to(tmp_path / "t" / "itself.parquet")
    assert cleaned(table) == set()
    table.store.delete([f"linked/{LOST}"])
    assert (tmp_path / "others" / LOST).exists()


@pytest.mark.parametrize("below", ["t/new", "t/k=1/a/b", "link"])
def test_no_table_is_made_inside_of_another(tmp_path: Path, below: str) -> None:
    a_table(tmp_path / "t")
    (tmp_path / "link").symlink_to(tmp_path / "t" / "new")
    check_not_inside_a_table(str(tmp_path / "other" / "new"))
    with pytest.raises(
        UnsupportedError, match=r"is inside the folder of the table at .*set another schema or location_root"
    ):
        check_not_inside_a_table(str(tmp_path / below))


def test_a_folder_with_another_table_in_it_is_not_removed(tmp_path: Path) -> None:
    a_table(tmp_path / "t")
    check_removable(str(tmp_path / "t"))
    a_table(tmp_path / "t" / "k=1" / "inner")
    with pytest.raises(UnsupportedError, match="contains another table in the folder k=1/inner"):
        check_removable(str(tmp_path / "t"))


def test_a_linked_folder_is_not_removed(tmp_path: Path) -> None:
    a_table(tmp_path / "t")
    (tmp_path / "link").symlink_to(tmp_path / "t")
    with pytest.raises(UnsupportedError, match=r"link is a link to .*DROP TABLE"):
        check_removable(str(tmp_path / "link"))


class Counted(LocalStore):
    """Counts its calls."""

    calls = ()

    def stat(self, path):
        self.calls = (*self.calls, "stat")
        return super().stat(path)

    def put(self, path, data):
        self.calls = (*self.calls, "put")
        super().put(path, data)


def test_the_note_has_five_lines_that_any_terminal_shows():
    assert NOTE_BYTES.isascii()
    assert len(NOTE_BYTES.decode().splitlines()) == 5
    assert max(map(len, NOTE_BYTES.decode().splitlines())) <= 120


@pytest.mark.parametrize("before", [None, b"", b"the text of another release"])
def test_a_missing_or_other_note_is_written_and_then_costs_one_call(tmp_path, before):
    if before is not None:
        (tmp_path / FOLDER_NOTE).write_bytes(before)
    store = Counted(tmp_path)
    put_folder_note(store)
    assert store.calls == ("stat", "put")
    assert (tmp_path / FOLDER_NOTE).read_bytes() == NOTE_BYTES
    put_folder_note(store)
    assert store.calls == ("stat", "put", "stat")
