"""Golden verdicts: ``tests/fixtures/pruning/*.sql`` says for each predicate which files it skips and which match whole.

A fixture begins with comments, then ``create`` and a query whose column ``file`` names the file of each row; each further
line is a predicate, ``--`` and what is expected: ``skips`` and ``all of`` name files, the others are read; after a colon
the reason, for people. They are those of the newest Spark. Plain Spark judges each expectation too: a file that is skipped must hold no matching row.
``ZLAYOUT_GOLDEN=write`` writes down what is found: read the difference before you keep it.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from judging import judged_files, rules_alone
from pyspark.sql.functions import expr

from dbt.adapters.zlayout.pruning.statistics.verdict import Verdict
from dbt.adapters.zlayout.table.ztable import ZTable

FOLDER = Path(__file__).parents[2] / "tests" / "fixtures" / "pruning"
FIXTURES = sorted(FOLDER.glob("*.sql"))
SETTING = re.compile(r"-- set (\S+) = (.*)")
EXPECTATION = re.compile(r"(?:skips (?P<skips>[\w ]+?))?(?:; )?(?:all of (?P<all>[\w ]+?))?(?:reads all)?(?:: .*)?")
WRITE = os.environ.get("ZLAYOUT_GOLDEN") == "write"


@dataclass(frozen=True)
class Fixture:
    """One file of predicates."""

    head: str
    settings: dict
    query: str
    cases: list

    @classmethod
    def read(cls, path):
        """Parses a file."""
        head, _, rest = path.read_text("utf-8").partition("create\n")
        query, _, lines = rest.partition(";\n")
        settings = dict(SETTING.findall(head))
        pairs = [line.partition("  -- ")[::2] for line in lines.splitlines() if line.strip()]
        return cls(head, settings, query, [(predicate.strip(), expected.strip()) for predicate, expected in pairs])


def expected_verdicts(text, files):
    """The verdict of each file."""
    found = EXPECTATION.fullmatch(text)
    assert found, f"'{text}' is no expectation: write 'skips a b; all of c: reason' or 'reads all: reason'"
    skips, whole = ((found[name] or "").split() for name in ("skips", "all"))
    assert set(skips) | set(whole) <= set(files), text
    return {
        name: Verdict.SKIP if name in skips else Verdict.ALL_ROWS if name in whole else Verdict.READ for name in files
    }


def found_verdicts(spark, name, predicate):
    """The verdict of each file, and why."""
    paths, pruned = judged_files(spark, name, predicate)
    names = [re.search("file=([^/]*)/", path)[1] for path in paths]
    verdicts = dict(zip(names, map(Verdict, pruned.verdict.tolist()), strict=True))
    unusable = [each.why_not for each in pruned.conjuncts if not each.usable]
    reasons = [
        f"{name}: {reason}"
        for name, verdict, reason in zip(names, verdicts.values(), pruned.reason.to_pylist(), strict=True)
        if verdict == Verdict.SKIP and "only" not in reason and "null" not in reason
    ]
    return verdicts, (reasons or unusable or [""])[0]


def written(verdicts, why):
    """An expectation as a fixture spells it."""
    skips = " ".join(sorted(name for name, verdict in verdicts.items() if verdict == Verdict.SKIP))
    whole = " ".join(sorted(name for name, verdict in verdicts.items() if verdict == Verdict.ALL_ROWS))
    text = "; ".join(filter(None, [skips and f"skips {skips}", whole and f"all of {whole}"])) or "reads all"
    return f"{text}: {' '.join(why.split())}" if why else text


@pytest.fixture
def session(spark):
    """The session with its settings put back."""
    names = ["spark.sql.session.timeZone", "spark.sql.parquet.datetimeRebaseModeInRead", "spark.sql.ansi.enabled"]
    before = {name: spark.conf.get(name) for name in names}
    spark.conf.set(names[1], "CORRECTED")
    spark.conf.set(names[2], "false")
    yield spark
    for name, value in before.items():
        spark.conf.set(name, value)


# The unit tests take every fixture without Spark.
@pytest.mark.slow
@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_predicates_skip_the_files_that_the_fixture_says(session, path):
    fixture, name = Fixture.read(path), f"z.fixture_{path.stem}"
    for key, value in fixture.settings.items():
        session.conf.set(key, value)
    frame = session.sql(fixture.query)
    ZTable.write(session, name, frame, zorder=[], partition_by=["file"], stats_columns=50)
    files = sorted(row[0] for row in frame.select("file").distinct().collect())
    # Conditions first and counts after: Spark counts nothing that is not deterministic.
    matches = [f"case when {predicate} then 1 end c{n}" for n, (predicate, _) in enumerate(fixture.cases)]
    counts = [expr("count(*) n"), *(expr(f"count(c{n}) c{n}") for n in range(len(matches)))]
    truth = {row["file"]: row for row in frame.selectExpr("file", *matches).groupBy("file").agg(*counts).collect()}
    lines, wrong, other = [], [], []
    for number, (predicate, expected) in enumerate(fixture.cases):
        for each, verdict in found_verdicts(session, name, predicate)[0].items():
            matching, rows = truth[each][f"c{number}"], truth[each]["n"]
            if (verdict == Verdict.SKIP and matching) or (verdict == Verdict.ALL_ROWS and matching < rows):
                wrong.append(f"{predicate}: {each} is {verdict.name} and has {matching} of {rows} rows")
        with rules_alone():
            verdicts, why = found_verdicts(session, name, predicate)
        if not WRITE and expected_verdicts(expected, files) != verdicts:
            other.append(f"{predicate}: expected {expected}, found {written(verdicts, why)}")
        lines.append(f"{predicate}  -- {written(verdicts, why)}")
    assert not wrong, "\n".join(wrong)
    # Older optimizers leave a few conditions in another form, of which less, or more, can be made.
    most = len(lines) // 20 if session.version.startswith(("3.", "4.0")) else 0
    assert len(other) <= most, "\n".join(other)
    if WRITE:
        path.write_text(f"{fixture.head}create\n{fixture.query};\n" + "\n".join(lines) + "\n", "utf-8")


def test_there_are_enough_predicates():
    assert sum(len(Fixture.read(path).cases) for path in FIXTURES) >= 400
