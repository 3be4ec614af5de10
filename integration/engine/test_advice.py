"""Advice on real tables: what it promises is what a table with these keys reads, and zorder='auto' follows it."""

import pytest
from pyspark.sql import functions

from dbt.adapters.zlayout.adapter.operations.advising import ProjectWorkload
from dbt.adapters.zlayout.adapter.operations.linting import rewritten_condition
from dbt.adapters.zlayout.errors import ConfigError
from dbt.adapters.zlayout.predicate.expr import columns_of
from dbt.adapters.zlayout.spark.read.conditions import predicates_of
from dbt.adapters.zlayout.spark.read.scan_log import logged_workload, read_scans
from dbt.adapters.zlayout.spark.read.session import enable
from dbt.adapters.zlayout.table.ztable import ZTable

ROWS = 60_000
OPTIONS = {"target_file_size": "100kb", "stats_columns": 10}
WORKLOAD = [("customer = 17", 5), ("amount between 3 and 5", 3), "day >= '2024-02-25'"]


@pytest.fixture(scope="module")
def events(spark):
    frame = spark.range(ROWS).selectExpr(
        "id",
        "date_add(date'2024-01-01', cast(id / 1000 as int)) as day",
        "cast(pmod(hash(id), 500) as int) as customer",
        "cast(pmod(hash(id, 1), 10000) / 100.0 as decimal(10, 2)) as amount",
        "named_struct('city', concat('c', pmod(hash(id, 3), 40)), 'zip', pmod(hash(id, 4), 90)) as address",
        "sha1(cast(id as string)) as token",
    )
    return frame.cache()


@pytest.fixture(scope="module")
def by_day(spark, events):
    return ZTable.write(spark, "z.advised", events, zorder=["day"], **OPTIONS)


def opened_rows(table, condition):
    """The share of the rows that lie in files which a query reads, by what Spark is told to read."""
    return table.clustering_information(["day"], predicate=condition).predicate.kept_rows / ROWS


@pytest.mark.slow
def test_conditions_inside_subqueries_are_about_other_tables(spark):
    spark.range(10).selectExpr("id k", "id a").createOrReplaceTempView("others")
    schema_json = spark.sql("select 1L a, 2L b, 3L c").schema.json()
    conditions = [
        "a in (select k from others where a > 5) and b = 1",
        "exists (select 1 from others o where o.a > 3 and o.k = c) and b < 2",
        "b not in (select k from others where a > 7)",
    ]
    found = predicates_of(spark, schema_json, conditions, "t")
    named = [{path[0] for path in columns_of(each)} for each in found]
    assert ["b" in each for each in named] == [True, True, False]
    assert all(number not in str(each) for number, each in zip("537", found, strict=True))
    with pytest.raises(ConfigError, match="condition .* does not fit the table"):
        predicates_of(spark, schema_json, ["(" * 5_000 + "a = 1" + ")" * 5_000], "t")


def test_what_advice_promises_is_what_the_table_then_reads(spark, events, by_day):
    before = by_day.version
    found = by_day.advise(WORKLOAD)
    assert (found.change, found.zorder_now, ZTable.for_name(spark, "z.advised").version) == ("layout", ("day",), before)
    for each in found.predicates:
        assert each.opened_now == pytest.approx(opened_rows(by_day, each.predicate), abs=1e-4)
    after = ZTable.write(spark, "z.as_advised", events, zorder=list(found.zorder), workload=WORKLOAD, **OPTIONS)
    assert found.by_workload == (after.information().get("auto_keys") is not None)
    real = sum(each.weight * opened_rows(after, each.predicate) for each in found.predicates) / 9
    assert real == pytest.approx(found.opened_then, rel=0.25)
    assert real < 0.7 * found.opened_now


def test_conditions_on_fields_and_functions_count_as_pruning_reads_them(by_day):
    found = by_day.advise(
        workload=[
            "address.city = 'c7'",
            "date_trunc('month', day) = '2024-02-01'",
            "token = '5ba93c9db0cff93f52b521d7420e43f6eda2784f'",
        ]
    )
    by_text = {each.predicate: each for each in found.predicates}
    month = by_text["date_trunc('month', day) = '2024-02-01'"]
    assert month.opened_now < 0.6
    assert "token" in found.bloom
    assert found.zorder[0] in ("address.city", "day")


def test_expressions_and_columns_whose_statistics_would_help_are_named(spark, events):
    frame = events.select("id", "customer", "day", "token")
    table = ZTable.write(spark, "z.untold", frame, zorder=["id"], **{**OPTIONS, "stats_columns": ["customer"]})
    found = table.advise([("id < 100", 90), "day = '2024-01-05'", ("reverse(token) = 'ab'", 9)])
    settings = {each.setting: each for each in found.settings}
    assert settings["stats_expressions"].then == "+ reverse(token)"
    assert "9% of the workload compares" in settings["stats_expressions"].why
    # Rows come by id and so by day, but nothing tells which days a file holds.
    of_day = next(each for each in found.predicates if "day" in each.predicate)
    assert (of_day.opened_now, of_day.opened_then) == (1.0, 1.0)


