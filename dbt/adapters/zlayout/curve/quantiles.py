"""Ranks of key values: the quantile bucket of a value, the same for all rows that are written later."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.zlayout.curve.keys import (
    MOST_TEXT_BYTES,
    Comparable,
    comparable,
    is_text,
    key_type,
    large_binary,
    null_mask,
    separators,
)

_NULL_RANK = 0


@dataclass(frozen=True, eq=False)
class Boundaries:
    """The bucket boundaries of one key column.

    Attributes:
        values: Where every bucket but the first begins, strictly increasing; as `Comparable.values`. Texts keep only
            as many bytes as distinguish the bucket from the texts before it, so long common beginnings do no harm.
        nullable: Whether the sample held both nulls and values; only then do codes distinguish them.
    """

    values: npt.NDArray[Any]
    nullable: bool

    @classmethod
    def of_sample(cls, sample: Comparable, buckets: int) -> Boundaries:
        """Chooses boundaries.

        Up to ``buckets`` distinct values each get a bucket of their own. With more, buckets start at quantiles, and a
        value that fills more than one bucket gets its own, so that its neighbours keep theirs.

        Args:
            sample: Key values of sampled rows, in any order.
            buckets: Target number of buckets; heavily repeated values may add a few.

        """
        present = sample.values[~sample.nulls]
        distinct, counts = np.unique(present, return_counts=True)
        return cls(distinct[_starts(counts, buckets)], 0 < len(present) < len(sample))

    @classmethod
    def of_column(cls, sample: pa.Array | pa.ChunkedArray, buckets: int = 1024) -> Boundaries:
        """Chooses boundaries, as `of_sample`, from a column. Only the first ``MOST_TEXT_BYTES`` bytes of a text count.

        Args:
            sample: Key values of sampled rows, in any order.
            buckets: Target number of buckets.

        Raises:
            UnsupportedError: The type has no order.

        >>> boundaries = Boundaries.of_column(pa.array([10, 20, 30, 40]))
        >>> boundaries.values.tolist()
        [20, 30, 40]
        >>> boundaries.ranks_of(pa.array([5, 20, 99, None])).tolist()
        [1, 2, 4, 0]
        >>> Boundaries.of_column(pa.array(["/shop/cart/1", "/shop/cart/25", "/shop/item/4"])).values.tolist()
        [b'/shop/cart/2', b'/shop/i']
        """
        if not is_text(key_type(sample.type)):
            return cls.of_sample(comparable(sample), buckets)
        chunks = sample.chunks if isinstance(sample, pa.ChunkedArray) else [sample]
        plain = [each.dictionary_decode() if pa.types.is_dictionary(each.type) else each for each in chunks]
        texts = pa.chunked_array(map(large_binary, plain), pa.large_binary()).combine_chunks()
        counted = pc.value_counts(pc.binary_slice(texts.drop_null(), 0, MOST_TEXT_BYTES))
        order = pc.sort_indices(counted.field("values"))
        distinct, counts = (counted.field(name).take(order) for name in ("values", "counts"))
        starts = _starts(counts.to_numpy(), buckets)
        found = separators(distinct.take(pa.array(starts - 1)), distinct.take(pa.array(starts)))
        # Texts that differ only in trailing NUL bytes have one separator.
        return cls(np.unique(found), 0 < texts.null_count < len(texts))

    @property
    def most_bytes(self) -> int:
        """Bytes of a text that decide its rank."""
        return int(self.values.dtype.itemsize) if self.values.dtype.kind == "S" else MOST_TEXT_BYTES

    @property
    def bits(self) -> int:
        """Bits of a code; 0 if the whole sample has one rank."""
        return (len(self.values) + self.nullable).bit_length()

    def ranks(self, keys: Comparable) -> npt.NDArray[Any]:
        """Returns the bucket of each value: 0 for null, else 1 and up. A smaller value never gets a larger rank.

        Returns:
            uint16[n], or uint32[n] if there are more than 65,534 boundaries.
        """
        buckets = _starts_up_to(self.values, keys.values) + 1
        buckets[keys.nulls] = _NULL_RANK
        return buckets.astype(self._rank_type)

    def ranks_of(self, array: pa.Array | pa.ChunkedArray) -> npt.NDArray[Any]:
        """Returns the ranks of an Arrow column, as `ranks`; ranks each dictionary entry once.

        Raises:
            UnsupportedError: The type has no order.
        """
        chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
        parts = [self._ranks_of_chunk(chunk) for chunk in chunks or [pa.array([], array.type)]]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def merged(self, thresholds: npt.NDArray[Any]) -> tuple[Boundaries, npt.NDArray[np.int32]]:
        """Merges the buckets that no threshold divides: a search among few boundaries is fast.

        Args:
            thresholds: Ranks; a row's rank is compared with each of them.

        Returns:
            The boundaries that remain, and int32[thresholds]: a value's rank among them is below one of these exactly
            where its old rank is below the old threshold.

        >>> boundaries = Boundaries(np.array([20, 30, 40]), nullable=False)
        >>> few, thresholds = boundaries.merged(np.array([3, 1]))
        >>> few.values.tolist(), thresholds.tolist()
        ([30], [2, 1])
        """
        wanted = np.unique(thresholds)
        # Rank 0 is null, and rank 1 begins below all boundaries.
        kept = wanted[(wanted > 1) & (wanted < len(self.values) + 2)]
        numbered = np.where(thresholds > 1, np.searchsorted(kept, thresholds) + 2, thresholds)
        values = self.values[kept - 2]
        if values.dtype.kind == "S" and len(values):
            values = values.astype(f"S{max(1, int(np.char.str_len(values).max()))}")
        return Boundaries(values, self.nullable), numbered.astype(np.int32)

    def codes(self, ranks: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
        """Returns ranks as coordinates of `bits` bits; if the sample had no nulls, null shares the lowest coordinate.

        Returns:
            uint64[n].
        """
        codes = ranks.astype(np.uint64)
        return codes if self.nullable else np.maximum(codes, np.uint64(1)) - np.uint64(1)

    @property
    def _rank_type(self) -> type[np.uint16] | type[np.uint32]:
        return np.uint16 if len(self.values) + 1 <= np.iinfo(np.uint16).max else np.uint32

    def _ranks_of_chunk(self, chunk: pa.Array) -> npt.NDArray[Any]:
        if not pa.types.is_dictionary(chunk.type) or len(chunk.dictionary) > len(chunk):
            return self.ranks(comparable(chunk, self.most_bytes))
        entries = self.ranks(comparable(chunk.dictionary, self.most_bytes))
        with_null = np.append(entries, self._rank_type(_NULL_RANK))
        indices = chunk.indices.fill_null(0).to_numpy(zero_copy_only=False).astype(np.intp)
        indices[null_mask(chunk.indices)] = len(entries)
        ranks: npt.NDArray[Any] = with_null[indices]
        return ranks


def _starts(counts: npt.NDArray[np.int64], buckets: int) -> npt.NDArray[np.intp]:
    """Returns the positions of the values with which buckets begin, without the first.

    Args:
        counts: Rows of each distinct value, in their order.
        buckets: Target number of buckets.
    """
    if len(counts) <= buckets:
        return np.arange(1, len(counts))
    ends = np.cumsum(counts)
    rows = int(ends[-1])
    quantiles = np.searchsorted(ends, np.arange(1, buckets) * (rows / buckets), side="right")
    heavy = np.flatnonzero(counts > rows / buckets)
    starts = np.unique(np.concatenate([quantiles, heavy, heavy + 1]))
    return starts[(starts > 0) & (starts < len(counts))]


def _starts_up_to(starts: npt.NDArray[Any], values: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """Returns for each value how many ascending starts are at or below it; uses a lookup table for dense integers."""
    if values.dtype == np.int64 and len(values) > len(starts):
        low, high = int(values.min()), int(values.max())
        if high - low < len(values):
            # Searching sorted numbers is fast because consecutive lookups hit the same place.
            table = np.searchsorted(starts, np.arange(high - low + 1) + low, side="right")
            found: npt.NDArray[np.intp] = table[values - low]
            return found
    return np.searchsorted(starts, values, side="right")
