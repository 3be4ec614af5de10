import numpy as np
import pyarrow as pa
import pytest

from dbt.adapters.zlayout.spark.files.parquet_file import ParquetSettings
from dbt.adapters.zlayout.spark.rewrite.stage import Staged, StageTask

SCHEMA = pa.schema([("id", pa.int64())])


def sampled(batches, most_rows):
    """What a task's sample of ``id`` is, and how many rows it stands for."""
    stage = StageTask(
        schema=SCHEMA,
        root_uri="",
        folder="",
        keys=(("id",),),
        partition_by=(),
        sample_rows=most_rows,
        settings=ParquetSettings("zstd", "{}", "4.3.0"),
        target_file_bytes=1 << 20,
        keeps_rows=False,
    )
    [answer] = [row for batch in stage(batches) for row in batch.to_pylist()]
    staged = Staged.of([Answer(answer)])
    return staged.samples[0]


class Answer:
    def __init__(self, values):
        vars(self).update(values)


def batches_of(*counts):
    start = 0
    for count in counts:
        yield pa.record_batch({"id": pa.array(range(start, start + count))}, schema=SCHEMA)
        start += count


@pytest.mark.parametrize("counts", [(50_000,), (10,) * 900, (1, 40_000, 3), (700, 20_000, 20_000)])
def test_a_sample_is_bounded_and_without_repetition(counts):
    seen, sample = sampled(batches_of(*counts), 1_000)
    ids = sample.column("0").to_pylist()
    assert seen == sum(counts)
    assert len(ids) == len(set(ids)) == min(1_000, sum(counts))
    assert set(ids) <= set(range(sum(counts)))


def test_few_rows_are_all_sampled():
    assert sorted(sampled(batches_of(30, 5), 1_000)[1].column("0").to_pylist()) == list(range(35))


@pytest.mark.parametrize("counts", [(60_000,), (1_000,) * 60, (50_000, 10_000)])
def test_every_row_has_the_same_chance(counts):
    found = np.concatenate([sampled(batches_of(*counts), 2_000)[1].column("0").to_numpy() for _ in range(10)])
    tenths = np.bincount(found // 6_000, minlength=10)
    # 20,000 draws: a tenth holds 2,000, give or take 45 at one standard deviation.
    assert np.abs(tenths - 2_000).max() < 300


def test_the_samples_of_many_tasks_are_thinned_alike():
    tables = [pa.table({"0": np.arange(start, start + 1_000)}) for start in range(0, 6_000, 1_000)]
    samples = tuple((each.num_rows, each) for each in tables)
    staged = Staged((), (), (), 6_000, 0, None, samples, {})
    ids = staged.uniform_sample(600).column("0").to_numpy()
    assert len(np.unique(ids)) == len(ids)
    assert np.bincount(ids // 1_000).tolist() == [100] * 6
    assert staged.uniform_sample(10_000).num_rows == staged.uniform_sample().num_rows == 6_000
