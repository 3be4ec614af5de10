"""The Delta log: a function of the table's log, complete after any interruption, and trusted with nothing."""

from __future__ import annotations

import io
import json
from contextlib import suppress
from typing import Any

import pyarrow.parquet as pq
import pytest
from published_folder import SCHEMA, TABLE, DeltaFolder, DyingStore, Killed

from dbt.adapters.zlayout.config.table_config import PublishingConfig
from dbt.adapters.zlayout.errors import CorruptError
from dbt.adapters.zlayout.publish import delta_log
from dbt.adapters.zlayout.publish.delta_log import FOLDER, commit_path, delta_schema, protocol, withdraw
from dbt.adapters.zlayout.publish.formats import problems_of, what_lags
from dbt.adapters.zlayout.store.local import LocalStore
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.files.data_files import DataFile, DataFiles
from dbt.adapters.zlayout.timeline.files.naming import log_file_path, parse_log_file_name
from dbt.adapters.zlayout.timeline.transactions.change import Change
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction


@pytest.fixture
def table(tmp_path) -> DeltaFolder:
    return DeltaFolder(LocalStore(tmp_path / "t"))


def test_the_same_versions_give_the_same_bytes_however_often_and_late_they_are_published(tmp_path) -> None:
    one = DeltaFolder(LocalStore(tmp_path / "one"))
    one.publish()
    for _ in range(3):
        one.merge(*one.append())
        one.publish()
        one.publish()
    at_once = one.published_bytes()
    assert set(at_once) == {commit_path(number) for number in range(7)}
    for path in at_once:
        if path != commit_path(0):
            one.store.delete([path])
    one.publish()
    assert one.published_bytes() == at_once
    assert one.live() == one.files()


def test_each_commit_tells_how_many_records_in_logs_it_does_not_show(table) -> None:
    table.publish()
    for group in ("aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb"):
        with Transaction.begin(table.timeline, Action.DELTACOMMIT, Operation.MERGE) as transaction:
            log = DataFile(log_file_path("", group, transaction.instant, 0), (), 7, 10, 1000, group)
            transaction.commit(Change(DataFiles.of([log]), layout={"table_type": "merge_on_read"}))
    # The version before is published late, and yet as it was.
    table.publish()
    table.merge(*(path for path in table.files() if parse_log_file_name(path)))
    table.publish()
    told = [json.loads(table.store.read(commit_path(number)).splitlines()[0])["commitInfo"] for number in range(4)]
    assert [each.get("zlayout.log_records_not_shown") for each in told] == [None, 7, 14, None]
    assert table.live() == table.files()


def test_a_file_that_is_removed_and_added_in_one_commit_is_only_added(table) -> None:
    table.publish()
    (path,) = table.files()
    files = DataFiles.of([DataFile(path, (), 2, 20, 2000, "g")])
    with Transaction.begin(table.timeline, Action.COMMIT, Operation.MERGE) as transaction:
        transaction.commit(Change(files, removes=(path,)))
    table.publish()
    lines = [json.loads(line) for line in table.store.read(commit_path(1)).splitlines()]
    assert [next(iter(line)) for line in lines] == ["commitInfo", "txn", "add"]
    assert table.live() == {path}


def test_columns_are_written_when_they_change_and_only_then(table) -> None:
    def kinds(number: int) -> list[str]:
        return [next(iter(json.loads(line))) for line in table.store.read(commit_path(number)).splitlines()]

    table.publish()
    table.append()
    wider = SCHEMA.replace("}]}", '},{"name":"x","type":"timestamp_ntz","nullable":true,"metadata":{}}]}')
    table.commit(Action.COMMIT, Operation.APPEND, schema_json=wider)
    table.publish()
    assert kinds(0)[:4] == ["commitInfo", "protocol", "metaData", "txn"]
    assert kinds(1) == ["commitInfo", "txn", "add"]
    assert kinds(2) == ["commitInfo", "protocol", "metaData", "txn", "add"]


def test_checkpoints_replace_older_commits_for_readers(table) -> None:
    table.publish()
    [first] = table.append()
    for number in range(25):
        table.append() if number % 3 else table.merge(first)
        table.publish()
    assert json.loads(table.store.read(f"{FOLDER}/_last_checkpoint"))["version"] == 20
    expected = table.live()
    table.store.delete(commit_path(number) for number in range(20))
    assert table.live() == expected == table.files()
    table.append()
    table.publish()
    assert table.live() == table.files()


