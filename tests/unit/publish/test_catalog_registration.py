"""The entry of a published table in pyiceberg's SQL catalog: it follows the table, and never goes back."""

from __future__ import annotations

import shutil
import socket
import sqlite3
import subprocess
import sys
import threading
import time

import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from dbt.adapters.zlayout.config.table_config import PublishingConfig
from dbt.adapters.zlayout.publish import catalog_registration
from dbt.adapters.zlayout.publish.catalog_registration import forget_registrations, noted_registrations
from dbt.adapters.zlayout.publish.formats import publish_formats, what_lags
from dbt.adapters.zlayout.publish.iceberg_metadata import FOLDER
from dbt.adapters.zlayout.store.local import LocalStore
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.files.data_files import DataFile, DataFiles
from dbt.adapters.zlayout.timeline.files.table_file import ManagementLevel, TableFile, create_table_file, put_name
from dbt.adapters.zlayout.timeline.timeline import Timeline
from dbt.adapters.zlayout.timeline.transactions.change import Change
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction

TABLE = "0a0e4a52-0000-4000-8000-000000000000"
SCHEMA = '{"type":"struct","fields":[{"name":"k","type":"long","nullable":true,"metadata":{}}]}'
LAKE = PublishingConfig(("iceberg",), "lake")


class Table:
    """A table without rows, published in catalogs."""

    def __init__(self, store: LocalStore) -> None:
        self.store, self.timeline = store, Timeline(store)

    @classmethod
    def new(cls, store: LocalStore, name: str = "Shop.Orders", publishing: PublishingConfig = LAKE) -> Table:
        create_table_file(store, TableFile(TABLE, ManagementLevel.MANAGED, name, 0))
        table = cls(store)
        table.append(Action.REPLACECOMMIT, Operation.OVERWRITE, schema_json=SCHEMA, layout=publishing.stored())
        return table

    def append(self, action: Action = Action.COMMIT, operation: Operation = Operation.APPEND, **change) -> None:
        with Transaction.begin(self.timeline, action, operation) as transaction:
            path = f"{time.time_ns():016x}_20260101000000000.parquet"
            added = DataFiles.of([DataFile(path, (), 1, 10, 1000, "g")])
            transaction.commit(Change(added, **change))

    def publish(self, publishing: PublishingConfig = LAKE) -> list[str]:
        """Publish, and return the failures."""
        failed = publish_formats(self.store, self.timeline, TABLE, publishing, 24)
        return [f"{name}: {error}" for name, error in failed]

    def lags(self, publishing: PublishingConfig = LAKE) -> list[str]:
        return list(what_lags(self.store, TABLE, publishing, self.timeline.snapshot().version))

    def files(self) -> set[str]:
        return set(self.timeline.snapshot().files["path"].to_pylist())


@pytest.fixture
def lakes(tmp_path, monkeypatch):
    """A configuration with the catalogs 'lake' and 'other'; returns how to change it."""
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))

    def configure(**uris: str) -> None:
        lines = ["catalog:"]
        for name, uri in uris.items():
            lines += [f"  {name}:", f"    uri: {uri}", f"    warehouse: file://{tmp_path}/{name}"]
        (tmp_path / ".pyiceberg.yaml").write_text("\n".join(lines))

    configure.both = {name: f"sqlite:///{tmp_path}/{name}.db" for name in ("lake", "other")}
    configure(**configure.both)
    return configure


@pytest.fixture
def table(tmp_path, lakes) -> Table:
    return Table.new(LocalStore(tmp_path / "t"))


def entry(lakes, name="lake", identifier="shop.orders"):
    """The entry of a catalog as its readers load it, None if there is none."""
    with load_catalog(name, uri=lakes.both[name]) as catalog:
        try:
            return catalog.load_table(identifier)
        except NoSuchTableError:
            return None


def version_in(lakes, name="lake", identifier="shop.orders") -> int | None:
    found = entry(lakes, name, identifier)
    return None if found is None else int(found.properties["zlayout.version"])


def test_the_entry_leads_to_the_newest_version_after_each_publication(table, lakes) -> None:
    for version in range(4):
        if version:
            table.append()
            assert table.lags() == [
                f"readers of iceberg see version {version - 1} instead of version {version}",
                f"readers of shop.orders in catalog 'lake' see version {version - 1} instead of version {version}",
            ]
        assert table.publish() == []
        found = entry(lakes)
        assert found.metadata_location == f"{table.store.root_uri}/metadata/v{version + 1}.metadata.json"
        assert {task.file.file_path.rpartition("/")[2] for task in found.scan().plan_files()} == table.files()
        assert table.lags() == []
    # The catalog has written nothing.
    assert not [each.path for each in table.store.list(FOLDER) if "-" in each.path and each.path.endswith(".json")]


