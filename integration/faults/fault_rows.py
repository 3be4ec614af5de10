"""Rows of the suite's tables, in Spark and as a model: a multiset of (k, v, extra)."""

import hashlib
from collections import Counter
from collections.abc import Iterable

PARTITIONS = "abcd"
Rows = Counter

_COLUMNS = """
    select k, v, sha2(concat(k, '/', v), 256) note{more}, element_at(array('a', 'b', 'c', 'd'), cast(k % 4 as int) + 1) p
    from ({source})
"""


def frame_of(spark, pairs: Iterable[tuple[int, int]], more: str = ""):
    """A DataFrame of the table's columns for pairs of k and v."""
    # Not as literals: the analyzer takes longer over a thousand of these than the write.
    text = ",".join(f"{k}:{v}" for k, v in pairs)
    pairs_sql = f"select explode(split('{text}', ',')) pair" if text else "select '0:0' pair where false"
    source = f"select bigint(split(pair, ':')[0]) k, bigint(split(pair, ':')[1]) v from ({pairs_sql})"
    # Two tasks, so that two workers write.
    return spark.sql(_COLUMNS.format(source=source, more=more)).repartition(2, "k")


def rows_of(frame) -> Rows:
    """The rows of a DataFrame, each checked to be whole."""
    names = frame.columns
    found: Rows = Counter()
    for row in frame.collect():
        k, v = row["k"], row["v"]
        assert row["p"] == PARTITIONS[k % 4], row
        assert row["note"] == hashlib.sha256(f"{k}/{v}".encode()).hexdigest(), row
        found[k, v, row["extra"] if "extra" in names else None] += 1
    return found


def counted(pairs: Iterable[tuple[int, int]], extra: int | None = None) -> Rows:
    """The rows of pairs of k and v."""
    return Counter((k, v, extra) for k, v in pairs)


def without(rows: Rows, condition) -> Rows:
    """The rows whose k does not meet a condition."""
    return Counter({row: count for row, count in rows.items() if not condition(row[0])})


def difference(found: Rows, wanted: Rows) -> str:
    """What is lost and what is too much, in short."""
    lost, more = wanted - found, found - wanted
    return f"{sum(lost.values())} rows lost {sorted(lost)[:3]}, {sum(more.values())} too many {sorted(more)[:3]}"
