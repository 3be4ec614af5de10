"""The verdict on a table: its sentence, its level, and the command for each problem."""

from __future__ import annotations

import shlex

import numpy as np
import pyarrow as pa
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from measured_files import bounds, files, statistics

from dbt.adapters.zlayout.layout.clustering_measures import clustering_measures
from dbt.adapters.zlayout.layout.table_verdict import (
    Command,
    Level,
    TableFigures,
    TableVerdict,
    unreadable,
    verdict_of,
)

WIDTH = 1000


def measured(partitions=None, **columns):
    """The layout of files with the given bounds of each column."""
    count = len(next(iter(columns.values())))
    known = {(name,): bounds(pa.int64(), pairs) for name, pairs in columns.items()}
    types = {path: pa.int64() for path in known}
    of_file = np.zeros(count, np.int64) if partitions is None else np.asarray(partitions)
    return clustering_measures(files([100] * count), statistics(known, count), types, of_file)


def figures(layout, **changes):
    given = {"name": "s.t", "managed": True, "files": layout.files, "rows": layout.rows, "zorder": layout.columns}
    return TableFigures(**{**given, **changes})


def judged(layout, **changes) -> TableVerdict:
    return verdict_of(figures(layout, **changes), layout)


def cells(across, up=1):
    places = [(x * WIDTH, y * WIDTH) for x in range(across) for y in range(up)]
    return {
        "a": [(x, x + WIDTH - 1) for x, _ in places],
        **({"b": [(y, y + WIDTH - 1) for _, y in places]} if up > 1 else {}),
    }


def test_a_sorted_table_is_good_and_the_sentence_says_what_a_lookup_reads():
    found = judged(measured(**cells(7)))
    assert found.sentence == "Good: a lookup on a reads 1 of 7 files"
    assert (found.level, found.problems) == (Level.GOOD, ())


def test_two_keys_share_the_files_and_the_sentence_names_both():
    assert judged(measured(**cells(4, 4))).sentence == "Good: a lookup on a reads 4 of 16 files, on b reads 4"


def test_keys_that_share_unevenly_are_as_good():
    """One key has three times the cuts of the other: together their lookups still leave one file."""
    found = judged(measured(**cells(12, 4)))
    assert found.level is Level.GOOD
    assert found.reads == pytest.approx(1.0)


def test_files_that_all_overlap_are_poor_and_say_what_a_good_layout_reads():
    whole = [(number, 16 * WIDTH + number) for number in range(16)]
    found = judged(measured(a=whole, b=whole))
    assert found.level is Level.POOR
    assert found.sentence == "Poor: a lookup on a reads 16 of 16 files; a good layout reads about 4"
    (problem,) = found.problems
    assert problem.remedy.dbt_command() == "dbt run-operation zlayout_cluster --args '{model: s.t}'"


def test_a_few_appended_files_make_a_table_fair():
    a, b = cells(6, 6).values()
    whole = [(number, 6 * WIDTH + number) for number in range(8)]
    found = judged(measured(a=a + whole, b=b + whole))
    assert found.level is Level.FAIR
    assert 1.5 < found.reads < 3


def test_a_table_that_others_write_is_not_told_to_cluster():
    whole = [(number, 16 * WIDTH + number) for number in range(16)]
    (problem,) = judged(measured(a=whole), managed=False).problems
    assert problem.remedy is None
    assert "have them sort by a" in problem.text


