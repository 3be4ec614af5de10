"""Files as vectors, names, instants and the identity of a table."""

from __future__ import annotations

import pytest

from dbt.adapters.zlayout.errors import AlreadyExistsError, CorruptError
from dbt.adapters.zlayout.store.local import LocalStore
from dbt.adapters.zlayout.timeline.files.data_files import DataFile, DataFiles
from dbt.adapters.zlayout.timeline.files.instant import instant_ms, instant_of, is_instant, next_instant
from dbt.adapters.zlayout.timeline.files.naming import (
    data_file_path,
    instants_in_name,
    is_data_path,
    new_group,
    parse_data_file_name,
)
from dbt.adapters.zlayout.timeline.files.table_file import (
    ManagementLevel,
    TableFile,
    create_table_file,
    read_table_file,
    replace_table_file,
)


def _files(partition_by: tuple[str, ...], count: int = 4) -> list[DataFile]:
    return [
        DataFile(
            path=f"f{i}",
            partition=tuple((name, None if i == 1 else f"{name}{i}") for name in partition_by),
            row_count=i,
            size_bytes=10 * i,
            modified_ms=i,
            group=f"g{i}",
        )
        for i in range(count)
    ]


@pytest.mark.parametrize("partition_by", [(), ("k",), ("k", "a.b")])
def test_objects_become_vectors_and_objects_again(partition_by) -> None:
    rows = _files(partition_by)
    files = DataFiles.of(rows, partition_by)
    assert list(files) == rows
    assert (files[0], files[-1]) == (rows[0], rows[3])
    assert list(files[1:3]) == rows[1:3]
    assert files.partition_by == partition_by
    assert (len(files), files.total_rows, files.total_bytes) == (4, 6, 60)
    assert files["path"].to_pylist() == ["f0", "f1", "f2", "f3"]
    assert files.to_pylist()[2]["partition"] == {name: f"{name}2" for name in partition_by}
    for name in partition_by:
        assert files.partition_values(name).to_pylist() == [f"{name}0", None, f"{name}2", f"{name}3"]


@pytest.mark.parametrize("partition_by", [(), ("k",)])
def test_files_are_taken_away_and_added(partition_by) -> None:
    rows = _files(partition_by)
    files = DataFiles.of(rows, partition_by)
    assert list(files.minus(["f0", "nothing"])) == rows[1:]
    assert files.minus([]) == files
    assert files.minus(["f0"]).plus(DataFiles.of(rows[:1], partition_by)) == DataFiles.of(
        rows[1:] + rows[:1], partition_by
    )
    empty = DataFiles.empty(partition_by)
    assert (len(empty), empty.total_rows, list(empty)) == (0, 0, [])
    assert empty.plus(files) == files


def test_files_of_other_partitions_do_not_mix() -> None:
    with pytest.raises(ValueError, match="do not mix"):
        DataFiles.empty(("k",)).plus(DataFiles.empty())


def test_a_column_that_is_no_partition_is_refused() -> None:
    with pytest.raises(KeyError, match="'x' is not a partition column"):
        DataFiles.empty(("k",)).partition_values("x")


def test_a_position_outside_is_refused() -> None:
    with pytest.raises(IndexError):
        DataFiles.empty()[0]


def test_an_instant_is_utc_time_to_the_millisecond() -> None:
    assert instant_of(1_700_000_000_123) == "20231114221320123"
    assert instant_ms("20231114221320123") == 1_700_000_000_123
    assert is_instant("20231114221320123")
    assert not is_instant("20231314221320123")
    assert not is_instant("2023111422132012")


def test_the_next_instant_is_after_the_last_whatever_the_clock_says() -> None:
    assert next_instant(None, 1_700_000_000_123) == "20231114221320123"
    assert next_instant("20231114221320123", 1_700_000_000_123) == "20231114221320124"
    assert next_instant("20231114235959999", 0) == "20231115000000000"


def test_a_data_file_carries_group_and_instant() -> None:
    group = new_group()
    path = data_file_path("k=a%2Fb", group, "20231114221320123")
    assert path == f"k=a%2Fb/{group}_20231114221320123.parquet"
    assert parse_data_file_name(path) == (group, "20231114221320123")
    assert parse_data_file_name("k=1/part-00000.parquet") is None
    assert instants_in_name(path) == ("20231114221320123",)
    assert instants_in_name(".zlayout/index/files/20231114221320123.base.parquet") == ("20231114221320123",)
    assert instants_in_name("k=20231114221320123/x.parquet") == ()
    assert instants_in_name("x_120231114221320123.parquet") == ()


@pytest.mark.parametrize(
    ("path", "is_data"),
    [
        ("a.parquet", True),
        ("k=1/a.parquet", True),
        ("_k=1/a.parquet", True),
        ("_temporary/a.parquet", False),
        (".zlayout/index/a.parquet", False),
        ("_a.parquet", False),
        (".a.parquet", False),
        ("a.crc", False),
    ],
)
def test_hidden_names_are_no_data(path, is_data) -> None:
    assert is_data_path(path) is is_data


def test_a_table_file_is_read_as_written(tmp_path) -> None:
    store = LocalStore(tmp_path)
    assert read_table_file(store) is None
    table_file = TableFile.new(ManagementLevel.INDEXED, "s.t", 5)
    create_table_file(store, table_file)
    assert read_table_file(store) == table_file
    with pytest.raises(AlreadyExistsError):
        create_table_file(store, table_file)
    replace_table_file(store, TableFile(table_file.table_id, ManagementLevel.MANAGED, "s.t", 5))
    assert read_table_file(store).level is ManagementLevel.MANAGED


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b'{"format_version":1,"table_id":"x","level":"y","name":"n","created_ms":1}']
)
def test_a_damaged_table_file_is_named(tmp_path, content) -> None:
    store = LocalStore(tmp_path)
    store.put(".zlayout/table.json", content)
    with pytest.raises(CorruptError, match=r"table\.json"):
        read_table_file(store)
