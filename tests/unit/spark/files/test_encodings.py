import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt.adapters.zlayout.spark.files.parquet_file import (
    DICTIONARIES,
    Encodings,
    ParquetSettings,
    encoded_bytes_per_row,
)

SETTINGS = ParquetSettings("zstd", '{"type":"struct","fields":[]}', "4.3.0")
COUNT = 40_000
RNG = np.random.default_rng(7)
NUMBERS = RNG.integers(0, 1 << 40, COUNT)
ROWS = pa.table(
    {
        "few": pa.array(NUMBERS % 50),
        "far": pa.array(NUMBERS),
        "rising": pa.array(np.arange(COUNT) * 7),
        "day": pa.array((NUMBERS % 40_000).astype(np.int32), pa.date32()),
        "price": pa.array((NUMBERS % 10_000_000).tolist(), pa.int64())
        .cast(pa.decimal128(19, 0))
        .cast(pa.decimal128(18, 0)),
        "text": pa.array([f"{each:x}{each * 7:x}"[: 3 + each % 15] for each in NUMBERS.tolist()]),
        "word": pa.array([f"a much repeated text, number {each}" for each in (NUMBERS % 30).tolist()]),
        "wide": pa.array([None if each % 3 else f"{each % 9_000:0200d}" for each in NUMBERS.tolist()]),
        "share": pa.array(RNG.random(COUNT)),
        "flag": pa.array(NUMBERS % 2 == 0),
        "nothing": pa.nulls(COUNT, pa.int64()),
        "list": pa.array([[each] for each in NUMBERS.tolist()]),
        "st.dotted": pa.array(NUMBERS),
        "st": pa.array([{"dotted": each} for each in NUMBERS.tolist()]),
        "coded": pa.array(NUMBERS).cast(pa.string()).dictionary_encode(),
    }
)


def written(rows, encodings):
    sink = io.BytesIO()
    with SETTINGS.open(sink, rows.schema, encodings=encodings) as writer:
        writer.write_table(rows)
    return pq.ParquetFile(sink)


@pytest.fixture(scope="module")
def chosen():
    return Encodings.of(ROWS, SETTINGS.codec).chosen


@pytest.mark.parametrize("name", ["few", "word", "wide", "flag", "nothing", "list", "st", "coded"])
def test_columns_with_many_repetitions_or_without_another_encoding_keep_their_dictionary(chosen, name):
    assert name not in chosen


@pytest.mark.parametrize(
    ("name", "encoding"),
    [
        ("far", "DELTA_BINARY_PACKED"),
        ("rising", "DELTA_BINARY_PACKED"),
        ("price", "DELTA_BINARY_PACKED"),
        ("text", "DELTA_LENGTH_BYTE_ARRAY"),
        ("share", "PLAIN"),
        ("st.dotted", "DELTA_BINARY_PACKED"),
    ],
)
def test_columns_with_few_repetitions_get_another_encoding(chosen, name, encoding):
    assert chosen[name] == encoding


def test_few_rows_keep_dictionaries():
    assert Encodings.of(ROWS.slice(0, 1_000), SETTINGS.codec).chosen == {}


def test_columns_are_stored_as_chosen_and_read_back(chosen):
    file = written(ROWS, Encodings(chosen))
    group = file.metadata.row_group(0)
    stored = {group.column(number).path_in_schema: group.column(number) for number in range(group.num_columns)}
    assert "DELTA_BINARY_PACKED" in stored["far"].encodings
    assert "RLE_DICTIONARY" not in stored["share"].encodings
    assert "RLE_DICTIONARY" in stored["few"].encodings
    back = file.read()
    for name in ROWS.column_names:
        assert back.column(name).cast(pa.string() if name == "coded" else ROWS.schema.field(name).type).to_pylist() == (
            ROWS.column(name).to_pylist()
        )


def test_chosen_encodings_are_smaller_than_dictionaries(chosen):
    for name in chosen:
        rows = ROWS.select([name])
        sizes = []
        for encodings in (DICTIONARIES, Encodings({name: chosen[name]})):
            sink = io.BytesIO()
            with SETTINGS.open(sink, rows.schema, encodings=encodings) as writer:
                writer.write_table(rows)
            sizes.append(len(sink.getvalue()))
        assert sizes[1] < sizes[0], name


def test_measured_rows_are_encoded_as_files_encode_them():
    rows = ROWS.select(["far", "text"])
    sink = io.BytesIO()
    with SETTINGS.open(sink, rows.schema, encodings=Encodings.of(rows, SETTINGS.codec)) as writer:
        writer.write_table(rows)
    assert encoded_bytes_per_row(rows, SETTINGS, 1 << 27) == len(sink.getvalue()) / COUNT
    assert encoded_bytes_per_row(rows, SETTINGS, 1 << 16) > len(sink.getvalue()) / COUNT
