"""Paths in the metadata of a table: what leads out of its folder, or to its metadata, is neither read nor deleted."""

from __future__ import annotations

import json

import pytest

from dbt.adapters.zlayout.errors import CorruptError, StoreError
from dbt.adapters.zlayout.layout.cluster_plan import scheduled_groups
from dbt.adapters.zlayout.layout.compaction_plan import groups_of, operations_of
from dbt.adapters.zlayout.timeline.files.data_files import DataFile, DataFiles
from dbt.adapters.zlayout.timeline.files.naming import TABLE_FILE, log_path, may_be_cleaned
from dbt.adapters.zlayout.timeline.log.snapshot import Snapshot, checkpoint_bytes, snapshot_from_checkpoint
from dbt.adapters.zlayout.timeline.retention.cleaning import clean

HOUR_MS = 3_600_000
LEADS_OUT = ("../../x", "/etc/passwd", "a//b", "./a", "k=1/../../a", "..", "a/", "", "a\x00b")
METADATA = (TABLE_FILE, log_path(0), "_spark_metadata/0.compact", ".zlayout", "_spark_metadata")


def _edit(table, version, **fields):
    path = log_path(version)
    content = json.loads(table.store.read(path))
    for name, value in fields.items():
        content[name] = value(content[name]) if callable(value) else value
    table.store.put(path, json.dumps(content).encode())
    return path


@pytest.mark.parametrize("path", [*LEADS_OUT, *METADATA, 5, None])
@pytest.mark.parametrize("field", ["removes", "adds"])
def test_an_entry_that_names_a_file_elsewhere_is_damaged_and_nothing_is_deleted(table, field, path) -> None:
    table.overwrite()
    table.overwrite()
    changed = [path] if field == "removes" else lambda files: {**files, "path": [path]}
    entry = _edit(table, 1, **{field: changed})
    before = table.store.list("", recursive=True)
    with pytest.raises(CorruptError, match=entry):
        clean(table.timeline(), 1, 0, table.now_ms + HOUR_MS)
    with pytest.raises(CorruptError, match=entry):
        table.timeline().snapshot()
    assert table.store.list("", recursive=True) == before


@pytest.mark.parametrize(
    "path", ["../curve/x.arrow", ".zlayout/curve/../table.json", ".zlayout/index/x", "x.arrow", ""]
)
def test_a_curve_is_only_in_the_folder_of_curves(table, path) -> None:
    table.overwrite()
    entry = _edit(table, 0, curve=path)
    with pytest.raises(CorruptError, match=entry):
        table.timeline().snapshot()


@pytest.mark.parametrize("slices", [["/x"], [".zlayout/index/../table.json"], [TABLE_FILE], [5], [None], ["x.parquet"]])
def test_an_index_is_only_in_the_folder_of_the_index(table, slices) -> None:
    table.overwrite()
    entry = _edit(table, 0, index={"files": slices})
    with pytest.raises(CorruptError, match=entry):
        table.timeline().snapshot()


@pytest.mark.parametrize("path", [*LEADS_OUT, *METADATA])
def test_a_checkpoint_that_names_a_file_elsewhere_is_none(table, path) -> None:
    table.overwrite()
    state = table.timeline().snapshot().state()
    wrong = Snapshot(files=DataFiles.of([DataFile(path, (), 1, 1, 1, "g")]), **state)
    with pytest.raises(CorruptError, match=r"checkpoint\.parquet"):
        snapshot_from_checkpoint(checkpoint_bytes(wrong), "checkpoint.parquet")


@pytest.mark.parametrize("path", ["a", "k=1/a", "k=../a", "...", "k=%2E%2E/a", ".zlayout_like/a", "_k=1/a", "ü b/c:d"])
def test_names_of_any_kind_below_the_folder_are_fine(table, path) -> None:
    table.overwrite()
    _edit(table, 0, adds=lambda files: {**files, "path": [path]}, removes=[path])
    assert table.timeline().snapshot().files["path"].to_pylist() == [path]


@pytest.mark.parametrize("wrong", [*LEADS_OUT, TABLE_FILE, 5, None, ["a"]])
def test_a_plan_that_names_a_file_elsewhere_is_damaged(wrong) -> None:
    operation = {"partition": [], "group": "g", "base": "b", "logs": ["l"], "logs_only": False, "size_bytes": 1}
    group = {"partition": "", "paths": ["a"], "rows": 1, "size_bytes": 1, "reason": "all", "files_after": 1, "saves": 0}
    assert len(operations_of({"operations": [operation]})) == len(scheduled_groups([group])) == 1
    in_a_file = [{"logs": [wrong]}, {"deletes": [wrong]}, *([] if wrong is None else [{"base": wrong}])]
    named = [{**operation, **each, "logs_only": only} for each in in_a_file for only in (False, True)]
    for damaged in (*named, {"group": wrong}, wrong):
        assert operations_of({"operations": [damaged]}) == []
        assert groups_of([{"operations": [damaged]}]) == set()
    for damaged in ({**group, "paths": [wrong]}, {"paths": wrong}, wrong):
        assert scheduled_groups([damaged]) == ()


def test_a_plan_with_an_empty_group_is_damaged() -> None:
    operation = {"partition": [], "group": "g", "base": "b", "logs": [], "logs_only": False, "size_bytes": 1}
    assert operations_of({"operations": [{**operation, "logs": ["l"]}, operation]}) == []
    group = {"partition": "", "paths": ["a"], "rows": 1, "size_bytes": 1, "reason": "all", "files_after": 1, "saves": 0}
    assert scheduled_groups([group, {**group, "paths": []}]) == ()


def test_a_clean_takes_data_index_curves_and_checkpoints_and_nothing_else() -> None:
    good = ["a.parquet", "k=1/a", ".zlayout/index/files/x", ".zlayout/curve/x", ".zlayout/staging/x"]
    assert may_be_cleaned([*good, *LEADS_OUT, *METADATA, ".zlayout/index", ".zlayout/curve/../table.json"]) == good


@pytest.mark.parametrize("path", LEADS_OUT)
def test_a_store_deletes_nothing_outside_its_root(table, path) -> None:
    outside = table.store.local_path("").parent.parent / "x"
    outside.write_text("somebody else's")
    with pytest.raises(StoreError, match="is not the path of a file below"):
        table.store.delete([path])
    assert outside.exists()
