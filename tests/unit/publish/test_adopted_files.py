"""Files of other software: readers find what plain Spark finds in them, or publishing names the file."""

from __future__ import annotations

import datetime as dt
import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from published_folder import DeltaFolder, IcebergFolder

from dbt.adapters.zlayout.errors import UnsupportedError
from dbt.adapters.zlayout.store.local import LocalStore
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.files.data_files import DataFile, DataFiles
from dbt.adapters.zlayout.timeline.transactions.change import Change
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction


@pytest.fixture(params=[DeltaFolder, IcebergFolder], ids=["delta", "iceberg"])
def folder(request):
    return request.param


def spark(**columns) -> str:
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in columns.items()]
    return json.dumps({"type": "struct", "fields": fields})


def struct(**fields) -> dict:
    return json.loads(spark(**fields))


def adopted(folder, root, rows: pa.Table, *partition_by: str, path="other.parquet", values=(), int96=False, **columns):
    """A table of one file of other software; `columns` are the table's."""
    table = folder(LocalStore(root / "t"))
    sink = io.BytesIO()
    pq.write_table(rows, sink, use_deprecated_int96_timestamps=int96)
    table.store.put(path, sink.getvalue())
    file = DataFile(path, tuple(values), rows.num_rows, len(sink.getvalue()), 1000, "g")
    with Transaction.begin(table.timeline, Action.REPLACECOMMIT, Operation.OVERWRITE) as transaction:
        transaction.commit(
            Change(DataFiles.of([file], partition_by), schema_json=spark(**columns), partition_by=partition_by)
        )
    return table


def change_columns(table, **columns) -> None:
    with Transaction.begin(table.timeline, Action.COMMIT, Operation.APPEND) as transaction:
        transaction.commit(Change(DataFiles.of([]), schema_json=spark(**columns)))


def test_files_without_ids_stay_readable_when_columns_are_dropped(tmp_path) -> None:
    rows = pa.table({"k": [1], "st": [{"a": 1, "b": [{"c": 2}]}], "x": ["x"]})
    parts = {"type": "array", "elementType": struct(c="long"), "containsNull": True}
    table = adopted(IcebergFolder, tmp_path, rows, k="long", st=struct(a="long", b=parts), x="string")
    table.publish()
    change_columns(table, k="long", st=struct(a="long"))
    table.publish()
    assert table.opened().scan().to_arrow().to_pylist() == [{"k": 1, "st": {"a": 1}}]
    # Switched off and on, nobody knows the dropped columns but the files.
    table.withdraw()
    table.publish()
    assert table.opened().scan().to_arrow().to_pylist() == [{"k": 1, "st": {"a": 1}}]


@pytest.mark.parametrize("path", ["other.parquet", "0000000000000001_20260101000000000.parquet"])
def test_files_may_have_columns_that_the_table_lacks(tmp_path, path) -> None:
    rows = pa.table({"k": [1], "st": [{"a": 1, "b": {"c": 2}}], "m": [{"q": 1}], "x": ["x"]})
    table = adopted(IcebergFolder, tmp_path, rows, path=path, k="long", st=struct(a="long"))
    with Transaction.begin(table.timeline, Action.COMMIT, Operation.APPEND) as transaction:
        transaction.commit(Change(DataFiles.of([]), layout={"writer": "spark"}))
    table.publish()
    assert table.opened().scan().to_arrow().to_pylist() == [{"k": 1, "st": {"a": 1}}]


def list_of(kind) -> dict:
    return {"type": "array", "elementType": kind, "containsNull": True}


def map_of(kind) -> dict:
    return {"type": "map", "keyType": "string", "valueType": kind, "valueContainsNull": True}


@pytest.mark.parametrize(
    ("rows", "columns", "told"),
    [
        ({"K": [1]}, {"k": "long"}, "spells column 'K' in another case"),
        ({"k": [{"A": 1}]}, {"k": struct(a="long")}, "spells column 'k.A' in another case"),
        ({"k": [[{"A": 1}]]}, {"k": list_of(struct(a="long"))}, "spells column 'k.A' in another case"),
        ({"k": pa.array([[("x", {"A": 1})]], pa.map_(pa.string(), pa.struct([("A", pa.int64())])))},
         {"k": map_of(struct(a="long"))}, "spells column 'k.A' in another case"),
        ({"k": [{"a": 1.5}]}, {"k": struct(a="long")}, "stores column 'k.a' of type long as double"),
        ({"k": [1]}, {"k": struct(a="long")}, "stores column 'k' of type struct as int64"),
    ],
)  # fmt: skip
def test_a_file_that_spells_or_nests_columns_otherwise_is_named(folder, tmp_path, rows, columns, told) -> None:
    table = adopted(folder, tmp_path, pa.table(rows), **columns)
    with pytest.raises(UnsupportedError, match=f"other.parquet {told}.*cluster with rewrite_all"):
        table.publish()
    assert not table.store.list(table.folder)


def test_columns_that_differ_by_case_only_are_found(folder, tmp_path) -> None:
    table = adopted(folder, tmp_path, pa.table({"A": [1]}), a="long", A="long")
    table.publish()
    assert table.live() == {"other.parquet"}