def test_a_function_that_has_bounds_in_no_file_needs_statistics_of_its_own(by_day):
    found = by_day.advise(["upper(token) = 'AB'", "date_trunc('month', day) = '2024-02-01'"])
    assert [(each.setting, each.then) for each in found.settings] == [("stats_expressions", "+ upper(token)")]


def test_a_table_that_is_only_indexed_must_become_managed_first(spark, events, tmp_path):
    events.select("id", "day", "token").repartitionByRange(8, "id").write.parquet(str(tmp_path / "t"))
    spark.sql(f"create table z.outside using parquet location '{tmp_path}/t'")
    table = ZTable.adopt(spark, "z.outside")
    found = table.advise(["day = '2024-01-05'", "reverse(token) = 'ab'"])
    assert any("only indexed" in note and "--manage" in note for note in found.notes)
    advice = table.explain("reverse(token) = 'ab'").conjuncts["advice"].drop_null().to_pylist()
    assert advice[0].startswith("make the table managed, as one that is only indexed has none, then ask for statistics")


def test_a_condition_that_does_not_fit_is_named(by_day):
    with pytest.raises(ConfigError, match=r"'nope = 1' does not fit the table"):
        by_day.advise(["day = '2024-01-01'", "nope = 1"])
    with pytest.raises(ConfigError, match="no condition compares a column"):
        by_day.advise(["rand() < 0.5"])
    with pytest.raises(ConfigError, match=r"workload: 'false' is never true; 'true' is always true$"):
        by_day.advise(["false", "true"])
    for wrong in (-1, 2, float("nan"), "x", None):
        with pytest.raises(ConfigError, match=r"min_gain: .* is not a number from 0 to 1"):
            by_day.advise(["customer = 7"], min_gain=wrong)


@pytest.mark.parametrize(
    ("condition", "usual"),
    [
        ("CAST(t AS DATE) = DATE '2024-03-01'", {"2024-03-01", "2024-03-01 10:00:00", "2024-03-01T00:00:00Z"}),
        ("CAST(t AS INT) = 5", {"5"}),
    ],
)
def test_a_rewritten_condition_finds_only_rows_of_the_original(spark, condition, usual):
    days = ["2024-03-01", "2024-3-1", " 2024-03-01", "2024-03-01 ", "2024-03-012", "2024-03-01x", "2024-03-01-old"]
    days += ["2024-03-01 10:00:00", "2024-03-01T00:00:00Z", "2024-03-01t", "2024-03-0", "2024-03", "", None]
    numbers = ["5", "05", " 5", "5 ", "5.0", "5.9", "5x", "55", "+5"]
    spark.createDataFrame([(each,) for each in [*days, *numbers]], "t string").createOrReplaceTempView("spellings")
    better, _ = rewritten_condition(condition, {"t": "string"})
    ansi = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        found = {row.t for row in spark.sql(f"select t from spellings where {condition}").collect()}
        rewritten = {row.t for row in spark.sql(f"select t from spellings where {better}").collect()}
    finally:
        spark.conf.set("spark.sql.ansi.enabled", ansi)
    assert usual <= rewritten <= found


@pytest.mark.slow
def test_auto_chooses_keys_with_one_run_of_the_query_and_keeps_them(spark, events):
    seen = spark.sparkContext.accumulator(0)

    def count(value):
        seen.add(1)
        return value

    counted = functions.udf(count, "int").asNondeterministic()
    frame = events.withColumn("customer", counted("customer"))
    told = []
    options = {"zorder": "auto", "workload": WORKLOAD, "progress": told.append, **OPTIONS}
    table = ZTable.write(spark, "z.auto", frame, **options)
    assert seen.value == ROWS
    keys = table.information()["zorder"]
    assert "customer" in keys
    assert [line for line in told if line.startswith(f"zorder: auto chooses {', '.join(keys)}: cluster by ")]
    assert table.information()["auto_keys"].startswith("cluster by ")
    assert opened_rows(table, "customer = 17") < 0.5
    assert table.read().count() == ROWS

    # Other writers keep the keys, whether they name settings or not.
    table.append(events.limit(10))
    table.cluster()
    assert ZTable.for_name(spark, "z.auto").information()["zorder"] == keys
    again = ZTable.write(spark, "z.auto", events, **options)
    assert again.information()["zorder"] == keys
    assert again.last_commit.data_passes == 1
    assert any(line.startswith("zorder: auto keeps ") for line in told)


