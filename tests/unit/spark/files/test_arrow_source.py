import datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt.adapters.zlayout.spark.files import arrow_source
from dbt.adapters.zlayout.spark.files.arrow_source import ArrowSource
from dbt.adapters.zlayout.store import open_store
from dbt.adapters.zlayout.store.local import LocalStore

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.date32()), ("word", pa.string()), ("t.u", pa.binary())])
BY_SPARK = {"org.apache.spark.version": "4.3.0"}


def rows_of(count, first=0):
    return pa.table(
        {
            "id": range(first, first + count),
            "day": [datetime.date(1500, 1, 1)] * count,
            "word": [None if each % 5 == 0 else f"word {each % 3}" for each in range(count)],
            "t.u": [b"%d" % each for each in range(count)],
        },
        schema=SCHEMA,
    )


def put(folder, name, rows, metadata=BY_SPARK, **options):
    """Writes a file with extra words in its footer."""
    with pq.ParquetWriter(folder / name, rows.schema, **options) as writer:
        writer.add_key_value_metadata(metadata)
        writer.write_table(rows, row_group_size=100)
    return name


def source_of(folder, *names, schema=SCHEMA, partition=()):
    return ArrowSource.of(open_store(folder.as_uri()), names, schema, partition)


def test_rows_come_back_row_group_by_row_group(tmp_path):
    source = source_of(tmp_path, put(tmp_path, "a", rows_of(250)), put(tmp_path, "b", rows_of(30, 250)))
    tables = list(source.tables(range(len(source.units))))
    assert [each.num_rows for each in tables] == [100, 100, 50, 30]
    assert pa.concat_tables(tables).cast(SCHEMA).equals(pa.concat_tables([rows_of(250), rows_of(30, 250)]))


def test_columns_can_be_chosen_and_texts_of_few_values_have_dictionaries(tmp_path):
    source = source_of(tmp_path, put(tmp_path, "a", rows_of(250)))
    assert pa.types.is_dictionary(source.schema.field("word").type)
    assert next(source.tables([0], ["t.u", "id"])).column_names == ["t.u", "id"]


def test_units_hold_row_groups_up_to_a_size(tmp_path, monkeypatch):
    names = [put(tmp_path, name, rows_of(250)) for name in "abc"]
    size = pq.read_metadata(tmp_path / "a").row_group(1).total_byte_size
    monkeypatch.setattr(arrow_source, "_UNIT_BYTES", int(2.1 * size))
    source = source_of(tmp_path, *names)
    assert source.units[:2] == ((("a", (0, 1)),), (("a", (2,)), ("b", (0,))))
    assert sorted((path, group) for unit in source.units for path, groups in unit for group in groups) == [
        (path, group) for path in "abc" for group in range(3)
    ]
    assert sum(each.num_rows for each in source.tables(range(len(source.units)))) == 750


def test_texts_of_any_width_are_read_as_the_table_has_them(tmp_path):
    wide = rows_of(50).set_column(2, "word", pa.array([f"w{each}" for each in range(50)], pa.large_string()))
    source = source_of(tmp_path, put(tmp_path, "a", wide))
    assert next(source.tables([0])).cast(SCHEMA)["word"].to_pylist() == wide["word"].to_pylist()


@pytest.mark.parametrize(
    ("rows", "metadata"),
    [
        (rows_of(10).drop_columns(["word"]), BY_SPARK),
        (rows_of(10).append_column("more", pa.array(range(10))), BY_SPARK),
        (rows_of(10).set_column(0, "id", pa.array(range(10), pa.int32())), BY_SPARK),
        (rows_of(10).rename_columns(["ID", "day", "word", "t.u"]), BY_SPARK),
        (rows_of(10), {}),
        (rows_of(10), {"org.apache.spark.version": "2.4.8"}),
        (rows_of(10), {**BY_SPARK, "org.apache.spark.legacyDateTime": ""}),
        (rows_of(0), BY_SPARK),
    ],
    ids=["lacks", "more", "type", "case", "no version", "old", "legacy", "empty"],
)
def test_spark_reads_what_arrow_may_read_otherwise(tmp_path, rows, metadata):
    assert source_of(tmp_path, put(tmp_path, "x", rows, metadata)) is None


