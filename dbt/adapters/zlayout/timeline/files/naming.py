"""File names below a table's root: builds, parses and checks all of them.

A table's metadata may only name files below its own folder, each kind in its own place.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.errors import CorruptError
from dbt.adapters.zlayout.store.protocol import is_inside

METADATA_FOLDER = ".zlayout"
TABLE_FILE = ".zlayout/table.json"
TIMELINE_FOLDER = ".zlayout/timeline"
LOG_FOLDER = ".zlayout/timeline/log"
CHECKPOINT_FOLDER = ".zlayout/timeline/checkpoint"
CHECKPOINT_HINT = ".zlayout/timeline/checkpoint/_last"
CLEAN_FOLDER = ".zlayout/timeline/clean"
INDEX_FOLDER = ".zlayout/index"
CURVE_FOLDER = ".zlayout/curve"
STAGING_FOLDER = ".zlayout/staging"
CATALOG_NOTES_FOLDER = ".zlayout/catalogs"
SPARK_MANIFEST_FOLDER = "_spark_metadata"

_VERSION_FILE = re.compile(r"(\d{20})\.[a-z]+")
_DATA_FILE = re.compile(r"(?P<group>[0-9a-f]{8,32})_(?P<instant>\d{17})\.parquet")
_LOG_FILE = re.compile(r"(?P<group>[0-9a-f]{8,32})_(?P<instant>\d{17})_(?P<sequence>\d{4,})\.log\.parquet")
_DELETES_FILE = re.compile(r"[0-9a-f]{8,32}_(?P<instant>\d{17})_\d{4,}\.deletes\.parquet")
# The same patterns at the end of a path, for matching many paths at once.
LOG_NAME = f"(^|/){_LOG_FILE.pattern}$"
DELETES_NAME = f"(^|/){_DELETES_FILE.pattern}$"
# The file group in the name of one of our files; used by both Java and Python.
GROUP_IN_NAME = r"([0-9a-f]{8,32})_[0-9]{17}(?:_[0-9]{4,}\.(?:log|deletes))?\.parquet$"
_SCRATCH_FILE = re.compile(re.escape(STAGING_FOLDER) + r"/\.[0-9a-f]+\.tmp(/|$)")
_STAGED_FILE = re.compile(re.escape(STAGING_FOLDER) + r"/(?:(\d{17})(?:_[0-9a-f]+)?/|\.(\d{17})_)")
_INSTANT_IN_NAME = re.compile(r"(?<![0-9A-Za-z])(\d{17})(?![0-9A-Za-z])")
# Nearly all paths contain none of these; only the others need a closer look.
_ODD_TEXTS = ("//", "/.", "\x00")
_ODD_STARTS = ("/", ".", SPARK_MANIFEST_FOLDER)
_CLEANED_FOLDERS = tuple(f"{folder}/" for folder in (INDEX_FOLDER, CURVE_FOLDER, CHECKPOINT_FOLDER, STAGING_FOLDER))


def new_group() -> str:
    """Returns the name of a new file group."""
    return uuid.uuid4().hex[:16]


def data_file_path(partition_folder: str, group: str, instant: str) -> str:
    """Returns the path of a new data file.

    Args:
        partition_folder: 'k=v/k2=v2' as on disk, '' for a table without partitions.
        group: Its file group, from `new_group` or that of the file that it replaces.
        instant: The instant of the transaction that writes it.

    >>> path = data_file_path("country=DE", "3f2a9c0d1e4b5f67", "20240229235959999")
    >>> path
    'country=DE/3f2a9c0d1e4b5f67_20240229235959999.parquet'
    >>> parse_data_file_name(path)
    ('3f2a9c0d1e4b5f67', '20240229235959999')
    """
    name = f"{group}_{instant}.parquet"
    return f"{partition_folder}/{name}" if partition_folder else name


def log_file_path(partition_folder: str, group: str, instant: str, sequence: int) -> str:
    """Returns the path of a new log file.

    Args:
        partition_folder: 'k=v/k2=v2' as on disk, '' for a table without partitions.
        group: The file group whose rows it changes.
        instant: The instant of the transaction that writes it.
        sequence: Its number among the logs of this group and instant, from 0.

    >>> path = log_file_path("country=DE", "3f2a9c0d1e4b5f67", "20240229235959999", 1)
    >>> path
    'country=DE/3f2a9c0d1e4b5f67_20240229235959999_0001.log.parquet'
    >>> parse_log_file_name(path)
    ('3f2a9c0d1e4b5f67', '20240229235959999', 1)
    """
    name = f"{group}_{instant}_{sequence:04d}.log.parquet"
    return f"{partition_folder}/{name}" if partition_folder else name


def deletes_file_path(partition_folder: str, group: str, instant: str, sequence: int) -> str:
    """Returns the path of a new file of kept deletes; the arguments are those of `log_file_path`."""
    name = f"{group}_{instant}_{sequence:04d}.deletes.parquet"
    return f"{partition_folder}/{name}" if partition_folder else name


def deletes_file_instant(path: str) -> str | None:
    """Returns the instant in the name of a file of kept deletes, or None for any other name."""
    match = _DELETES_FILE.fullmatch(path.rpartition("/")[2])
    return match["instant"] if match else None


def is_base_path(path: str) -> bool:
    """Returns whether a data file is a base file, and not one of log records or kept deletes."""
    return parse_log_file_name(path) is None and deletes_file_instant(path) is None


def parse_log_file_name(path: str) -> tuple[str, str, int] | None:
    """Returns (group, instant, sequence) of a log file, or None for any other name."""
    match = _LOG_FILE.fullmatch(path.rpartition("/")[2])
    return (match["group"], match["instant"], int(match["sequence"])) if match else None


def group_in_name(path: str) -> str | None:
    """Returns the file group in a file's name, or None if the name is not one of ours."""
    match = re.search(GROUP_IN_NAME, path)
    return match[1] if match else None


