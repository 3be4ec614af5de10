"""What planning costs at worst: random conditions, deep and wide; the most time and memory that choosing files took.

usage: python benchmarks/planning_fuzz.py [conditions, default 1000] [--seed 1]
Nested CASE, IF, coalesce, OR, AND, NOT, IN and arithmetic, 24 levels deep at most (Spark's parser takes minutes for
more) and up to thousands of parts wide, on a table of 1,000 files that are only named. Timed is the callback, from
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
from pyspark.sql import SparkSession

from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog
from dbt.adapters.zlayout.spark.read.file_index import SnapshotFileIndex
from dbt.adapters.zlayout.spark.read.relations import frame_of

FILES = 1_000
COLUMNS = ("key", "c4", "c5", "c6", "c7")
YOUNG_GENERATION = "4g"


class Fuzz:
    """Random conditions.

    Args:
        seed: Of the random numbers.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def condition(self) -> str:
        """A chain of one shape or of many, or a bush."""
        depth = self.random.choice((3, 6, 12, 18, 24))
        if self.random.random() < 0.3:
            return f"({self.bush(min(depth, 10))})"
        shapes = self.random.sample(range(6), self.random.choice((1, 1, 2, 6)))
        value = self.column()
        for _ in range(depth):
            value = self.link(self.random.choice(shapes), value)
        value = self.list(value) if self.random.random() < 0.2 else f"{value} {self.comparison()} {self.number()}"
        return f"{value} or {self.ors()}" if self.random.random() < 0.2 else value

    def link(self, shape: int, value: str) -> str:
        """One more level around a value."""
        if shape == 0:
            return f"(case when {self.column()} = {self.number()} then {self.number()} else {value} end)"
        if shape == 1:
            return f"(case when {value} > {self.number()} then {self.column()} else {self.number()} end)"
        if shape == 2:
            again = value if len(value) < 2_000 else 1
            return f"if({value} {self.comparison()} {self.column()}, {again}, {self.number()})"
        if shape == 3:
            return f"coalesce({value}, {self.column()}, {self.number()})"
        if shape == 4:
            return f"({value} {self.random.choice('+-')} {self.random.choice((self.column(), self.number()))})"
        return f"(case {self.column()} when 1 then {self.column()} when {self.number()} then {value} end)"

    def bush(self, depth: int) -> str:
        """A tree of conditions."""
        if depth == 0:
            return f"{self.column()} {self.comparison()} {self.number()}"
        kind = self.random.random()
        if kind < 0.1:
            return f"not ({self.bush(depth - 1)})"
        if kind < 0.2:
            return f"(case when {self.bush(depth - 1)} then {self.bush(depth - 1)} else {self.bush(0)} end)"
        return f"({self.bush(depth - 1)} {self.random.choice(('or', 'and'))} {self.bush(depth - 1)})"

    def ors(self) -> str:
        """Many comparisons."""
        return " or ".join(
            f"{self.column()} {self.comparison()} {self.number()}" for _ in range(self.random.choice((9, 900)))
        )

    def list(self, value: str) -> str:
        """IN with a long list."""
        return f"{value} in ({', '.join(str(self.number()) for _ in range(self.random.choice((5, 500, 12_000))))})"

    def column(self) -> str:
        """A name."""
        return self.random.choice(COLUMNS)

    def comparison(self) -> str:
        """An operator."""
        return self.random.choice(("<", "<=", "=", "<>", ">", "<=>"))

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
    given = parser.parse_args()
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "6g")
        .config("spark.driver.extraJavaOptions", f"-Xss16m -Xms6g -Xmn{YOUNG_GENERATION} -XX:+UseSerialGC")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    jvm, fuzz, refused = Catalog(spark).jvm, Fuzz(given.seed), 0
    costs = Costs(jvm.lang.Runtime.getRuntime())
    worst = []
    with tempfile.TemporaryDirectory() as folder:
        frame = frame_of(Catalog(spark), table_of(spark, Path(folder) / "t", FILES, 0))
        frame.where("key = 1")._jdf.queryExecution().executedPlan().execute().getNumPartitions()  # type: ignore[operator]
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(given.conditions):
            condition = fuzz.condition()
            costs.found.clear()
            jvm.lang.System.gc()
            try:
                plan: Any = frame.where(condition)._jdf.queryExecution().executedPlan()  # type: ignore[operator]
                plan.execute().getNumPartitions()
            except Exception:  # Spark itself cannot parse or plan it
                refused += 1
            worst += [(*each, condition) for each in costs.found]
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    spark.stop()
    times, heaps = sorted(each[0] for each in worst), sorted(each[1] for each in worst)
    skipped = sum(each[2] < FILES for each in worst)
    print(f"{given.conditions:,} conditions, {refused:,} refused by Spark; {skipped:,} skipped files")
    for name, values, unit in (("callback", times, "ms"), ("Java's heap", [each / 2**20 for each in heaps], "MiB")):
        told = ", ".join(f"{100 * at:g} % {values[int(at * (len(values) - 1))]:.0f}" for at in (0.5, 0.9, 0.99, 1))
        print(f"{name}, {unit}: {told}")
    print(f"Python's memory grew by {grown:.0f} MiB in all")
    print(f"slowest: {max(worst)[3][:300]}")


if __name__ == "__main__":
    main()
