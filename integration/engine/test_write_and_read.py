"""What is written is what the query gave, in every type, shape and size, and plain Spark reads the same."""

from dataclasses import replace
from datetime import date

import pytest
from comparing import same_checksum, same_rows
from pyspark.sql import functions
from pyspark.sql.types import StructType

from dbt.adapters.zlayout import enable
from dbt.adapters.zlayout.errors import CommittedError, ConfigError, ConflictError, UnsupportedError, WriteError
from dbt.adapters.zlayout.predicate.literals import backquoted
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog, TableName
from dbt.adapters.zlayout.spark.read.relations import uninstall
from dbt.adapters.zlayout.spark.schema import table_schema
from dbt.adapters.zlayout.table.ztable import ZTable

ALL_TYPES = """
  select cast(id as int) i, id l, cast(id % 30000 as short) s, cast(id % 100 as byte) b,
    case when id % 7 = 0 then double('NaN') when id % 11 = 0 then -0.0D when id % 13 = 0 then null else id / 3.0D end d,
    cast(case when id % 9 = 0 then 'Infinity' when id % 10 = 0 then 'NaN' else string(id) end as float) f,
    cast(id * 1.37 as decimal(9, 2)) dec9, cast(id as decimal(18, 4)) dec18,
    cast(id as decimal(38, 10)) * cast(-1 as decimal(1, 0)) dec38,
    date_add(date'1500-01-01', cast(id % 30000 * 97 as int)) dt,
    timestamp_micros(id % 3000 * 86399999999 - 14000000000000000) ts,
    cast(timestamp_micros(id % 9000 * 8639999999) as timestamp_ntz) ntz,
    case when id % 5 = 0 then null else concat('ключ-', id % 50) end str,
    case when id % 17 = 0 then '' else concat('x', char(id % 60 + 40)) end str2,
    cast(concat('b', id % 40) as binary) bin, id % 2 = 0 bool,
    cast(null as string) nothing, cast(null as double) nothing_double,
    array(id, null, id + 1) arr, map('k', id, 'j', null) m,
    named_struct('a', id % 30, 'b', named_struct('c', string(id), 'd', cast(null as int))) st,
    interval '1' day * id dti
  from range({rows})
"""
KEYS = ["i", "l", "s", "b", "d", "f", "dec9", "dec18", "dec38", "dt", "ts", "ntz", "str", "str2", "bin", "bool"]


def written(spark, name, query, **options):
    source = spark.sql(query).cache()
    table = ZTable.write(spark, name, source, **options)
    return source, table


def as_plain_spark_reads(spark, name):
    uninstall(Catalog(spark), Catalog(spark).name(name))
    spark.catalog.refreshTable(name)
    return spark.table(name)


@pytest.mark.parametrize(
    "key",
    [
        pytest.param(key, marks=() if key in {"i", "d", "dec38", "ts", "str2"} else pytest.mark.exhaustive)
        for key in KEYS
    ],
)
def test_every_orderable_type_is_a_key_of_a_table_of_one_file(spark, key):
    source, _ = written(spark, f"z.one_{key.lower()}", ALL_TYPES.format(rows=300), zorder=[key])
    assert same_rows(spark.table(f"z.one_{key.lower()}"), source)
    assert same_rows(as_plain_spark_reads(spark, f"z.one_{key.lower()}"), source)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("curve", "keys"),
    [
        pytest.param("zorder", ["d", "str"], marks=pytest.mark.exhaustive),
        ("hilbert", ["dec38", "dt", "st.a"]),
        ("linear", ["ts", "bin"]),
        ("zorder", ["f", "ntz", "bool", "i", "s", "b", "l", "dec9"]),
    ],
)
def test_tables_of_many_files_hold_the_rows_of_the_query(spark, curve, keys):
    name = f"z.many_{curve}_{len(keys)}"
    query = ALL_TYPES.format(rows=40_000)
    if spark.version.startswith("3."):  # there, intervals go through Spark's own writer
        query = query.replace("interval '1' day * id dti", "1 dti")
    source, table = written(spark, name, query, zorder=keys, curve=curve, target_file_size="256kb")
    assert len(table.snapshot().files) > 4
    assert table.last_commit.data_passes == 2
    assert same_checksum(spark.table(name), source)
    assert same_checksum(as_plain_spark_reads(spark, name), source)


