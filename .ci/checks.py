"""The checks of a change, two at a time; says at the end which failed, what each took and how many tests ran.

    checks.py test       what a change can break: lint, types, unit tests, the suites on the newest Spark
    checks.py others     a share of what takes longer: older Sparks and dbts, slow tests; the wheel, the documentation
    checks.py all        every test on every Spark, every order of writers, every fault, mutants; takes hours
    checks.py summary test others    adds up the reports of these runs; one without a report has failed

Runs in the environment that `make venv` made.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from requirements import replaced

ROOT = Path(__file__).parents[1]
REPORTS = Path(os.environ.get("REPORTS", ROOT / "build" / "reports"))
OUTCOMES = "outcomes.json"
PYTHON = sys.executable
UV = (str(Path(PYTHON).with_name("uv")), "--no-config")
OTHER_SPARKS = ("3.5", "4.0")
OTHER_DBTS = ("1.10", "1.11")
CORE = ("advice", "config", "curve", "index", "layout", "predicate", "pruning", "publish", "store", "timeline")
SUITES = ("engine", "conformance", "adapter", "faults", "stores", "tpch")
LAWS = ("tests/properties", "tests/protocol")
LANES = 2
# Of the engine's suite on an older Spark a 24th runs, one or two modules; of dbt's suites on an older dbt-core, a 48th,
# a module each. The tests of a module share the tables that the first of them makes.
SHARES = 24
SMALL_SHARES = 2 * SHARES
_LINES_OF_A_FAILURE = 25
_COUNTED = ("tests", "failures", "errors", "skipped")

# CI is cut off at 90 minutes: a test that hangs ends there with the stacks of all threads, and the other checks go on.
_LONGEST_TEST = ("-o", "faulthandler_timeout=600", "-o", "faulthandler_exit_on_timeout=true")

# Short queries, thousands of them: Java's second compiler and its parallel collector cost more than they win back.
# With that one compiler alone Java keeps 48 MB of compiled code. Spark's is more: what was compiled is dropped and
# compiled again, over and over.
_JAVA = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC"}
_EVERYWHERE = {"DBT_SEND_ANONYMOUS_USAGE_STATS": "false", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


# A package index cannot follow links to files of the repository.
_NO_DEAD_LINKS = r"""
import re, sys, zipfile
from pathlib import Path

(wheel,) = Path(sys.argv[1]).glob("*.whl")
with zipfile.ZipFile(wheel) as files:
    (name,) = [each for each in files.namelist() if each.endswith(".dist-info/METADATA")]
    page = files.read(name).decode()
