"""What the properties of versions keep: batches of streams, and rows where files do not tell them."""

from __future__ import annotations

from dataclasses import replace

from dbt.adapters.zlayout.timeline.log.snapshot import batches_of, is_taken, row_count, with_batch, with_more_rows


def test_a_batch_is_taken_up_to_the_last_number_of_its_query():
    properties = with_batch(with_batch({"other": 1}, ("q", 3)), ("r", 0))
    assert [is_taken(properties, each) for each in (("q", 2), ("q", 3), ("q", 4), ("r", 0), ("s", 0))] == [
        True,
        True,
        False,
        True,
        False,
    ]
    assert not is_taken(properties, None)
    assert with_batch(properties, None) == properties
    assert is_taken(with_batch(properties, ("q", 4)), ("q", 4))


def test_a_rebuild_keeps_batches_and_nothing_else():
    properties = with_more_rows(with_batch({"other": 1}, ("q", 3)), 10, 1)
    assert batches_of(properties) == batches_of(with_batch({}, ("q", 3)))
    assert batches_of({"other": 1}) == {}


def test_rows_are_counted_from_the_version_before_the_first_log(table):
    table.overwrite(3)
    snapshot = table.timeline().snapshot()
    assert row_count(snapshot) == 3
    first = with_more_rows(snapshot.properties, row_count(snapshot), 5)
    # A second writer began before the first one committed, and follows it.
    second = with_more_rows(first, row_count(snapshot), -2)
    assert row_count(replace(snapshot, properties=second)) == 6
