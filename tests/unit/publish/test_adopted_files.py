"""Files of other software: readers find what plain Spark finds in them, or publishing names the file."""

from __future__ import annotations

import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from published_folder import IcebergFolder

from dbt.adapters.zlayout.store.local import LocalStore
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.files.data_files import DataFile, DataFiles
from dbt.adapters.zlayout.timeline.transactions.change import Change
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction


def spark(**columns) -> str:
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in columns.items()]
    return json.dumps({"type": "struct", "fields": fields})


def struct(**fields) -> dict:
    return json.loads(spark(**fields))


def adopted(folder, root, rows: pa.Table, *partition_by: str, path: str = "other.parquet", values=(), **columns):
    """A table of one file of other software; `columns` are the table's."""
    table = folder(LocalStore(root / "t"))
    sink = io.BytesIO()
    pq.write_table(rows, sink)
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
