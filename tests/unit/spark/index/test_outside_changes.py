"""Which files of other tools have the same columns, by their footers."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt.adapters.zlayout.spark.index.outside_changes import _schema_key

ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "at": pa.array([0, 1], pa.timestamp("us"))})


def key_of(folder, rows, **options):
    file = folder / "a.parquet"
    pq.write_table(rows, file, **options)
    return _schema_key(pq.read_metadata(file))


def test_files_with_the_same_columns_have_one_key(tmp_path):
    assert key_of(tmp_path, ROWS) == key_of(tmp_path, ROWS.slice(1), compression="zstd")


@pytest.mark.parametrize(
    ("rows", "options"),
    [
        (ROWS.rename_columns(["id", "AT"]), {}),
        (ROWS.set_column(0, "id", ROWS["id"].cast(pa.int32())), {}),
        (ROWS.set_column(0, "id", ROWS["id"].cast(pa.decimal128(20, 0))), {}),
        (ROWS.set_column(1, "at", ROWS["at"].cast(pa.timestamp("us", "UTC"))), {}),
        (ROWS.set_column(0, "id", pa.array([[1], [2]], pa.list_(pa.int64()))), {}),
        (ROWS, {"use_deprecated_int96_timestamps": True}),
        (ROWS.replace_schema_metadata({"org.apache.spark.sql.parquet.row.metadata": "{}"}), {}),
    ],
)
def test_files_with_other_columns_have_another(tmp_path, rows, options):
    assert key_of(tmp_path, ROWS) != key_of(tmp_path, rows, **options)