assert "## Read on" in page
sys.exit("\n".join(re.findall(r"\]\((?!https?://)[^)]*\)", page)) or None)
"""


@dataclass(frozen=True)
class Command:
    """A program with its arguments, what its environment has besides, and where it runs."""

    arguments: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    folder: Path = ROOT


@dataclass(frozen=True)
class Check:
    """Commands that run one after the other, until one fails."""

    name: str
    commands: Sequence[Command]


@dataclass(frozen=True)
class Outcome:
    """How a check ended."""

    name: str
    passed: bool
    seconds: float

    def __str__(self) -> str:
        return f"{self.seconds:5.0f} s  {'ok' if self.passed else 'FAILED':6}  {self.name}"


@dataclass(frozen=True)
class Checks:
    """What can be checked.

    Attributes:
        reports: The folder for JUnit reports and for what a check makes on its way.
    """

    reports: Path

    def named(self, run: str) -> list[Check]:
        """The checks of a run, the longest first, so that the lanes end together."""
        if run == "test":
            suites = (self.suite(name) for name in SUITES if name != "tpch")
            return [self.lint(), self.types(), *suites, self.unit(), self.laws()]
        if run == "others":
            share = share_of_commit()
            print(
                f"share {share} of {SMALL_SHARES}; ZLAYOUT_SHARE={share} make test-others runs these tests again",
                flush=True,
            )
            slow = ("-m", "slow and not exhaustive", *of_slow(share))
            return [
                *(self.engine_on(spark, *of_engine(share, number)) for number, spark in enumerate(OTHER_SPARKS)),
                *(self.dbt_suites_on(dbt, *of_dbt(share, number)) for number, dbt in enumerate(OTHER_DBTS)),
                *(self.suite(name, *slow) for name in ("engine", "adapter", "conformance", "stores")),
                self.suite("faults", "-m", "exhaustive or slow", "--faults", "sample", *of_slow(share)),
                self.suite("tpch"),
                self.wheel(),
                self.page(),
                self.documentation(),
            ]
        every, full = ("-m", ""), ("-m", "", "--faults", "full")
        return [
            self.lint(),
            self.types(),
            *(self.engine_on(spark, "-m", "not newest_spark") for spark in OTHER_SPARKS),
            *(self.dbt_suites_on(dbt, *every) for dbt in OTHER_DBTS),
            *(self.suite(name, *(full if name == "faults" else every), ZLAYOUT_SEQUENCES="10") for name in SUITES),
            self.unit(*every),
            self.laws(*every, ZLAYOUT_PROTOCOL="full", ZLAYOUT_LAWS="full"),
            self.wheel(),
            self.page(),
            self.documentation(),
            self.mutants(),
        ]

    def lint(self) -> Check:
        """Rules and format."""
        ruff = [PYTHON, "-m", "ruff"]
        return Check("lint", [Command([*ruff, "check", "."]), Command([*ruff, "format", "--check", "."])])

    def types(self) -> Check:
        """The type checker."""
        return Check("types", [Command([PYTHON, "-m", "mypy", "--strict"])])

    def unit(self, *options: str) -> Check:
        """Tests without Spark; CI also measures how much of the core they cover, by branch."""
        measured = [f"--cov=dbt/adapters/zlayout/{part}" for part in CORE]
        coverage = [*measured, "--cov-branch", "--cov-report=term:skip-covered"] if "CI" in os.environ else []
        environment = {"COVERAGE_FILE": str(self.reports / ".coverage")}
        without = (f"--ignore={each}" for each in LAWS)
        return Check("unit tests", [self._pytest("tests", "unit", *without, *coverage, *options, **environment)])

    def laws(self, *options: str, **environment: str) -> Check:
        """Laws, and orders of the effects of several writers: apart, since measuring coverage doubles their time."""
        return Check("laws", [self._pytest(LAWS[0], "laws", *LAWS[1:], *options, **environment)])

    def suite(self, name: str, *options: str, **environment: str) -> Check:
        """A suite on a real Spark, the newest."""
        return Check(f"integration/{name}", [self._pytest(f"integration/{name}", name, *options, **environment)])

    def engine_on(self, spark: str, *options: str) -> Check:
        """The engine's suite on another Spark."""
        python, made = self._environment(spark, f"pyspark-{spark}")
        suite = self._pytest("integration/engine", f"engine-{spark}", *options, python=python)
        return Check(f"integration/engine on Spark {spark}", [*made, suite])

    def dbt_suites_on(self, dbt: str, *options: str) -> Check:
        """The suites that run dbt, on another dbt-core."""
        python, made = self._environment(f"dbt-{dbt}", f"dbt-{dbt}")
        suites = (
            self._pytest(f"integration/{suite}", f"{suite}-dbt-{dbt}", *options, python=python)
            for suite in ("adapter", "conformance")
        )
        return Check(f"integration/adapter and conformance on dbt-core {dbt}", [*made, *suites])

    def _environment(self, name: str, lock: str) -> tuple[str, list[Command]]:
        """An environment beside .venv: the lock, with the packages of ``.ci/<lock>.lock`` in place of its own.

        Returns:
            Its Python, and the commands that make it.
        """
        folder = ROOT / f".venv-{name}"
        python = str(folder / "bin" / "python")
        wanted = self.reports / f"{lock}.lock"
        replacement = (ROOT / ".ci" / f"{lock}.lock").read_text("utf-8")
        wanted.write_text(replaced((ROOT / "requirements.lock").read_text("utf-8"), replacement), "utf-8")
        install = [*UV, "pip", "install", "-q", "--no-deps", "--python", python]
        return python, [
            Command([*UV, "venv", "-q", "--clear", "--python", PYTHON, str(folder)]),
            Command([*install, "--require-hashes", "-r", str(wanted)]),
            Command([*install, "--editable", "."]),
        ]

    def documentation(self) -> Check:
        """The documentation as HTML."""
        site = str(self.reports / "site")
        return Check("documentation", [Command([PYTHON, "-m", "mkdocs", "build", "--strict", "-q", "-d", site])])

    def wheel(self) -> Check:
        """The wheel in an empty environment, with the versions of the lock, and the first command of a new project."""
        work = self.reports / "wheel"
        bin_, project = work / "venv" / "bin", work / "project"
        project.mkdir(parents=True, exist_ok=True)
        (project / "dbt_project.yml").write_text("name: fresh\nversion: '1.0'\nprofile: fresh\n")
        profile = "fresh:\n  target: dev\n  outputs:\n    dev: {type: zlayout, schema: fresh}\n"
        (project / "profiles.yml").write_text(profile)
        options = f'--python "{bin_}/python" --excludes .ci/not-installed.txt -c requirements.lock'
        install = f'"$0" --no-config pip install -q {options} "{work}"/dist/*.whl'
        place = ["--project-dir", str(project), "--profiles-dir", str(project), "--log-path", str(work / "logs")]
        commands = [
            Command([PYTHON, "-m", "build", "-q", "--outdir", str(work / "dist"), "."]),
            Command([PYTHON, "-m", "venv", str(work / "venv")]),
            Command(["sh", "-c", install, UV[0]]),
            Command([PYTHON, "-c", _NO_DEAD_LINKS, str(work / "dist")]),
            # In another folder, where the checkout is not on Python's path.
            Command([str(bin_ / "dbt"), "debug", *place], {"PYSPARK_PYTHON": str(bin_ / "python")}, project),
        ]
        return Check("wheel in an empty environment, dbt debug", commands)

    def page(self) -> Check:
        """The report's page in Chromium. CI installs one where it can; without one, the tests say that they skip."""
        install = [Command(["sh", ".ci/chromium"])] if "CI" in os.environ else []
        tests = self._pytest("tests/unit/adapter/report_page/test_page_in_a_browser.py", "page", "-rs")
        return Check("the report's page in Chromium", [*install, tests])

    def mutants(self) -> Check:
        """Wrongs put into pruning one by one, which the tests must notice."""
        return Check("mutants", [Command([PYTHON, "tests/mutation/mutants.py"])])

    def _pytest(self, path: str, report: str, *options: str, python: str = PYTHON, **environment: str) -> Command:
        """Tests in a process of their own, as Spark has one session a process."""
        arguments = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--durations=5"]
        if "CI" in os.environ:
            arguments += _LONGEST_TEST
        environment = {"PYSPARK_PYTHON": python, **environment}
        if path.startswith("integration/"):
            # Spark and dbt warn of themselves; only the unit tests take warnings for errors.
            arguments += ["-W", "default", "-W", "ignore:unclosed:ResourceWarning"]
            environment = {"PYTHONPATH": str(ROOT / path), **_JAVA, **environment}
        return Command([*arguments, f"--junitxml={self.reports / report}.xml", *options, path], environment)


