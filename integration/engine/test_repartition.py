"""A change of ``partition_by`` on an existing table moves its rows to other folders without running a query again."""

from pathlib import Path

import pytest
from comparing import same_rows

from dbt.adapters.zlayout.config.table_config import parse_table_config
from dbt.adapters.zlayout.errors import ConfigError, ConflictError, WriteError
from dbt.adapters.zlayout.spark.rewrite.file_writer import FileWriter
from dbt.adapters.zlayout.spark.write import replace as rewrite_table
from dbt.adapters.zlayout.table.ztable import ZTable

ROWS = (
    "select id, concat('v', id) v, cast(id % 3 as int) p, if(id % 7 = 0, null, cast(id % 2 as string)) `q r` "
    "from range({}, {})"
)
WIDE = "select *, date'2024-01-01' + cast(id % 2 as int) as seen from ({})"


def made(spark, name, partition_by=(), **settings):
    return ZTable.write(
        spark, name, spark.sql(ROWS.format(0, 60)), partition_by=partition_by, zorder=["id"], **settings
    )


def parted(*columns, **settings):
    return parse_table_config({"partition_by": list(columns), "zorder": ["id"], **settings})


def check(spark, table, query, *columns):
    """Checks that every reader sees the rows in the folders, and that a condition on the folders reads no others."""
    expected = spark.sql(query)
    names = expected.columns
    assert same_rows(spark.table(table.name).select(*names), expected)
    plain = spark.newSession().read.parquet(table.location).select(*names)
    assert plain.count() == expected.count()
    assert table.snapshot().partition_by == columns
    assert [each.name for each in spark.catalog.listColumns(table.name) if each.isPartition] == list(columns)
    folders = {
        tuple(part.split("=")[0] for part in path.split("/")[:-1])
        for path in table.snapshot().files["path"].to_pylist()
    }
    assert len({len(each) for each in folders}) == 1
    assert len(folders.pop()) == len(columns)
    assert table.index_status().num_rows == 0
    assert table.verify(data=True).num_rows == 0


more = pytest.mark.exhaustive


@pytest.mark.parametrize(
    ("then", "now"),
    [
        ((), ("p",)),
        (("q r",), ()),
        pytest.param((), (), marks=more),
        pytest.param((), ("p", "q r"), marks=more),
        pytest.param(("q r",), ("p",), marks=more),
        pytest.param(("q r",), ("p", "q r"), marks=more),
    ],
)
def test_the_next_write_moves_existing_rows_to_other_folders(spark, then, now):
    name = f"z.parts_{len(then)}_{len(now)}"
    table = made(spark, name, then)
    lines = []
    table.append(spark.sql(ROWS.format(60, 90)), settings=parted(*now), progress=lines.append)
    check(spark, table, ROWS.format(0, 90), *now)
    changed = then != now
    assert [each["operation"] for each in table.history().to_pylist()] == ["append", *(["overwrite"] * (1 + changed))]
    assert any("partition columns change" in line and "60 rows will be rewritten" in line for line in lines) is changed


def test_a_merge_finds_its_rows_in_their_new_folders_and_keys_move_between_them(spark):
    table = made(spark, "z.parts_merge", ("p",))
    new = f"select id, 'new' v, 9 p, `q r` from ({ROWS.format(50, 70)})"
    done = table.merge(spark.sql(new), "id", settings=parted("q r"))
    assert (done.rows_updated, done.rows_inserted) == (10, 10)
    check(spark, table, f"{ROWS.format(0, 50)} union all {new}", "q r")


@pytest.mark.newest_spark
def test_a_new_column_can_partition_and_a_partition_column_can_be_dropped(spark):
    table = made(spark, "z.parts_columns", ("p",))
    query = f"select id, v, `q r`, seen from ({WIDE.format(ROWS.format(60, 70))})"
    table.append(spark.sql(query), settings=parted("seen"), on_schema_change="sync_all_columns")
    check(
        spark,
        table,
        f"select id, v, `q r`, cast(null as date) seen from ({ROWS.format(0, 60)}) union all {query}",
        "seen",
    )


@pytest.mark.slow
@pytest.mark.newest_spark
def test_a_merge_on_read_table_moves_to_other_folders_with_its_logs(spark):
    keyed = {"table_type": "merge_on_read", "unique_key": ["id"]}
    table = made(spark, "z.parts_records", ("p",), **keyed)
    changed = "select id, 'new' v, p, `q r` from ({})"
    table.upsert(spark.sql(changed.format(ROWS.format(30, 40))))
    table.upsert(spark.sql(changed.format(ROWS.format(55, 65))), settings=parted("q r", **keyed))
    parts = [
        ROWS.format(0, 30),
        changed.format(ROWS.format(30, 40)),
        ROWS.format(40, 55),
        changed.format(ROWS.format(55, 65)),
    ]
    expected = " union all ".join(f"select * from ({each})" for each in parts)
    assert same_rows(spark.table("z.parts_records").select("id", "v", "p", "q r"), spark.sql(expected))
    assert table.snapshot().partition_by == ("q r",)
    assert table.cluster(partition_by="p").groups_done == 1
    assert same_rows(spark.table("z.parts_records").select("id", "v", "p", "q r"), spark.sql(expected))