def is_own_name(path: str) -> bool:
    """Returns whether a path is that of a data file, a log or a file of kept deletes of this format."""
    return any(parsed(path) is not None for parsed in (parse_data_file_name, parse_log_file_name, deletes_file_instant))


def parse_data_file_name(path: str) -> tuple[str, str] | None:
    """Returns (group, instant) of a data file of this format, or None for any other name."""
    match = _DATA_FILE.fullmatch(path.rpartition("/")[2])
    return (match["group"], match["instant"]) if match else None


def staging_folder(instant: str) -> str:
    """Returns a new folder for rows that a write of a transaction keeps between two passes."""
    return f"{STAGING_FOLDER}/{instant}_{new_group()}"


def scratch_name(instant: str, suffix: str) -> str:
    """Returns a name for an unfinished file of a transaction in the scratch folder."""
    return f".{instant}_{uuid.uuid4().hex}.{suffix}"


def is_scratch(path: str) -> bool:
    """Returns whether a path is that of an unfinished file that belongs to no transaction."""
    return _SCRATCH_FILE.match(path) is not None


def staged_under(path: str) -> str | None:
    """Returns the instant of a staged or unfinished file of a transaction, None for any other file."""
    match = _STAGED_FILE.match(path)
    return (match[1] or match[2]) if match else None


def instants_in_name(path: str) -> tuple[str, ...]:
    """Returns the instants in the name of a data, index, curve or staging file.

    >>> instants_in_name(".zlayout/curve/20240229235959999.arrow")
    ('20240229235959999',)
    """
    name = path.rpartition("/")[2].replace("_", ".")
    return tuple(_INSTANT_IN_NAME.findall(name))


def curve_path(instant: str) -> str:
    """Returns the path of the curve model of a transaction."""
    return f"{CURVE_FOLDER}/{instant}.arrow"


def log_path(version: int) -> str:
    """Returns the path of the log entry of a version."""
    return f"{LOG_FOLDER}/{version:020d}.json"


def checkpoint_path(version: int) -> str:
    """Returns the path of the checkpoint of a version."""
    return f"{CHECKPOINT_FOLDER}/{version:020d}.parquet"


def version_in_name(path: str) -> int | None:
    """Returns the version in the name of a log entry or checkpoint, or None for any other name.

    >>> log_path(7), version_in_name(log_path(7))
    ('.zlayout/timeline/log/00000000000000000007.json', 7)
    """
    match = _VERSION_FILE.fullmatch(path.rpartition("/")[2])
    return int(match[1]) if match else None


def is_data_path(path: str) -> bool:
    """Returns whether Spark would treat a path as a data file: Parquet, with no hidden part.

    Spark (`HadoopFSUtils.shouldFilterOutPathName`) hides names that start with '.' or '_', except that a folder like
    `_k=v` is a partition.

    >>> is_data_path("_k=v/a.parquet"), is_data_path("_temporary/a.parquet"), is_data_path("k=v/.a.parquet")
    (True, False, False)
    """
    *folders, name = path.split("/")
    hidden = name.startswith((".", "_")) or any(
        folder.startswith(".") or (folder.startswith("_") and "=" not in folder) for folder in folders
    )
    return not hidden and name.endswith(".parquet")


def check_data_paths(paths: pa.Array | pa.ChunkedArray, where: str) -> None:
    """Checks that paths can be data files of a table.

    ``where`` is the file that contains them, for errors.

    Raises:
        CorruptError: One is absolute, has an empty segment, '.' or '..', or points to the table's metadata.
    """
    odd = [pc.match_substring(paths, text) for text in _ODD_TEXTS]
    odd += [pc.starts_with(paths, text) for text in _ODD_STARTS]
    odd += [pc.ends_with(paths, "/"), pc.equal(paths, "")]
    for path in paths.filter(reduce(pc.or_, odd)).to_pylist():
        if path is not None and not (is_inside(path) and _is_data(path)):
            raise CorruptError(
                f"{where}: {path!r} is not the path of a data file below the table's folder; the file was damaged or "
                "written by other software"
            )


def data_paths(paths: object, where: str) -> tuple[str, ...]:
    """Returns paths from parsed JSON after checking that they can be data files of a table.

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
    """Returns a path from parsed JSON after checking that it is below a folder of the table's metadata.

    Raises:
        CorruptError: It is not.
    """
    if not isinstance(path, str) or not path.startswith(f"{folder}/") or not is_inside(path):
        raise CorruptError(
            f"{where}: {path!r} is not a path below {folder}; the file was damaged or written by other software"
        )
    return path


def may_be_cleaned(paths: Iterable[str]) -> list[str]:
    """Returns the paths that cleaning may delete: data files, and metadata that each version rewrites."""
    return [path for path in paths if is_inside(path) and (_is_data(path) or path.startswith(_CLEANED_FOLDERS))]


def _is_data(path: str) -> bool:
    return path.partition("/")[0] not in (METADATA_FOLDER, SPARK_MANIFEST_FOLDER)
