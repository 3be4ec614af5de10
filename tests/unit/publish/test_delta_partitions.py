"""Partition values of Delta: whatever tool named the folder, readers understand the value."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from published_folder import DeltaFolder

from dbt.adapters.zlayout.errors import UnsupportedError
from dbt.adapters.zlayout.publish.delta_log import commit_path
from dbt.adapters.zlayout.publish.delta_partitions import partition_texts
from dbt.adapters.zlayout.store.local import LocalStore
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.files.data_files import DataFile, DataFiles
from dbt.adapters.zlayout.timeline.transactions.change import Change
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction


@pytest.mark.parametrize(
    ("kind", "texts", "written"),
    [
        ("decimal(10,2)", ["1", "1.5", "-0.25", "100", None], ["1.00", "1.50", "-0.25", "100.00", None]),
        ("decimal(38,38)", ["0.00000000000000000000000000000000000001"], ["0.00000000000000000000000000000000000001"]),
        *(("integer", ["007", "-1"], ["7", "-1"]), ("date", ["2024-1-5", "0001-01-01"], ["2024-01-05", "0001-01-01"])),
        *(("boolean", ["True", "false"], ["true", "false"]), ("string", ["1.50", "é"], ["1.50", "é"])),
        ("timestamp_ntz", ["2024-01-05 10:00:00.500", "1969-12-31 23:59:59.123456"],
         ["2024-01-05 10:00:00.5", "1969-12-31 23:59:59.123456"]),
        ("double", ["1.0E20", "NaN", "-Infinity", "0.1"], ["1.0E20", "NaN", "-Infinity", "0.1"]),
    ],
)  # fmt: skip
def test_values_are_written_as_readers_understand_them(kind, texts, written) -> None:
    assert partition_texts(pa.array(texts, pa.string()), "p", kind) == written


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        *(("timestamp_ntz", "2024-01-05T10:00:00"), ("decimal(4,2)", "1.125"), ("integer", "1e3"), ("byte", "300")),
        *(("date", "2024-02-30"), ("boolean", "yes"), ("double", "1,5")),
    ],
)
def test_a_folder_that_is_no_value_of_the_column_is_named(kind, text) -> None:
    with pytest.raises(UnsupportedError, match=f"'p={text}' is not spelled as a value of type .*readers of delta"):
        partition_texts(pa.array([None, text]), "p", kind)


def test_the_log_has_the_values_so(tmp_path) -> None:
    table = DeltaFolder(LocalStore(tmp_path / "t"))
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, kind in (("k", "long"), ("p", "decimal(9,2)"))
    ]
    file = DataFile("p=1/0000000000000009_20260101000000000.parquet", (("p", "1"),), 1, 10, 1000, "g")
    with Transaction.begin(table.timeline, Action.REPLACECOMMIT, Operation.OVERWRITE) as transaction:
        schema_json = json.dumps({"type": "struct", "fields": fields})
        transaction.commit(Change(DataFiles.of([file], ("p",)), schema_json=schema_json, partition_by=("p",)))
    table.publish()
    (added,) = [json.loads(each)["add"] for each in table.store.read(commit_path(0)).splitlines() if b'"add"' in each]
    assert added["partitionValues"] == {"p": "1.00"}
