"""New rows to file groups: many to base files, few to small groups first, then a new one, in shares as planned."""

from __future__ import annotations

from collections import Counter

from dbt.adapters.zlayout.spark.merge_on_read.tagging import GroupShare, assign, slots_of
from dbt.adapters.zlayout.timeline.files.data_files import DataFile, DataFiles

# Ten bytes a row.
FILES = DataFiles.of(
    [
        DataFile("x1", (("p", "x"),), 50, 500, 0, "x1"),
        DataFile("x1 log", (("p", "x"),), 10, 100, 0, "x1"),
        DataFile("x2", (("p", "x"),), 30, 300, 0, "x2"),
        DataFile("y1", (("p", "y"),), 100, 1000, 0, "y1"),
    ],
    ("p",),
)


def test_small_groups_fill_up_before_a_new_one_comes():
    found = assign({("x",): 100, ("y",): 30, ("z",): 84}, FILES, small_file_bytes=800, target_file_bytes=10_000)
    assert found[("x",)][:2] == [GroupShare("x2", 50), GroupShare("x1", 20)]
    assert [each.rows for each in found[("x",)][2:]] == [30]
    assert [each.rows for each in found[("y",)]] == [30]
    assert found[("y",)][0].group != "y1"
    assert [each.rows for each in found[("z",)]] == [84]


def test_rows_that_make_a_file_of_their_own_get_no_group_for_logs():
    found = assign({("x",): 100, ("y",): 99, ("z",): 250}, FILES, small_file_bytes=800, target_file_bytes=8000)
    assert set(found) == {("y",)}


def test_a_table_without_rows_tells_no_size_of_a_record():
    assert [each.rows for each in assign({(): 3}, DataFiles.empty(), 1000, target_file_bytes=8192)[()]] == [3]
    assert assign({(): 4}, DataFiles.empty(), 1000, target_file_bytes=8192) == {}


def test_slots_share_rows_as_groups_do():
    count, slots = slots_of({("x",): [GroupShare("a", 75), GroupShare("b", 25)], ("y",): [GroupShare("c", 3)]})
    assert Counter(group for _, _, group in slots) == {"a": count * 3 // 4, "b": count // 4, "c": count}
    assert {slot for key, slot, _ in slots if key == ("x",)} == set(range(count))


def test_one_group_a_partition_needs_one_slot():
    assert slots_of({("x",): [GroupShare("a", 1000)], ("y",): [GroupShare("b", 1)]}) == (
        1,
        [(("x",), 0, "a"), (("y",), 0, "b")],
    )
    assert slots_of({}) == (1, [])