def test_partitions_are_judged_as_small_tables():
    """Each of four partitions is sorted. A lookup reads a file of each, and no layout reads less."""
    spans = cells(4)["a"] * 4
    found = judged(measured(partitions=[at // 4 for at in range(16)], a=spans))
    assert found.sentence == "Good: a lookup on a reads 4 of 16 files (4 partitions with files of their own)"


def test_clustering_cannot_separate_rows_of_one_value():
    same = [(number // 10, number // 10) for number in range(40)]
    found = judged(measured(a=same))
    assert found.level is Level.GOOD
    assert found.problems == ()


def test_no_layout_of_two_files_is_worth_a_rewrite():
    found = judged(measured(a=[(0, 9), (0, 9)]))
    assert (found.level, found.problems) == (Level.GOOD, ())


def test_logs_are_compacted_before_a_clustering():
    wide = [(0, 100 + number) for number in range(16)]
    assert judged(measured(a=wide)).problems[0].remedy == Command("cluster", "s.t")
    few, many = (judged(measured(a=wide), merges_on_read=True, log_records=at, log_files=1) for at in (10, 800))
    assert [each.remedy and each.remedy.operation for each in few.problems] == ["cluster", "compact"]
    assert [each.remedy and each.remedy.operation for each in many.problems] == [None, "compact"]


def test_small_and_empty_tables_are_good():
    assert judged(measured(**cells(1))).sentence == "Good: 1 file, which every query reads"
    empty = verdict_of(TableFigures(name="s.t", managed=True, files=0, rows=0, zorder=("a",)), None)
    assert empty.sentence == "Good: the table has no rows"


@pytest.mark.parametrize(("files_", "level"), [(4, Level.GOOD), (40, Level.FAIR)])
def test_a_table_without_keys_says_what_its_best_column_reads(files_, level):
    whole = [(number, files_ * WIDTH + number) for number in range(files_)]
    found = judged(measured(a=whole), zorder=())
    assert found.level is level
    assert "no clustering keys; a lookup on a reads" in found.sentence
    assert len(found.problems) == (level is Level.FAIR)


def test_a_table_without_keys_that_is_sorted_anyway_has_no_problem():
    assert judged(measured(**cells(40)), zorder=()).problems == ()


def test_a_table_without_statistics_says_so():
    found = verdict_of(TableFigures(name="s.t", managed=True, files=9, rows=9, zorder=("a",)), None)
    assert "stats_columns" in found.sentence
    assert found.level is Level.FAIR


@pytest.mark.parametrize(
    ("changes", "level", "text", "command"),
    [
        ({"missing_files": 2}, Level.BROKEN, "2 files of the table are not in its folder", "zlayout_verify"),
        ({"foreign_files": 1}, Level.FAIR, "another tool put 1 file", "take_orphans: true"),
        ({"index_gaps": 3}, Level.FAIR, "the index does not fit 3 files", "refresh_index"),
        ({"log_records": 600, "log_files": 3}, Level.POOR, "600 records in 3 log files", "zlayout_compact"),
        ({"log_records": 100, "log_files": 1}, Level.FAIR, "100 records in 1 log file", "zlayout_compact"),
        (
            {"pending_clusterings": 1},
            Level.FAIR,
            "1 plan for clustering",
            "zlayout_cluster --args '{model: s.t, execute",
        ),
        (
            {"pending_compactions": 2},
            Level.FAIR,
            "2 plans for compaction",
            "zlayout_compact --args '{model: s.t, execute",
        ),
    ],
)
def test_each_problem_has_its_command_and_leads_the_sentence_of_a_good_layout(changes, level, text, command):
    found = judged(measured(**cells(7)), **changes)
    (problem,) = found.problems
    assert found.level is level
    assert found.sentence.startswith(f"{level.word}: ")
    assert text in found.sentence
    assert command in problem.remedy.dbt_command()
    assert found.to_dict()["problems"][0]["command"] == problem.remedy.dbt_command()


@pytest.mark.parametrize("changes", [{"log_records": 7, "log_files": 1}, {"orphan_files": 1}])
def test_what_costs_little_is_listed_and_the_table_stays_good(changes):
    found = judged(measured(**cells(7)), **changes)
    assert found.sentence == "Good: a lookup on a reads 1 of 7 files"
    assert len(found.problems) == 1


def test_what_a_commit_left_undone_is_listed():
    found = judged(measured(**cells(7)), unfinished=("readers of delta see version 1",))
    assert "readers of delta see version 1" in found.sentence


def test_foreign_files_of_a_merge_on_read_table_cannot_be_taken():
    (problem,) = judged(measured(**cells(7)), foreign_files=1, merges_on_read=True).problems
    assert problem.remedy is None
    assert "upsert the rows" in problem.text


def test_worse_tables_come_first():
    good, poor = judged(measured(**cells(7))), judged(measured(a=[(n, 9 * WIDTH + n) for n in range(9)]))
    worse = judged(measured(a=[(n, 90 * WIDTH + n) for n in range(90)]))
    lost = unreadable("s.t", "the log is damaged")
    assert sorted([good, poor, worse, lost], key=lambda each: each.badness) == [good, poor, worse, lost]
    assert lost.sentence == "Broken: s.t cannot be read: the log is damaged"


@given(table=st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20))
def test_a_command_survives_shell_and_yaml_with_any_name(table):
    words = shlex.split(Command("cluster", table, {"execute": True}).dbt_command())
    assert words[:4] == ["dbt", "run-operation", "zlayout_cluster", "--args"]
    read = yaml.safe_load(words[4])
    assert {**read, "model": str(read["model"])} == {"model": table, "execute": True}
    assert shlex.split(Command("cluster", table).zlayout_command()) == ["zlayout", "cluster", table]


def test_the_command_line_has_a_shorter_name_for_a_refresh():
    remedy = Command("refresh_index", "s.t", {"take_orphans": True})
    assert remedy.zlayout_command() == "zlayout refresh s.t --take-orphans"
