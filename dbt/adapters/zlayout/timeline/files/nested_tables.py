"""Tables inside of tables: a new one is refused there, and the files of one that is there are nobody else's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from dbt.adapters.zlayout.errors import StoreError, UnsupportedError
from dbt.adapters.zlayout.store import StoredFile, open_store
from dbt.adapters.zlayout.timeline.files.naming import TABLE_FILE


def nested_tables(stored: Sequence[StoredFile]) -> list[str]:
    """The folders of other tables among all files of a table, relative to its own."""
    ending = f"/{TABLE_FILE}"
    return [file.path.removesuffix(ending) for file in stored if file.path.endswith(ending)]


def without_nested_tables(stored: Sequence[StoredFile]) -> list[StoredFile]:
    """The files that do not lie in the folder of another table."""
    others = tuple(f"{folder}/" for folder in nested_tables(stored))
    return [file for file in stored if not file.path.startswith(others)] if others else list(stored)


def check_not_inside_a_table(location: str) -> None:
    """Returns where no folder above a location is a table: that table would take the new one's files for its own.

    Raises:
        UnsupportedError: One is.
    """
    for above in _folders_above(location):
        try:
            found = open_store(above).exists(TABLE_FILE)
        except (StoreError, UnsupportedError):
            continue  # a folder that may not be looked into, or the root of a bucket
        if found:
            raise UnsupportedError(
                f"{location} lies inside of the table at {above}, which cleans and drops all of its folder; "
                "set another schema or location_root"
            )


def check_removable(location: str) -> None:
    """Returns where a table's folder can be deleted whole.

    Raises:
        UnsupportedError: It is a link, or holds another table.
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
        # A link may lead into another table.
        yield from dict.fromkeys(str(each) for path in (local, local.resolve()) for each in path.parents)
        return
    parts = urlsplit(store.root_uri)
    for folder in PurePosixPath(parts.path).parents:
        yield f"{parts.scheme}://{parts.netloc}{folder}"