def test_columns_that_change_are_followed_by_a_checkpoint_even_if_a_publisher_died_before_it(table) -> None:
    def checkpoints() -> list[int]:
        names = [file.path.rpartition("/")[2] for file in table.store.list(FOLDER)]
        return [int(name[:20]) for name in names if name.endswith(".checkpoint.parquet")]

    table.publish()
    table.append()
    table.publish()
    assert checkpoints() == []
    table.commit(Action.COMMIT, Operation.APPEND, schema_json=SCHEMA.replace("long", "string"))
    table.publish()
    assert checkpoints() == [2]
    table.store.delete([f"{FOLDER}/{2:020d}.checkpoint.parquet", f"{FOLDER}/_last_checkpoint"])
    table.append()
    table.publish()
    assert checkpoints() == [3]
    table.store.delete([f"{FOLDER}/_last_checkpoint"])
    table.append()
    table.publish()
    table.append()
    table.publish()
    assert checkpoints() == [3, 4]
    assert table.live() == table.files()


def test_a_checkpoint_of_many_files_can_be_read_again(table) -> None:
    table.publish()
    names = [f"{number:016x}_20260101000000000.parquet" for number in range(100, 20_100)]
    files = DataFiles.of([DataFile(name, (), 1, 10, 1000, "g") for name in names])
    with Transaction.begin(table.timeline, Action.COMMIT, Operation.APPEND) as transaction:
        transaction.commit(Change(files))
    for number in range(2, 32):
        table.append()
        table.publish()
        # The first one comes at once, the next one after a commit for each 1,000 files.
        assert json.loads(table.store.read(f"{FOLDER}/_last_checkpoint"))["version"] == (2 if number < 22 else 22)
    assert table.live() == table.files()


def test_a_withdrawal_that_dies_leaves_no_readable_table_and_is_completed(tmp_path) -> None:
    for lives in range(20):
        table = DeltaFolder(LocalStore(tmp_path / f"{lives}"))
        for _ in range(12):
            table.publish()
            table.append()
        dying = DyingStore(tmp_path / f"{lives}", lives, after=False)
        try:
            withdraw(dying, TABLE)
            break
        except Killed:
            pass
        if lives > 1:
            # The first commit is gone, and so is every checkpoint before any later commit.
            assert not table.store.exists(f"{FOLDER}/_last_checkpoint")
            assert not table.store.exists(commit_path(0))
        withdraw(table.store, TABLE)
        assert not table.store.list(FOLDER)
        table.publish()
        assert table.live() == table.files()
    assert not table.store.list(FOLDER)


def test_a_withdrawal_that_dies_is_known_and_a_publisher_begins_again(tmp_path) -> None:
    for lives in range(1, 20):
        table = DeltaFolder(LocalStore(tmp_path / f"{lives}"))
        for _ in range(12):
            table.append()
            table.publish()
        with suppress(Killed):
            withdraw(DyingStore(tmp_path / f"{lives}", lives, after=False), TABLE)
        # First the hint goes and what is before the checkpoint. Until then readers see the newest version.
        gone = not table.store.exists(f"{FOLDER}/{10:020d}.checkpoint.parquet")
        assert (table.published() is None) == gone == (lives > 11)
        newest = table.timeline.snapshot().version
        assert bool(list(what_lags(table.store, TABLE, PublishingConfig(("delta",)), newest))) == gone
        table.publish()
        assert table.published().version == newest
        assert table.live() == table.files()
        assert table.store.exists(commit_path(0)) == (gone or lives == 1)


def test_a_log_that_other_publishers_shorten_meanwhile_is_complete(table, monkeypatch) -> None:
    for _ in range(12):
        table.append()
        table.publish()
    listed = table.store.list(FOLDER)
    table.store.delete([commit_path(number) for number in range(10)])
    before, torn = table.published(), [each for each in listed if "0003.json" not in each.path]
    torn = [each for each in torn if "checkpoint" not in each.path]
    lists, list_files = iter([torn]), table.store.list
    monkeypatch.setattr(table.store, "list", lambda *given, **how: next(lists, None) or list_files(*given, **how))
    assert table.published() == before


