"""Which slices a compaction takes, in what order and how many, and plans as the timeline keeps them."""

from __future__ import annotations

import json

import pytest

from dbt.adapters.zlayout.layout.compaction_plan import (
    CompactionOperation,
    choose,
    groups_of,
    operations_of,
    still_whole,
)
from dbt.adapters.zlayout.timeline.file_slices import FileSlice
from dbt.adapters.zlayout.timeline.files import DataFile
from dbt.adapters.zlayout.timeline.naming import data_file_path, log_file_path


def slice_of(name, base_bytes, *logs):
    """A slice with a base of a size, None for none, and logs of ``(day, size)``."""
    group = name * 16
    files = [
        DataFile(log_file_path("", group, f"202401{day:02}000000000", 0), (), 1, size, 5, group) for day, size in logs
    ]
    path = data_file_path("", group, "20230101000000000")
    base = None if base_bytes is None else DataFile(path, (), 1, base_bytes, 5, group)
    return FileSlice((), group, base, tuple(files))


SLICES = [
    slice_of("a", 1000, (3, 50), (4, 50), (5, 50)),
    slice_of("b", 10, (2, 100)),
    slice_of("c", 5000, (6, 400), (7, 1)),
    slice_of("d", None, (1, 7)),
]


@pytest.mark.parametrize(
    ("strategy", "order"), [("log_size", "cabd"), ("log_ratio", "bdac"), ("commits", "acbd"), ("age", "dbac")]
)
def test_each_strategy_puts_other_slices_first(strategy, order):
    assert "".join(each.group[0] for each in choose(SLICES, strategy)) == order


def test_a_budget_takes_the_first_and_what_else_fits():
    assert [each.group[0] for each in choose(SLICES, "log_size", max_bytes=1)] == ["c"]
    assert [each.group[0] for each in choose(SLICES, "age", max_bytes=1300)] == ["d", "b", "a"]
    assert [each.group[0] for each in choose(SLICES, "age", max_bytes=120)] == ["d", "b"]


def test_slices_of_a_plan_and_without_logs_are_left_out():
    assert [each.group[0] for each in choose(SLICES, "age", taken={"a" * 16, "d" * 16})] == ["b", "c"]
    assert choose([slice_of("e", 10)], "age") == []


def test_logs_alone_are_merged_where_there_are_two():
    found = choose(SLICES, "age", logs_only=True)
    assert [each.group[0] for each in found] == ["a", "c"]
    assert found[0].paths == found[0].logs
    assert found[0].size_bytes == 150


def test_plans_come_back_from_the_timeline_as_they_went_there():
    operations = choose(SLICES, "log_size")
    placed = CompactionOperation((("p", "x"), ("q", None)), "f" * 16, None, ("log",), logs_only=False, size_bytes=1)
    content = json.loads(json.dumps({"operations": [each.to_dict() for each in (*operations, placed)]}))
    assert operations_of(content) == [*operations, placed]
    assert groups_of([content, {}]) == {each.group for each in (*operations, placed)}


def test_a_slice_of_which_a_file_is_gone_is_stale():
    first, second = choose(SLICES, "age")[:2]
    whole, stale = still_whole([first, second], {*first.paths, *second.paths[1:]})
    assert (whole, stale) == ([first], [second])
