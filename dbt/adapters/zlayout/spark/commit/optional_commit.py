"""The optional parts of the index in a commit: Bloom filters and lookup indexes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbt.adapters.zlayout.index.bloom.filter_slices import BLOOM_FILTERS
from dbt.adapters.zlayout.index.lookup.lookup_slices import LOOKUPS
from dbt.adapters.zlayout.spark.commit.filter_commit import NO_FILTERS, NewFilters, slices_after
from dbt.adapters.zlayout.spark.commit.lookup_commit import NO_LOOKUPS, NewLookups, lookups_after
from dbt.adapters.zlayout.store import Store
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles

if TYPE_CHECKING:
    from dbt.adapters.zlayout.timeline.log.entry import IndexSlices

OPTIONAL_PARTITIONS = (BLOOM_FILTERS, LOOKUPS)


@dataclass(frozen=True)
class NewOptional:
    """What a transaction has made for the optional parts of the index.

    Attributes:
        filters: Bloom filters.
        lookups: Entries for lookup indexes.
    """

    filters: NewFilters = NO_FILTERS
    lookups: NewLookups = NO_LOOKUPS

    def put(self, store: Store, instant: str, adds: DataFiles) -> IndexSlices:
        """Writes slices and returns their paths by index partition; none for a part without any.

        Args:
            store: The table's folder.
            instant: Instant of the commit.
            adds: Files that the commit adds.
        """
        written = {
            BLOOM_FILTERS: self.filters.put(store, instant, adds),
            LOOKUPS: self.lookups.put(store, instant, adds),
        }
        return {partition: paths for partition, paths in written.items() if paths}

    def after(
        self, store: Store, instant: str, before: IndexSlices, new: IndexSlices, live: DataFiles, *, removes: bool
    ) -> IndexSlices:
        """Returns the live slices after a commit, by index partition.

        Args:
            store: The table's folder.
            instant: Instant of the commit.
            before: The live slices before it.
            new: The slices of the commit, from `put`.
            live: Files that stay.
            removes: Whether the commit removes files.
        """
        found = dict(new)
        if old := before.get(BLOOM_FILTERS):
            added, drops = new.get(BLOOM_FILTERS, ()), self.filters.drops
            found[BLOOM_FILTERS] = slices_after(store, instant, old, added, live, removes=removes, drops=drops)
        if old := before.get(LOOKUPS):
            added, gone = new.get(LOOKUPS, ()), self.lookups.drops
            found[LOOKUPS] = lookups_after(store, instant, old, added, live, removes=removes, drops=gone)
        return {partition: paths for partition, paths in found.items() if paths}

    def forget_staged(self, store: Store) -> None:
        """Deletes the staged files that slices have taken the place of."""
        self.filters.forget_staged(store)
        self.lookups.forget_staged(store)


NOTHING_OPTIONAL = NewOptional()