@pytest.mark.slow
def test_a_second_build_reuses_the_cuts_and_takes_one_pass(spark):
    query = "select id k, id * 7919 % 100003 v, uuid() u from range(200000)"
    ZTable.write(spark, "z.again", spark.sql(query), zorder=["k", "v"], target_file_size="512kb")
    table = ZTable.write(spark, "z.again", spark.sql(query), zorder=["k", "v"], target_file_size="512kb")
    assert table.version == 1
    assert table.last_commit.data_passes == 1
    assert spark.table("z.again").selectExpr("count(*)", "count(distinct k)", "sum(v)").collect()[0][:2] == (
        200000,
        200000,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "size", "keys"),
    [(0, "1mb", ["i"]), (1, "1mb", ["i"]), (300, "1mb", ["d", "str"]), (30_000, "256kb", KEYS[:8])],
)
def test_sparks_own_writer_gives_the_same_checksum(spark, rows, size, keys):
    name = f"z.spark_{rows}"
    query = ALL_TYPES.format(rows=rows).replace(
        "interval '1' day * id dti", "interval '3' month * cast(id % 100 as int) ymi"
    )
    source, table = written(spark, name, query, zorder=keys, writer="spark", target_file_size=size)
    assert len(table.snapshot().files) > (3 if rows > 1000 else -1)
    assert same_checksum(spark.table(name).drop("ymi"), source.drop("ymi"))
    assert (
        spark.table(name).selectExpr("count(ymi)", "max(string(ymi))").collect()
        == source.selectExpr("count(ymi)", "max(string(ymi))").collect()
    )
    assert same_checksum(as_plain_spark_reads(spark, name).drop("ymi"), source.drop("ymi"))
    assert table.index_status().num_rows == 0


@pytest.mark.slow
def test_sparks_own_writer_cuts_at_every_type_of_key(spark):
    query = ALL_TYPES.format(rows=20_000)
    for keys in (KEYS[8:12], KEYS[12:]):
        source, table = written(spark, "z.spark_keys", query, zorder=keys, writer="spark", target_file_size="200kb")
        assert len(table.snapshot().files) > 3
        assert same_checksum(spark.table("z.spark_keys").drop("dti"), source.drop("dti"))


@pytest.mark.slow
def test_sparks_own_writer_fills_partition_folders(spark):
    query = "select id, case when id % 3 = 0 then '01' when id % 3 = 1 then null else 'a b/c=%' end p, id % 2 q, id * 1.5 v from range(30000)"
    options = {"zorder": ["v"], "partition_by": ["p", "q"], "target_file_size": "32kb", "writer": "spark"}
    source, table = written(spark, "z.spark_parts", query, **options)
    assert len(table.snapshot().files) >= 6
    assert same_checksum(spark.table("z.spark_parts"), source)
    assert same_checksum(as_plain_spark_reads(spark, "z.spark_parts"), source)
    with pytest.raises(WriteError, match="`p`"):
        ZTable.write(spark, "z.spark_parts", source, not_null=["p"], **options)


@pytest.mark.slow
@pytest.mark.parametrize("partition_by", [[], ["p"]])
def test_sparks_own_writer_keeps_every_row_of_a_table_without_keys(spark, partition_by):
    name = f"z.spark_keyless_{len(partition_by)}"
    for rows in (0, 1, 20_000):
        query = f"select id, id % 3 p, concat('row ', id) v from range({rows})"
        source, table = written(spark, name, query, partition_by=partition_by, target_file_size="64kb", writer="spark")
        assert table.last_commit.rows == rows
        assert same_rows(spark.table(name), source)
        assert same_rows(as_plain_spark_reads(spark, name), source)
    assert len(table.snapshot().files) > 1
    assert table.append(spark.sql(query.replace("range(20000)", "range(5)"))).rows_inserted == 5
    assert spark.table(name).count() == 20_005


def test_types_that_arrow_lacks_go_through_sparks_writer_unasked(spark):
    query = "select id, interval '1' month * cast(id as int) m from range(100)"
    written(spark, "z.months", query, zorder=["id"])
    assert spark.table("z.months").where("m > interval '50' month").count() == 49


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_empty_and_tiny_results(spark, rows):
    source, table = written(spark, f"z.tiny_{rows}", ALL_TYPES.format(rows=rows), zorder=["d", "str"])
    assert table.snapshot().files.total_rows == rows
    assert same_rows(spark.table(f"z.tiny_{rows}"), source)
    assert same_rows(as_plain_spark_reads(spark, f"z.tiny_{rows}"), source)


