"""The output of zlayout_lint: text for people, JSON for programs, SARIF for code hosts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from dbt.adapters.zlayout.adapter.reports import json_text
from dbt.adapters.zlayout.errors import ConfigError
from dbt.adapters.zlayout.quantities import counted, size_text

_KINDS = ("text", "json", "sarif")
_RULE = "zlayout/cannot-skip"
_SARIF = "https://json.schemastore.org/sarif-2.1.0.json"


@dataclass(frozen=True)
class Finding:
    """A condition that cannot skip files.

    Attributes:
        node: The model, test, snapshot or analysis that has it.
        kind: Which of them it is.
        path: The file of the node, relative to the project.
        line: The line of the condition in it, from 1.
        table: The table that is read, ``schema.table``.
        condition: The condition, as Spark's optimizer leaves it.
        why: Why it cannot skip.
        advice: What to change.
        rewritten: A condition that can skip; None if none is known.
        caveat: Which rows the rewritten condition does not find; None if it finds the same.
        files_read: Files that the query reads of the table.
        bytes_read: Size of the files that the query reads.
        bytes_rewritten: What it would read with the rewritten condition; None without one.
    """

    node: str
    kind: str
    path: str
    line: int
    table: str
    condition: str
    why: str
    advice: str
    rewritten: str | None
    caveat: str | None
    files_read: int
    files_total: int
    bytes_read: int
    bytes_rewritten: int | None

    @property
    def bytes_cost(self) -> int:
        """What the condition costs: the bytes that its better form saves, or else all that the query reads."""
        return self.bytes_read - (self.bytes_rewritten or 0)

    def to_dict(self) -> dict[str, Any]:
        """Returns the finding as plain values for JSON. docs/advice.md has the schema."""
        return {**vars(self), "bytes_cost": self.bytes_cost}


@dataclass(frozen=True)
class Linted:
    """What a lint has found.

    Attributes:
        findings: Those that cost most first.
        queries: How many queries were analysed.
        failures: A sentence on queries that Spark cannot analyse; None if there are none.
    """

    findings: Sequence[Finding]
    queries: int
    failures: str | None = None


def lint_report(linted: Linted, kind: str) -> str:
    """Returns the findings as ``text``, ``json`` or ``sarif``.

    Raises:
        ConfigError: It is another kind.
    """
    if kind not in _KINDS:
        raise ConfigError([f"format: {kind!r} is not one of {', '.join(_KINDS)}"], "zlayout_lint")
    findings = linted.findings
    if kind == "json":
        return json_text([each.to_dict() for each in findings])
    if kind == "sarif":
        return json_text(_sarif(findings))
    lines = [line for each in findings for line in _lines(each)]
    queries = counted(linted.queries, "compiled query")
    if findings:
        lines.append(f"{counted(len(findings), 'condition')} cannot skip files.")
    else:
        lines.append(f"Every condition of {queries} can skip files.")
    return "\n".join(lines if linted.failures is None else [*lines, f"{linted.failures}."])


def _lines(found: Finding) -> Iterator[str]:
    cost = f"reads {found.files_read:,} of {counted(found.files_total, 'file')}"
    yield f"{found.path}:{found.line}: {found.kind} {found.node}, on {found.table}: {found.condition}"
    yield f"  {found.why}; {cost}, {_cost_text(found)}"
    if found.rewritten is not None:
        yield f"  write: {found.rewritten}{_caveat_text(found)}"
    yield f"  or: {found.advice}" if found.rewritten is not None else f"  {found.advice}"


def _caveat_text(found: Finding) -> str:
    return f" (does not find {found.caveat})" if found.caveat is not None else ""


def _cost_text(found: Finding) -> str:
    if found.bytes_rewritten is None:
        return f"up to {size_text(found.bytes_cost)} too many"
    return f"{size_text(found.bytes_cost)} too many"


def _sarif(findings: Sequence[Finding]) -> dict[str, Any]:
    rule = {
        "id": _RULE,
        "shortDescription": {"text": "A condition cannot skip files"},
        "defaultConfiguration": {"level": "warning"},
    }
    results = [
        {
            "ruleId": _RULE,
            "level": "warning",
            "message": {
                "text": f"{each.condition} on {each.table} cannot skip files ({each.why}): {_cost_text(each)}. "
                + (
                    f"Write {each.rewritten}{_caveat_text(each)}, or {each.advice}."
                    if each.rewritten
                    else f"{each.advice[:1].upper()}{each.advice[1:]}."
                )
            },
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": quote(each.path.replace("\\", "/")), "uriBaseId": "%SRCROOT%"},
                        "region": {"startLine": max(1, each.line)},
                    }
                }
            ],
        }
        for each in findings
    ]
    driver = {"name": "zlayout lint", "rules": [rule]}
    return {"$schema": _SARIF, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}
