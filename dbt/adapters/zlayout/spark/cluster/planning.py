"""Plans a clustering: surveys files and chooses groups from the index alone, then makes cuts from a sample of keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.config.clustering import ALONG_CURVE, ClusteringConfig, ClusterStrategy, ReclusteringConfig
from dbt.adapters.zlayout.config.column_names import format_column_path
from dbt.adapters.zlayout.curve.keys import Comparable, comparable, is_orderable
from dbt.adapters.zlayout.curve.model import CurveModel, PartitionKey
from dbt.adapters.zlayout.errors import WriteError
from dbt.adapters.zlayout.index.statistics.partitions import partition_folder
from dbt.adapters.zlayout.layout.chosen_groups import Candidates, ChosenGroup, pack_groups, packs_of, plan_groups
from dbt.adapters.zlayout.layout.cluster_plan import (
    ClusterPlan,
    Forecast,
    LayoutState,
    LeftGroup,
    PlannedGroup,
    deepens,
    forecast,
    forecast_packs,
    layout_state,
)
from dbt.adapters.zlayout.layout.cost import CostModel
from dbt.adapters.zlayout.layout.key_space import Boxes, Floats, KeyBounds, boxes_of, fullest_bucket
from dbt.adapters.zlayout.lazy import cached_property
from dbt.adapters.zlayout.predicate.expr import ColumnPath
from dbt.adapters.zlayout.pruning.statistics.column_bounds import ColumnBounds
from dbt.adapters.zlayout.quantities import counted
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog
from dbt.adapters.zlayout.spark.files.arrow_source import ArrowSource
from dbt.adapters.zlayout.spark.jobs.jobs import Progress, failing_as_write_error, why_failed
from dbt.adapters.zlayout.spark.jobs.workers import use_driver_python
from dbt.adapters.zlayout.spark.read.relations import frame_of
from dbt.adapters.zlayout.spark.rewrite.file_writer import needs_spark, parquet_settings
from dbt.adapters.zlayout.spark.rewrite.key_sample import key_sample, key_sample_of_files
from dbt.adapters.zlayout.spark.rewrite.stage import Staged
from dbt.adapters.zlayout.spark.schema.table_schema import type_at
from dbt.adapters.zlayout.spark.schema.types import arrow_schema
from dbt.adapters.zlayout.spark.snapshot.table_layout import TableLayout
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot

# Rows between two neighbouring boundaries cannot be cut apart: if they exceed one file, the key needs new boundaries.
_MOST_FILES_IN_A_BUCKET = 1.0


@dataclass(frozen=True)
class Survey:
    """The files of one version, as seen by clustering.

    Attributes:
        layout: The wanted layout of the files.
        max_file_bytes: A file larger than this is too large.
        files_with_logs: Number of files of the version that are left out because log files change their rows.
    """

    opened: TableSnapshot
    layout: TableLayout
    max_file_bytes: int
    files_with_logs: int = 0

    @cached_property
    def stored(self) -> CurveModel | None:
        """The table's curve, if it was made for this layout."""
        schema, keys = self.layout.data_schema, self.layout.keys
        if not keys or any(_ordered_type(schema, path) is None for path in keys):
            return None
        return self.layout.stored_model(self.opened.store, self.opened.snapshot)

    @cached_property
    def rows(self) -> npt.NDArray[np.int64]:
        """int64[n], number of rows of each file."""
        return np.asarray(self.opened.files["row_count"].to_numpy(), np.int64)

    @cached_property
    def size_bytes(self) -> npt.NDArray[np.int64]:
        """int64[n], size of each file."""
        return np.asarray(self.opened.files["size_bytes"].to_numpy(), np.int64)

    @cached_property
    def bounds(self) -> tuple[KeyBounds, ...]:
        """Bounds of each key, per file."""
        statistics = self.opened.statistics.statistics(self.opened.files, self.layout.keys)
        kinds = [_ordered_type(self.layout.data_schema, path) for path in self.layout.keys]
        return tuple(
            _key_bounds(None if kind is None else statistics.column(path), kind or pa.int64(), statistics.row_count)
            for path, kind in zip(self.layout.keys, kinds, strict=True)
        )

    @cached_property
    def boundaries(self) -> tuple[Comparable, ...]:
        """Stored boundaries of each key. Empty without a stored curve."""
        if self.stored is None:
            return ()
        return tuple(Comparable(each.values, np.zeros(len(each.values), bool)) for each in self.stored.boundaries)

    @cached_property
    def boxes(self) -> Boxes:
        """Position of each file in the key space."""
        return boxes_of(self.bounds, self.rows, self.boundaries)

    @cached_property
    def cost_model(self) -> CostModel:
        """Model of what it costs to read the files."""
        clustering = self.layout.config.clustering
        target = self.layout.config.file_sizing.target_file_bytes
        asked = None if self.stored is None else self.stored.asked
        weights = None if asked is None else asked.key_weights()
        return CostModel.of(target, self.max_file_bytes, len(self.layout.keys), clustering.curve, weights)

    def sorted_by(self, columns: tuple[ColumnPath, ...]) -> Survey:
        """Returns the survey of the same files as a sort by other columns sees them."""
        config = self.layout.config
        clustering = ClusteringConfig(columns, "linear")
        return replace(self, layout=replace(self.layout, config=replace(config, clustering=clustering)))

    def outgrown(self) -> tuple[str, ...]:
        """Returns the keys whose stored boundaries no longer divide the rows finely enough."""
        target = self.layout.config.file_sizing.target_file_bytes
        files = self.size_bytes.sum() / target
        return tuple(
            format_column_path(path)
            for path, key, boundaries in zip(self.layout.keys, self.bounds, self.boundaries, strict=False)
            if fullest_bucket(key, self.rows, boundaries) * files > _MOST_FILES_IN_A_BUCKET
        )

    @cached_property
    def cost(self) -> Floats:
        """float64[n], bytes that a query reads of each file on average."""
        return self.cost_model.cost(self.boxes, self.size_bytes)

    @cached_property
    def state(self) -> LayoutState:
        """The layout in three figures."""
        return layout_state(self.bounds, self.rows, self.opened.partition_of_file, self.cost_model, self.boundaries)

    @cached_property
    def as_built(self) -> npt.NDArray[np.bool_]:
        """bool[n], files that the last build cut for the current target size."""
        built: Mapping[str, Any] = self.opened.snapshot.layout.get("built", {})
        if built.get("target_file_bytes") != self.layout.config.file_sizing.target_file_bytes:
            return ~self.opened.all_files()
        paths = self.opened.files["path"].combine_chunks()
        found: npt.NDArray[np.bool_] = pc.ends_with(paths, f"_{built['instant']}.parquet").to_numpy(False)
        return found

    def deepens(self, removed: npt.NDArray[np.bool_], added: Sequence[KeyBounds]) -> bool:
        """Returns whether a rewrite would make the files overlap more deeply than now.

        Args:
            removed: bool[n], files to remove, all of one partition.
            added: Bounds of each key for the new files.
        """
        partition = self.opened.partition_of_file
        neighbours = partition == partition[np.argmax(removed)]
        return deepens([each.take(neighbours) for each in self.bounds], removed[neighbours], added)

    def state_after(
        self,
        removed: npt.NDArray[np.bool_],
        added: Sequence[tuple[int, tuple[KeyBounds, ...], npt.NDArray[np.int64]]],
    ) -> LayoutState:
        """Returns the layout as it would be after a rewrite.

        Args:
            removed: bool[n], files to remove.
            added: New files: number of their partition, bounds of each key, number of rows.
        """
        partition, rows = self.opened.partition_of_file[~removed], self.rows[~removed]
        bounds = [each.take(~removed) for each in self.bounds]
        for number, keys, more in added:
            partition = np.concatenate([partition, np.full(len(more), number)])
            rows = np.concatenate([rows, more])
            bounds = [each.plus(other) for each, other in zip(bounds, keys, strict=True)]
        return layout_state(bounds, rows, partition, self.cost_model, self.boundaries)


