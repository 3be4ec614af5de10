"""The note in a table's folder: written once, and again only when its text is another one."""

from __future__ import annotations

import pytest

from dbt.adapters.zlayout.publish.folder_note import FOLDER_NOTE, NOTE_BYTES, put_folder_note
from dbt.adapters.zlayout.store.local import LocalStore


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
