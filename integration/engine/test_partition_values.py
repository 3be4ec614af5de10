"""What the name of a folder cannot hold is refused when it is written; what it holds is read as plain Spark reads it."""

import pytest
from comparing import same_rows
from pyspark.sql import functions

from dbt.adapters.zlayout import enable
from dbt.adapters.zlayout.errors import WriteError
from dbt.adapters.zlayout.table.ztable import ZTable

ZONE = "spark.sql.session.timeZone"
BERLIN = "Europe/Berlin"


@pytest.fixture
def in_berlin(spark):
    before = spark.conf.get(ZONE)
    spark.conf.set(ZONE, BERLIN)
    yield spark
    spark.conf.set(ZONE, before)


def hours(spark, *seconds):
    """An hour before the clocks go back, the first and the second 02:30 of that night, and an hour later."""
    start = 1729985400
    return spark.sql(f"select id, timestamp_seconds({start} + 3600 * id) ts from range(4)").where(f"id in {seconds}")


@pytest.mark.parametrize("writer", ["arrow", "spark"])
def test_an_hour_that_the_clocks_show_twice_is_refused_where_it_would_come_back_earlier(in_berlin, writer):
    table = ZTable.write(in_berlin, "z.hours", hours(in_berlin, 0, 1, 3), partition_by=["ts"], writer=writer)
    found = in_berlin.sql("select id, cast(ts as long) from z.hours order by id").collect()
    assert [tuple(row) for row in found] == [(0, 1729985400), (1, 1729989000), (3, 1729996200)]
    with pytest.raises(WriteError, match=r"ts: the clocks of Europe/Berlin show 2024-10-27 02:30:00 twice.*set spark"):
        table.append(hours(in_berlin, 2, 3))
    assert ZTable.for_name(in_berlin, "z.hours").version == table.version


@pytest.mark.parametrize("writer", ["arrow", "spark"])
def test_the_text_that_folders_spell_null_with_is_refused(spark, writer):
    rows = spark.sql("select id, if(id = 1, '__HIVE_DEFAULT_PARTITION__', 'x') p from range(3)")
    with pytest.raises(WriteError, match=r"partition column p: the text '__HIVE_DEFAULT_PARTITION__' means null"):
        ZTable.write(spark, f"z.null_text_{writer}", rows, partition_by=["p"], writer=writer)
    rows = spark.sql("select id, if(id = 1, null, 'x') p from range(3)")
    ZTable.write(spark, f"z.null_text_{writer}", rows, partition_by=["p"], writer=writer)
    assert spark.table(f"z.null_text_{writer}").where("p is null").count() == 1


def test_after_a_change_of_zone_the_session_reads_folders_as_plain_spark_does(spark, in_berlin):
    enable(spark)
    ZTable.write(spark, "z.zoned", hours(spark, 0, 1, 3), partition_by=["ts"])
    query = "select id, cast(ts as long) s from z.zoned where ts < timestamp_seconds(1729992600)"
    assert spark.sql(query).count() == 2
    for zone in ("UTC", "America/New_York", BERLIN):
        plain = spark.newSession()  # one that read the table before keeps the values
        for session in (spark, plain):
            session.conf.set(ZONE, zone)
        assert sorted(spark.sql(query).collect()) == sorted(plain.sql(query).collect()), zone
        assert sorted(spark.table("z.zoned").collect()) == sorted(plain.table("z.zoned").collect()), zone


HOSTILE_VALUES = [
    *("a", "A", "a b", " lead", "trail ", "  ", ".", "..", "...", ".hidden", "_hidden", "a/b", "../x", "/a", "a\\b"),
    *(
        "a=b",
        "a=",
        "=a",
        "a%b",
        "%",
        "%2F",
        "%zz",
        "a:b",
        "a?b",
        "a#b",
        "a*b",
        "a&b",
        "a,b",
        "a;b",
        "a'b",
        'a"b',
        "a`b",
    ),
    *("{a}", "[a]", "^a", "a\tb", "a\nb", "\x7f", "null", "日本", "1", "01"),
]


@pytest.mark.exhaustive
@pytest.mark.parametrize("writer", ["arrow", "spark"])
def test_forty_two_hostile_values_are_partitions_that_are_read_as_they_were_written(spark, writer):
    assert len(set(HOSTILE_VALUES)) == 42
    enable(spark)
    name = f"z.hostile_values_{writer}"
    rows = spark.createDataFrame([(n, n % 3, v) for n, v in enumerate(HOSTILE_VALUES * 3)], "id long, k int, p string")
    table = ZTable.write(spark, name, rows, partition_by=["p"], zorder=["k"], writer=writer)
    assert len(set(table.snapshot().files.partition_values("p").to_pylist())) == 42
    table.append(rows)
    plain = spark.newSession()
    for value in HOSTILE_VALUES:
        expected = sorted([number for number, each in enumerate(HOSTILE_VALUES * 3) if each == value] * 2)
        for session in (spark, plain):
            found = session.table(name).where(functions.col("p") == functions.lit(value)).select("id").collect()
            assert sorted(row.id for row in found) == expected, value
    assert same_rows(spark.table(name), rows.union(rows))
    assert same_rows(plain.table(name), rows.union(rows))
    table.delete("p = '..'")
    assert spark.table(name).count() == 41 * 6
    assert table.verify(data=True).num_rows == 0