@pytest.mark.newest_spark
def test_a_run_that_dies_between_the_two_steps_leaves_a_complete_table(spark, monkeypatch):
    table = made(spark, "z.parts_killed")
    write, calls = FileWriter.write, []

    def once(self, *args, **options):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return write(self, *args, **options)

    monkeypatch.setattr(FileWriter, "write", once)
    with pytest.raises(KeyboardInterrupt):
        table.append(spark.sql(ROWS.format(60, 90)), settings=parted("p"))
    table = ZTable.for_name(spark, "z.parts_killed")
    check(spark, table, ROWS.format(0, 60), "p")
    table.append(spark.sql(ROWS.format(60, 90)), settings=parted("p"))
    check(spark, table, ROWS.format(0, 90), "p")
    assert table.version == 2


@pytest.mark.newest_spark
def test_rows_written_during_a_rewrite_of_the_table_are_not_lost(spark, monkeypatch):
    table, rival = made(spark, "z.parts_race"), ZTable.for_name(spark, "z.parts_race")
    rows_of = rewrite_table.rows_of

    def meanwhile(catalog, opened):
        found = rows_of(catalog, opened)
        monkeypatch.setattr(rewrite_table, "rows_of", rows_of)
        rival.append(spark.sql(ROWS.format(60, 90)))
        return found

    monkeypatch.setattr(rewrite_table, "rows_of", meanwhile)
    with pytest.raises(ConflictError, match="another writer committed"):
        table.append(spark.sql(ROWS.format(90, 99)), settings=parted("p"))
    monkeypatch.setattr(rewrite_table, "rows_of", meanwhile)
    done = ZTable.for_name(spark, "z.parts_race").cluster(partition_by=["p"])
    assert (done.groups_done, len(done.groups_dropped)) == (0, 1)
    check(spark, ZTable.for_name(spark, "z.parts_race"), f"{ROWS.format(0, 90)} union all {ROWS.format(60, 90)}")


@pytest.mark.newest_spark
def test_clustering_with_partition_by_rewrites_the_table(spark):
    table = made(spark, "z.parts_cluster", ("p",))
    table.append(spark.sql(ROWS.format(60, 90)))
    version, files, changed_at = table.version, len(table.snapshot().files), table.rows_changed_at()
    planned = table.cluster(partition_by=["q r"], dry_run=True)
    assert (planned.files_removed, planned.bytes_rewritten > 0, planned.version) == (files, True, version)
    for settings, message in (
        ({"where": "id = 1"}, "leave out where and max_bytes"),
        ({"max_bytes": "1mb"}, "leave out where and max_bytes"),
        ({"pending": True}, "sort_by belong to a new plan"),
        ({"partition_by": "nothing"}, "'nothing' is not in"),
    ):
        with pytest.raises(ConfigError, match=message):
            table.cluster(**{"partition_by": "q r", **settings})
    assert table.version == version
    done = table.cluster(partition_by="Q R")
    assert (done.version, done.groups_done, done.files_removed, done.rows) == (version + 1, 1, files, 90)
    assert done.files_added == done.after.files == len(table.snapshot().files)
    check(spark, table, ROWS.format(0, 90), "q r")
    assert table.cluster(partition_by="q r").bytes_rewritten == 0
    assert table.cluster(partition_by=[]).groups_done == 1
    assert table.rows_changed_at() == changed_at
    check(spark, table, ROWS.format(0, 90))


@pytest.mark.newest_spark
def test_a_rewrite_of_the_table_gives_way_to_a_running_change(spark, monkeypatch):
    table, rival = made(spark, "z.parts_gives_way"), ZTable.for_name(spark, "z.parts_gives_way")
    write, found = FileWriter.write, []

    def meanwhile(self, *args, **options):
        if not found:
            found.append(table)
            found.append(table.cluster(partition_by="p"))
        return write(self, *args, **options)

    monkeypatch.setattr(FileWriter, "write", meanwhile)
    rival.delete("id = 1")
    assert "gives way to" in found[1].groups_dropped[0].reason
    check(spark, ZTable.for_name(spark, "z.parts_gives_way"), f"select * from ({ROWS.format(0, 60)}) where id <> 1")


@pytest.mark.newest_spark
def test_the_error_names_a_column_that_cannot_partition(spark):
    table = made(spark, "z.parts_wrong")
    with pytest.raises(ConfigError, match="partition_by: column 'w' is not in"):
        table.append(spark.sql(ROWS.format(60, 90)), settings=parted("w"))
    with pytest.raises((ConfigError, WriteError)):
        table.cluster(partition_by=["id", "v", "p", "q r"])
    assert (table.version, Path(table.location.removeprefix("file://")).exists()) == (0, True)


@pytest.mark.newest_spark
def test_a_change_of_keys_names_the_command_that_rewrites_old_files(spark):
    table = made(spark, "z.other_keys")
    lines = []
    table.append(
        spark.sql(ROWS.format(60, 90)), settings=parse_table_config({"zorder": ["p", "v"]}), progress=lines.append
    )
    (told,) = [line for line in lines if "zorder" in line]
    assert "the clustering keys change from id (zorder) to p, v (zorder): existing files (1)" in told
    assert "dbt run-operation zlayout_cluster --args '{model: z.other_keys}'" in told
    table.append(spark.sql(ROWS.format(90, 95)), progress=lines.append)
    assert len([line for line in lines if "zorder" in line]) == 1
