import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt.adapters.zlayout.curve.model import CurveModel
from dbt.adapters.zlayout.errors import WriteError
from dbt.adapters.zlayout.spark.files.file_report import Tracking
from dbt.adapters.zlayout.spark.files.parquet_file import ParquetSettings
from dbt.adapters.zlayout.spark.rewrite.build import BuildTask

SCHEMA = pa.schema([("id", pa.int64()), ("word", pa.string())])
KEYS = (("id",),)
MODEL = CurveModel.build(
    pa.table({"0": range(1_000)}),
    KEYS,
    "zorder",
    total_rows=1_000,
    bytes_per_row=8,
    target_file_bytes=8_000,
    row_group_rows=100,
)


def build_in(folder):
    (folder / "inflight").touch()
    return BuildTask(
        schema=SCHEMA,
        root_uri=folder.as_uri(),
        instant="20260101000000000",
        inflight_path="inflight",
        keys=KEYS,
        partition_by=(),
        model=MODEL.to_bytes(),
        target_file_bytes=1 << 20,
        row_group_rows=100,
        settings=ParquetSettings("zstd", "{}", "4.3.0"),
        tracking=Tracking(()),
    )


def blobs(leaves, blobs_a_leaf, rows_a_leaf, words=("a", "b")):
    """Rows of one file as tasks send them: several pieces a leaf, each with a dictionary of its own."""
    for leaf in range(leaves):
        for piece in range(blobs_a_leaf):
            ids = range(leaf * rows_a_leaf + piece, (leaf + 1) * rows_a_leaf, blobs_a_leaf)
            texts = pa.array([words[piece % len(words)]] * len(ids)).dictionary_encode()
            yield ("[]", 0, 0), leaf, pa.table({"id": ids, "word": texts})


def groups_of(folder, report):
    footer = pq.read_metadata(folder / report.file.path)
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    return [(each.num_rows, each.column(0).statistics.min, each.column(0).statistics.max) for each in groups]


@pytest.mark.parametrize("pieces", [1, 5, 20])
def test_a_row_group_is_a_leaf_however_many_tasks_sent_it(tmp_path, pieces):
    [report] = build_in(tmp_path).files(blobs(4, pieces, 100))
    assert groups_of(tmp_path, report) == [(100, 100 * leaf, 100 * leaf + 99) for leaf in range(4)]


def test_leaves_of_few_rows_are_put_together(tmp_path):
    [report] = build_in(tmp_path).files(blobs(10, 2, 30))
    assert [rows for rows, _, _ in groups_of(tmp_path, report)] == [60] * 5


def test_rows_lie_along_the_curve_and_dictionaries_are_put_together(tmp_path):
    [report] = build_in(tmp_path).files(blobs(3, 4, 100))
    rows = pq.read_table(tmp_path / report.file.path)
    assert rows["id"].to_pylist() == list(range(300))
    assert rows["word"].to_pylist() == [("a", "b")[each % 100 % 4 % 2] for each in range(300)]


def test_a_file_that_comes_after_its_transaction_has_ended_is_gone(tmp_path):
    build = build_in(tmp_path)
    (tmp_path / "inflight").unlink()
    with pytest.raises(WriteError, match="finished too late"):
        list(build.files(blobs(1, 1, 10)))
    assert list(tmp_path.rglob("*.parquet")) == []


def test_a_task_keeps_freed_memory_unless_the_user_chose_an_allocator(tmp_path, monkeypatch):
    before = pa.default_memory_pool()
    try:
        monkeypatch.setenv("ARROW_DEFAULT_MEMORY_POOL", "system")
        assert list(build_in(tmp_path)([])) == []
        assert pa.default_memory_pool().backend_name == before.backend_name
        monkeypatch.delenv("ARROW_DEFAULT_MEMORY_POOL")
        assert list(build_in(tmp_path)([])) == []
        assert pa.default_memory_pool().backend_name == "jemalloc"
    finally:
        pa.set_memory_pool(before)
