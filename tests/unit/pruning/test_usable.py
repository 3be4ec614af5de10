"""How many predicates of the fixtures can be used to skip files: the fixtures, the list and the documentation agree."""

from __future__ import annotations

import csv
import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[3]
FIXTURES = ROOT / "tests" / "fixtures" / "pruning"
WHO = ("ours", "delta", "iceberg", "hudi")
OF_NO_USE = re.compile("not understood|no rule derives|no statistics|^reads all$")
BY_SPARK = "partition columns, alone or with others"


def lines() -> list[dict[str, str]]:
    with (FIXTURES / "usable.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def expectations() -> dict[tuple[str, str], str]:
    found = {}
    for path in FIXTURES.glob("*.sql"):
        cases = path.read_text("utf-8").partition("create\n")[2].partition(";\n")[2]
        for line in filter(None, cases.splitlines()):
            predicate, _, expected = line.partition("  -- ")
            found[path.stem, predicate.strip()] = expected
    return found


def test_what_is_usable_is_said_of_every_predicate_and_as_the_fixtures_say() -> None:
    expected = expectations()
    assert {(line["fixture"], line["predicate"]) for line in lines()} == set(expected)
    for line in lines():
        # Conditions on partition columns are Spark's own to evaluate.
        if line["kind"] != BY_SPARK:
            usable = OF_NO_USE.search(expected[line["fixture"], line["predicate"]]) is None
            assert (line["ours"] == "yes") == usable, line


def test_more_predicates_are_usable_than_in_any_table_format() -> None:
    used = {who: sum(line[who] != "no" for line in lines()) for who in WHO}
    assert used["ours"] > max(used[who] for who in WHO[1:])
    assert all(line["ours"] != "wrong" for line in lines())


def test_the_comparison_has_the_figures_of_the_list() -> None:
    page = (ROOT / "docs" / "comparison.md").read_text("utf-8")
    every = lines()
    kinds: dict[str, list[dict[str, str]]] = {}
    for line in every:
        kinds.setdefault(line["kind"], []).append(line)
    for kind, some in [*kinds.items(), ("**all**", every)]:
        row = " | ".join([f"| {kind}", str(len(some)), *(_cell(some, who) for who in WHO)])
        assert f"{row} |" in page, row


def _cell(some: list[dict[str, str]], who: str) -> str:
    values = Counter(line[who] for line in some)
    wrongly = f" ({values['wrong']} wrongly)" if values["wrong"] else ""
    return f"{values['yes'] + values['wrong']}{wrongly}"
