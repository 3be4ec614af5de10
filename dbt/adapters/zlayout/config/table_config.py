"""All settings of one table, parsed together so that one error reports every problem."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from dbt.adapters.zlayout.config.clustering import ClusteringConfig, parse_clustering
from dbt.adapters.zlayout.config.column_names import format_column_path
from dbt.adapters.zlayout.config.file_sizing import FileSizingConfig, parse_file_sizing
from dbt.adapters.zlayout.config.known_keys import DBT_KEYS, near_misses
from dbt.adapters.zlayout.config.partitioning import PartitioningConfig, parse_partitioning
from dbt.adapters.zlayout.config.reclustering import ReclusteringConfig, parse_reclustering
from dbt.adapters.zlayout.config.retention import RetentionConfig, parse_retention
from dbt.adapters.zlayout.config.statistics import StatisticsConfig, parse_statistics
from dbt.adapters.zlayout.config.table_type import TableTypeConfig, parse_table_type
from dbt.adapters.zlayout.config.writing import WritingConfig, parse_writing
from dbt.adapters.zlayout.errors import ConfigError


@dataclass(frozen=True)
class TableConfig:
    """The settings of a table, one part per concern; a part without settings has its defaults."""

    clustering: ClusteringConfig = field(default_factory=ClusteringConfig)
    partitioning: PartitioningConfig = field(default_factory=PartitioningConfig)
    file_sizing: FileSizingConfig = field(default_factory=FileSizingConfig)
    statistics: StatisticsConfig = field(default_factory=StatisticsConfig)
    retention: RetentionConfig = field(default_factory=RetentionConfig)
    writing: WritingConfig = field(default_factory=WritingConfig)
    reclustering: ReclusteringConfig = field(default_factory=ReclusteringConfig)
    table_type: TableTypeConfig = field(default_factory=TableTypeConfig)


def parse_table_config(
    raw: Mapping[str, object], *, known_other_keys: Collection[str] = DBT_KEYS, subject: str = ""
) -> TableConfig:
    """Reads the settings of a model or of a call.

    Args:
        raw: Values by key, as dbt or a caller passes them; None means the default. ``materialized='zordered_table'``
            makes ``zorder`` required.
        known_other_keys: Keys that belong to others and are never reported.
        subject: Whose settings these are, for the first line of the error.

    Returns:
        The settings; columns are as the user spelled them, see `check_against_schema`.

    Raises:
        ConfigError: With one sentence for each problem.

    >>> config = parse_table_config({"zorder": "customer_id, address.city", "target_file_size": "64mb"})
    >>> config.clustering.columns
    (('customer_id',), ('address', 'city'))
    >>> config.file_sizing.target_file_bytes
    67108864
    >>> parse_table_config({"zorder": "a", "curve": "peano"})
    Traceback (most recent call last):
    ...
    dbt.adapters.zlayout.errors.ConfigError: 1 configuration problem
      - curve: 'peano' is not one of zorder, hilbert, linear
    """
    problems = near_misses(raw, known_other_keys)
    config = TableConfig(
        clustering=parse_clustering(raw, problems),
        partitioning=parse_partitioning(raw, problems),
        file_sizing=parse_file_sizing(raw, problems),
        statistics=parse_statistics(raw, problems),
        retention=parse_retention(raw, problems),
        writing=parse_writing(raw, problems),
        reclustering=parse_reclustering(raw, problems),
        table_type=parse_table_type(raw, problems),
    )
    problems += partition_keys_in_zorder(config.clustering, config.partitioning)
    if problems:
        raise ConfigError(problems, subject)
    return config


def partition_keys_in_zorder(clustering: ClusteringConfig, partitioning: PartitioningConfig) -> list[str]:
    """Returns a sentence for each clustering key that is a partition column: a folder has a single value of it."""
    return [
        f"zorder: column '{format_column_path(path)}' is a partition column; every file has one value of it already"
        for path in clustering.columns
        if path[0] in partitioning.columns
    ]
