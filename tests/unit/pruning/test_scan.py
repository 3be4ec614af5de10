"""A scan in its steps: each works on what the one before has left, and every file's verdict has a step and a reason."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dbt.adapters.zlayout.index.bloom.filter_slices import Positions
from dbt.adapters.zlayout.index.slice_writing import slice_path, write_slices
from dbt.adapters.zlayout.index.statistics.column_stats import AlignedStatistics, column_stats_table, stats_type
from dbt.adapters.zlayout.index.table_index import CachedStatistics, PartitionStatistics, TableIndex
from dbt.adapters.zlayout.predicate.expr import (
    EXPRESSION,
    And,
    Call,
    Column,
    ColumnPath,
    Compare,
    Expr,
    In,
    IsNotNull,
    IsNotTrue,
    Not,
    NotIn,
    Op,
    Or,
    Unknown,
    columns_of,
)
from dbt.adapters.zlayout.predicate.functions import Negate
from dbt.adapters.zlayout.pruning.scan import STAGES, PartitionCondition, Preselection, plan_scan, report_scan
from dbt.adapters.zlayout.pruning.statistics.column_bounds import Together
from dbt.adapters.zlayout.pruning.statistics.verdict import Verdict
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles

KEY, OTHER = Column(("key",), pa.int64()), Column(("other",), pa.int64())
PARTS = ["a", "a", "a", "b", "b", "b", "c", "c"]
LOWS = [0, 10, 20, 100, 110, 120, 0, 200]
INSTANT = "20240101000000000"


def files(parts: Sequence[str] = PARTS) -> DataFiles:
    count = len(parts)
    return DataFiles.from_columns(
        ("part",),
        path=[f"part={part}/{number}.parquet" for number, part in enumerate(parts)],
        partition_values=[parts],
        row_count=[10] * 7 + [0],
        size_bytes=[1] * count,
        modified_ms=[1] * count,
        group=[str(number) for number in range(count)],
    )


@dataclass
class Memory:
    contents: dict[str, bytes] = field(default_factory=dict)
    reads: list[str] = field(default_factory=list)

    def read(self, path: str) -> bytes:
        self.reads.append(path)
        return self.contents[path]

    def read_tail(self, path: str, most_bytes: int) -> bytes:
        return self.read(path)[-most_bytes:]

    def read_ranges(self, path: str, starts: Sequence[int], lengths: Sequence[int]) -> list[bytes]:
        content = self.read(path)
        return [content[start : start + length] for start, length in zip(starts, lengths, strict=True)]


class Counting(TableIndex):
    """Notes which columns were looked up."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]  # passed on
        self.asked: list[ColumnPath] = []

    def statistics(
        self, files: DataFiles, columns: Collection[ColumnPath], positions: Positions | None = None
    ) -> AlignedStatistics:
        self.asked += columns
        return super().statistics(files, columns, positions)

    def partition_statistics(self, files: DataFiles, columns: Collection[ColumnPath]) -> PartitionStatistics:
        self.asked += [("partition", *each) for each in columns]
        return super().partition_statistics(files, columns)


def index_of(live: DataFiles, lows: Sequence[int] = LOWS) -> Counting:
    return Counting(*index_args(live, lows), partition_types={"part": pa.string()}, timezone="UTC")


def index_args(live: DataFiles, lows: Sequence[int] = LOWS, key: Column = KEY) -> tuple[Memory, dict[str, list[str]]]:
    count = len(live)
    low = pa.array(lows)
    yes, none = pa.repeat(True, count), pa.array([0] * count)
    rows = live.column("row_count").combine_chunks()
    structs = [
        pa.StructArray.from_arrays(
            [start, pa.array(np.asarray(start) + 9), yes, yes, none, none, rows], fields=list(stats_type(pa.int64()))
        )
        for start in (low, pa.array(list(range(count))))
    ]
    table = column_stats_table(live.column("path").combine_chunks(), [key.path, OTHER.path], structs)
    store, paths = Memory(), {}
    for partition, content in write_slices(live, table).items():
        path = slice_path(partition, INSTANT, content)
        store.contents[path] = content
        paths[partition] = [path]
    return store, paths


def below(value: int, column: Column = KEY) -> Compare:
    return Compare(Op.LT, column, pa.scalar(value))


def test_each_step_works_on_what_the_one_before_has_left() -> None:
    live = files()
    plan = plan_scan(below(15), live, index_of(live))
    assert [each.name for each in plan.stages] == list(STAGES)
    # Partition b begins at 100; of c one file is empty; of a the third begins at 20.
    assert [(each.files_before, each.files_after) for each in plan.stages] == [
        (8, 5),
        (5, 4),
        (4, 3),
        (3, 3),
        (3, 3),
        (3, 3),
    ]
    assert plan.candidates.tolist() == [True, True, False, False, False, False, True, False]
    assert plan.stage_of_file.tolist() == [-1, -1, 2, 0, 0, 0, -1, 1]
    assert sum(each.seconds for each in plan.stages) > 0


