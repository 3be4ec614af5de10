"""Time zones as they are read from the JVM: each offset is what the JVM itself says of an instant."""

import random

import numpy as np
import pytest

from dbt.adapters.zlayout.spark.catalyst.functions import zone_of

ZONES = ["Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Pacific/Apia", "Australia/Lord_Howe", "America/St_Johns", "Africa/Casablanca", "Europe/Dublin", "Antarctica/Troll", "UTC", "Z", "+05:30", "-00:01", "GMT+3"]  # fmt: skip


@pytest.mark.parametrize("name", ZONES)
def test_offsets_are_those_of_the_jvm(spark, name):
    java = spark._jvm.java.time
    zone_id = java.ZoneId.of(name)
    zone, rules = zone_of(zone_id), zone_id.getRules()
    rng = random.Random(name)
    year = 31_556_952
    instants = [rng.randrange(-200 * year, 75 * year) for _ in range(40)]
    instants += [jump // 1_000_000 + step for jump in rng.sample(zone.jumps_us.tolist(), min(20, len(zone.jumps_us))) for step in (-1, 0, 1)]  # fmt: skip
    for second in instants:
        found = int(zone.offsets_us[int(np.searchsorted(zone.jumps_us, second * 1_000_000, "right"))]) // 1_000_000
        assert found == rules.getOffset(java.Instant.ofEpochSecond(second)).getTotalSeconds(), (name, second)
    assert (np.diff(zone.jumps_us) > 0).all()
    assert len(zone.offsets_us) == len(zone.jumps_us) + 1
    assert (zone.known_until_us is None) == rules.getTransitionRules().isEmpty()
