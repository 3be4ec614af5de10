"""What writers do in this suite: each action in Spark, and what it makes of the rows."""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fault_rows import Rows, counted, frame_of, without

from dbt.adapters.zlayout.adapter.materialize.changes_read import changes_read_by, changes_relation, taken_by
from dbt.adapters.zlayout.adapter.materialize.model_settings import read_model
from dbt.adapters.zlayout.adapter.materialize.table_writes import managed_table, write_increment, write_model
from dbt.adapters.zlayout.adapter.relation import ZlayoutRelation
from dbt.adapters.zlayout.spark.commit.catalog_entries import drop_table, rename_table
from dbt.adapters.zlayout.table.ztable import ZTable

SCHEMA = "z"
ROWS = 1200
# Of a writer that comes after one which added a column, or died before it did.
_ANY_COLUMNS = "append_new_columns"
FIRST = [(k, k * 7919 % 100003) for k in range(ROWS)]
# Tables of models that read the changes of another table.
# Templates of tables that other tools wrote.
FOREIGN = ("foreign", "indexed")
FOLLOWING = frozenset({"followed", "followed_records"})
RECORDS = frozenset({"records", "followed_records"})


@dataclass(frozen=True)
class Action:
    """One kind of write.

    Attributes:
        name: Of the action.
        template: The table that it finds, see `fault_tables`.
        run: Does it with a session, a table's name and a seed; returns the version that it made.
        model: The rows afterwards, from those before and the seed; None when the table is gone.
    """

    name: str
    template: str
    run: Callable[[Any, str, int], int | None]
    model: Callable[[Rows, int], Rows | None]


def write(spark, name: str, pairs, **settings) -> ZTable:
    """Creates or replaces a table of the suite; every version but the newest is past its time at once."""
    settings = {"zorder": ["k", "v"], "target_file_size": "16kb", "retain_versions": 1, "retain_hours": 0, **settings}
    return ZTable.write(spark, name, frame_of(spark, pairs), **settings)


def _pairs(seed: int, keys) -> list[tuple[int, int]]:
    return [(k, 1_000_000 * (1 + seed % 1000) + k) for k in keys]


def _new(seed: int, count: int = 50) -> list[tuple[int, int]]:
    start = ROWS + random.Random(seed).randrange(80)
    return _pairs(seed, range(start, start + count))


def _mixed(seed: int) -> list[tuple[int, int]]:
    rng = random.Random(seed)
    return _pairs(seed, sorted({*rng.sample(range(ROWS), 25), *rng.sample(range(ROWS, ROWS + 160), 25)}))


def _range(seed: int) -> tuple[int, int]:
    start = random.Random(seed).randrange(ROWS - 200)
    return start, start + 200


def _partitions(seed: int) -> list[int]:
    return random.Random(seed).sample(range(4), 2)


def _whole(seed: int) -> list[tuple[int, int]]:
    # Enough that workers stage their rows in files.
    return _pairs(seed, range(0, 4 * ROWS, 2))


