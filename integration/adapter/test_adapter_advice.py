"""Advice, lint and lock in a dbt project: from what its queries ask to keys, findings and a file for git."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from click.testing import CliRunner
from conftest import DbtProject
from dbt.version import __version__
from packaging.version import Version

from dbt.adapters.zlayout import ZTable
from dbt.adapters.zlayout.cli.main import zlayout

ROWS = 30_000
FACTS = f"""
select id, date_add(date'2024-01-01', cast(id / 1000 as int)) as day, cast(pmod(hash(id), 300) as int) as customer,
  concat('w', pmod(hash(id, 2), 50)) as word, cast(cast(id / 60 as int) as string) as code,
  sha1(cast(id as string)) as token
from range({ROWS})
"""
# Before dbt-core 1.12, `dbt compile` leaves snapshots out.
COMPILES_SNAPSHOTS = Version(__version__) >= Version("1.12")
FILES = {
    "dbt_project.yml": "name: advised\nversion: '1.0.0'\nprofile: advised\nmodel-paths: [models]\ntest-paths: [tests]\n",
    "models/facts.sql": "{{ config(materialized='zordered_table', zorder=var('keys', ['day']), "
    "target_file_size='40kb') }}" + FACTS,
    "models/buyers.sql": "{{ config(materialized='table') }}\nselect id, day from {{ ref('facts') }}\nwhere customer = 17",
    "models/words.sql": "{{ config(materialized='table') }}\nselect day\nfrom {{ ref('facts') }}\nwhere reverse(word) = '7w'\n"
    "  and cast(code as int) = 5",
    "models/tokens.sql": "{{ config(materialized='table') }}\nselect day\nfrom {{ ref('facts') }}\nwhere upper(token) = 'X'\n"
    "  and cast(customer as string) = '17'",
    "models/chosen.sql": "{{ config(materialized='zordered_table', zorder='auto', "
    "workload=[['customer = 17', 9], \"day = '2024-01-03'\"], target_file_size='40kb') }}" + FACTS,
    "snapshots/kept.sql": "{% snapshot kept %}\n{{ config(unique_key='id', strategy='check', check_cols=['word']) }}\n"
    "select id, word from {{ ref('facts') }}\nwhere soundex(word) = 'W700'\n{% endsnapshot %}",
    "models/schema.yml": "models:\n  - name: facts\n    data_tests:\n"
    "      - zlayout_prunes_at_least: {predicate: \"day = '2024-01-05'\", percent: 50}\n",
    "tests/no_odd_words.sql": "select * from {{ ref('facts') }}\nwhere day > '2024-01-20'\n  and word like '%x%'",
}


@pytest.fixture(scope="module")
def advised(lake, tmp_path_factory, dbt):
    """A project of its own, in the session of the suite's."""
    source = tmp_path_factory.mktemp("advised")
    for name, text in FILES.items():
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    project = DbtProject(
        tmp_path_factory.mktemp("dbt") / "project",
        lake / "warehouse",
        source=source,
        profile="advised",
        schema="advised",
    )
    outcome = project("run")
    assert outcome.success, outcome.log
    assert project("compile").success  # the tests, too
    return project


def test_a_run_logs_its_scans_and_says_which_keys_it_chose(advised):
    scans = [
        json.loads(line)
        for path in (advised.folder / "target" / "zlayout" / "scans").glob("*.jsonl")
        for line in path.read_text().splitlines()
    ]
    of_buyers = [each for each in scans if each["table"] == "advised.facts" and each["where"] == "customer = 17"]
    assert of_buyers
    assert (of_buyers[0]["shape"], of_buyers[0]["files_read"]) == (
        "customer = ?",
        of_buyers[0]["files_total"],
    )
    chosen = json.loads(advised.operation("zlayout_info", model="chosen", json=True).printed)
    assert chosen["zorder"][0] == "customer"
    assert chosen["auto_keys"].startswith("cluster by customer")


def test_advice_comes_from_scans_and_compiled_sql(advised):
    outcome = advised.operation("zlayout_advise", model="facts", json=True)
    assert outcome.success, outcome.log
    (found,) = json.loads(outcome.printed)
    assert (found["change"], found["zorder_now"]) == ("layout", ["day"])
    assert "customer" in found["zorder"]
    by_text = {each["predicate"]: each for each in found["predicates"]}
    assert by_text["customer = 17"]["weight"] >= 2
    assert by_text["day > DATE '2024-01-20'"]["source"] == "no_odd_words"
    text = advised.operation("zlayout_advise", model="facts", predicates=["customer = 3"]).printed
    assert text.startswith("advised.facts: cluster by customer")
    assert re.search(r"^  zorder +day -> customer", text, re.MULTILINE)


