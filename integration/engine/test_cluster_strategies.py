"""Clustering by the strategies binpack and sort: rows stay the same, their order is kept or becomes that of the sort."""

import json
from dataclasses import replace
from itertools import pairwise

import pyarrow.parquet as pq
import pytest
from comparing import same_rows
from scanned import Scans

from dbt.adapters.zlayout.adapter.operations.maintenance import cluster_line
from dbt.adapters.zlayout.errors import ConfigError, NewerFormatError
from dbt.adapters.zlayout.spark.cluster.planning import Planner
from dbt.adapters.zlayout.spark.snapshot.table_layout import config_of
from dbt.adapters.zlayout.table.ztable import ZTable
from dbt.adapters.zlayout.timeline.files.action import Action
from dbt.adapters.zlayout.timeline.log.file_slices import groups_with_logs
from dbt.adapters.zlayout.timeline.transactions.pending import list_scheduled

# Nulls, NaN, -0.0, nested values, and no order of the rows along any column.
ROWS = """
    select id, cast(hash(id) % 100 as int) a, cast(id % 2 as int) part,
      case when id % 7 = 0 then null when id % 11 = 0 then double('NaN') when id % 5 = 0 then -0.0D
        else cast(hash(id, 1) % 9 as double) end d,
      if(id % 13 = 0, null, named_struct('x', hash(id, 2) % 5, 'y', array(id, null))) s,
      map('k', id) m, sha2(cast(id as string), 256) t
    from range({}, {})
"""


def made(spark, name, rows=3000, **settings):
    """A table of many small files, which are small because its target size has grown."""
    query = spark.sql(ROWS.format(0, rows))
    table = ZTable.write(spark, f"z.st_{name}", query, **{"zorder": ["a"], "target_file_size": "8kb", **settings})
    config = config_of(table._opened.snapshot)
    grown = replace(config, file_sizing=replace(config.file_sizing, target_file_bytes=64 << 10))
    add = table.upsert if config.table_type.merges_on_read else table.append
    add(spark.sql(ROWS.format(10_000, 10_300)), settings=grown)
    return table


def ids_of(table):
    """The ids in each live file, in the order of its rows, by its path."""
    opened = ZTable.for_name(table._spark, table.name)._opened
    return {
        path: pq.read_table(opened.store.local_path(path), columns=["id"], partitioning=None)["id"].to_pylist()
        for path in opened.files["path"].to_pylist()
    }


def waiting(table):
    return list_scheduled(table._opened.store, Action.REPLACECOMMIT)


@pytest.mark.parametrize(
    ("settings", "jobs"),
    [
        ({"partition_by": ["part"]}, 2),
        pytest.param({"writer": "spark", "partition_by": ["part"]}, None, marks=pytest.mark.slow),
    ],
)
def test_binpack_fills_files_and_keeps_the_order_of_rows(spark, settings, jobs):
    table = made(spark, f"pack_{'_'.join(settings)}", **settings)
    before, old = spark.table(table.name).localCheckpoint(), ids_of(table)
    planned = table.cluster(strategy="binpack", dry_run=True)
    with Scans(spark) as scans:
        done = table.cluster(strategy="binpack")
    assert jobs is None or scans.jobs == jobs
    assert same_rows(spark.table(table.name), before)
    new = ids_of(table)
    assert len(new) == len(old) + done.files_added - done.files_removed
    assert (done.files_added, done.files_removed) == (planned.files_added, planned.files_removed)
    assert done.files_added <= done.files_removed // 3
    assert done.after.files == planned.after.files
    assert done.files_read_after == pytest.approx(planned.files_read_after, rel=0.2)
    sizes = {file.path: file.size_bytes for file in table.snapshot().files}
    for path in new.keys() - old.keys():
        assert sizes[path] <= 64 << 10
        left = new[path]
        while left:
            # The rows of an old file follow one another as they did there.
            (taken,) = [ids for gone, ids in old.items() if gone not in new and ids[0] == left[0]]
            assert left[: len(taken)] == taken
            left = left[len(taken) :]
    assert "packed" in cluster_line(table.name, done)
    assert table.cluster(strategy="binpack").version == done.version
    assert (table.index_status().num_rows, table.verify().num_rows) == (0, 0)


