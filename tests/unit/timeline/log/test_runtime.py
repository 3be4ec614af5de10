"""Heartbeat and patience come from the environment."""

from __future__ import annotations

import pytest

from dbt.adapters.zlayout.errors import ConfigError
from dbt.adapters.zlayout.timeline.log.runtime import DEAD_AFTER_VARIABLE, HEARTBEAT_VARIABLE, Runtime


def test_without_variables_a_writer_beats_each_minute_and_is_dead_after_ten(monkeypatch) -> None:
    monkeypatch.delenv(HEARTBEAT_VARIABLE, raising=False)
    monkeypatch.delenv(DEAD_AFTER_VARIABLE, raising=False)
    found = Runtime()
    assert (found.heartbeat_seconds, found.dead_after_seconds) == (60, 600)


def test_variables_set_both(monkeypatch) -> None:
    monkeypatch.setenv(HEARTBEAT_VARIABLE, "2.5")
    monkeypatch.setenv(DEAD_AFTER_VARIABLE, "30")
    found = Runtime()
    assert (found.heartbeat_seconds, found.dead_after_seconds) == (2.5, 30)


@pytest.mark.parametrize(
    ("heartbeat", "dead_after", "said"),
    [
        ("soon", "600", "ZLAYOUT_HEARTBEAT_SECONDS is 'soon'; it must be a number of seconds above 0"),
        ("0", "600", "'0'; it must be"),
        ("nan", "600", "'nan'; it must be"),
        ("60", "-1", "ZLAYOUT_DEAD_AFTER_SECONDS is '-1'"),
        ("60", "100", "set it to at least 180, or ZLAYOUT_HEARTBEAT_SECONDS to at most 33.3333"),
    ],
)
def test_what_makes_no_sense_is_told_with_what_does(monkeypatch, heartbeat, dead_after, said) -> None:
    monkeypatch.setenv(HEARTBEAT_VARIABLE, heartbeat)
    monkeypatch.setenv(DEAD_AFTER_VARIABLE, dead_after)
    with pytest.raises(ConfigError, match=said):
        Runtime()
