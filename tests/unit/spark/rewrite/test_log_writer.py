import pyarrow as pa
import pyarrow.parquet as pq

from dbt.adapters.zlayout.config.table_type import INSTANT, OP, SEQ
from dbt.adapters.zlayout.index.statistics.tracked import TrackedColumn
from dbt.adapters.zlayout.spark.files.file_report import Tracking
from dbt.adapters.zlayout.spark.files.parquet_file import ParquetSettings
from dbt.adapters.zlayout.spark.rewrite.build import BuildTask
from dbt.adapters.zlayout.spark.rewrite.log_writer import LogBuild

SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.string()), (OP, pa.string()), (INSTANT, pa.int64()), (SEQ, pa.int64())])
INSTANT_OF_COMMIT = "20260101000000000"


def logs_in(folder):
    (folder / "inflight").touch()
    build = BuildTask(
        schema=SCHEMA,
        root_uri=folder.as_uri(),
        instant=INSTANT_OF_COMMIT,
        inflight_path="inflight",
        keys=(),
        partition_by=(),
        model=None,
        target_file_bytes=1 << 20,
        row_group_rows=100,
        settings=ParquetSettings("zstd", "{}", "4.3.0"),
        tracking=Tracking((TrackedColumn((SEQ,), pa.int64()),)),
    )
    return LogBuild(build, ("k",), 1 << 20, 1 << 20, 1 << 20)


def records(*rows):
    keys, values, operations = zip(*rows, strict=True)
    return pa.record_batch(
        [pa.array(each) for each in (keys, values, operations, ["a" * 16] * len(rows))], list("abcd")
    )


def test_deletes_have_no_place_so_that_statistics_tell_how_many_there_are(tmp_path):
    log = logs_in(tmp_path)
    rows = [(3, "x", "upsert"), (1, None, "delete"), (2, None, "delete"), (4, "y", "upsert")]
    [report] = [row for each in log([records(*rows)]) for row in each.to_pylist()]
    [path] = tmp_path.rglob("*.log.parquet")
    found = pq.read_table(path, schema=SCHEMA)
    assert found.select(["k", OP, SEQ]).to_pylist() == [
        {"k": 1, OP: "delete", SEQ: None},
        {"k": 2, OP: "delete", SEQ: None},
        {"k": 3, OP: "upsert", SEQ: 2},
        {"k": 4, OP: "upsert", SEQ: 3},
    ]
    statistics = pa.ipc.open_stream(report["statistics"]).read_all()
    [seq] = [column for column in statistics.to_pylist()[0].values() if isinstance(column, dict)]
    assert seq["null_count"] == 2
