"""Detects a folder whose log is gone but whose manifest remains."""

from __future__ import annotations

from dbt.adapters.zlayout.errors import CorruptError
from dbt.adapters.zlayout.publish.spark_manifest import listed_paths, manifest_path
from dbt.adapters.zlayout.store import Store
from dbt.adapters.zlayout.timeline.files.naming import METADATA_FOLDER, deletes_file_instant, parse_log_file_name

_REBUILD = "rebuild with --full-refresh, which leaves this folder untouched"
_ADOPT = (
    "To keep them, run ZTable.adopt(spark, '<schema>.<table>', zorder=[…], managed=True): they begin a new log. Or "
    + _REBUILD
)
_HAS_LOGS = "Some of them are logs of a merge_on_read table, which cannot be adopted: " + _REBUILD


def check_log_not_lost(store: Store) -> None:
    """Refuse a folder that has no log but a manifest of this adapter.

    Raises:
        CorruptError: The folder is in that state; the message names what is left and the next step.
    """
    left = listed_paths(store)
    if left is not None:
        raise CorruptError(f"{_problem(store, *left)}. {_HAS_LOGS if _has_logs(left[1]) else _ADOPT}")


def paths_to_adopt(store: Store) -> list[str] | None:
    """Return the files listed by the manifest of a folder without a log; None if there is no manifest.

    Raises:
        CorruptError: Some are log files, which cannot be read on their own.
    """
    left = listed_paths(store)
    if left is None:
        return None
    if _has_logs(left[1]):
        raise CorruptError(f"{_problem(store, *left)}. {_HAS_LOGS}")
    return left[1]


def _problem(store: Store, version: int, paths: list[str]) -> str:
    return (
        f"{store.root_uri}: the log in {METADATA_FOLDER} is gone, and the history with it. "
        f"{manifest_path(version)} is left: queries still read version {version}, {len(paths):,} files"
    )


def _has_logs(paths: list[str]) -> bool:
    return any(parse_log_file_name(path) or deletes_file_instant(path) for path in paths)
