"""A folder whose log is gone while the manifest still shows a version: told, and what can be saved."""

from __future__ import annotations

from dbt.adapters.zlayout.errors import CorruptError
from dbt.adapters.zlayout.publish.spark_manifest import listed_paths, manifest_path
from dbt.adapters.zlayout.store import Store
from dbt.adapters.zlayout.timeline.naming import METADATA_FOLDER, deletes_file_instant, parse_log_file_name

_REBUILD = "Build the table anew (--full-refresh), which leaves the folder as it is"


def check_log_not_lost(store: Store) -> None:
    """Refuse a folder that has no log, but a manifest of this adapter.

    Raises:
        CorruptError: It has; what is left is named, and how to go on.
    """
    left = listed_paths(store)
    if left is None:
        return
    version, paths = left
    problem = (
        f"{store.root_uri}: the log in {METADATA_FOLDER} is gone, and the history with it. "
        f"{manifest_path(version)} is left: queries still read version {version}, {len(paths):,} files"
    )
    if holds_row_changes(paths):
        raise CorruptError(f"{problem}, some of them changes that belong to rows of others. {_REBUILD}")
    raise CorruptError(
        f"{problem}. ZTable.adopt(spark, '<schema>.<table>', zorder=[…], managed=True) begins a new log with them; "
        f"{_REBUILD[0].lower()}{_REBUILD[1:]}"
    )


def holds_row_changes(paths: list[str]) -> bool:
    """Tell whether there are log files among the files of a table: it merges on read."""
    return any(parse_log_file_name(path) or deletes_file_instant(path) for path in paths)
