"""Statistics, filters and entries of expressions: the tasks of Spark jobs, which run here without Spark."""

from functools import partial

import numpy as np
import pyarrow as pa

from dbt.adapters.zlayout.index.bloom.file_filters import filter_table, held_by
from dbt.adapters.zlayout.index.bloom.filter_slices import slice_path, write_slices
from dbt.adapters.zlayout.index.bloom.hashing import hashes_of
from dbt.adapters.zlayout.index.lookup.lookup_key import LookupKey
from dbt.adapters.zlayout.index.lookup.lookup_slices import LookupSlice
from dbt.adapters.zlayout.index.lookup.table_lookups import TableLookups
from dbt.adapters.zlayout.index.statistics.tracked import TrackedColumn
from dbt.adapters.zlayout.predicate.expr import EXPRESSION, Column
from dbt.adapters.zlayout.spark.commit.optional_slices import NewOptional
from dbt.adapters.zlayout.spark.files.distinct_values import Pieces, Wanted
from dbt.adapters.zlayout.spark.files.file_report import filters_of
from dbt.adapters.zlayout.spark.read.values_by_file import _Hashes, _Lacking, _Pieces
from dbt.adapters.zlayout.store import open_store
from dbt.adapters.zlayout.timeline.files.data_files import DataFile, DataFiles

INSTANT = "20260101000000000"
COLUMNS = (
    TrackedColumn((EXPRESSION, "lower(email)", "spark 4.3"), pa.string()),
    TrackedColumn((EXPRESSION, "d * -1", "spark 4.3"), pa.float64()),
)
FILTERED = Wanted(COLUMNS)
LOOKED_UP = Wanted(COLUMNS[:1], tuple(LookupKey((each,)) for each in COLUMNS))
PATHS = {"file:///t/a.parquet": "a.parquet", "file:///t/b.parquet": "b.parquet"}
FILES = DataFiles.of([DataFile(path, (), 3, 100, 0, "g") for path in PATHS.values()], ())


def rows(texts, numbers, uris):
    return pa.record_batch([pa.array(texts, pa.string()), pa.array(numbers), pa.array(uris)], ["c0", "c1", "file"])


def shuffled(batches):
    """The hashes of all batches, those of a file together, as the shuffle hands them on."""
    found = pa.Table.from_batches(list(_Hashes(COLUMNS, PATHS)(batches)))
    return found.sort_by("path").to_batches(max_chunksize=2)


def test_hashes_from_several_batches_become_one_filter_of_each_file(tmp_path):
    first, second = list(PATHS)
    texts = [f"u{number}" for number in range(900)]
    batches = [
        rows(["x", None, "y"], [1.0, float("nan"), -0.0], [first, first, second]),
        rows(texts, [2.0] * 900, [first] * 900),
        rows([], pa.array([], pa.float64()), []),
        rows(["z"], pa.array([None], pa.float64()), [second]),
    ]
    store = open_store(tmp_path.as_uri())
    done = list(_Pieces(FILTERED, store.root_uri, INSTANT)(shuffled(batches)))
    tables = [filters_of(store, each.column(0)[0].as_py()) for each in done]
    contents = {
        table.column("path")[0].as_py(): [table.column(f"c{i}")[0].as_py()["content"] for i in range(2)]
        for table in tables
    }
    assert list(contents) == ["a.parquet", "b.parquet"]
    lowered, negated = contents["a.parquet"]
    assert held_by(lowered, hashes_of(pa.array(["x", *texts]), pa.string())).all()
    others = held_by(lowered, hashes_of(pa.array([f"v{number}" for number in range(2_000)]), pa.string()))
    assert np.mean(others) < 0.03
    assert held_by(negated, hashes_of(pa.array([1.0, 2.0, float("nan")]), pa.float64())).all()
    lowered, negated = contents["b.parquet"]
    assert held_by(lowered, hashes_of(pa.array(["y", "z"]), pa.string())).all()
    assert held_by(negated, hashes_of(pa.array([0.0]), pa.float64())).all()
    assert len(negated) == 32


