"""What is read from a model's node."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from dbt.adapters.zlayout.adapter.materialize import model_settings
from dbt.adapters.zlayout.adapter.materialize.model_settings import (
    ModelSettings,
    key_warning,
    model_warnings,
    partition_warning,
    read_model,
    unused_settings,
    zone_warning,
)
from dbt.adapters.zlayout.config.clustering import ClusteringConfig
from dbt.adapters.zlayout.config.incremental import IncrementalConfig
from dbt.adapters.zlayout.config.table_config import TableConfig
from dbt.adapters.zlayout.errors import ConfigError


def node(**config: Any) -> dict[str, Any]:
    return {
        "name": "m",
        "description": "all of it",
        "config": {"materialized": "zordered_table", "zorder": ["a"], "persist_docs": {}, **config},
        "columns": {
            "A": {"name": "A", "description": "the first", "constraints": [{"type": "not_null"}]},
            "b": {"name": "b", "description": "", "constraints": [{"type": "unique"}]},
        },
        "constraints": [{"type": "not_null", "columns": ["c", "A"]}],
    }


def test_what_the_model_does_not_set_has_its_default() -> None:
    read = read_model(node(curve="hilbert", target_file_size=None), None)
    assert read.table_config == TableConfig(clustering=ClusteringConfig((("a",),), "hilbert"))
    assert (read.comment, read.column_comments, read.not_null) == (None, {}, ())


def test_one_error_has_every_problem_including_those_of_dbt_keys() -> None:
    with pytest.raises(ConfigError) as caught:
        read_model(
            node(
                zordr=["a"],
                curve="peano",
                file_format="delta",
                buckets=4,
                submission_method="job_cluster",
                incremental_strategy="microbatch",
            ),
            None,
        )
    found = "\n".join(caught.value.problems)
    for word in (
        "`zordr`: did you mean `zorder`",
        "curve",
        "file_format",
        "buckets",
        "submission_method",
        "materialized='incremental'",
    ):
        assert word in found
    assert "model m" in str(caught.value)


def test_incremental_settings_are_read_for_incremental_models() -> None:
    assert read_model(node(incremental_strategy="merge", unique_key="a"), None).incremental.unique_key == ("a",)
    read = read_model(node(materialized="table", incremental_strategy="upsert", unique_key="f(a)"), None)
    assert read.incremental == IncrementalConfig()


def test_the_parsed_settings_include_the_location_root() -> None:
    config = read_model(node(partition_by="p"), "/lake/s").table_config
    assert config.partitioning.columns == ("p",)
    assert config.writing.location_root == "/lake/s"


def test_check_and_write_parse_the_settings_of_a_model_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[object] = []

    def read_table_config(values: Mapping[str, object], problems: list[str]) -> TableConfig:
        parsed.append(values)
        return TableConfig()

    monkeypatch.setattr(model_settings, "read_table_config", read_table_config)
    for root in (None, "/lake/s"):
        read = read_model(node(clustering="inline", cluster_every=77), root)
        assert read.table_config.writing.location_root == root
    assert len(parsed) == 1
    read_model(node(clustering="inline", cluster_every=78), None)
    assert len(parsed) == 2
    model_settings._parsed.cache_clear()


def test_a_merge_on_read_model_passes_its_key_and_settings_to_the_table() -> None:
    read = read_model(node(table_type="merge_on_read", unique_key=["a"], ordering="b", compact_every=3), None)
    config = read.table_config.table_type
    assert (config.kind, config.unique_key, config.ordering, config.compact_every) == ("merge_on_read", ("a",), "b", 3)
    assert read_model(node(unique_key="a", incremental_strategy="merge"), None).table_config.table_type.unique_key == ()


def test_the_default_strategy_of_a_merge_on_read_model_is_merge() -> None:
    config = {"materialized": "incremental", "table_type": "merge_on_read", "unique_key": "a"}
    assert read_model(node(**config), None).incremental.strategy == "merge"
    assert (
        read_model(node(**config, incremental_strategy="delete+insert"), None).incremental.strategy == "delete+insert"
    )


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"materialized": "table"}, "materialized='table'; set materialized to incremental or zordered_table"),
        ({"materialized": "snapshot"}, "materialized='snapshot'"),
        ({"materialized": "seed"}, "materialized='seed'"),
        ({"materialized": "incremental", "incremental_strategy": "append"}, "'append' uses no key"),
        ({"incremental_strategy": "insert_overwrite"}, "use one of merge, delete+insert, microbatch"),
        ({"incremental_strategy": "merge", "incremental_predicates": ["a > 1"]}, "has one row per key"),
        ({"incremental_strategy": "upsert"}, "'upsert' is not one of merge, delete+insert, microbatch"),
    ],
)
def test_settings_that_do_not_fit_merge_on_read_are_an_error(config: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_model(node(table_type="Merge_On_Read", unique_key="a", **config), None)
    assert told in str(caught.value)
    assert len(caught.value.problems) == 1


def test_errors_of_a_seed_name_it_as_a_seed() -> None:
    with pytest.raises(ConfigError, match="seed m"):
        read_model({**node(zorder=["a", "a"], materialized="seed"), "resource_type": "seed"}, None)


def test_the_models_own_location_root_takes_precedence() -> None:
    assert read_model(node(), "/lake/s").table_config.writing.location_root == "/lake/s"
    assert read_model(node(location_root="/mine"), "/lake/s").table_config.writing.location_root == "/mine"


def test_persist_docs_decides_which_comments_are_written() -> None:
    assert read_model(node(persist_docs={"relation": True}), None).comment == "all of it"
    assert read_model(node(persist_docs={"columns": True}), None).column_comments == {"A": "the first"}


def test_not_null_counts_only_under_an_enforced_contract() -> None:
    assert read_model(node(contract={"enforced": False}), None).not_null == ()
    assert read_model(node(contract={"enforced": True}), None).not_null == ("A", "c")


def test_table_properties_become_text() -> None:
    assert read_model(node(tblproperties={"team": "x", "tier": 1}), None).properties == {"team": "x", "tier": "1"}


def test_deleted_when_on_a_model_that_keeps_no_rows_is_an_error() -> None:
    with pytest.raises(ConfigError, match="does not fit materialized='table', which keeps no row to delete"):
        read_model(node(materialized="table", deleted_when="op = 'D'"), None)


def incremental_node(**config: Any) -> dict[str, Any]:
    return {"name": "m", "config": {"materialized": "incremental", **config}, "columns": {}, "constraints": []}


def read(**config: Any) -> ModelSettings:
    return read_model(incremental_node(**config), None)


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


def test_a_merge_on_read_model_whose_first_run_fails_for_its_key_is_not_warned_of_the_next() -> None:
    config = {"materialized": "incremental", "table_type": "merge_on_read", "unique_key": "no"}
    assert key_warning(read(**config), ["id"]) is None


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
    found = unused_settings(incremental_node(materialized="view", zorder=["id"], partition_by="day", retain_hours=48))
    assert found == [
        f"{key} {value!r} has no effect on a view, which has no files; set materialized to 'table', 'incremental' or"
        f" 'zordered_table', or leave {key} out"
        for key, value in (("zorder", ["id"]), ("partition_by", "day"))
    ]


def test_table_settings_on_a_table_of_another_format_are_a_warning() -> None:
    (told,) = unused_settings(
        incremental_node(materialized="table", file_format="delta", zorder=["id"], partition_by="day")
    )
    assert told.startswith(
        "zorder ['id'] has no effect on a table with file_format 'delta'; set file_format to 'parquet'"
    )


def test_a_misspelled_key_on_a_view_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"model m: 1 configuration problem\n  - `zordr`: did you mean `zorder`"):
        unused_settings(incremental_node(materialized="view", zordr=["id"]))
    assert unused_settings(incremental_node(materialized="view", tags=["x"], owner_team="y")) == []


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
