import numpy as np
import pyarrow as pa

from dbt.adapters.zlayout.index.bloom.filter_slices import slice_path, write_slices
from dbt.adapters.zlayout.index.bloom.filter_table import filter_table
from dbt.adapters.zlayout.index.bloom.hashing import hashes_of
from dbt.adapters.zlayout.index.bloom.split_block import held_by
from dbt.adapters.zlayout.index.statistics.tracked import TrackedColumn
from dbt.adapters.zlayout.predicate.expr import EXPRESSION
from dbt.adapters.zlayout.spark.files.file_report import filters_of
from dbt.adapters.zlayout.spark.read.frame_statistics import _Filters, _Hashes, _Lacking
from dbt.adapters.zlayout.store import open_store
from dbt.adapters.zlayout.timeline.files.data_files import DataFile, DataFiles

COLUMNS = (
    TrackedColumn((EXPRESSION, "lower(email)", "spark 4.3"), pa.string()),
    TrackedColumn((EXPRESSION, "d * -1", "spark 4.3"), pa.float64()),
)
PATHS = {"file:///t/a.parquet": "a.parquet", "file:///t/b.parquet": "b.parquet"}


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
    done = list(_Filters(COLUMNS, store.root_uri, "20260101000000000")(shuffled(batches)))
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
    files = DataFiles.of([DataFile("a.parquet", (), 3, 100, 0, "g")], ())
    done = _Filters(COLUMNS, store.root_uri, "20260101000000000")(batches)
    right = [filters_of(store, each.column(0)[0].as_py()) for each in done]
    lowered = bytes(len(right[0].column("c0")[0].as_py()["content"]))
    wrong = filter_table(["a.parquet"], COLUMNS[:1], {COLUMNS[0].path: [lowered]})
    for tables, expected in ((right, []), ([wrong], [("a.parquet", 0, 3)])):
        (content,) = write_slices(files, tables)
        path = slice_path("20260101000000000", content)
        store.put(path, content)
        told = _Lacking(COLUMNS, store.root_uri, (path,), files)(batches)
        assert [tuple(each.column(i)[0].as_py() for i in range(3)) for each in told] == expected
