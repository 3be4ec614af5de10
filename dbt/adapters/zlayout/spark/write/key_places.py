"""Where the keys of incoming rows are, by the lookup index of the key columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.config.column_names import folded_set
from dbt.adapters.zlayout.index.bloom.filter_slices import Positions
from dbt.adapters.zlayout.index.bloom.hashing import Hashes, combined, hashes_of_rows
from dbt.adapters.zlayout.index.lookup.keys import LookupKey
from dbt.adapters.zlayout.pruning.statistics.verdict import Flags
from dbt.adapters.zlayout.spark.read.skipping_stages import session_stages
from dbt.adapters.zlayout.spark.snapshot.table_layout import config_of, looked_up_of
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot
from dbt.adapters.zlayout.timeline.log.file_slices import base_files

if TYPE_CHECKING:
    from dbt.adapters.zlayout.spark.write.change_plan import Target
    from dbt.adapters.zlayout.spark.write.key_filter import Source


@dataclass(frozen=True)
class KeyPlaces:
    """The files that hold some keys.

    Attributes:
        keys: The keys, as tuples of fetched values in the order of the source's key columns.
        key: int64[m], the position of a key, once for each file that holds it.
        file: int64[m], the position of that file in the table.
        unknown: For each file of the table whether it may hold some of the keys, because nothing is known about it.
    """

    keys: Sequence[tuple[Any, ...]]
    key: Positions
    file: Positions
    unknown: Flags

    @property
    def candidates(self) -> Flags | None:
        """The files that may hold one of the keys; None for all."""
        found = self.unknown.copy()
        found[self.file] = True
        return None if found.all() else found

    def in_one_base_file(self, opened: TableSnapshot) -> tuple[Positions, Positions, Flags]:
        """Returns where the keys are of which the index tells everything: those that one base file holds and no log.

        Returns:
            The positions of these keys, of the file of each, and which files hold any of the other keys.
        """
        paths = opened.files["path"].combine_chunks()
        is_base = pc.is_in(paths, value_set=base_files(opened.files)["path"].combine_chunks())
        outside = ~is_base.to_numpy(zero_copy_only=False)[self.file]
        count = np.bincount(self.key, minlength=len(self.keys))
        elsewhere = np.bincount(self.key, weights=outside, minlength=len(self.keys))
        alone = ((count == 1) & (elsewhere == 0))[self.key]
        others = np.zeros(len(opened.files), dtype=bool)
        others[self.file[~alone]] = True
        return self.key[alone], self.file[alone], others


def places_of(source: Source, target: Target) -> KeyPlaces | None:
    """Returns where the source's keys are. Keys with a null are nowhere, because null equals nothing.

    Returns:
        None if the table has no lookup index of exactly the key columns, if the driver does not know all keys, or if
        the session has switched lookup indexes off.
    """
    opened = target.opened
    index = _index_of(source.keys, opened)
    if index is None or "lookup" not in session_stages(target.catalog.jvm):
        return None
    keys, found = source.whole_few_keys, opened.statistics.lookups(opened.files)
    if keys is None or found is None:
        return None
    try:
        hashes = _hashes(index, source, keys)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return None  # a date after the year 9999, which Arrow does not read
    distinct, first = np.unique(hashes, return_index=True)
    places = found.places(index, distinct)
    if len(distinct) < len(hashes):
        return None  # two keys of one hash
    return KeyPlaces(keys, first[places.hash], places.file, places.unknown)


def _index_of(keys: Sequence[str], opened: TableSnapshot) -> LookupKey | None:
    snapshot = opened.snapshot
    wanted = folded_set(tuple((name,) for name in keys))
    every = looked_up_of(config_of(snapshot), snapshot.schema_json, snapshot.partition_by)
    return next((each for each in every if folded_set(each.paths) == wanted), None)


def _hashes(index: LookupKey, source: Source, keys: Sequence[tuple[Any, ...]]) -> Hashes:
    position = {name.lower(): number for number, name in enumerate(source.keys)}
    parts = []
    for column in index.columns:
        number = position[column.path[0].lower()]
        values = source.fetched_as_arrow(source.keys[number], [key[number] for key in keys], column.type)
        parts.append(hashes_of_rows(values, column.type))
    return combined(parts) if len(parts) > 1 else parts[0]
