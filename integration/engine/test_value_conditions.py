"""Conditions that no rule understands skip files with few values: Spark evaluates them on the values while it plans."""

import pytest
from comparing import same_checksum
from scanned import Scans

from dbt.adapters.zlayout import enable
from dbt.adapters.zlayout.table.ztable import ZTable

pytestmark = pytest.mark.spark
# Eight files: in each one city, one amount, one float, three days, at most two numbers; in two of them nulls. Two zeros
# that compare as equal may be in a file, so files with d or f = 0 (0 and 4) are always read.
ROWS = """
  select p, id % 50 as i,
    case when p = 6 and id % 2 = 0 then null when p = 7 then null
      else element_at(array('Bonn', 'Ulm', 'Jena', 'İzmir', '', 'ß it''s', 'Kiel'), cast(p + 1 as int)) end as city,
    cast(p * 10 + 0.5 as decimal(20, 3)) as amount, if(p = 3, double('NaN'), if(p = 4, if(id % 2 = 0, -0.0D, 0.0D), p / 3.0D)) as d,
    cast(p / 3.0D as float) as f, timestamp_micros(1709164800000000 + p * 259200000000 + id * 259000000) as ts,
    date_add(date'2024-02-27', cast(p * 3 + id % 3 as int)) as dt, p % 3 * 2 + id % 2 as n,
    cast(concat('b', p) as binary) as b, timestamp_ntz'2024-01-01 00:00:00' + make_dt_interval(cast(p as int)) as ntz, p % 2 = 0 as bo
  from (select id, id div 1000 as p from range(8000))
"""
CONDITIONS = [
    ("length(city) = 4", 3), ("lower(city) = 'bonn'", 1), ("upper(city) in ('ULM', 'KIEL')", 2), ("city rlike '^J'", 1),
    ("not (city rlike '^J')", 6), ("city like '%n%'", 2), ("reverse(city) = 'mlU'", 1), ("md5(city) = md5('Ulm')", 1), ("city like 'J_na'", 1),
    ("concat(city, '!') <=> null", 2), ("coalesce(length(city), -1) = -1", 2), ("length(city) is null", 2), ("length(city) > 3 or n < 0", 5),
    ("cast(city as int) > 3", 0), ("try_cast(city as int) > 3", 0), ("length(city) = 0 and n >= 0", 1), ("hash(city) % 2 in (0, 1, -1)", 8),
    ("cast(amount as string) = '30.500'", 1), ("cast(d as string) = '-0.0'", 2), ("cast(d as string) = 'NaN'", 3), ("sqrt(d) is null", 2),
    ("cast(f as string) like '0.3%'", 2), ("hex(b) = '6232'", 1), ("date_format(ntz, 'EEEE') = 'Thursday'", 1), ("not bo or isnull(sin(n))", 4),
    ("sin(n) > 0.9", 3), ("bin(n) = '101'", 2), ("dayofweek(dt) = 5", 4), ("date_format(dt, 'dd.MM.') = '29.02.'", 1), ("weekofyear(dt) = 11", 3),
    ("date_format(ts, 'dd/MM/yyyy') = '02/03/2024'", 1), ("date_format(ts, 'EEE') = 'Sun'", 4), ("date_format(ts, 'EEE') <> 'Sun'", 8),
    ("date_format(ts, 'HH') = '07'", 8), ("date_format(ts, 'yyyy-MM-dd EEE') like '2024-03-1% Mon'", 2), ("rand(3) < 0.5 and length(city) = 3", 1),
]  # fmt: skip


@pytest.fixture(scope="module")
def source(spark):
    enable(spark)
    ZTable.write(spark, "z.few", spark.sql(ROWS), zorder=["i"], partition_by=["p"], stats_columns=50)
    assert len(ZTable.for_name(spark, "z.few").snapshot().files) == 8
    return spark.sql(ROWS)


