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

CORE, ENGINE, TABLE, ADAPTER, CLI = range(5)
LAYER_NAMES = ("core", "engine", "table", "adapter", "cli")
LAYER_OF_FOLDER = {
    **dict.fromkeys(
        ("config", "curve", "predicate", "pruning", "layout", "advice", "timeline", "index", "publish", "store"), CORE
    ),
    "spark": ENGINE,
    "table": TABLE,
    "adapter": ADAPTER,
    "cli": CLI,
}
# All other modules lie in folders. dbt looks for `impl` and `plugin` at the top; the last two have no layer.
AT_THE_TOP = {
    "errors": CORE,
    "lazy": CORE,
    "quantities": CORE,
    "impl": ADAPTER,
    "plugin": ADAPTER,
    "__init__": None,
    "__version__": None,
}

ALLOWED_IN_CORE = {"numpy", "pyarrow"}
ALLOWED_IN_STORE = ALLOWED_IN_CORE | {"obstore"}
# Loaded only when a table is published as Iceberg.
USES_PYICEBERG = frozenset({"iceberg_catalog", "iceberg_manifests", "iceberg_publisher", "iceberg_statistics"})
# Where the adapter starts Spark, which it cannot do without naming it.
STARTS_SPARK = {"adapter.session.launch"}
# More modules than a reader takes in at a glance want folders of their own.
MOST_MODULES = 18


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
        return _layer_of(self.part)

    @property
    def folder(self):
        """The folder, in dots; the package's own for a module at the top."""
        return ".".join(self.path.parent.relative_to(PACKAGE_FOLDER).parts)

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
NAMES = {module.name for module in MODULES}


def _layer_of(part):
    return AT_THE_TOP[part] if part in AT_THE_TOP else LAYER_OF_FOLDER[part]


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
    assert {module.layer for module in MODULES} == {CORE, ENGINE, TABLE, ADAPTER, CLI, None}


@_each(lambda module: module.layer is not None)
def test_imports_point_down(module):
    upward = [
        f"line {each.line}: {LAYER_NAMES[module.layer]} imports {each.target} of the {LAYER_NAMES[layer]}"
        for each in module.imports
        if (part := _own_part(each.target)) is not None
        and (layer := _layer_of(part)) is not None
        and layer > module.layer
    ]
    assert not upward, "\n".join(upward)


def test_no_modules_import_each_other_in_a_circle():
    """Imports for types count too: who reads one module of a circle has to read all of them."""
    assert _circles({module.name: _imported_modules(module) for module in MODULES}) == []


def test_no_folders_import_each_other_in_a_circle():
    folder_of = {module.name: module.folder for module in MODULES}
    edges = {}
    for module in MODULES:
        targets = {folder_of[name] for name in _imported_modules(module)}
        edges.setdefault(module.folder, set()).update(targets - {module.folder})
    # At the top lie the adapter itself and what all others use: the errors.
    edges.pop("")
    assert _circles({folder: targets - {""} for folder, targets in edges.items()}) == []


@pytest.mark.parametrize("folder", sorted({module.folder for module in MODULES} - {""}))
def test_a_folder_says_what_it_is_for_and_stays_small(folder):
    modules = [module for module in MODULES if module.folder == folder]
    sign = [module for module in modules if module.path.name == "__init__.py"]
    assert sign, f"{folder} has no __init__.py whose docstring says what is in it"
    assert len(modules) - 1 <= MOST_MODULES


def _imported_modules(module):
    """The modules of this package that one imports, by name: ``a.b.c`` may be a name inside of ``a.b``."""
    found = set()
    for each in module.imports:
        parts = each.target.removeprefix(f"{PACKAGE}.").split(".") if _own_part(each.target) is not None else []
        found.update(name for size in (len(parts), len(parts) - 1) if (name := ".".join(parts[:size])) in NAMES)
        if (whole := ".".join(parts)) in NAMES:
            found.discard(".".join(parts[:-1]))
            found.add(whole)
    return found - {module.name}


def _circles(edges):
    """Groups that import each other, each as a sorted list: the strongly connected parts of more than one."""
    reached = {start: _reached(start, edges) for start in edges}
    groups = {tuple(sorted({a, *(b for b in reached[a] if a in reached.get(b, ()))})) for a in edges}
    return sorted(list(group) for group in groups if len(group) > 1)


def _reached(start, edges):
    found, waiting = set(), [start]
    while waiting:
        for target in edges.get(waiting.pop(), ()):
            if target not in found:
                found.add(target)
                waiting.append(target)
    return found


@_each(lambda module: module.layer == CORE)
def test_the_core_imports_nothing_but_arrays(module):
    allowed = ALLOWED_IN_STORE if module.part == "store" else ALLOWED_IN_CORE
    if module.name.rpartition(".")[2] in USES_PYICEBERG:
        allowed = {*allowed, "pyiceberg"}
    foreign = [each for each in module.imports if _is_foreign(each.target)]
    wrong = [f"line {each.line}: {each.target}" for each in foreign if each.target.split(".")[0] not in allowed]
    assert not wrong, "\n".join(wrong)


@_each(lambda module: module.layer != ENGINE)
def test_only_the_engine_imports_spark(module):
    wrong = [
        f"line {each.line}: {each.target}"
        for each in module.imports
        if each.target.split(".")[0] in ("pyspark", "py4j")
        and not ((module.layer or 0) > ENGINE and (each.for_types_only or module.name in STARTS_SPARK))
    ]
    assert not wrong, "\n".join(wrong)


@_each(lambda module: module.layer != ADAPTER)
def test_only_the_adapter_imports_dbt(module):
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