def _ordered_type(schema: pa.Schema, path: ColumnPath) -> pa.DataType | None:
    """Returns the type at a path; None if Arrow lacks it, or has no order for it, as for a struct."""
    try:
        kind = type_at(schema, path)
    except KeyError:
        return None
    return kind if is_orderable(kind) else None


def _key_bounds(bounds: ColumnBounds | None, kind: pa.DataType, row_count: pa.Array) -> KeyBounds:
    if bounds is None:
        nothing = comparable(pa.nulls(len(row_count), kind))
        return KeyBounds(nothing, nothing, np.zeros(len(row_count), bool))
    empty = pc.fill_null(pc.equal(bounds.null_count, row_count), False)
    return KeyBounds(comparable(bounds.minimum), comparable(bounds.maximum), empty.to_numpy(zero_copy_only=False))


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
    """Samples the keys of a version's files."""

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
        with failing_as_write_error(survey.opened.location):
            staged = self._staged(files, source)
        if source is None:
            sample, partitions = staged.key_sample(len(partition_by))
            return SampledKeys(sample, partitions, rows, size, 1.0, None)
        sample, _ = staged.key_sample(0)
        shrinks_to = min(1.0, (staged.bytes_per_row or size / rows) * rows / size)
        partitions = [source.partition] * sample.num_rows if partition_by else None
        return SampledKeys(sample, partitions, rows, round(size * shrinks_to), shrinks_to, source)

    def _source(self, files: npt.NDArray[np.bool_]) -> ArrowSource | None:
        opened, layout = self.survey.opened, self.survey.layout
        partitions = np.unique(opened.partition_of_file[files])
        if needs_spark(layout) or len(partitions) > 1:
            return None
        kinds = arrow_schema(layout.partition_json).types
        values = opened.partition_keys[int(partitions[0])] if layout.partition_by else ()
        paths = opened.files.filter(files)["path"].to_pylist()
        return ArrowSource.of(opened.store, paths, layout.data_schema, list(zip(values, kinds, strict=True)))

    def _staged(self, files: npt.NDArray[np.bool_], source: ArrowSource | None) -> Staged:
        spark, layout = self.catalog.spark, self.survey.layout
        settings = parquet_settings(layout, spark)
        if source is not None:
            target_bytes = self.survey.cost_model.target_bytes
            return key_sample_of_files(spark, source, layout.keys, settings, target_bytes, self.progress)
        rows = frame_of(self.catalog, self.survey.opened, files)
        return key_sample(rows, layout.data_schema, layout.keys, layout.partition_by, settings, self.progress)


