"""Plain Spark as the oracle: a skipped file has no matching row, an ALL_ROWS file only matching rows.

``ZLAYOUT_FUZZ_SECONDS=600`` goes on with new tables for so long; ``ZLAYOUT_FUZZ_SEED=7`` begins with another one. The
seed of each round is printed.
"""

import os
import time

import pytest
from comparing import same_checksum
from expression_predicates import expressions, random_predicates, seeded
from expression_tables import random_rows, write_rows
from judging import judged_files
from pyspark.sql.functions import expr

from dbt.adapters.zlayout.pruning.statistics.verdict import Verdict
from dbt.adapters.zlayout.table.ztable import ZTable

ZONES = ["Europe/Berlin", "America/New_York", "Asia/Kathmandu", "UTC", "Australia/Lord_Howe", "America/St_Johns", "Pacific/Apia", "+05:30"]  # fmt: skip
FIRST_SEED = int(os.environ.get("ZLAYOUT_FUZZ_SEED", "1"))
SECONDS = float(os.environ.get("ZLAYOUT_FUZZ_SECONDS", "0"))
PREDICATES = int(os.environ.get("ZLAYOUT_FUZZ_PREDICATES", "100"))
ANSI, ZONE = "spark.sql.ansi.enabled", "spark.sql.session.timeZone"
PUSHDOWN = "spark.sql.parquet.filterPushdown"


@pytest.fixture
def settings(spark):
    """The session's settings as they were, afterwards."""
    rebase = ("spark.sql.parquet.datetimeRebaseModeInRead", "spark.sql.parquet.datetimeRebaseModeInWrite")
    before = {name: spark.conf.get(name) for name in (ANSI, ZONE, PUSHDOWN, *rebase)}
    for name in rebase:
        spark.conf.set(name, "CORRECTED")
    # Filters that Spark hands to its Parquet reader lose rows of any table on 1582-10-15 in some time zones.
    spark.conf.set(PUSHDOWN, "false")
    yield spark.conf
    for name, value in before.items():
        spark.conf.set(name, value)


def table_of(spark, tmp_path, seed, name="z.random"):
    path = str(tmp_path / f"rows{seed}.parquet")
    write_rows(random_rows(seed), path)
    spark.sql(f"drop table if exists {name}")
    frame = spark.read.parquet(path)
    ZTable.write(spark, name, frame, zorder=["id"], partition_by=["g"], stats_columns=50)
    return frame


def plain_rows(spark, name="z.random"):
    """The table's rows as plain Spark reads its files, none of our code in between."""
    table = ZTable.for_name(spark, name)
    uris = [f"{table.location}/{each}" for each in table.snapshot().files.column("path").to_pylist()]
    # Spark would prefer the manifest that lies at the root: the files are named one by one, their partition by hand.
    rows = spark.read.schema(spark.table(name).drop("g").schema).parquet(*uris)
    return rows.withColumn("g", expr("cast(regexp_extract(input_file_name(), 'g=([0-9]+)', 1) as int)"))


def known_values(rows):
    """Type and some values, as text, of each expression."""
    some, found = rows.where("id % 5 = 0"), {}
    every = expressions()
    for start in range(0, len(every), 60):
        batch = every[start : start + 60]
        kinds = [each.dataType.simpleString() for each in some.selectExpr(*batch).schema]
        texts = some.selectExpr(*(f"collect_set(cast({each} as string))" for each in batch)).collect()[0]
        found |= {each: (kind, sorted(text)) for each, kind, text in zip(batch, kinds, texts, strict=True)}
    return found


def counted(rows, predicates):
    """For each predicate: each file's rows, and those of them that match."""
    counts = [f"count(case when {each} then 1 end) c{number}" for number, each in enumerate(predicates)]
    grouped = rows.selectExpr("*", "input_file_name() uri").groupBy("uri")
    made = grouped.agg(expr("count(*) n"), *map(expr, counts)).collect()
    return {
        predicate: {row["uri"].rsplit("/", 1)[1]: (row["n"], row[f"c{number}"]) for row in made}
        for number, predicate in enumerate(predicates)
    }


def judged(spark, predicate, truth):
    """Compares verdicts with the truth; returns the number of files skipped and taken whole."""
    paths, pruned = judged_files(spark, "z.random", predicate)
    skipped = whole = 0
    for path, verdict in zip(paths, pruned.verdict, strict=True):
        rows, matching = truth[path.rsplit("/", 1)[-1]]
        if verdict == Verdict.SKIP:
            skipped += 1
            assert matching == 0, f"{predicate}: {path} is skipped and has {matching} of {rows} rows"
        elif verdict == Verdict.ALL_ROWS:
            whole += 1
            assert matching == rows, f"{predicate}: {path} is taken whole and has {matching} of {rows} rows"
    return skipped, whole


def one_round(spark, tmp_path, seed):
    rng = seeded(seed)
    spark.conf.set(ZONE, "UTC")
    table_of(spark, tmp_path, seed)
    spark.conf.set(ZONE, ZONES[seed % len(ZONES)])
    # A row's value is the same in both modes, except that ANSI raises an error where the other wraps around.
    spark.conf.set(ANSI, "false")
    rows = plain_rows(spark)
    predicates = list(dict.fromkeys(random_predicates(rng, known_values(rows), PREDICATES)))
    truth = {}
    for start in range(0, len(predicates), 50):
        truth |= counted(rows, predicates[start : start + 50])
    spark.conf.set(ANSI, str(seed % 2 == 0).lower())
    totals = [judged(spark, each, truth[each]) for each in predicates]
    print(
        f"seed {seed} {spark.conf.get(ZONE)} ansi={spark.conf.get(ANSI)}: {len(totals)} predicates on "
        f"{len(truth[next(iter(truth))])} files, {sum(t[0] for t in totals)} skipped, {sum(t[1] for t in totals)} whole"
    )
    assert sum(t[0] for t in totals) > len(totals)
    spark.conf.set(ANSI, "false")
    for each in predicates[:4]:
        assert same_checksum(spark.table("z.random").where(each), rows.where(each)), each
    return len(totals)


@pytest.mark.parametrize("seed", [FIRST_SEED, pytest.param(FIRST_SEED + 1, marks=pytest.mark.slow)])
def test_no_expression_skips_a_matching_row(spark, settings, tmp_path, seed):
    assert one_round(spark, tmp_path, seed) > PREDICATES * 0.9


@pytest.mark.skipif(not SECONDS, reason="ZLAYOUT_FUZZ_SECONDS is not set")
def test_no_expression_skips_a_matching_row_for_a_long_time(spark, settings, tmp_path):
    end, seed, total = time.monotonic() + SECONDS, FIRST_SEED + 2, 0
    while time.monotonic() < end:
        total += one_round(spark, tmp_path, seed)
        seed += 1
    print(f"{total} predicates on {seed - FIRST_SEED - 2} tables")
