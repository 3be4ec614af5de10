"""Reads the footers of existing files in a few threads of the driver."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq

from dbt.adapters.zlayout.errors import FileMissingError, StoreError
from dbt.adapters.zlayout.store import Store

_THREADS = 8
_LIKELY_BYTES = 64 << 10


def read_footers(store: Store, paths: Sequence[str]) -> list[pq.FileMetaData]:
    """Returns the footer of each file.

    Args:
        store: The table's folder.
        paths: Paths of the files relative to the folder.

    Raises:
        OSError: A file cannot be read, or is not a Parquet file (``pyarrow.ArrowInvalid``).
    """
    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(partial(_footer, store), paths))


def footers_found(store: Store, paths: Sequence[str]) -> list[pq.FileMetaData | None]:
    """Returns the footer of each file, or None for a file that cannot be read or is not a Parquet file."""
    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(partial(_footer_or_none, store), paths))


def _footer_or_none(store: Store, path: str) -> pq.FileMetaData | None:
    try:
        return _footer(store, path)
    except (OSError, pa.ArrowException, StoreError):
        return None


def _footer(store: Store, path: str) -> pq.FileMetaData:
    try:
        footer = _read_footer(store, path)
        # Read now, so that a damaged footer fails here and not later.
        _ = footer.created_by, footer.metadata, [footer.schema.column(i).path for i in range(footer.num_columns)]
    except UnicodeDecodeError as error:
        raise pa.ArrowInvalid(f"{path}: its footer is damaged: {error}") from error
    return footer


def _read_footer(store: Store, path: str) -> pq.FileMetaData:
    local = store.local_path(path)
    if local is None:
        return _footer_of_tail(store, path)
    if not local.is_file():
        raise FileMissingError(f"{path} is not a regular file")
    return pq.read_metadata(str(local))


def _footer_of_tail(store: Store, path: str) -> pq.FileMetaData:
    tail = store.read_tail(path, _LIKELY_BYTES)
    # A file ends with the footer, the footer's length (4 bytes, little endian) and the letters PAR1.
    footer_bytes = int.from_bytes(tail[-8:-4], "little") + 8
    if footer_bytes > len(tail) == _LIKELY_BYTES:
        tail = store.read_tail(path, footer_bytes)
    return pq.read_metadata(pa.BufferReader(tail))