@pytest.mark.parametrize(
    ("kind", "stored"),
    [
        *(("decimal(20,0)", pa.uint64()), ("double", pa.int32()), ("decimal(20,4)", pa.decimal128(10, 2))),
        ("double", pa.float32()),
        *(("decimal(9,2)", pa.decimal128(10, 2)), ("binary", pa.binary(4)), ("string", pa.binary())),
        *(("binary", pa.string()), ("integer", pa.int64()), ("integer", pa.uint32()), ("float", pa.float64())),
        *(("timestamp_ntz", pa.date32()), ("date", pa.timestamp("us")), ("string", pa.time64("us"))),
        *(("long", pa.duration("us")), ("boolean", pa.int8()), (list_of("long"), pa.list_(pa.int64(), 2))),
    ],
)  # fmt: skip
def test_a_file_with_a_type_that_a_reader_does_not_take_for_the_columns_is_named(
    folder, tmp_path, kind, stored
) -> None:
    with pytest.raises(UnsupportedError, match="stores column 'k' of type"):
        adopted(folder, tmp_path, pa.table({"k": pa.array([None], stored)}), k=kind).publish()


@pytest.mark.parametrize(
    ("kind", "stored"),
    [
        *(("long", pa.int32()), ("integer", pa.int16()), ("short", pa.int8())),
        *(("decimal(20,2)", pa.decimal128(10, 2)), ("string", pa.large_string())),
        ("timestamp", pa.timestamp("ns", "UTC")),
        *(("timestamp_ntz", pa.timestamp("ms")), (list_of("long"), pa.list_(pa.int32()))),
    ],
)  # fmt: skip
def test_types_that_all_readers_widen_are_published(folder, tmp_path, kind, stored) -> None:
    table = adopted(folder, tmp_path, pa.table({"k": pa.array([None], stored)}), k=kind)
    table.publish()
    assert table.live() == {"other.parquet"}


def test_what_only_one_format_refuses(tmp_path) -> None:
    for name, folder, kind, stored in (
        ("a", DeltaFolder, "byte", pa.int32()),
        ("b", IcebergFolder, "string", pa.null()),
        ("c", IcebergFolder, "long", pa.uint32()),
        ("d", IcebergFolder, "integer", pa.uint16()),
        ("e", IcebergFolder, "timestamp", pa.timestamp("ms", "Europe/Zurich")),
        ("f", IcebergFolder, "string", pa.dictionary(pa.int32(), pa.string())),
    ):
        rows = pa.table({"k": pa.array([None], stored)})
        with pytest.raises(UnsupportedError, match="stores column 'k'"):
            adopted(folder, tmp_path / name, rows, k=kind).publish()
        (other,) = {DeltaFolder, IcebergFolder} - {folder}
        adopted(other, tmp_path / f"{name}2", rows, k=kind).publish()


def test_a_file_that_holds_a_partition_column_is_named_for_iceberg(tmp_path) -> None:
    def table(folder):
        rows = pa.table({"k": [1], "p": pa.array([9], pa.int32())})
        given = {"path": "p=1/other.parquet", "values": [("p", "1")], "k": "long", "p": "integer"}
        return adopted(folder, tmp_path / folder.name, rows, "p", **given)

    table(DeltaFolder).publish()
    with pytest.raises(UnsupportedError, match=r"p=1/other\.parquet holds the partition column 'p'"):
        table(IcebergFolder).publish()


SPARK2 = {b"org.apache.spark.version": b"2.4.8"}
LEGACY = {b"org.apache.spark.version": b"3.5.1", b"org.apache.spark.legacyDateTime": b""}
CORRECTED = {b"org.apache.spark.version": b"3.5.1"}


@pytest.mark.parametrize(
    ("value", "metadata", "refused"),
    [
        *((dt.date(1582, 10, 14), None, True), (dt.date(1582, 10, 15), None, False)),
        (dt.date(1, 1, 1), CORRECTED, False),
        *((dt.date(1582, 10, 14), LEGACY, True), (dt.date(2026, 1, 1), SPARK2, False), (None, LEGACY, False)),
        *(
            (dt.datetime.fromisoformat(f"{year}-01-01"), metadata, year < 1900)
            for year, metadata in ((1899, None), (1900, LEGACY))
        ),
    ],
)
def test_values_of_an_old_calendar_are_named(folder, tmp_path, value, metadata, refused) -> None:
    kind, word = (pa.timestamp("us"), "timestamp_ntz") if isinstance(value, dt.datetime) else (pa.date32(), "date")
    rows = pa.table({"k": pa.array([None, value], kind)}).replace_schema_metadata(metadata)
    table = adopted(folder, tmp_path, rows, k=word)
    if refused:
        with pytest.raises(UnsupportedError, match=r"other\.parquet holds values before .* in column 'k'"):
            table.publish()
    else:
        table.publish()


@pytest.mark.parametrize("metadata", [None, LEGACY, SPARK2])
def test_values_without_bounds_are_named_in_files_that_name_an_old_calendar(folder, tmp_path, metadata) -> None:
    rows = pa.table({"k": pa.array([0], pa.timestamp("us", "UTC"))}).replace_schema_metadata(metadata)
    table = adopted(folder, tmp_path, rows, int96=True, k="timestamp")
    if metadata is None:
        table.publish()
        return
    with pytest.raises(UnsupportedError, match=r"other\.parquet may hold values before 1900 in column 'k'"):
        table.publish()