def test_binpack_reads_with_spark_what_arrow_cannot(spark):
    table = ZTable.write(spark, "z.st_lacking", spark.sql("select id from range(400) order by id desc"))
    for number in range(5):
        query = f"select id, concat('t', id) t from range({1000 * number + 1000}, {1000 * number + 1300}) order by -id"
        table.append(spark.sql(query), on_schema_change="append_new_columns")
    before, old = spark.table(table.name).localCheckpoint(), ids_of(table)
    # The file of the first write lacks a column.
    done = table.cluster(strategy="binpack", rewrite_all=True, verify=True)
    assert (done.files_removed, done.files_added) == (6, 1)
    assert same_rows(spark.table(table.name), before)
    assert list(ids_of(table).values()) == [[each for ids in old.values() for each in ids]]


@pytest.mark.parametrize(
    ("settings", "sort_by"),
    [
        ({}, "d, s.x"),
        pytest.param({"partition_by": ["part"], "zorder": []}, ["S", "id"], marks=pytest.mark.slow),
        pytest.param({"writer": "spark"}, ["t"], marks=pytest.mark.slow),
    ],
)
def test_sort_makes_files_that_are_ranges_of_the_order_of_spark(spark, settings, sort_by):
    table = made(spark, f"sort_{'_'.join(settings)}", **settings)
    before, old = spark.table(table.name).localCheckpoint(), ids_of(table)
    curve, layout = table._opened.snapshot.curve, dict(table._opened.snapshot.layout)
    with Scans(spark) as scans:
        done = table.cluster(strategy="sort", sort_by=sort_by)
    columns = sort_by if isinstance(sort_by, str) else ", ".join(sort_by)
    assert same_rows(spark.table(table.name), before)
    new = {path: ids for path, ids in ids_of(table).items() if path not in old}
    assert len(new) == done.files_added > 1
    # Of each group one job for the bounds of the ranges, and one that writes.
    assert settings or scans.jobs == 2 * len(done.groups) == 2
    folders = settings.get("partition_by", [])
    window = f"order by {columns}" if not folders else f"partition by part order by {columns}"
    places = dict(spark.sql(f"select id, rank() over ({window}) from {table.name}").collect())
    ranges = {}
    for path, ids in new.items():
        found = [places[each] for each in ids]
        assert found == sorted(found), path
        ranges.setdefault(path.rpartition("/")[0], []).append((found[0], found[-1]))
    for each in map(sorted, ranges.values()):
        assert all(left[1] < right[0] for left, right in pairwise(each))
    after = table._opened.snapshot
    assert (after.curve, dict(after.layout)) == (curve, layout)
    assert f"sorted by {columns.replace('S', 's')}" in cluster_line(table.name, done)
    assert (table.index_status().num_rows, table.verify().num_rows) == (0, 0)
    if not settings:
        assert table.cluster(strategy="sort", sort_by=sort_by).bytes_rewritten == 0


