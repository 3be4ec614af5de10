"""Finds conditions in the queries of a project that cannot skip files, and says what each costs and what would help."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from dbt.adapters.zlayout.adapter.node_lookup import Nodes, table_of
from dbt.adapters.zlayout.adapter.operations.compiled_queries import CompiledQuery, analysed_queries
from dbt.adapters.zlayout.adapter.reports.linting import Finding, Linted
from dbt.adapters.zlayout.errors import ConfigError
from dbt.adapters.zlayout.predicate.literals import folded_name
from dbt.adapters.zlayout.pruning.prune import ConjunctReport, without_condition
from dbt.adapters.zlayout.spark.read.query_scans import QueryScan
from dbt.adapters.zlayout.spark.schema.types import columns_of
from dbt.adapters.zlayout.table.explanation import reads_of, reads_of_conditions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The rest of a pattern after its beginning, which does skip.
_HARMLESS = "a pattern says nothing about files beyond its beginning"
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|'[^']*'|\d+")
_NOISE = frozenset("and or not is null in as spark_catalog cast true false select from where".split())  # noqa: SIM905
_QUALIFIED = re.compile(r"\b(?:spark_catalog\.)?[A-Za-z_]\w*\.[A-Za-z_]\w*\.([A-Za-z_]\w*)\b")
_CAST = re.compile(
    r"\(?CAST\((?P<column>[\w.`]+) AS (?P<type>\w+)(?:\([\d, ]+\))?\) = (?P<value>-?[\d.]+|DATE '[^']+'|'-?\d+')L?\)?"
)
_INTEGERS = ("byte", "short", "integer", "long")
_LISTED_TYPES = frozenset({"INT", "BIGINT", "SMALLINT", "TINYINT"})


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
    found: list[Finding] = []
    for query, scans in queries:
        wanted = [scan for scan in scans if table is None or folded_name(scan.table) == folded_name(table)]
        found += [
            finding
            for scan in wanted
            for finding in _findings(session, query, scan, None if target is None else target.parent)
        ]
    unique = {(each.node, each.table, each.condition): each for each in found if each.bytes_cost > 0}
    return sorted(unique.values(), key=lambda each: (-each.bytes_cost, each.path, each.line, each.condition))


def lint(session: SparkSession, model: str | None, nodes: Nodes, target: Path | None) -> Linted:
    """Returns the findings for the table of a model, or for all tables of the project.

    Raises:
        ConfigError: The project has no compiled query, or none that Spark can analyse.
    """
    queries = analysed_queries(session, nodes, target)
    failures = queries.failures()
    if not queries.scanned:
        nothing = "no compiled query is known: run `dbt compile`, `dbt run` or `dbt build` first"
        raise ConfigError([failures or nothing], "zlayout_lint")
    found = find_conditions(session, queries.scanned, target, None if not model else table_of(model, nodes))
    return Linted(found, len(queries.scanned), failures)


def _findings(session: SparkSession, query: CompiledQuery, scan: QueryScan, root: Path | None) -> Iterator[Finding]:
    reads = reads_of(scan.opened, scan.predicate, query.name)
    integers = {name.lower() for name, kind in columns_of(scan.opened.row_schema_json) if kind in _INTEGERS}
    useless = [part for part in reads.parts if part.why_not is not None and _HARMLESS not in part.why_not]
    for part in useless:
        condition = _QUALIFIED.sub(r"\1", part.sql)
        rewritten, caveat = rewritten_condition(condition, integers) or (None, None)
        others = " AND ".join(f"({each.sql})" for each in reads.parts if each.why_not is None)
        after = None
        if rewritten is not None:
            text = f"({rewritten})" + (f" AND {others}" if others else "")
            (judged,) = reads_of_conditions(session, scan.opened, [text])
            after = None if judged is None else judged.bytes_read
        yield Finding(
            node=query.name,
            kind=query.kind,
            path=query.path,
            line=line_of(_code_of(root, query), condition),
            table=scan.table,
            condition=condition,
            why=_why(part, condition),
            advice=_advice(part, condition),
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


def _advice(part: ConjunctReport, condition: str) -> str:
    advice = part.advice or "store the expression's value as a column and filter on that"
    if " OR " in condition:
        return f"one side of OR skips nothing, so the whole condition skips nothing: union two queries, or {advice}"
    return advice


def rewritten_condition(condition: str, integers: Collection[str] = ()) -> tuple[str, str | None] | None:
    """Returns a condition that skips files, and which rows it does not find that the other does; None if none is known.

    Args:
        condition: As Spark's optimizer leaves it.
        integers: The columns of whole numbers, in lower case. Others are taken for texts.

    >>> rewritten_condition("CAST(id AS STRING) = '42'", ["id"])
    ('id = 42', None)
    >>> rewritten_condition("(CAST(code AS INT) = 5)")
    ("code = '5'", "texts that spell 5 otherwise, such as '05'")
    >>> rewritten_condition("CAST(day AS DATE) = DATE '2024-01-31'")
    ("day LIKE '2024-01-31%'", "texts that spell the day otherwise, such as '2024-1-31'")
    >>> rewritten_condition("(lower(code) = 'x')")
    """
    found = _CAST.fullmatch(condition)
    if found is None:
        return None
    column, kind, value = found["column"], found["type"].upper(), found["value"]
    if column.strip("`").lower() in integers:
        number = value.strip("'")
        same = kind == "STRING" and re.fullmatch(r"'(0|-?[1-9]\d{0,17})'", value)
        return (f"{column} = {number}", None) if same else None
    if kind in _LISTED_TYPES and re.fullmatch(r"-?\d+", value):
        example = "" if value.startswith("-") else f", such as '0{value}'"
        return f"{column} = '{value}'", f"texts that spell {value} otherwise{example}"
    if kind == "DATE" and value.startswith("DATE "):
        day = value.removeprefix("DATE ")[:-1]
        return f"{column} LIKE {day}%'", f"texts that spell the day otherwise, such as {day.replace('-0', '-')}'"
    return None


def line_of(raw: str, condition: str) -> int:
    """Returns the number of the line that shares the most words with a condition; 1 if none shares any.

    A literal also counts as part of a longer one: `LIKE '%x'` is `endswith(…, 'x')` in a plan.
    """
    wanted = {word.lower() for word in _WORD.findall(condition)} - _NOISE
    texts = {word.strip("'") for word in wanted if word.startswith("'")} - {""}
    scores = [
        len(wanted & {word.lower() for word in _WORD.findall(line)}) + sum(text in line.lower() for text in texts)
        for line in raw.splitlines()
    ]
    best = max(scores, default=0)
    return scores.index(best) + 1 if best else 1
