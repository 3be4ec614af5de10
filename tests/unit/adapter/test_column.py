"""Columns as dbt sees them."""

from dbt.adapters.zlayout.adapter.column import ZlayoutColumn


def test_a_column_with_a_backquote_in_its_name_is_quoted_whole() -> None:
    assert ZlayoutColumn("a`b", "string").quoted == "`a``b`"
