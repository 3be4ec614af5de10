import math

import pyarrow as pa
import pyarrow.parquet as pq

from dbt.adapters.zlayout.spark.files.parquet_file import (
    FloatFacts,
    ParquetFile,
    ParquetSettings,
    SpecialFloats,
    float_paths,
)

SETTINGS = ParquetSettings("zstd", '{"type":"struct","fields":[]}', "4.3.0")
SCHEMA = pa.schema(
    [
        ("a.b", pa.float64()),
        ("st", pa.struct([("x", pa.float32()), ("items", pa.list_(pa.float64()))])),
        ("m", pa.map_(pa.string(), pa.float64())),
        ("i", pa.int32()),
    ]
)
ROWS = pa.table(
    {
        "a.b": [1.0, math.nan, None],
        "st": [{"x": 1.0, "items": [math.nan]}, None, {"x": 3.0, "items": []}],
        "m": [[("k", math.nan)], None, []],
        "i": [1, 2, 3],
    },
    schema=SCHEMA,
)


def written(tmp_path, rows=ROWS):
    file = ParquetFile(
        tmp_path / "x.parquet", SCHEMA, SETTINGS, ["i", "st"], SpecialFloats.of(rows, float_paths(SCHEMA))
    )
    file.write_row_group(rows)
    return file.close()


def test_floats_that_filters_can_reach_are_columns_and_struct_fields():
    assert float_paths(SCHEMA) == [("a.b",), ("st", "x")]


def test_a_column_with_nan_has_no_bounds_in_the_footer_and_the_others_have(tmp_path):
    group = written(tmp_path).metadata.row_group(0)
    bounds = {
        group.column(number).path_in_schema: bool(group.column(number).is_stats_set)
        for number in range(group.num_columns)
    }
    assert bounds["a.b"] is False
    assert bounds["st.x"] is True
    assert bounds["i"] is True


def test_a_column_with_negative_zero_has_no_dictionary_and_the_others_have(tmp_path):
    struct = {"x": -0.0, "items": []}
    rows = pa.table({"a.b": [0.0, math.nan, None], "st": [struct] * 3, "m": [None] * 3, "i": [1, 2, 3]}, schema=SCHEMA)
    assert SpecialFloats.of(rows, float_paths(SCHEMA)) == SpecialFloats(
        nan=frozenset({("a.b",)}), negative_zero=frozenset({("st", "x")})
    )
    group = written(tmp_path, rows).metadata.row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    assert {each.path_in_schema for each in columns if each.has_dictionary_page} >= {"a.b", "i"}
    assert "st.x" not in {each.path_in_schema for each in columns if each.has_dictionary_page}


def test_what_floats_hold_is_reported_without_nan(tmp_path):
    assert written(tmp_path).floats == {("a.b",): FloatFacts(1.0, 1.0, 1, 1), ("st", "x"): FloatFacts(1.0, 3.0, 1, 0)}


def test_nulls_of_required_columns_are_counted_in_structs_too(tmp_path):
    assert written(tmp_path).null_counts == {"i": 0, "st": 1}


def test_facts_of_row_groups_add_up(tmp_path):
    file = ParquetFile(tmp_path / "x.parquet", SCHEMA, SETTINGS, [], SpecialFloats(nan=frozenset({("a.b",)})))
    file.write_row_group(ROWS)
    file.write_row_group(ROWS.slice(0, 1))
    done = file.close()
    assert (done.row_count, done.metadata.num_row_groups) == (4, 2)
    assert done.floats[("a.b",)] == FloatFacts(1.0, 1.0, 1, 1)


def test_the_footer_tells_spark_who_wrote_it(tmp_path):
    metadata = pq.read_metadata(written(tmp_path).local).metadata
    assert metadata[b"org.apache.spark.version"] == b"4.3.0"
    assert b"org.apache.spark.sql.parquet.row.metadata" in metadata


def test_a_discarded_file_is_gone(tmp_path):
    file = ParquetFile(tmp_path / "x.parquet", SCHEMA, SETTINGS, [], SpecialFloats())
    file.discard()
    assert list(tmp_path.iterdir()) == []
