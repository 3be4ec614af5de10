"""Nested tables: refuses to create a table inside another, and ignores files of tables that are already nested."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from dbt.adapters.zlayout.errors import StoreError, UnsupportedError
from dbt.adapters.zlayout.store import StoredFile, open_store
from dbt.adapters.zlayout.timeline.files.naming import TABLE_FILE


def nested_tables(stored: Sequence[StoredFile]) -> list[str]:
    """Return the folders of other tables among all files of a table, relative to its own folder."""
    ending = f"/{TABLE_FILE}"
    return [file.path.removesuffix(ending) for file in stored if file.path.endswith(ending)]


def without_nested_tables(stored: Sequence[StoredFile]) -> list[StoredFile]:
    """Return the files that are not in the folder of another table."""
    others = tuple(f"{folder}/" for folder in nested_tables(stored))
    return [file for file in stored if not file.path.startswith(others)] if others else list(stored)


def check_not_inside_a_table(location: str) -> None:
    """Check that no folder above a location is a table, which would treat the new table's files as its own.

    Raises:
        UnsupportedError: A folder above is a table.
    """
    for above in _folders_above(location):
        try:
            found = open_store(above).exists(TABLE_FILE)
        except (StoreError, UnsupportedError):
            continue  # the folder is not accessible, or is the root of a bucket
        if found:
            raise UnsupportedError(
                f"{location} lies inside of the table at {above}, which cleans and drops all of its folder; "
                "set another schema or location_root"
            )


def check_removable(location: str) -> None:
    """Check that a table's folder can be deleted as a whole.

    Raises:
        UnsupportedError: It is a link, or contains another table.
    """
    store = open_store(location)
    local = store.local_path("")
    if local is not None and local.is_symlink():
        raise UnsupportedError(
            f"{location} is a link to {local.resolve()}, and it is not known what else lies there; replace it by the "
            "folder itself, or remove the table with DROP TABLE in Spark, which leaves the files, and then the files"
        )
    nested = nested_tables(store.list("", recursive=True))
    if nested:
        raise UnsupportedError(
            f"{location} holds another table, in its folder {nested[0]}; drop that one first, or move it elsewhere"
        )


def _folders_above(location: str) -> Iterator[str]:
    store = open_store(location)
    local = store.local_path("")
    if local is not None:
        # A link may lead into another table, so the resolved path is checked as well.
        yield from dict.fromkeys(str(each) for path in (local, local.resolve()) for each in path.parents)
        return
    parts = urlsplit(store.root_uri)
    for folder in PurePosixPath(parts.path).parents:
        yield f"{parts.scheme}://{parts.netloc}{folder}"
