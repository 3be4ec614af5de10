"""Random tables, indexes, writes and conditions, compared with plain Spark on the same rows.

usage: python benchmarks/index_fuzz.py [seconds, default 600] [--seed 1] [--damage] [--operations 12] [--conditions 30]
Each table has a random mix of lookup indexes, Bloom filters, expressions with statistics, partitions, a table type and
key columns of random types, TIME, intervals and long texts among them, by which it may be clustered. Random writes and
maintenance follow. After each one, random conditions run as plain SQL with skipping on, in a session with a random time
zone, ANSI mode and case sensitivity. The same conditions run on a Parquet file that pyarrow writes from the rows that
the table should have. `--damage` also breaks files of the index.
Prints each wrong result with its seed; the exit code is the number of wrong ones.
"""

from __future__ import annotations

import argparse
import logging
import random
import re
import shutil
import sys
import tempfile
import time
import traceback
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyspark.sql.types as spark_types
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

sys.path.append(str(Path(__file__).parents[1] / "integration" / "engine"))

from expression_predicates import conditions, expressions
from expression_tables import SCHEMA, _one_file

from dbt.adapters.zlayout.errors import ConflictError
from dbt.adapters.zlayout.spark.read.session import enable
from dbt.adapters.zlayout.table.ztable import ZTable

ZONES = ["Europe/Berlin", "America/New_York", "UTC", "Australia/Lord_Howe", "Pacific/Apia", "+05:30"]
ANSI, ZONE, CASE = "spark.sql.ansi.enabled", "spark.sql.session.timeZone", "spark.sql.caseSensitive"
# Columns with lookup indexes and Bloom filters, as SQL.
INDEXED = ["b", "h", "i", "l", "f", "x", "de", "dw", "d", "ts", "n", "s", "bi", "bo", "st.v", "st.t", "st.w", "rid"]
STATS = [
    "lower(s)", "length(s)", "i % 7", "cast(l as string)", "cast(ts as string)", "to_json(named_struct('t', ts))",
    "date_format(ts, 'EEE HH')", "hour(ts)", "cast(x as string)", "abs(i)", "st.v + 1", "coalesce(s, 'none')",
    "cast(de as double)", "i > 5", "substring(s, 2, 2)", "hex(bi)", "cast(s as int)", "concat(s, cast(n as string))",
    "to_csv(named_struct('t', ts, 'd', d))", "cast(d as timestamp)", "md5(s)", "if(bo, s, null)", "x * 2", "-f",
    "coalesce(ts, timestamp'2001-02-03 04:05:06')", "st.w - x + f",
]  # fmt: skip
KEYS = {
    "ki": "int", "kl": "bigint", "ks": "string", "kde": "decimal(12,3)", "kdw": "decimal(38,4)", "kd": "date",
    "kts": "timestamp", "kn": "timestamp_ntz", "kx": "double", "kf": "float", "kb": "binary",
    "kt": "time", "kv": "interval day to second", "ku": "string",
}  # fmt: skip
# Spark has TIME from 4.1 on.
if not hasattr(spark_types, "TimeType"):
    del KEYS["kt"]
# What Parquet of pyarrow cannot say.
READ_AS = {"kv": "kv * interval '0.000001' second"}
# Texts that begin alike, some of which have a character of four bytes where bounds are cut.
BEGINNINGS = ["", "https://shop.example.com/" * 5, "\U0001f388" * 255 + "ab", "x" * 1023 + "\U0010ffff", "é" * 40]
TEXTS = ["", "é", "日本", "A" * 70, "x\x00", "\U0010ffff", "%_", "'"]


def key_value(name: str, rid: int) -> Any:
    """The value of a key column for a row: another one for each row."""
    text = TEXTS[rid % len(TEXTS)] + str(rid)
    special = [-0.0, float("nan"), float("inf"), float("-inf")]
    makers = {
        "ki": lambda: rid - 5,
        "kl": lambda: rid * 3_000_000_007 - 5,
        "ks": lambda: text,
        "kde": lambda: (rid - 50) * 10 * (-1 if rid % 2 else 1),
        "kdw": lambda: (rid - 50) * 10**20 * (-1 if rid % 2 else 1),
        "kd": lambda: rid * 11 - 150_000,
        "kts": lambda: rid * 3_599_999_999 - 2 * 10**15,
        "kn": lambda: rid * 3_599_999_999 - 2 * 10**15,
        "kx": lambda: special[rid] if rid < len(special) else rid * 0.5 - 50.25,
        "kf": lambda: special[rid] if rid < len(special) else rid * 0.5 - 50.25,
        "kb": text.encode,
        "kt": lambda: 86_399_999_999 if rid == 3 else rid * 7_777_777 % 86_400_000_000,
        "kv": lambda: [-(2**63), 2**63 - 1][rid] if rid < 2 else rid * 3_600_000_001 * (-1 if rid % 2 else 1),
        "ku": lambda: BEGINNINGS[rid % len(BEGINNINGS)] + text,
    }
    return makers[name]()


