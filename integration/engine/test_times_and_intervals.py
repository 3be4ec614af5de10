"""Times of the day and day-time intervals as keys and in conditions: the rows of plain Spark, from fewer files."""

from __future__ import annotations

import re

import pyspark
import pyspark.sql.types as t
import pytest
from comparing import same_rows
from indexed_rows import reads
from pyspark.sql import functions
from scanned import Scans

from dbt.adapters.zlayout.errors import ConfigError
from dbt.adapters.zlayout.spark.read.values_condition import values_predicate
from dbt.adapters.zlayout.table.ztable import ZTable

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(pyspark.__version__.startswith("3."), reason="Spark 3 has no keys of these types"),
]
# Spark has had intervals for longer than TIME. Without it, a timestamp takes its place.
HAS_TIME = hasattr(t, "TimeType")


@pytest.fixture(autouse=True, scope="module")
def time_type(spark):
    if HAS_TIME:
        spark.conf.set("spark.sql.timeType.enabled", "true")
        yield
        spark.conf.unset("spark.sql.timeType.enabled")
    else:
        yield


# Nulls, zero, both signs, and the ends of what each type holds.
ROWS = """
  select id, id % 7 = 0 odd,
    case when id % 11 = 0 then null
      when id = 1 then time'00:00:00' when id = 2 then time'23:59:59.999999'
      else make_time(cast(id * 7919 % 24 as int), cast(id % 60 as int), cast(id * 31 % 60 + 0.25 as decimal(16, 6))) end t,
    case when id % 13 = 0 then null
      when id = 1 then interval '-106751991 04:00:54.775808' day to second
      when id = 2 then interval '106751991 04:00:54.775807' day to second
      when id = 3 then interval '0' second
      else make_dt_interval(cast(id * 104729 % 4001 - 2000 as int), 0, 0, cast(id % 60 - 30.5 as decimal(18, 6))) end d,
    cast(make_dt_interval(cast(id % 401 - 200 as int)) as interval day) days,
    named_struct('t', time'12:00:00', 'd', interval '1' hour) st,
    array(time'00:00:01', null) list, map('k', interval '-1' second) by_name
  from range({rows})
"""

CONDITIONS = """
t = time'00:00:00'
t = time'23:59:59.999999'
t < time'01:00:00'
t >= time'23:00:00'
t between time'03:00:00' and time'03:59:59.999999'
t in (time'05:05:05.25', time'00:00:00', null)
t not in (time'05:05:05.25', time'00:00:00')
t <=> null
t is not null and t <> time'00:00:00'
cast(t as time(0)) = time'05:00:31'
hour(t) = 3
minute(t) = 3 and t < time'06:00:00'
d = interval '0' second
d < interval '-1990' day
d > interval '1990' day
d between interval '-3' day and interval '3' day
d in (interval '0' second, interval '5' day)
d = interval '-106751991 04:00:54.775808' day to second
d = interval '106751991 04:00:54.775807' day to second
d is null
not (d > interval '-1990' day)
cast(d as interval day) = interval '5' day
cast(d as interval day) = interval '0' day
abs(days) < interval '5' day
-days > interval '190' day
days + interval '1' day > interval '195' day
days * 2 > interval '390' day
extract(day from d) = 5
coalesce(d, interval '0' second) = interval '0' second
days = interval '7' day
days > interval '199 01:00:00' day to second
days = interval '24' hour
days in (interval '1' day, interval '2' day)
st.t = time'12:00:00'
st.d > interval '2' hour
d > interval '1000' day and t < time'06:00:00'
d > interval '1990' day or t < time'00:30:00'
""".strip().split("\n")

if not HAS_TIME:
    ROWS = re.sub(r"make_time\(.*\)( end t,)", r"timestamp_ntz'2026-01-01'\1", ROWS).replace("time'", "timestamp_ntz'")
    ROWS = re.sub(r"timestamp_ntz'(\d\d:)", r"timestamp_ntz'2026-01-01 \1", ROWS)
    CONDITIONS = [each for each in CONDITIONS if "time'" not in each and "(t" not in each]


def written(spark, name, rows=3_000, **options):
    source = spark.sql(ROWS.format(rows=rows)).cache()
    options = {"target_file_size": "4kb", "zorder": ["t", "d"], **options}
    return source, ZTable.write(spark, name, source, **options)


def differing(spark, name, source, conditions=CONDITIONS):
    """The conditions under which the table has other rows than the source."""
    table = spark.table(name)
    ids = lambda frame, condition: sorted(row[0] for row in frame.where(condition).select("id").collect())  # noqa: E731
    return [each for each in conditions if ids(table, each) != ids(source, each)]