@pytest.mark.slow
def test_keys_that_are_null_everywhere(spark):
    query = "select cast(null as int) a, cast(null as string) b, id, uuid() u from range(100000)"
    source, _ = written(spark, "z.nulls", query, zorder=["a", "b"], target_file_size="512kb")
    assert spark.table("z.nulls").where("a is null").count() == 100000
    assert same_rows(spark.table("z.nulls").select("id"), source.select("id"))


@pytest.mark.slow
def test_one_value_in_nine_rows_of_ten(spark):
    query = "select case when id % 10 < 9 then 5 else id end a, id % 1000 b, uuid() u from range(200000)"
    source, table = written(spark, "z.heavy", query, zorder=["a", "b"], target_file_size="512kb")
    sizes = table.snapshot().files.column("size_bytes").to_pylist()
    assert max(sizes) < 4 * (512 << 10)
    assert same_rows(spark.table("z.heavy").select("a", "b"), source.select("a", "b"))


@pytest.mark.slow
def test_a_heavy_value_in_the_only_key_is_dealt_over_several_files(spark):
    query = "select case when id % 10 < 9 then 5 else id end a, uuid() u from range(200000)"
    source, table = written(spark, "z.heavy1", query, zorder=["a"], target_file_size="512kb")
    assert max(table.snapshot().files.column("size_bytes").to_pylist()) < 4 * (512 << 10)
    assert same_rows(spark.table("z.heavy1"), source)


@pytest.mark.slow
def test_a_thousand_columns(spark):
    query = "select id, " + ", ".join(f"id * {n} c{n}" for n in range(1000)) + " from range(500)"
    source, _ = written(spark, "z.wide", query, zorder=["c3", "c999"])
    assert spark.table("z.wide").where("c999 = 999 * 7").count() == 1
    assert spark.table("z.wide").selectExpr("sum(c500)").collect() == source.selectExpr("sum(c500)").collect()


def test_names_with_dots_spaces_upper_case_and_letters_of_all_scripts(spark):
    query = "select id `a.b`, id % 7 `Größe in mm`, string(id) `日付`, named_struct('x y', id) `S.t` from range(1000)"
    source, _ = written(spark, "z.names", query, zorder=["`a.b`", "Größe in mm", "`S.t`.`x y`"])
    assert same_rows(spark.table("z.names"), source)
    assert spark.table("z.names").where("`a.b` = 5 and `日付` = '5' and `S.t`.`x y` = 5").count() == 1


HOSTILE_NAMES = [
    *("a.b", "a..b", ".a", "a.", "a b", " lead", "trail ", "a`b", "``", "a'b", 'a"b', "a/b", "a\\b", "a=b", "a%2Fb"),
    *("a:b", "a?b", "a#b", "a&b", "a,b", "a;b", "(a)", "{a}", "[a]", "a\tb", "a\nb", "${a}", "--a", "select", "日付"),
]


@pytest.mark.exhaustive
@pytest.mark.parametrize("role", ["key", "partition"])
def test_thirty_hostile_names_of_columns_hold_what_was_written(spark, role):
    assert len(set(HOSTILE_NAMES)) == 30
    for number, name in enumerate(HOSTILE_NAMES):
        source = spark.range(40).select((functions.col("id") % 4).alias(name), functions.col("id").alias("id"))
        table_name, column = f"z.hostile_{role}_{number}", functions.col(backquoted(name))
        layout = (
            {"zorder": [backquoted(name)]} if role == "key" else {"partition_by": [backquoted(name)], "zorder": ["id"]}
        )
        table = ZTable.write(spark, table_name, source, target_file_size="1kb", **layout)
        table.append(source)
        expected = source.union(source)
        if "${" not in name:  # which Spark itself replaces in a condition that a user writes
            table.delete(f"{backquoted(name)} = 3")
            expected = expected.where(column != 3)
        assert same_rows(spark.table(table_name), expected), name
        assert spark.table(table_name).where(column == 1).count() == 20, name
        assert same_rows(as_plain_spark_reads(spark, table_name), expected), name
        assert ZTable.for_name(spark, table_name).verify(data=True).num_rows == 0, name


