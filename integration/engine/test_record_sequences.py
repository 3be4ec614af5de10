"""The law of merge-on-read tables: whatever is done to one, in whatever order, it reads as a dictionary would."""

import math
import os
import random

import pytest

from dbt.adapters.zlayout.errors import VersionNotFoundError
from dbt.adapters.zlayout.table.ztable import ZTable

# As many as the other sequences are long, where these are only tried.
STEPS = 4 * int(os.environ.get("ZLAYOUT_SEQUENCES", "1"))
SEED = int(os.environ.get("ZLAYOUT_SEED", "0")) or random.SystemRandom().randrange(1_000_000)
# What leaves the rows of base files as the last compaction of each file group left them.
AS_COMPACTED = ("delete", "schedule", "cluster", "clean")
KEYS, PLACES = 40, ("a", "b", "ü/=", None)
COLUMNS, SCHEMA = "k, p, o, v", "k int, p string, o double, v string"
# Types that a further column has in turn, each wider than the one before; None where there is no such column.
EXTRA = (None, "int", "bigint")
EXTRA_VALUES = {"int": (None, 0, -5, 2**31 - 1), "bigint": (None, 0, -(2**63), 2**40)}


class Model:
    """What the table shall hold: by key the partition, the order, the value and that of the further column."""

    def __init__(self, ordered):
        self.rows, self.ordered, self.extra = {}, ordered, EXTRA[0]

    def upsert(self, rows):
        best = {}
        for k, p, o, v, x in rows:
            if k not in best or rank(o) >= rank(best[k][1]) or not self.ordered:
                best[k] = (p, o, v, x)
        for k, (p, o, v, x) in best.items():
            then = self.rows.get(k)
            if then is None or not self.ordered or then[1] is None or (o is not None and rank(o) >= rank(then[1])):
                self.rows[k] = (p, o, v, x)

    def next_schema(self):
        """The further column comes, gets wider, and goes with all that it held."""
        self.extra = EXTRA[(EXTRA.index(self.extra) + 1) % len(EXTRA)]
        if self.extra is None:
            self.rows = {k: (*row[:3], None) for k, row in self.rows.items()}

    def table(self):
        return [(k, *row) for k, row in self.rows.items()]

    def past(self):
        return dict(self.rows), self.extra

    @property
    def columns(self):
        return f"{COLUMNS}, x" if self.extra else COLUMNS

    @property
    def schema(self):
        return f"{SCHEMA}, x {self.extra}" if self.extra else SCHEMA


def rank(order):
    """Spark's order of doubles: null, numbers, NaN."""
    if order is None:
        return (0, 0.0)
    return (2, 0.0) if math.isnan(order) else (1, order + 0.0)


def some_rows(rng, ordered, extra):
    count = rng.choice([0, 1, 3, 12, 30])
    keys = [rng.randrange(KEYS) for _ in range(count)]
    if not ordered:
        keys = sorted(set(keys))
    orders = [None, 0.0, -0.0, 1.0, 2.0, 3.0, float("nan")]
    further = EXTRA_VALUES.get(extra, (None,))
    return [(k, rng.choice(PLACES), rng.choice(orders), f"v{rng.randrange(1000)}", rng.choice(further)) for k in keys]


slow = pytest.mark.slow


