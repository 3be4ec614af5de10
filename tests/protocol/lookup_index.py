"""A lookup index of the tables here, by the product's own slices: what files add to it, and what it tells of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable
from functools import partial

import numpy as np
import pyarrow as pa
from simulated_store import LiveScript, ScriptedStore, World

from dbt.adapters.zlayout.index.lookup.lookup_key import LookupKey, run_bytes, value_hashes
from dbt.adapters.zlayout.index.lookup.lookup_slices import LOOKUPS, LookupSlice
from dbt.adapters.zlayout.index.lookup.table_lookups import TableLookups
from dbt.adapters.zlayout.index.statistics.tracked import TrackedColumn
from dbt.adapters.zlayout.spark.commit.commit_files import IndexUpdate
from dbt.adapters.zlayout.spark.commit.optional_slices import NewLookups, NewOptional
from dbt.adapters.zlayout.store.protocol import Store
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles
from dbt.adapters.zlayout.timeline.log.entry import IndexSlices
from dbt.adapters.zlayout.timeline.log.snapshot import Snapshot

KEY = LookupKey.of([TrackedColumn(("k",), pa.int64())])
ASKED_FOR = {"lookup": [[["k"]]]}


def entries_of(files: DataFiles, keys: Callable[[str], Collection[int]], existing: bool = False) -> NewOptional:
    """Return what files add to the index.

    Args:
        files: The files.
        keys: Returns the keys of a file.
        existing: Whether the commit that adds it does not add the files.
    """
    pieces = (run_bytes(path, {KEY: _hashes(keys(path))}) for path in files["path"].to_pylist())
    return NewOptional(lookups=NewLookups(tuple(pieces), files if existing else None))


def index_after(
    store: Store, instant: str, adds: DataFiles, removes: tuple[str, ...], optional: NewOptional
) -> Callable[[Snapshot | None], IndexSlices]:
    """Return a function of the version that a commit follows: the live slices after it."""
    return IndexUpdate(store, instant, adds, pa.table({}), removes, optional=optional)._optional_after


def covered(store: Store, snapshot: Snapshot) -> set[str]:
    """Return the files that the index says to have all keys of."""
    lookups = TableLookups(snapshot.index.get(LOOKUPS, ()), partial(LookupSlice, store), _fail).of(snapshot.files)
    return set(snapshot.files.filter(pa.array(lookups.covered(KEY)))["path"].to_pylist())


def false_claims(world: World, index: Iterable[str]) -> str | None:
    """Tell of which files a slice does not have the keys that they hold."""
    files = world.content()
    for path in index:
        for file, hashes in _told(world, path, files[path]):
            if file in files and hashes != frozenset(_hashes([row[1] for row in json.loads(files[file])]).tolist()):
                return f"{path} does not have the keys of {file}"
    return None


_SLICES: dict[tuple[str, bytes], list[tuple[str, frozenset[int]]]] = {}


def _told(world: World, path: str, content: bytes) -> list[tuple[str, frozenset[int]]]:
    if (path, content) not in _SLICES:
        part = LookupSlice(ScriptedStore(LiveScript(world), "memory://judge"), path)
        pairs = part.pairs()
        assert pairs is not None
        names = part.rows["path"].to_pylist()
        _SLICES[path, content] = [
            (name, frozenset(pairs.hashes[pairs.files == number].tolist()))
            for number, name in enumerate(names)
            if pairs.is_known[number]
        ]
    return _SLICES[path, content]


def _hashes(keys: Collection[int]) -> np.ndarray:
    return value_hashes(KEY, [pa.array(list(keys), pa.int64())])


def _fail(problem: str) -> None:
    raise AssertionError(problem)
