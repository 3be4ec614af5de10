"""The same query to Spark and to engines that know nothing of this package: they read the published Delta table."""

import sys
import time
from dataclasses import dataclass
from pathlib import Path

from measure import CLUSTERED

from dbt.adapters.zlayout import ZTable, explain_query

# The suite of published tables has the readers.
sys.path += [str(Path(__file__).parents[1] / "engine"), str(Path(__file__).parents[2] / ".ci")]
COLUMNS = "l_orderkey, l_linenumber, l_partkey, l_quantity, l_shipdate"


@dataclass(frozen=True)
class Answer:
    """What one engine answered.

    Attributes:
        engine: Its name.
        rows: Its rows, sorted.
        files: Files that it read; None if it does not say.
        seconds: Of the query, the best of some runs after a first one.
    """

    engine: str
    rows: list
    files: int | None
    seconds: float


def answers(spark, scale_factor, runs=3):
    """Publishes the table lineitem, and asks all engines for the items of two weeks and two per cent of the parts."""
    from delta_readers import READERS, files_opened_by_clickhouse, files_opened_by_duckdb

    parts = int(200_000 * scale_factor)
    condition = (
        f"l_shipdate between date '1995-03-01' and date '1995-03-14' and l_partkey between {parts // 2} "
        f"and {parts // 2 + parts // 50}"
    )
    name = f"{CLUSTERED}.lineitem"
    table = ZTable.for_name(spark, name)
    table.publish(["delta"])
    folder = table.location.removeprefix("file://")
    sql = f"select {COLUMNS} from {name} where {condition}"
    found = [Answer("Spark", *_asked(lambda: map(tuple, spark.sql(sql).collect()), _files_of(spark, sql), runs))]
    counted = {"duckdb": ("DuckDB", files_opened_by_duckdb), "clickhouse": ("ClickHouse", files_opened_by_clickhouse)}
    counted["polars"] = ("Polars", lambda *_: None)
    for key, (engine, files_opened) in counted.items():

        def rows(read=READERS[key]):
            return (tuple(row.values()) for row in read(folder, condition, COLUMNS).to_pylist())

        found.append(Answer(engine, *_asked(rows, files_opened(folder, condition), runs)))
    return found, len(table.snapshot().files)


def _files_of(spark, sql):
    return sum(scan.kept_files for scan in explain_query(spark, sql))


def _asked(ask, files, runs):
    rows, seconds = sorted(ask()), []
    for _ in range(runs):
        start = time.perf_counter()
        list(ask())
        seconds.append(time.perf_counter() - start)
    return rows, files, min(seconds)