HOT = [
    *((f"day between '2024-02-{day}' and '2024-02-{day + 1}'", 10) for day in range(20, 28)),
    *((f"customer = {customer}", 2) for customer in range(3, 400, 60)),
    *((f"amount between {low} and {low + 2}", 1) for low in range(5, 90, 12)),
]


def mean_opened(table):
    return sum(weight * opened_rows(table, sql) for sql, weight in HOT) / sum(weight for _, weight in HOT)


@pytest.mark.slow
def test_cuts_follow_a_workload_for_given_keys_and_later_rows_follow_them(spark, events):
    keys, told = ["day", "customer", "amount"], []
    plain = ZTable.write(spark, "z.by_rows", events, zorder=keys, **OPTIONS)
    table = ZTable.write(spark, "z.by_queries", events, zorder=keys, workload=HOT, progress=told.append, **OPTIONS)
    assert table.information()["zorder"] == keys
    (line,) = [line for line in told if line.startswith("workload: the cuts follow it: ")]
    assert table.information()["auto_keys"] in line
    before = mean_opened(plain)
    assert mean_opened(table) < 0.7 * before
    assert table.read().count() == ROWS

    # Appended rows and a clustering of the whole table are cut for the same queries.
    table.append(events.sample(0.5, seed=1))
    table.cluster(rewrite_all=True)
    assert mean_opened(ZTable.for_name(spark, "z.by_queries")) < 0.7 * before

    # A write of all rows keeps them while the settings name a workload.
    again = ZTable.write(spark, "z.by_queries", events, zorder=keys, workload=HOT, progress=told.append, **OPTIONS)
    assert any(line.startswith("workload: the cuts stay as they are") for line in told)
    assert mean_opened(again) < 0.7 * before
    without = ZTable.write(spark, "z.by_queries", events, zorder=keys, **OPTIONS)
    assert mean_opened(without) == pytest.approx(before, rel=0.15)


@pytest.mark.slow
def test_auto_changes_keys_only_past_the_gain(spark, events):
    told = []
    options = {"zorder": "auto", "progress": told.append, **OPTIONS}
    first = ZTable.write(spark, "z.moving", events, workload=["day between '2024-02-01' and '2024-02-03'"], **options)
    assert first.information()["zorder"] == ["day"]
    second = ZTable.write(spark, "z.moving", events, workload=[("customer = 17", 50), "day = '2024-02-01'"], **options)
    assert second.information()["zorder"][0] == "customer"
    assert any("zorder: auto chooses customer" in line for line in told)


@pytest.mark.slow
def test_a_merge_on_read_table_is_advised_and_follows_its_workload_through_logs_and_compaction(spark, events):
    mor = {"table_type": "merge_on_read", "unique_key": ["id"], **OPTIONS}
    rows = events.where("id < 20000")
    plain = ZTable.write(spark, "z.mor_plain", rows, zorder=["day"], **mor)
    plain.upsert(rows.where("id % 400 = 0").withColumn("customer", functions.lit(17)))
    found = ZTable.for_name(spark, "z.mor_plain").advise(WORKLOAD)
    assert (found.change, found.zorder_now) == ("layout", ("day",))
    assert found.opened_then < 0.8 * found.opened_now <= 0.8

    table = ZTable.write(spark, "z.mor_auto", rows, zorder="auto", workload=WORKLOAD, **mor)
    keys = table.information()["zorder"]
    assert "customer" in keys
    table.upsert(rows.where("id % 400 = 0").withColumn("customer", functions.lit(17)))
    table.compact()
    again = ZTable.for_name(spark, "z.mor_auto")
    assert again.information()["zorder"] == keys
    assert again.read().where("customer = 17").count() == rows.where("customer = 17 or id % 400 = 0").count()
    assert again.advise(WORKLOAD).opened_now < 0.8 * found.opened_now


def test_auto_without_a_workload_writes_without_keys(spark, events):
    told = []
    table = ZTable.write(spark, "z.unasked", events.limit(100), zorder="auto", progress=told.append)
    assert table.information()["zorder"] == []
    assert told == ["zorder: auto keeps the keys as they are, because no workload is known yet"]


def project_of(spark, exposures=(), **queries):
    """What a project with these models asks."""
    model = {"resource_type": "model", "schema": "z"}
    nodes = {
        f"model.{each}": {**model, "name": each, "alias": each, "compiled_code": queries[each]} for each in queries
    }
    shown = {"resource_type": "exposure", "name": "e", "depends_on": {"nodes": [f"model.{each}" for each in exposures]}}
    return ProjectWorkload(spark, {**nodes, "exposure.e": shown}, None)


