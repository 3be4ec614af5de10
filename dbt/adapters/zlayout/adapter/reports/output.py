"""The output of zlayout_explain and zlayout_info: text for people, JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dbt.adapters.zlayout.adapter.reports.layout import clustering_text

if TYPE_CHECKING:
    from dbt.adapters.zlayout.table.explanation import Explanation
    from dbt.adapters.zlayout.table.measures import ClusteringInformation


def explanation_report(explanations: Sequence[Explanation], *, as_json: bool, verbose: bool = False) -> str:
    """The explanations of a query's scans: a page for each, in full with ``verbose``, or JSON."""
    if as_json:
        return json_text([explanation.to_dict() for explanation in explanations])
    if not explanations:
        return "The query reads no dbt-zlayout table: nothing to explain."
    return "\n\n".join(explanation.to_text(verbose=verbose) for explanation in explanations)


def information_report(
    information: Mapping[str, Any], layout: ClusteringInformation | None = None, *, as_json: bool
) -> str:
    """The state of one table, and the layout of its files."""
    if as_json:
        return json_text({**information, "clustering": None if layout is None else layout.to_dict()})
    width = max(map(len, information), default=0)
    lines = [f"{key.replace('_', ' '):<{width}}  {_readable(value)}" for key, value in information.items()]
    return "\n".join(lines if layout is None else [*lines, "", clustering_text(layout)])


def json_text(value: Any) -> str:
    """A value as JSON. Values that JSON cannot express become text."""
    return json.dumps(value, default=str, ensure_ascii=False, indent=2)


def _readable(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"
    if isinstance(value, Mapping):
        return _readable([f"{key}={_readable(each)}" for key, each in value.items()])
    if isinstance(value, Iterable) and not isinstance(value, str):
        return ", ".join(map(_readable, value)) or "-"
    return "-" if value is None else str(value)
