"""Random sequences of ten changes: after each, the table holds what plain Spark makes of the same rows."""

import os

import pytest
from comparing import bag
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as sf

from dbt.adapters.zlayout.table.ztable import ZTable

SEQUENCES = int(os.environ.get("ZLAYOUT_SEQUENCES", "1"))
BASE = "k int, p string, v bigint, f double, t string"

keys = st.one_of(st.none(), st.integers(0, 40))
values = st.fixed_dictionaries(
    {
        "k": keys,
        "p": st.sampled_from([None, "a", "b", "c d/e"]),
        "v": st.one_of(st.none(), st.integers(-(2**40), 2**40)),
        "f": st.sampled_from([None, float("nan"), -0.0, 0.0, 1.5, float("inf")]),
        "t": st.sampled_from([None, "", "ü", "x" * 70]),
        "extra": st.sampled_from([None, "e1", "e2"]),
    }
)
rows = st.lists(values, max_size=12)
unique_rows = st.lists(values, max_size=12, unique_by=lambda row: (row["k"], row["p"], row["k"] is None and id(row)))
conditions = st.sampled_from(
    ["k < 10", "p = 'a'", "v is null or k = 3", "f > 0", "t like 'x%'", "k between 5 and 8", "p is null", "true"]
)
columns = st.sampled_from([(), (), ("extra",)])
step = st.one_of(
    st.tuples(st.just("append"), rows, columns),
    st.tuples(st.just("overwrite"), rows, columns),
    st.tuples(st.just("merge"), unique_rows, columns),
    st.tuples(st.just("delete_insert"), rows, columns),
    st.tuples(st.just("replace_where"), rows, columns, conditions),
    st.tuples(st.just("delete"), conditions),
    st.tuples(st.just("drop"), rows),
    st.tuples(st.just("cluster"), st.booleans()),
)


def frame_of(spark, data, names):
    schema = spark.createDataFrame([], ", ".join([BASE, *(f"{name} string" for name in names)])).schema
    return spark.createDataFrame([tuple(row[each] for each in schema.names) for row in data], schema)


def expected(spark, before, action, new, condition, partitioned):
    """What the rows are afterwards, by plain Spark on rows in memory."""
    both = list(dict.fromkeys([*before.columns, *(new.columns if new is not None else [])]))
    wide = [
        frame.select(
            *(
                sf.col(c)
                if c in frame.columns
                else sf.lit(None)
                .cast(dict(new.dtypes if new is not None and c in new.columns else before.dtypes)[c])
                .alias(c)
                for c in both
            )
        )
        for frame in (before, new)
        if frame is not None
    ]
    old, more = wide[0], wide[1] if new is not None else None
    if action == "append":
        return old.union(more)
    if action == "overwrite":
        if not partitioned:
            return more
        gone = more.select(sf.col("p").alias("gone")).distinct()
        return old.join(gone, sf.col("p").eqNullSafe(sf.col("gone")), "left_anti").union(more)
    if action in ("merge", "delete_insert"):
        names = [sf.col(f"old.{c}") == sf.col(f"more.{c}") for c in ("k", "p")]
        return old.alias("old").join(more.alias("more"), names, "left_anti").select(*both).union(more)
    kept = old.where(f"not coalesce({condition}, false)")
    return kept if more is None else kept.union(more)


def check_changes(table, version):
    """The older rows and those that came are the newer rows and those that went, as often as each."""
    changed, new = table.net_changes(version), table.read()
    old = table.read(version=version)
    wide = [sf.col(c) if c in old.columns else sf.lit(None).cast(kind).alias(c) for c, kind in new.dtypes]
    came, went = (changed.where(f"_zl_change = '{each}'").drop("_zl_change") for each in ("insert", "delete"))
    assert bag(old.select(*wide)) + bag(came) == bag(new) + bag(went)
    assert not (bag(came) & bag(went))


@pytest.mark.parametrize("partitioned", [pytest.param(False, marks=pytest.mark.slow), True])
def test_ten_changes_give_what_plain_spark_gives(spark, partitioned):
    counter = iter(range(10**6))

    @settings(
        max_examples=SEQUENCES,
        deadline=None,
        print_blob=True,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(first=rows, steps=st.lists(step, min_size=10, max_size=10))
    def run(first, steps):
        name = f"z.sequence_{partitioned}_{next(counter)}"
        start = frame_of(spark, first, ())
        table = ZTable.write(
            spark,
            name,
            start,
            zorder=["k", "v"],
            bloom=["k", "f"],
            lookup=["k", "t", ["f", "k"]],
            partition_by=["p"] if partitioned else (),
            target_file_size="1kb",
        )
        reference, first_version = start.localCheckpoint(), table.version
        for action, *rest in steps:
            if action == "drop":
                if "extra" not in reference.columns:
                    continue
                new = frame_of(spark, rest[0], ())
                table.append(new, on_schema_change="sync_all_columns")
                reference = reference.drop("extra").union(new.select(*[c for c in reference.columns if c != "extra"]))
            elif action == "cluster":
                table.cluster(rewrite_all=rest[0], min_input_files=2, verify=True)
            elif action == "delete":
                table.delete(rest[0])
                reference = expected(spark, reference, action, None, rest[0], partitioned)
            else:
                data, names, *condition = rest
                new = frame_of(spark, data, names)
                arguments = {"merge": [["k", "p"]], "delete_insert": [["k", "p"]], "replace_where": condition}
                getattr(table, action)(new, *arguments.get(action, []), on_schema_change="append_new_columns")
                reference = expected(spark, reference, action, new, *(condition or [None]), partitioned)
            reference = reference.localCheckpoint()
            assert bag(spark.table(name)) == bag(reference), action
        check_changes(table, first_version)
        assert table.index_status().num_rows == 0
        for condition in ("k = 3", "v > 0", "t = 'ü'", "p = 'a' and k < 20", "isnan(f)"):
            assert bag(spark.table(name).where(condition)) == bag(reference.where(condition)), condition
        spark.sql(f"drop table {name}")

    run()