KEY_TYPES = {
    "ki": pa.int32(), "kl": pa.int64(), "ks": pa.string(), "kde": pa.decimal128(12, 3), "kdw": pa.decimal128(38, 4),
    "kd": pa.date32(), "kts": pa.timestamp("us", "UTC"), "kn": pa.timestamp("us"), "kx": pa.float64(),
    "kf": pa.float32(), "kb": pa.binary(), "kt": pa.time64("us"), "kv": pa.int64(), "ku": pa.string(),
}  # fmt: skip


def array_of(values: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        return pa.array(values, pa.int64()).cast(kind)
    if pa.types.is_date32(kind):
        return pa.array(values, pa.int32()).cast(kind)
    if pa.types.is_decimal(kind) and values and isinstance(next((v for v in values if v is not None), None), int):
        from decimal import Decimal

        return pa.array([None if v is None else Decimal(v).scaleb(-kind.scale) for v in values], kind)
    return pa.array(values, kind)


class WrongError(Exception):
    """A result that differs."""


class Case:
    """One table with its rows beside it."""

    def __init__(self, spark: SparkSession, rng: random.Random, folder: Path, number: int, damage: bool) -> None:
        self.spark, self.rng, self.folder, self.damage = spark, rng, folder, damage and rng.random() < 0.3
        self.name = f"z.fuzz{number}"
        self.told: list[str] = []
        self.cases = 0
        self.files = 0
        self.rid = 0
        self.key = rng.sample(list(KEYS), rng.choice([1, 1, 1, 2]))
        self.partitioned = rng.random() < 0.35
        self.on_read = rng.random() < 0.5
        self.partial = self.on_read and rng.random() < 0.4
        self.ordering = self.on_read and rng.random() < 0.4
        self.columns = ["rid", *self.key, "o", *(each for each in SCHEMA.names if each != "id")]
        self.types = {"rid": pa.int64(), "o": pa.int32()} | {n: KEY_TYPES[n] for n in self.key}
        self.types |= {each.name: each.type for each in SCHEMA if each.name != "id"}
        self.history: dict[int, pa.Table] = {}
        self.rows = self.batch(rng.choice([0, 1, 40, 60, 120]))
        self.stats = self.usable_stats(rng.sample(STATS, rng.choice([0, 1, 3, 5])))
        self.computed: list[str] = []
        self.bloom, self.lookup = [*self.some_columns(3), *self.some_expressions()], self.some_lookups()
        self.settings: dict[str, Any] = {
            "zorder": rng.sample(["i", "ts", "s", "rid", "x", *self.key], rng.choice([0, 1, 2, 3])),
            "partition_by": ["g"] if self.partitioned else [],
            "target_file_size": rng.choice([6_000, 20_000, "128mb"]),
            "stats_columns": rng.choice([0, 32, 50]),
            "retain_versions": 100,
        }
        self.settings |= {"bloom": self.bloom, "lookup": self.lookup, "stats_expressions": self.stats}
        if self.settings["zorder"] and rng.random() < 0.3:
            self.settings["curve"] = rng.choice(["hilbert", "linear"])
        if self.on_read:
            self.settings |= {"table_type": "merge_on_read", "unique_key": self.key}
            self.settings |= {"compaction": rng.choice(["off", "inline"]), "compact_every": 2}
            self.settings |= {"compaction_min_log_ratio": rng.choice([0.0, 0.1]), "compaction_max_deleted_share": 0.2}
            if self.partial:
                self.settings["payload"] = "partial"
            if self.ordering:
                self.settings["ordering"] = "o"
            if rng.random() < 0.3:
                self.settings["compact_after_hours"] = 0

    def begin(self) -> None:
        """Writes the table."""
        self.new_session_settings()
        self.say(f"write {self.rows.num_rows} rows; {self.settings}")
        self.table = ZTable.write(self.spark, self.name, self.frame(self.rows), **self.settings)
        self.note_version()

    def say(self, text: str) -> None:
        self.told.append(text)

    def some_columns(self, most: int) -> list[str]:
        given = [each for each in [*INDEXED, *self.key] if each.split(".")[0] != "g"]
        return self.rng.sample(given, self.rng.choice(range(most + 1)))

    def some_expressions(self) -> list[str]:
        """Expressions for lookup indexes or Bloom filters."""
        given = self.usable_stats(self.rng.sample(STATS, self.rng.choice([0, 0, 1, 2])))
        self.computed += given
        return given

    def some_lookups(self) -> list[Any]:
        found: list[Any] = list(self.some_columns(4))
        if self.rng.random() < 0.4:
            found.append(self.rng.sample(INDEXED, 2))
        found += self.some_expressions()
        if self.rng.random() < 0.6:
            key = self.key[0] if len(self.key) == 1 else self.key
            if key not in found and not any(set(each) == set(self.key) for each in found if isinstance(each, list)):
                found.append(key)
        return found

    def new_session_settings(self) -> None:
        rng, conf = self.rng, self.spark.conf
        conf.set(ZONE, rng.choice(ZONES))
        conf.set(ANSI, str(rng.random() < 0.2).lower())
        conf.set(CASE, str(rng.random() < 0.2).lower())
        self.say(f"{conf.get(ZONE)}, ANSI {conf.get(ANSI)}, case {conf.get(CASE)}")

    # Rows

    def batch(self, count: int, rids: list[int] | None = None) -> pa.Table:
        """New rows, or other values for existing ones."""
        rng, rows = self.rng, []
        if rids is None:
            rids = list(range(self.rid, self.rid + count))
            self.rid += count
        groups = iter(())
        for rid in rids:
            row = next(groups, None)
            if row is None:
                groups = iter(rng.sample(made := _one_file(rng, rng.randrange(4)), min(len(made), rng.choice([3, 14]))))
                row = next(groups)
            row = {**row, "rid": rid, "o": rng.choice([None, 1, 2, 3, rng.randrange(5)])}
            rows.append(row | {name: key_value(name, rid) for name in self.key})
        arrays = [array_of([row.get(n) for row in rows], self.types[n]) for n in self.columns]
        return pa.Table.from_arrays(arrays, names=self.columns)

    def some_rids(self, most: int) -> list[int]:
        held = self.rows.column("rid").to_pylist()
        known = self.rng.sample(held, min(len(held), self.rng.randrange(most + 1)))
        fresh = [self.rid + n for n in range(self.rng.choice([0, 0, 2, 9]))]
        self.rid += len(fresh)
        return list(dict.fromkeys([*known, *fresh]))

    def frame(self, rows: pa.Table) -> DataFrame:
        self.files += 1
        path = self.folder / f"in{self.files}.parquet"
        pq.write_table(rows, path)
        return self.read(path).coalesce(1)

    def read(self, path: Path) -> DataFrame:
        frame = self.spark.read.parquet(str(path))
        return frame.selectExpr(*(f"{READ_AS[n]} as {n}" if n in READ_AS else n for n in frame.columns))

    def without(self, rids: list[int]) -> pa.Table:
        return self.rows.filter(pc.invert(pc.is_in(self.rows.column("rid"), value_set=pa.array(rids, pa.int64()))))

    def of(self, rids: list[int]) -> pa.Table:
        return self.rows.filter(pc.is_in(self.rows.column("rid"), value_set=pa.array(rids, pa.int64())))

    def note_version(self) -> None:
        self.history[self.table.version] = self.rows

    # Operations

    def operate(self) -> None:
        rng = self.rng
        kinds = {
            "append": 0 if self.on_read else 3, "merge": 4, "delete": 2, "delete_insert": 0 if self.on_read else 2,
            "cluster": 2, "compact": 2 if self.on_read else 0, "build_index": 3, "drop_index": 1, "rollback": 1,
            "clean": 0.5, "evolve": 1, "overwrite": 0.5, "rewrite": 0.3, "damage": 2 if self.damage else 0,
            "refresh": 0.5, "index_settings": 0.5,
        }  # fmt: skip
        kind = rng.choices(list(kinds), list(kinds.values()))[0]
        getattr(self, f"do_{kind}")()
        self.table = ZTable.for_name(self.spark, self.name)
        self.note_version()

    def do_append(self) -> None:
        new = self.batch(self.rng.choice([0, 1, 5, 40]))
        self.say(f"append {new.num_rows}")
        self.table.append(self.frame(new))
        self.rows = pa.concat_tables([self.rows, new])

    def do_merge(self) -> None:
        rids = self.some_rids(self.rng.choice([2, 10, 60]))
        new = self.batch(0, rids)
        if self.on_read and self.rng.random() < 0.6:
            self.say(f"upsert {rids}")
            self.table.upsert(self.frame(new))
        else:
            self.say(f"merge {rids}")
            self.table.merge(self.frame(new), self.key)
        if self.ordering or self.partial:
            self.rows = self.merged(new)
        else:
            self.rows = pa.concat_tables([self.without(rids), new])

    def merged(self, new: pa.Table) -> pa.Table:
        """The rows after an upsert with ordering or of partial rows."""
        old = {row["rid"]: row for row in _raw(self.rows)}
        for row in _raw(new):
            then = old.get(row["rid"])
            if then is None:
                old[row["rid"]] = row
                continue
            newer = not self.ordering or then["o"] is None or (row["o"] is not None and row["o"] >= then["o"])
            if self.partial:
                first, second = (row, then) if newer else (then, row)
                old[row["rid"]] = {n: first[n] if first[n] is not None else second[n] for n in self.columns}
            elif newer:
                old[row["rid"]] = row
        return _cooked(list(old.values()), self.columns, self.types)

    def do_delete_insert(self) -> None:
        rids = self.some_rids(20)
        new = self.batch(0, rids)
        self.say(f"delete_insert {rids}")
        self.table.delete_insert(self.frame(new), self.key)
        self.rows = pa.concat_tables([self.without(rids), new])

    def do_delete(self) -> None:
        if self.rng.random() < 0.5:
            rids = self.some_rids(8)
            condition = f"rid in ({', '.join(map(str, [*rids, -1]))})"
        else:
            condition = self.condition()
        try:
            gone = [row[0] for row in self.plain().where(condition).select("rid").collect()]
        except Exception:
            return
        self.say(f"delete {condition} ({len(gone)})")
        self.table.delete(condition)
        self.rows = self.without(gone)

    def do_cluster(self) -> None:
        given = self.rng.choice(
            [{"rewrite_all": True}, {}, {"strategy": "binpack"}, {"strategy": "sort", "sort_by": ["s", "i"]},
             {"strategy": "binpack", "rewrite_all": True}]
        )  # fmt: skip
        if not self.settings["zorder"] and not given.get("strategy"):
            given = {"strategy": "binpack"}
        self.say(f"cluster {given}")
        self.table.cluster(**given)

    def do_compact(self) -> None:
        logs_only = self.rng.random() < 0.3
        self.say(f"compact {logs_only}")
        self.table.compact(logs_only=logs_only)

    def do_build_index(self) -> None:
        given: dict[str, Any] = {"bloom": [*self.some_columns(2), *self.some_expressions()]}
        given["lookup"] = self.some_lookups()
        given["stats_expressions"] = self.usable_stats(self.rng.sample(STATS, self.rng.choice([0, 1, 2])))
        self.stats = [*self.stats, *given["stats_expressions"]]
        given["bloom"], given["lookup"] = self.usable(given["bloom"]), self.usable(given["lookup"])
        self.say(f"build_index {given}")
        self.table.build_index(**given)

    def usable(self, listed: list[Any]) -> list[Any]:
        def there(each: Any) -> bool:
            listed = [each] if isinstance(each, str) else each
            return all(one[0] == "(" or one.split(".")[0] in self.columns for one in listed)

        return [each for each in listed if there(each)]

    def usable_stats(self, listed: list[str]) -> list[str]:
        gone = [n for n in ("b", "h", "de", "n") if n not in self.columns]
        # One spelling for all settings: those of columns need the parentheses.
        return [f"({each})" for each in listed if not any(re.search(rf"\b{n}\b", each) for n in gone)]

    def do_drop_index(self) -> None:
        layout = self.table.snapshot().layout

        def spelled(paths: list[Any]) -> list[str]:
            return [path if isinstance(path, str) else ".".join(path) for path in paths]

        lookup, bloom = [spelled(each) for each in layout.get("lookup", [])], spelled(layout.get("bloom", []))
        stats = list(layout.get("stats_expressions", []))
        given = {n: self.rng.sample(v, self.rng.randrange(len(v) + 1)) for n, v in
                 (("lookup", lookup), ("bloom", bloom), ("stats_expressions", stats))}  # fmt: skip
        self.say(f"drop_index {given}")
        self.table.drop_index(**given)

    def do_rollback(self) -> None:
        version = self.rng.choice(list(self.history))
        if self.history[version].column_names != self.rows.column_names or version == self.table.version:
            return
        self.say(f"rollback {version}")
        self.table.rollback(version)
        self.rows = self.history[version]

    def do_clean(self) -> None:
        self.say("clean")
        self.table.clean(retain_versions=1, retain_hours=0)
        self.history = {}

    def do_refresh(self) -> None:
        self.say("refresh")
        self.table.refresh_index()

    def do_evolve(self) -> None:
        """Adds, drops or widens a column."""
        kind = self.rng.choice(["add", "drop", "widen"])
        if kind == "add":
            names = [n for n in ("extra", "b", "h", "de", "n") if n not in self.columns]
            if not names:
                return
            name = self.rng.choice(names)
            self.types.setdefault(name, pa.string())
            self.columns = [*self.columns, name]
            self.rows = self.rows.append_column(name, pa.nulls(self.rows.num_rows, self.types[name]))
            how = "append_new_columns"
        elif kind == "drop":
            names = [n for n in ("extra", "b", "h", "de", "n") if n in self.columns]
            taken = " ".join(self.table.snapshot().layout.get("stats_expressions", []))
            names = [n for n in names if n not in taken]
            if not names:
                return
            name = self.rng.choice(names)
            self.columns = [n for n in self.columns if n != name]
            self.rows = self.rows.drop_columns([name])
            how = "sync_all_columns"
        else:
            names = [n for n in ("i", "h", "b", "f") if n in self.columns]
            name = self.rng.choice(names)
            wider = {pa.int8(): pa.int16(), pa.int16(): pa.int32(), pa.int32(): pa.int64(), pa.float32(): pa.float64()}
            if self.types[name] not in wider:
                return
            self.types[name] = wider[self.types[name]]
            at = self.columns.index(name)
            self.rows = self.rows.set_column(at, name, self.rows.column(name).cast(self.types[name]))
            how = "sync_all_columns"
        rids = [self.rid, self.rid + 1]
        self.rid += 2
        new = self.batch(0, rids)
        self.say(f"{kind} {name}, rows {rids}")
        if self.on_read:
            self.table.upsert(self.frame(new), on_schema_change=how)
        else:
            self.table.append(self.frame(new), on_schema_change=how)
        self.rows = pa.concat_tables([self.rows, new])

    def do_overwrite(self) -> None:
        if self.on_read:
            return
        new = self.batch(self.rng.choice([1, 30]))
        self.say(f"overwrite {new.num_rows}")
        self.table.overwrite(self.frame(new), "all")
        self.rows = new

    def do_rewrite(self) -> None:
        new = self.batch(self.rng.choice([1, 30]))
        given = {k: v for k, v in self.settings.items() if k not in ("bloom", "lookup", "stats_expressions")}
        self.say(f"rewrite {new.num_rows}")
        ZTable.write(self.spark, self.name, self.frame(new), **given)
        self.rows, self.history = new, {}

    def do_index_settings(self) -> None:
        new = self.batch(20)
        given: dict[str, Any] = {**self.settings, "bloom": self.usable(self.some_columns(3))}
        given |= {
            "lookup": self.usable(self.some_lookups()),
            "stats_expressions": self.usable_stats(self.rng.sample(STATS, 2)),
        }
        self.stats = given["stats_expressions"]
        self.say(f"rewrite {new.num_rows} with {given}")
        ZTable.write(self.spark, self.name, self.frame(new), **given)
        self.rows, self.history = new, {}

    def do_damage(self) -> None:
        rng, root = self.rng, Path(self.table.location.removeprefix("file:"))
        files = sorted((root / ".zlayout" / "index").rglob("*.*"))
        files = [each for each in files if each.is_file() and not each.name.startswith(".")]
        for path in rng.sample(files, min(len(files), rng.choice([1, 2, 5]))):
            content = bytearray(path.read_bytes())
            how = rng.choice(["flip", "cut", "delete", "swap", "empty", "grow", "length"])
            self.say(f"{how} {path.relative_to(root)}")
            if how == "delete":
                path.unlink()
                continue
            if how == "flip":
                for _ in range(rng.choice([1, 3, 50])):
                    if content:
                        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
            elif how == "cut":
                content = content[: rng.randrange(len(content) + 1)]
            elif how == "swap":
                others = [each for each in files if each.exists()]
                content = bytearray(rng.choice(others).read_bytes())
            elif how == "empty":
                content = bytearray()
            elif how == "grow":
                content += rng.randbytes(9)
            else:
                content[-8:] = rng.choice([b"\xff" * 8, b"\0" * 8, (2**40).to_bytes(8, "little")])
            path.write_bytes(bytes(content))

    # Conditions

    def plain(self) -> DataFrame:
        path = self.folder / f"rows{self.files}_{len(self.told)}.parquet"
        pq.write_table(self.rows.select(self.columns), path)
        return self.read(path)

    def literal(self, kind: str, values: list[Any]) -> str:
        value = self.rng.choice(values) if values else None
        if value is None or self.rng.random() < 0.05:
            return "null" if self.rng.random() < 0.5 else f"cast(null as {kind})"
        text = str(value).replace("\\", "\\\\").replace("'", "\\'")
        if kind == "binary":
            return f"X'{value}'"
        made = f"cast('{text}' as {kind})" if kind != "string" else f"'{text}'"
        wider = {
            "int": "bigint", "bigint": "decimal(30,2)", "smallint": "int", "tinyint": "double", "float": "double",
            "decimal(10,2)": "decimal(14,6)", "date": "timestamp", "timestamp": "date", "timestamp_ntz": "timestamp",
        }  # fmt: skip
        return f"cast({made} as {wider[kind]})" if kind in wider and self.rng.random() < 0.15 else made

    def values_of(self) -> dict[str, tuple[str, list[Any]]]:
        """Type and some values, as text, of the indexed columns and of expressions."""
        frame, rng = self.plain(), self.rng
        names = self.usable([*INDEXED, *self.key])
        mine = dict.fromkeys([*self.stats, *self.computed, *rng.sample(STATS, 3), *rng.sample(expressions(), 6)])
        found: dict[str, tuple[str, list[Any]]] = {}
        every = {}
        for each in [*names, *mine]:
            with suppress(AnalysisException):
                every[each] = frame.selectExpr(f"{each} v").schema[0].dataType.simpleString()
        ansi = self.spark.conf.get(ANSI)
        self.spark.conf.set(ANSI, "false")
        texts = [f"hex({e})" if k == "binary" else f"cast({e} as string)" for e, k in every.items()]
        try:
            rows = frame.selectExpr(*(f"{t} c{n}" for n, t in enumerate(texts))).limit(300).collect()
        except Exception:
            rows = []
        self.spark.conf.set(ANSI, ansi)
        self.fixed = ["true", *filter(partial(is_understood, frame), conditions())]
        for number, (each, kind) in enumerate(every.items()):
            found[each] = (kind, [row[number] for row in rows])
        return found

    def condition(self) -> str:
        if not getattr(self, "known", None):
            self.known = self.values_of()
        rng = self.rng

        def one() -> str:
            if rng.random() < 0.08:
                return str(rng.choice(self.fixed))
            column = rng.choice(list(self.known))
            kind, values = self.known[column]
            column = f"({column})" if " " in column else column

            def constant() -> str:
                return self.literal(kind, values)

            def listed(counts: list[int]) -> str:
                return ", ".join(constant() for _ in range(rng.choice(counts)))

            forms = [
                *[lambda: f"{column} {rng.choice(['=', '=', '<=>'])} {constant()}"] * 5,
                *[lambda: f"{column} in ({listed([1, 2, 5, 14])})"] * 3,
                *[lambda: f"{column} {rng.choice(['<', '<=', '>', '>=', '<>', '<=>'])} {constant()}"] * 3,
                lambda: f"{column} is {rng.choice(['null', 'not null'])}",
                lambda: f"{constant()} = {column}",
                lambda: f"{column} not in ({listed([1, 2])})",
            ]
            if kind == "string":
                forms.append(lambda: f"{column} like concat(substring({constant()}, 1, 2), '%')")
            return rng.choice(forms)()

        def joined(parts: list[str]) -> str:
            if len(parts) == 1:
                return f"not ({parts[0]})" if rng.random() < 0.12 else parts[0]
            cut = rng.randrange(1, len(parts))
            return f"({joined(parts[:cut])}) {rng.choice(['and', 'and', 'or'])} ({joined(parts[cut:])})"

        return joined([one() for _ in range(rng.choice([1, 1, 1, 2, 2, 3]))])

    def check(self, count: int) -> None:
        """Compares all rows, then those that meet random conditions."""
        self.new_session_settings()
        self.known = self.values_of()
        self.plain().createOrReplaceTempView("plain_rows")
        self.check_rows()
        # In ANSI mode conditions fail, and then each runs alone.
        ansi = self.spark.conf.get(ANSI) == "true"
        told = [self.condition() for _ in range(count // 3 if ansi else count)]
        try:
            expected, found = self.expected(told), self.matching(told)
        except Exception:
            expected, found = self.one_by_one(told)
        for number, each in enumerate(told):
            self.cases += 1
            if found.get(number) != expected.get(number):
                raise WrongError(f"{each}: {found.get(number)} instead of {expected.get(number)}")
        if not ansi and self.rng.random() < 0.5:
            for number in self.rng.sample(range(len(told)), 3):
                self.cases += 1
                counted, wanted = self.table.count(told[number]), len(expected.get(number) or [])
                if counted != wanted:
                    raise WrongError(f"count {told[number]}: {counted} instead of {wanted}")

    def check_rows(self) -> None:
        """Compares all rows."""
        shown = {"bi": "hex(bi)", "kb": "hex(kb)", "st": "to_json(st)"}
        texts = ", ".join(shown.get(name, f"cast({name} as string)") for name in self.columns)
        found, wanted = (
            {row.rid: row.h for row in self.spark.sql(f"select rid, xxhash64({texts}) h from {table}").collect()}
            for table in (self.name, "plain_rows")
        )
        count = self.spark.sql(f"select count(*) from {self.name}").head()[0]  # type: ignore[index]  # one row
        if found != wanted or count != len(wanted):
            missing, more = sorted(wanted.keys() - found.keys())[:9], sorted(found.keys() - wanted.keys())[:9]
            others = [rid for rid in wanted if rid in found and found[rid] != wanted[rid]][:9]
            raise WrongError(f"{count} rows instead of {len(wanted)}: {missing=} {more=} {others=}")

    def one_by_one(self, told: list[str]) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
        """The rows that meet each condition, by plain Spark and of the table; without those that fail in Spark."""
        expected: dict[int, list[int]] = {}
        found: dict[int, list[int]] = {}
        for number, each in enumerate(told):
            with suppress(Exception):
                expected[number] = self.expected([each]).get(0, [])
            if number in expected:
                try:
                    found[number] = self.matching([each]).get(0, [])
                except Exception as error:
                    if not self.fails_on_a_former_row(each):
                        raise WrongError(f"{each}: raises {str(error)[:300]}") from error
                    del expected[number]
        return expected, found

    def fails_on_a_former_row(self, condition: str) -> bool:
        """Whether Spark may evaluate a condition on a deleted or replaced row, and it fails there (docs/limits.md)."""
        if not self.on_read:
            return False
        try:
            files = self.spark.table(f"{self.name}__files").where("coalesce(_zl_op, '') <> 'delete'")
            files.where(condition).collect()
        except Exception:
            return True
        return False

    def expected(self, told: list[str]) -> dict[int, list[int]]:
        """The rows that meet each condition, by plain Spark."""
        shown = ", ".join(f"({each}) c{number}" for number, each in enumerate(told))
        found: dict[int, list[int]] = {}
        for row in self.spark.sql(f"select rid, {shown} from plain_rows").collect():
            for number in range(len(told)):
                if row[number + 1]:
                    found.setdefault(number, []).append(row[0])
        return {number: sorted(rids) for number, rids in found.items()}

    def matching(self, told: list[str]) -> dict[int, list[int]]:
        """The rows that meet each condition, by a query on the table for each."""
        parts = [f"select {number} c, rid from {self.name} where {each}" for number, each in enumerate(told)]
        found: dict[int, list[int]] = {}
        for row in self.spark.sql(" union all ".join(parts)).collect():
            found.setdefault(row.c, []).append(row.rid)
        return {number: sorted(rids) for number, rids in found.items()}


def is_understood(frame: DataFrame, condition: str) -> bool:
    """Whether all columns of a condition are there."""
    try:
        frame.where(condition)
    except AnalysisException:
        return False
    return True


def _raw(rows: pa.Table) -> list[dict[str, Any]]:
    """Rows in values that keep everything."""
    columns = {}
    for name in rows.column_names:
        column = rows.column(name)
        kind = column.type
        if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
            column = column.cast(pa.int64())
        elif pa.types.is_date32(kind):
            column = column.cast(pa.int32())
        columns[name] = column.to_pylist()
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def _cooked(rows: list[dict[str, Any]], columns: list[str], types: dict[str, pa.DataType]) -> pa.Table:
    arrays = []
    for name in columns:
        values = [row[name] for row in rows]
        kind = types[name]
        if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
            arrays.append(pa.array(values, pa.int64()).cast(kind))
        elif pa.types.is_date32(kind):
            arrays.append(pa.array(values, pa.int32()).cast(kind))
        else:
            arrays.append(pa.array(values, kind))
    return pa.Table.from_arrays(arrays, names=columns)


def session_in(folder: Path) -> SparkSession:
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    for key, value in {
        "spark.driver.memory": "3g", "spark.sql.shuffle.partitions": "1", "spark.sql.warehouse.dir": str(folder / "w"),
        "spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.parquet.filterPushdown": "false", "spark.ui.showConsoleProgress": "false",
        "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
        "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
        "spark.sql.parquet.inferTimestampNTZ.enabled": "true", "spark.sql.timeType.enabled": "true",
    }.items():  # fmt: skip
        builder = builder.config(key, value)
    return builder.getOrCreate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seconds", type=float, nargs="?", default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--operations", type=int, default=12)
    parser.add_argument("--conditions", type=int, default=30)
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--damage", action="store_true")
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)
    folder = Path(tempfile.mkdtemp(prefix="index_fuzz"))
    spark = session_in(folder)
    spark.sparkContext.setLogLevel("OFF")
    spark.sql("create schema if not exists z")
    enable(spark)
    begun, seed, cases, states, wrong, failed = time.monotonic(), given.seed, 0, 0, 0, 0
    while time.monotonic() - begun < given.seconds:
        case = Case(spark, random.Random(seed), folder, seed, given.damage)
        try:
            case.begin()
            case.check(given.conditions)
            for _ in range(given.operations):
                if time.monotonic() - begun > given.seconds:
                    break
                states += 1
                case.new_session_settings()
                case.known = {}
                case.operate()
                case.check(given.conditions)
                if given.verbose:
                    print(f"{time.monotonic() - begun:.0f} s: {case.told[-3:]}", flush=True)
        except WrongError as error:
            wrong += 1
            print(f"WRONG seed {seed}: {error}\n  " + "\n  ".join(case.told), flush=True)
        except ConflictError as error:
            print(f"conflict seed {seed}: {error}", flush=True)
        except Exception:
            failed += 1
            print(
                f"FAILED seed {seed}: {traceback.format_exc(limit=-4)}\n  " + "\n  ".join(case.told[-6:]),
                flush=True,
            )
        cases += case.cases
        spark.conf.set(CASE, "false")
        for kind in ("table", "view"):
            with suppress(AnalysisException):
                spark.sql(f"drop {kind} if exists z.fuzz{seed}")
        shutil.rmtree(folder / "w" / "z.db" / f"fuzz{seed}", ignore_errors=True)
        for path in folder.glob("*.parquet"):
            path.unlink()
        print(
            f"seed {seed}: {cases:,} conditions on {states:,} states, {wrong} wrong, {failed} failed, "
            f"{time.monotonic() - begun:.0f} s",
            flush=True,
        )
        seed += 1
    spark.stop()
    shutil.rmtree(folder, ignore_errors=True)
    sys.exit(min(wrong + failed, 99))


if __name__ == "__main__":
    main()