@pytest.mark.parametrize(("parts", "left"), [("aaaaaaaa", 8), ("aaaabbbb", 0)])
def test_many_conditions_are_evaluated_once_where_there_is_one_partition(parts: str, left: int) -> None:
    live = files(list(parts))
    many = Or(tuple(And((below(-each), below(each, OTHER))) for each in range(300)))
    for expr, left_by_partitions in ((below(-1), 0), (many, left)):
        plan = plan_scan(expr, live, index_of(live))
        assert plan.stages[0].files_after == left_by_partitions
        assert not plan.candidates.any()


@pytest.mark.parametrize("count", [1_000, pytest.param(100_000, marks=pytest.mark.exhaustive)])
def test_many_files_in_half_as_many_partitions_are_decided_as_each_by_itself(count: int) -> None:
    number = np.arange(count)
    # Two files a partition, far apart in the list; an eighth of the partitions holds what is asked for.
    partition, low = number % (count // 2), number * 7919 % count
    live = DataFiles.from_columns(
        ("part",),
        path=[f"part={part:05}/{each}.parquet" for each, part in enumerate(partition.tolist())],
        partition_values=[[f"{part:05}" for part in partition.tolist()]],
        row_count=[10] * count,
        size_bytes=[1] * count,
        modified_ms=[1] * count,
        group=[str(each) for each in range(count)],
    )
    index = index_of(live, low.tolist())
    for limit in (0, 1, count // 8, count, 2 * count):
        plan = plan_scan(below(limit), live, index)
        assert plan.candidates.tolist() == (low < limit).tolist()
        lowest = np.minimum(low[: count // 2], low[count // 2 :])
        assert plan.stages[0].files_after == 2 * int((lowest < limit).sum())
    folder = Compare(Op.LT, Column(("part",), pa.string()), pa.scalar("00100"))
    plan = plan_scan(And((folder, below(count // 2))), live, index)
    assert plan.candidates.tolist() == ((partition < 100) & (low < count // 2)).tolist()


@pytest.mark.parametrize("limit", [0, 5, 15, 25, 105, 115, 1000])
@pytest.mark.parametrize("left", [0b11111111, 0b00000111, 0b00000001, 0b01010101, 0])
def test_few_files_left_are_decided_as_all_of_them_are(limit: int, left: int) -> None:
    live = files()
    kept = np.array([bool(left >> number & 1) for number in range(8)])
    whole = plan_scan(below(limit), live, index_of(live))
    some = plan_scan(below(limit), live, index_of(live), Preselection(kept, 1.5))
    assert some.candidates.tolist() == (whole.candidates & kept).tolist()
    assert some.stages[0].seconds >= 1.5
    assert some.stages[0].files_before == 8


@pytest.mark.parametrize(
    ("wanted", "left"),
    [
        (STAGES, ["a", "c"]),
        (("column_stats",), ["a", "a", "a", "b", "b", "b", "c"]),
        (("expression_stats",), ["a", "c"]),
        (("partition_stats", "files", "column_stats", "bloom"), ["a", "a", "a", "b", "b", "b", "c"]),
    ],
)
def test_statistics_of_expressions_count_in_a_stage_of_their_own(wanted: tuple[str, ...], left: list[str]) -> None:
    live, key = files(), Column((EXPRESSION, "length(name)", "ansi"), pa.int64())
    index = CachedStatistics(TableIndex(*index_args(live, key=key), partition_types={"part": pa.string()}), live)
    condition = And((below(5, key), below(7, OTHER)))
    plan_scan(condition, live, index)  # what a scan has read before does not matter
    plan = plan_scan(condition, live, index, stages_wanted=wanted)
    assert live.partition_values("part").filter(pa.array(plan.candidates)).to_pylist() == left
    reason = report_scan(plan, condition, live, index).reason[3].as_py()
    assert reason.endswith("length(name): [100, 109] has no value < 5")
    assert columns_of(condition) == {key.path, OTHER.path}


@pytest.mark.parametrize(
    ("wanted", "left"),
    [
        ((), PARTS),
        (("files",), PARTS[:7]),
        (("partition_stats",), ["a", "a", "a", "c", "c"]),
        (("column_stats",), ["a", "c", "c"]),
    ],
)
def test_a_stage_that_is_not_wanted_skips_nothing(wanted: tuple[str, ...], left: list[str]) -> None:
    live = files()
    index, below = CachedStatistics(index_of(live), live), Compare(Op.LT, KEY, pa.scalar(5))
    plan = plan_scan(below, live, index, stages_wanted=wanted)
    assert live.partition_values("part").filter(pa.array(plan.candidates)).to_pylist() == left
    assert [each.name for each in plan.stages] == list(STAGES)
    report = report_scan(plan, below, live, index)
    assert ((report.verdict == Verdict.SKIP) == ~plan.candidates).all()
    before = Preselection(np.array([part == "b" for part in PARTS]), 0.0)
    assert not plan_scan(below, live, index, before, wanted).candidates[[0, 1, 2, 6, 7]].any()


class Odd(TableIndex):
    """An index whose files hold odd keys at odd positions, and even ones at even positions."""

    def membership(self, files: DataFiles, positions: object = None) -> Any:
        return self._members(files, "Bloom filter")

    def _members(self, files: DataFiles, kind: str) -> Any:
        class Members:
            label, lack, knows_null = f"its {kind}", f"has no {kind}", kind == "lookup index"

            def may_hold_together(self, wanted: dict[Column, Any]) -> list[Together]:
                if kind != "lookup index" or set(wanted) != {KEY, OTHER}:
                    return []
                return [Together((KEY, OTHER), np.arange(len(files)) < 1)]

            def may_hold(self, column: Column, values: pa.Array | pa.Scalar) -> np.ndarray | None:
                if column != KEY:
                    return None
                wanted = {
                    each % 2 for each in (values.to_pylist() if isinstance(values, pa.Array) else [values.as_py()])
                }
                return np.array([number % 2 in wanted for number in range(len(files))])

            def lacks(self, column: Column) -> np.ndarray | None:
                return np.array([False] * 6 + [True] * 2) if column == KEY else None

        return Members()


class OddLookups(Odd):
    """The same, told by lookup indexes; only the first file has rows with both columns of some values."""

    def membership(self, files: DataFiles, positions: object = None) -> Any:
        return None

    def lookups(self, files: DataFiles) -> Any:
        return self._members(files, "lookup index")


def test_lookups_skip_what_bounds_keep_and_the_report_says_so() -> None:
    live = files()
    index = OddLookups(*index_args(live), partition_types={"part": pa.string()}, timezone="UTC")
    equal = Compare(Op.EQ, KEY, pa.scalar(5))
    plan = plan_scan(equal, live, index)
    assert [each.files_after for each in plan.stages[2:]] == [2, 2, 0, 0]
    report = report_scan(plan, equal, live, index)
    assert report.stage[0].as_py() == "lookup"
    assert report.reason[0].as_py() == "key: its lookup index has no value = 5"
    both = And((Compare(Op.EQ, KEY, pa.scalar(6)), In(OTHER, pa.array([4, 5, 6]))))
    alone = plan_scan(both, live, index, stages_wanted=("lookup",))
    assert alone.candidates.tolist() == [True, *[False] * 7]
    whole = plan_scan(both, live, index)
    assert whole.candidates.tolist() == [True, *[False] * 7]
    assert whole.stages[3].files_before == 2
    reason = report_scan(whole, both, live, index).reason[6].as_py()
    assert reason == "key, other: its lookup index has no row with these values"


def test_filters_skip_what_bounds_keep_and_the_report_says_so() -> None:
    live = files()
    index = Odd(*index_args(live), partition_types={"part": pa.string()}, timezone="UTC")
    equal = Compare(Op.EQ, KEY, pa.scalar(5))
    plan = plan_scan(equal, live, index)
    assert [each.files_after for each in plan.stages[2:]] == [2, 2, 2, 0]
    report = report_scan(plan, equal, live, index)
    assert report.stage[0].as_py() == "bloom"
    assert report.reason[0].as_py() == "key: its Bloom filter has no value = 5"
    assert report.conjuncts[0].skips == 7
    off = plan_scan(equal, live, index, stages_wanted=STAGES[:3])
    assert int(off.candidates.sum()) == 2
    assert report_scan(off, equal, live, index).reason[0].as_py().startswith("its stage is switched off: ")
    alone = plan_scan(equal, live, index, stages_wanted=("bloom",))
    assert alone.candidates.tolist() == [False, True, False, True, False, True, False, False]
    even = Compare(Op.EQ, KEY, pa.scalar(6))
    reasons = report_scan(plan_scan(even, live, index), even, live, index).reason
    assert reasons[0].as_py() == "may match: key [0, 9]"
    assert reasons[6].as_py() == "may match: key [0, 9], key has no Bloom filter"


@pytest.mark.parametrize(
    ("expr", "kept"),
    [
        (And((Compare(Op.EQ, KEY, pa.scalar(5)), IsNotNull(OTHER))), []),
        (Or((Compare(Op.EQ, KEY, pa.scalar(5)), Compare(Op.LT, OTHER, pa.scalar(-1)))), []),
        (Or((Compare(Op.EQ, KEY, pa.scalar(5)), Compare(Op.LT, OTHER, pa.scalar(1000)))), [0, 1, 2, 3, 4, 5, 6]),
        (Not(Compare(Op.EQ, KEY, pa.scalar(5))), [0, 1, 2, 3, 4, 5, 6]),
        (Not(Not(Compare(Op.EQ_NULL_SAFE, KEY, pa.scalar(5)))), []),
        (IsNotTrue(Compare(Op.EQ, KEY, pa.scalar(5))), [0, 1, 2, 3, 4, 5, 6]),
        (In(KEY, pa.array([5, 7]), has_null=True), []),
        (In(KEY, pa.array([5, 6])), [0, 6]),
        (NotIn(KEY, pa.array([5, 7]), has_null=False), [0, 1, 2, 3, 4, 5, 6]),
        (Compare(Op.EQ, Call(Negate(pa.int64()), KEY), pa.scalar(-5)), [0, 6]),
    ],
)
def test_filters_count_only_where_a_row_must_have_the_value(expr: Expr, kept: list[int]) -> None:
    live = files()
    index = Odd(*index_args(live, [0, 10, 20, 100, 110, 120, 0, 0]), partition_types={"part": pa.string()})
    plan = plan_scan(expr, live, index, stages_wanted=("files", "column_stats", "bloom"))
    assert np.flatnonzero(plan.candidates).tolist() == kept


def test_a_report_gives_every_file_its_step_and_its_reason() -> None:
    live = files()
    index, expr = index_of(live), And((below(15), Unknown("f(key)", "`F` has no rule")))
    kept = np.array([True] * 6 + [False] * 2)
    condition = PartitionCondition("upper(part) <> 'C'", kept, pa.array([f"part={each}" for each in PARTS]))
    plan = plan_scan(expr, live, index, Preselection(kept, 0.0))
    report = report_scan(plan, expr, live, index, [condition])
    assert ((report.verdict == Verdict.SKIP) == ~plan.candidates).all()
    assert report.stage.to_pylist() == [None, None, "column_stats", *["partition_stats"] * 5]
    assert report.reason.to_pylist() == [
        "may match: key [0, 9]",
        "may match: key [10, 19]",
        "key: [20, 29] has no value < 15",
        "key: [100, 109] has no value < 15",
        "key: [110, 119] has no value < 15",
        "key: [120, 129] has no value < 15",
        "part=c: no row matches upper(part) <> 'C'",
        "part=c: no row matches upper(part) <> 'C'",
    ]
    assert [(each.sql, each.usable, each.skips) for each in report.conjuncts] == [
        ("upper(part) <> 'C'", True, 2),
        ("key < 15", True, 4),  # the empty file contradicts itself, and is skipped for having no rows
        ("f(key)", False, 0),
    ]


def test_a_file_that_only_its_partition_s_statistics_skip_says_so() -> None:
    live = files()
    index = index_of(live)

    class OnlyPartitions:
        def statistics(self, _: DataFiles, __: object, at: Positions | None = None) -> AlignedStatistics:
            rows = live.column("row_count").combine_chunks()
            return AlignedStatistics(rows if at is None else rows.take(pa.array(at)), {})

        def partition_statistics(self, files: DataFiles, columns: Collection[ColumnPath]) -> PartitionStatistics:
            return index.partition_statistics(files, columns)

        def membership(self, _: DataFiles, __: object = None) -> None:
            return None

        def lookups(self, _: DataFiles) -> None:
            return None

    expr: Expr = below(15)
    plan = plan_scan(expr, live, OnlyPartitions())
    report = report_scan(plan, expr, live, OnlyPartitions())
    assert report.verdict.tolist() == [1, 1, 1, 0, 0, 0, 1, 0]
    assert report.reason.to_pylist()[3] == "its partition: key: [100, 129] has no value < 15"
    assert report.reason.to_pylist()[7] == "the file has no rows"


def test_a_column_is_looked_up_once_for_all_scans() -> None:
    live = files()
    index = index_of(live)
    cached = CachedStatistics(index, live)
    once = plan_scan(below(15), live, cached).candidates
    again = plan_scan(below(15), live, cached).candidates
    assert once.tolist() == again.tolist() == plan_scan(below(15), live, index_of(live)).candidates.tolist()
    assert sorted(index.asked) == [("key",), ("partition", "key")]
    both = And((below(15), below(1, OTHER)))
    assert plan_scan(both, live, cached).candidates.tolist() == [True, *[False] * 7]
    assert sorted(index.asked) == [("key",), ("other",), ("partition", "key"), ("partition", "other")]


def test_other_files_are_looked_up_by_themselves() -> None:
    live = files()
    cached = CachedStatistics(index_of(live), live)
    plan_scan(below(15), live, cached)
    some = live.take(pa.array([6, 0, 3]))
    assert plan_scan(below(5), some, cached).candidates.tolist() == [True, True, False]
