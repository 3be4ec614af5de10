"""Advice names keys with which the workload reads less, and leaves alone what no change helps."""

import pytest
from made_up_rows import FILES, advised, between, equal, opened_share, query

from dbt.adapters.zlayout.advice.sample import Layout

AMOUNTS = between("amount", 20, 22)
BY_TIME = Layout((("at",),))


def test_a_table_without_keys_gets_the_column_that_queries_ask():
    found = advised([query(AMOUNTS), query(between("amount", 50, 60))])
    assert (found.change, found.zorder, found.zorder_now) == ("layout", ("amount",), ())
    assert found.opened_now == 1.0
    assert min(found.gains) > 0.8


def test_what_is_promised_is_what_fresh_rows_read():
    found = advised([query(AMOUNTS, 6), query(equal("region", "r3"), 3)])
    layout = Layout(tuple((name,) for name in found.zorder), asked=found.asked)
    for each, predicate in ((AMOUNTS.sql(), AMOUNTS), (equal("region", "r3").sql(), equal("region", "r3"))):
        promised = next(row.opened_then for row in found.predicates if row.predicate == each)
        assert promised == pytest.approx(opened_share(layout, predicate), rel=0.35)


def test_weights_decide_between_keys():
    time, customer = between("at", 0, 20_000), equal("customer", 7)
    often_time = advised([query(time, 20), query(customer)])
    often_customer = advised([query(time), query(customer, 20)])
    assert (often_time.zorder[0], often_customer.zorder[0]) == ("at", "customer")


def test_good_keys_stay():
    found = advised([query(between("at", 0, 20_000))], BY_TIME)
    assert (found.change, found.zorder, found.opened_then, found.rewrite_bytes) == (
        "none",
        ("at",),
        found.opened_now,
        0,
    )
    assert found.payback_queries is None
    assert found.why.startswith("keep the layout: a query of this workload opens 3")


def test_a_change_needs_the_stated_gain():
    queries = [query(between("at", 0, 20_000), 3), query(equal("customer", 700))]
    keen, cautious = (advised(queries, BY_TIME, min_gain=gain) for gain in (0.05, 0.9))
    assert (keen.change, cautious.change) == ("layout", "none")
    assert cautious.zorder == ("at",)


def test_files_that_do_not_follow_their_keys_are_to_be_clustered():
    found = advised([query(between("at", 0, 20_000))], BY_TIME, opened=lambda _: 0.6)
    assert (found.change, found.zorder) == ("cluster", ("at",))
    assert found.opened_then < 0.1


def test_random_ids_get_a_filter_and_not_a_key_in_front():
    found = advised([query(equal("id", 77)), query(between("at", 0, 20_000))], BY_TIME)
    assert (found.bloom, found.lookup) == (("id",), ("id",))
    assert found.zorder == ("at",)


def test_a_column_that_a_filter_serves_needs_no_lookup():
    found = advised(
        [query(equal("id", 77)), query(between("at", 0, 20_000))], BY_TIME, bloom=(("id",),), opened=lambda _: 0.02
    )
    assert (found.change, found.bloom, found.lookup) == ("none", ("id",), ())


def test_a_table_of_one_file_has_nothing_to_gain():
    found = advised([query(AMOUNTS)], target=FILES << 20)
    assert found.change == "none"
    assert "lower target_file_size" in found.notes[0]


def test_a_partition_column_that_queries_need_is_proposed():
    found = advised([query(equal("region", "r3"), 5), query(equal("region", "r5"), 4)])
    assert found.partition_by == ("region",) or found.zorder == ("region",)
    assert found.opened_then < 0.12


def test_a_partition_column_in_the_way_is_dropped():
    parts = Layout((("at",),), (("region",),))
    found = advised([query(between("at", 0, 2_000), 5), query(equal("customer", 7), 5)], parts)
    assert (found.change, found.partition_by_now) == ("layout", ("region",))
    assert found.partition_by == ()


def test_advice_is_plain_json():
    found = advised([query(AMOUNTS)]).to_dict()
    assert found["predicates"][0].keys() == {"predicate", "weight", "source", "opened_now", "opened_then"}
