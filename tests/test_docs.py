"""The documentation names everything that users may use, and nothing of it is out of date."""

import dataclasses
import inspect
import re
from pathlib import Path

import pytest

from dbt.adapters.zlayout.config.known_keys import OWN_KEYS
from dbt.adapters.zlayout.config.reclustering import RECLUSTERING_KEYS
from dbt.adapters.zlayout.config.table_config import parse_table_config
from dbt.adapters.zlayout.config.table_type import TABLE_TYPE_KEYS
from dbt.adapters.zlayout.layout.measures.depth import Overlap
from dbt.adapters.zlayout.layout.measures.measures import ColumnClustering
from dbt.adapters.zlayout.table.explanation import Explanation
from dbt.adapters.zlayout.table.measures import ClusteringInformation, PredicateFiles

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = {path.relative_to(DOCS).as_posix(): path.read_text("utf-8") for path in DOCS.rglob("*.md")}
MACROS = ROOT / "dbt" / "include" / "zlayout" / "macros"
CODE_PAGES = ["architecture.md", "glossary.md", *(name for name in sorted(PAGES) if name.startswith("contributing/"))]


def _key_rows():
    """The table of the model's keys, by key."""
    rows = re.findall(
        r"^\| `(\w+)` \| (.+?) \| (.+) \|$", PAGES["configuration.md"].split("## Keys of a profile")[0], re.MULTILINE
    )
    return {key: (default, meaning) for key, default, meaning in rows}


def test_every_key_of_a_model_is_documented_and_no_other():
    assert set(_key_rows()) == set(OWN_KEYS)


@pytest.mark.parametrize(
    "key", ["curve", "target_file_size", "stats_columns", "retain_versions", "retain_hours", "writer", "compression"]
)
def test_the_documented_default_is_the_default(key):
    documented = _key_rows()[key][0].strip("`")
    assert parse_table_config({key: documented}) == parse_table_config({})


@pytest.mark.parametrize("key", TABLE_TYPE_KEYS)
def test_the_documented_default_of_a_merge_on_read_table_is_the_default(key):
    default, documented = {"table_type": "merge_on_read", "unique_key": "k"}, _key_rows()[key][0].strip("`")
    if documented in ("none", "no limit"):
        assert getattr(parse_table_config(default).table_type, key) is None
    elif key == "table_type":
        assert parse_table_config({key: documented}) == parse_table_config({})
    else:
        assert parse_table_config({**default, key: documented}) == parse_table_config(default)


@pytest.mark.parametrize("key", RECLUSTERING_KEYS)
def test_the_documented_default_of_a_clustering_is_the_default(key):
    documented = _key_rows()[key][0].strip("`")
    if share := re.fullmatch(r"(\d+) % of `target_file_size", documented):
        low_and_high = parse_table_config({}).reclustering.file_limits(100_000)
        assert low_and_high[key == "max_file_size"] == int(share[1]) * 1_000
    elif documented == "no limit":
        assert parse_table_config({}).reclustering.max_bytes is None
    else:
        assert parse_table_config({key: documented}) == parse_table_config({})


@pytest.mark.parametrize(
    "name",
    [
        *("for_name", "write", "adopt", "snapshot", "explain", "history", "index_status", "information"),
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


@pytest.mark.parametrize("part", [ClusteringInformation, ColumnClustering, Overlap, PredicateFiles])
def test_every_figure_of_a_layout_is_documented(part):
    names = [each.name for each in dataclasses.fields(part)]
    names += [name for name, _ in inspect.getmembers(part, lambda each: isinstance(each, property))]
    assert [each for each in names if not re.search(rf"[`.]{each}`", PAGES["python.md"])] == []


@pytest.mark.parametrize("folder", ["operations", "tests", "layout"])
def test_every_operation_and_test_is_documented(folder):
    names = [path.stem for path in (MACROS / folder).glob("*.sql")]
    assert names
    assert [each for each in names if each not in PAGES["dbt.md"]] == []


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
