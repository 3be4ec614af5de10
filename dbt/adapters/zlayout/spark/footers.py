"""Footers of files that are there already, read by a few threads of the driver."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.parquet as pq

from dbt.adapters.zlayout.store import Store

_THREADS = 8


def read_footers(store: Store, paths: Sequence[str]) -> list[pq.FileMetaData]:
    """The footer of each file.

    Args:
        store: The table's folder.
        paths: Relative to it.

    Raises:
        OSError: A file cannot be read, or is no Parquet file (``pyarrow.ArrowInvalid``).
    """

    def read(path: str) -> pq.FileMetaData:
        local = store.local_path(path)
        return pq.read_metadata(str(local) if local is not None else pa.BufferReader(store.read(path)))

    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(read, paths))