def test_filters_that_lack_values_are_found(tmp_path):
    (first, *_), store = PATHS, open_store(tmp_path.as_uri())
    batches = shuffled([rows(["x", "y", "z"], [1.0, 2.0, 3.0], [first] * 3)])
    done = _Pieces(FILTERED, store.root_uri, INSTANT)(batches)
    right = [filters_of(store, each.column(0)[0].as_py()) for each in done]
    lowered = bytes(len(right[0].column("c0")[0].as_py()["content"]))
    wrong = filter_table(["a.parquet"], COLUMNS[:1], {COLUMNS[0].path: [lowered]})
    for tables, expected in ((right, []), ([wrong], [("a.parquet", "bloom", 0, 3)])):
        (content,) = write_slices(FILES, tables)
        path = slice_path(INSTANT, content)
        store.put(path, content)
        told = _Lacking(FILTERED, store.root_uri, {"bloom_filters": (path,), "lookups": ()}, FILES)(batches)
        assert [tuple(each.to_pylist()[0].values()) for each in told] == expected


class Row(dict):
    __getattr__ = dict.get


def entries(store, batches):
    """The slices of the files' filters and entries, by index partition."""
    done = _Pieces(LOOKED_UP, store.root_uri, INSTANT)(shuffled(batches))
    pieces = Pieces.of_rows([Row(each.to_pylist()[0]) for each in done])
    assert len(pieces.filters) == len(pieces.hashes)
    return NewOptional.of(pieces).put(store, INSTANT, FILES)


def test_entries_of_expressions_know_the_files_of_each_value_and_of_null(tmp_path):
    first, second = list(PATHS)
    store = open_store(tmp_path.as_uri())
    batches = [
        rows(["x", None, "y"], [1.0, float("nan"), -0.0], [first, first, second]),
        rows(["ÿ", "x"], [None, 2.0], [first, second]),
    ]
    index = entries(store, batches)
    assert (len(index["bloom_filters"]), len(index["lookups"])) == (1, 2)
    found = TableLookups(index["lookups"], partial(LookupSlice, store), lambda _: None)
    assert found.keys == {(each.path,) for each in COLUMNS}
    lowered, negated = (Column(each.path, each.type) for each in COLUMNS)
    for column, values, holding in (
        (lowered, ["ÿ"], [True, False]),
        (lowered, ["y", "no"], [False, True]),
        (lowered, [None], [True, False]),
        (lowered, ["no"], [False, False]),
        (negated, [0.0], [False, True]),
        (negated, [float("nan")], [True, False]),
        (negated, [None], [True, False]),
    ):
        assert found.of(FILES).may_hold(column, pa.array(values, column.type)).tolist() == holding, values
    other = Column((*lowered.path[:2], "spark 4.4"), pa.string())
    assert found.of(FILES).may_hold(other, pa.array(["no"])) is None


def test_entries_that_lack_values_are_found(tmp_path):
    (first, *_), store = PATHS, open_store(tmp_path.as_uri())
    index = entries(store, [rows(["x", "y"], [1.0, 2.0], [first] * 2)])
    for batch, expected in (
        (rows(["x"], [2.0], [first]), []),
        (rows(["x", "z", None], [7.0, 1.0, None], [first] * 3), [("bloom", 0, 1), ("lookup", 0, 2), ("lookup", 1, 2)]),
    ):
        told = _Lacking(LOOKED_UP, store.root_uri, dict(index), FILES)(shuffled([batch]))
        assert [tuple(each.to_pylist()[0].values()) for each in told] == [("a.parquet", *each) for each in expected]


def test_values_of_another_type_leave_their_file_without_entries(tmp_path):
    (first, second), store = PATHS, open_store(tmp_path.as_uri())
    wrong = pa.record_batch([pa.array(["x"]), pa.array(["no number"]), pa.array([first])], ["c0", "c1", "file"])
    index = entries(store, [wrong, rows(["x"], [2.0], [second])])
    found = TableLookups(index["lookups"], partial(LookupSlice, store), lambda _: None).of(FILES)
    assert found.untold(LookupKey(COLUMNS[1:])).tolist() == [True, False]
    assert found.may_hold(Column(COLUMNS[1].path, pa.float64()), pa.array([5.0])).tolist() == [True, False]
    assert found.covered(LookupKey(COLUMNS[:1])).all()