@pytest.mark.slow
def test_the_query_runs_exactly_once(spark):
    counter = spark.sparkContext.accumulator(0)

    def count(batches):
        for batch in batches:
            counter.add(batch.num_rows)
            yield batch

    frame = spark.range(300_000).selectExpr("id", "uuid() u").mapInArrow(count, "id long, u string")
    ZTable.write(spark, "z.once", frame, zorder=["id", "u"], target_file_size="512kb")
    assert counter.value == 300_000
    ZTable.write(spark, "z.once", frame, zorder=["id", "u"], target_file_size="512kb")
    assert counter.value == 600_000


def test_a_failing_query_leaves_the_table_as_it_was(spark):
    source, table = written(spark, "z.fails", "select id, id % 3 k from range(1000)", zorder=["k"])
    before = table.snapshot().files.column("path").to_pylist()
    failing = spark.sql("select id, if(id = 900, raise_error('boom'), id) k from range(1000)")
    with pytest.raises(WriteError, match="boom"):
        ZTable.write(spark, "z.fails", failing, zorder=["k"])
    again = ZTable.for_name(spark, "z.fails")
    assert again.snapshot().files.column("path").to_pylist() == before
    assert same_rows(spark.table("z.fails"), source)
    assert again.index_status().num_rows == 0


def test_a_rebuild_may_add_drop_retype_and_reorder_columns(spark):
    written(spark, "z.evolves", "select id a, string(id) b, id % 3 c from range(1000)", zorder=["a"])
    source, table = written(
        spark, "z.evolves", "select string(id) c, 1.5 n, cast(id as int) a from range(500)", zorder=["c"]
    )
    assert table.version == 1
    assert [each.name for each in spark.table("z.evolves").schema] == ["c", "n", "a"]
    assert same_rows(spark.table("z.evolves"), source)
    assert same_rows(as_plain_spark_reads(spark, "z.evolves"), source)


@pytest.mark.slow
def test_partition_folders_hold_typed_values(spark):
    query = """select id, case when id % 4 = 0 then '01' when id % 4 = 1 then null when id % 4 = 2 then 'a b/c=%' else '' end p,
      date_add(date'2024-01-01', cast(id % 3 as int)) d, id * 1.5 v from range(20000)"""
    source, _ = written(spark, "z.parts", query, zorder=["v"], partition_by=["p", "d"], target_file_size="64kb")
    plain = spark.sql(query.replace("else '' end", "else null end"))
    assert same_rows(spark.table("z.parts"), plain)
    assert same_rows(as_plain_spark_reads(spark, "z.parts"), plain)
    for condition in (
        "p = '01'",
        "p is null",
        "p = 'a b/c=%'",
        "d = date'2024-01-02' and p <> '01'",
        "p = '01' or v < 10",
    ):
        assert same_rows(spark.table("z.parts").where(condition), plain.where(condition)), condition
    assert source.count() == 20000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"zorder": ["nope"]}, "nope"),
        ({"zorder": ["id"], "curve": "peano"}, "peano"),
        ({"zorder": ["id"], "target_file_size": "12parsec"}, "12parsec"),
        ({"zorder": ["m"]}, "m"),
        ({"zorder": ["id"], "partition_by": ["id"]}, "id"),
    ],
)
def test_wrong_settings_are_named_and_nothing_is_made(spark, options, message):
    with pytest.raises(ConfigError, match=message):
        ZTable.write(spark, "z.wrong", spark.sql("select id, map('a', 1) m from range(3)"), **options)
    assert not spark.catalog.tableExists("z.wrong")


def test_a_null_in_a_required_column_stops_the_commit(spark):
    with pytest.raises(WriteError, match="`k`"):
        ZTable.write(
            spark, "z.strict", spark.sql("select id, nullif(id, 7) k from range(10)"), zorder=["id"], not_null=["k"]
        )
    assert not spark.catalog.tableExists("z.strict")


