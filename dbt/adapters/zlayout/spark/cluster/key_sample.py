"""Samples the keys of files that may be rewritten, with Arrow where possible and with Spark otherwise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dbt.adapters.zlayout.curve.model import PartitionKey
from dbt.adapters.zlayout.errors import WriteError
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog
from dbt.adapters.zlayout.spark.cluster.survey import Survey
from dbt.adapters.zlayout.spark.files.arrow_source import ArrowSource
from dbt.adapters.zlayout.spark.files.parquet_file import ParquetSettings
from dbt.adapters.zlayout.spark.jobs.jobs import Progress, short_message
from dbt.adapters.zlayout.spark.read.relations import frame_of
from dbt.adapters.zlayout.spark.rewrite.file_writer import needs_spark, parquet_settings
from dbt.adapters.zlayout.spark.rewrite.key_sample import key_sample, key_sample_of_files
from dbt.adapters.zlayout.spark.rewrite.stage import Staged
from dbt.adapters.zlayout.spark.schema.types import arrow_schema


@dataclass(frozen=True, eq=False)
class SampledKeys:
    """Keys sampled from some files, and the files' size.

    Attributes:
        sample: A uniform sample of the keys.
        partitions: Partition of each sampled row. None if the table has no partitions.
        rows: Number of rows in the files.
        size_bytes: Expected size of the files after a rewrite.
        shrinks_to: The expected size as a share of the current size. 1.0 if it was not measured.
        source: The files as Arrow reads them. None if Spark has to read them.
    """

    sample: pa.Table
    partitions: list[PartitionKey] | None
    rows: int
    size_bytes: int
    shrinks_to: float
    source: ArrowSource | None


@dataclass(frozen=True)
class KeySampler:
    """Samples the keys of a version's files.

    Attributes:
        catalog: The session's catalog.
        survey: Survey of the version.
        progress: Called with a line of text as the work goes on.
    """

    catalog: Catalog
    survey: Survey
    progress: Progress | None = None

    def sample(self, files: npt.NDArray[np.bool_]) -> SampledKeys:
        """Samples the keys of the given files.

        Args:
            files: bool[n], which of the version's files to sample.

        Raises:
            WriteError: The files could not be read.
        """
        survey, partition_by = self.survey, self.survey.layout.partition_by
        rows, size = int(survey.rows[files].sum()), int(survey.size_bytes[files].sum())
        source = self._source(files)
        if source is None:
            sample, partitions = self._by_spark(files).key_sample(len(partition_by))
            return SampledKeys(sample, partitions, rows, size, 1.0, None)
        staged = self._by_arrow(source)
        sample, _ = staged.key_sample(0)
        shrinks_to = min(1.0, (staged.bytes_per_row or size / rows) * rows / size)
        partitions = [source.partition] * sample.num_rows if partition_by else None
        return SampledKeys(sample, partitions, rows, round(size * shrinks_to), shrinks_to, source)

    def _source(self, files: npt.NDArray[np.bool_]) -> ArrowSource | None:
        opened, layout = self.survey.opened, self.survey.layout
        partitions = np.unique(opened.partition_of_file[files])
        if needs_spark(layout, self.catalog.spark) or len(partitions) > 1:
            return None
        kinds = arrow_schema(layout.partition_json).types
        values = opened.partition_keys[int(partitions[0])] if layout.partition_by else ()
        paths = opened.files.filter(files)["path"].to_pylist()
        return ArrowSource.of(opened.store, paths, layout.data_schema, list(zip(values, kinds, strict=True)))

    def _by_arrow(self, source: ArrowSource) -> Staged:
        spark, keys, target = self.catalog.spark, self.survey.layout.keys, self.survey.cost_model.target_bytes
        return self._or_error(lambda: key_sample_of_files(spark, source, keys, self._settings, target, self.progress))

    def _by_spark(self, files: npt.NDArray[np.bool_]) -> Staged:
        layout, rows = self.survey.layout, frame_of(self.catalog, self.survey.opened, files)
        return self._or_error(
            lambda: key_sample(
                rows, layout.data_schema, layout.keys, layout.partition_by, self._settings, self.progress
            )
        )

    @property
    def _settings(self) -> ParquetSettings:
        return parquet_settings(self.survey.layout, self.catalog.spark)

    def _or_error(self, sample: Callable[[], Staged]) -> Staged:
        try:
            return sample()
        except Exception as error:
            why = short_message(error)
            raise WriteError(f"{self.survey.opened.location}: {why}; the table is as it was") from error
