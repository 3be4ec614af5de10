import numpy as np
import pytest

from dbt.adapters.zlayout.spark.rewrite.route import murmur3_of_ints, slot_keys


def test_the_hash_is_sparks():
    # select hash(0), hash(1), hash(2), hash(-1), hash(2147483647)
    found = murmur3_of_ints(np.array([0, 1, 2, -1], dtype=np.int32)).tolist()
    assert found == [933211791, -559580957, 1765031574, -1604776387]


@pytest.mark.parametrize("partitions", [1, 2, 3, 7, 64, 1000])
def test_every_partition_gets_a_key_that_lands_on_it(partitions):
    keys = slot_keys(partitions)
    assert np.mod(murmur3_of_ints(keys).astype(np.int64), partitions).tolist() == list(range(partitions))