@pytest.mark.slow
def test_joins_count_where_their_values_skip_partitions_and_are_named_where_they_do_not(spark, events):
    days = events.selectExpr("id", "day", "customer").where("day < '2024-01-25'")
    facts = ZTable.write(spark, "z.joined_facts", days, partition_by=["day"], zorder=["customer"], **OPTIONS)
    dates = (
        "select date_add(date'2024-01-01', cast(id / 300 as int)) as day, id / 300 as number, sha1(string(id)) as text"
    )
    ZTable.write(spark, "z.joined_dates", spark.sql(f"{dates} from range({24 * 300})"), zorder=["day"], **OPTIONS)
    vips = spark.sql("select cast(id as int) as customer, id % 3 as rank from range(3)")
    ZTable.write(spark, "z.joined_vips", vips)
    last = "select f.id from z.joined_facts f join z.joined_dates d on f.day = d.day where d.day between '2024-01-05' and '2024-01-06' and d.number > 0"
    late = "select f.id from z.joined_facts f join z.joined_dates d on f.day = d.day where d.number >= 22"
    vip = "select f.id from z.joined_facts f join z.joined_vips v on f.customer = v.customer where v.rank = 1"

    workload = project_of(spark, last=last, late=late, vip=vip, exposures=["late"])
    found = {each.source: each for each in workload.of(facts)}
    # Spark itself infers a condition from the constants of `last`; those of `late` come from the files of its dates.
    assert "day >= DATE '2024-01-05'" in found["last"].sql
    assert (found["late"].weight, found["late"].joined) == (2.0, ("day",))
    (reads,) = facts.reads([found["late"].sql])
    assert 0 < reads.files_read <= reads.files_total / 2
    # Nothing skips by the customers of `vip`.
    assert (found["vip"].sql, found["vip"].joined) == ("customer IS NOT NULL", ())
    (note,) = workload.join_notes(facts)
    assert note.startswith(
        "vip joins customer with a small table, which does not let Spark skip files; zlayout_prune_by"
    )

    joined = facts.advise([*workload.of(facts), ("customer = 17", 50)])
    assert joined.partition_by == ("day",)
    assert joined.notes[-1] == "the partition columns stay: joins skip by day while they run"


@pytest.mark.slow
def test_each_session_logs_its_scans_as_its_settings_say(spark, by_day, tmp_path):
    a, b, quiet = spark.newSession(), spark.newSession(), spark.newSession()
    enable(a, scan_log=tmp_path / "a")
    b.conf.set("spark.zlayout.scanLogConstants", "false")
    enable(b, scan_log=tmp_path / "b")
    enable(quiet)
    query = "select count(*) from z.advised where customer = 17 and upper(token) > 'SECRET'"
    assert len({tuple(each.sql(query).collect()) for each in (a, b, quiet)}) == 1
    a.conf.set("spark.zlayout.scanLog", "off")
    a.sql(query).collect()
    (of_a,), (of_b,) = read_scans(tmp_path / "a"), read_scans(tmp_path / "b")
    assert "customer = 17" in of_a.where
    assert of_b.where is None
    for each in (of_a, of_b):
        assert "customer = ?" in each.shape
        assert "17" not in each.shape
        assert "SECRET" not in each.shape
    for wrong in (5, "s3://bucket/scans"):
        with pytest.raises(ConfigError, match="name a local folder|not the path of a local folder"):
            enable(a, scan_log=wrong)


def test_a_query_of_a_merge_on_read_table_is_logged_once(spark, events, tmp_path):
    options = {**OPTIONS, "table_type": "merge_on_read", "unique_key": "id"}
    table = ZTable.write(spark, "z.logged_mor", events, zorder=["id"], **options)
    table.upsert(events.where("id % 5000 = 3"))
    session = spark.newSession()
    enable(session, scan_log=tmp_path)
    assert session.sql("select count(*) from z.logged_mor where customer = 17").head()[0] > 0
    session.sql("select count(*) from z.logged_mor").head()
    asked = logged_workload(read_scans(tmp_path), ["z.logged_mor", "z.logged_mor__files"])
    assert sorted((each.sql, each.weight) for each in asked) == [("customer = 17", 1.0), ("true", 1.0)]


def test_the_keys_of_a_merge_count_as_conditions_that_skip_files(spark, events, tmp_path):
    table = ZTable.write(spark, "z.merged", events, zorder=["customer"], **OPTIONS)
    enable(spark, scan_log=tmp_path)
    try:
        table.merge(events.where("id = 30007"), unique_key=["id"])
    finally:
        enable(spark, scan_log="off")
    asked = logged_workload(read_scans(tmp_path), ["z.merged"])
    assert [each.sql for each in asked] == ["id = 30007"]
    found = ZTable.for_name(spark, "z.merged").advise(asked)
    assert found.predicates[0].opened_now > 0.9
    assert found.bloom == ("id",) or "id" in found.zorder
