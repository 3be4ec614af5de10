"""What `zlayout_why_run` says of a model that is not to be skipped."""

from __future__ import annotations

import pytest

from dbt.adapters.zlayout.adapter.operations.why_run import _why_never_skipped


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({}, "skip_unchanged is not set"),
        ({"skip_unchanged": None, "meta": {"zlayout": {"zorder": ["id"]}}}, "skip_unchanged is not set"),
        ({"skip_unchanged": False}, "skip_unchanged is false"),
        ({"meta": {"zlayout": {"skip_unchanged": False}}}, "skip_unchanged is false"),
        (
            {"skip_unchanged": False, "meta": {"zlayout": {"skip_unchanged": True}}},
            "skip_unchanged is false in the config, which takes precedence over meta",
        ),
    ],
)
def test_it_says_where_skipping_is_off(config, told) -> None:
    assert _why_never_skipped(config) == told
