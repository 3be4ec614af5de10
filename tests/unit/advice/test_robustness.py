"""A layout must serve other constants and other queries than those of yesterday."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
from made_up_rows import PATHS, ROWS, SAMPLE, TABLE, advised, between, equal, opened_share, query

from dbt.adapters.zlayout.advice.advice import Present, TableSize, advise
from dbt.adapters.zlayout.advice.asked_boxes import Asking
from dbt.adapters.zlayout.advice.other_queries import ranges_of, redrawn
from dbt.adapters.zlayout.advice.sample import Layout, Sample, Weighted
from dbt.adapters.zlayout.predicate.expr import And, Column, Compare, In, Op, Or, StartsWith, leaves


def test_a_range_keeps_its_share_of_the_rows_elsewhere():
    wanted = TABLE.column("amount").to_numpy()
    shares = []
    for seed in range(20):
        moved = redrawn(between("amount", 20.0, 22.0), SAMPLE, seed)
        low, high = (leaf.value.as_py() for leaf in leaves(moved))
        shares.append(((wanted >= low) & (wanted < high)).mean())
    before = ((wanted >= 20) & (wanted < 22)).mean()
    assert np.allclose(shares, before, atol=3 / ROWS + 0.005)


def test_constants_spread_over_all_rows():
    found = {redrawn(equal("customer", 7), SAMPLE, seed).value.as_py() for seed in range(50)}
    assert len(found) > 40


def test_every_kind_of_condition_keeps_its_shape():
    kinds = And(
        (
            Or((In(equal("region", "r1").operand, pa.array(["r1", "r2"])), equal("customer", 3))),
            StartsWith(equal("region", "r1").operand, pa.scalar("r")),
        )
    )
    moved = redrawn(kinds, SAMPLE, 4)
    assert [type(each) for each in leaves(moved)] == [In, Compare, StartsWith]
    assert redrawn(kinds, SAMPLE, 4).sql() == moved.sql()


def test_a_column_that_the_sample_lacks_keeps_its_constants():
    few = Sample.of(TABLE.select(["at"]), [("at",)])
    assert redrawn(equal("customer", 7), few, 1).value.as_py() == 7


def test_ranges_hold_the_share_that_is_asked():
    (found,) = ranges_of(SAMPLE, [("at",)], 0.02, 3)
    low, high = (leaf.value.as_py() for leaf in leaves(found))
    at = TABLE.column("at").to_numpy()
    assert abs(((at >= low) & (at <= high)).mean() - 0.02) < 0.002
    assert ranges_of(Sample.of(pa.table({"x": pa.array([None, None], pa.int64())}), [("x",)]), [("x",)], 0.02, 3) == []


def test_hot_recent_days_do_not_spoil_the_other_days():
    hot = [query(between("at", 950_000 + 1_000 * each, 960_000 + 1_000 * each), 5) for each in range(10)]
    found = advised([*hot, *(query(equal("customer", each)) for each in range(0, 40, 4))], Layout((("customer",),)))
    layout = Layout(
        tuple((name,) for name in found.zorder), tuple((name,) for name in found.partition_by), asked=found.asked
    )
    assert opened_share(layout, between("at", 100_000, 120_000)) < 0.35


def test_cuts_follow_a_workload_that_keys_alone_cannot_serve():
    hot = [query(between("at", 950_000 + 600 * each, 954_000 + 600 * each), 4) for each in range(40)]
    mixed = [query(equal("customer", 37 * each)) for each in range(20)]
    mixed += [query(between("amount", each, each + 1.0)) for each in range(20)]
    now = Layout((("at",), ("customer",), ("amount",)))
    found = advised([*hot, *mixed], now)
    assert (found.change, found.by_workload, set(found.zorder)) == ("layout", True, {"at", "customer", "amount"})
    cut = Layout(tuple((name,) for name in found.zorder), asked=found.asked)
    fresh = between("at", 961_000, 965_000)
    assert opened_share(cut, fresh) < 0.4 * opened_share(now, fresh)
    # What the workload does not ask costs more, but not everything.
    others = [between("at", 200_000, 220_000), equal("customer", 1_999), between("amount", 30.0, 32.0)]
    assert sum(opened_share(cut, each) for each in others) < 1.6 * sum(opened_share(now, each) for each in others)


def test_keys_stay_where_only_cuts_may_change():
    wanted = [query(between("amount", each, each + 1.0)) for each in range(20)]
    now = Layout((("at",), ("amount",)))
    size = TableSize(ROWS * 100, 64, 64 << 20, 1 << 20)
    found = advise(SAMPLE, wanted, size, Present(now), may_partition=False, may_choose_keys=False)
    assert (found.zorder, found.by_workload) == (("at", "amount"), True)
    assert found.opened_then < 0.5 * found.opened_now
    kept = advise(SAMPLE, wanted, size, Present(replace(now, linear=True)), may_choose_keys=False)
    assert (kept.change, kept.by_workload) == ("none", False)


def test_queries_of_one_shape_choose_and_judge():
    # Every second query asks another column: both halves must have both kinds.
    wanted = [
        query(between("at", 20_000 * n, 20_000 * n + 9_000) if n % 2 else equal("customer", n)) for n in range(24)
    ]
    assert set(advised(wanted).zorder) == {"at", "customer"}


def test_a_present_key_that_the_workload_never_asks_is_not_given_up_for_nothing():
    found = advised([query(equal("region", "r3")), query(equal("region", "r7"))], Layout((("at",), ("region",))))
    assert "at" in found.zorder


def test_samples_of_any_type_give_bounds():
    table = pa.table(
        {
            "f": pa.array([1.0, float("nan"), None, -0.0]),
            "b": pa.array([True, False, None, True]),
            "t": pa.array([1, None, 3, 4], pa.timestamp("us", "UTC")),
            "n": pa.array([None, None, None, None], pa.int64()),
            "d": pa.array(["1.20", None, "3.4", "5"]).cast(pa.decimal128(10, 2)),
        }
    )
    from dbt.adapters.zlayout.advice.sample import FilesOfSample

    files = FilesOfSample(Sample.of(table, [(name,) for name in table.column_names]), Layout((("f",),)), 1)
    bounds = {name: files.column((name,)) for name in table.column_names}
    assert (bounds["f"].minimum.to_pylist(), bounds["f"].maximum.to_pylist()) == ([0.0], [1.0])
    assert (bounds["f"].nan_count.to_pylist(), bounds["f"].null_count.to_pylist()) == ([1], [1])
    assert bounds["b"].minimum.to_pylist() == [False]
    assert (bounds["n"].minimum.to_pylist(), bounds["n"].null_count.to_pylist()) == ([None], [4])
    assert files.column(("absent",)) is None


def test_all_paths_are_sampled():
    assert set(SAMPLE.columns) == set(PATHS)


def test_indexes_that_are_not_made_are_named_and_not_counted():
    wanted = [query(equal("id", 77)), query(between("at", 0, 20_000))]
    size = TableSize(ROWS * 100, 64, 64 << 20, 1 << 20)
    now = Present(Layout((("at",),)))
    counted = advise(SAMPLE, wanted, size, now)
    named = advise(SAMPLE, wanted, size, now, may_choose_keys=False, may_index=False)
    assert named.why.endswith("; lookup: [id] would save more")
    assert named.opened_then > 2 * counted.opened_then
    assert (named.rewrite_bytes, named.change) == (0, "none")


def test_a_lookup_index_counts_as_what_it_saves():
    wanted = [query(equal("id", 77)), query(between("at", 0, 20_000))]
    size = TableSize(ROWS * 100, 64, 64 << 20, 1 << 20)
    found = advise(SAMPLE, wanted, size, Present(Layout((("at",),)), lookup=(("id",),)))
    assert (found.change, found.bloom, found.lookup, found.zorder) == ("none", (), (), ("at",))


def test_boxes_are_short_and_have_weights_above_nothing():
    texts = pa.table({"text": [f"{number:05d}" + "x" * 2_000 for number in range(4_096)]})
    sample = Sample.of(texts, [("text",)])
    name = Column(("text",), pa.string())
    wanted = [Compare(Op.EQ, name, pa.scalar(f"{number:05d}" + "x" * 2_000)) for number in (10, 2_000)]
    found = Asking(Weighted.of(wanted, [1e-200, 1e200]), sample).of([("text",)])
    assert len(found) == 1
    assert [len(each.as_py()) for each in (found.low[0][0], found.high[0][0])] == [1_024, 1_024]
    assert found.low[0][0].as_py() <= wanted[1].value.as_py()[:1_024] <= found.high[0][0].as_py()


def test_alternatives_become_boxes_that_share_the_weight():
    key = Column(("at",), pa.int64())
    either = Or((Compare(Op.LT, key, pa.scalar(50_000)), Compare(Op.GE, key, pa.scalar(950_000))))
    found = Asking(Weighted.of([either], [1.0]), SAMPLE).of([("at",)])
    assert found.weights.tolist() == [0.5, 0.5]
    assert (found.low[0].to_pylist()[0], found.high[0].to_pylist()[1]) == (None, None)
    assert found.high[0].to_pylist()[0] < 60_000
    assert found.low[0].to_pylist()[1] > 940_000
    assert Asking(Weighted.of([either], [1.0]), SAMPLE).of([("amount",)]) is None