def test_an_entry_that_is_up_to_date_is_not_touched(table, lakes, tmp_path) -> None:
    table.publish()
    with sqlite3.connect(tmp_path / "lake.db") as database:
        database.execute("create trigger t before update on iceberg_tables begin select raise(abort, 'touched'); end")
    database.close()
    assert table.publish() == []
    table.append()
    assert "touched" in table.publish()[0]


def test_of_two_publishers_none_puts_an_older_version_in_place_of_a_newer_one(table, lakes, tmp_path) -> None:
    table.publish()
    with sqlite3.connect(tmp_path / "lake.db") as database:
        database.execute("create table history (location text)")
        database.execute(
            "create trigger t after update on iceberg_tables begin "
            "insert into history values (new.metadata_location); end"
        )
    database.close()
    failures = []

    def publisher() -> None:
        mine = Table(LocalStore(tmp_path / "t"))
        for _ in range(6):
            mine.append()
            failures.extend(mine.publish())

    threads = [threading.Thread(target=publisher) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    with sqlite3.connect(tmp_path / "lake.db") as database:
        seen = [row[0] for row in database.execute("select location from history order by rowid")]
    database.close()
    numbers = [int(each.rpartition("/v")[2].partition(".")[0]) for each in seen]
    assert numbers == sorted(set(numbers))
    assert not failures
    assert version_in(lakes) == 12


def test_a_publisher_that_was_overtaken_between_reading_and_writing_the_entry_looks_again(
    table, lakes, tmp_path, monkeypatch
) -> None:
    table.publish()
    table.append()
    from dbt.adapters.zlayout.publish.iceberg_catalog import CatalogEntry

    slow, overtaken = CatalogEntry._swap, []

    def swap(self, catalog) -> None:
        if not overtaken:
            overtaken.append(True)
            other = Table(LocalStore(tmp_path / "t"))
            other.append()
            assert other.publish() == []
        slow(self, catalog)

    monkeypatch.setattr(CatalogEntry, "_swap", swap)
    assert table.publish() == []
    assert overtaken
    assert version_in(lakes) == 2


def test_the_entry_of_another_table_is_left_alone(table, lakes) -> None:
    with load_catalog("lake", uri=lakes.both["lake"], warehouse=f"file://{table.store.root_uri[7:]}_other") as catalog:
        catalog.create_namespace("shop")
        foreign = catalog.create_table("shop.orders", Schema(NestedField(1, "x", LongType()))).metadata_location
    for publishing in (LAKE, PublishingConfig(())):
        failures = table.publish(publishing)
        assert entry(lakes).metadata_location == foreign
        if publishing is LAKE:
            [told] = failures
            assert told.startswith("shop.orders in catalog 'lake': the entry is of other software")
            assert "rename or drop it there, or rename this table" in told
            assert table.lags() == [
                f"it is unknown what readers of {told.partition(': ')[0]} see: {told.partition(': ')[2]}"
            ]
        else:
            assert failures == []
            assert not noted_registrations(table.store)


def test_what_is_switched_off_or_renamed_leaves_no_entry(table, lakes) -> None:
    table.publish()
    put_name(table.store, "shop.`new orders`")
    assert table.publish() == []
    assert (version_in(lakes), version_in(lakes, identifier=("shop", "new orders"))) == (None, 0)
    assert table.publish(PublishingConfig(("iceberg",), "other")) == []
    assert version_in(lakes, identifier=("shop", "new orders")) is None
    assert version_in(lakes, "other", ("shop", "new orders")) == 0
    assert table.publish(PublishingConfig(("iceberg",))) == []
    assert version_in(lakes, "other", ("shop", "new orders")) is None
    assert table.store.list(FOLDER)
    table.publish()
    assert version_in(lakes, identifier=("shop", "new orders")) == 0
    assert table.publish(PublishingConfig(())) == []
    assert version_in(lakes, identifier=("shop", "new orders")) is None
    assert table.store.list(FOLDER) == []
    assert not noted_registrations(table.store)


def test_an_entry_that_could_not_be_removed_is_removed_by_the_next_publisher(table, lakes, tmp_path) -> None:
    table.publish()
    lakes(lake=f"sqlite:///{tmp_path}/nowhere/lake.db", other=lakes.both["other"])
    other = PublishingConfig(("iceberg",), "other")
    [told] = table.publish(other)
    assert told.startswith("shop.orders in catalog 'lake': catalog 'lake' failed: OperationalError")
    assert "nowhere" not in told
    assert version_in(lakes, "other") == 0
    assert table.lags(other) == ["shop.orders in catalog 'lake' is not removed yet"]
    lakes(**lakes.both)
    assert table.publish(other) == []
    assert (version_in(lakes), table.lags(other)) == (None, [])


def test_an_entry_whose_metadata_file_is_gone_is_mended(table, lakes) -> None:
    table.publish()
    table.append()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(catalog_registration, "_in_time", lambda *_: (_ for _ in ()).throw(OSError("down")))
        assert table.publish() == ["shop.orders in catalog 'lake': down"]
    table.store.delete([f"{FOLDER}/v1.metadata.json"])
    # To look changes nothing.
    for _ in range(2):
        assert table.lags() == ["readers of shop.orders in catalog 'lake' see no version instead of version 1"]
        with pytest.raises(FileNotFoundError):
            entry(lakes)
    assert table.publish() == []
    assert version_in(lakes) == 1
    # After it was withdrawn while the catalog was down.
    lakes(other=lakes.both["other"])
    assert len(table.publish(PublishingConfig(()))) == 1
    lakes(**lakes.both)
    assert table.publish(PublishingConfig(())) == []
    assert version_in(lakes) is None


def test_a_moved_table_is_followed_and_a_copy_is_not(table, lakes, tmp_path) -> None:
    table.publish()
    shutil.copytree(tmp_path / "t", tmp_path / "copy")
    copy = Table(LocalStore(tmp_path / "copy"))
    copy.store.delete_tree(FOLDER)
    [told] = copy.publish()
    assert "this folder is a copy of that table; give the copy an id of its own with ZTable.register" in told
    assert entry(lakes).location() == table.store.root_uri
    forget_registrations(copy.store)
    assert not noted_registrations(copy.store)
    (tmp_path / "t").rename(tmp_path / "moved")
    moved = Table(LocalStore(tmp_path / "moved"))
    moved.store.delete_tree(FOLDER)
    assert moved.publish() == []
    assert entry(lakes).location() == moved.store.root_uri
    assert moved.publish(PublishingConfig(())) == []
    assert version_in(lakes) is None


def test_an_unknown_catalog_is_told_with_what_pyiceberg_reads(table, lakes) -> None:
    [told] = table.publish(PublishingConfig(("iceberg",), "lakehouse-2"))
    assert "there is no catalog 'lakehouse-2' in pyiceberg's configuration, which has lake, other;" in told
    assert "PYICEBERG_HOME, the home directory or the working directory, and variables such as " in told
    assert "PYICEBERG_CATALOG__LAKEHOUSE_2__URI, whose single '_' becomes '-' in the name" in told
    assert not noted_registrations(table.store)


def test_no_message_has_an_address_or_a_login(table, lakes, tmp_path) -> None:
    lakes(lake="postgresql+psycopg2://me:Secret1@db.example:1/x?password=Secret2")
    [told] = table.publish()
    assert "failed" in told
    lakes(lake="http://me:Secret1@127.0.0.1:9/secret3")
    [unreachable] = table.publish()
    assert "failed" in unreachable
    (tmp_path / ".pyiceberg.yaml").write_text("catalog:\n  lake:\n    token: [Secret4\n")
    [damaged] = table.publish()
    assert "pyiceberg cannot read the first .pyiceberg.yaml" in damaged
    for each in (told, unreachable, damaged, *table.lags()):
        assert not any(secret in each for secret in ("Secret", "secret3", "db.example", "127.0.0.1")), each
    notes = b"".join(table.store.read(each.path) for each in table.store.list(".zlayout", recursive=True))
    assert b"Secret" not in notes


def test_a_catalog_that_does_not_answer_is_told_in_time_and_not_asked_again(table, lakes, monkeypatch) -> None:
    monkeypatch.setattr(catalog_registration, "_PATIENCE_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server:
        lakes(lake=f"http://127.0.0.1:{server.getsockname()[1]}")
        assert table.publish() == ["shop.orders in catalog 'lake': catalog 'lake' has not answered within 0.5 seconds"]
        assert table.publish() == [
            (
                "shop.orders in catalog 'lake': catalog 'lake' has not answered an earlier request yet; check it, then "
                "publish again"
            )
        ]
        hanging = catalog_registration._WAITING["lake"]
        lakes(**lakes.both)
        server.accept()[0].close()
    hanging.join(60)
    assert not hanging.is_alive()
    # The thread that came too late has done what the settings say.
    assert version_in(lakes) == 0
    assert table.publish() == []


def test_without_what_a_catalog_needs_publishing_says_what_to_install(table, lakes, tmp_path) -> None:
    script = f"""
import sys
sys.modules["sqlalchemy"] = None
from dbt.adapters.zlayout.config.table_config import PublishingConfig
from dbt.adapters.zlayout.publish.formats import publish_formats
from dbt.adapters.zlayout.store.local import LocalStore
from dbt.adapters.zlayout.timeline.timeline import Timeline
store = LocalStore({str(tmp_path / "t")!r})
failed = publish_formats(store, Timeline(store), {TABLE!r}, PublishingConfig(("iceberg",), "lake"), 24)
print([f"{{name}}: {{error}}" for name, error in failed])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "pip install 'pyiceberg[sql-postgres]'" in done.stdout
    assert table.store.list(FOLDER)
