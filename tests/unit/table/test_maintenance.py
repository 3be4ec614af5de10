"""What the keywords of a compaction may not be, before a session is needed."""

from __future__ import annotations

from typing import Any

import pytest

from dbt.adapters.zlayout.errors import ConfigError
from dbt.adapters.zlayout.table.maintenance import compact

_NONE_GIVEN = {
    **dict.fromkeys(("schedule", "execute", "logs_only"), False),
    **dict.fromkeys(("plan", "strategy", "max_bytes", "where", "progress")),
    "deprecated": {},
}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"schedule": True, "execute": True}, "schedule: makes a new plan, but execute and plan run existing plans"),
        ({"schedule": True, "plan": "2024"}, "schedule: makes a new plan, but execute and plan run existing plans"),
        ({"where": 1}, "where: 1 is not a condition; write one"),
        ({"strategy": "newest"}, "strategy"),
        ({"max_bytes": "much"}, "max_bytes"),
    ],
)
def test_an_error_names_each_keyword_that_does_not_fit(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        compact(None, "shop.orders", None, **{**_NONE_GIVEN, **given})
    assert told in str(caught.value)