def test_a_query_keeps_the_settings_of_its_session_while_it_is_written(spark, tmp_path):
    # Spark's functions read these settings in tasks, where another session's would take effect.
    spark.range(20).selectExpr("id", """'{"d": "2024/1/1 5h"}' s""").write.parquet(str(tmp_path / "lenient"))
    settings = {"spark.sql.legacy.timeParserPolicy": "LEGACY", "spark.sql.mapKeyDedupPolicy": "LAST_WIN"}
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        query = spark.read.parquet(str(tmp_path / "lenient")).selectExpr(
            "id",
            "from_json(s, 'd date', map('dateFormat', 'yyyy/MM/dd')).d d",
            "map_from_arrays(array(id, id), array(1, 2))[id] m",
            # Only Spark's own writer writes this type.
            "interval 1 month i",
        )
        expected = [(date(2024, 1, 1), 2)] * 20
        table = ZTable.write(spark, "z.lenient", query, zorder=["id"])
        assert spark.table("z.lenient").select("d", "m").collect() == expected
        table.append(query)
        assert spark.table("z.lenient").select("d", "m").collect() == expected * 2
    finally:
        for key in settings:
            spark.conf.unset(key)


def test_columns_are_not_looked_for_by_the_ids_of_other_files(spark):
    spark.conf.set("spark.sql.parquet.fieldId.read.enabled", "true")
    try:
        numbered = StructType.fromJson(
            {
                "type": "struct",
                "fields": [
                    {"name": name, "type": kind, "nullable": True, "metadata": {"parquet.field.id": number}}
                    for number, (name, kind) in enumerate([("b", "long"), ("a", "long")], start=1)
                ],
            }
        )
        table = ZTable.write(spark, "z.numbered", spark.createDataFrame([(1, 2)], numbered), zorder=["a"])
        assert spark.table("z.numbered").where("a = 2").collect() == [(1, 2)]
        table.append(spark.createDataFrame([(3, 4)], numbered))
        assert sorted(spark.table("z.numbered").collect()) == [(1, 2), (3, 4)]
    finally:
        spark.conf.unset("spark.sql.parquet.fieldId.read.enabled")


@pytest.mark.parametrize("table_type", ["copy_on_write", pytest.param("merge_on_read", marks=pytest.mark.slow)])
def test_later_rows_may_have_nulls_in_nested_values(spark, table_type, monkeypatch):
    settings = {"table_type": table_type, "unique_key": "id"} if table_type == "merge_on_read" else {}
    first = "select id, array(1) a, map('k', 1) m, named_struct('x', 1) s from range(3)"
    nothing = "cast(null as int)"
    later = f"select id, array(1, null) a, map('k', {nothing}) m, named_struct('x', {nothing}) s from range(3, 5)"
    for number, stored in enumerate((True, False)):
        name = f"z.nested_nulls_{table_type}_{number}"
        with monkeypatch.context() as patch:
            if not stored:
                # As earlier releases stored the columns.
                patch.setattr(table_schema, "_nullable", lambda kind: kind)
            table = ZTable.write(spark, name, spark.sql(first), **settings)
            assert ("false" in table.snapshot().schema_json) is not stored
        if table_type == "merge_on_read":
            table.upsert(spark.sql(later))
        else:
            table.append(spark.sql(later))
        expected = spark.sql(f"{first} union all {later}")
        assert same_rows(spark.newSession().table(name), expected)
        assert same_rows(table.read(), expected)
        assert "false" not in table.snapshot().schema_json
        assert table.index_status().num_rows == 0


@pytest.mark.parametrize("column", ["1 `a,b`", "named_struct('a:b', 1) s"])
def test_names_that_the_catalog_of_spark_3_refuses_are_refused_before_anything_is_written(spark, column):
    name, rows = f"z.comma_{len(column)}", spark.sql(f"select 1 id, {column}")
    if not spark.version.startswith("3."):
        assert ZTable.write(spark, name, rows).read().count() == 1
        return
    with pytest.raises(ConfigError, match="takes no ',' in names.* with `as`"):
        ZTable.write(spark, name, rows)
    assert not spark.catalog.tableExists(name)
    table = ZTable.write(spark, name, spark.sql("select 0 id"))
    with pytest.raises(ConfigError, match="takes no ',' in names"):
        table.append(rows, on_schema_change="append_new_columns")
    assert spark.newSession().table(name).count() == 1
    assert ZTable.for_name(spark, name).version == 0


