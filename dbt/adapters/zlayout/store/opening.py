"""Opening stores: from the location of a table to the store that holds it, and whether it can hold one.

The atomic-create probe tests that a store refuses to create a file that already exists, as commits require.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

from dbt.adapters.zlayout.errors import AlreadyExistsError, StoreError, UnsupportedError
from dbt.adapters.zlayout.store.local import SCRATCH_FOLDER, LocalStore, folder_problem
from dbt.adapters.zlayout.store.protocol import Store
from dbt.adapters.zlayout.store.uri import NO_LOGIN, has_login, without_login

_CLOUD_SCHEMES = frozenset({"s3", "s3a", "gs", "abfs", "abfss", "az"})
_HADOOP_SCHEMES = frozenset({"hdfs", "viewfs"})
_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*):")
_NOT_ABSOLUTE = "is not absolute; write the full path, such as '/data/lake', or a URI, such as 's3://bucket/lake'"
_REASONS = {
    "s3n": "Hadoop has retired it; write s3a",
    "wasb": "a rename there may overwrite; write abfs for the same account",
    "wasbs": "a rename there may overwrite; write abfss for the same account",
    "webhdfs": "write hdfs for the same cluster",
    "swebhdfs": "write hdfs for the same cluster",
    "dbfs": "a create there may overwrite",
    "ftp": "a rename there may overwrite",
    "sftp": "a rename there may overwrite",
    "har": "an archive cannot be written",
    "http": "a web server cannot be written",
    "https": "a web server cannot be written",
}

Opener = Callable[[str], Store]
_hadoop_openers: list[Opener] = []
# Roots whose store has passed the atomic-create probe in this process.
_probed: set[str] = set()


def open_hadoop_with(opener: Opener) -> None:
    """Registers how this process opens Hadoop file systems, which needs a JVM; the engine does so in a Spark driver."""
    _hadoop_openers[:] = [opener]


def place_problem(location: str) -> str | None:
    """Returns why a location cannot hold a table, judging by its spelling only; None if it can."""
    if has_login(location):
        return NO_LOGIN
    match = _SCHEME.match(location)
    if match is None:
        return None if location.startswith("/") else _NOT_ABSOLUTE
    scheme = match.group(1).lower()
    if scheme == "file":
        host = urlsplit(location).netloc
        if host not in {"", "localhost"}:
            return f"names the host {host!r}, which a file URI may not; write 'file:///path'"
        return None if _path_of_file_uri(location).startswith("/") else _NOT_ABSOLUTE
    if scheme in _CLOUD_SCHEMES | _HADOOP_SCHEMES:
        named = scheme in _HADOOP_SCHEMES or urlsplit(location).netloc
        return None if named else f"names no bucket or container; write the whole URI, such as '{scheme}://bucket/lake'"
    allowed = ", ".join(["a local path", "file", *sorted(_CLOUD_SCHEMES | _HADOOP_SCHEMES)])
    reason = _REASONS.get(scheme, "it is not known to create a file only if it is absent")
    return (
        f"has the scheme {scheme!r} ({reason}), which cannot hold a table; allowed are {allowed}. "
        "Set location_root to one of these, or build this model with file_format: delta or iceberg"
    )


def has_scheme(location: str) -> bool:
    """Returns whether a location is a URI with a scheme, and not a plain path."""
    return _SCHEME.match(location) is not None


def open_store(location: str) -> Store:
    """Opens the store of a table.

    Args:
        location: A local path, taken literally; or a URI ('file:/x', 'file:///x', 's3://bucket/x',
            'hdfs://namenode/x'), whose percent escapes are decoded, as in locations of Spark's catalog.

    Raises:
        UnsupportedError: No store with create-if-absent exists for the scheme, or none in this process, or the path is
            not absolute.
    """
    if (problem := place_problem(location)) is not None:
        raise UnsupportedError(f"location {without_login(location)!r} {problem}")
    match = _SCHEME.match(location)
    if match is None:
        return LocalStore(Path(location))
    scheme = match.group(1).lower()
    if scheme == "file":
        return LocalStore(Path(_path_of_file_uri(location)))
    if scheme in _CLOUD_SCHEMES:
        # Imported here because it loads a native library that local tables never need.
        from dbt.adapters.zlayout.store.cloud import CloudStore  # noqa: PLC0415

        return CloudStore(location)
    if not _hadoop_openers:
        raise no_jvm(location)
    return _hadoop_openers[0](location)


def check_place(location: str) -> None:
    """Checks that a location can hold tables, as far as possible without writing.

    Raises:
        UnsupportedError: Its spelling is not valid.
        StoreError: It is a local folder that cannot be written.
    """
    if (problem := place_problem(location)) is not None:
        raise UnsupportedError(f"location_root: {without_login(location)!r} {problem}")
    match = _SCHEME.match(location)
    is_local = match is None or match.group(1).lower() == "file"
    folder = open_store(location).local_path("") if is_local else None
    if folder is not None and (problem := folder_problem(folder)) is not None:
        raise StoreError(
            f"location_root: {location!r} cannot hold tables: {problem}; set it to a folder that can be written"
        )


def no_jvm(location: str) -> UnsupportedError:
    """Returns the error for a process that would need a Spark driver's JVM."""
    return UnsupportedError(
        f"location {location!r}: a Hadoop file system needs the JVM of a Spark driver, and this process has none "
        "(Spark's Python workers never have one); start a Spark session first, and write such tables with writer: spark"
    )


def _path_of_file_uri(location: str) -> str:
    return unquote(location[len("file:") :].removeprefix("//" + urlsplit(location).netloc))


def check_create_if_absent(store: Store) -> None:
    """Creates one file twice; the second attempt must fail and keep the first. Each process probes a root once.

    Local file systems are not probed: hard links never overwrite, and file systems without them report an error. A
    service behind a network may ignore the condition of a request and answer as if it had been met.

    Raises:
        UnsupportedError: The second create succeeded; two writers could commit the same version.
        StoreError: The store cannot be written at all.
    """
    if store.local_path("") is not None or store.root_uri in _probed:
        return
    path = f"{SCRATCH_FOLDER}/.{uuid.uuid4().hex}.probe"
    try:
        store.create(path, b"first")
        try:
            store.create(path, b"second")
        except AlreadyExistsError:
            if store.read(path) == b"first":
                _probed.add(store.root_uri)
                return
    finally:
        with suppress(StoreError):
            store.delete([path])
    raise UnsupportedError(
        f"{store.root_uri}: this storage overwrites a file that should be created only if it is absent (it ignores "
        "the condition If-None-Match), so two writers could commit the same version and lose rows; set location_root "
        "to a storage that supports conditional puts (Amazon S3, MinIO, Google Cloud Storage, Azure Blob Storage), to "
        "HDFS or to a local file system"
    )