def test_lint_names_file_line_and_better_conditions(advised):
    outcome = advised.operation("zlayout_lint", json=True)
    assert outcome.success, outcome.log
    found = {(each["path"], each["line"]): each for each in json.loads(outcome.printed)}
    tokens, words, odd = "models/tokens.sql", "models/words.sql", "tests/no_odd_words.sql"
    expected = {(tokens, 4), (tokens, 5), (words, 4), (words, 5), (odd, 3)}
    assert set(found) == expected | ({("snapshots/kept.sql", 4)} if COMPILES_SNAPSHOTS else set())
    assert 'stats_expressions: ["upper(token)"]' in found[tokens, 4]["advice"]
    # `customer = 17` would read as much, since no key follows the customer.
    assert (found[tokens, 5]["rewritten"], found[tokens, 5]["files_read"]) == (None, found[tokens, 5]["files_total"])
    cast = found[words, 5]
    assert (cast["rewritten"], cast["table"]) == ("code = '5'", "advised.facts")
    assert 0 < cast["bytes_cost"] <= cast["bytes_read"]
    reverse = found[words, 4]
    assert 'stats_expressions: ["reverse(word)"]' in reverse["advice"]
    assert "reverse(word)" not in reverse["why"]
    failed = advised.operation("zlayout_lint", fail=True)
    assert not failed.success
    assert "conditions cannot skip files." in failed.log
    as_json = advised.operation("zlayout_lint", fail=True, json=True)
    assert not as_json.success
    assert len(json.loads(as_json.printed)) == len(found)
    sarif = json.loads(advised.operation("zlayout_lint", format="sarif").printed)
    assert sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"]["startLine"] in (3, 4, 5)


def test_the_command_line_lints_and_advises_as_the_operations_do(advised):
    advised("compile")
    manifest = str(advised.folder / "target" / "manifest.json")
    done = CliRunner().invoke(zlayout, ["lint", "--manifest", manifest, "--json"])
    assert done.exit_code == 1
    assert len(json.loads(done.stdout)) == (6 if COMPILES_SNAPSHOTS else 5)
    done = CliRunner().invoke(zlayout, ["advise", "advised.facts", "--where", "5:customer = 3", "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)[0]["predicates"][0]["weight"] == 5


@pytest.mark.slow
def test_the_lock_tells_what_reads_more_and_why(advised):
    written = advised.operation("zlayout_lock")
    assert written.success, written.log
    lock = json.loads((advised.folder / "layout.lock.json").read_text())
    assert "day = '2024-01-05'" in lock["tables"]["advised.facts"]["conditions"]
    assert advised.operation("zlayout_lock", check=True).success
    assert advised.operation("zlayout_lock", tolerance=0.5).success
    again = advised.operation("zlayout_lock", model="facts")
    assert again.success, again.log
    assert json.loads((advised.folder / "layout.lock.json").read_text())["tolerance"] == 0.5
    assert advised.operation("zlayout_lock", tolerance=0.25).success
    schema = advised.folder / "models" / "schema.yml"
    schema.write_text(schema.read_text() + "      - zlayout_reads_as_locked\n")
    assert advised("test", "--select", "facts").success
    assert advised("run", "--select", "facts", dbt_vars={"keys": ["customer"]}).success
    failed = advised.operation("zlayout_lock", check=True, model="facts")
    assert not failed.success
    assert "advised.facts: `day = '2024-01-05'` now reads" in failed.log
    assert "cause: the model no longer clusters by day" in failed.log
    as_json = advised.operation("zlayout_lock", check=True, model="facts", json=True)
    assert not as_json.success
    assert "day = '2024-01-05'" in [each["condition"] for each in json.loads(as_json.printed)]
    assert not advised("test", "--select", "facts").success


@pytest.mark.slow
def test_a_damaged_table_does_not_stop_what_is_about_all_tables(advised, spark, capsys):
    assert advised.operation("zlayout_lock").success
    lock = (advised.folder / "layout.lock.json").read_bytes()
    folder = Path(unquote(urlsplit(ZTable.for_name(spark, "advised.chosen").location).path))
    (folder / ".zlayout/timeline/log/00000000000000000000.json").write_text("{")
    advice = advised.operation("zlayout_advise")
    assert not advice.success
    assert "1 table failed:" in advice.log
    assert "advised.chosen: " in advice.log
    assert "advised.facts: " in capsys.readouterr().out
    check = advised.operation("zlayout_lock", check=True)
    assert "advised.chosen: " in check.log
    assert "00000000000000000000.json is not JSON" in check.log
    # A lock without the table would pass its checks for ever.
    assert not advised.operation("zlayout_lock").success
    assert (advised.folder / "layout.lock.json").read_bytes() == lock
    assert advised("run", "--select", "chosen", "--full-refresh").success