def test_a_type_of_partitions_that_the_catalog_of_spark_3_refuses_is_refused_first(spark):
    rows = spark.sql("select id, timestamp_ntz'2024-01-01 00:00:00' p from range(3)")
    table = ZTable.write(spark, "z.ntz_folders", rows)
    if not spark.version.startswith("3."):
        table.cluster(partition_by=["p"])
        assert spark.newSession().table("z.ntz_folders").where("p = timestamp_ntz'2024-01-01 00:00:00'").count() == 3
        return
    for partition in (
        lambda: table.cluster(partition_by=["p"]),
        lambda: ZTable.write(spark, "z.ntz_folders", rows, partition_by=["P"]),
    ):
        with pytest.raises(ConfigError, match="partition_by: column 'p' has type timestamp_ntz"):
            partition()
    assert spark.newSession().table("z.ntz_folders").count() == 3


@pytest.mark.newest_spark
def test_an_entry_stays_if_the_catalog_refuses_the_next_one(spark, monkeypatch):
    table = ZTable.write(spark, "z.entry_stays", spark.sql("select 1 a"))
    original = Catalog._catalog_table

    def in_no_schema(self, definition):
        return original(self, replace(definition, name=TableName("no_such_schema", "entry_stays")))

    with monkeypatch.context() as patch:
        patch.setattr(Catalog, "_catalog_table", in_no_schema)
        with pytest.raises(CommittedError, match="no_such_schema"):
            table.append(spark.sql("select 2 a, 3 b"), on_schema_change="append_new_columns")
    assert spark.newSession().table("z.entry_stays").count() == 2
    ZTable.for_name(spark, "z.entry_stays").append(spark.sql("select 3 a, 4 b"))
    assert sorted(map(tuple, spark.newSession().table("z.entry_stays").collect())) == [(1, None), (2, 3), (3, 4)]


@pytest.mark.parametrize("column", ["array() v", "named_struct('a', null) v", "map() v"])
def test_nulls_without_a_type_within_others_are_refused_where_nobody_could_read_them(spark, column):
    rows, name = spark.sql(f"select 1 id, {column}"), f"z.nested_void_{len(column)}"
    if spark.version.startswith(("3.", "4.0.")) or "map" in column:
        with pytest.raises(UnsupportedError, match=r"columns without a type \(NULL\): v"):
            ZTable.write(spark, name, rows)
        assert not spark.catalog.tableExists(name)
    else:
        assert same_rows(ZTable.write(spark, name, rows).read(), rows)


@pytest.mark.newest_spark
def test_of_columns_that_differ_by_case_only_none_is_left_out_without_a_word(spark):
    table = ZTable.write(spark, "z.case_only", spark.sql("select 1 k, 2 b"))
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        for policy in ("ignore", "fail", "append_new_columns", "sync_all_columns"):
            with pytest.raises(ConfigError, match="of which the table has only one or none; rename one"):
                table.append(spark.sql("select 1 k, 2 b, 3 B"), on_schema_change=policy)
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
    assert ZTable.for_name(spark, "z.case_only").version == table.version


def test_a_query_of_the_table_itself_never_replaces_rows_that_it_has_not_seen(spark):
    other = spark.newSession()
    for session in (spark, other):
        enable(session)
    table = ZTable.write(spark, "z.of_itself", spark.range(10).selectExpr("id k"), zorder=["k"])
    rows = spark.sql("select k from z.of_itself where k <> (select min(k) from z.of_itself)")
    ZTable.for_name(other, "z.of_itself").append(other.sql("select 100L k"))
    for made, feed in (
        (rows, {}),
        (rows.withColumn("op", functions.lit("U")), {"deleted_when": "op = 'D'", "unique_key": "k"}),
    ):
        with pytest.raises(ConflictError, match="the query reads this table at version 0, and another writer"):
            ZTable.write(spark, "z.of_itself", made, zorder=["k"], **feed)
    # Another layout is no change, and a version of the past is meant.
    rows = spark.sql("select k from z.of_itself where k <> 0")
    ZTable.for_name(other, "z.of_itself").cluster(rewrite_all=True)
    ZTable.write(spark, "z.of_itself", rows, zorder=["k"])
    assert sorted(row.k for row in spark.table("z.of_itself").collect()) == [*range(1, 10), 100]
    ZTable.write(spark, "z.of_itself", table.read(version=0), zorder=["k"])
    assert spark.table("z.of_itself").count() == 10
