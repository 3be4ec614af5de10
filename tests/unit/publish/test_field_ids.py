"""Field ids: a function of a column's path, and what Arrow's writer puts into a file."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq

from dbt.adapters.zlayout.publish.field_ids import ELEMENT, KEY, VALUE, field_id, ids_in, with_field_ids

NESTED = pa.schema(
    [
        ("k", pa.int64()),
        ("s", pa.struct([("a", pa.string()), ("l", pa.list_(pa.struct([("x", pa.int32())])))])),
        ("m", pa.map_(pa.string(), pa.list_(pa.float64()))),
        ("element", pa.int8()),
    ]
)


def test_a_file_has_the_id_of_each_column_field_and_part() -> None:
    sink = io.BytesIO()
    schema = with_field_ids(NESTED)
    pq.write_table(schema.empty_table(), sink, store_schema=False)
    found = ids_in(pq.read_metadata(sink).schema.to_arrow_schema())
    assert found == {path: field_id(path) for path in found}
    assert set(found) == {
        *(("k",), ("s",), ("s", "a"), ("s", "l"), ("s", "l", *ELEMENT), ("s", "l", *ELEMENT, "x")),
        *(("m",), ("m", *KEY), ("m", *VALUE), ("m", *VALUE, *ELEMENT), ("element",)),
    }
    assert len(set(found.values())) == len(found)


def test_ids_change_no_type_and_files_without_them_have_none() -> None:
    assert with_field_ids(NESTED).equals(NESTED)
    assert set(ids_in(NESTED).values()) == {None}


def test_an_id_is_the_same_for_ever_and_none_is_reserved() -> None:
    assert field_id(("k",)) == 673393911
    assert field_id(("st", "a")) == 352098073
    assert all(0 < field_id((f"c{number}",)) <= 2_000_000_000 for number in range(1000))