@pytest.mark.slow
@pytest.mark.newest_spark
def test_plans_of_several_strategies_wait_side_by_side(spark, monkeypatch):
    table = made(spark, "plans", partition_by=["part"])
    before, version = spark.table(table.name).localCheckpoint(), table.version
    packs = table.cluster("part = 0", strategy="binpack", schedule=True)
    sorts = table.cluster(strategy="sort", sort_by="d", schedule=True)
    assert not {path for group in packs.groups for path in group.paths} & {
        path for group in sorts.groups for path in group.paths
    }
    assert len(waiting(table)) == 2
    # A new plan takes the place of the older one of its strategy.
    table.cluster("part = 0", strategy="binpack", schedule=True)
    plans = waiting(table)
    assert [plan.content["groups"][0]["strategy"] for plan in plans] == ["sort", "binpack"]
    # A plan that another session schedules meanwhile stays.
    with monkeypatch.context() as meanwhile:
        original = Planner.outline
        meanwhile.setattr(Planner, "outline", lambda *given: sort_again() and original(*given))

        def sort_again():
            meanwhile.undo()
            return table.cluster(strategy="sort", sort_by="d", schedule=True)

        table.cluster("part = 0", strategy="binpack", schedule=True)
    plans = waiting(table)
    assert sorted(plan.content["groups"][0]["strategy"] for plan in plans) == ["binpack", "sort"]
    plans.sort(key=lambda plan: plan.content["groups"][0]["strategy"], reverse=True)
    # What a newer release has planned is refused, and stays for it.
    store, unknown = table._opened.store, json.loads(json.dumps(plans[1].content))
    unknown["groups"][0]["strategy"] = "zip"
    store.put(plans[1].path, json.dumps(unknown).encode())
    with pytest.raises(NewerFormatError, match="strategy 'zip'"):
        table.cluster(execute=True)
    assert (ZTable.for_name(spark, table.name).version, len(waiting(table))) == (version, 2)
    store.put(plans[1].path, json.dumps(plans[1].content).encode())
    done = table.cluster(execute=True)
    assert {str(each.strategy) for each in done.groups} == {"packed", "sorted by d"}
    assert (done.groups_dropped, done.groups_done, waiting(table)) == ((), len(done.groups), [])
    assert same_rows(spark.table(table.name), before)


@pytest.mark.slow
@pytest.mark.newest_spark
def test_a_sort_by_a_column_that_has_gone_is_dropped(spark):
    table = made(spark, "gone")
    table.cluster(strategy="sort", sort_by="d", schedule=True)
    path, content = waiting(table)[0].path, dict(waiting(table)[0].content)
    content["groups"] = [{**each, "sort_by": ["gone"]} for each in content["groups"]]
    table._opened.store.put(path, json.dumps(content).encode())
    done = table.cluster(execute=True)
    assert (done.groups_done, waiting(table)) == (0, [])
    assert "sort_by: column 'gone' is not in the model" in done.groups_dropped[0].reason


@pytest.mark.slow
@pytest.mark.newest_spark
def test_file_groups_with_logs_are_neither_packed_nor_sorted(spark):
    settings = {"table_type": "merge_on_read", "unique_key": ["id"], "compaction": "off"}
    table = made(spark, "logged", **settings)
    table.upsert(spark.sql(ROWS.format(10_000, 10_001)).selectExpr("id", "a", "part", "d", "s", "m", "'new' t"))
    before = spark.table(table.name).localCheckpoint()
    logged = groups_with_logs(table.snapshot().files)
    for words in ({"strategy": "binpack"}, {"strategy": "sort", "sort_by": "t", "rewrite_all": True}):
        done = table.cluster(**words)
        assert (done.files_with_logs, done.groups_done > 0) == (2, True)
        assert same_rows(spark.table(table.name), before)
        assert groups_with_logs(table.snapshot().files) == logged
    table.compact()
    assert same_rows(spark.table(table.name), before)


@pytest.mark.newest_spark
def test_the_error_says_why_rows_cannot_be_sorted(spark):
    table = made(spark, "errors", rows=10, partition_by=["part"])
    for sort_by, told in (
        (["m"], "column 'm' has type map<string,bigint>, and Spark does not sort by it"),
        (["tt"], "column 'tt' is not in the model"),
        (["d", "D"], "column 'D' is listed twice"),
        (["part"], "'part' is a partition column"),
    ):
        with pytest.raises(ConfigError) as caught:
            table.cluster(strategy="sort", sort_by=sort_by)
        assert f"sort_by: {told}" in str(caught.value)
    with pytest.raises(ConfigError, match="cluster with partition_by first"):
        table.cluster(strategy="binpack", partition_by=[])
    with pytest.raises(ConfigError, match="strategy and sort_by belong to a new plan"):
        table.cluster(execute=True, strategy="binpack")
