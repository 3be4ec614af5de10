"""Advice names keys with which the workload reads less, and leaves alone what no change helps."""

import pytest
from made_up_rows import FILES, advised, between, equal, opened_share, query

from dbt.adapters.zlayout.advice.sample import Layout
from dbt.adapters.zlayout.advice.table_settings import PresentSettings, missing_expressions

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


def test_a_workload_that_opens_nothing_already_needs_no_change():
    # The other queries, with which a workload is blended, would gain.
    asked = between("amount", 20_000, 20_001)
    found = advised([query(asked, 5)], BY_TIME, opened=lambda each: float("20000" not in each.sql()))
    assert (found.change, found.zorder, found.opened_now, found.opened_then) == ("none", ("at",), 0.0, 0.0)
    assert found.rewrite_bytes == 0


def test_files_that_do_not_follow_their_keys_are_to_be_clustered():
    found = advised([query(between("at", 0, 20_000))], BY_TIME, opened=lambda _: 0.6)
    assert (found.change, found.zorder) == ("cluster", ("at",))
    assert found.opened_then < 0.1


def test_random_ids_get_a_filter_and_not_a_key_in_front():
    found = advised([query(equal("id", 77)), query(between("at", 0, 20_000))], BY_TIME)
    assert (found.bloom, found.lookup) == (("id",), ("id",))
    assert found.zorder == ("at",)


def test_a_workload_of_random_ids_alone_needs_no_other_keys():
    found = advised([query(equal("id", 77)), query(equal("id", 78), 3)], BY_TIME)
    assert (found.change, found.zorder, found.lookup) == ("none", ("at",), ("id",))
    assert found.opened_then < 0.05


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
    regions = [query(equal("region", f"r{number}"), 5) for number in range(8)]
    found = advised([*regions, query(between("at", 0, 20_000), 3)])
    assert (found.change, found.partition_by, found.zorder) == ("layout", ("region",), ("at",))
    assert found.opened_then < 0.12
    # A key does as well if no other key is wanted.
    assert advised(regions).partition_by == ()


def test_a_partition_column_in_the_way_is_dropped():
    parts = Layout((("at",),), (("region",),))
    found = advised([query(between("at", 0, 2_000), 5), query(equal("customer", 7), 5)], parts)
    assert (found.change, found.partition_by_now) == ("layout", ("region",))
    assert found.partition_by == ()


def settings_of(found):
    return {each.setting: each for each in found.settings}


def test_smaller_files_are_advised_where_queries_then_read_less_and_not_below_a_limit():
    queries, keys = [query(between("at", 0, 20_000))], BY_TIME
    found = settings_of(advised(queries, keys, target=32 << 20, mebibytes=2 << 10))
    assert (found["target_file_size"].now, found["target_file_size"].then) == (str(32 << 20), str(8 << 20))
    assert found["target_file_size"].opened_then < 0.9 * found["target_file_size"].opened_now
    assert settings_of(advised(queries, keys, target=31 << 20, mebibytes=2 << 10)) == {}
    assert settings_of(advised([query(between("at", 0, 900_000))], keys, target=32 << 20, mebibytes=2 << 10)) == {}


def test_larger_files_are_advised_where_queries_open_thousands_that_they_need():
    queries = [query(between("at", 100_000, 700_000))]
    found = settings_of(advised(queries, BY_TIME, target=1 << 20, mebibytes=10 << 10, opened=lambda _: 0.6))
    assert (found["target_file_size"].now, found["target_file_size"].then) == (str(1 << 20), str(4 << 20))
    assert "a query opens 6,132 files on average, then 1,5" in found["target_file_size"].why


def test_larger_files_are_judged_by_what_queries_open_with_the_advised_keys():
    queries = [query(between("at", 100_000, 400_000))]
    found = advised(queries, target=1 << 20, mebibytes=3_000, opened=lambda _: 1.0)
    assert (found.change, found.opened_then * 3_000 < 1_000) == ("layout", True)
    assert settings_of(found) == {}


def test_a_lookup_index_counts_in_further_settings():
    queries = [query(equal("id", 77))]
    settings = PresentSettings(stats_columns="at")
    found = advised(queries, BY_TIME, lookup=(("id",),), opened=lambda _: 0.0002, untracked=["id"], settings=settings)
    assert found.change == "none"
    assert [each.opened_now for each in found.settings if each.opened_now > 0.05] == []


def test_a_setting_that_makes_one_row_group_of_a_file_is_to_be_left_out():
    queries, one_group = [query(between("at", 0, 5_000))], PresentSettings(row_group_rows=10_000_000)
    found = settings_of(advised(queries, BY_TIME, settings=one_group))["row_group_rows"]
    assert (found.then, found.now) == (None, "10000000")
    assert found.opened_then < 0.5 * found.opened_now
    assert settings_of(advised(queries, BY_TIME, settings=PresentSettings(row_group_rows=8_000))) == {}


def test_columns_without_statistics_skip_nothing_until_they_are_added():
    # Rows come by time; the number of a row does too, but the table has no statistics of it.
    queries = [query(equal("customer", 7), 9), query(between("serial", 0, 200))]
    opened = {queries[1].predicate.sql(): 1.0}
    without = advised(
        queries, BY_TIME, untracked=["serial"], opened=lambda each: opened.get(each.sql(), 0.02), may_choose_keys=False
    )
    by_text = {each.predicate: each for each in without.predicates}
    assert by_text[between("serial", 0, 200).sql()].opened_then == 1.0
    found = settings_of(without)["stats_columns"]
    assert (found.then, found.opened_then < 0.9 * found.opened_now) == ("[serial]", True)
    assert "stats_columns" not in settings_of(advised(queries, BY_TIME))


def test_many_columns_whose_statistics_nobody_uses_are_named():
    spare = tuple((f"c{each:02}",) for each in range(30))
    settings = PresentSettings(stats_columns="32", tracked=(("at",), *spare), expressions={"lower(region)": 0.25})
    found = settings_of(advised([query(between("at", 0, 20_000))], BY_TIME, settings=settings))
    assert found["stats_columns"].why.startswith("30 of 31 columns have statistics that no condition uses (c00, c01")
    assert (found["stats_columns"].then, found["stats_columns"].opened_then) == ("[at]", None)
    assert found["stats_expressions"].then == "+ lower(region)"
    assert "25% of the workload compares lower(region)" in found["stats_expressions"].why


def test_columns_with_and_without_statistics_are_one_advice():
    spare = tuple((f"c{each:02}",) for each in range(30))
    queries = [query(between("serial", 0, 200))]
    settings = PresentSettings(stats_columns="32", tracked=(("at",), *spare), merge_keys=(("c07",),))
    options = {"opened": lambda _: 1.0, "untracked": ["serial"], "may_choose_keys": False}
    (found,) = advised(queries, BY_TIME, settings=settings, **options).settings
    assert (found.setting, found.then) == ("stats_columns", "[at, c07, serial]")


def test_an_expression_is_written_as_yaml_reads_it():
    (found,) = missing_expressions({'concat(a, "x")': 0.5})
    assert r'stats_expressions: ["concat(a, \"x\")"] it skips' in found.why


def test_advice_is_plain_json():
    found = advised([query(AMOUNTS)]).to_dict()
    assert found["predicates"][0].keys() == {"predicate", "weight", "source", "opened_now", "opened_then"}
