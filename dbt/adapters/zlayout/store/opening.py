"""From the location of a table to the store that keeps it."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from dbt.adapters.zlayout.errors import UnsupportedError
from dbt.adapters.zlayout.store.local import LocalStore
from dbt.adapters.zlayout.store.protocol import Store

_CLOUD_SCHEMES = frozenset({"s3", "s3a", "gs", "abfs", "abfss", "az"})
_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*):")


def open_store(location: str) -> Store:
    """Open the store of a table.

    Args:
        location: A path of this machine, taken literally; or a URI ('file:/x', 'file:///x', 's3://bucket/x'), whose
            percent escapes are decoded, as in the location that Spark's catalog keeps.

    Raises:
        UnsupportedError: The scheme has no store that promises create-if-absent, or the path is not absolute.
    """
    match = _SCHEME.match(location)
    if match is None:
        return LocalStore(_absolute(location, location))
    scheme = match.group(1).lower()
    if scheme == "file":
        parts = urlsplit(location)
        if parts.netloc not in {"", "localhost"}:
            raise UnsupportedError(
                f"location {location!r}: a file URI may not name the host {parts.netloc!r}; write 'file:///path'"
            )
        return LocalStore(_absolute(unquote(location[len("file:") :].removeprefix("//" + parts.netloc)), location))
    if scheme in _CLOUD_SCHEMES:
        # Imported here: it loads a native library that a local table never needs.
        from dbt.adapters.zlayout.store.cloud import CloudStore  # noqa: PLC0415

        return CloudStore(location)
    allowed = ", ".join(["a local path", "file", *sorted(_CLOUD_SCHEMES)])
    raise UnsupportedError(
        f"location {location!r}: no store for the scheme {scheme!r}; allowed are {allowed}. "
        "Set location_root to one of these, or build this model with file_format: delta or iceberg"
    )


def _absolute(path: str, location: str) -> Path:
    if not path.startswith("/"):
        raise UnsupportedError(f"location {location!r} is not absolute; give the full path, for example '/warehouse/t'")
    return Path(path)