def test_one_such_file_decides_for_all(tmp_path):
    put(tmp_path, "a", rows_of(10))
    (tmp_path / "b").write_bytes(b"no parquet")
    assert source_of(tmp_path, "a") is not None
    assert source_of(tmp_path, "a", "b") is None


def test_without_days_the_calendar_does_not_matter(tmp_path):
    rows = rows_of(10).drop_columns(["day"])
    assert source_of(tmp_path, put(tmp_path, "a", rows, {}), schema=rows.schema) is not None


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.date32()), pa.map_(pa.string(), pa.timestamp("us")), pa.struct([("d", pa.date32())])]
)
def test_days_inside_of_others_count(tmp_path, kind):
    schema = pa.schema([("n", kind)])
    rows = pa.table({"n": pa.nulls(3, kind)}, schema=schema)
    assert source_of(tmp_path, put(tmp_path, "a", rows, {}), schema=schema) is None


@pytest.mark.parametrize(
    ("value", "kind", "read"),
    [
        ("1", pa.int32(), True), ("01", pa.int32(), False), ("x", pa.int32(), False), (None, pa.int32(), True),
        ("01", pa.string(), True), ("2024-01-31", pa.date32(), True), ("2024-1-31", pa.date32(), False),
        ("1.50", pa.decimal128(5, 2), False),
    ],
)  # fmt: skip
def test_a_partition_must_be_spelled_as_its_type_prints_it(tmp_path, value, kind, read):
    source = source_of(tmp_path, put(tmp_path, "a", rows_of(10)), partition=[(value, kind)])
    assert (source is not None) is read
    assert source is None or source.partition == (value,)


def test_decimals_of_eight_bytes_and_their_nulls(tmp_path):
    schema = pa.schema(
        [("price", pa.decimal128(12, 2)), ("wide", pa.decimal128(30, 2)), ("small", pa.decimal128(7, 2))]
    )
    values = [Decimal("-1.50"), None, Decimal("99999.99")] * 40
    rows = pa.table(dict.fromkeys(schema.names, values), schema=schema)
    put(tmp_path, "a", rows, {}, store_decimal_as_integer=True)
    source = source_of(tmp_path, "a", schema=schema)
    assert source.schema.field("price").type == pa.decimal64(12, 2)
    found = pa.concat_tables(source.tables([0]))
    assert found.to_pydict() == rows.to_pydict()


def test_a_row_group_larger_than_a_worker_comes_in_parts(tmp_path, monkeypatch):
    put(tmp_path, "a", rows_of(90))
    monkeypatch.setattr(arrow_source, "_MOST_BYTES_AT_ONCE", 1)
    monkeypatch.setattr(arrow_source, "_BATCH_ROWS", 40)
    tables = list(source_of(tmp_path, "a").tables([0]))
    assert [each.num_rows for each in tables] == [40, 40, 10]
    assert pa.concat_tables(tables).cast(SCHEMA).equals(rows_of(90))


def test_first_rows(tmp_path):
    put(tmp_path, "a", rows_of(250))
    assert source_of(tmp_path, "a").first_rows(60).cast(SCHEMA).equals(rows_of(250).slice(0, 60))


def test_files_that_are_not_on_this_machine_are_read_whole(tmp_path, monkeypatch):
    names = [put(tmp_path, name, rows_of(250)) for name in "ab"]
    monkeypatch.setattr(LocalStore, "local_path", lambda *_: None)
    monkeypatch.setattr(arrow_source, "_UNIT_BYTES", 1)
    source = source_of(tmp_path, *names)
    assert source.units == ((("a", (0, 1, 2)),), (("b", (0, 1, 2)),))
    assert pa.concat_tables(source.tables([1])).cast(SCHEMA).equals(rows_of(250))
    assert source.first_rows(10).num_rows == 10