def _of_partitions(seed: int) -> list[tuple[int, int]]:
    return _pairs(seed, [k for k in range(ROWS // 2) if k % 4 in _partitions(seed)])


def _open(spark, name: str) -> ZTable:
    return ZTable.for_name(spark, name)


def _create(spark, name: str, seed: int) -> int:
    return write(spark, name, _whole(seed)).version


def _reshape(spark, name: str, seed: int) -> int:
    frame = frame_of(spark, _whole(seed), more=", 5 extra")
    return ZTable.write(spark, name, frame, zorder=["v"], partition_by=["p"], target_file_size="16kb").version


def _append(spark, name: str, seed: int) -> int:
    return _open(spark, name).append(frame_of(spark, _new(seed)), on_schema_change=_ANY_COLUMNS).version


def _append_many(spark, name: str, seed: int) -> int:
    return _open(spark, name).append(frame_of(spark, _new(seed, 600))).version


def _append_column(spark, name: str, seed: int) -> int:
    frame = frame_of(spark, _new(seed), more=", 5 extra")
    return _open(spark, name).append(frame, on_schema_change="append_new_columns").version


def _merge(spark, name: str, seed: int) -> int:
    return _open(spark, name).merge(frame_of(spark, _mixed(seed)), "k", on_schema_change=_ANY_COLUMNS).version


def _delete_insert(spark, name: str, seed: int) -> int:
    frame = frame_of(spark, _mixed(seed))
    return _open(spark, name).delete_insert(frame, "k", on_schema_change=_ANY_COLUMNS).version


def _keyed(rows: Rows, seed: int, *, doubles: bool) -> Rows:
    """A merge updates every row of a key; delete+insert leaves one."""
    new = dict(_mixed(seed))
    kept = without(rows, lambda k: k in new)
    per_key: Counter = Counter()
    for (k, _, _), count in rows.items():
        per_key[k] += count
    for k, v in new.items():
        kept[k, v, None] += max(1, per_key[k]) if doubles else 1
    return kept


def _replace_where(spark, name: str, seed: int) -> int:
    start, end = _range(seed)
    frame = frame_of(spark, _pairs(seed, range(start, end, 3)))
    return _open(spark, name).replace_where(frame, f"k >= {start} and k < {end}").version


def _replace_where_model(rows: Rows, seed: int) -> Rows:
    start, end = _range(seed)
    return without(rows, lambda k: start <= k < end) + counted(_pairs(seed, range(start, end, 3)))


def _delete(spark, name: str, seed: int) -> int:
    start, end = _range(seed)
    return _open(spark, name).delete(f"k between {start} and {end}").version


def _delete_model(rows: Rows, seed: int) -> Rows:
    start, end = _range(seed)
    return without(rows, lambda k: start <= k <= end)


def _overwrite(spark, name: str, seed: int) -> int:
    return _open(spark, name).overwrite(frame_of(spark, _of_partitions(seed))).version


def _overwrite_model(rows: Rows, seed: int) -> Rows:
    return without(rows, lambda k: k % 4 in _partitions(seed)) + counted(_of_partitions(seed))


def _write_spark(spark, name: str, seed: int) -> int:
    return write(spark, name, _whole(seed), writer="spark").version


def _rollback(spark, name: str, seed: int) -> int:
    return _open(spark, name).rollback(0).version


def _clean(spark, name: str, seed: int) -> int:
    table = _open(spark, name)
    table.clean(retain_versions=1, retain_hours=0)
    return table.version


def _cluster(spark, name: str, seed: int) -> int:
    return _open(spark, name).cluster(rewrite_all=True).version


def _cluster_pending(spark, name: str, seed: int) -> int:
    table = _open(spark, name)
    table.cluster(rewrite_all=True, schedule=True)
    return table.cluster(execute=True).version


def _upsert(spark, name: str, seed: int) -> int:
    return _open(spark, name).upsert(frame_of(spark, _mixed(seed))).version


def _compact(spark, name: str, seed: int) -> int:
    return _open(spark, name).compact().version


def _compact_pending(spark, name: str, seed: int) -> int:
    table = _open(spark, name)
    table.compact(schedule=True)
    return table.compact(execute=True).version


def _compact_logs(spark, name: str, seed: int) -> int:
    return _open(spark, name).compact(logs_only=True).version


def _refresh_index(spark, name: str, seed: int) -> int:
    return _open(spark, name).refresh_index().version


def _build_index(spark, name: str, seed: int) -> int:
    built = _open(spark, name).build_index(
        bloom=["note", "v"], lookup=["v", ["k", "note"]], stats_expressions=["v % 7"]
    )
    return built.version


def _drop_index(spark, name: str, seed: int) -> int:
    table = _open(spark, name)
    bloom = [".".join(path) for path in table.snapshot().layout.get("bloom", [])]
    lookup = [[".".join(path) for path in each] for each in table.snapshot().layout.get("lookup", [])]
    return table.drop_index(bloom=bloom[:1], lookup=lookup[:1]).version


def _pack(spark, name: str, seed: int) -> int:
    return _open(spark, name).cluster(strategy="binpack", rewrite_all=True).version


def _sort(spark, name: str, seed: int) -> int:
    return _open(spark, name).cluster(strategy="sort", sort_by=["v", "k"]).version


def _withdraw(spark, name: str, seed: int) -> int:
    table = _open(spark, name)
    table.publish([])
    return table.version


def _drop(spark, name: str, seed: int) -> None:
    drop_table(spark, *name.split("."))


def _rename(spark, name: str, seed: int) -> None:
    rename_table(spark, *name.split("."), SCHEMA, name.split(".")[1] + "_new")


def _adopt(spark, name: str, seed: int) -> int:
    return ZTable.adopt(spark, name, zorder=["k"], managed=True).version


_CHANGED = [(k, 7_000_000 + k) for k in range(ROWS - 60, ROWS + 40)]
_GONE = range(40, 61)


def source_of(name: str) -> str:
    """The table whose changes a model reads."""
    return f"{name}_source"


def begin_following(spark, name: str, template: str) -> None:
    """Makes such a model and its source. Its first run has taken all rows; then rows come, change and go."""
    source = write(spark, source_of(name), FIRST, retain_hours=24)
    follow(spark, name, "merge" if template in RECORDS else "append", template, first=True)
    source.merge(frame_of(spark, _CHANGED), "k")
    source.delete(f"k between {_GONE.start} and {_GONE.stop - 1}")


def follow(spark, name: str, strategy: str, template: str, *, first: bool = False) -> int:
    """Does what a run of a model does which reads ``zlayout_changes``; only Jinja is missing."""
    config = {"materialized": "incremental", "incremental_strategy": strategy, "zorder": ["k"]}
    config |= {"target_file_size": "16kb", "retain_versions": 1, "retain_hours": 0}
    config |= {} if strategy == "append" else {"unique_key": "k"}
    config |= {"deleted_when": "_zl_change = 'delete'"} if strategy == "merge" else {}
    config |= {"table_type": "merge_on_read", "compaction": "off"} if template in RECORDS else {}
    table = name.split(".")[1]
    model = {"resource_type": "model", "name": table, "unique_id": f"model.m.{table}", "config": config}
    this = ZlayoutRelation.create(schema=SCHEMA, identifier=table)
    source = ZlayoutRelation.create(schema=SCHEMA, identifier=source_of(table))
    view = changes_relation(spark, source, this, model, "k", is_increment=not first, takes_all=True)
    change = ", _zl_change" if strategy == "merge" else ""
    rows = spark.sql(f"select k, v, note, p{change} from {view}" + (" where _zl_change <> 'delete'" * (not change)))
    taken, wanted = taken_by(changes_read_by(rows)), read_model(model, None)
    if first:
        write_model(name, rows, wanted, progress=print, changes_taken=taken)
    else:
        write_increment(
            managed_table(spark, name, wanted, print), rows, wanted, batch=None, progress=print, changes_taken=taken
        )
    return _open(spark, name).version


def _follows(strategy: str, template: str) -> Action:
    def rows_after(*_: Any) -> Rows:
        keys = {k for k, _ in _CHANGED} if strategy != "append" else ()
        keys = {*keys, *(_GONE if strategy == "merge" else ())}
        return without(counted(FIRST), lambda k: k in keys) + counted(_CHANGED)

    kind = "upsert" if template in RECORDS else strategy.replace("+", "_")
    return Action(
        f"follow_{kind}", template, lambda spark, name, _: follow(spark, name, strategy, template), rows_after
    )


def _appended(rows: Rows, seed: int) -> Rows:
    return rows + counted(_new(seed))


def _all_new(rows: Rows, seed: int) -> Rows:
    return counted(_whole(seed))


def _same(rows: Rows, seed: int) -> Rows:
    return rows


def _gone(rows: Rows, seed: int) -> None:
    return None


ACTIONS = (
    Action("create", "nothing", _create, _all_new),
    Action("replace", "plain", _create, _all_new),
    Action("reshape", "plain", _reshape, lambda _, seed: counted(_whole(seed), 5)),
    Action("write_spark", "plain", _write_spark, _all_new),
    Action("append", "plain", _append, _appended),
    Action("append_many", "plain", _append_many, lambda rows, seed: rows + counted(_new(seed, 600))),
    Action("append_column", "plain", _append_column, lambda rows, seed: rows + counted(_new(seed), 5)),
    Action("append_checkpoint", "long", _append, _appended),
    Action("append_after_death", "unfinished", _append, _appended),
    Action("append_unpublished", "unpublished", _append, _appended),
    Action("merge", "plain", _merge, lambda rows, seed: _keyed(rows, seed, doubles=True)),
    Action("delete_insert", "plain", _delete_insert, lambda rows, seed: _keyed(rows, seed, doubles=False)),
    Action("replace_where", "plain", _replace_where, _replace_where_model),
    Action("delete", "plain", _delete, _delete_model),
    Action("overwrite", "partitioned", _overwrite, _overwrite_model),
    Action("merge_partitioned", "partitioned", _merge, lambda rows, seed: _keyed(rows, seed, doubles=True)),
    Action("rollback", "kept", _rollback, lambda *_: counted(FIRST)),
    Action("clean", "kept", _clean, _same),
    Action("cluster", "plain", _cluster, _same),
    Action("cluster_pending", "plain", _cluster_pending, _same),
    Action("pack", "plain", _pack, _same),
    Action("sort", "plain", _sort, _same),
    Action("build_index", "plain", _build_index, _same),
    Action("drop_index", "filtered", _drop_index, _same),
    Action("merge_filtered", "filtered", _merge, lambda rows, seed: _keyed(rows, seed, doubles=True)),
    Action("refresh_index", "sparse", _refresh_index, _same),
    Action("upsert", "records", _upsert, lambda rows, seed: _keyed(rows, seed, doubles=False)),
    Action("delete_records", "records", _delete, _delete_model),
    Action("compact", "records", _compact, _same),
    Action("compact_pending", "records", _compact_pending, _same),
    Action("compact_logs", "records", _compact_logs, _same),
    Action("append_shared", "shared", _append, _appended),
    Action("merge_shared", "shared", _merge, lambda rows, seed: _keyed(rows, seed, doubles=True)),
    Action("withdraw", "shared", _withdraw, _same),
    Action("drop", "plain", _drop, _gone),
    Action("rename", "plain", _rename, _same),
    Action("adopt", "foreign", _adopt, _same),
    Action("take_over", "indexed", _adopt, _same),
    _follows("append", "followed"),
    _follows("merge", "followed"),
    _follows("delete+insert", "followed"),
    _follows("merge", "followed_records"),
)


def by_name(name: str) -> Action:
    """The action of that name."""
    return next(each for each in ACTIONS if each.name == name)
