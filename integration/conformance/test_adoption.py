"""No base class of dbt-tests-adapter is overlooked, and at least 150 pass entirely."""

import re
from pathlib import Path

from adoption import adopted_by, adopting_classes, base_classes, names_of_tests
from not_applicable import NOT_APPLICABLE

_WANTED = 150


def test_every_base_class_is_adopted_or_says_why_not() -> None:
    adopted = {adopted_by(kind) for kind in adopting_classes().values()}
    assert sorted(set(base_classes()) - adopted - set(NOT_APPLICABLE)) == []


def test_what_is_not_applicable_exists_and_is_not_adopted() -> None:
    adopted = {adopted_by(kind) for kind in adopting_classes().values()}
    assert sorted(set(NOT_APPLICABLE) - set(base_classes())) == []
    assert sorted(set(NOT_APPLICABLE) & adopted) == []


def test_a_base_class_is_adopted_once_and_with_all_of_its_tests() -> None:
    bases = base_classes()
    adopted = {name: adopted_by(kind) for name, kind in adopting_classes().items()}
    assert len(set(adopted.values())) == len(adopted)
    for name, kind in adopting_classes().items():
        missing = set(names_of_tests(bases[str(adopted[name])])) - set(names_of_tests(kind))
        assert not missing, f"{name} leaves out {sorted(missing)}"
        marks = {mark.name for mark in getattr(kind, "pytestmark", ())}
        assert marks <= {"exhaustive", "slow"}, f"{name} is marked; what cannot pass belongs into `cannot`"


def test_what_cannot_pass_is_a_test_of_its_class() -> None:
    for name, kind in adopting_classes().items():
        assert set(getattr(kind, "cannot", {})) <= set(names_of_tests(kind)), name


def test_enough_base_classes_pass_entirely() -> None:
    # Whether they do is what running the suite tells: a failure that is not expected fails it, as does an expected one that passes.
    assert len(_whole()) >= _WANTED


def test_the_documentation_counts_right() -> None:
    page = (Path(__file__).parents[2] / "docs" / "conformance.md").read_text("utf-8")
    counts = [int(number) for number in re.findall(r"^\| .+ \| (\d+) \|$", page, re.MULTILINE)]
    adopted, whole = len(adopting_classes()), len(_whole())
    assert counts == [len(base_classes()), adopted, whole, adopted - whole, len(NOT_APPLICABLE)]


def _whole() -> list[str]:
    """The classes of which no test is expected to fail."""
    return [name for name, kind in adopting_classes().items() if not getattr(kind, "cannot", {})]
