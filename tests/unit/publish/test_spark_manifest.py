"""Spark's manifest: its bytes, its order, and that it is whatever the log says."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from dbt.adapters.zlayout.errors import CorruptError
from dbt.adapters.zlayout.publish.spark_manifest import (
    _steps_down,
    catch_up,
    check_log_not_lost,
    is_published,
    listed_paths,
    manifest_path,
    publish,
    published_version,
    retire,
)
from dbt.adapters.zlayout.spark.index.verify import stale_files
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot
from dbt.adapters.zlayout.store.local import LocalStore
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.files.data_files import DataFile, DataFiles
from dbt.adapters.zlayout.timeline.files.naming import log_path
from dbt.adapters.zlayout.timeline.files.table_file import ManagementLevel, TableFile
from dbt.adapters.zlayout.timeline.timeline import Timeline
from dbt.adapters.zlayout.timeline.transactions.change import Change
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction

PATHS = ["a.parquet", "k=a%2Fb/é x#.parquet", 'k="\\/z.parquet', "k=line\nbreak/z.parquet"]


@pytest.fixture
def store(tmp_path) -> LocalStore:
    return LocalStore(tmp_path / "t 1")


def _overwrite(store: LocalStore, paths: list[str]) -> Timeline:
    timeline = Timeline(store)
    files = DataFiles.of([DataFile(path, (), 1, 10 + i, 1000 + i, "g") for i, path in enumerate(paths)])
    with Transaction.begin(timeline, Action.REPLACECOMMIT, Operation.OVERWRITE) as transaction:
        transaction.commit(Change(files, schema_json='{"type":"struct","fields":[]}'))
    return timeline


def _names(store: LocalStore) -> list[str]:
    return [file.path.rpartition("/")[2] for file in store.list("_spark_metadata")]


@pytest.mark.parametrize("paths", [PATHS, PATHS[:3], PATHS[:1]])
def test_a_manifest_has_one_object_a_file(store, paths) -> None:
    timeline = _overwrite(store, paths)
    publish(store, timeline.snapshot())
    head, *lines = store.read(manifest_path(0)).decode().split("\n")
    assert head == "v1"
    rows = [json.loads(line) for line in lines]
    escaped = {
        PATHS[0]: "a.parquet",
        PATHS[1]: "k=a%252Fb/%C3%A9%20x%23.parquet",
        PATHS[2]: "k=%22%5C/z.parquet",
        PATHS[3]: "k=line%0Abreak/z.parquet",
    }
    assert rows == [
        {
            "path": f"{store.root_uri}/{escaped[path]}",
            "size": 10 + i,
            "isDir": False,
            "modificationTime": 1000 + i,
            "blockReplication": 1,
            "blockSize": 134217728,
            "action": "add",
        }
        for i, path in enumerate(paths)
    ]


def test_a_table_without_files_has_a_manifest_of_one_line(store) -> None:
    publish(store, _overwrite(store, []).snapshot())
    assert store.read(manifest_path(0)) == b"v1"


def test_publishing_again_changes_nothing(store) -> None:
    timeline = _overwrite(store, PATHS)
    publish(store, timeline.snapshot())
    before = store.stat(manifest_path(0))
    publish(store, timeline.snapshot())
    assert store.stat(manifest_path(0)) == before


def test_what_is_behind_is_published_version_by_version(store) -> None:
    assert catch_up(store, Timeline(store)) is None
    timeline = _overwrite(store, PATHS[:1])
    assert catch_up(store, timeline) == 0
    for _ in range(3):
        timeline = _overwrite(store, PATHS[:2])
    assert published_version(store) == 0
    assert catch_up(store, timeline) == 3
    assert _names(store) == ["0.compact", "1.compact", "2.compact", "3.compact"]
    assert published_version(store) == 3


def test_old_manifests_go_and_the_rest_has_no_gap(store) -> None:
    for _ in range(12):
        catch_up(store, _overwrite(store, PATHS[:1]))
        retire(store)
    assert sorted(_names(store)) == ["10.compact", "11.compact", "9.compact"]


def test_a_table_that_was_never_published_begins_with_its_newest_version(store) -> None:
    for _ in range(4):
        timeline = _overwrite(store, PATHS[:1])
    catch_up(store, timeline)
    assert _names(store) == ["3.compact"]


def test_after_the_newest_entry_is_lost_plain_readers_go_back_with_the_log_and_a_new_one_of_its_number_is_shown(
    store,
) -> None:
    for count in (1, 2, 3):
        catch_up(store, _overwrite(store, PATHS[:count]))
    store.delete([log_path(2)])
    lost = Timeline(store)
    assert (lost.latest_version(), published_version(store)) == (1, 2)
    assert not is_published(store, lost.snapshot())
    assert catch_up(store, lost) == 1
    assert is_published(store, lost.snapshot())
    store.put(manifest_path(2), b"v1")  # as if nobody had looked in between
    again = _overwrite(store, PATHS)
    assert again.latest_version() == 2
    catch_up(store, again)
    assert is_published(store, again.snapshot())


def test_a_manifest_that_was_edited_is_noticed_and_written_anew(store) -> None:
    timeline = _overwrite(store, PATHS)
    catch_up(store, timeline)
    assert is_published(store, timeline.snapshot())
    whole = store.read(manifest_path(0))
    store.put(manifest_path(0), b"\n".join(whole.split(b"\n")[:-1]))
    assert not is_published(store, timeline.snapshot())
    catch_up(store, timeline)
    assert store.read(manifest_path(0)) == whole


def test_the_check_of_freshness_names_a_manifest_that_lists_other_files(store) -> None:
    table_file = TableFile.new(ManagementLevel.MANAGED, "s.t", 1)
    timeline = _overwrite(store, PATHS[:1])
    catch_up(store, timeline)
    opened = TableSnapshot.at(timeline, table_file, store.root_uri, timeline.snapshot(), "UTC")
    before = stale_files(opened)
    store.put(manifest_path(0), b"v1")
    found = stale_files(opened).to_pylist()
    assert [each for each in found if each not in before.to_pylist()] == [
        {
            "path": manifest_path(0),
            "reason": "Spark's manifest is missing, or lists other files than the newest version",
        }
    ]


def test_a_log_that_begins_anew_takes_the_manifest_down_in_steps_that_spark_can_read(store, monkeypatch) -> None:
    timeline = _overwrite(store, PATHS)
    for version in (1233, 1234, 1235):
        store.put(manifest_path(version), b"v1")
    seen, put, delete = [], store.put, store.delete

    def _look() -> None:
        versions = sorted((int(name.partition(".")[0]) for name in _names(store)), reverse=True)
        seen.append(len(versions))
        # As Spark does: the newest is read as compacted only where the interval divides its number plus one.
        assert len(versions) == 1 or (versions[0] + 1) % (versions[0] - versions[1]) == 0

    monkeypatch.setattr(store, "put", lambda *args: (put(*args), _look()))
    monkeypatch.setattr(store, "delete", lambda paths: [(delete([path]), _look()) for path in paths])
    assert catch_up(store, timeline) == 0
    assert _names(store) == ["0.compact"]
    assert len(seen) < 50


def test_the_files_that_a_manifest_shows_are_read_back(store) -> None:
    assert listed_paths(store) is None
    catch_up(store, _overwrite(store, PATHS))
    assert listed_paths(store) == (0, PATHS)
    catch_up(store, _overwrite(store, []))
    assert listed_paths(store) == (1, [])


def test_a_lost_identity_file_is_damage_only_where_a_manifest_says_that_the_table_was_managed(store) -> None:
    timeline = _overwrite(store, PATHS)
    check_log_not_lost(store)  # as in a folder of other tools that was indexed
    catch_up(store, timeline)
    with pytest.raises(CorruptError, match=r"table\.json is gone, but the log is there\. Restore the file, or run"):
        check_log_not_lost(store)


def test_the_manifest_of_a_streaming_query_is_not_taken_for_ours(store) -> None:
    catch_up(store, _overwrite(store, PATHS))
    store.put("_spark_metadata/1", b"v1")
    assert listed_paths(store) is None


@pytest.mark.parametrize(
    "content",
    [
        b"v2",
        b"",
        b"\xff",
        b"v1\n{",
        b'v1\n{"size": 3}',
        b"v1\n[]",
        b'v1\n{"path": 3}',
        b'v1\n{"path": "file:///elsewhere/a"}',
    ],
)
def test_a_manifest_that_cannot_be_understood_is_named(store, content) -> None:
    store.put(manifest_path(3), content)
    with pytest.raises(CorruptError, match=r"3\.compact"):
        listed_paths(store)


@pytest.mark.parametrize(("top", "bottom"), [(1, 0), (7, 0), (1999, 1000), (100_000, 60_000), (9_972, 9_971)])
def test_the_way_down_is_short_wherever_it_ends(top, bottom) -> None:
    steps = list(_steps_down(top, bottom))
    assert steps[-1] == bottom
    assert len(steps) < 40
    assert all((above + 1) % (above - below) == 0 for above, below in pairwise([top, *steps]))
