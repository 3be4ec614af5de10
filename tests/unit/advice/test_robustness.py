"""A layout must serve other constants and other queries than those of yesterday."""

import numpy as np
import pyarrow as pa
from made_up_rows import PATHS, ROWS, SAMPLE, TABLE, advised, between, equal, opened_share, query

from dbt.adapters.zlayout.advice.redrawn import ranges_of, redrawn
from dbt.adapters.zlayout.advice.sample import Layout, Sample
from dbt.adapters.zlayout.predicate.expr import And, Compare, In, Or, StartsWith, leaves


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
    layout = Layout(tuple((name,) for name in found.zorder), tuple((name,) for name in found.partition_by))
    assert opened_share(layout, between("at", 100_000, 120_000)) < 0.35


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
