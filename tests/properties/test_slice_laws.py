"""Laws of index slices: what is read of them in part is what was written, however they are cut and whatever is kept."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from dbt.adapters.zlayout.errors import FileMissingError
from dbt.adapters.zlayout.index.column_slices import chunk_of, values_of
from dbt.adapters.zlayout.index.memory_budget import MemoryBudget
from dbt.adapters.zlayout.index.slice_writing import slice_path, write_slices
from dbt.adapters.zlayout.index.statistics.column_stats import column_stats_table, stats_type
from dbt.adapters.zlayout.index.table_index import CachedStatistics, TableIndex
from dbt.adapters.zlayout.timeline.files.data_files import DataFile, DataFiles

# Other examples in each run; `make test-all` takes twice as many.
many = settings(max_examples=200 if os.environ.get("ZLAYOUT_LAWS") == "full" else 100, deadline=None)
VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.bool_(): st.booleans(),
    pa.int8(): st.integers(-128, 127),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float64(): st.floats(allow_nan=False),
    pa.decimal128(16, 3): st.decimals(-(10**12), 10**12, places=3),
    pa.date32(): st.dates(),
    pa.timestamp("us", tz="UTC"): st.datetimes(timezones=st.just(dt.timezone.utc)),
    pa.time64("us"): st.times(),
    pa.duration("us"): st.timedeltas(dt.timedelta(microseconds=-(2**62)), dt.timedelta(microseconds=2**62)),
    pa.string(): st.text(st.characters(exclude_categories=("Cs",)), max_size=5),
    pa.binary(): st.binary(max_size=5),
}


@st.composite
def columns(draw: st.DrawFn) -> pa.Array:
    kind = draw(st.sampled_from(list(VALUES)))
    values = pa.array(draw(st.lists(st.none() | VALUES[kind], max_size=20)), kind)
    return values.slice(draw(st.integers(0, len(values))), draw(st.integers(0, len(values))))


@many
@given(columns())
def test_a_chunk_gives_back_its_values(values: pa.Array) -> None:
    chunk = chunk_of(values)
    found = values_of(chunk.content, chunk.plain_bytes, values.type, len(values))
    assert found.equals(values)
    nulls = [each % 3 == 0 for each in range(len(values))]
    struct = pa.StructArray.from_arrays([values, values], ["min", "max"], mask=pa.array(nulls, pa.bool_()))
    chunk = chunk_of(struct)
    found = values_of(chunk.content, chunk.plain_bytes, struct.type, len(values))
    unknown = {"min": None, "max": None}
    assert found.to_pylist() == [each or unknown for each in struct.to_pylist()]


class MemoryStore:
    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def read(self, path: str) -> bytes:
        if path not in self.files:
            raise FileMissingError(path)
        return self.files[path]

    def read_tail(self, path: str, most_bytes: int) -> bytes:
        return self.read(path)[-most_bytes:]

    def read_ranges(self, path: str, starts: Sequence[int], lengths: Sequence[int]) -> list[bytes]:
        return [self.read(path)[start : start + length] for start, length in zip(starts, lengths, strict=True)]


PATHS = st.tuples(st.sampled_from(["", "a", "a!", "a/b", "é", "\U0001f600"]), st.sampled_from("abcdefgh"))
ROWS = st.fixed_dictionaries(
    {
        "min": st.none() | st.integers(-9, 9),
        "max": st.none() | st.integers(-9, 9),
        "min_exact": st.booleans(),
        "max_exact": st.booleans(),
        "null_count": st.none() | st.integers(0, 3),
        "nan_count": st.just(0),
        "value_count": st.none() | st.integers(3, 6),
    }
)
COMMITS = st.lists(
    st.dictionaries(PATHS, st.tuples(st.integers(1, 3), st.lists(ROWS, min_size=2, max_size=2)), max_size=12),
    min_size=1,
    max_size=4,
)
KIND = stats_type(pa.int64())


def path_of(path: tuple[str, str]) -> str:
    return "/".join(each for each in path if each) + ".parquet"


@many
@given(COMMITS, st.integers(1, 5), st.integers(0, 3_000), st.data())
def test_statistics_are_what_the_newest_slice_with_the_file_says(
    commits: list[dict[tuple[str, str], tuple[int, list[Any]]]], group_rows: int, most_bytes: int, data: st.DataObject
) -> None:
    store, slices = MemoryStore(), []
    known: dict[tuple[str, int], list[Any]] = {}
    for number, commit in enumerate(commits):
        # The first columns of later commits have other numbers.
        names = [("x",), ("y",)] if number % 2 else [("y",), ("x",)]
        files = DataFiles.of([DataFile(path_of(path), (), rows, 5, 6, "g") for path, (rows, _) in commit.items()])
        structs = [pa.array([cells[place] for _, cells in commit.values()], KIND) for place in range(2)]
        table = column_stats_table(files["path"].combine_chunks(), names, structs)
        content = write_slices(files, table, group_rows)["column_stats"]
        slices.append(slice_path("column_stats", f"{number:017d}", content))
        store.files[slices[-1]] = content
        for path, (rows, cells) in commit.items():
            known[path_of(path), rows] = cells if number % 2 else cells[::-1]
    live = data.draw(st.lists(st.tuples(PATHS, st.integers(1, 3)), max_size=12, unique_by=lambda each: each[0]))
    files = DataFiles.of([DataFile(path_of(path), (), rows, 5, 6, "g") for path, rows in live])
    index = TableIndex(store, {"column_stats": slices})
    cached = CachedStatistics(index, files, MemoryBudget(most_bytes))
    for _ in range(4):
        asked = data.draw(st.sets(st.sampled_from([("x",), ("y",), ("z",)])))
        chosen = data.draw(st.none() | st.sets(st.integers(0, max(0, len(live) - 1)))) if live else None
        positions = None if chosen is None else np.array(sorted(chosen), np.int64)
        found = data.draw(st.sampled_from([index, cached])).statistics(files, asked, positions)
        some = live if positions is None else [live[position] for position in positions]
        assert found.row_count.to_pylist() == [rows for _, rows in some]
        for place, path in enumerate([("x",), ("y",)]):
            bounds = found.column(path)
            if path not in asked or bounds is None:
                assert path not in asked or not any((path_of(name), rows) in known for name, rows in some)
                continue
            expected = [known.get((path_of(name), rows)) for name, rows in some]
            for field, cell in [("minimum", "min"), ("maximum", "max"), ("null_count", "null_count")]:
                stored = [None if each is None else each[place][cell] for each in expected]
                assert getattr(bounds, field).to_pylist() == stored
            assert {len(getattr(bounds, each.name)) for each in fields(bounds) if each.name != "type"} == {len(some)}
        if ("z",) in asked:
            assert found.column(("z",)) is None
    assert index.problems == []
