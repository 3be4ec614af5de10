"""The documentation names everything that users may use, and nothing of it is out of date."""

import dataclasses
import inspect
import re
from pathlib import Path

import pytest
import yaml

from dbt.adapters.zlayout.adapter.operations.advising import TableAdvice
from dbt.adapters.zlayout.adapter.operations.linting import Finding
from dbt.adapters.zlayout.advice.advice import Advice, PredicateAdvice
from dbt.adapters.zlayout.advice.table_settings import SettingAdvice
from dbt.adapters.zlayout.cli.main import zlayout
from dbt.adapters.zlayout.config.settings import MAX_FILE_SIZE, MIN_FILE_SIZE, SETTINGS, TABLE_TYPE, UNIQUE_KEY, Scope
from dbt.adapters.zlayout.config.table_config import parse_table_config
from dbt.adapters.zlayout.layout.clustering_measures import ColumnClustering
from dbt.adapters.zlayout.layout.depth import Overlap
from dbt.adapters.zlayout.table.explanation import Explanation
from dbt.adapters.zlayout.table.measures import ClusteringInformation

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = {path.relative_to(DOCS).as_posix(): path.read_text("utf-8") for path in DOCS.rglob("*.md")}
MACROS = ROOT / "dbt" / "include" / "zlayout" / "macros"
CODE_PAGES = ["architecture.md", "glossary.md", *(name for name in sorted(PAGES) if name.startswith("contributing/"))]


def _in(*scopes):
    return [setting for setting in SETTINGS if setting.scope in scopes]


TABLES_OF_SETTINGS = {
    "configuration.md": {
        "Keys of a model": _in(Scope.TABLE, Scope.MODEL, Scope.CLUSTERING, Scope.MERGE_ON_READ),
        "Keys of a profile": _in(Scope.PROFILE),
        "Keys of an incremental model": _in(Scope.DBT),
    },
    "merge_on_read.md": {"Settings": [TABLE_TYPE, UNIQUE_KEY, *_in(Scope.MERGE_ON_READ)]},
}


def _rows(settings):
    """The rows of a table of settings, as the registry has them."""
    return "".join(
        f"| `{setting.key}` | {_default_cell(setting)} | {setting.doc} |\n".replace("|  |", "| |")
        for setting in settings
    )


def _default_cell(setting):
    if setting.default in (None, ()):
        return setting.absent
    text = str(setting.default)
    return f"`{text.lower() if isinstance(setting.default, bool) else text}`"


def with_tables_of_settings(name):
    """A page with the tables that the registry of settings gives."""
    page = PAGES[name]
    for section, settings in TABLES_OF_SETTINGS[name].items():
        before, title, rest = page.partition(f"## {section}\n")
        rows = re.search(r"(?<=\|---\|---\|---\|\n)(\|.*\n)+", rest)
        page = before + title + rest[: rows.start()] + _rows(settings) + rest[rows.end() :]
    return page


@pytest.mark.parametrize("name", TABLES_OF_SETTINGS)
def test_the_tables_of_settings_are_those_of_the_registry(name):
    assert PAGES[name] == with_tables_of_settings(name), "`python tests/test_docs.py` rewrites the tables"


@pytest.mark.parametrize("setting", [MIN_FILE_SIZE, MAX_FILE_SIZE], ids=lambda setting: setting.key)
def test_the_documented_share_of_the_file_size_is_the_share(setting):
    share = int(setting.absent.split(" % ")[0])
    low_and_high = parse_table_config({}).reclustering.file_limits(100_000)
    assert low_and_high[setting is MAX_FILE_SIZE] == share * 1_000


@pytest.mark.parametrize(
    "name",
    [
        *(
            "for_name",
            "for_path",
            "register",
            "files",
            "write",
            "adopt",
            "snapshot",
            "explain",
            "history",
            "index_status",
            "information",
        ),
        *("read", "version_at", "rollback", "clean", "changes"),
        *("refresh_index", "verify", "clustering_information", "cluster", "schedule_clustering"),
        *("append", "overwrite", "merge", "delete_insert", "replace_where", "delete"),
    ],
)
def test_every_method_of_ztable_is_documented(name):
    assert re.search(rf"[.`]{name}\(", PAGES["python.md"])


def test_every_keyword_of_write_is_documented():
    source = (ROOT / "dbt" / "adapters" / "zlayout" / "table" / "ztable.py").read_text("utf-8")
    signature = source.split("def write(")[1].split(") ->")[0]
    keywords = re.findall(r"^\s+(\w+): ", signature.split("*,")[1], re.MULTILINE)
    assert len(keywords) > 10
    assert [each for each in keywords if f"`{each}`" not in PAGES["python.md"]] == []


def test_every_part_of_an_explanation_is_documented():
    parts = [each.name for each in dataclasses.fields(Explanation)]
    parts += [name for name, _ in inspect.getmembers(Explanation, lambda each: isinstance(each, property))]
    assert [each for each in parts if f"`{each}`" not in PAGES["python.md"]] == []


