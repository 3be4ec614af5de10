"""Finds conditions in the queries of a project that cannot skip files, and says what each costs and what would help."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from dbt.adapters.zlayout.adapter.node_lookup import Nodes, table_of
from dbt.adapters.zlayout.adapter.operations.compiled_queries import CompiledQuery, analysed_queries, has_queries
from dbt.adapters.zlayout.adapter.output import json_text
from dbt.adapters.zlayout.errors import ConfigError
from dbt.adapters.zlayout.predicate.literals import folded_name
from dbt.adapters.zlayout.predicate.remedies import Remedy
from dbt.adapters.zlayout.pruning.reasons import ConjunctReport, without_condition
from dbt.adapters.zlayout.quantities import counted, size_text
from dbt.adapters.zlayout.spark.read.query_scans import QueryScan
from dbt.adapters.zlayout.spark.schema.types import columns_of
from dbt.adapters.zlayout.table.explanation import reads_of, reads_of_conditions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_KINDS = ("text", "json", "sarif")
_RULE = "zlayout/cannot-skip"
_SARIF = "https://json.schemastore.org/sarif-2.1.0.json"
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|'[^']*'|\d+")
_NOISE = frozenset("and or not is null in as spark_catalog cast true false select from where".split())  # noqa: SIM905
_CONDITION = re.compile(r"\b(where|on|and|or|having|when|filter)\b|[<>=]", re.IGNORECASE)
_QUALIFIED = re.compile(r"\b(?:spark_catalog\.)?[A-Za-z_]\w*\.[A-Za-z_]\w*\.([A-Za-z_]\w*)\b")
_CAST = re.compile(
    r"\(?CAST\((?P<column>[\w.`]+) AS (?P<type>\w+)(?:\([\d, ]+\))?\) = (?P<value>-?[\d.]+|DATE '[^']+'|'-?\d+')L?\)?"
)
_INTEGERS = ("byte", "short", "integer", "long")
_LISTED_TYPES = frozenset({"INT", "BIGINT", "SMALLINT", "TINYINT"})


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
        """Returns the finding as plain values for JSON. docs/advice.md lists the fields."""
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


def check_format(kind: str) -> None:
    """Checks the format of a report.

    Raises:
        ConfigError: It is none of ``text``, ``json`` and ``sarif``.
    """
    if kind not in _KINDS:
        raise ConfigError([f"format: {kind!r} is not one of {', '.join(_KINDS)}"], "zlayout_lint")


def lint_text(linted: Linted, kind: str) -> str:
    """Returns the findings as ``text``, ``json`` or ``sarif``.

    Raises:
        ConfigError: It is another kind.
    """
    check_format(kind)
    findings = linted.findings
    if kind == "json":
        return json_text([each.to_dict() for each in findings])
    if kind == "sarif":
        return json_text(_sarif(findings))
    lines = [line for each in findings for line in _lines(each)]
    if findings:
        lines.append(f"{counted(len(findings), 'condition')} cannot skip files.")
    elif not linted.queries:
        lines.append("The project has no queries.")
    else:
        which = "" if linted.failures is None else " that Spark can analyse"
        lines.append(f"Every condition of {counted(linted.queries, 'compiled query')}{which} can skip files.")
    return "\n".join(lines if linted.failures is None else [*lines, f"{linted.failures.rstrip('.')}."])


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
        return f"up to {size_text(found.bytes_cost)} read needlessly"
    return f"{size_text(found.bytes_cost)} read needlessly"


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


def find_conditions(
    session: SparkSession,
    queries: Iterable[tuple[CompiledQuery, Sequence[QueryScan]]],
    target: Path | None,
    table: str | None = None,
) -> list[Finding]:
    """Returns the conditions that cannot skip files, those that cost most first.

    Args:
        queries: Queries with their scans, from `analysed_queries`.
        target: The target folder of the project; None without one.
        table: Only conditions on this table count; None for all tables.
    """
    root = None if target is None else target.parent
    found: dict[tuple[str, str, str], tuple[Finding, CompiledQuery]] = {}
    for query, scans in queries:
        for scan in scans:
            if table is None or folded_name(scan.table) == folded_name(table):
                costly = (each for each in _findings(session, query, scan, root) if each.bytes_cost > 0)
                found |= {(query.name, each.table, each.condition): (each, query) for each in costly}
    own = [
        each
        for each, query in found.values()
        # A query also has the conditions of the views and ephemeral models that it reads.
        if not any((name, each.table, each.condition) in found for name in query.inlines)
        or _spells(_code_of(root, query), each.condition)
    ]
    return sorted(own, key=lambda each: (-each.bytes_cost, each.path, each.line, each.condition))


def lint_project(session: SparkSession, model: str | None, nodes: Nodes, target: Path | None) -> Linted:
    """Returns the findings for the table of a model, or for all tables of the project.

    Raises:
        ConfigError: No query of the project is compiled, or Spark can analyse none.
    """
    queries = analysed_queries(session, nodes, target)
    failures = queries.failures()
    if not queries.scanned and (failures or has_queries(nodes)):
        nothing = "no compiled query is known: run `dbt compile`, `dbt run` or `dbt build` first"
        raise ConfigError([failures or nothing], "zlayout_lint")
    found = find_conditions(session, queries.scanned, target, None if not model else table_of(model, nodes))
    return Linted(found, len(queries.scanned), failures)


def _findings(session: SparkSession, query: CompiledQuery, scan: QueryScan, root: Path | None) -> Iterator[Finding]:
    reads = reads_of(scan.opened, scan.predicate, query.name)
    kinds = {name.lower(): kind for name, kind in columns_of(scan.opened.row_schema_json)}
    useless = [part for part in reads.parts if part.is_useless]
    others = " AND ".join(f"({each.sql})" for each in reads.parts if each.why_not is None)
    for part in useless:
        condition = _QUALIFIED.sub(r"\1", part.sql)
        rewritten, caveat = rewritten_condition(condition, kinds) or (None, None)
        after = None
        if rewritten is not None:
            text = f"({rewritten})" + (f" AND {others}" if others else "")
            (judged,) = reads_of_conditions(session, scan.opened, [text])
            # A rewritten condition that reads as much is no help: then a setting may be.
            after = None if judged is None or judged.bytes_read >= reads.bytes_read else judged.bytes_read
        yield Finding(
            node=query.name,
            kind=query.kind,
            path=query.path,
            line=line_of(_code_of(root, query), condition),
            table=scan.table,
            condition=condition,
            why=_why(part, condition),
            advice=_advice(part, condition, managed=scan.opened.managed),
            rewritten=rewritten if after is not None else None,
            caveat=caveat if after is not None else None,
            files_read=reads.files_read,
            files_total=reads.files_total,
            bytes_read=reads.bytes_read,
            bytes_rewritten=after,
        )


def _code_of(root: Path | None, query: CompiledQuery) -> str:
    """Returns the text in which a condition is looked for: for a generic test, the file that declares it."""
    if root is not None and not query.path.endswith(".sql"):
        with suppress(OSError, UnicodeDecodeError):
            return (root / query.path).read_text("utf-8")
    return query.raw


def _why(part: ConjunctReport, condition: str) -> str:
    return without_condition(_QUALIFIED.sub(r"\1", str(part.why_not)), condition)


def _advice(part: ConjunctReport, condition: str, *, managed: bool) -> str:
    advice = part.advice(managed=managed) or Remedy.STORE_VALUE.value
    if " OR " in condition:
        return f"one side of OR skips nothing, so the whole condition skips nothing: union two queries, or {advice}"
    return advice


def rewritten_condition(condition: str, kinds: Mapping[str, str]) -> tuple[str, str | None] | None:
    """Returns a condition that skips files, and which rows it does not find that the other does; None if none is known.

    Args:
        condition: As Spark's optimizer leaves it.
        kinds: The type of each column by its name in lower case, as in Spark's JSON.

    >>> rewritten_condition("CAST(id AS STRING) = '42'", {"id": "long"})
    ('id = 42', None)
    >>> rewritten_condition("(CAST(code AS INT) = 5)", {"code": "string"})
    ("code = '5'", "strings that are cast to 5 and spelled otherwise, such as '05' or '5.9'")
    >>> rewritten_condition("CAST(day AS DATE) = DATE '2024-01-31'", {"day": "string"})[0]
    "(day = '2024-01-31' OR day LIKE '2024-01-31 %' OR day LIKE '2024-01-31T%')"
    >>> rewritten_condition("(lower(code) = 'x')", {"code": "string"})
    """
    found = _CAST.fullmatch(condition)
    if found is None:
        return None
    column, kind, value = found["column"], found["type"].upper(), found["value"]
    of_column = kinds.get(column.strip("`").lower())
    if of_column in _INTEGERS:
        number = value.strip("'")
        same = kind == "STRING" and re.fullmatch(r"'(0|-?[1-9]\d{0,17})'", value)
        return (f"{column} = {number}", None) if same else None
    if of_column != "string":
        return None
    if kind in _LISTED_TYPES and re.fullmatch(r"-?\d+", value):
        sign, digits = ("-", value[1:]) if value.startswith("-") else ("", value)
        otherwise = f"strings that are cast to {value} and spelled otherwise, such as '{sign}0{digits}' or '{value}.9'"
        return f"{column} = '{value}'", otherwise
    if kind == "DATE" and value.startswith("DATE "):
        # Spark reads a date up to a space or a T. Anything else behind the day makes the cast null.
        day = value.removeprefix("DATE ")[:-1]
        rewritten = f"({column} = {day}' OR {column} LIKE {day} %' OR {column} LIKE {day}T%')"
        otherwise = day.replace("-0", "-") if "-0" in day else f"' {day[1:]}"
        return rewritten, f"strings that spell the day in another way, such as {otherwise}'"
    return None


def _spells(raw: str, condition: str) -> bool:
    """Returns whether code has all words of a condition."""
    words = {word.lower() for word in _WORD.findall(condition)} - _NOISE
    return all(word.strip("'") in raw.lower() for word in words)


def line_of(raw: str, condition: str) -> int:
    """Returns the number of the line that shares the most words with a condition; 1 if none shares any.

    A literal also counts as part of a longer one: `LIKE '%x'` is `endswith(…, 'x')` in a plan. Of lines that share as
    many, the first that looks like a condition is taken, as a column of the query has the same words.
    """
    wanted = {word.lower() for word in _WORD.findall(condition)} - _NOISE
    texts = {word.strip("'") for word in wanted if word.startswith("'")} - {""}
    best, found = (0, False), 1
    for number, line in enumerate(raw.splitlines(), 1):
        words = wanted & {word.lower() for word in _WORD.findall(line)}
        score = len(words) + sum(text in line.lower() for text in texts), _CONDITION.search(line) is not None
        if words and score > best:
            best, found = score, number
    return found
