"""Settings against the columns of a model."""

from __future__ import annotations

import pyarrow as pa
import pytest

from dbt.adapters.zlayout.config.schema_check import check_against_schema, sort_columns
from dbt.adapters.zlayout.config.table_config import TableConfig, parse_table_config
from dbt.adapters.zlayout.errors import ConfigError
from dbt.adapters.zlayout.predicate.literals import UNKNOWN_TYPE

SCHEMA = pa.schema(
    [
        ("L_ShipDate", pa.date32()),
        ("l_partkey", pa.int64()),
        ("place", pa.struct([("city", pa.string()), ("tags", pa.list_(pa.string()))])),
        ("a.b", pa.decimal128(38, 2)),
        ("payload", pa.map_(pa.string(), pa.string())),
        ("raw", pa.binary()),
        ("months", UNKNOWN_TYPE),
        ("x", pa.int32()),
        ("X", pa.int32()),
    ]
)


def checked(**raw: object) -> TableConfig:
    return check_against_schema(parse_table_config(raw), SCHEMA)


def problems_of(**raw: object) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        checked(**raw)
    return caught.value.problems


@pytest.mark.parametrize(
    ("column", "word"),
    [
        ("place.tags", "array<string>"),
        ("payload", "map<string,string>"),
        ("place", "struct<city:string,tags:array<string>>"),
        ("months", "unknown to Arrow"),
    ],
)
def test_a_type_that_is_no_key_is_told_in_the_words_of_sparks_sql(column: str, word: str) -> None:
    assert f"has type {word};" in problems_of(zorder=column)[0]


def test_columns_take_the_spelling_of_the_schema() -> None:
    config = checked(zorder="l_shipdate, PLACE.City", partition_by="L_PARTKEY", stats_columns=["RAW", "place"])
    assert config.clustering.columns == (("L_ShipDate",), ("place", "city"))
    assert config.partitioning.columns == ("l_partkey",)
    assert config.statistics.columns == (("raw",), ("place",))


def test_a_missing_column_gets_the_nearest_name() -> None:
    assert problems_of(zorder="l_shipdat") == (
        "zorder: column 'l_shipdat' is not in the model (did you mean 'L_ShipDate'?)",
    )
    assert problems_of(partition_by="zzz") == ("partition_by: column 'zzz' is not in the model",)
    assert problems_of(stats_columns="place.cty") == (
        "stats_columns: column 'place.cty' is not in the model (did you mean 'place.city'?)",
    )


def test_a_name_with_a_dot_that_lacks_backquotes_gets_them_suggested() -> None:
    assert problems_of(zorder="a.b") == ("zorder: column 'a.b' is not in the model (did you mean '`a.b`'?)",)
    assert checked(zorder="`A.b`").clustering.columns == (("a.b",),)


@pytest.mark.parametrize("column", ["place", "place.tags", "payload"])
def test_a_key_must_be_of_an_orderable_type(column: str) -> None:
    (problem,) = problems_of(zorder=column)
    assert problem.startswith(f"zorder: column '{column}' has type ")


@pytest.mark.parametrize("column", ["place", "payload", "raw"])
def test_a_folder_must_be_of_a_type_that_survives_as_text(column: str) -> None:
    assert problems_of(partition_by=column)[0].startswith(f"partition_by: column '{column}' has type ")


def test_names_that_differ_in_case_only_are_taken_exactly_or_refused() -> None:
    assert checked(zorder="X").clustering.columns == (("X",),)
    schema = pa.schema([("aa", pa.int32()), ("AA", pa.int32())])
    with pytest.raises(ConfigError, match=r"matches 'aa', 'AA'"):
        check_against_schema(parse_table_config({"zorder": "Aa"}), schema)


def test_one_column_in_two_cases_is_listed_twice() -> None:
    assert problems_of(zorder="l_partkey, L_PARTKEY") == ("zorder: column 'L_PARTKEY' is listed twice",)
    assert "is a partition column" in problems_of(zorder="l_partkey", partition_by="L_PARTKEY")[0]


def test_at_least_one_column_must_stay_in_the_files() -> None:
    schema = pa.schema([("a", pa.int32())])
    with pytest.raises(ConfigError, match="at least one column must stay in the files"):
        check_against_schema(parse_table_config({"partition_by": "a"}), schema)


def test_an_unclustered_table_without_columns_passes() -> None:
    assert check_against_schema(TableConfig(), pa.schema([])) == TableConfig()


def test_an_expression_without_parentheses_is_told_from_a_column() -> None:
    assert problems_of(lookup=["k % 10"]) == (
        "lookup: column '`k % 10`' is not in the model",
        "lookup: put an expression in parentheses, such as (id % 10)",
    )
    assert problems_of(bloom="zzz") == ("bloom: column 'zzz' is not in the model",)


def test_all_problems_come_in_one_error() -> None:
    assert len(problems_of(zorder="nope, payload", partition_by="gone", stats_columns=["missing"])) == 4


def test_a_column_that_spark_would_take_for_a_variable_is_refused_where_a_view_names_it() -> None:
    schema = pa.schema([("k", pa.int64()), ("${env:HOME}", pa.int64())])
    check_against_schema(parse_table_config({}), schema)
    config = parse_table_config({"table_type": "merge_on_read", "unique_key": "k"})
    with pytest.raises(ConfigError, match=r"column '\$\{env:HOME\}': .*rename it"):
        check_against_schema(config, schema)


def test_columns_to_sort_by_are_of_any_type_and_no_partition_column() -> None:
    schema = pa.schema([("Day", pa.date32()), ("s", pa.struct([("X", pa.list_(pa.int64()))])), ("p", pa.string())])
    assert sort_columns([("day",), ("s", "x"), ("s",)], schema, ["p"]) == ((("Day",), ("s", "X"), ("s",)), [])
    _, problems = sort_columns([("day",), ("DAY",), ("dax",), ("p",)], schema, ["p"])
    assert problems == [
        "sort_by: column 'DAY' is listed twice",
        "sort_by: column 'dax' is not in the model (did you mean 'Day'?)",
        "sort_by: 'p' is a partition column: each file has one value of it; leave it out",
    ]


def test_partition_columns_that_differ_only_in_case_are_refused() -> None:
    assert problems_of(partition_by=["x", "X"], zorder="l_partkey") == (
        "partition_by: 'x' and 'X' differ only in case, and Hive's catalog cannot hold both; rename one",
    )