@dataclass(frozen=True, eq=False)
class CutGroup:
    """A clustering group that is ready to be written.

    Attributes:
        files: bool[n], which of the version's files belong to the group.
        partition: Number of the files' partition.
        model: The curve with the group's cuts. None in a table without keys, and if rows do not follow the curve.
        forecast: The expected new files. None in a table without keys.
        reported: The group as the plan reports it.
        source: The files as Arrow reads them. None if Spark has to read them, or if the rows do not follow the curve.
        packs: With the strategy ``binpack``, for each new file the positions of the files whose rows it takes over.
    """

    files: npt.NDArray[np.bool_]
    partition: int
    model: CurveModel | None
    forecast: Forecast | None
    reported: PlannedGroup
    source: ArrowSource | None = None
    packs: tuple[npt.NDArray[np.int64], ...] = ()


@dataclass(frozen=True, eq=False)
class CutPlan:
    """A clustering plan with everything that its execution needs.

    Attributes:
        survey: Survey of the version that was planned.
        groups: The groups, in the order of their rewrite.
        curve: A new curve for the whole table. None if the stored curve is kept.
        reported: The plan as it is reported.
    """

    survey: Survey
    groups: tuple[CutGroup, ...]
    curve: CurveModel | None
    reported: ClusterPlan


