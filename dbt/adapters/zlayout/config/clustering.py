"""Clustering settings: the key columns, the curve, and when and how files are rewritten.

The workload chooses the keys with ``zorder: auto``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from dbt.adapters.zlayout.config import settings
from dbt.adapters.zlayout.config.column_names import format_column_path, parse_column_list
from dbt.adapters.zlayout.config.scalars import Parser, one_of
from dbt.adapters.zlayout.config.settings import ClusteringMode, CurveName, declared, read_as
from dbt.adapters.zlayout.config.workload import WeightedCondition
from dbt.adapters.zlayout.curve.query_boxes import QueryBoxes
from dbt.adapters.zlayout.predicate.expr import ColumnPath

MAX_ZORDER_COLUMNS = 8
# Keys that control how a clustering run works, as opposed to when a model starts one.
CLUSTER_SETTINGS = settings.keys_of(settings.Scope.CLUSTERING)

AUTO = "auto"
_AUTO_KEYS = "auto_keys"
_MIN_FILE_SHARE, _MAX_FILE_SHARE = 0.75, 1.8


@dataclass(frozen=True)
class AutoKeys:
    """Whether the workload chooses the keys.

    Attributes:
        wanted: Whether it does.
        workload: Conditions that queries put on the table, as the settings name them.
        why: Why the present keys and cuts were chosen, in a sentence; None if nothing was chosen yet.
    """

    wanted: bool = False
    workload: tuple[WeightedCondition, ...] = ()
    why: str | None = None

    def after(self, before: AutoKeys) -> AutoKeys:
        """Returns these settings with the reason of earlier ones, unless there is a new one."""
        return replace(self, why=self.why or before.why) if self.wanted or self.workload else self

    def stored(self) -> dict[str, Any]:
        """Returns the settings as a version stores them."""
        if self.wanted:
            return {_AUTO_KEYS: {"why": self.why}}
        return {} if self.why is None else {_AUTO_KEYS: {"why": self.why, "keys": False}}

    @classmethod
    def of_stored(cls, layout: Mapping[str, Any]) -> AutoKeys:
        """Returns the settings that a version stores."""
        stored = layout.get(_AUTO_KEYS)
        if stored is None:
            return cls()
        why = stored["why"]
        return cls(wanted=bool(stored.get("keys", True)), why=None if why is None else str(why))


def parse_auto_keys(raw: Mapping[str, object], problems: list[str]) -> AutoKeys:
    """Reads `zorder: auto` and ``workload``."""
    return AutoKeys(_is_auto(raw.get(settings.ZORDER.key)), settings.WORKLOAD.read(raw, problems) or ())


def _is_auto(zorder: object) -> bool:
    """Returns whether a value of ``zorder`` is the word 'auto'. A column of that name is written as a list."""
    return isinstance(zorder, str) and zorder.strip().lower() == AUTO


@dataclass(frozen=True)
class ClusteringConfig:
    """The clustering of a table.

    Attributes:
        columns: The keys, most important first; empty for a table that is not clustered.
        curve: The curve that orders the rows.
        by_workload: Whether cuts may follow the queries of a workload.
        asked: What queries ask for, for a write that makes such cuts. A version stores it with the curve.
    """

    columns: tuple[ColumnPath, ...] = declared(settings.ZORDER)
    curve: CurveName = declared(settings.CURVE)
    by_workload: bool = False
    asked: QueryBoxes | None = field(default=None, compare=False, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """The keys as ``zorder`` lists them."""
        return tuple(map(format_column_path, self.columns))

    def stored(self) -> dict[str, Any]:
        """Returns the settings as a version stores them."""
        return {
            "zorder": [list(path) for path in self.columns],
            "curve": self.curve,
            **({"by_workload": True} if self.by_workload else {}),
        }

    @classmethod
    def of_stored(cls, layout: Mapping[str, Any]) -> ClusteringConfig:
        """Returns the settings that a version stores."""
        columns = tuple(tuple(path) for path in layout.get("zorder", []))
        return cls(columns, layout.get("curve", cls.curve), bool(layout.get("by_workload")))


ClusterStrategyName = Literal["curve", "binpack", "sort"]


@dataclass(frozen=True)
class ClusterStrategy:
    """How a clustering arranges the rows of the files that it rewrites.

    Attributes:
        name: ``curve`` places rows along the table's curve, ``binpack`` appends small files to one another, ``sort``
            sorts the rows.
        sort_by: The columns of ``sort``, most important first; ascending, nulls first.
    """

    name: ClusterStrategyName = "curve"
    sort_by: tuple[ColumnPath, ...] = ()

    def __str__(self) -> str:
        """Describes the result: ``along the curve``, ``packed`` or ``sorted by a, b``."""
        words = {"curve": "along the curve", "binpack": "packed"}
        return words.get(self.name) or f"sorted by {', '.join(map(format_column_path, self.sort_by))}"


ALONG_CURVE = ClusterStrategy()


def parse_strategy(strategy: object, sort_by: object, problems: list[str]) -> ClusterStrategy:
    """Reads the arguments ``strategy`` and ``sort_by`` of a clustering.

    >>> problems: list[str] = []
    >>> str(parse_strategy("sort", "day, address.city", problems)), problems
    ('sorted by day, address.city', [])
    """
    before = len(problems)
    read: Parser[Any] = one_of(*get_args(ClusterStrategyName))
    name: Any = ALONG_CURVE.name if strategy is None else read("strategy", strategy, problems)
    columns = parse_column_list("sort_by", sort_by, problems)
    if name is None or len(problems) > before:
        return ALONG_CURVE
    if name == "sort" and not columns:
        problems.append("sort_by: strategy 'sort' needs the columns to sort by, such as sort_by=['a', 'b']")
    if name != "sort" and sort_by is not None:
        problems.append(f"sort_by: strategy '{name}' does not sort by columns; set strategy 'sort', or leave it out")
    return ClusterStrategy(name, columns)


@dataclass(frozen=True)
class ReclusteringConfig:
    """When clustering runs, what it rewrites and how."""

    mode: ClusteringMode = declared(settings.CLUSTERING)
    every: int = declared(settings.CLUSTER_EVERY)
    min_gain: float = declared(settings.CLUSTER_MIN_GAIN)
    max_bytes: int | None = declared(settings.CLUSTER_MAX_BYTES)
    min_file_bytes: int | None = declared(settings.MIN_FILE_SIZE)
    max_file_bytes: int | None = declared(settings.MAX_FILE_SIZE)
    max_group_bytes: int = declared(settings.MAX_GROUP_SIZE)
    min_input_files: int = declared(settings.MIN_INPUT_FILES)
    max_concurrent_groups: int = declared(settings.MAX_CONCURRENT_GROUPS)
    partial_progress: bool = declared(settings.PARTIAL_PROGRESS)
    max_commits: int = declared(settings.MAX_COMMITS)
    rewrite_all: bool = declared(settings.REWRITE_ALL)
    verify: bool = declared(settings.VERIFY)

    def file_limits(self, target_bytes: int) -> tuple[int, int]:
        """Returns the sizes below which a file is small and above which it is too large."""
        low = round(_MIN_FILE_SHARE * target_bytes) if self.min_file_bytes is None else self.min_file_bytes
        high = round(_MAX_FILE_SHARE * target_bytes) if self.max_file_bytes is None else self.max_file_bytes
        return low, high


def parse_clustering(raw: Mapping[str, object], problems: list[str]) -> ClusteringConfig:
    """Reads ``zorder`` and ``curve``; ``zorder`` is required for ``materialized='zordered_table'``."""
    columns = () if _is_auto(raw.get("zorder")) else settings.ZORDER.read(raw, problems)
    if not raw.get("zorder") and raw.get("materialized") == "zordered_table":
        problems.append("zorder: missing; a zordered_table needs the columns to cluster by, such as zorder=['a', 'b']")
    if len(columns) > MAX_ZORDER_COLUMNS:
        listed = ", ".join(map(format_column_path, columns))
        problems.append(f"zorder: {len(columns)} columns ({listed}); at most {MAX_ZORDER_COLUMNS} are allowed")
    by_workload = _is_auto(raw.get("zorder")) or bool(raw.get(settings.WORKLOAD.key))
    return ClusteringConfig(columns, settings.CURVE.read(raw, problems), by_workload)


def parse_reclustering(raw: Mapping[str, object], problems: list[str]) -> ReclusteringConfig:
    """Reads ``clustering``, ``cluster_every`` and the keys of `CLUSTER_SETTINGS`."""
    config = read_as(ReclusteringConfig, raw, problems)
    low, high = config.min_file_bytes, config.max_file_bytes
    if low is not None and high is not None and low >= high:
        problems.append(
            f"min_file_size: {raw['min_file_size']!r} is not below max_file_size ({raw['max_file_size']!r})"
        )
    return config