@pytest.mark.slow
def test_a_clustered_table_has_the_rows_of_plain_spark_and_skips_files(spark):
    source, table = written(spark, "z.clock")
    files = len(table.snapshot().files)
    assert files >= 8
    assert same_rows(spark.table("z.clock"), source)
    assert differing(spark, "z.clock", source) == []
    narrow = ["t < time'01:00:00'"] if HAS_TIME else []
    for condition in (*narrow, "d < interval '-1500' day", "d in (interval '1600' day)"):
        assert reads(table, condition) < files / 2, condition
    with Scans(spark) as scans:
        spark.sql("select count(*) from z.clock where d > interval '1500' day").collect()
    assert scans.files[0] < files / 2
    # A column that is no key has statistics too, and a cast that only names a finer unit keeps them.
    assert (
        reads(
            ZTable.write(spark, "z.by_days", source, zorder=["days"], target_file_size="4kb"),
            "days > interval '199 01:00:00' day to second",
        )
        <= 2
    )
    explanation = table.explain("d < interval '-1990' day").to_text()
    assert "d < INTERVAL '-1990 00:00:00.000000' DAY TO SECOND" in explanation
    assert table.verify(data=True).num_rows == 0


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "options"), [
    (0, {}), (1, {}), (12, {}),
    (3_000, {"writer": "spark"}),
    (3_000, {"curve": "hilbert", "zorder": ["d", "id"]}),
    (3_000, {"zorder": ["id"], "bloom": ["t", "d"], "lookup": ["d", "t"]}),
    (3_000, {"zorder": ["st.t", "days"]}),
])  # fmt: skip
def test_every_way_to_write_gives_the_rows_of_plain_spark(spark, rows, options):
    source, table = written(spark, "z.clock_ways", rows, **options)
    assert same_rows(spark.table("z.clock_ways"), source)
    assert differing(spark, "z.clock_ways", source) == []
    assert table.verify(data=True).num_rows == 0
    if "lookup" in options:
        assert reads(table, "d = interval '106751991 04:00:54.775807' day to second") == 1
        assert not HAS_TIME or reads(table, "t = time'23:59:59.999999'") == 1


@pytest.mark.slow
@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
def test_rows_are_changed_and_clustered_by_such_keys(spark, table_type):
    keyed = {"unique_key": ["id"]} if table_type == "merge_on_read" else {}
    source, table = written(spark, "z.changing", 1_000, table_type=table_type, **keyed)
    more = spark.sql(ROWS.format(rows=1_500)).where("id >= 900").withColumn("t", functions.col("st.t"))
    table.merge(more, unique_key=["id"])
    expected = source.where("id < 900").unionByName(more)
    assert same_rows(spark.table("z.changing"), expected)
    table.delete("d > interval '1000' day or t is null")
    left = expected.where("not coalesce(d > interval '1000' day or t is null, false)")
    assert same_rows(spark.table("z.changing"), left)
    table.cluster(rewrite_all=True)
    assert same_rows(spark.table("z.changing"), left)
    assert differing(spark, "z.changing", left) == []
    assert table.verify(data=True).num_rows == 0


@pytest.mark.slow
@pytest.mark.parametrize("key", [*(["t"] if HAS_TIME else []), "d"])
def test_incoming_keys_of_these_types_skip_files(spark, key):
    source = spark.sql(ROWS.format(rows=3_000)).where(f"{key} is not null").dropDuplicates([key]).cache()
    table = ZTable.write(spark, "z.keyed", source, zorder=[key], target_file_size="4kb")
    changed = source.where("id % 700 = 5").withColumn("odd", source.odd.isNull())
    table.merge(changed, unique_key=[key])
    kept = source.join(changed.select(key), key, "left_anti")
    assert same_rows(spark.table("z.keyed"), kept.unionByName(changed))
    changed.createOrReplaceTempView("changed_keys")
    for most in (1_000, 1):
        found = values_predicate(spark, key, f"select {key} from changed_keys", most, 3)
        assert spark.table("z.keyed").where(found).join(changed, key, "left_semi").count() == changed.count()


def test_such_columns_are_no_folders_and_are_not_published(spark):
    source = spark.sql(ROWS.format(rows=10))
    words = {"t": "time", "d": "interval day to second"} if HAS_TIME else {"d": "interval day to second"}
    for column, word in words.items():
        with pytest.raises(ConfigError, match=f"partition_by: column '{column}' has type {word}; allowed are integers"):
            ZTable.write(spark, "z.no_folder", source.select("id", column), partition_by=[column])
    for column in words:
        for formats in ("delta", "iceberg"):
            with pytest.raises(ConfigError, match=f"publish: column '{column}' has type (time|interval)"):
                ZTable.write(spark, "z.not_published", source.select("id", column), publish=[formats])