@pytest.mark.parametrize(
    "first", [b'{"protocol":{"minReaderVersion":1}}', b'{"commitInfo":{"operation":"WRITE"}}', b"{"]
)
def test_a_withdrawal_never_touches_the_log_of_other_software(table, first) -> None:
    table.store.put(commit_path(0), first + b'\n{"metaData":{"id":"x"}}\n')
    table.store.put(f"{FOLDER}/_last_checkpoint", b"{}")
    before = table.published_bytes()
    withdraw(table.store, TABLE)
    assert table.published_bytes() == before


@pytest.mark.parametrize(
    "content", [b"", b"\xff", b"[]", b"{}", b"[" * 100_000, b'{"version":1e999}', b'{"version":0,"tags":"x"}']
)
def test_a_damaged_hint_at_the_checkpoint_is_replaced_with_a_newer_one(table, content) -> None:
    for _ in range(12):
        table.append()
        table.publish()
    table.store.put(f"{FOLDER}/_last_checkpoint", content)
    table.append()
    table.publish()
    assert json.loads(table.store.read(f"{FOLDER}/_last_checkpoint"))["version"] == 12
    assert table.live() == table.files()


def test_a_damaged_checkpoint_is_named(table) -> None:
    table.publish()
    table.store.put(f"{FOLDER}/{0:020d}.checkpoint.parquet", b"PAR1")
    with pytest.raises(CorruptError, match="is not a Delta checkpoint"):
        delta_log._replayed(table.store, 0)


