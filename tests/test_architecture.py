"""The house keeps its shape: imports point down the layers, and the core stays free of dbt and Spark."""

import ast
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = "dbt.adapters.zlayout"
PACKAGE_FOLDER = ROOT / "dbt" / "adapters" / "zlayout"
INCLUDE_FOLDER = ROOT / "dbt" / "include" / "zlayout"

CORE, ENGINE, FACADE, EDGE = range(4)
LAYER_NAMES = ("core", "engine", "facade", "dbt edge")
LAYER_OF_PART = {
    **dict.fromkeys(
        ("config", "curve", "predicate", "pruning", "layout", "timeline", "index", "publish", "store", "errors"), CORE
    ),
    "spark": ENGINE,
    **dict.fromkeys(
        ("inspect", "explanation_text", "text_grid", "report", "table_measures"),
        FACADE,
    ),
    **dict.fromkeys(
        (
            "table",
            "table_writes",
            "table_records",
            "table_clustering",
            "table_history",
            "table_index_care",
            "table_measures",
        ),
        FACADE,
    ),
}
# Every other module at the top is of the dbt edge. These two have no layer: one loads names lazily, one is a number.
WITHOUT_LAYER = ("__init__", "__version__")

ALLOWED_IN_CORE = {"numpy", "pyarrow"}
ALLOWED_IN_STORE = ALLOWED_IN_CORE | {"obstore"}
# Where the dbt edge starts Spark, which it cannot do without naming it.
STARTS_SPARK = {"session_launch"}


@dataclass(frozen=True)
class Import:
    """One imported module; names of `from x import y` count as `x.y` where y is a module."""

    target: str
    line: int
    for_types_only: bool


@dataclass(frozen=True)
class Module:
    """One file of the package."""

    path: Path
    text: str

    @property
    def name(self):
        parts = self.path.relative_to(PACKAGE_FOLDER).with_suffix("").parts
        return ".".join(parts[:-1] if len(parts) > 1 and parts[-1] == "__init__" else parts)

    @property
    def part(self):
        return self.name.split(".")[0]

    @property
    def layer(self):
        return LAYER_OF_PART.get(self.part, EDGE)

    @property
    def tree(self):
        return ast.parse(self.text)

    @property
    def imports(self):
        return tuple(_imports(self.tree, self.path, for_types_only=False))


def _imports(node, path, *, for_types_only):
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (Import(alias.name, child.lineno, for_types_only) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            base = child.module or ""
            if child.level:
                folder = path.relative_to(ROOT).parts[: -child.level]
                base = ".".join((*folder, *filter(None, [child.module])))
            yield from (Import(f"{base}.{alias.name}", child.lineno, for_types_only) for alias in child.names)
        elif isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
            for each in child.body:
                yield from _imports(ast.Module([each], []), path, for_types_only=True)
            for each in child.orelse:
                yield from _imports(ast.Module([each], []), path, for_types_only=for_types_only)
        else:
            yield from _imports(child, path, for_types_only=for_types_only)


def _modules():
    return [Module(path, path.read_text("utf-8")) for path in sorted(PACKAGE_FOLDER.rglob("*.py"))]


MODULES = _modules()


def _each(wanted):
    return pytest.mark.parametrize("module", [each for each in MODULES if wanted(each)], ids=lambda module: module.name)


def _own_part(target):
    """The part of this package that an import names, or None for somebody else's module."""
    if target == PACKAGE or not target.startswith(f"{PACKAGE}."):
        return None
    return target.removeprefix(f"{PACKAGE}.").split(".")[0]


def _is_foreign(target):
    return _own_part(target) is None and target.split(".")[0] not in sys.stdlib_module_names


def test_there_is_a_package_to_look_at():
    assert len(MODULES) > 40
    assert {module.layer for module in MODULES} >= {CORE, ENGINE, EDGE}


@_each(lambda module: module.part not in WITHOUT_LAYER)
def test_imports_point_down(module):
    upward = [
        f"line {each.line}: {LAYER_NAMES[module.layer]} imports {each.target} of the {LAYER_NAMES[layer]}"
        for each in module.imports
        if (part := _own_part(each.target)) is not None
        and part not in WITHOUT_LAYER
        and (layer := LAYER_OF_PART.get(part, EDGE)) > module.layer
    ]
    assert not upward, "\n".join(upward)


@_each(lambda module: module.layer == CORE)
def test_the_core_imports_nothing_but_arrays(module):
    allowed = ALLOWED_IN_STORE if module.part == "store" else ALLOWED_IN_CORE
    foreign = [each for each in module.imports if _is_foreign(each.target)]
    wrong = [f"line {each.line}: {each.target}" for each in foreign if each.target.split(".")[0] not in allowed]
    assert not wrong, "\n".join(wrong)


@_each(lambda module: module.layer != ENGINE)
def test_only_the_engine_imports_spark(module):
    wrong = [
        f"line {each.line}: {each.target}"
        for each in module.imports
        if each.target.split(".")[0] in ("pyspark", "py4j")
        and not (module.layer > ENGINE and (each.for_types_only or module.name in STARTS_SPARK))
    ]
    assert not wrong, "\n".join(wrong)


@_each(lambda module: module.layer != EDGE)
def test_only_the_dbt_edge_imports_dbt(module):
    wrong = [
        f"line {each.line}: {each.target}"
        for each in module.imports
        if _is_foreign(each.target) and each.target.split(".")[0] in ("dbt", "dbt_common")
    ]
    assert not wrong, "\n".join(wrong)


@_each(lambda module: module.name != "__version__")
def test_the_first_line_of_a_file_says_its_reason(module):
    assert ast.get_docstring(module.tree), "the file has no docstring"
    assert module.text.startswith('"""'), "the docstring is not on the first line"


@pytest.mark.parametrize("path", sorted(INCLUDE_FOLDER.rglob("*.sql")), ids=lambda path: path.name)
def test_macros_stay_short(path):
    assert path.read_text("utf-8").count("\n") <= 100


def test_the_core_loads_without_dbt_and_without_spark():
    """What a Spark worker pays for is what the core imports, also through other modules."""
    names = [f"{PACKAGE}.{module.name}" for module in MODULES if module.layer == CORE]
    program = (
        "import importlib, sys\n"
        f"for name in {names!r}: importlib.import_module(name)\n"
        "heavy = ('pyspark', 'py4j', 'dbt_common', 'dbt.adapters.base', 'dbt.adapters.spark', 'dbt.include')\n"
        "found = sorted(each for each in sys.modules if each.startswith(heavy))\n"
        "print(' '.join(found[:5])); sys.exit(bool(found))\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=ROOT)
    assert run.returncode == 0, run.stdout + run.stderr
