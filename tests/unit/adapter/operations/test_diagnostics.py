"""The output of zlayout_explain and zlayout_info, and the rows of failing layout tests."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from dbt_common.exceptions import CompilationError

from dbt.adapters.zlayout.adapter.operations import diagnostics
from dbt.adapters.zlayout.adapter.operations.diagnostics import (
    clustering_text,
    depth_problem,
    explanation_text,
    information_text,
    problem_line,
    pruning_problem,
)
from dbt.adapters.zlayout.layout.clustering_measures import ColumnClustering
from dbt.adapters.zlayout.layout.depth import Overlap, depth_histogram
from dbt.adapters.zlayout.layout.table_verdict import Command, Level, Problem, TableVerdict
from dbt.adapters.zlayout.pruning.scan import ScanStage
from dbt.adapters.zlayout.table.explanation import Explanation
from dbt.adapters.zlayout.table.measures import ClusteringInformation

_NO_SESSION: Any = None
_EXPECTED = {"point": 1.5, "range_1_percent": 2.25, "range_10_percent": 1234.5}
_EXPLANATION = Explanation(
    table="s.t",
    version=1,
    predicate="a = 1",
    stages=(ScanStage("column_stats", 2, 1, 0.001),),
    files=pa.table(
        {
            "path": ["x", "y"],
            "verdict": ["SKIP", "READ"],
            "stage": ["column_stats", None],
            "reason": ["a > 1", ""],
            "rows": [300, 100],
            "bytes": [4096, 1024],
        }
    ),
    conjuncts=pa.table({"sql": ["a = 1"], "usable": [True], "skips": [1], "why_not": [None], "advice": [None]}),
)
_INFORMATION: dict[str, Any] = {
    "name": "s.t",
    "level": "managed",
    "version": 3,
    "files": 7,
    "bytes": 2048,
    "rows": 1200000,
    "overlap_depth": 1.25,
    "zorder": ["a", "b"],
    "committed_at": dt.date(2024, 1, 1),
    "partition_by": [],
    "adopted": False,
    "curve": None,
}


_GOOD = TableVerdict(Level.GOOD, "Good: fine")


def _overlap(*depths: int) -> Overlap:
    histogram = depth_histogram(pa.array(depths).to_numpy())
    return Overlap(sum(depths) / len(depths) - 1, sum(depths) / len(depths), histogram, len(depths))


def _information(**changes: Any) -> ClusteringInformation:
    columns = tuple(ColumnClustering(name, 3, 0, _overlap(2, 2, 3, 40), _EXPECTED) for name in ("day", "city"))
    made = ClusteringInformation(
        columns=("day", "city"),
        files=4,
        rows=400,
        bytes=4000,
        partitions=1,
        constant_files=1,
        overlap=_overlap(1, 1, 1, 33),
        expected_files=_EXPECTED,
        by_column=columns,
        table="s.t",
        version=3,
        managed=True,
        zorder=("day", "city"),
        predicate=None,
        problems=(),
    )
    return replace(made, **changes)


def test_the_page_has_a_line_for_each_column_and_the_files_by_depth() -> None:
    assert clustering_text(_information()).splitlines() == [
        "layout for day, city",
        "  column        depth  overlaps  constant  unknown  point   1 %      10 %",
        "  ------------  -----  --------  --------  -------  -----  ----  --------",
        "  day           11.75     10.75         3        0   1.50  2.25  1,234.50",
        "  city          11.75     10.75         3        0   1.50  2.25  1,234.50",
        "  all together   9.00      8.00         1            1.50  2.25  1,234.50",
        "  point, 1 %, 10 %: expected files read for one value, and for ranges of 1 % and 10 % of the rows",
        "",
        "  depth of 4 of 4 files",
        "     1  3  ########################################",
        "  … 64  1  ##############",
    ]


def test_the_page_says_that_depths_are_sampled_and_lists_problems() -> None:
    sampled = replace(_overlap(1, 2), depth_error=0.25)
    text = clustering_text(_information(overlap=sampled, files=9000, problems=("a slice is gone",)))
    assert "depth of 2 of 9,000 files, averages accurate to ±0.25" in text
    assert "note: a slice is gone" in text


def test_one_column_has_no_line_for_all_columns_and_no_files_have_no_histogram() -> None:
    found = _information()
    text = clustering_text(replace(found, columns=("day",), by_column=found.by_column[:1]))
    assert "all together" not in text
    empty = replace(found, overlap=Overlap(0.0, 0.0, depth_histogram(pa.array([], pa.int64()).to_numpy()), 0), files=0)
    assert "depth of" not in clustering_text(empty)


def test_only_the_first_columns_are_listed() -> None:
    columns = tuple(replace(_information().by_column[0], column=f"c{number}") for number in range(50))
    lines = clustering_text(
        _information(columns=tuple(each.column for each in columns), by_column=columns)
    ).splitlines()
    assert len(lines) < 40
    assert "  … and 30 more columns (JSON shows all)" in lines


def test_information_begins_with_the_verdict_and_keeps_the_rest_for_verbose() -> None:
    problem = Problem(Level.POOR, "files overlap", Command("cluster", "s.t"))
    verdict = TableVerdict(Level.POOR, "Poor: files overlap", (problem,))
    lines = information_text(_INFORMATION, None, verdict, as_json=False).splitlines()
    assert lines == [
        "Poor: files overlap",
        "  dbt run-operation zlayout_cluster --args '{model: s.t}'",
        "s.t (managed, version 3): 1,200,000 rows in 7 files, 2.0 KiB, clustered by a, b",
        "verbose: true shows the whole state",
    ]
    lines = information_text(_INFORMATION, None, verdict, as_json=False, with_dbt=False).splitlines()
    assert (lines[1], lines[-1]) == ("  zlayout cluster s.t", "--verbose shows the whole state")
    assert clustering_text(_information()) in information_text(_INFORMATION, _information(), verdict, as_json=False)
    verbose = information_text(_INFORMATION, _information(), verdict, as_json=False, verbose=True)
    assert verbose.startswith("Poor: files overlap\n")
    assert verbose.endswith("\n\n" + clustering_text(_information()))


def test_a_problem_that_does_not_lead_is_listed_below() -> None:
    problems = (
        Problem(Level.POOR, "files overlap"),
        Problem(Level.FAIR, "a plan waits", Command("cluster", "s.t")),
    )
    verdict = TableVerdict(Level.POOR, "Poor: files overlap", problems)
    assert information_text(_INFORMATION, None, verdict, as_json=False).splitlines()[:3] == [
        "Poor: files overlap",
        "  a plan waits",
        "  dbt run-operation zlayout_cluster --args '{model: s.t}'",
    ]


def test_information_as_json_has_the_layout_and_the_verdict() -> None:
    found = _information()
    read = json.loads(information_text(_INFORMATION, found, _GOOD, as_json=True))
    assert read["clustering"] == found.to_dict()
    assert read["verdict"] == {"level": "good", "sentence": "Good: fine", "reads_times_the_best": None, "problems": []}
    assert read["rows"] == 1200000
    assert json.loads(information_text(_INFORMATION, None, _GOOD, as_json=True))["clustering"] is None


@pytest.mark.parametrize(
    ("changes", "advice"),
    [
        ({}, "dbt run-operation zlayout_cluster"),
        ({"zorder": ("day",)}, "list day, city in zorder"),
        ({"managed": False}, "have them sort by day, city"),
    ],
)
def test_the_row_for_a_too_deep_layout_says_what_to_do(changes: dict[str, Any], advice: str) -> None:
    problem = depth_problem(_information(**changes), 8.9)
    assert problem is not None
    assert (problem["columns"], problem["average_depth"], problem["at_most"]) == ("day, city", 9.0, 8.9)
    assert advice in problem["what_to_do"]
    assert problem_line("s.t", problem).endswith(f"average depth 9.0, at most 8.9; {problem['what_to_do']}")
    assert depth_problem(_information(**changes), 9.0) is None


def _explanation(verdicts: list[str], advice: list[str | None], problems: tuple[str, ...] = ()) -> Explanation:
    count = len(advice)
    return Explanation(
        table="s.t",
        version=1,
        predicate="x",
        stages=(),
        files=pa.table(
            {
                **dict.fromkeys(("path", "verdict", "stage", "reason"), pa.array(verdicts, pa.string())),
                **dict.fromkeys(("rows", "bytes"), pa.array([1] * len(verdicts), pa.int64())),
            }
        ),
        conjuncts=pa.table(
            {
                "sql": ["x"] * count,
                "usable": [True] * count,
                "skips": [0] * count,
                "why_not": pa.nulls(count, pa.string()),
                "advice": pa.array(advice, pa.string()),
            }
        ),
        problems=problems,
    )


@pytest.mark.parametrize(
    ("advice", "problems", "told"),
    [
        (["cast the constant", "cast the constant", None], (), "cast the constant"),
        ([None], ("a slice is gone",), "a slice is gone"),
        ([None], (), "cluster the table by the columns of the condition"),
    ],
)
def test_the_row_for_a_condition_that_skips_too_little_says_what_to_do(
    advice: list[str | None], problems: tuple[str, ...], told: str
) -> None:
    explained = _explanation(["SKIP", "READ", "READ", "READ"], advice, problems)
    problem = pruning_problem(explained, "a = 1", 25.1)
    assert problem is not None
    assert problem["what_to_do"].startswith(told)
    assert problem["what_to_do"].count("cast") <= 1
    assert (problem["skipped_percent"], problem["kept_files"], problem["total_files"]) == (25.0, 3, 4)
    assert pruning_problem(explained, "a = 1", 25) is None


@pytest.mark.parametrize(
    ("files", "told"),
    [
        (1, "the table has 1 file, and a condition that matches a row cannot skip it; lower target_file_size"),
        (2, "the table has 2 files, and a condition that matches a row can skip at most 50 percent of them; lower"),
    ],
)
def test_the_row_for_a_table_of_few_files_says_that_it_cannot_skip_so_many(files: int, told: str) -> None:
    problem = pruning_problem(_explanation(["READ"] * files, [None]), "a = 1", 80)
    assert problem is not None
    assert problem["what_to_do"].startswith(told)
    assert "cluster the table" not in problem["what_to_do"]


def test_a_table_without_files_passes() -> None:
    assert pruning_problem(_explanation([], []), "a = 1", 100) is None


@pytest.mark.parametrize("most", ["two", 0.5, None, True, "nan"])
def test_a_depth_that_is_not_a_number_is_an_error(most: Any) -> None:
    with pytest.raises(CompilationError, match=r"max: .* is not a number of at least 1"):
        diagnostics.depth_problems(_NO_SESSION, "s.t", most, None)


@pytest.mark.parametrize("percent", ["all", -1, 100.5])
def test_a_percentage_out_of_range_is_an_error(percent: Any) -> None:
    with pytest.raises(CompilationError, match=r"percent: .* is not a number from 0 to 100"):
        diagnostics.pruning_problems(_NO_SESSION, "s.t", "true", percent)


def test_a_test_with_a_where_is_an_error() -> None:
    with pytest.raises(CompilationError, match="zlayout_depth_at_most checks a whole table"):
        diagnostics.depth_problems(_NO_SESSION, "(select * from s.t where a) x", 2, None)


def test_an_explanation_is_a_page_for_people() -> None:
    assert "reads 1 of 2 files" in explanation_text([_EXPLANATION], as_json=False)


def test_a_query_without_dbt_zlayout_tables_has_nothing_to_explain() -> None:
    assert "nothing to explain" in explanation_text([], as_json=False)


def test_json_has_the_whole_explanation() -> None:
    assert json.loads(explanation_text([_EXPLANATION], as_json=True)) == [_EXPLANATION.to_dict()]


def test_verbose_information_is_a_readable_column() -> None:
    text = information_text(_INFORMATION, None, _GOOD, as_json=False, verbose=True)
    lines = dict(line.split("  ", 1) for line in text.splitlines()[2:])
    assert {key.strip(): value.strip() for key, value in lines.items()} == {
        "name": "s.t",
        "level": "managed",
        "version": "3",
        "files": "7",
        "bytes": "2,048",
        "rows": "1,200,000",
        "overlap depth": "1.25",
        "zorder": "a, b",
        "committed at": "2024-01-01",
        "partition by": "-",
        "adopted": "no",
        "curve": "-",
    }


def test_an_explanation_says_how_many_rows_and_bytes_are_skipped() -> None:
    assert "  skips 300 of 400 rows, 4.0 KiB of 5.0 KiB\n" in _EXPLANATION.to_text()
    told = _EXPLANATION.to_dict()
    assert [told[key] for key in ("kept_rows", "skipped_rows", "kept_bytes", "skipped_bytes")] == [100, 300, 1024, 4096]


def test_files_of_a_partition_with_one_verdict_share_a_line_unless_verbose() -> None:
    paths = ["d=1/a", "d=1/b", "d=2/c", "d=2/d", "d=2/e", "d=3/f"]
    files = pa.table(
        {
            "path": paths,
            "verdict": ["SKIP", "SKIP", "READ", "SKIP", "SKIP", "READ"],
            "stage": [None] * 6,
            "reason": ["d = 1", "d = 1", "all", "x > 1", "x > 2", "all"],
            "rows": [1] * 6,
            "bytes": [1] * 6,
        }
    )
    explained = replace(_EXPLANATION, files=files)
    lines = [line.split() for line in explained.to_text().splitlines() if "d=" in line]
    assert lines == [
        ["d=2/c", "READ", "all"],
        ["d=3/f", "READ", "all"],
        ["d=1/", "2", "files", "SKIP", "d", "=", "1"],
        ["d=2/", "2", "files", "SKIP", "x", ">", "1", "…"],
    ]
    assert all(path in explained.to_text(verbose=True) for path in paths)
