"""What planning costs at worst: random conditions, deep and wide; the most time and memory that choosing files took.

usage: python benchmarks/planning_fuzz.py [conditions, default 1000] [--seed 1] [--depth 40] [--seconds 450]
Nested CASE, IF, coalesce, OR, AND, NOT, IN and arithmetic, up to `--depth` levels deep and thousands of parts wide, on
a table of 1,000 files that are only named. They are built as columns and not as text: Spark's parser takes minutes for
two dozen nested parentheses. Timed is the callback, from
Spark's call of listFiles to the answer. Java's memory is what it allocates meanwhile, in a heap whose young generation
holds all of it; Python's is the growth of the most that the process ever had.
"""

from __future__ import annotations

import argparse
import random
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

from planning_spark import table_of
from pyspark.sql import Column, SparkSession, functions

from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog
from dbt.adapters.zlayout.spark.read.file_index import SnapshotFileIndex
from dbt.adapters.zlayout.spark.read.relations import frame_of

FILES = 1_000
COLUMNS = ("key", "c4", "c5", "c6", "c7")
COMPARISONS = ("<", "<=", "=", "<>", ">", "<=>")
MOST_PARTS = 500
YOUNG_GENERATION = "4g"


class Fuzz:
    """Random conditions.

    Args:
        seed: Of the random numbers.
        depth: Most levels of one condition.
    """

    def __init__(self, seed: int, depth: int) -> None:
        self.random = random.Random(seed)
        self.depths = sorted({min(each, depth) for each in (3, 6, 12, 18, 24, depth)})

    def condition(self) -> tuple[Column, str]:
        """A chain of one shape or of many, or a bush; and what to call it."""
        depth = self.random.choice(self.depths)
        if self.random.random() < 0.3:
            depth = min(depth, 10)
            return self.bush(depth), f"bush of {depth} levels"
        shapes = self.random.sample(range(6), self.random.choice((1, 1, 2, 6)))
        value, parts = self.column(), 1
        for _ in range(depth):
            value, parts = self.link(self.random.choice(shapes), value, parts)
        if self.random.random() < 0.2:
            name, condition = "list", self.list(value)
        else:
            name, condition = "comparison", self.compared(value, functions.lit(self.number()))
        if self.random.random() < 0.2:
            name, condition = f"{name} or others", condition | functions.expr(self.ors())
        return condition, f"chain of {depth} levels, {parts:,} parts, shapes {shapes}, {name}"

    def link(self, shape: int, value: Column, parts: int) -> tuple[Column, int]:
        """One more level around a value, and the parts of the whole."""
        number = functions.lit(self.number())
        if shape == 0:
            return functions.when(self.column() == self.number(), number).otherwise(value), parts + 3
        if shape == 1:
            return functions.when(value > self.number(), self.column()).otherwise(number), parts + 3
        if shape == 2:
            twice = parts < MOST_PARTS
            then = value if twice else functions.lit(1)
            return functions.when(self.compared(value, self.column()), then).otherwise(number), parts * (1 + twice) + 3
        if shape == 3:
            return functions.coalesce(value, self.column(), number), parts + 3
        if shape == 4:
            other = self.random.choice((self.column(), number))
            return (value + other if self.random.random() < 0.5 else value - other), parts + 2
        key = self.column()
        return functions.when(key == 1, self.column()).when(key == self.number(), value), parts + 5

    def bush(self, depth: int) -> Column:
        """A tree of conditions."""
        if depth == 0:
            return self.compared(self.column(), functions.lit(self.number()))
        kind, one = self.random.random(), self.bush(depth - 1)
        if kind < 0.1:
            return ~one
        other = self.bush(depth - 1)
        if kind < 0.2:
            return functions.when(one, other).otherwise(self.bush(0))
        return one | other if kind < 0.6 else one & other

    def ors(self) -> str:
        """Many comparisons; Spark parses what is wide quickly."""
        return " or ".join(
            f"{self.random.choice(COLUMNS)} {self.random.choice(COMPARISONS)} {self.number()}"
            for _ in range(self.random.choice((9, 900)))
        )

    def list(self, value: Column) -> Column:
        """IN with a long list."""
        return value.isin([self.number() for _ in range(self.random.choice((5, 500, 5, 500, 12_000)))])

    def column(self) -> Column:
        """A column of the table."""
        return functions.col(self.random.choice(COLUMNS))

    def compared(self, one: Column, other: Column) -> Column:
        """A comparison."""
        return self.random.choice(
            (one < other, one <= other, one == other, one != other, one > other, one.eqNullSafe(other))
        )

    def number(self) -> int:
        """A constant."""
        return self.random.randrange(1 << 40)


class Costs:
    """Milliseconds and bytes of Java's heap of every call of ``listFiles``."""

    def __init__(self, runtime: Any) -> None:
        self.found: list[tuple[float, int, int]] = []
        measured, original = self, SnapshotFileIndex.listFiles

        def watched(self: SnapshotFileIndex, partition_filters: Any, data_filters: Any) -> Any:
            before, start = runtime.freeMemory(), time.perf_counter()
            answer = original(self, partition_filters, data_filters)
            took = 1_000 * (time.perf_counter() - start)
            measured.found.append((took, before - runtime.freeMemory(), self.last_scan[0] if self.last_scan else 0))
            return answer

        SnapshotFileIndex.listFiles = watched  # type: ignore[method-assign]  # to be watched


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("conditions", type=int, nargs="?", default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--depth", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="no new condition after so many")
    given = parser.parse_args()
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "6g")
        .config("spark.driver.extraJavaOptions", f"-Xss16m -Xms6g -Xmn{YOUNG_GENERATION} -XX:+UseSerialGC")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    fuzz = Fuzz(given.seed, given.depth)
    jvm, refused, tried, begun = Catalog(spark).jvm, 0, 0, time.monotonic()
    costs = Costs(jvm.lang.Runtime.getRuntime())
    worst = []
    with tempfile.TemporaryDirectory() as folder:
        frame = frame_of(Catalog(spark), table_of(spark, Path(folder) / "t", FILES, 0))
        frame.where("key = 1")._jdf.queryExecution().executedPlan().execute().getNumPartitions()  # type: ignore[operator]
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(given.conditions):
            if time.monotonic() - begun > given.seconds:
                break
            tried += 1
            condition, name = fuzz.condition()
            costs.found.clear()
            jvm.lang.System.gc()
            try:
                plan: Any = frame.where(condition)._jdf.queryExecution().executedPlan()  # type: ignore[operator]
                plan.execute().getNumPartitions()
            except Exception:  # Spark itself cannot plan it
                refused += 1
            worst += [(*each, name) for each in costs.found]
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    spark.stop()
    times, heaps = sorted(each[0] for each in worst), sorted(each[1] for each in worst)
    skipped = sum(each[2] < FILES for each in worst)
    print(f"{tried:,} conditions, {refused:,} refused by Spark; {skipped:,} skipped files")
    for name, values, unit in (("callback", times, "ms"), ("Java's heap", [each / 2**20 for each in heaps], "MiB")):
        told = ", ".join(f"{100 * at:g} % {values[int(at * (len(values) - 1))]:.0f}" for at in (0.5, 0.9, 0.99, 1))
        print(f"{name}, {unit}: {told}")
    print(f"Python's memory grew by {grown:.0f} MiB in all")
    print(f"slowest: {max(worst)[3]}; most memory: {max(worst, key=lambda each: each[1])[3]}")


if __name__ == "__main__":
    main()
