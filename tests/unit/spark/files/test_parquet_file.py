import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt.adapters.zlayout.index.bloom.file_filters import held_by
from dbt.adapters.zlayout.index.bloom.hashing import hashes_of
from dbt.adapters.zlayout.index.statistics.tracked import TrackedColumn
from dbt.adapters.zlayout.spark.files.parquet_file import (
    _WRITES_FILTERS,
    Encodings,
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
        tmp_path / "x.parquet", SCHEMA, SETTINGS, ["i", "st"], SpecialFloats.of(rows, float_paths(SCHEMA)), 3
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
    file = ParquetFile(tmp_path / "x.parquet", SCHEMA, SETTINGS, [], SpecialFloats(nan=frozenset({("a.b",)})), 3)
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
    file = ParquetFile(tmp_path / "x.parquet", SCHEMA, SETTINGS, [], SpecialFloats(), 3)
    file.discard()
    assert list(tmp_path.iterdir()) == []


SHARED = pa.schema([("a.b", pa.float64()), ("a", pa.struct([("b", pa.string())]))])


@pytest.mark.parametrize("floats", [[1.0, math.nan], [1.0, -0.0]], ids=["nan", "negative zero"])
def test_a_column_beside_a_field_of_the_same_name_gets_nothing_that_floats_must_not_have(tmp_path, floats):
    rows = pa.table({"a.b": floats, "a": [{"b": "x"}, {"b": "y"}]}, schema=SHARED)
    special = SpecialFloats.of(rows, float_paths(SHARED))
    filtered = [TrackedColumn(("a", "b"), pa.string())]
    file = ParquetFile(tmp_path / "x.parquet", SHARED, SETTINGS, [], special, 2, filtered=filtered)
    file.write_row_group(rows)
    number = file.close().metadata.row_group(0).column(0)
    assert number.path_in_schema == "a.b"
    assert number.is_stats_set is not bool(special.nan)
    assert number.has_dictionary_page is not bool(special.negative_zero)
    assert getattr(number, "bloom_filter_offset", None) is None
    assert pq.read_table(tmp_path / "x.parquet")["a"].to_pylist() == [{"b": "x"}, {"b": "y"}]


def test_an_encoding_chosen_for_a_column_does_not_reach_a_field_of_the_same_name(tmp_path):
    schema = pa.schema([("a.b", pa.int64()), ("a", pa.struct([("b", pa.string())]))])
    rows = pa.table({"a.b": [1, 2], "a": [{"b": "x"}, {"b": "y"}]}, schema=schema)
    chosen = Encodings({"a.b": "DELTA_BINARY_PACKED"})
    file = ParquetFile(tmp_path / "x.parquet", schema, SETTINGS, [], SpecialFloats(), 2, chosen)
    file.write_row_group(rows)
    file.close()
    assert pq.read_table(tmp_path / "x.parquet").to_pylist() == rows.to_pylist()


@pytest.mark.skipif(not _WRITES_FILTERS, reason="Arrow writes Parquet's Bloom filters since release 26")
def test_row_groups_have_filters_of_the_columns_that_readers_can_look_up(tmp_path):
    numbers = [each * 1_000_003 for each in range(5_000)]
    rows = pa.table(
        {
            "id": [f"é{each}" for each in numbers],
            "st": pa.array([{"k": each} for each in numbers], pa.struct([("k", pa.int64())])),
            "f": pa.array(numbers, pa.float64()),
            "b": [True, False] * 2_500,
            "free": numbers,
        }
    ).cast(pa.schema([("id", pa.string()), ("st", pa.struct([("k", pa.int64())])), ("f", pa.float64()),
                      ("b", pa.bool_()), ("free", pa.int64())]))  # fmt: skip
    columns = {("id",): pa.string(), ("st", "k"): pa.int64(), ("f",): pa.float64(), ("b",): pa.bool_()}
    filtered = [TrackedColumn(path, kind) for path, kind in columns.items()]
    file = ParquetFile(tmp_path / "x.parquet", rows.schema, SETTINGS, [], SpecialFloats(), 3_000, filtered=filtered)
    groups = [(0, 3_000), (3_000, 2_000)]
    for start, count in groups:
        file.write_row_group(rows.slice(start, count))
    metadata = file.close().metadata
    content = (tmp_path / "x.parquet").read_bytes()
    has_filter = set()
    for number, (start, count) in enumerate(groups):
        for position in range(metadata.num_columns):
            chunk = metadata.row_group(number).column(position)
            if chunk.bloom_filter_offset is None:
                continue
            has_filter.add(chunk.path_in_schema)
            values = rows["id"] if chunk.path_in_schema == "id" else pa.chunked_array([pa.array(numbers)])
            size = 1 << (chunk.bloom_filter_length.bit_length() - 1)  # after a header of some bytes
            assert size <= 2 * count
            end = chunk.bloom_filter_offset + chunk.bloom_filter_length
            bits = content[end - size : end]
            assert held_by(bits, hashes_of(values.slice(start, count), values.type)).all()
            others = values.slice(0, start) if start else values.slice(count)
            assert held_by(bits, hashes_of(others, values.type)).mean() < 0.05
    assert has_filter == {"id", "st.k"}
