"""The condition of a microbatch, and dbt's working columns in a snapshot."""

from __future__ import annotations

import pytest

from dbt.adapters.zlayout.adapter.materialize.incremental_write import (
    _is_current,
    _is_working_column,
    batch_predicate,
    kept_settings,
)
from dbt.adapters.zlayout.adapter.materialize.model_write import ModelWrite
from dbt.adapters.zlayout.errors import WriteError


def test_the_batch_condition_equals_dbts_filter_on_the_inputs() -> None:
    batch = {"event_time_start": "2024-03-01 00:00:00+00:00", "event_time_end": "2024-03-02 00:00:00+00:00"}
    assert batch_predicate("at", batch) == ("at >= '2024-03-01 00:00:00+00:00' and at < '2024-03-02 00:00:00+00:00'")


@pytest.mark.parametrize("batch", [None, {}, {"event_time_start": "2024-03-01"}])
def test_a_run_without_a_batch_is_refused(batch: dict[str, str] | None) -> None:
    with pytest.raises(WriteError, match="gave the run no batch"):
        batch_predicate("at", batch)


def test_a_table_keeps_its_descriptions_unless_the_model_has_some() -> None:
    assert kept_settings(ModelWrite())["description"] is None
    assert kept_settings(ModelWrite(comment="all"))["description"].comment == "all"


@pytest.mark.parametrize(
    ("name", "is_one"),
    [("dbt_change_type", True), ("DBT_UNIQUE_KEY", True), ("dbt_unique_key_2", True), ("dbt_valid_to", False)],
)
def test_working_columns_of_a_snapshot_are_not_written(name: str, is_one: bool) -> None:
    assert _is_working_column(name) == is_one


def test_a_row_is_current_until_it_is_closed() -> None:
    assert _is_current("d.`to`", None) == "(d.`to` is null)"
    assert _is_current("d.`to`", "date'9999-12-31'") == "(d.`to` is null or d.`to` = date'9999-12-31')"
