"""Adds up the JUnit reports of all suites; its last line is the closing line of the whole run."""

import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

_LINES_OF_A_FAILURE = 25


def main(folder: str, failed_steps: str) -> None:
    """Prints each failed test with the end of its report, then 'N passed, N failed, N skipped'.

    A failed step without a failed test counts as one.
    """
    counts = dict.fromkeys(("tests", "failures", "errors", "skipped"), 0)
    for report in sorted(Path(folder).glob("*.xml")):
        root = ElementTree.parse(report).getroot()
        for suite in root.iter("testsuite"):
            for name in counts:
                counts[name] += int(suite.get(name, 0))
        for line in failures(root):
            sys.stdout.write(f"{report.stem}: {line}\n")
    failed = counts["failures"] + counts["errors"]
    passed = counts["tests"] - failed - counts["skipped"]
    failed = max(failed, int(failed_steps))
    sys.stdout.write(f"{passed} passed, {failed} failed, {counts['skipped']} skipped\n")


def failures(root: ElementTree.Element) -> Iterator[str]:
    """The failed tests of a report: a name, then the last lines of what pytest says of it."""
    for case in root.iter("testcase"):
        for problem in (*case.findall("failure"), *case.findall("error")):
            yield f"{case.get('classname')}::{case.get('name')} failed"
            yield from (problem.text or "").splitlines()[-_LINES_OF_A_FAILURE:]


main(*sys.argv[1:])
