from dataclasses import replace

import pytest

from dbt.adapters.zlayout.errors import TableNotFoundError
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.log.entry import CommitHeader
from dbt.adapters.zlayout.timeline.transactions.change import Change
from dbt.adapters.zlayout.timeline.transactions.last_row_change import (
    ADOPTED,
    REPARTITIONED,
    last_origin,
    last_row_change,
    origin_summary,
    row_change_after,
    rows_changed_ms,
)
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction


def header(version, operation, files_added=1, made_from=None):
    return CommitHeader(
        version=version,
        instant=f"{version:017}",
        action=Action.COMMIT,
        operation=operation,
        committed_ms=version,
        last_instant=f"{version:017}",
        summary=origin_summary(made_from),
        files_added=files_added,
        files_removed=0,
        aborts=None,
    )


@pytest.mark.parametrize("operation", Operation)
def test_what_moves_rows_or_describes_them_changes_none(operation):
    maintenance = {"clustering", "compaction", "conversion", "indexing", "recovery"}
    found = last_row_change([header(2, operation.value), header(1, "append"), header(0, "overwrite")], "t")
    assert found.version == (1 if operation.value in maintenance else 2)


def test_a_rewrite_for_other_folders_changes_no_row():
    moved = replace(header(1, "overwrite"), summary={REPARTITIONED: True})
    assert last_row_change([moved, header(0, "append")], "t").version == 0


def test_a_commit_without_files_changes_no_row():
    assert last_row_change([header(1, "merge", files_added=0), header(0, "append")], "t").version == 0


def test_no_more_versions_are_read_than_needed():
    def headers():
        yield header(3, "clustering")
        yield header(2, "delete")
        raise AssertionError

    assert last_row_change(headers(), "t").version == 2


def test_if_no_version_changed_rows_the_oldest_counts():
    assert last_row_change([header(1, "indexing"), header(0, "indexing")], "t").version == 0


def test_without_versions_there_is_no_time():
    with pytest.raises(TableNotFoundError, match="t has no committed version"):
        last_row_change([], "t")


def test_only_versions_that_change_rows_count_after_a_version():
    headers = [header(4, "clustering"), header(3, "merge", files_added=0), header(2, "delete"), header(1, "append")]
    assert row_change_after(headers, 1).version == 2
    assert row_change_after(headers, 2) is None
    assert row_change_after(headers, 4) is None


def test_the_origin_holds_until_something_else_changes_rows():
    built = header(1, "overwrite", made_from={"code": "a"})
    assert last_origin([header(2, "clustering"), built])[1] == {"code": "a"}
    assert last_origin([header(2, "merge", files_added=0, made_from={"code": "b"}), built])[0].version == 2
    assert last_origin([header(2, "delete"), built]) is None
    assert last_origin([header(0, "overwrite")]) is None


def test_what_others_changed_while_the_model_ran_makes_the_origin_unknown():
    merged = header(4, "merge", made_from={"code": "b", "base": 1})
    built = header(1, "overwrite", made_from={"code": "a", "base": None})
    assert last_origin([merged, header(3, "delete"), header(2, "clustering"), built]) is None
    assert last_origin([merged, header(3, "clustering"), header(2, "delete"), built]) is None
    assert last_origin([merged, header(3, "clustering"), header(2, "indexing"), built])[0].version == 4
    # What the run read already is no change.
    assert last_origin([header(4, "merge", made_from={"base": 3}), header(3, "delete"), built])[0].version == 4
    # Another run of the model is not another writer.
    assert (
        last_origin([merged, header(3, "append", made_from={"base": 1}), header(2, "indexing"), built])[0].version == 4
    )


def test_an_origin_that_is_no_object_is_none():
    damaged = replace(header(1, "overwrite"), summary={"made_from": ["x"]})
    assert last_origin([damaged]) is None


def test_a_commit_changes_rows_when_it_commits(table):
    table.overwrite()
    appended = table.append()
    assert rows_changed_ms(table.timeline(), "t") == appended.committed_ms


def test_an_adopted_table_is_as_old_as_its_newest_file(table):
    with Transaction.begin(table.timeline(), Action.COMMIT, Operation.OVERWRITE) as transaction:
        adds = table.write(transaction, 2)
        transaction.commit(Change(adds, schema_json='{"type":"struct","fields":[]}', summary={ADOPTED: "managed"}))
    assert rows_changed_ms(table.timeline(), "t") == max(adds["modified_ms"].to_pylist()) == 5
    appended = table.append()
    assert rows_changed_ms(table.timeline(), "t") == appended.committed_ms


def test_an_adopted_table_without_files_is_as_old_as_its_adoption(table):
    with Transaction.begin(table.timeline(), Action.COMMIT, Operation.OVERWRITE) as transaction:
        commit = transaction.commit(
            Change(
                table.write(transaction, 0), schema_json='{"type":"struct","fields":[]}', summary={ADOPTED: "managed"}
            )
        )
    assert rows_changed_ms(table.timeline(), "t") == commit.committed_ms
