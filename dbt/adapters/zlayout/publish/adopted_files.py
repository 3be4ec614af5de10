"""The files of other software in a published table: what their footers say of their columns."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from dbt.adapters.zlayout.errors import UnsupportedError
from dbt.adapters.zlayout.store import Store

_FOOTER_BYTES = 1 << 16


@dataclass(frozen=True)
class AdoptedFile:
    """A file of other software.

    Attributes:
        columns: Its columns, with their field ids.
    """

    path: str
    footer: pq.FileMetaData
    columns: pa.Schema


def opened(store: Store, paths: Iterable[str]) -> Iterator[AdoptedFile]:
    """Yields files with their footers.

    Raises:
        UnsupportedError: A footer cannot be read.
        StoreError: The store failed.
    """
    for path in paths:
        try:
            footer = _footer(store, path)
            columns = footer.schema.to_arrow_schema()
        except (pa.ArrowException, OSError, ValueError) as error:
            raise UnsupportedError(f"the footer of {path} cannot be read ({error}); rewrite this file") from error
        yield AdoptedFile(path, footer, columns)


def _footer(store: Store, path: str) -> pq.FileMetaData:
    tail = store.read_tail(path, _FOOTER_BYTES)
    length = int.from_bytes(tail[-8:-4], "little") + 8
    if length > len(tail):
        tail = store.read_tail(path, length)
    return pq.read_metadata(io.BytesIO(b"PAR1" + tail))
