"""The files of a version as other tools name them."""

from __future__ import annotations

from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot
from dbt.adapters.zlayout.timeline.log.file_slices import base_files


def live_files(opened: TableSnapshot) -> pa.Table:
    """Returns the files that hold the rows of a version. See ``ZTable.files``."""
    files = base_files(opened.files)
    root = unquote(opened.store.root_uri).rstrip("/").removeprefix("file://")
    # Only Hadoop knows `s3a`.
    root = f"s3://{root.removeprefix('s3a://')}" if root.startswith("s3a://") else root
    paths = files["path"].combine_chunks()
    columns = {
        "path": pc.binary_join_element_wise(root, paths, "/") if len(paths) else paths,
        "size_bytes": files["size_bytes"],
        "row_count": files["row_count"],
    }
    if names := list(opened.partition_columns):
        values = [pa.array(files.partition_values(name)) for name in names]
        columns["partition"] = pa.StructArray.from_arrays(values, names=names)
    return pa.table(columns)
