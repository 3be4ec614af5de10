"""File keys: one number for a file's path, rows, size and time, by which the index finds what it has about the file."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from dbt.adapters.zlayout.index.bloom.hashing import hashes_of_each, hashes_of_tuples
from dbt.adapters.zlayout.pruning.statistics.validation import contiguous
from dbt.adapters.zlayout.timeline.files.data_files import IDENTITY, DataFiles

FILE_KEY = "file_key"


def file_keys(files: DataFiles | pa.Table) -> pa.Array:
    """Returns the key of each file, uint64. A file that changes gets another.

    Args:
        files: With ``path`` and the columns of `IDENTITY`; a file with a null among them has no key.
    """
    columns = [contiguous(files.column(name)) for name in ("path", *IDENTITY)]
    mask = None
    if any(column.null_count for column in columns):
        mask = np.any([column.is_null().to_numpy(zero_copy_only=False) for column in columns], axis=0)
        columns = [column.fill_null("" if pa.types.is_string(column.type) else 0) for column in columns]
    numbers = [column.cast(pa.int64()).to_numpy(zero_copy_only=False).view(np.uint64) for column in columns[1:]]
    return pa.array(hashes_of_tuples([hashes_of_each(columns[0]), *numbers]), mask=mask)
