"""Mutants of pruning: one small wrong in a module at a time, which the fast tests must notice.

    python tests/mutation/mutants.py                     every module of predicate/ and pruning/
    python tests/mutation/mutants.py leaves verdict      these modules
    python tests/mutation/mutants.py --every 7           each seventh mutant: a sample

Prints the mutants that no test noticed, and ends with their number. Each mutant is a fork of one process. Those of
`propagation/` meet their laws only, which take a minute: a whole run takes hours, a module some minutes.
"""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

# What every child needs is loaded before the first one, but nothing of the package.
import hypothesis
import numpy as np  # noqa: F401
import pyarrow.compute
import pyarrow.parquet  # noqa: F401
import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "dbt" / "adapters" / "zlayout"
# Texts for people are not what is tested here.
WITHOUT = {"__init__", "literals", "scan", "reasons"}
QUICK = ["tests/unit/predicate", "tests/unit/pruning"]
# A mutant may take so many times as long as the tests take without one.
LIMIT = 5
# By folder: what notices there that the quick tests do not.
LAWS = {"propagation": "tests/properties/test_propagation_laws.py"}
OTHER_LAWS = "tests/properties/test_pruning_laws.py"
# By module: which of its laws are tried first.
NEAREST = {
    "arithmetic": "arithmetic",
    "calendar": "calendars or any_zone or any_jump",
    "monotone": "arithmetic or conversions",
    "numbers": "conversions",
    "texts": "texts",
}

Mutation = Callable[[ast.AST], None]

_COMPARES = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_BINARY = {
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
}  # fmt: skip
_NAMES = {
    "less": "less_equal", "less_equal": "less", "greater": "greater_equal", "greater_equal": "greater",
    "minimum": "maximum", "maximum": "minimum", "minimum_exact": "maximum_exact", "maximum_exact": "minimum_exact",
    "may_be_null": "may_be_nan", "may_be_nan": "may_be_null", "is_valid": "is_null", "is_null": "is_valid",
    "logical_and": "logical_or", "logical_or": "logical_and", "floor": "ceil", "ceil": "floor",
}  # fmt: skip


def mutations(tree: ast.Module) -> Iterator[tuple[int, str, Callable[[], None]]]:
    """Yields line, description and an action that changes the tree in place."""
    hints = {id(part) for node in ast.walk(tree) for part in _hints(node)}
    for node in ast.walk(tree):
        if id(node) in hints:
            continue
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARES:
            new = _COMPARES[type(node.ops[0])]
            yield line, f"{type(node.ops[0]).__name__} → {new.__name__}", _setting(node.ops, 0, new())
        elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in _BINARY:
            new = _BINARY[type(node.op)]
            yield line, f"{type(node.op).__name__} → {new.__name__}", _changing(node, "op", new())
        elif isinstance(node, ast.BoolOp):
            swapped = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield line, "and ↔ or", _changing(node, "op", swapped)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert | ast.Not):
            yield line, f"{type(node.op).__name__} dropped", _changing(node, "op", ast.UAdd())
        elif isinstance(node, ast.Attribute) and node.attr in _NAMES:
            yield line, f".{node.attr} → .{_NAMES[node.attr]}", _changing(node, "attr", _NAMES[node.attr])
        elif isinstance(node, ast.keyword) and node.arg in _NAMES and node.arg.startswith(("minimum", "maximum")):
            continue
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
            yield line, f"{node.value} → {not node.value}", _changing(node, "value", not node.value)


def _hints(node: ast.AST) -> Iterator[ast.AST]:
    """What never runs: annotations, and the arguments of decorators."""
    annotated = [getattr(node, name, None) for name in ("annotation", "returns")]
    for root in [*annotated, *getattr(node, "decorator_list", [])]:
        if isinstance(root, ast.AST):
            yield from ast.walk(root)
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id[0].isupper():
        yield from ast.walk(node)


def _setting(items: list[ast.cmpop], position: int, new: ast.cmpop) -> Callable[[], None]:
    return lambda: items.__setitem__(position, new)


