"""The condition that a batch stands for, and which rows of a snapshot are working columns of dbt."""

from __future__ import annotations

import pytest

from dbt.adapters.zlayout.adapter.materialize.incremental_write import batch_predicate, kept_settings
from dbt.adapters.zlayout.adapter.materialize.model_write import ModelWrite
from dbt.adapters.zlayout.adapter.materialize.snapshot_write import _is_current, _is_working_column
from dbt.adapters.zlayout.errors import WriteError


def test_a_batch_is_filtered_as_dbt_filters_what_the_model_reads() -> None:
    batch = {"event_time_start": "2024-03-01 00:00:00+00:00", "event_time_end": "2024-03-02 00:00:00+00:00"}
    assert batch_predicate("at", batch) == ("at >= '2024-03-01 00:00:00+00:00' and at < '2024-03-02 00:00:00+00:00'")


@pytest.mark.parametrize("batch", [None, {}, {"event_time_start": "2024-03-01"}])
def test_a_run_without_a_batch_is_refused(batch: dict[str, str] | None) -> None:
    with pytest.raises(WriteError, match="gave the run no batch"):
        batch_predicate("at", batch)


def test_a_table_keeps_what_people_read_about_it_unless_the_model_says_something() -> None:
    assert kept_settings(ModelWrite({}))["description"] is None
    assert kept_settings(ModelWrite({}, comment="all"))["description"].comment == "all"


@pytest.mark.parametrize(
    ("name", "is_one"),
    [("dbt_change_type", True), ("DBT_UNIQUE_KEY", True), ("dbt_unique_key_2", True), ("dbt_valid_to", False)],
)
def test_working_columns_of_a_snapshot_stay_out_of_the_table(name: str, is_one: bool) -> None:
    assert _is_working_column(name) == is_one


def test_a_state_is_current_while_nothing_ended_it() -> None:
    assert _is_current("d.`to`", None) == "(d.`to` is null)"
    assert _is_current("d.`to`", "date'9999-12-31'") == "(d.`to` is null or d.`to` = date'9999-12-31')"
