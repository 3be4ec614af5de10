"""What the table of cases leaves to other rules: changed columns, files added twice, unknown operations."""

from __future__ import annotations

import pytest

from dbt.adapters.zlayout.errors import ConflictError
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.transactions.change import Change
from dbt.adapters.zlayout.timeline.transactions.conflicts import DECISIONS, Kind, kind_of
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction

OPERATIONS = {
    Kind.APPEND: Operation.APPEND,
    Kind.OVERWRITE: Operation.OVERWRITE,
    Kind.REWRITE: Operation.MERGE,
    Kind.MAINTENANCE: Operation.COMPACTION,
    Kind.METADATA: Operation.INDEXING,
}


def _change(table, transaction, kind: Kind, victim: str) -> Change:
    if kind is Kind.METADATA:
        return Change(table.write(transaction, 0))
    removes = (victim,) if kind in {Kind.REWRITE, Kind.MAINTENANCE} else ()
    return Change(
        table.write(transaction),
        removes=removes,
        schema_json='{"type":"struct","fields":[]}' if kind is Kind.OVERWRITE else None,
    )


def test_every_pair_of_kinds_is_decided() -> None:
    assert set(DECISIONS) == {(ours, theirs) for ours in Kind for theirs in Kind}


@pytest.mark.parametrize("kind", [Kind.APPEND, Kind.REWRITE, Kind.MAINTENANCE])
def test_nothing_follows_a_change_of_the_schema(table, kind) -> None:
    one, _ = table.overwrite(2).adds["path"].to_pylist()
    late = Transaction.begin(table.timeline(), Action.COMMIT, OPERATIONS[kind])
    with Transaction.begin(table.timeline(), Action.COMMIT, Operation.APPEND) as winner:
        winner.commit(Change(table.write(winner), schema_json='{"type":"struct","fields":[],"new":1}'))
    with pytest.raises(ConflictError, match="changed the table's columns"), late:
        late.commit(_change(table, late, kind, one))


def test_a_change_of_the_schema_does_not_follow_rows_of_the_old_one(table) -> None:
    table.overwrite()
    late = Transaction.begin(table.timeline(), Action.COMMIT, Operation.APPEND)
    table.append()
    with pytest.raises(ConflictError, match="columns that this commit changes"), late:
        late.commit(Change(table.write(late), schema_json='{"type":"struct","fields":[],"new":1}'))


def test_the_same_file_is_not_added_twice(table) -> None:
    table.overwrite()
    late = Transaction.begin(table.timeline(), Action.COMMIT, Operation.ADOPT)
    files = table.write(late)
    with Transaction.begin(table.timeline(), Action.COMMIT, Operation.ADOPT) as winner:
        winner.commit(Change(files))
    with pytest.raises(ConflictError, match="too"):
        late.commit(Change(files))


def test_an_operation_of_another_release_counts_as_an_overwrite() -> None:
    assert kind_of("teleport", removes_files=False) is Kind.OVERWRITE


def test_an_adoption_that_replaces_files_is_a_rewrite() -> None:
    assert kind_of("adopt", removes_files=True) is Kind.REWRITE
    assert kind_of("adopt", removes_files=False) is Kind.APPEND
