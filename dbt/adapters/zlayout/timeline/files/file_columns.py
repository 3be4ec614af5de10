"""Data files as columns of plain lists, the form that log entries use."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from dbt.adapters.zlayout.errors import CorruptError
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles
from dbt.adapters.zlayout.timeline.files.json_file import RESTORE
from dbt.adapters.zlayout.timeline.files.paths import check_data_paths


def files_to_columns(files: DataFiles) -> dict[str, Any]:
    """Return a JSON-compatible object with one list per column; partition values have one list per partition column."""
    return {
        "path": files["path"].to_pylist(),
        "partition": [files.partition_values(name).to_pylist() for name in files.partition_by],
        "row_count": files["row_count"].to_pylist(),
        "size_bytes": files["size_bytes"].to_pylist(),
        "modified_ms": files["modified_ms"].to_pylist(),
        "group": files["group"].to_pylist(),
    }


def files_from_columns(columns: dict[str, Any], partition_by: tuple[str, ...], path: str) -> DataFiles:
    """Parse the result of `files_to_columns`.

    Args:
        columns: The object.
        partition_by: Names of the partition columns.
        path: The file that contains it, for errors.

    Raises:
        CorruptError: A column is missing, or has another length or type.
    """
    try:
        if len(columns["partition"]) != len(partition_by):
            raise CorruptError(f"{path}: files have {len(columns['partition'])} partition columns, not {partition_by}")
        files = DataFiles.from_columns(
            partition_by,
            path=columns["path"],
            partition_values=columns["partition"],
            row_count=columns["row_count"],
            size_bytes=columns["size_bytes"],
            modified_ms=columns["modified_ms"],
            group=columns["group"],
        )
        # Arrow checks lengths only on demand, and a null would cause an error only much later.
        files.arrow.validate(full=True)
        check_data_paths(files["path"], path)
        if any(files[name].null_count for name in files.arrow.schema.names):
            raise CorruptError(f"{path}: a file lacks its path, size, time, row count or group")
    except (KeyError, TypeError, ValueError, OverflowError, pa.ArrowException) as error:
        raise CorruptError(f"{path}: its list of files is damaged ({error}); {RESTORE}") from error
    return files
