"""Clustering after a write, as the model's settings ask for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dbt.adapters.zlayout.config.clustering import CLUSTER_SETTINGS, ReclusteringConfig
from dbt.adapters.zlayout.quantities import counted
from dbt.adapters.zlayout.spark.cluster.summary import ClusterSummary
from dbt.adapters.zlayout.table.ztable import ZTable
from dbt.adapters.zlayout.timeline.files.action import Operation

_WHOLE = (Operation.OVERWRITE.value, Operation.CLUSTERING.value)


def cluster_settings(config: Mapping[str, Any], given: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The keywords of ``ZTable.cluster`` from a model's config. Keywords in ``given`` override them."""
    found = {key: config[key] for key in CLUSTER_SETTINGS if config.get(key) is not None}
    found |= {key: value for key, value in (given or {}).items() if value is not None}
    if "cluster_max_bytes" in found:
        found.setdefault("max_bytes", found["cluster_max_bytes"])
        del found["cluster_max_bytes"]
    return found


def recluster(
    table: ZTable, wanted: ReclusteringConfig, settings: Mapping[str, Any], tell: Callable[[str], None]
) -> ClusterSummary | None:
    """Clusters a table after a write, or only writes a plan, as its model asks.

    Args:
        table: The table at its newest version.
        wanted: When to cluster. Its mode is not 'off'.
        settings: From `cluster_settings`.
        tell: Receives a line now and then.

    Returns:
        What was done; None if it is not time yet, nothing was worth clustering, or only a plan was written.
    """
    if _commits_since_clustering(table, wanted.every) < wanted.every:
        return None
    if wanted.mode == "deferred":
        planned = table.schedule_clustering(progress=tell, **settings)
        if planned.groups:
            files = counted(planned.files_removed, "file")
            tell(f"planned a clustering of {files}; run zlayout_cluster with pending: true")
        return None
    done = table.cluster(progress=tell, **settings)
    return done if done.groups_done or done.groups_dropped else None


def _commits_since_clustering(table: ZTable, most: int) -> int:
    operations = table.history(most).column("operation").to_pylist()
    return next((number for number, each in enumerate(operations) if each in _WHOLE), len(operations))
