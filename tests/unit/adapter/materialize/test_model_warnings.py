"""Warnings about settings that are probably a mistake."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dbt.adapters.zlayout.adapter.materialize.model_warnings import (
    key_warning,
    model_warnings,
    partition_warning,
    unused_settings,
    zone_warning,
)
from dbt.adapters.zlayout.adapter.materialize.model_write import ModelWrite, read_model
from dbt.adapters.zlayout.errors import ConfigError


def node(**config: Any) -> dict[str, Any]:
    return {"name": "m", "config": {"materialized": "incremental", **config}, "columns": {}, "constraints": []}


def read(**config: Any) -> ModelWrite:
    return read_model(node(**config), None)


@pytest.mark.parametrize("strategy", ["merge", "delete+insert"])
@pytest.mark.parametrize("key", [None, "", []])
def test_a_key_strategy_without_unique_key_is_a_warning(strategy: str, key: object) -> None:
    (told,) = model_warnings(read(incremental_strategy=strategy, unique_key=key))
    assert told.startswith(f"incremental_strategy '{strategy}' without unique_key adds every row")
    assert "set unique_key to the columns that identify a row, or use incremental_strategy='append'" in told


@pytest.mark.parametrize(
    "config", [{}, {"incremental_strategy": "merge", "unique_key": "id"}, {"materialized": "table"}]
)
def test_a_complete_model_has_no_warnings(config: dict[str, Any]) -> None:
    assert model_warnings(read(**config)) == []


def test_a_key_that_the_query_lacks_is_a_warning() -> None:
    told = key_warning(read(incremental_strategy="merge", unique_key=["order_id", "Day"]), ["orderid", "day"])
    assert told is not None
    assert told == (
        "unique_key: 'order_id' is not a column of the query, which has orderid, day (did you mean 'orderid'?)."
        " This run builds the table, but the next one will fail until unique_key only names columns of the query"
    )
    assert key_warning(read(incremental_strategy="merge", unique_key="`Id`"), ["id"]) is None
    assert key_warning(read(incremental_strategy="append", unique_key="no"), ["id"]) is None


def test_partitions_with_few_rows_are_a_warning() -> None:
    wanted = read(partition_by="id")
    told = partition_warning(wanted, 400, 400)
    assert told is not None
    assert told.startswith(
        "partition_by id spreads 400 rows over 400 files, 1 row per file; partition by columns with few"
    )
    assert "zorder" in told


@pytest.mark.parametrize(("rows", "files", "columns"), [(4000, 400, "id"), (99, 99, "id"), (400, 400, None)])
def test_few_or_full_partitions_are_no_warning(rows: int, files: int, columns: str | None) -> None:
    assert partition_warning(read(partition_by=columns), rows, files) is None


def test_table_settings_on_a_view_are_a_warning() -> None:
    found = unused_settings(node(materialized="view", zorder=["id"], partition_by="day", retain_hours=48))
    assert found == [
        f"{key} {value!r} has no effect on a view, which has no files; set materialized to 'table', 'incremental' or"
        f" 'zordered_table', or leave {key} out"
        for key, value in (("zorder", ["id"]), ("partition_by", "day"))
    ]


def test_table_settings_on_a_table_of_another_format_are_a_warning() -> None:
    (told,) = unused_settings(node(materialized="table", file_format="delta", zorder=["id"], partition_by="day"))
    assert told.startswith(
        "zorder ['id'] has no effect on a table with file_format 'delta'; set file_format to 'parquet'"
    )


def test_a_misspelled_key_on_a_view_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"model m: 1 configuration problem\n  - `zordr`: did you mean `zorder`"):
        unused_settings(node(materialized="view", zordr=["id"]))
    assert unused_settings(node(materialized="view", tags=["x"], owner_team="y")) == []


def of_columns(**types: str) -> str:
    fields = [{"name": name, "type": type_, "nullable": True, "metadata": {}} for name, type_ in types.items()]
    return json.dumps({"type": "struct", "fields": fields})


def test_partition_folders_in_local_time_are_a_warning() -> None:
    told = zone_warning(of_columns(id="long", ts="timestamp"), ["ts"], "Europe/Berlin")
    assert told is not None
    assert told.startswith("partition column `ts` is stored in local time (Europe/Berlin)")


@pytest.mark.parametrize(
    ("type_", "columns", "zone"),
    [
        ("timestamp", ["ts"], "UTC"),
        ("timestamp", [], "Europe/Berlin"),
        ("timestamp_ntz", ["ts"], "Europe/Berlin"),
        ("date", ["ts"], "Europe/Berlin"),
    ],
)
def test_partition_folders_without_local_time_are_no_warning(type_: str, columns: list[str], zone: str) -> None:
    assert zone_warning(of_columns(ts=type_), columns, zone) is None