@pytest.mark.parametrize(
    ("partitioned", "ordered"),
    [(True, True), *(pytest.param(*each, marks=slow) for each in ((True, False), (False, True), (False, False)))],
)
def test_any_sequence_reads_as_a_dictionary(spark, partitioned, ordered):
    name = f"z.law_{int(partitioned)}{int(ordered)}"
    print(f"ZLAYOUT_SEED={SEED}")
    rng = random.Random(f"{SEED}{partitioned}{ordered}")
    first = [(k, rng.choice(PLACES), 1.0, f"first{k}", None) for k in range(0, KEYS, 2)]
    model = Model(ordered)
    model.upsert(first)
    table = ZTable.write(
        spark,
        name,
        frame_of(spark, model, first),
        table_type="merge_on_read",
        unique_key="k",
        bloom=["k"],
        lookup=["k"],
        ordering="o" if ordered else None,
        partition_by=["p"] if partitioned else (),
        zorder=["k"],
        target_file_size="2kb",
        small_file_limit="3kb",
        compaction="off",
        retain_hours=0,
        retain_versions=2,
    )
    past = {table.version: model.past()}
    done = []
    steps = {
        "upsert": lambda: upsert(spark, table, model, some_rows(rng, ordered, model.extra)),
        "schema change": lambda: change_schema(spark, table, model, rng, ordered),
        "delete": lambda: delete(table, model, rng.randrange(2, 9)),
        "compact": lambda: table.compact(execute=False),
        "log compaction": lambda: table.compact(logs_only=True),
        "schedule": lambda: table.compact(schedule=True),
        "execute": lambda: table.compact(execute=True),
        "cluster": lambda: table.cluster(rewrite_all=True),
        "clean": lambda: table.clean(dry_run=False),
        "rollback": lambda: roll_back(table, model, past),
    }
    weights = [8, 2, 3, 2, 2, 2, 2, 2, 1, 1]
    base_rows = found(spark, model, f"{name}__ro")
    for _ in range(STEPS):
        step = rng.choices(list(steps), weights)[0]
        done.append(step)
        nothing_waits = not table.information()["pending_compactions"]
        steps[step]()
        table = ZTable.for_name(spark, name)
        before, base_rows = base_rows, found(spark, model, f"{name}__ro")
        if step in AS_COMPACTED or (step == "log compaction" and nothing_waits):
            assert base_rows == before, done
        if step == "upsert":
            # Many new rows become base files at once.
            assert set(before) <= set(base_rows) <= {*before, *normal(model.table())}, done
        if step == "compact" and nothing_waits:
            assert base_rows == normal(model.table()), done
        past[table.version] = model.past()
        assert table.information()["rows"] == len(model.rows), done
        assert found(spark, model, name) == normal(model.table()), done
        edge = rng.randrange(KEYS)
        check_changes(table, model, past, min(past) if len(done) % 2 else rng.choice(sorted(past)))
        want = [row for row in model.table() if row[0] < edge and row[3] > "v5"]
        assert found(spark, model, f"{name} where k < {edge} and v > 'v5'") == normal(want), done
    table.compact()
    table.compact()
    for each in (name, f"{name}__ro"):
        assert found(spark, model, each) == normal(model.table()), done
    assert table.index_status().num_rows == 0
    assert table.verify(data=True).num_rows == 0


def frame_of(spark, model, rows):
    return spark.createDataFrame([row if model.extra else row[:4] for row in rows], model.schema).coalesce(1)


def upsert(spark, table, model, rows, **options):
    table.upsert(frame_of(spark, model, rows), **options)
    model.upsert(rows)


def change_schema(spark, table, model, rng, ordered):
    model.next_schema()
    upsert(spark, table, model, some_rows(rng, ordered, model.extra), on_schema_change="sync_all_columns")


def delete(table, model, modulus):
    table.delete(f"k % {modulus} = 1")
    model.rows = {k: row for k, row in model.rows.items() if k % modulus != 1}


def roll_back(table, model, past):
    version = max(past) - 1
    if version in past:
        table.rollback(version)
        rows, model.extra = past[version]
        model.rows = dict(rows)


def check_changes(table, model, past, version):
    """The difference to an earlier version is that of the two dictionaries."""
    try:
        changed = table.net_changes(version).collect()
    except VersionNotFoundError:
        return  # a clean has deleted its files
    told = {row.k: (row._zl_change, (row.k, row.p, row.o, row.v, row.x if model.extra else None)) for row in changed}
    assert len(told) == len(changed)
    was = {k: (*row[:3], row[3] if model.extra and past[version][1] else None) for k, row in past[version][0].items()}
    want = {}
    for k in was.keys() | model.rows.keys():
        old, new = ((k, *rows[k]) if k in rows else None for rows in (was, model.rows))
        if old is None or new is None or normal([old]) != normal([new]):
            want[k] = ("delete", old) if new is None else ("update" if old else "insert", new)
    assert told.keys() == want.keys()
    assert all(told[k][0] == want[k][0] and normal([told[k][1]]) == normal([want[k][1]]) for k in want)


def found(spark, model, source):
    """What a query of the table gives; its columns are the model's."""
    frame = spark.sql(f"select * from {source}")
    assert set(frame.columns) == set(model.columns.split(", "))
    rows = [tuple(row) for row in frame.select(*model.columns.split(", ")).collect()]
    return normal(row if model.extra else (*row, None) for row in rows)


def normal(rows):
    """Sorted; NaN equals NaN and -0.0 equals 0.0, as in Spark, and no partition is the empty one."""
    told = [(k, p or "", "null" if o is None else repr(o + 0.0), v, x) for k, p, o, v, x in rows]
    return sorted(told, key=repr)
