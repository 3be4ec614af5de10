"""Which base classes dbt-tests-adapter has, and which of them this suite adopts."""

import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path

import dbt.tests

_PACKAGE = "dbt.tests.adapter."
_ROOT = Path(next(iter(dbt.tests.__path__)))


def base_classes() -> dict[str, type]:
    """The classes of the package that bring tests, by module and name; those that only name another one are left out."""
    return {
        f"{kind.__module__.removeprefix(_PACKAGE)}.{name}": kind
        for path in sorted((_ROOT / "adapter").rglob("*.py"))
        for name, kind in _classes_of(".".join(("dbt", "tests", *path.relative_to(_ROOT).with_suffix("").parts)))
        if names_of_tests(kind) and not _only_names_another(kind)
    }


def adopting_classes() -> dict[str, type]:
    """The test classes of this suite, by module and name."""
    return {
        f"{path.stem}.{name}": kind
        for path in sorted(Path(__file__).parent.glob("test_*.py"))
        for name, kind in _classes_of(path.stem)
        if name.startswith("Test")
    }


def adopted_by(kind: type) -> str | None:
    """The base class of the package that a test class adopts."""
    for base in kind.__mro__:
        if base.__module__.startswith(_PACKAGE):
            return f"{base.__module__.removeprefix(_PACKAGE)}.{base.__name__}"
    return None


def names_of_tests(kind: type) -> list[str]:
    """The names of a class's test methods."""
    return [name for name in dir(kind) if name.startswith("test_") and inspect.isfunction(getattr(kind, name))]


def _classes_of(module: str) -> Iterator[tuple[str, type]]:
    for name, kind in vars(importlib.import_module(module)).items():
        if inspect.isclass(kind) and kind.__module__ == module and kind.__name__ == name:
            yield name, kind


def _only_names_another(kind: type) -> bool:
    """Whether a class is there to be collected in the package's own suite, as most of ``Test…`` are."""
    return kind.__name__.lower().startswith("test") and not any(
        callable(part) or inspect.isfunction(part) for name, part in vars(kind).items() if not name.startswith("__")
    )
