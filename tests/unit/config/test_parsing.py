"""Settings of a table: defaults, spellings, and all problems in one error."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.zlayout.config.column_names import (
    format_column_path,
    format_column_set,
    parse_column_path,
    split_column_list,
)
from dbt.adapters.zlayout.config.known_keys import DBT_KEYS
from dbt.adapters.zlayout.config.schema_check import check_against_schema
from dbt.adapters.zlayout.config.settings import OWN_KEYS
from dbt.adapters.zlayout.config.table_config import (
    PublishingConfig,
    TableConfig,
    parse_table_config,
    read_stored,
    stored_settings,
)
from dbt.adapters.zlayout.errors import ConfigError
from dbt.adapters.zlayout.predicate.expr import EXPRESSION


def problems_of(**raw: object) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        parse_table_config(raw)
    return caught.value.problems


def test_nothing_set_means_the_documented_defaults() -> None:
    config = parse_table_config({})
    assert config == TableConfig()
    assert (config.clustering.columns, config.clustering.curve) == ((), "zorder")
    assert config.partitioning.columns == ()
    assert (config.file_sizing.target_file_bytes, config.file_sizing.row_group_rows) == (128 * 1024 * 1024, None)
    assert config.statistics.columns == 32
    assert (config.retention.versions, config.retention.hours) == (3, 24)
    assert (config.writing.location_root, config.writing.writer, config.writing.compression) == (None, "arrow", "zstd")


def test_none_means_the_default_for_every_key() -> None:
    assert parse_table_config(dict.fromkeys(OWN_KEYS)) == TableConfig()


@pytest.mark.parametrize(
    ("spelled", "paths"),
    [
        (["a", "b.c"], (("a",), ("b", "c"))),
        ("a, b.c", (("a",), ("b", "c"))),
        ("`a.b`, c", (("a.b",), ("c",))),
        ("`a,b`", (("a,b",),)),
        (["my column", "Größe"], (("my column",), ("Größe",))),
        (("`a``b`.c",), (("a`b", "c"),)),
        ("a", (("a",),)),
    ],
)
def test_columns_are_a_list_or_a_comma_string_with_backquotes_for_dots(spelled: object, paths: object) -> None:
    assert parse_table_config({"zorder": spelled}).clustering.columns == paths


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a, sha2(lower(concat(a, b)), 256), c", ["a", "sha2(lower(concat(a, b)), 256)", "c"]),
        ("concat(a, ')', b), c", ["concat(a, ')', b)", "c"]),
        ("concat(a, 'it\\'s, so'), c", ["concat(a, 'it\\'s, so')", "c"]),
        ("`a)`, b", ["`a)`", "b"]),
        ("it's, b", ["it's", "b"]),
        ("a), b", ["a)", "b"]),
        ("a,, b,", ["a", "b"]),
        ("", []),
    ],
)
def test_a_comma_between_columns_ends_one(text: str, parts: list[str]) -> None:
    assert split_column_list(text) == parts


@given(st.lists(st.text(st.characters(exclude_categories=("Cs",)), min_size=1), min_size=1, max_size=3))
def test_a_formatted_path_parses_back_to_itself(names: list[str]) -> None:
    assert parse_column_path(format_column_path(tuple(names))) == tuple(names)


@pytest.mark.parametrize("spelled", ["", "a.", ".a", "a..b", "`a", "`a`b", "a`b`"])
def test_a_malformed_column_is_named_in_the_problem(spelled: str) -> None:
    (problem,) = problems_of(zorder=[spelled])
    assert problem.startswith(f"zorder: '{spelled}' does not name a column")


def test_zorder_is_required_only_for_a_zordered_table() -> None:
    assert problems_of(materialized="zordered_table") == (
        "zorder: missing; a zordered_table needs the columns to cluster by, such as zorder=['a', 'b']",
    )
    assert parse_table_config({"materialized": "table"}).clustering.columns == ()


def test_more_than_eight_zorder_columns_are_too_many() -> None:
    assert len(parse_table_config({"zorder": list("abcdefgh")}).clustering.columns) == 8
    assert "at most 8 are allowed" in problems_of(zorder=list("abcdefghi"))[0]


@pytest.mark.parametrize(
    ("spelled", "size_bytes"),
    [
        ("128mb", 128 << 20),
        ("64 KB", 64 << 10),
        ("1GB", 1 << 30),
        ("1.5mb", 3 << 19),
        (1_048_576, 1 << 20),
        ("1048576", 1 << 20),
    ],
)
def test_file_sizes_have_units_or_are_bytes(spelled: object, size_bytes: int) -> None:
    assert parse_table_config({"target_file_size": spelled}).file_sizing.target_file_bytes == size_bytes


@pytest.mark.parametrize("spelled", ["big", "12tb", "", "-1mb", "9" * 400 + "mb", True, 1.5, [1], 0, "10b", "65gb"])
def test_a_wrong_file_size_is_named_with_what_is_allowed(spelled: object) -> None:
    (problem,) = problems_of(target_file_size=spelled)
    assert problem.startswith(f"target_file_size: {spelled!r} is ")


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("curve", "peano", "curve: 'peano' is not one of zorder, hilbert, linear"),
        ("curve", 1, "curve: 1 is not one of zorder, hilbert, linear"),
        ("row_group_rows", 0, "row_group_rows: 0 is not a whole number from 1 to 100,000,000"),
        ("row_group_rows", "many", "row_group_rows: 'many' is not a whole number from 1 to 100,000,000"),
        ("stats_columns", -1, "stats_columns: -1 is not a whole number from 0 to 100,000"),
        ("stats_columns", True, "stats_columns: True is not a whole number from 0 to 100,000"),
        ("retain_versions", 0, "retain_versions: 0 is not a whole number from 1 to 1,000,000"),
        ("retain_hours", -1, "retain_hours: -1 is not a number of hours from 0 to 1,000,000"),
        ("retain_versions", "1_", "retain_versions: '1_' is not a whole number from 1 to 1,000,000"),
        ("retain_hours", 10**400, f"retain_hours: {10**400} is not a number of hours from 0 to 1,000,000"),
        ("retain_hours", "nan", "retain_hours: 'nan' is not a number of hours from 0 to 1,000,000"),
        ("retain_hours", True, "retain_hours: True is not a number of hours from 0 to 1,000,000"),
        (
            "publish_catalog",
            7,
            (
                "publish_catalog: 7 is not the name of a catalog, such as 'lakehouse'; "
                "its address and login go into pyiceberg's configuration: .pyiceberg.yaml, or variables such as "
                "PYICEBERG_CATALOG__LAKEHOUSE__URI"
            ),
        ),
        (
            "publish_catalog",
            "lake",
            (
                "publish_catalog: 'lake' needs a table published as Iceberg, but publish is not set; "
                "add 'iceberg' to publish, or remove publish_catalog"
            ),
        ),
        ("writer", "java", "writer: 'java' is not one of arrow, spark"),
        (
            "compression",
            "brotli",
            "compression: 'brotli' is not one of zstd, snappy, gzip, lz4, none, uncompressed",
        ),
        ("zorder", 7, "zorder: 7 is not a list of columns (write ['a', 'b.c'] or 'a, b.c')"),
        ("zorder", ["a", 7], "zorder: 7 is not a column name (names are strings)"),
        ("zorder", ["a", "a"], "zorder: column 'a' is listed twice"),
        ("stats_columns", "a.b, a.b", "stats_columns: column 'a.b' is listed twice"),
    ],
)
def test_a_wrong_value_gets_a_sentence_with_what_is_allowed(key: str, value: object, problem: str) -> None:
    assert problems_of(**{key: value}) == (problem,)


@pytest.mark.parametrize("value", ["", "  ", 3])
def test_a_location_root_that_is_no_folder_is_a_problem(value: object) -> None:
    assert problems_of(location_root=value)[0].startswith(f"location_root: {value!r} is not a folder")


@pytest.mark.parametrize(
    ("root", "told"),
    [
        (
            "data/lake",
            "location_root: 'data/lake' is not absolute; write the full path, such as '/data/lake', or a URI",
        ),
        ("./lake", "location_root: './lake' is not absolute"),
        ("file:lake", "location_root: 'file:lake' is not absolute"),
        (
            "s3://",
            "location_root: 's3://' names no bucket or container; write the whole URI, such as 's3://bucket/lake'",
        ),
        ("gs:/lake", "location_root: 'gs:/lake' names no bucket or container"),
        ("foo://data/lake", "location_root: 'foo://data/lake' has the scheme 'foo'"),
        ("dbfs:/lake", "location_root: 'dbfs:/lake' has the scheme 'dbfs' (a create there may overwrite)"),
    ],
)
def test_a_location_root_that_leads_nowhere_is_told_with_what_is_allowed(root: str, told: str) -> None:
    (problem,) = problems_of(location_root=root)
    assert problem.startswith(told)


@pytest.mark.parametrize(
    "root", ["/data/lake", "file:/data/lake", "s3://bucket/lake", "hdfs://name/lake", "abfss://c@a/l"]
)
def test_a_location_root_is_a_full_path_or_a_uri(root: str) -> None:
    assert parse_table_config({"location_root": root}).writing.location_root == root


def test_login_details_in_a_location_root_are_a_problem_that_does_not_repeat_them() -> None:
    (problem,) = problems_of(location_root="s3://key:secret@bucket/x")
    assert problem.startswith("location_root: 's3://…@bucket/x' contains login details")


def test_words_may_be_in_any_case_and_numbers_may_be_strings() -> None:
    raw = {"curve": "HILBERT", "writer": "Spark", "compression": "Uncompressed", "stats_columns": "5"}
    config = parse_table_config({**raw, "retain_hours": "1.5", "retain_versions": "2", "row_group_rows": "1000"})
    assert (config.clustering.curve, config.writing.writer, config.writing.compression) == ("hilbert", "spark", "none")
    assert (config.statistics.columns, config.retention.hours, config.retention.versions) == (5, 1.5, 2)
    assert config.file_sizing.row_group_rows == 1000


def test_partition_by_is_one_column_or_a_list_of_top_level_columns() -> None:
    assert parse_table_config({"partition_by": "day"}).partitioning.columns == ("day",)
    assert parse_table_config({"partition_by": ["day", "`a.b`"]}).partitioning.columns == ("day", "a.b")
    assert "only top-level columns can be folders" in problems_of(partition_by=["a.b"])[0]


def test_a_key_that_is_a_partition_column_is_a_problem() -> None:
    assert problems_of(zorder=["day", "a"], partition_by="day") == (
        "zorder: column 'day' is a partition column, with one value in each file; leave it out of zorder",
    )


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("zordr", "zorder"),
        ("z_order", "zorder"),
        ("ZORDER", "zorder"),
        ("partitionby", "partition_by"),
        ("target_filesize", "target_file_size"),
        ("target-file-size", "target_file_size"),
        ("retain_version", "retain_versions"),
        ("stat_columns", "stats_columns"),
        ("cluster_by", "zorder"),
        ("liquid_clustered_by", "zorder"),
        ("zlayout_curve", "curve"),
        ("zlayout_cluster_by", "zorder"),
    ],
)
def test_a_near_miss_of_a_key_gets_a_suggestion(key: str, meant: str) -> None:
    assert problems_of(**{key: 1}) == (f"`{key}`: did you mean `{meant}`?",)


def test_a_key_with_our_name_that_is_none_is_told_with_those_that_there_are() -> None:
    (problem,) = problems_of(zlayout_quagga=["a"])
    assert problem.startswith(
        "`zlayout_quagga` is not a key of this adapter; remove it, or use one of bloom, bucket_buffer_size, "
    )


def test_keys_of_dbt_and_keys_unlike_ours_are_left_alone() -> None:
    nothing_set = parse_table_config({})
    assert parse_table_config({**dict.fromkeys(DBT_KEYS), "owner_team": "x", "cost": 3}) == nothing_set


def test_every_key_that_dbt_spark_configures_is_known() -> None:
    impl = pytest.importorskip("dbt.adapters.spark.impl")
    resources = pytest.importorskip("dbt.artifacts.resources")
    configs = (resources.ModelConfig, resources.SeedConfig, resources.SnapshotConfig, impl.SparkConfig)
    keys = {key for config in configs for key in config.__dataclass_fields__}
    assert keys - DBT_KEYS - set(OWN_KEYS) == set()


def test_all_problems_come_in_one_error_with_its_subject() -> None:
    raw = {"zordr": ["a"], "materialized": "zordered_table", "curve": "x", "retain_hours": "y"}
    with pytest.raises(ConfigError, match=r"model orders: 4 configuration problems") as caught:
        parse_table_config(raw, subject="model orders")
    assert len(caught.value.problems) == 4


def test_a_catalog_is_a_name_and_an_address_is_not_repeated() -> None:
    for address in ("postgresql://me:Secret@db/x", "https://token@host", "a b", "sqlite:///x", "-x", "a" * 101):
        (problem,) = problems_of(publish=["iceberg"], publish_catalog=address)
        assert "is not the name of a catalog" in problem
        assert "Secret" not in problem
        assert "token" not in problem
    for name in ("lakehouse", "lake-2", "a.b_c"):
        config = parse_table_config({"publish": ["iceberg"], "publish_catalog": name})
        assert config.publishing.catalog == name
    assert parse_table_config({"publish_catalog": ""}).publishing.catalog == ""


def test_a_version_stores_its_catalog_and_later_settings_keep_switch_or_end_it() -> None:
    lake = PublishingConfig(("iceberg",), "lake")
    config = parse_table_config({"publish": ["iceberg"], "publish_catalog": "lake"})
    assert read_stored(stored_settings(config), ()).publishing == lake
    for later, kept in (
        ({}, lake),
        ({"publish": ["delta", "iceberg"]}, PublishingConfig(("delta", "iceberg"), "lake")),
        ({"publish": ["iceberg"], "publish_catalog": "other"}, PublishingConfig(("iceberg",), "other")),
        ({"publish_catalog": ""}, PublishingConfig(("iceberg",))),
        ({"publish": ["delta"]}, PublishingConfig(("delta",))),
        ({"publish": []}, PublishingConfig(())),
    ):
        assert parse_table_config(later).after(config, ()).publishing == kept


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("id, id", "bloom: column 'id' is listed twice"),
        (3, "bloom: 3 is not a list of columns (write ['a', 'b.c'] or 'a, b.c')"),
        (
            ["p"],
            "bloom: column 'p' is a partition column, with one value in each file; leave it out of bloom",
        ),
    ],
)
def test_a_wrong_list_of_columns_with_filters_is_told(value: object, sentence: str) -> None:
    assert problems_of(bloom=value, partition_by=["p"]) == (sentence,)


def test_columns_with_filters_stay_until_a_list_says_otherwise() -> None:
    stored = read_stored(stored_settings(parse_table_config({"bloom": "id, s.k"})), ())
    assert stored.indexes.bloom == (("id",), ("s", "k"))
    usable = [("id",), ("other",)]
    for later, kept in (({}, (("id",),)), ({"bloom": ["other"]}, (("other",),)), ({"bloom": []}, ())):
        assert parse_table_config(later).after(stored, usable).indexes.bloom == kept
    assert "bloom" not in stored_settings(parse_table_config({"bloom": []}))


@pytest.mark.parametrize("value", [["id", "substr(a, 1, 2)", "`b(c`"], "id, substr(a, 1, 2), `b(c`"])
def test_bloom_takes_expressions_beside_columns(value):
    config = parse_table_config({"bloom": value})
    assert config.indexes.bloom_expressions == ("substr(a, 1, 2)",)
    stored = stored_settings(config)
    assert stored["bloom"] == [["id"], "substr(a, 1, 2)", ["b(c"]]
    assert read_stored(stored, ()).indexes == config.indexes
    kept = parse_table_config({}).after(read_stored(stored, ()), [("id",)]).indexes
    assert [format_column_path(path) for path in kept.bloom] == ["id", "substr(a, 1, 2)"]
    schema = pa.schema([("id", pa.int64()), ("b(c", pa.int64()), ("SUBSTR(a, 1, 2)", pa.int64())])
    assert check_against_schema(config, schema).indexes.bloom == (("id",), ("SUBSTR(a, 1, 2)",), ("b(c",))
    others = pa.schema([("id", pa.int64()), ("b(c", pa.int64())])
    assert check_against_schema(config, others).indexes.bloom_expressions == ("substr(a, 1, 2)",)


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("id, id", "lookup: column 'id' is listed twice"),
        ([["a", "b"], ["b", "a"]], "lookup: columns 'b+a' is listed twice"),
        ([["a", "a"]], "lookup: column 'a' is listed twice"),
        ([["a", 3]], "lookup: 3 is not a column name (names are strings)"),
        (["id", 3], "lookup: 3 is not a list of columns (write ['a', 'b.c'] or 'a, b.c')"),
        ([[]], "lookup: [] names no column; name at least one"),
        (3, "lookup: 3 is not a list of columns (write ['a', ['b', 'c']] or 'a, b+c')"),
        (
            [["a", "p"]],
            "lookup: column 'p' is a partition column, with one value in each file; leave it out of lookup",
        ),
    ],
)
def test_a_wrong_list_of_columns_with_lookup_indexes_is_told(value: object, sentence: str) -> None:
    assert problems_of(lookup=value, partition_by=["p"]) == (sentence,)


def test_lookup_indexes_stay_until_a_list_says_otherwise() -> None:
    for raw in (["id", ["s.k", "`a+b`"]], "id, s.k + `a+b`"):
        stored = read_stored(stored_settings(parse_table_config({"lookup": raw})), ())
        assert stored.indexes.lookup == ((("id",),), (("s", "k"), ("a+b",)))
    usable = [("id",), ("s", "k")]
    for later, kept in (
        ({}, ((("id",),),)),
        ({"lookup": [["s.k", "id"]]}, ((("s", "k"), ("id",)),)),
        ({"lookup": []}, ()),
    ):
        assert parse_table_config(later).after(stored, usable).indexes.lookup == kept
    assert "lookup" not in stored_settings(parse_table_config({"lookup": []}))


@pytest.mark.parametrize(
    "value",
    [["id", "substr(a, 1 + 1, 2)", ["k", "`b+c`"], "`d*e`"], "id, substr(a, 1 + 1, 2), k + `b+c`, `d*e`"],
)
def test_lookup_takes_expressions_beside_columns(value: object) -> None:
    config = parse_table_config({"lookup": value})
    assert config.indexes.lookup_expressions == config.indexes.expressions == ("substr(a, 1 + 1, 2)",)
    stored = stored_settings(config)
    assert stored["lookup"] == [[["id"]], ["substr(a, 1 + 1, 2)"], [["k"], ["b+c"]], [["d*e"]]]
    assert read_stored(stored, ()).indexes == config.indexes
    kept = parse_table_config({}).after(read_stored(stored, ()), [("id",), ("k",)]).indexes
    assert [format_column_set(columns) for columns in kept.lookup or ()] == ["id", "substr(a, 1 + 1, 2)"]


def test_a_column_may_be_called_like_an_expression_in_lookup() -> None:
    schema = pa.schema([("id", pa.int64()), ("A+b", pa.int64())])
    for value, found in (
        (["a+b", ["id", "a+b"]], ((("A+b",),), (("id",), ("A+b",)))),
        (["a*b"], (((EXPRESSION, "a*b"),),)),
    ):
        assert check_against_schema(parse_table_config({"lookup": value}), schema).indexes.lookup == found


@pytest.mark.parametrize("value", [[["lower(s)", "id"]], "id+lower(s)"])
def test_an_expression_in_an_index_of_several_columns_is_refused(value: object) -> None:
    schema = pa.schema([("id", pa.int64()), ("s", pa.string())])
    with pytest.raises(ConfigError) as error:
        check_against_schema(parse_table_config({"lookup": value}), schema)
    (problem,) = error.value.problems
    assert problem == (
        "lookup: 'lower(s)' is an expression, and an index of several columns takes columns only; "
        "list the expression by itself, or compute it as a column of the model"
    )


def test_a_misspelled_catalog_key_is_recognized() -> None:
    (problem,) = problems_of(publish=["iceberg"], publish_catalogue="lake")
    assert "publish_catalog" in problem


def test_a_table_with_defaults_stores_only_settings_that_older_releases_read() -> None:
    stored = stored_settings(TableConfig())
    assert list(stored) == ["zorder", "curve", "sizing", "stats_columns", "compression", "writer", "retention"]
    assert list(stored["sizing"]) == ["target_file_bytes", "row_group_rows"]
    assert list(stored["retention"]) == ["versions", "hours"]