def share_of_commit() -> int:
    """Which share of the slower tests runs, from 1 to `SMALL_SHARES`; the commit decides: a rerun tests the same."""
    if wanted := os.environ.get("ZLAYOUT_SHARE"):
        if wanted not in map(str, range(1, SMALL_SHARES + 1)):
            sys.exit(f"ZLAYOUT_SHARE={wanted} must be a number from 1 to {SMALL_SHARES}")
        return int(wanted)
    git = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    # Without git, as in an unpacked archive, the first.
    return int(git.stdout.strip() or "0", 16) % SMALL_SHARES + 1


def of_engine(share: int, number: int) -> tuple[str, ...]:
    """What runs of the engine's suite on the other Spark of that number: whole modules, on each another share."""
    turned = (share - 1 + number * SHARES // len(OTHER_SPARKS)) % SHARES + 1
    return "-m", "not exhaustive and not newest_spark", "--share", f"{turned}/{SHARES}", "--share-of", "modules"


def of_dbt(share: int, number: int) -> tuple[str, ...]:
    """What runs of a suite on the other dbt-core of that number: whole modules, on each another share."""
    turned = (share - 1 + number * SMALL_SHARES // len(OTHER_DBTS)) % SMALL_SHARES + 1
    return "-m", "not exhaustive and not slow", "--share", f"{turned}/{SMALL_SHARES}", "--share-of", "modules"


def of_slow(share: int) -> tuple[str, ...]:
    """What runs of slow tests, on the newest Spark alone."""
    of = 3 * SHARES // 4
    return "--share", f"{(share - 1) % of + 1}/{of}"


def run(check: Check, printing: threading.Lock) -> Outcome:
    """Runs a check and prints what it said, in one piece."""
    started, passed = time.monotonic(), True
    with tempfile.TemporaryFile() as said:
        for command in check.commands:
            environment = {**os.environ, **_EVERYWHERE, **command.environment}
            done = subprocess.run(
                command.arguments,
                cwd=command.folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                check=False,
            )
            passed = done.returncode == 0
            if not passed:
                break
        said.seek(0)
        with printing:
            print(f"\n=== {check.name}", flush=True)
            shutil.copyfileobj(said, sys.stdout.buffer)
            sys.stdout.buffer.flush()
    return Outcome(check.name, passed, time.monotonic() - started)


def failures(report: ElementTree.Element) -> Iterator[str]:
    """The failed tests of a report: a name, then the last lines of what pytest says of it."""
    for case in report.iter("testcase"):
        for problem in (*case.findall("failure"), *case.findall("error")):
            yield f"{case.get('classname')}::{case.get('name')} failed"
            yield from (problem.text or "").splitlines()[-_LINES_OF_A_FAILURE:]


def summarise(runs: Sequence[str]) -> bool:
    """Prints seconds, each failed test with the end of its report, tests by suite, and pytest's closing line of all.

    A failed check without a failed test counts as one; so does a run that did not come to its end.

    Args:
        runs: ``test``, ``others``, ``all``: what should have run.

    Returns:
        Whether all passed.
    """
    outcomes = [outcome for each in runs for outcome in _outcomes(each)]
    print("\n=== seconds", *outcomes, sep="\n")
    total: Counter[str] = Counter()
    failed_tests: list[str] = []
    print("\n=== tests")
    for path in sorted(path for each in runs for path in (REPORTS / each).glob("*.xml")):
        try:
            report = ElementTree.parse(path).getroot()
        except ElementTree.ParseError:
            # The process ended while it wrote; its check has failed.
            continue
        counts = Counter(
            {name: sum(int(suite.get(name, 0)) for suite in report.iter("testsuite")) for name in _COUNTED}
        )
        total += counts
        print(f"{counts['tests'] - counts['skipped']:5}  {path.parent.name}: {path.stem}")
        failed_tests += (f"{path.stem}: {line}" for line in failures(report))
    print(*failed_tests, sep="\n")
    wrong = [each for each in outcomes if not each.passed]
    for outcome in wrong:
        print(f"failed: {outcome.name}")
    failed = total["failures"] + total["errors"]
    passed = total["tests"] - failed - total["skipped"]
    seconds = sum(each.seconds for each in outcomes) / LANES
    told = ((max(failed, len(wrong)), "failed"), (passed, "passed"), (total["skipped"], "skipped"))
    print(
        f"{', '.join(f'{count} {word}' for count, word in told if count or word == 'passed')} in {seconds:.2f}s",
        flush=True,
    )
    return not wrong and not failed


def _outcomes(run: str) -> list[Outcome]:
    path = REPORTS / run / OUTCOMES
    if not path.is_file():
        return [Outcome(f"make {'test' if run == 'test' else f'test-{run}'} did not come to its end", False, 0)]
    return [Outcome(**each) for each in json.loads(path.read_text())]


def main(wanted: str, *runs: str) -> bool:
    """Runs checks, or adds up what ran before; returns whether all passed."""
    if wanted == "summary":
        return summarise(runs)
    folder = REPORTS / wanted
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    printing = threading.Lock()
    with ThreadPoolExecutor(LANES) as lanes:
        outcomes = list(lanes.map(lambda check: run(check, printing), Checks(folder).named(wanted)))
    (folder / OUTCOMES).write_text(json.dumps([asdict(each) for each in outcomes]))
    return summarise([wanted])


if __name__ == "__main__":
    sys.exit(not main(*sys.argv[1:]))
