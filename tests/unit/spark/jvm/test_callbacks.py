"""Skipping is refused where anybody could answer for a table."""

from types import SimpleNamespace

from dbt.adapters.zlayout.spark.jvm.callbacks import ensure_skipping


def test_a_gateway_whose_callback_server_asks_for_no_token_is_refused_with_the_reason():
    gateway = SimpleNamespace(callback_server_parameters=SimpleNamespace(auth_token=None))
    available, reason = ensure_skipping(SimpleNamespace(_sc=SimpleNamespace(_gateway=gateway)))
    assert not available
    assert "asks for no token" in reason
    assert reason.endswith("tables are read in full")


def test_a_session_without_a_jvm_is_refused_with_the_reason():
    available, reason = ensure_skipping(SimpleNamespace())
    assert not available
    assert "Spark Connect" in reason
