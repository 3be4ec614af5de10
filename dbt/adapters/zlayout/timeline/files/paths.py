"""Path checks: a table's metadata may only name files below its own folder, each kind in its own place."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.errors import CorruptError
from dbt.adapters.zlayout.store.inside import is_inside
from dbt.adapters.zlayout.timeline.files.naming import (
    CHECKPOINT_FOLDER,
    CURVE_FOLDER,
    INDEX_FOLDER,
    METADATA_FOLDER,
    SPARK_MANIFEST_FOLDER,
    STAGING_FOLDER,
)

# Nearly all paths contain none of these; only the others need a closer look.
_ODD_TEXTS = ("//", "/.", "\x00")
_ODD_STARTS = ("/", ".", SPARK_MANIFEST_FOLDER)
_CLEANED_FOLDERS = tuple(f"{folder}/" for folder in (INDEX_FOLDER, CURVE_FOLDER, CHECKPOINT_FOLDER, STAGING_FOLDER))


def check_data_paths(paths: pa.Array | pa.ChunkedArray, where: str) -> None:
    """Check that paths can be data files of a table.

    Args:
        paths: Strings.
        where: The file that contains them, for errors.

    Raises:
        CorruptError: One is absolute, has an empty segment, '.' or '..', or points to the table's metadata.
    """
    odd = [pc.match_substring(paths, text) for text in _ODD_TEXTS]
    odd += [pc.starts_with(paths, text) for text in _ODD_STARTS]
    odd += [pc.ends_with(paths, "/"), pc.equal(paths, "")]
    for path in paths.filter(reduce(pc.or_, odd)).to_pylist():
        if path is not None and not (is_inside(path) and _is_data(path)):
            raise CorruptError(
                f"{where}: {path!r} is no path of a data file below the table's folder; the file was damaged or "
                "written by other software"
            )


def data_paths(paths: object, where: str) -> tuple[str, ...]:
    """Return paths from parsed JSON after checking that they can be data files of a table.

    Raises:
        CorruptError: They are not a list of such paths.
    """
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise CorruptError(f"{where}: its list of paths is damaged")
    try:
        check_data_paths(pa.array(paths, pa.string()), where)
    except ValueError as error:  # an unpaired surrogate
        raise CorruptError(f"{where}: its list of paths is damaged ({error})") from error
    return tuple(paths)


def own_path(path: object, folder: str, where: str) -> str:
    """Return a path from parsed JSON after checking that it is below a folder of the table's metadata.

    Raises:
        CorruptError: It is not.
    """
    if not isinstance(path, str) or not path.startswith(f"{folder}/") or not is_inside(path):
        raise CorruptError(
            f"{where}: {path!r} is no path below {folder}; the file was damaged or written by other software"
        )
    return path


def may_be_cleaned(paths: Iterable[str]) -> list[str]:
    """Return the paths that cleaning may delete: data files, and metadata that each version writes anew."""
    return [path for path in paths if is_inside(path) and (_is_data(path) or path.startswith(_CLEANED_FOLDERS))]


def _is_data(path: str) -> bool:
    return path.partition("/")[0] not in (METADATA_FOLDER, SPARK_MANIFEST_FOLDER)