@pytest.mark.parametrize(
    ("condition", "files"),
    [pytest.param(*each, marks=pytest.mark.slow if number % 2 else ()) for number, each in enumerate(CONDITIONS)],
)
def test_a_condition_on_few_values_opens_few_files_and_gives_the_rows_of_plain_spark(spark, source, condition, files):
    plain = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        with Scans(spark) as scans:
            spark.table("z.few").where(condition).select("p", "city").collect()
        assert scans.files == ([files] if scans.scans else []), condition
        if "rand" not in condition:
            assert same_checksum(spark.table("z.few").where(condition), source.where(condition))
    finally:
        spark.conf.set("spark.sql.ansi.enabled", plain)


def test_a_condition_that_raises_an_error_for_a_value_keeps_its_files(spark, source):
    plain = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", "true")
    try:
        for table in (spark.table("z.few"), source):
            with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
                table.where("cast(city as int) > 3").collect()
        found = ZTable.for_name(spark, "z.few").explain("cast(b as string) = 'b2' and cast(city as int) > 3")
        assert found.kept_files == 1
    finally:
        spark.conf.set("spark.sql.ansi.enabled", plain)


def test_explanations_name_the_values_and_a_file_may_match_whole(spark, source):
    found = ZTable.for_name(spark, "z.few").explain("length(city) <= 3")
    by_path = dict(zip(found.files["path"].to_pylist(), found.files.to_pylist(), strict=True))
    first = next(each for path, each in by_path.items() if path.startswith("p=0/"))
    assert first["reason"].startswith("city: ['Bonn', 'Bonn'] has no value for which (length(")
    assert {path[:4] for path, each in by_path.items() if each["verdict"] == "ALL_ROWS"} == {"p=1/", "p=4/"}
    assert found.conjuncts["usable"].to_pylist()[-1]


@pytest.mark.slow
def test_local_days_follow_the_time_zone_and_its_changes(spark, source):
    before = spark.conf.get("spark.sql.session.timeZone")
    try:
        for zone in ("America/St_Johns", "Pacific/Apia", "Europe/Berlin", "UTC"):
            spark.conf.set("spark.sql.session.timeZone", zone)
            for pattern in ("EEE", "dd.MM.", "d MMMM yyyy", "D", "HH"):
                days = source.selectExpr(f"date_format(ts, '{pattern}') t").distinct().collect()
                for (day,) in days[::7]:
                    condition = f"date_format(ts, '{pattern}') = '{day}'"
                    plain = source.where(condition)
                    found = spark.table("z.few").where(condition)
                    assert found.count() == plain.count() > 0, (zone, condition)
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def test_text_bounds_of_sparks_own_writer_prove_that_files_match_whole(spark, tmp_path):
    """Its footers do not say whether text bounds are values of the file. That does not matter here."""
    frame = spark.range(900).selectExpr(
        "cast(id div 300 as int) p", "element_at(array('abc', 'abd', 'x'), cast(id div 300 + 1 as int)) b"
    )
    table = ZTable.write(spark, "z.native", frame, zorder=["b"], partition_by=["p"], writer="spark")

    def verdicts(condition):
        found = table.explain(condition).files
        return dict(
            sorted(zip([path[:3] for path in found["path"].to_pylist()], found["verdict"].to_pylist(), strict=True))
        )

    assert verdicts("b <> 'abc'") == {"p=0": "SKIP", "p=1": "ALL_ROWS", "p=2": "ALL_ROWS"}
    assert verdicts("b = 'abc'") == {"p=0": "ALL_ROWS", "p=1": "SKIP", "p=2": "SKIP"}
    assert verdicts("b < 'd'") == {"p=0": "ALL_ROWS", "p=1": "ALL_ROWS", "p=2": "SKIP"}
    assert verdicts("b like 'ab%'") == {"p=0": "ALL_ROWS", "p=1": "ALL_ROWS", "p=2": "SKIP"}
    with Scans(spark) as scans:
        assert table.count("b like 'ab%'") == 600
    assert sum(scans.files) == 0
