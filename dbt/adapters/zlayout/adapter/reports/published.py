"""What readers of published formats see, as text and as JSON."""

from __future__ import annotations

from collections.abc import Mapping

from dbt.adapters.zlayout.adapter.reports import json_text


def publish_report(seen: Mapping[str, Mapping[str, int | None]], *, as_json: bool) -> str:
    """Returns the version of each table that readers of each format see.

    >>> print(publish_report({"shop.orders": {"delta": 7}, "shop.items": {}}, as_json=False))
    shop.orders: delta readers see version 7
    shop.items: not published
    """
    if as_json:
        return json_text([{"table": table, "published": dict(formats)} for table, formats in seen.items()])
    if not seen:
        return "No dbt-zlayout table to publish."
    lines = []
    for table, formats in seen.items():
        for name, version in formats.items():
            lines.append(f"{table}: {name} readers see {'no version' if version is None else f'version {version}'}")
        if not formats:
            lines.append(f"{table}: not published")
    return "\n".join(lines)