def _changing(node: ast.AST, name: str, new: object) -> Callable[[], None]:
    return lambda: setattr(node, name, new)


class _Mutated(importlib.abc.MetaPathFinder, importlib.abc.SourceLoader):
    """Loads one module with one mutation."""

    def __init__(self, path: Path, number: int) -> None:
        self._path, self._number = path, number
        self._name = ".".join(path.relative_to(ROOT).with_suffix("").parts)

    def find_spec(self, fullname: str, path: object, target: object = None) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._name:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, origin=str(self._path))

    def get_filename(self, fullname: str) -> str:
        return str(self._path)

    def get_data(self, path: str | bytes) -> bytes:
        return Path(os.fsdecode(path)).read_bytes()

    def source_to_code(self, data: object, path: object, *, _optimize: int = -1) -> object:
        tree = ast.parse(self._path.read_text("utf-8"))
        list(mutations(tree))[self._number][2]()
        return compile(ast.fix_missing_locations(tree), str(self._path), "exec")

    def exec_module(self, module: object) -> None:
        exec(self.source_to_code(b"", ""), vars(module))


def modules(names: Sequence[str]) -> list[Path]:
    """The modules to change, all of them without names."""
    found = [path for part in ("predicate", "pruning") for path in sorted((PACKAGE / part).rglob("*.py"))]
    return [path for path in found if (path.stem in names if names else path.stem not in WITHOUT)]


def run_one(path: Path | None, number: int, tests: Sequence[str], limit: int) -> bool:
    """Whether the tests notice a mutant; one that runs into the limit of seconds counts as noticed.

    Without a path nothing is mutated, and 0 is no limit.
    """
    child = os.fork()
    if child == 0:
        signal.alarm(limit)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        if path is not None:
            sys.meta_path.insert(0, _Mutated(path, number))
        # Whether a law fails is what counts, not the smallest case in which it does.
        hypothesis.settings.register_profile(
            "mutants", phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate], database=None
        )
        hypothesis.settings.load_profile("mutants")
        os.environ["ZLAYOUT_LAWS"] = "full"
        options = ["-x", "-q", "-p", "no:cacheprovider", "-W", "ignore:Module already imported", "--hypothesis-seed=1"]
        os._exit(int(pytest.main([*options, *tests])))
    return os.waitpid(child, 0)[1] != 0


def survivors_of(path: Path, numbers: Sequence[int], limit: int) -> list[int]:
    """Those mutants of a module that neither the quick nor the slow tests notice."""
    laws = LAWS.get(path.parent.name, OTHER_LAWS)
    nearest = [["-k", NEAREST[path.stem], laws]] if path.stem in NEAREST else []
    left = list(numbers)
    for tests in (QUICK, *nearest, [laws]):
        left = [number for number in left if not run_one(path, number, tests, limit)]
    return left


def main(arguments: Sequence[str]) -> int:
    step = int(arguments[1]) if arguments[:1] == ["--every"] else 1
    names = arguments[2:] if arguments[:1] == ["--every"] else arguments
    os.chdir(ROOT)
    chosen_modules, start = modules(names), time.monotonic()
    laws = {LAWS.get(path.parent.name, OTHER_LAWS) for path in chosen_modules}
    if run_one(None, 0, [*QUICK, *laws], 0):
        print("the tests fail without any mutant")
        return 1
    limit = LIMIT * max(1, round(time.monotonic() - start))
    tried = survived = position = 0
    for path in chosen_modules:
        lines = [f"{line}: {what}" for line, what, _ in mutations(ast.parse(path.read_text("utf-8")))]
        chosen = [number for number in range(len(lines)) if (position + number) % step == 0]
        left = survivors_of(path, chosen, limit)
        position, tried, survived = position + len(lines), tried + len(chosen), survived + len(left)
        print(f"{path.relative_to(ROOT)}: {len(chosen)} mutants, {len(left)} survivors", flush=True)
        for number in left:
            print(f"  {path.relative_to(ROOT)}:{lines[number]}", flush=True)
    print(f"{tried} mutants, {survived} survivors")
    return survived


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 125))