@dataclass(frozen=True)
class Planner:
    """Plans the clustering of one version.

    Attributes:
        config: When a rewrite pays off.
        strategy: How the rows of chosen groups are arranged.
    """

    catalog: Catalog
    survey: Survey
    config: ReclusteringConfig
    progress: Progress | None = None
    strategy: ClusterStrategy = ALONG_CURVE

    def choose(self, eligible: npt.NDArray[np.bool_]) -> list[ChosenGroup]:
        """Returns the groups for which a rewrite pays off, judged by the index alone.

        Args:
            eligible: bool[n], files that may be rewritten.
        """
        survey, strategy = self.survey, self.strategy
        seen = survey.sorted_by(strategy.sort_by) if strategy.name == "sort" else survey
        partition = survey.opened.partition_of_file
        candidates = Candidates(seen.boxes, survey.size_bytes, partition, eligible, survey.as_built)
        if strategy.name == "binpack":
            groups = pack_groups(candidates, survey.cost_model.target_bytes, self.config)
        else:
            groups = plan_groups(candidates, seen.cost_model, self.config)
        groups = [replace(each, strategy=strategy) for each in groups]
        # Spark sometimes writes empty files, which have no keys to cut along.
        return [each for each in groups if not seen.layout.keys or survey.rows[each.files].any()]

    def outline(self, groups: Sequence[ChosenGroup]) -> ClusterPlan:
        """Returns a plan from the index alone. It estimates the number of new files from the size of each group."""
        cuts = [self._cut(group, None, None) for group in groups]
        state = self.survey.state
        version, left_out = self.survey.opened.version, self.survey.files_with_logs
        return ClusterPlan(version, tuple(each.reported for each in cuts), state, state, files_with_logs=left_out)

    def cut(self, groups: Sequence[ChosenGroup]) -> CutPlan:
        """Makes cuts for the groups from a sample of their keys. Groups that turn out not to pay off are left out."""
        survey = self.survey
        along_curve = [group for group in groups if survey.layout.keys and group.strategy.name == "curve"]
        others = [self._cut(group, None, None) for group in groups if group not in along_curve]
        if not along_curve:
            return CutPlan(survey, tuple(others), None, self._reported(others, ()))
        use_driver_python(self.catalog.spark)
        sampled, failed = self._sampled(along_curve)
        left = tuple(
            LeftGroup(self._partition_text(group), len(group.files), why_failed(error)) for group, error in failed
        )
        if not sampled:
            return CutPlan(survey, tuple(others), None, replace(self._reported(others, ()), groups_failed=left))
        outgrown = survey.outgrown()
        curve = None
        if survey.stored is None or outgrown:
            curve = self._curve(self._whole(sampled, failed), survey.cost_model.target_bytes)
        along = curve or survey.stored
        cuts = []
        for group, keys in sampled:
            model, expected = self._cut_along(group, keys, along)
            cut = replace(self._cut(group, model, expected), source=keys.source)
            if self._is_worth_it(cut):
                cuts.append(cut)
        every = [*cuts, *others]
        reported = replace(self._reported(every, outgrown if cuts else ()), groups_failed=left)
        return CutPlan(survey, tuple(every), curve if cuts else None, reported)

    def _sampled(
        self, groups: Sequence[ChosenGroup]
    ) -> tuple[list[tuple[ChosenGroup, SampledKeys]], list[tuple[ChosenGroup, WriteError]]]:
        """Returns each group with its sampled keys, and the groups whose keys cannot be read."""
        sampled, failed = [], []
        files = sum(len(group.files) for group in groups)
        self._tell(f"sampling the keys of {counted(len(groups), 'group')} ({counted(files, 'file')})")
        for group in groups:
            try:
                sampled.append((group, self._sampler.sample(self._mask(group))))
            except WriteError as error:  # noqa: PERF203 - of one group; the others go on
                failed.append((group, error))
        return sampled, failed

    def _whole(
        self, sampled: Sequence[tuple[ChosenGroup, SampledKeys]], failed: Sequence[tuple[ChosenGroup, WriteError]]
    ) -> SampledKeys:
        """Samples the keys of the whole table, as far as they can be read."""
        group, keys = sampled[0]
        if len(group.files) == len(self.survey.rows):
            return keys
        self._tell("sampling the keys of the whole table for a new curve")
        files = self.survey.opened.all_files()
        for unread, _ in failed:
            files &= ~self._mask(unread)
        try:
            return self._sampler.sample(files)
        except WriteError:
            # An unreadable file that will not be rewritten must not block the other groups.
            chosen = [self._mask(group) for group, _ in sampled]
            return self._sampler.sample(np.logical_or.reduce(chosen))

    @property
    def _sampler(self) -> KeySampler:
        return KeySampler(self.catalog, self.survey, self.progress)

    def _tell(self, line: str) -> None:
        if self.progress is not None:
            self.progress(line)

    def _is_worth_it(self, cut: CutGroup) -> bool:
        merges = cut.reported.reason in ("overlap", "small")
        if merges and cut.forecast is not None and self.survey.deepens(cut.files, cut.forecast.bounds):
            return False
        if cut.reported.reason == "overlap":
            return cut.reported.saves is not None and cut.reported.saves >= self.config.min_gain
        if cut.reported.reason in ("small", "large") and cut.forecast is not None:
            before = int(cut.files.sum())
            return (len(cut.forecast) < before) if cut.reported.reason == "small" else (len(cut.forecast) > before)
        return True

    def _cut_along(
        self, group: ChosenGroup, keys: SampledKeys, along: CurveModel | None
    ) -> tuple[CurveModel, Forecast]:
        boxes = self.survey.boxes
        spans = boxes.high[:, group.files].max(axis=1) - boxes.low[:, group.files].min(axis=1)
        target_bytes = round(keys.size_bytes / self._files_after(group, keys.shrinks_to))
        model = self._curve(keys, target_bytes, along=along, spans=spans.tolist())
        # As the rows spell the values: a folder that another tool created may spell them differently.
        partition = keys.partitions[0] if keys.partitions else ()
        return model, forecast(keys.sample, model, partition, keys.rows, keys.size_bytes)

    def _files_after(self, group: ChosenGroup, shrinks_to: float = 1.0) -> int:
        model = self.survey.cost_model
        sizes = np.rint(self.survey.size_bytes[group.files] * shrinks_to).astype(np.int64)
        return int(model.files_for(np.array([float(sizes.sum())]), np.array([model.most_files(sizes).sum()]))[0])

    def _curve(
        self,
        keys: SampledKeys,
        target_bytes: int,
        along: CurveModel | None = None,
        spans: Sequence[float] | None = None,
    ) -> CurveModel:
        layout = self.survey.layout
        return CurveModel.build(
            keys.sample,
            layout.keys,
            layout.config.clustering.curve,
            total_rows=keys.rows,
            bytes_per_row=keys.size_bytes / max(1, keys.rows),
            target_file_bytes=target_bytes,
            row_group_rows=layout.config.file_sizing.row_group_rows,
            partition_keys=keys.partitions,
            along=along,
            spans=spans,
            asked=None if self.survey.stored is None else self.survey.stored.asked,
        )

    def _cut(self, group: ChosenGroup, model: CurveModel | None, expected: Forecast | None) -> CutGroup:
        survey, mask = self.survey, self._mask(group)
        size = int(survey.size_bytes[mask].sum())
        packs: list[npt.NDArray[np.int64]] = []
        if group.strategy.name == "binpack":
            positions = packs_of(survey.size_bytes[group.files], survey.cost_model.target_bytes)
            packs = [group.files[pack] for pack in positions]
            expected = forecast_packs(survey.bounds, packs, survey.rows, survey.size_bytes)
        reported = PlannedGroup(
            partition=self._partition_text(group),
            paths=tuple(survey.opened.files["path"].take(pa.array(group.files)).to_pylist()),
            rows=int(survey.rows[mask].sum()),
            size_bytes=size,
            reason=group.reason,
            files_after=self._files_after(group) if expected is None else len(expected),
            saves=round(group.gain / group.cost, 4) if expected is None and group.cost else None,
            strategy=group.strategy,
        )
        if expected is not None and model is not None:
            reported = replace(reported, saves=self._saved(mask, expected))
        return CutGroup(mask, self._partition_number(group), model, expected, reported, packs=tuple(packs))

    def _saved(self, mask: npt.NDArray[np.bool_], expected: Forecast) -> float | None:
        """Returns the share of bytes that queries no longer read of a group, by its forecast files."""
        survey = self.survey
        before = float(survey.cost[mask].sum())
        kept = ~mask
        bounds = [each.take(kept).plus(other) for each, other in zip(survey.bounds, expected.bounds, strict=True)]
        boxes = boxes_of(bounds, np.concatenate([survey.rows[kept], expected.rows]), survey.boundaries)
        sizes = np.concatenate([survey.size_bytes[kept], expected.size_bytes])
        after = float(survey.cost_model.cost(boxes, sizes)[int(kept.sum()) :].sum())
        return round(1 - after / before, 4) if before else None

    def _reported(self, cuts: Sequence[CutGroup], resampled: tuple[str, ...]) -> ClusterPlan:
        survey = self.survey
        before, groups = survey.state, tuple(cut.reported for cut in cuts)
        files = before.files + sum(group.files_after - len(group.paths) for group in groups)
        if not cuts:
            after = before
        elif any(group.strategy.name == "sort" for group in groups):
            # Only the sort itself shows which values of the clustering keys end up in which file.
            after = replace(before, files=files)
        elif survey.layout.keys:
            removed = np.logical_or.reduce([cut.files for cut in cuts])
            forecasts = [(cut.partition, cut.forecast) for cut in cuts if cut.forecast is not None]
            after = survey.state_after(removed, [(place, each.bounds, each.rows) for place, each in forecasts])
        else:
            after = replace(before, files=files, files_read=float(files))
        return ClusterPlan(survey.opened.version, groups, before, after, resampled, survey.files_with_logs)

    def _mask(self, group: ChosenGroup) -> npt.NDArray[np.bool_]:
        mask = np.zeros(len(self.survey.rows), bool)
        mask[group.files] = True
        return mask

    def _partition_number(self, group: ChosenGroup) -> int:
        return int(self.survey.opened.partition_of_file[group.files[0]])

    def _partition_text(self, group: ChosenGroup) -> str:
        opened = self.survey.opened
        if not opened.partition_columns:
            return ""
        values = opened.partition_keys[self._partition_number(group)]
        return partition_folder(tuple(zip(opened.partition_columns, values, strict=True)))
