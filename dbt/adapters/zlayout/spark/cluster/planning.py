"""Plans a clustering: chooses groups from the index alone, then makes cuts from a sample of their keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dbt.adapters.zlayout.config.clustering import ReclusteringConfig
from dbt.adapters.zlayout.curve.model import CurveModel
from dbt.adapters.zlayout.curve.sizing import PartitionKey
from dbt.adapters.zlayout.errors import WriteError
from dbt.adapters.zlayout.index.statistics.partitions import partition_folder
from dbt.adapters.zlayout.layout.measures.key_space import boxes_of
from dbt.adapters.zlayout.layout.plans.cluster_plan import ClusterPlan, LeftGroup, PlannedGroup
from dbt.adapters.zlayout.layout.plans.file_groups import Candidates, plan_groups
from dbt.adapters.zlayout.layout.plans.forecast import Forecast, forecast
from dbt.adapters.zlayout.layout.plans.groups import FileGroup
from dbt.adapters.zlayout.quantities import counted
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog
from dbt.adapters.zlayout.spark.cluster.key_sample import KeySampler, SampledKeys
from dbt.adapters.zlayout.spark.cluster.survey import Survey
from dbt.adapters.zlayout.spark.files.arrow_source import ArrowSource
from dbt.adapters.zlayout.spark.jobs.jobs import Progress, why_failed
from dbt.adapters.zlayout.spark.jobs.workers import use_driver_python


@dataclass(frozen=True, eq=False)
class CutGroup:
    """A clustering group that is ready to be written.

    Attributes:
        files: bool[n], which of the version's files belong to the group.
        partition: Number of the files' partition.
        model: The curve with the group's cuts. None in a table without keys.
        forecast: The expected new files. None in a table without keys.
        told: The group as the plan reports it.
        source: The files as Arrow reads them. None if Spark has to read them.
    """

    files: npt.NDArray[np.bool_]
    partition: int
    model: CurveModel | None
    forecast: Forecast | None
    told: PlannedGroup
    source: ArrowSource | None = None


@dataclass(frozen=True, eq=False)
class CutPlan:
    """A clustering plan with everything that its execution needs.

    Attributes:
        survey: Survey of the version that was planned.
        groups: The groups, in the order of their rewrite.
        curve: A new curve for the whole table. None if the stored curve is kept.
        told: The plan as it is reported.
    """

    survey: Survey
    groups: tuple[CutGroup, ...]
    curve: CurveModel | None
    told: ClusterPlan


@dataclass(frozen=True)
class Planner:
    """Plans the clustering of one version.

    Attributes:
        catalog: The session's catalog.
        survey: Survey of the version.
        config: When a rewrite pays off.
        progress: Called with a line of text as the work goes on.
    """

    catalog: Catalog
    survey: Survey
    config: ReclusteringConfig
    progress: Progress | None = None

    def choose(self, eligible: npt.NDArray[np.bool_]) -> list[FileGroup]:
        """Returns the groups that are worth a rewrite, judged by the index alone.

        Args:
            eligible: bool[n], files that may be rewritten.
        """
        survey = self.survey
        partition = survey.opened.partition_of_file
        candidates = Candidates(survey.boxes, survey.size_bytes, partition, eligible, survey.as_built)
        groups = plan_groups(candidates, survey.cost_model, self.config)
        # Spark leaves files without a row. They have no keys to cut along.
        return [each for each in groups if not survey.layout.keys or survey.rows[each.files].any()]

    def outline(self, groups: Sequence[FileGroup]) -> ClusterPlan:
        """Returns a plan from the index alone. It estimates the number of new files from the size of each group."""
        cuts = [self._cut(group, None, None) for group in groups]
        state = self.survey.state
        version, left_out = self.survey.opened.version, self.survey.files_with_logs
        return ClusterPlan(version, tuple(each.told for each in cuts), state, state, files_with_logs=left_out)

    def cut(self, groups: Sequence[FileGroup]) -> CutPlan:
        """Makes cuts for the groups from a sample of their keys. Groups that turn out not to pay off are left out."""
        survey = self.survey
        if not groups:
            return CutPlan(survey, (), None, self._told((), ()))
        if not survey.layout.keys:
            cuts = [self._cut(group, None, None) for group in groups]
            return CutPlan(survey, tuple(cuts), None, self._told(cuts, ()))
        use_driver_python(self.catalog.spark)
        sampled, failed = self._sampled(groups)
        left = tuple(
            LeftGroup(self._partition_text(group), len(group.files), why_failed(error)) for group, error in failed
        )
        if not sampled:
            return CutPlan(survey, (), None, replace(self._told((), ()), groups_failed=left))
        outgrown = survey.outgrown()
        curve = None
        if survey.stored is None or outgrown:
            curve = self._curve(self._whole(sampled, failed), survey.cost_model.target_bytes)
        along = curve or survey.stored
        cuts = []
        for group, keys in sampled:
            model, came = self._cut_along(group, keys, along)
            cut = replace(self._cut(group, model, came), source=keys.source)
            if self._is_worth_it(cut):
                cuts.append(cut)
        told = replace(self._told(cuts, outgrown if cuts else ()), groups_failed=left)
        return CutPlan(survey, tuple(cuts), curve if cuts else None, told)

    def _sampled(
        self, groups: Sequence[FileGroup]
    ) -> tuple[list[tuple[FileGroup, SampledKeys]], list[tuple[FileGroup, WriteError]]]:
        """Returns each group with its sampled keys, and the groups whose keys cannot be read."""
        sampled, failed = [], []
        for number, group in enumerate(groups, 1):
            self._tell(
                f"sampling the keys of group {number:,} of {len(groups):,} ({counted(len(group.files), 'file')})"
            )
            try:
                sampled.append((group, self._sampler.sample(self._mask(group))))
            except WriteError as error:
                failed.append((group, error))
        return sampled, failed

    def _whole(
        self, sampled: Sequence[tuple[FileGroup, SampledKeys]], failed: Sequence[tuple[FileGroup, WriteError]]
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
            # An unreadable file that will not be rewritten must not block the groups that are worth it.
            chosen = [self._mask(group) for group, _ in sampled]
            return self._sampler.sample(np.logical_or.reduce(chosen))

    @property
    def _sampler(self) -> KeySampler:
        return KeySampler(self.catalog, self.survey, self.progress)

    def _tell(self, line: str) -> None:
        if self.progress is not None:
            self.progress(line)

    def _is_worth_it(self, cut: CutGroup) -> bool:
        merges = cut.told.reason in ("overlap", "small")
        if merges and cut.forecast is not None and self.survey.deepens(cut.files, cut.forecast.bounds):
            return False
        if cut.told.reason == "overlap":
            return cut.told.saves is not None and cut.told.saves >= self.config.min_gain
        if cut.told.reason in ("small", "large") and cut.forecast is not None:
            before = int(cut.files.sum())
            return (len(cut.forecast) < before) if cut.told.reason == "small" else (len(cut.forecast) > before)
        return True

    def _cut_along(self, group: FileGroup, keys: SampledKeys, along: CurveModel | None) -> tuple[CurveModel, Forecast]:
        boxes = self.survey.boxes
        spans = boxes.high[:, group.files].max(axis=1) - boxes.low[:, group.files].min(axis=1)
        target_bytes = round(keys.size_bytes / self._files_after(group, keys.shrinks_to))
        model = self._curve(keys, target_bytes, along=along, spans=spans.tolist())
        # The rows' spelling counts: a folder that another tool made may spell the same value differently.
        partition = keys.partitions[0] if keys.partitions else ()
        return model, forecast(keys.sample, model, partition, keys.rows, keys.size_bytes)

    def _files_after(self, group: FileGroup, shrinks_to: float = 1.0) -> int:
        model, sizes = (
            self.survey.cost_model,
            np.rint(self.survey.size_bytes[group.files] * shrinks_to).astype(np.int64),
        )
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
        )

    def _cut(self, group: FileGroup, model: CurveModel | None, came: Forecast | None) -> CutGroup:
        survey, mask = self.survey, self._mask(group)
        size = int(survey.size_bytes[mask].sum())
        told = PlannedGroup(
            partition=self._partition_text(group),
            paths=tuple(survey.opened.files.filter(mask)["path"].to_pylist()),
            rows=int(survey.rows[mask].sum()),
            size_bytes=size,
            reason=group.reason,
            files_after=self._files_after(group) if came is None else len(came),
            saves=round(group.gain / group.cost, 4) if came is None and group.cost else None,
        )
        if came is not None:
            told = replace(told, saves=self._saved(mask, came))
        return CutGroup(mask, self._partition_number(group), model, came, told)

    def _saved(self, mask: npt.NDArray[np.bool_], came: Forecast) -> float | None:
        """Returns the share of bytes that queries no longer read of a group, by its forecast files."""
        survey = self.survey
        before = float(survey.cost[mask].sum())
        stay = ~mask
        bounds = [each.take(stay).plus(other) for each, other in zip(survey.bounds, came.bounds, strict=True)]
        boxes = boxes_of(bounds, np.concatenate([survey.rows[stay], came.rows]), survey.marks)
        sizes = np.concatenate([survey.size_bytes[stay], came.size_bytes])
        after = float(survey.cost_model.cost(boxes, sizes)[int(stay.sum()) :].sum())
        return round(1 - after / before, 4) if before else None

    def _told(self, cuts: Sequence[CutGroup], resampled: tuple[str, ...]) -> ClusterPlan:
        survey = self.survey
        gone = np.zeros(len(survey.rows), bool)
        for cut in cuts:
            gone |= cut.files
        came = [(cut.partition, cut.forecast.bounds, cut.forecast.rows) for cut in cuts if cut.forecast is not None]
        before = survey.state
        if not cuts:
            after = before
        elif survey.layout.keys:
            after = survey.state_after(gone, came)
        else:
            files = before.files - int(gone.sum()) + sum(cut.told.files_after for cut in cuts)
            after = replace(before, files=files, files_read=float(files))
        groups = tuple(cut.told for cut in cuts)
        return ClusterPlan(survey.opened.version, groups, before, after, resampled, survey.files_with_logs)

    def _mask(self, group: FileGroup) -> npt.NDArray[np.bool_]:
        mask = np.zeros(len(self.survey.rows), bool)
        mask[group.files] = True
        return mask

    def _partition_number(self, group: FileGroup) -> int:
        return int(self.survey.opened.partition_of_file[group.files[0]])

    def _partition_key(self, group: FileGroup) -> PartitionKey:
        opened = self.survey.opened
        return tuple(opened.partition_keys[self._partition_number(group)]) if opened.partition_columns else ()

    def _partition_text(self, group: FileGroup) -> str:
        names = self.survey.opened.partition_columns
        return partition_folder(tuple(zip(names, self._partition_key(group), strict=True))) if names else ""
