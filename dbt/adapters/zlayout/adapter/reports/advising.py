"""The output of zlayout_advise, as text or JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dbt.adapters.zlayout.adapter.reports import json_text
from dbt.adapters.zlayout.advice.advice import Advice
from dbt.adapters.zlayout.quantities import aligned_lines, counted, ruled_lines, size_text

_MOST_CONDITIONS = 10
_LONGEST = 70


@dataclass(frozen=True)
class TableAdvice:
    """The advice for one table.

    Attributes:
        table: ``schema.table``.
        version: The version that was judged.
        advice: The advice; None if nothing can be advised.
        why_not: Why nothing can be advised.
    """

    table: str
    version: int
    advice: Advice | None
    why_not: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Returns the advice as plain values for JSON. docs/advice.md has the schema."""
        found = {"table": self.table, "version": self.version, "why_not": self.why_not}
        return {**found, **({} if self.advice is None else self.advice.to_dict())}


def advice_report(found: Sequence[TableAdvice], *, as_json: bool) -> str:
    """Returns the advice for some tables, those that would save most bytes first."""
    ordered = sorted(found, key=lambda each: (-(each.advice.saved_bytes if each.advice else -1), each.table))
    if as_json:
        return json_text([each.to_dict() for each in ordered])
    if not ordered:
        return "The project has no dbt-zlayout table: nothing to advise."
    return "\n\n".join("\n".join(_lines(each)) for each in ordered)


def _lines(found: TableAdvice) -> Iterator[str]:
    advice = found.advice
    if advice is None:
        yield f"{found.table}: no advice: {found.why_not}"
        return
    yield f"{found.table}: {advice.why}"
    yield from (f"  {line}" for line in aligned_lines(list(_facts(advice))))
    yield ""
    shown = advice.predicates[:_MOST_CONDITIONS]
    rows = [
        (_cut(each.predicate), f"{each.weight:g}", each.source, f"{each.opened_now:.1%}", f"{each.opened_then:.1%}")
        for each in shown
    ]
    head = ("condition", "weight", "from", "opens now", "then")
    yield from (f"  {line}" for line in ruled_lines(head, rows, right=(1, 3, 4)))
    if len(advice.predicates) > len(shown):
        yield f"  … and {counted(len(advice.predicates) - len(shown), 'more condition')} (json: true shows all)"
    yield from (f"  {each.setting}: {each.why}" for each in advice.settings)
    yield from (f"  note: {note}" for note in advice.notes)


def _facts(advice: Advice) -> Iterator[tuple[str, str]]:
    yield "zorder", _change(advice.zorder_now, advice.zorder)
    if advice.by_workload:
        yield "cuts", "follow the workload"
    if advice.partition_by or advice.partition_by_now:
        yield "partition by", _change(advice.partition_by_now, advice.partition_by)
    if advice.bloom:
        yield "bloom", _change(advice.bloom_now, advice.bloom)
    if advice.lookup:
        yield "lookup", ", ".join(advice.lookup)
    if advice.files != advice.files_then:
        yield "files", f"{advice.files:,} -> {advice.files_then:,}"
    before, after = (size_text(round(each * advice.size_bytes)) for each in (advice.opened_now, advice.opened_then))
    yield "reads", f"{before if before == after else f'{before} -> {after}'} of {size_text(advice.size_bytes)} a query"
    if advice.rewrite_bytes:
        paid = "never" if advice.payback_queries is None else f"after {counted(advice.payback_queries, 'query')}"
        yield "cost", f"{size_text(advice.rewrite_bytes)} to read and write, paid back {paid}"
    gains = ", ".join(f"{each:.0%}" for each in advice.gains)
    yield "gain", f"{gains} with rows and constants that the search has not seen (needed: {advice.min_gain:.0%})"


def _change(now: Sequence[str], then: Sequence[str]) -> str:
    before, after = (", ".join(each) or "none" for each in (now, then))
    return after if before == after else f"{before} -> {after}"


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
