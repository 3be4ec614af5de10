"""Log files on the timeline: slices, the groups that clustering leaves together, and plans that wait."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dbt.adapters.zlayout.errors import ConflictError
from dbt.adapters.zlayout.timeline.files.action import Action, Operation, State
from dbt.adapters.zlayout.timeline.files.data_files import DataFile, DataFiles
from dbt.adapters.zlayout.timeline.files.naming import (
    data_file_path,
    deletes_file_instant,
    deletes_file_path,
    group_in_name,
    instants_in_name,
    is_own_name,
    log_file_path,
    parse_data_file_name,
    parse_log_file_name,
)
from dbt.adapters.zlayout.timeline.log.file_slices import (
    base_files,
    groups_with_logs,
    kept_deletes,
    log_files,
    slices_with_logs,
    without_logs,
)
from dbt.adapters.zlayout.timeline.transactions.change import Change
from dbt.adapters.zlayout.timeline.transactions.pending import (
    list_pending,
    list_scheduled,
    list_state_files,
    schedule,
    withdraw_scheduled,
)
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction

T1, T2, T3 = ("20240101000000001", "20240101000000002", "20240101000000003")
GROUP, OTHER = "a" * 16, "b" * 16


def file_at(path, group=GROUP, partition=(), size=10):
    return DataFile(path, partition, 1, size, 5, group)


def test_names_of_logs_carry_group_instant_and_sequence():
    path = log_file_path("p=x", GROUP, T1, 3)
    assert path == f"p=x/{GROUP}_{T1}_0003.log.parquet"
    assert parse_log_file_name(path) == (GROUP, T1, 3)
    assert parse_log_file_name(log_file_path("", GROUP, T1, 12_345)) == (GROUP, T1, 12_345)
    assert instants_in_name(path) == (T1,)
    base = data_file_path("", GROUP, T1)
    assert (parse_data_file_name(path), parse_log_file_name(base)) == (None, None)
    assert (group_in_name(path), group_in_name(base), group_in_name("part-0.parquet")) == (GROUP, GROUP, None)
    assert [is_own_name(each) for each in (path, base, "part-0.parquet")] == [True, True, False]


def test_a_slice_is_one_base_and_its_logs_in_order():
    base = data_file_path("", GROUP, T1)
    logs = [log_file_path("", GROUP, T3, 0), log_file_path("", GROUP, T2, 1), log_file_path("", GROUP, T2, 0)]
    alone = log_file_path("", OTHER, T2, 0)
    files = DataFiles.of(
        [file_at(each) for each in (*logs, base)] + [file_at(alone, OTHER), file_at("plain", "c" * 16)]
    )
    first, second = slices_with_logs(files)
    assert first.paths == (base, logs[2], logs[1], logs[0])
    assert first.log_instants == (T2, T3)
    assert (first.log_bytes, first.size_bytes) == (30, 40)
    assert (second.base, second.paths) == (None, (alone,))
    assert groups_with_logs(files) == {GROUP, OTHER}
    assert without_logs(files)["path"].to_pylist() == ["plain"]
    assert base_files(files)["path"].to_pylist() == [base, "plain"]
    assert len(log_files(files)) == 4
    assert slices_with_logs(base_files(files)) == []
    assert without_logs(base_files(files)) == base_files(files)
    assert groups_with_logs(DataFiles.empty()) == frozenset()


def test_kept_deletes_are_neither_bases_nor_logs_but_go_with_their_slice():
    base, log = data_file_path("", GROUP, T1), log_file_path("", GROUP, T3, 0)
    kept, others = deletes_file_path("", GROUP, T2, 0), deletes_file_path("p=x", OTHER, T2, 3)
    assert (kept, others) == (f"{GROUP}_{T2}_0000.deletes.parquet", f"p=x/{OTHER}_{T2}_0003.deletes.parquet")
    assert [deletes_file_instant(each) for each in (kept, others, log, base)] == [T2, T2, None, None]
    assert (group_in_name(kept), is_own_name(kept), instants_in_name(kept)) == (GROUP, True, (T2,))
    files = DataFiles.of([file_at(each) for each in (kept, log, base)] + [file_at(others, OTHER)])
    (only,) = slices_with_logs(files)
    assert (only.paths, only.log_bytes, only.size_bytes) == ((base, log, kept), 10, 30)
    assert kept_deletes(files)["path"].to_pylist() == [kept, others]
    assert base_files(files)["path"].to_pylist() == [base]
    assert without_logs(files)["path"].to_pylist() == []
    unlogged = DataFiles.of([file_at(kept), file_at(base)])
    assert (slices_with_logs(unlogged), without_logs(unlogged)["path"].to_pylist()) == ([], [base])


def test_a_file_of_others_is_no_log_whatever_it_ends_in():
    files = DataFiles.of([file_at("events.log.parquet"), file_at(f"day=1/x{GROUP}_{T1}_0000.log.parquet")])
    assert (len(log_files(files)), slices_with_logs(files)) == (0, [])
    assert without_logs(files) == files


def test_the_same_group_in_two_partitions_makes_two_slices():
    files = [file_at(log_file_path(f"p={each}", GROUP, T1, 0), partition=(("p", each),)) for each in "yx"]
    assert [each.partition for each in slices_with_logs(DataFiles.of(files, ("p",)))] == [(("p", "x"),), (("p", "y"),)]


def begun(table, operation, action=Action.COMMIT):
    transaction = Transaction.begin(table.timeline(), action, operation)
    # As if nobody had seen it begin.
    table.store.delete([file.path for file in table.store.list(".zlayout/timeline")])
    return transaction


def log_of(table, transaction, group):
    path = log_file_path("", group, transaction.instant, 0)
    table.store.put(path, b"log")
    return DataFiles.of([file_at(path, group)])


@pytest.mark.parametrize("same", [True, False])
def test_a_log_and_a_clustering_of_its_group_do_not_both_land(table, same):
    files = table.overwrite(2).adds
    mine, theirs = files[0], files[0 if same else 1]
    for later in ("log", "clustering"):
        logging = begun(table, Operation.MERGE, Action.DELTACOMMIT)
        clustering = begun(table, Operation.CLUSTERING, Action.REPLACECOMMIT)
        added = Change(log_of(table, logging, mine.group))
        rewritten = Change(table.write(clustering), removes=(theirs.path,))
        pairs = [(clustering, rewritten), (logging, added)]
        (first, change), (second, other) = pairs if later == "log" else reversed(pairs)
        first.commit(change)
        if same:
            with pytest.raises(ConflictError, match="logs to"), second:
                second.commit(other)
        else:
            second.commit(other)
        # Both begin again from the same two files.
        table.overwrite(0)
        with Transaction.begin(table.timeline(), Action.COMMIT, Operation.OVERWRITE) as again:
            again.commit(Change(files, schema_json='{"type":"struct","fields":[]}'))


def test_a_compaction_and_logs_of_its_group_both_land_in_either_order(table):
    (base,) = table.overwrite().adds
    compaction = Transaction.begin(table.timeline(), Action.COMPACTION, Operation.COMPACTION)
    logging = Transaction.begin(table.timeline(), Action.DELTACOMMIT, Operation.MERGE)
    logging.commit(Change(log_of(table, logging, base.group)))
    rival = Transaction.begin(table.timeline(), Action.DELTACOMMIT, Operation.MERGE)
    path = data_file_path("", base.group, compaction.instant)
    table.store.put(path, b"base")
    # It does not give way to the delta commit that is under way.
    compaction.commit(Change(DataFiles.of([file_at(path, base.group)]), removes=(base.path,)))
    rival.commit(Change(log_of(table, rival, base.group)))
    (only,) = slices_with_logs(table.timeline().snapshot().files)
    assert only.base.path == path
    assert len(only.logs) == 2


def test_pending_compactions_are_listed_apart_from_transactions(table):
    table.overwrite()
    timeline = table.timeline()
    first = schedule(timeline, Action.COMPACTION, {"operations": []})
    second = schedule(timeline, Action.COMPACTION, {"operations": [1]})
    assert first.instant < second.instant
    assert first.path == f".zlayout/timeline/{first.instant}.compaction.scheduled"
    assert {file.state for file in list_state_files(table.store)} == {State.SCHEDULED}
    assert list_pending(table.store) == []
    with Transaction.begin(timeline, Action.COMPACTION, Operation.COMPACTION) as running:
        assert running.instant > second.instant
        assert [each.instant for each in list_scheduled(table.store, Action.COMPACTION)] == [
            first.instant,
            second.instant,
        ]
        assert [each.instant for each in list_pending(table.store)] == [running.instant]
    assert [each.content["operations"] for each in list_scheduled(table.store, Action.COMPACTION)] == [[], [1]]
    withdraw_scheduled(table.store, [first])
    assert [each.instant for each in list_scheduled(table.store, Action.COMPACTION)] == [second.instant]


def test_a_clustering_plan_replaces_older_ones_and_a_damaged_one_has_no_content(table):
    table.overwrite()
    timeline = table.timeline()
    first = schedule(timeline, Action.REPLACECOMMIT, {"groups": [1]})
    kept = schedule(timeline, Action.REPLACECOMMIT, {"groups": [2]}, replaces=[first])
    (found,) = list_scheduled(table.store, Action.REPLACECOMMIT)
    assert (found.path, found.content["groups"]) == (kept.path, [2])
    table.store.put(kept.path, b"{")
    assert list_scheduled(table.store, Action.REPLACECOMMIT)[0].content == {}
    table.store.put(f".zlayout/timeline/{T1}.compaction.requested", b"{")
    assert list_scheduled(table.store, Action.COMPACTION) == []


def test_a_plan_that_goes_while_plans_are_listed_is_not_pending(table, monkeypatch):
    table.overwrite()
    gone = schedule(table.timeline(), Action.COMPACTION, {"operations": [1]})
    stays = schedule(table.timeline(), Action.COMPACTION, {"operations": [2]})
    listed = list_state_files(table.store)
    withdraw_scheduled(table.store, [gone])
    monkeypatch.setattr("dbt.adapters.zlayout.timeline.transactions.pending.list_state_files", lambda _: listed)
    assert [each.instant for each in list_scheduled(table.store, Action.COMPACTION)] == [stays.instant]


def test_plans_made_in_one_tick_of_the_clock_get_different_instants(table, monkeypatch):
    table.overwrite()
    one, two = table.timeline(), table.timeline()
    now_ms = table.now_ms
    fixed = [type(one)(table.store, _frozen(each, now_ms)) for each in (one, two)]
    with monkeypatch.context() as unseen:
        unseen.setattr("dbt.adapters.zlayout.timeline.transactions.pending.list_state_files", lambda _: [])
        plans = [schedule(each, Action.COMPACTION, {"operations": [number]}) for number, each in enumerate(fixed)]
    assert plans[0].path != plans[1].path
    assert [each.content["operations"] for each in list_scheduled(table.store, Action.COMPACTION)] == [[0], [1]]


def _frozen(timeline, now_ms):
    return replace(timeline.runtime, now_ms=lambda: now_ms)


def test_plans_of_earlier_releases_are_found_and_withdrawn(table):
    table.overwrite()
    old = f".zlayout/timeline/{T1}.compaction.requested"
    table.store.put(old, b'{"format_version":1,"operations":[7]}')
    new = schedule(table.timeline(), Action.COMPACTION, {"operations": [8]})
    found = list_scheduled(table.store, Action.COMPACTION)
    assert {(each.path, each.content["operations"][0]) for each in found} == {(old, 7), (new.path, 8)}
    assert list_scheduled(table.store, Action.REPLACECOMMIT) == []
    withdraw_scheduled(table.store, found)
    assert list_state_files(table.store) == []


def test_a_log_belongs_to_the_base_of_its_group_however_its_folder_is_spelled():
    base = file_at(f"p=01/{GROUP}.parquet", partition=(("p", "01"),))
    log = file_at(log_file_path("p=1", GROUP, T1, 0), partition=(("p", "1"),))
    (found,) = slices_with_logs(DataFiles.of([log, base], ("p",)))
    assert (found.partition, found.base, found.logs) == ((("p", "01"),), base, (log,))
