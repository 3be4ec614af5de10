"""What a query reads and how long it takes: on plain Parquet, on the clustered table without skipping, and with it."""

import statistics
import time
from dataclasses import dataclass

from dbt.adapters.zlayout import ZTable, enable, explain_query

PLAIN, CLUSTERED = "tpch_raw", "tpch"


@dataclass(frozen=True)
class Measured:
    """One query's numbers; seconds are medians, ``stages`` says how many files each pruning step leaves."""

    name: str
    files_read: int
    files_total: int
    rows_read: int
    rows_total: int
    rows_returned: int
    plain_seconds: float
    unskipped_seconds: float
    skipped_seconds: float
    equal: bool
    stages: dict[str, int]

    @property
    def share_of_files(self):
        return self.files_read / self.files_total


def measured(spark, queries, runs=5):
    """Measures each query; from here on the session skips files."""
    # Plain Spark first: once enabled, the session keeps skipping.
    plain = [_timed(spark, query.sql.format(schema=PLAIN), runs) for query in queries]
    unskipped = [_timed(spark, query.sql.format(schema=CLUSTERED), runs) for query in queries]
    enable(spark)
    found = []
    for query, (plain_rows, plain_seconds), (full_rows, full_seconds) in zip(queries, plain, unskipped, strict=True):
        sql = query.sql.format(schema=CLUSTERED)
        rows, seconds = _timed(spark, sql, runs)
        scans = [(scan, *_rows_of(spark, scan)) for scan in explain_query(spark, sql)]
        found.append(
            Measured(
                name=query.name,
                files_read=sum(scan.kept_files for scan, _, _ in scans),
                files_total=sum(scan.total_files for scan, _, _ in scans),
                rows_read=sum(read for _, read, _ in scans),
                rows_total=sum(total for _, _, total in scans),
                rows_returned=len(rows),
                plain_seconds=plain_seconds,
                unskipped_seconds=full_seconds,
                skipped_seconds=seconds,
                equal=rows == plain_rows == full_rows,
                stages=_stages([scan for scan, _, _ in scans]),
            )
        )
    return found


def _stages(scans):
    """How many files of all scans are left after each step."""
    left = {}
    for scan in scans:
        for stage in scan.stages:
            left[stage.name] = left.get(stage.name, 0) + stage.files_after
    return left


def _timed(spark, sql, runs):
    """The sorted rows of a query and the median seconds of some runs after a first one that is not counted."""
    rows = sorted(spark.sql(sql).collect())
    seconds = []
    for _ in range(runs):
        start = time.perf_counter()
        spark.sql(sql).collect()
        seconds.append(time.perf_counter() - start)
    return rows, statistics.median(seconds)


def _rows_of(spark, scan):
    files = ZTable.for_name(spark, scan.table).snapshot().files
    rows = dict(zip(files.column("path").to_pylist(), files.column("row_count").to_pylist(), strict=True))
    read = [each["path"] for each in scan.files.to_pylist() if each["verdict"] != "SKIP"]
    return sum(rows[path] for path in read), sum(rows.values())