def test_a_checkpoint_that_was_cut_is_told_and_the_next_publisher_replaces_it(table) -> None:
    for _ in range(12):
        table.append()
        table.publish()
    newest, path = table.timeline.snapshot().version, f"{FOLDER}/{10:020d}.checkpoint.parquet"
    delta, whole = PublishingConfig(("delta",)), table.store.read(path)
    assert list(what_lags(table.store, TABLE, delta, newest)) == []
    for commits in (0, 1):
        table.store.put(path, whole[: len(whole) // 2])
        (told,) = what_lags(table.store, TABLE, delta, newest)
        assert "has a checkpoint of another size than was written; publish again" in told
        for _ in range(commits):
            table.append()
        table.publish()
        newest += commits
        assert list(what_lags(table.store, TABLE, delta, newest)) == []
        number = json.loads(table.store.read(f"{FOLDER}/_last_checkpoint"))["version"]
        assert number == table.published().number == newest - 1
        assert table.live() == table.files()
        path = f"{FOLDER}/{number:020d}.checkpoint.parquet"
        whole = table.store.read(path)


def test_a_checkpoint_written_anew_is_that_of_the_log(tmp_path) -> None:
    def rows(table: DeltaFolder, number: int) -> list[dict[str, Any]]:
        content = table.store.read(f"{FOLDER}/{number:020d}.checkpoint.parquet")
        return pq.read_table(io.BytesIO(content)).to_pylist()

    table = DeltaFolder(LocalStore(tmp_path / "t"))
    for _ in range(19):
        table.append()
        table.publish()
    table.store.put(f"{FOLDER}/{10:020d}.checkpoint.parquet", b"PAR1")
    table.append()
    table.store.put(f"{FOLDER}/_last_checkpoint", b"")
    table.publish()
    found = rows(table, 19)
    assert {each["add"]["path"] for each in found if each["add"]} == table.files()
    (protocol_,) = (each["protocol"] for each in found if each["protocol"])
    (metadata,) = (each["metaData"] for each in found if each["metaData"])
    (transaction,) = (each["txn"] for each in found if each["txn"])
    assert protocol_["writerFeatures"] == ["zlayoutManaged"]
    assert metadata["schemaString"] == delta_schema(SCHEMA)
    assert transaction["version"] == 20


@pytest.mark.parametrize("kept", [slice(-20), slice(3), slice(0)])
def test_a_newest_commit_that_was_cut_is_named(table, kept: slice) -> None:
    table.publish()
    table.store.put(commit_path(0), table.store.read(commit_path(0))[kept])
    with pytest.raises(CorruptError, match=r"ends within a line; switch publishing off .* and on again"):
        table.publish()
    (told,) = what_lags(table.store, TABLE, PublishingConfig(("delta",)), 0)
    assert "ends within a line" in told


def schema(kind: Any, **metadata: Any) -> str:
    field = {"name": "c", "type": kind, "nullable": False, "metadata": metadata}
    return json.dumps({"type": "struct", "fields": [field]})


@pytest.mark.parametrize(
    "kind",
    [
        *(
            "boolean",
            "byte",
            "short",
            "integer",
            "long",
            "float",
            "double",
            "decimal(38,18)",
            "string",
            "binary",
            "date",
        ),
        *("timestamp", "timestamp_ntz"),
        {"type": "array", "elementType": "long", "containsNull": True},
        {"type": "map", "keyType": "string", "valueType": "date", "valueContainsNull": True},
        {"type": "struct", "fields": [{"name": "x", "type": "long", "nullable": True, "metadata": {}}]},
    ],
)
def test_types_that_delta_has_stay_as_they_are(kind: Any) -> None:
    assert problems_of(["delta"], schema(kind), ()) == []
    (field,) = json.loads(delta_schema(schema(kind)))["fields"]
    assert field == {"name": "c", "type": kind, "nullable": True, "metadata": {}}


def test_only_what_delta_understands_is_kept_of_metadata() -> None:
    text = schema("varchar(5)", comment="why", **{"__CHAR_VARCHAR_TYPE_STRING": "varchar(5)", "delta.invariants": "x"})
    (field,) = json.loads(delta_schema(text))["fields"]
    assert field["type"] == "string"
    assert field["metadata"] == {"comment": "why", "__CHAR_VARCHAR_TYPE_STRING": "varchar(5)"}


@pytest.mark.parametrize(
    ("text", "partition_by", "told"),
    [
        (schema("variant"), (), "column 'c' has type variant"),
        (schema("interval day to second"), (), "column 'c' has type interval day to second"),
        (schema("time(6)"), (), "column 'c' has type time(6)"),
        (schema("void"), (), "column 'c' has type void"),
        (schema({"type": "array", "elementType": "time(6)", "containsNull": True}), (), "column 'c' has type time(6)"),
        (schema({"type": "udt", "class": "x"}), (), "column 'c' has type udt"),
        (
            schema("timestamp"),
            ("c",),
            "partition column 'c' has type timestamp: its folder names are in the session's time zone",
        ),
        (schema("binary"), ("c",), "partition column 'c' has type binary: its folder names are not text"),
        (schema("long", EXISTS_DEFAULT="5"), (), "column 'c' has a default"),
        (schema("string", __COLLATIONS={"c": "icu.UNICODE_CI"}), (), "column 'c' has a collation"),
    ],
)
def test_what_delta_cannot_have_is_named(text: str, partition_by: tuple[str, ...], told: str) -> None:
    (problem,) = problems_of(["delta"], text, partition_by)
    assert told in problem


@pytest.mark.parametrize("format_", ["delta", "iceberg"])
@pytest.mark.parametrize(
    ("metadata", "told"),
    [
        ({"__COLLATIONS": {"f": "UTF8_LCASE"}}, "'c.f' has a collation"),
        ({"EXISTS_DEFAULT": "'x'"}, "'c.f' has a default"),
    ],
)
def test_collations_and_defaults_of_fields_are_named_too(format_: str, metadata: Any, told: str) -> None:
    field = {"name": "f", "type": "string", "nullable": True, "metadata": metadata}
    struct = {"type": "struct", "fields": [field]}
    for kind in (
        struct,
        {"type": "array", "elementType": struct, "containsNull": True},
        {"type": "map", "keyType": "long", "valueType": struct, "valueContainsNull": True},
        {"type": "map", "keyType": struct, "valueType": "long", "valueContainsNull": True},
    ):
        (problem,) = problems_of([format_], schema(kind), ())
        assert told in problem


def test_a_time_without_zone_needs_a_feature_of_readers_and_nothing_else_does() -> None:
    plain = protocol(schema("timestamp"))
    assert plain == {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["zlayoutManaged"]}
    nested = {"type": "array", "elementType": "timestamp_ntz", "containsNull": True}
    assert protocol(schema(nested)) == {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["timestampNtz"],
        "writerFeatures": ["timestampNtz", "zlayoutManaged"],
    }
