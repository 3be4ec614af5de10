"""Where a table is written: in its own folder, or beside one that it cannot take over."""

from types import SimpleNamespace

import pytest

from dbt.adapters.zlayout.errors import NewerFormatError
from dbt.adapters.zlayout.spark.catalog.session_catalog import TableName
from dbt.adapters.zlayout.spark.write.table_place import place_for_writing
from dbt.adapters.zlayout.store.local import LocalStore
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles
from dbt.adapters.zlayout.timeline.files.naming import TABLE_FILE, log_path
from dbt.adapters.zlayout.timeline.files.table_file import (
    ManagementLevel,
    TableFile,
    create_table_file,
    read_table_file,
)
from dbt.adapters.zlayout.timeline.timeline import Timeline
from dbt.adapters.zlayout.timeline.transactions.change import Change
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction

NAME = TableName("s", "t")


@pytest.fixture
def built(tmp_path):
    """A table that has a version, its entry in the catalog, and the catalog."""
    store = LocalStore(tmp_path / "t")
    table_file = TableFile.new(ManagementLevel.MANAGED, str(NAME), 1)
    create_table_file(store, table_file)
    with Transaction.begin(Timeline(store), Action.COMMIT, Operation.OVERWRITE) as transaction:
        transaction.commit(Change(DataFiles.empty(), schema_json='{"type":"struct","fields":[]}'))
    location = f"file://{tmp_path}/t"
    entry = SimpleNamespace(table_id=table_file.table_id, location=location)
    catalog = SimpleNamespace(schema_location=lambda _: f"file://{tmp_path}", qualified=lambda path: path)
    catalog.entries_of = lambda _: []
    return store, entry, catalog


def test_a_table_stays_where_it_is(built) -> None:
    _, entry, catalog = built
    place = place_for_writing(catalog, NAME, entry, None)
    assert (place.location, place.table_file.table_id, place.set_aside) == (entry.location, entry.table_id, None)


def test_a_folder_of_that_name_is_taken_unless_the_catalog_knows_it_by_another_name(built) -> None:
    store, entry, catalog = built
    assert place_for_writing(catalog, NAME, None, None).location == entry.location
    renamed = SimpleNamespace(name=TableName("s", "renamed"), kind="EXTERNAL", view_text=None, **vars(entry))
    catalog.entries_of = lambda table_id: [renamed] if table_id == entry.table_id else []
    place = place_for_writing(catalog, NAME, None, None)
    assert place.location.startswith(f"{entry.location}__")
    assert read_table_file(store).name == "s.renamed"


@pytest.mark.parametrize("damaged", [TABLE_FILE, log_path(0)])
@pytest.mark.parametrize("in_catalog", [True, False])
def test_a_table_with_damaged_metadata_is_rebuilt_beside_it(built, damaged, in_catalog) -> None:
    store, entry, catalog = built
    store.put(damaged, b"{")
    before = store.list("", recursive=True)
    place = place_for_writing(catalog, NAME, entry if in_catalog else None, None)
    assert place.location.startswith(f"{entry.location}__")
    assert place.table_file.table_id != entry.table_id
    assert damaged in str(place.set_aside)
    assert store.list("", recursive=True) == before


def test_a_table_of_a_newer_release_is_not_rebuilt(built) -> None:
    store, entry, catalog = built
    store.put(log_path(0), store.read(log_path(0)).replace(b'"overwrite"', b'"vacuum"'))
    with pytest.raises(NewerFormatError, match="unknown operation 'vacuum'"):
        place_for_writing(catalog, NAME, entry, None)
