"""What reaches a table: comments, settings, the condition of a microbatch; and dbt's working columns in a snapshot."""

from __future__ import annotations

from typing import Any

import pytest

from dbt.adapters.zlayout.adapter.materialize import table_writes
from dbt.adapters.zlayout.adapter.materialize.model_settings import ModelSettings, read_model
from dbt.adapters.zlayout.adapter.materialize.table_writes import (
    _is_current,
    _is_working_column,
    batch_predicate,
    kept_settings,
)
from dbt.adapters.zlayout.config.clustering import ClusteringConfig
from dbt.adapters.zlayout.config.table_config import TableConfig
from dbt.adapters.zlayout.errors import WriteError
from dbt.adapters.zlayout.spark.commit.publish import Description
from dbt.adapters.zlayout.spark.write.incoming_rows import ChangeFeed
from dbt.adapters.zlayout.spark.write.replace import Replacement


def test_the_batch_condition_equals_dbts_filter_on_the_inputs() -> None:
    batch = {"event_time_start": "2024-03-01 00:00:00+00:00", "event_time_end": "2024-03-02 00:00:00+00:00"}
    assert batch_predicate("at", batch) == ("at >= '2024-03-01 00:00:00+00:00' and at < '2024-03-02 00:00:00+00:00'")


@pytest.mark.parametrize("batch", [None, {}, {"event_time_start": "2024-03-01"}])
def test_a_run_without_a_batch_is_refused(batch: dict[str, str] | None) -> None:
    with pytest.raises(WriteError, match="gave the run no batch"):
        batch_predicate("at", batch)


def test_a_table_keeps_its_descriptions_unless_the_model_has_some() -> None:
    assert kept_settings(ModelSettings())["description"] is None
    assert kept_settings(ModelSettings(comment="all"))["description"].comment == "all"


@pytest.mark.parametrize(
    ("name", "is_one"),
    [("dbt_change_type", True), ("DBT_UNIQUE_KEY", True), ("dbt_unique_key_2", True), ("dbt_valid_to", False)],
)
def test_working_columns_of_a_snapshot_are_not_written(name: str, is_one: bool) -> None:
    assert _is_working_column(name) == is_one


def test_a_row_is_current_until_it_is_closed() -> None:
    assert _is_current("d.`to`", None) == "(d.`to` is null)"
    assert _is_current("d.`to`", "date'9999-12-31'") == "(d.`to` is null or d.`to` = date'9999-12-31')"


def test_comments_are_keyed_as_the_query_spells_columns_and_missing_columns_are_a_warning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    warned: list[str] = []
    monkeypatch.setattr(table_writes, "warn", warned.append)
    wanted = ModelSettings(column_comments={"A": "one", "b": "two", "gone": "x"})
    found = table_writes._in_case_of(["a", "B"], wanted, "s.t")
    assert found == {"a": "one", "B": "two"}
    (told,) = warned
    assert told.startswith("In relation s.t: ")
    assert told.endswith("not present in the database: gone")


def test_a_quoted_column_does_not_match_another_case(monkeypatch: pytest.MonkeyPatch) -> None:
    warned: list[str] = []
    monkeypatch.setattr(table_writes, "warn", warned.append)
    wanted = ModelSettings(column_comments={"A": "one"}, exact_names=frozenset({"A"}))
    assert table_writes._in_case_of(["a"], wanted, "s.t") == {}
    assert len(warned) == 1


def test_an_exact_match_of_a_column_name_comes_before_another_case() -> None:
    wanted = ModelSettings(column_comments={"A": "one"})
    assert table_writes._in_case_of(["a", "A"], wanted, "s.t") == {"A": "one"}


@pytest.fixture
def replaced(monkeypatch: pytest.MonkeyPatch) -> list[Replacement]:
    """What was to be written, in place of the write."""
    wanted: list[Replacement] = []

    class Named:
        def __init__(self, _: object) -> None:
            pass

        def name(self, text: str) -> str:
            return text

    monkeypatch.setattr(table_writes, "Catalog", Named)
    monkeypatch.setattr(table_writes, "replace_table", lambda _, given: (wanted.append(given), "the commit"))
    return wanted


class Frame:
    sparkSession = "the session"  # noqa: N815 # pyspark's name
    columns = ("a",)


def test_settings_and_extras_reach_the_table(replaced: list[Replacement]) -> None:
    config = TableConfig(clustering=ClusteringConfig((("a",),)))
    wanted = ModelSettings("text", {"A": "one"}, {"team": "x"}, ("a",), table_config=config)
    frame: Any = Frame()
    done: Any = table_writes.write_model("`s`.`t`", frame, wanted, progress=print)
    assert done == "the commit"
    name: Any = "`s`.`t`"
    description = Description("text", {"team": "x"})
    assert replaced == [Replacement(name, frame, config, description, {"a": "one"}, ("a",), None, print)]


def test_a_first_run_passes_the_condition_and_key_of_a_change_feed(replaced: list[Replacement]) -> None:
    config = {"materialized": "incremental", "incremental_strategy": "merge", "unique_key": ["a", "`b.c`"]}
    columns = {name: {"name": name} for name in ("A", "b")}
    node = {"name": "m", "config": {**config, "deleted_when": "op = 'D'"}, "columns": columns, "constraints": []}
    wanted = read_model(node, None)
    frame: Any = Frame()
    table_writes.write_model("s.t", frame, wanted, progress=print)
    assert replaced[0].feed == ChangeFeed("op = 'D'", ("a", "b.c"), ("A", "b"))
