"""A slice returns the pairs that went in, and notices each block that is damaged or in another's place."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dbt.adapters.zlayout.index.lookup import lookup_slices
from dbt.adapters.zlayout.index.lookup.lookup_slices import LookupSlice, Pairs, slice_bytes, slice_path
from dbt.adapters.zlayout.store.local import LocalStore
from dbt.adapters.zlayout.timeline.files.data_files import DataFile, DataFiles

PATHS = (("id",),)
FILES = DataFiles.of([DataFile(name, (), 10, 1_000, 5, "0" * 16) for name in "abc"], ())


def pairs_in(bits: int, bucket: int, count: int) -> Pairs:
    rng = np.random.default_rng(count)
    hashes = rng.integers(0, 1 << 64, count, np.uint64)
    if bits:
        hashes = hashes >> np.uint64(bits) | np.uint64(bucket << (64 - bits))
    runs = [np.sort(each) for each in np.array_split(hashes, 3)]
    return Pairs.of_runs(runs, np.array([True, True, False]))


def written(folder: Path, bits: int, bucket: int, pairs: Pairs) -> tuple[LocalStore, str]:
    content = slice_bytes(PATHS, ["int64"], bits, bucket, FILES, pairs)
    store, path = LocalStore(folder), slice_path("20260131235959000", PATHS, bits, bucket, content)
    store.put(path, content)
    return store, path


@pytest.mark.parametrize("bits", [0, 3, 7, 8, 13])
@pytest.mark.parametrize("count", [0, 1, 100, 129, 5_000, 40_000])
def test_all_pairs_come_back_however_many_bytes_a_block_shares(tmp_path: Path, bits: int, count: int) -> None:
    bucket = (1 << bits) - 1
    pairs = pairs_in(bits, bucket, count)
    opened = LookupSlice(*written(tmp_path, bits, bucket, pairs))
    found = opened.pairs()
    assert found is not None
    assert found.hashes.tolist() == pairs.hashes.tolist()
    assert found.files.tolist() == pairs.files.tolist()
    asked = np.unique(np.append(pairs.hashes[::7], np.uint64((bucket << (64 - bits)) + 1)))
    answer = opened.find(asked)
    there = dict(zip(pairs.hashes.tolist(), pairs.files.tolist(), strict=True))
    assert dict(zip(asked[answer.hash].tolist(), answer.file.tolist(), strict=True)) == {
        each: there[each] for each in asked.tolist() if each in there
    }
    assert not answer.damaged.any()


def test_a_block_in_the_place_of_another_of_its_size_is_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = pairs_in(0, 0, 5_000)
    store, path = written(tmp_path, 0, 0, pairs)
    opened = LookupSlice(store, path)
    lengths = opened._lengths.tolist()
    first, other = next((a, b) for a in range(len(lengths)) for b in range(a) if lengths[a] == lengths[b])
    content = bytearray((tmp_path / path).read_bytes())
    places = [slice(opened._starts[each], opened._starts[each] + lengths[each]) for each in (first, other)]
    content[places[0]], content[places[1]] = content[places[1]], content[places[0]]
    (tmp_path / path).write_bytes(content)
    monkeypatch.setattr(lookup_slices, "_LIKELY_BYTES", 8)
    opened = LookupSlice(store, path)
    assert opened.pairs() is None
    asked = np.unique(pairs.hashes)
    damaged = opened.find(asked).damaged
    assert 0 < damaged.sum() < len(asked) / 4
    assert set((asked[damaged] >> np.uint64(64 - 6)).tolist()) == {first, other}
