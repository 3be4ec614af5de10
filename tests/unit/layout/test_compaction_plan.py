"""Which slices a compaction takes, in what order and how many, and plans as the timeline keeps them."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pyarrow as pa
import pytest

from dbt.adapters.zlayout.config.table_type import INSTANT, OP, SEQ, TableTypeConfig
from dbt.adapters.zlayout.index.statistics.column_stats import AlignedStatistics
from dbt.adapters.zlayout.layout.compaction_plan import (
    CompactionOperation,
    MergeThresholds,
    choose,
    deletes_in_logs,
    groups_of,
    is_due,
    oldest_records,
    operations_of,
    still_whole,
)
from dbt.adapters.zlayout.pruning.statistics.column_bounds import ColumnBounds
from dbt.adapters.zlayout.timeline.files.data_files import DataFile, DataFiles
from dbt.adapters.zlayout.timeline.files.naming import data_file_path, log_file_path
from dbt.adapters.zlayout.timeline.log.file_slices import FileSlice, slices_with_logs


def slice_of(name, base_bytes, *logs):
    """A slice with a base of a size, None for none, and logs of ``(day, size)``."""
    group = name * 16
    files = [
        DataFile(log_file_path("", group, f"202401{day:02}000000000", 0), (), 1, size, 5, group) for day, size in logs
    ]
    path = data_file_path("", group, "20230101000000000")
    base = None if base_bytes is None else DataFile(path, (), 1, base_bytes, 5, group)
    oldest = f"202401{min((day for day, _ in logs), default=0):02}000000000"
    return FileSlice((), group, base, tuple(files), oldest_record=oldest)


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


def test_only_slices_of_which_the_merge_pays_are_taken():
    small = slice_of("e", 1000, *((day, 2) for day in range(1, 8)))
    found = choose([*SLICES, small], "age", thresholds=MergeThresholds(0.1, 6))
    assert [(each.group[0], each.logs_only) for each in found] == [
        ("d", False),
        ("e", True),
        ("b", False),
        ("a", False),
    ]
    assert [each.group[0] for each in choose(SLICES, "age", thresholds=MergeThresholds(0.0, 1))] == ["d", "b", "a", "c"]
    assert choose([small], "age", thresholds=MergeThresholds(0.1, 7)) == []


def test_a_log_larger_than_all_smaller_ones_together_is_not_merged_again():
    merged_before = slice_of("a", 100_000, (1, 900), *((day, 20) for day in range(2, 25)))
    (found,) = choose([merged_before], "age", thresholds=MergeThresholds(0.1, 20))
    assert found.logs == tuple(log.path for log in merged_before.logs[1:])
    assert found.size_bytes == 460
    alike = slice_of("a", 100_000, (1, 400), *((day, 20) for day in range(2, 25)))
    (found,) = choose([alike], "age", thresholds=MergeThresholds(0.1, 20))
    assert len(found.logs) == 24


def test_it_is_looked_at_after_every_so_many_commits():
    days = [[(day, 1) for day in range(1, commits + 1)] for commits in range(1, 12)]
    assert [len(each) for each in days if is_due([slice_of("a", 9, *each), slice_of("b", 9, *each)], 5)] == [5, 10]


def test_it_is_looked_at_once_a_log_record_is_old():
    young, old, before = slice_of("a", 9, (9, 1)), slice_of("b", 9, (3, 1)), "20240104000000000"
    assert not is_due([young, old], 5)
    assert is_due([young, old], 5, before)
    assert not is_due([young], 5, before)
    assert not is_due([], 5, before)


def test_a_merged_log_is_as_old_as_its_oldest_record():
    merged, other = slice_of("a", 100_000, (9, 1)), slice_of("b", 100_000, (5, 1))
    files = DataFiles.of([*merged.logs, *other.logs])
    instants = pa.array([20240101000000000, None])
    known, none = pa.array([True, True]), pa.array([0, 0])
    bounds = ColumnBounds(pa.int64(), instants, instants, known, known, none, none)
    found = oldest_records(files, AlignedStatistics(files["row_count"].combine_chunks(), {(INSTANT,): bounds}))
    assert found == {merged.logs[0].path: "20240101000000000"}
    slices = slices_with_logs(files, found)
    assert [each.oldest_record for each in slices] == ["20240101000000000", "20240105000000000"]
    before = "20240102000000000"
    assert is_due(slices, 5, before)
    thresholds = MergeThresholds(0.1, 20, logs_before=before)
    # A slice without a base file is merged in any case.
    based = [replace(each, base=merged.base) for each in slices]
    assert [each.group[0] for each in choose(based, "age", thresholds=thresholds)] == ["a"]
    assert [each.group[0] for each in choose(slices, "age")] == ["a", "b"]
    assert [each.group[0] for each in choose(slices_with_logs(files), "age")] == ["b", "a"]


@pytest.mark.parametrize("told", [-1, 5, 20240199000000000, 99990101000000000])
def test_an_age_that_no_log_record_can_have_is_not_believed(told):
    log = slice_of("a", 9, (9, 1)).logs[0]
    files, value = DataFiles.of([log]), pa.array([told])
    bounds = ColumnBounds(pa.int64(), value, value, pa.array([True]), pa.array([True]), pa.array([0]), pa.array([0]))
    found = oldest_records(files, AlignedStatistics(files["row_count"].combine_chunks(), {(INSTANT,): bounds}))
    (only,) = slices_with_logs(files, found)
    assert only.oldest_record == "20240109000000000"


def test_without_statistics_a_log_is_as_old_as_its_commit():
    files = DataFiles.of(slice_of("a", 9, (9, 1), (3, 1)).logs)
    assert oldest_records(files, AlignedStatistics(files["row_count"].combine_chunks(), {})) == {}
    assert slices_with_logs(files)[0].oldest_record == "20240103000000000"


def test_a_slice_with_an_old_log_is_merged_whatever_its_size():
    slices = [slice_of("a", 100_000, (3, 1)), slice_of("b", 100_000, (9, 1)), slice_of("c", 100_000, (9, 1), (2, 1))]
    found = choose(slices, "age", thresholds=MergeThresholds(0.1, 20, logs_before="20240104000000000"))
    assert {each.group[0] for each in found} == {"a", "c"}
    assert not any(each.logs_only for each in found)


def test_a_slice_is_merged_once_too_many_of_its_rows_are_deleted():
    def deleting(name, rows):
        found = slice_of(name, 100_000, (3, 1), (4, 1))
        return replace(found, base=replace(found.base, row_count=rows))

    slices = [deleting("a", 100), deleting("b", 101), replace(deleting("c", 1), base=None)]
    deletes = {log.path: 15 for each in slices for log in each.logs}
    thresholds = MergeThresholds(0.1, 20, 0.29999, deletes)
    assert [each.group[0] for each in choose(slices[:2], "age", thresholds=thresholds)] == ["a"]
    assert choose(slices[:2], "age", thresholds=MergeThresholds(0.1, 20, 0.3, deletes)) == []


def told(files, operations, places_without_number):
    """Statistics of logs: least and greatest operation, and how many records have no place; None if that is unknown."""
    known, none = pa.array([True] * len(files)), pa.array([0] * len(files))
    least, greatest = (pa.array(each, pa.string()) for each in zip(*operations, strict=True))
    columns = {(OP,): ColumnBounds(pa.string(), least, greatest, known, known, none, none)}
    if places_without_number is not None:
        nulls = pa.array(places_without_number, pa.int64())
        columns[SEQ,] = ColumnBounds(pa.int64(), none, none, known, known, nulls, none)
    return AlignedStatistics(files["row_count"].combine_chunks(), columns)


def test_deletes_of_a_log_are_counted_beside_its_upserts():
    logs = [replace(log, row_count=9) for each in SLICES for log in each.logs]
    files = DataFiles.of(logs)
    paths = files["path"].to_pylist()
    both, only, none = ("delete", "upsert"), ("delete", "delete"), ("upsert", "upsert")
    operations = [both, only, none, both, both, (None, None), only]
    assert deletes_in_logs(files, told(files, operations, [4, 9, 0, 0, None, 5, 0])) == {
        paths[0]: 4,
        paths[1]: 9,
        paths[6]: 9,  # of an earlier release
    }
    # An index of an earlier release knows nothing of places.
    assert deletes_in_logs(files, told(files, operations, None)) == {paths[1]: 9, paths[6]: 9}
    assert deletes_in_logs(files, AlignedStatistics(files["row_count"].combine_chunks(), {})) == {}


ROW_BYTES, LOG_BYTES = 30, 4000


def written_by_compactions(rows, groups, share, rounds):
    """Bytes of logs, and bytes that compactions at default settings write, of a table that takes random changes."""
    config, rng = TableTypeConfig(), random.Random(1)
    thresholds = MergeThresholds(config.compaction_min_log_ratio, config.compaction_max_logs)
    base = rows // groups * ROW_BYTES
    names = [f"{number:016x}" for number in range(groups)]
    bases = {name: data_file_path("", name, "20230101000000000") for name in names}
    logs = {name: {} for name in names}
    logged = compacted = 0
    for instant in range(1, rounds + 1):
        for name in names:
            path = log_file_path("", name, f"2024{instant:013}", 0)
            size = LOG_BYTES + round(rows * share / groups * ROW_BYTES * rng.uniform(0.8, 1.2))
            logs[name][path] = size
            logged += size
        slices = [
            FileSlice(
                (),
                name,
                DataFile(bases[name], (), 1, base, 5, name),
                tuple(DataFile(path, (), 1, size, 5, name) for path, size in sorted(logs[name].items())),
            )
            for name in names
        ]
        if not is_due(slices, config.compact_every):
            continue
        for each in choose(slices, config.compaction_strategy, thresholds=thresholds):
            sizes = [logs[each.group].pop(path) for path in each.logs]
            if each.logs_only:
                # One footer is left of many.
                size = sum(sizes) - LOG_BYTES * (len(sizes) - 1)
                logs[each.group][log_file_path("", each.group, f"2024{instant:013}", 1)] = size
            compacted += size if each.logs_only else base
    return logged, compacted


@pytest.mark.parametrize(
    ("rows", "groups", "share", "rounds", "times"),
    [
        (1_000_000, 8, 0.0001, 20, 4),
        (1_000_000, 1, 0.0001, 20, 4),
        (1_000_000, 8, 0.01, 100, 12),
        (1_000_000, 1, 0.01, 100, 12),
        (10_000_000, 1, 0.0001, 2000, 14),
        (100_000_000, 2, 0.00001, 2000, 14),
    ],
)
def test_default_compactions_write_little_beside_the_logs(rows, groups, share, rounds, times):
    logged, compacted = written_by_compactions(rows, groups, share, rounds)
    assert logged + compacted <= times * logged, (logged, compacted)


def test_kept_deletes_go_with_the_slice_and_stay_where_logs_alone_are_merged():
    kept = DataFile("a.deletes.parquet", (), 1, 9, 5, "a" * 16)
    whole = replace(slice_of("a", 1000, (3, 50), (4, 50)), deletes=(kept,))
    (both,), (logs,) = (choose([whole], "age", logs_only=only) for only in (False, True))
    assert (both.paths[-1], both.size_bytes, both.changes) == (kept.path, 1109, (*both.logs, kept.path))
    assert (logs.paths, logs.deletes) == (both.logs, ())
    assert CompactionOperation.from_dict(json.loads(json.dumps(both.to_dict()))) == both
    before = {key: value for key, value in logs.to_dict().items() if key != "deletes"}
    assert CompactionOperation.from_dict(before) == logs