@pytest.mark.parametrize("part", [ClusteringInformation, ColumnClustering, Overlap])
def test_every_figure_of_a_layout_is_documented(part):
    names = [each.name for each in dataclasses.fields(part)]
    names += [name for name, _ in inspect.getmembers(part, lambda each: isinstance(each, property))]
    assert [each for each in names if not re.search(rf"[`.]{each}`", PAGES["python.md"])] == []


@pytest.mark.parametrize("part", [Advice, PredicateAdvice, SettingAdvice, Finding, TableAdvice])
def test_every_field_of_advice_is_documented(part):
    names = {each.name for each in dataclasses.fields(part)} - {"asked", "advice"}
    assert {each for each in names if f"`{each}`" not in PAGES["advice.md"]} == set()


def test_every_field_of_a_layout_as_json_is_documented():
    fields = [*_clustering_fields(ClusteringInformation), *_clustering_fields(ColumnClustering)]
    assert {each for each in fields if f"`{each}`" not in PAGES["clustering.md"]} == set()


def _clustering_fields(part):
    """The keys of ``to_dict``: the fields, with those of the overlap in place of `overlap`."""
    names = [each.name for each in dataclasses.fields(part) if each.name != "overlap"]
    return [*names, *(each.name for each in dataclasses.fields(Overlap))]


@pytest.mark.parametrize("folder", ["operations", "tests", "layout"])
def test_every_operation_and_test_is_documented(folder):
    names = [path.stem for path in (MACROS / folder).glob("*.sql")]
    assert names
    assert [each for each in names if each not in PAGES["dbt.md"]] == []


def test_every_command_of_the_command_line_has_an_example():
    examples = re.findall(r"^\$ zlayout (\w+) ", PAGES["cli.md"], re.MULTILINE)
    assert set(examples) == set(zlayout.commands)


@pytest.mark.parametrize("page", ["README.md", *(f"docs/{name}" for name in sorted(PAGES))])
def test_arguments_of_operations_have_names(page):
    """YAML takes some words for other than text. The adapter reads `off`, which is false in YAML, as a name again."""
    texts = re.findall(r"--args '(\{.*?\})'", (ROOT / page).read_text("utf-8"))
    assert [
        each for each in texts if not all(isinstance(key, str) or key is False for key in yaml.safe_load(each))
    ] == []


@pytest.mark.parametrize(
    "page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", *(f"docs/{name}" for name in sorted(PAGES))]
)
def test_links_lead_to_files(page):
    path = ROOT / page
    links = re.findall(r"\]\((?!https?:)([^)#]+)", path.read_text("utf-8"))
    assert [each for each in links if not (path.parent / each).is_file()] == []


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8")
    assert [each for each in sorted(PAGES) if each not in navigation] == []


@pytest.mark.parametrize("page", CODE_PAGES)
def test_a_page_about_the_code_names_what_is_there(page):
    """``path/module.py``, and ``path/module.py: Class.method`` for what the module defines."""
    named = re.findall(r"([\w/]+\.(?:py|sql))(?:: ([\w.]+\w))?", PAGES[page])
    assert named
    assert [each for each in named if not _is_there(*each)] == []


def test_the_glossary_defines_each_term_once():
    terms = re.findall(r"^\| ([\w -]+) \| .+ \| .+ \| .+ \|$", PAGES["glossary.md"], re.MULTILINE)
    terms = [each for each in terms if each != "term"]
    assert len(terms) > 50
    assert sorted(terms) == sorted(set(terms))


def _is_there(path, name):
    places = [place / path for place in (ROOT, ROOT / "dbt" / "adapters" / "zlayout")]
    found = [place for place in places if place.is_file()] or list(MACROS.rglob(path))
    if len(found) != 1:
        return False
    source = found[0].read_text("utf-8")
    return all(re.search(rf"\b(def|class|macro) {part}\b", source) for part in name.split(".") if part)


def test_each_capability_that_the_comparison_ticks_is_a_test():
    section = PAGES["comparison.md"].split("## With other dbt adapters")[1].split("\n## ")[0]
    rows = [row for row in section.splitlines() if row.startswith("| ")]
    own = [row.split("|")[2].strip() for row in rows[1:]]
    assert [cell for cell in own if "✓" in cell and not re.fullmatch(r"✓ \[\d+\]", cell)] == []
    tests = {
        number: (path, name) for number, path, name in re.findall(r"^(\d+)\. `(.+)::(.+)`$", section, re.MULTILINE)
    }
    ticked = [number for cell in own for number in re.findall(r"\[(\d+)\]", cell)]
    assert len(ticked) > 15
    assert set(ticked) == set(tests)
    assert [each for each in tests.values() if not _defines((ROOT / each[0]).read_text("utf-8"), each[1])] == []


def _defines(source, name):
    return re.search(rf"^(def|class) {name}\(", source, re.MULTILINE)


if __name__ == "__main__":
    for each in TABLES_OF_SETTINGS:
        (DOCS / each).write_text(with_tables_of_settings(each), "utf-8")
