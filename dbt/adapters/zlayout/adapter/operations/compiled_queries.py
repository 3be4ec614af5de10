"""The queries of a dbt project: the compiled SQL of its models, tests, snapshots and analyses, and what it scans."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbt.adapters.events.logging import AdapterLogger

from dbt.adapters.zlayout.adapter.node_lookup import Nodes, name_of_node
from dbt.adapters.zlayout.adapter.operations.progress import with_progress
from dbt.adapters.zlayout.predicate.literals import folded_name
from dbt.adapters.zlayout.quantities import counted
from dbt.adapters.zlayout.spark.jobs.jobs import short_message
from dbt.adapters.zlayout.spark.read.query_scans import QueryScan, scans_of_query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG = AdapterLogger("Zlayout")
_KINDS = ("model", "test", "snapshot", "analysis")
_PRUNING_TEST = "zlayout_prunes_at_least"
# The names of temporary views, as `view_name` makes them.
_OF_A_MACRO = re.compile(r"\bzlayout_(changes|at)_\w+_[0-9a-f]{8}\b")
_MOST_BYTES = 4 << 20


@dataclass(frozen=True)
class CompiledQuery:
    """The SQL of one node.

    Attributes:
        name: The name of the node, with the version of a model that has versions.
        kind: 'model', 'test', 'snapshot' or 'analysis'.
        sql: Its compiled SQL.
        path: The file that defines it, relative to the project.
        raw: Its code before compiling; the arguments of a generic test.
        weight: How often it counts: once, and once more for each exposure that depends on it.
        runs: False for a view and an ephemeral model, which are parts of the queries that read them.
        inlines: The names of the views and ephemeral models that it reads, whose conditions it has too.
    """

    name: str
    kind: str
    sql: str
    path: str
    raw: str
    weight: float = 1.0
    runs: bool = True
    inlines: frozenset[str] = frozenset()


def has_queries(nodes: Nodes) -> bool:
    """Returns whether a project has models, tests, snapshots or analyses in SQL, compiled or not."""
    return any(map(_is_query, nodes.values()))


def _is_query(node: Mapping[str, Any]) -> bool:
    return str(node.get("resource_type")) in _KINDS and node.get("language", "sql") == "sql"


def compiled_queries(nodes: Nodes, target: Path | None) -> Iterator[CompiledQuery]:
    """Yields the queries that dbt has compiled: by ``dbt compile``, ``run``, ``test`` or ``build``.

    Args:
        nodes: ``graph.nodes``, or the nodes of a manifest. Exposures among them give weight to what they depend on.
        target: The target folder of the project, where dbt keeps compiled SQL; None without one.
    """
    exposed = Counter(
        name
        for node in nodes.values()
        if node.get("resource_type") == "exposure"
        for name in set((node.get("depends_on") or {}).get("nodes") or ())
    )
    for name, node in sorted(nodes.items()):
        if not _is_query(node):
            continue
        sql = node.get("compiled_code") or _compiled_text(node, target)
        if isinstance(sql, str) and sql.strip():
            raw = str(node.get("raw_code") or "")
            metadata = node.get("test_metadata")
            if isinstance(metadata, Mapping):
                raw = str(metadata.get("kwargs") or "")
            path = str(node.get("original_file_path") or "")
            kind, weight = str(node["resource_type"]), 1.0 + exposed[name]
            runs = kind != "model" or not _is_inlined(node)
            yield CompiledQuery(name_of_node(node), kind, sql, path, raw, weight, runs, _inlined(node, nodes))


def _is_inlined(model: Mapping[str, Any]) -> bool:
    return (model.get("config") or {}).get("materialized") in ("view", "ephemeral")


def _inlined(node: Mapping[str, Any], nodes: Nodes) -> frozenset[str]:
    found: set[str] = set()
    read = [node]
    while read:
        for name in (read.pop().get("depends_on") or {}).get("nodes") or ():
            upstream = nodes.get(str(name), {})
            if _is_inlined(upstream) and name_of_node(upstream) not in found:
                found.add(name_of_node(upstream))
                read.append(upstream)
    return frozenset(found)


@dataclass(frozen=True)
class AnalysedQueries:
    """The compiled queries of a project.

    Attributes:
        scanned: Each query that Spark can analyse, with its scans.
        failed: Why Spark cannot analyse the others, by the name of the node. Those that read a view of
            ``zlayout_changes`` or ``zlayout_at`` are in neither: such a view exists only while its model runs.
    """

    scanned: Sequence[tuple[CompiledQuery, Sequence[QueryScan]]]
    failed: Mapping[str, str]

    def failures(self) -> str | None:
        """Returns a sentence on the queries that Spark cannot analyse; None if there are none."""
        if not self.failed:
            return None
        name, why = next(iter(self.failed.items()))
        of_all = counted(len(self.scanned) + len(self.failed), "compiled query")
        return f"Spark cannot analyse {len(self.failed):,} of {of_all}; {name}: {why}"


def analysed_queries(session: SparkSession, nodes: Nodes, target: Path | None) -> AnalysedQueries:
    """Returns the compiled queries with their scans, and logs a warning if Spark cannot analyse some.

    Args:
        nodes: As for `compiled_queries`, like the other argument.
        target: The target folder.
    """
    scanned, failed = [], {}
    queries = [each for each in compiled_queries(nodes, target) if _OF_A_MACRO.search(each.sql) is None]
    for query in with_progress(queries, "reading the queries of the project", "query"):
        try:
            scanned.append((query, scans_of_query(session, query.sql)))
        except Exception as error:  # noqa: PERF203 - of one node; the others still count
            failed[query.name] = short_message(error).splitlines()[0]
    found = AnalysedQueries(scanned, failed)
    if (failures := found.failures()) is not None:
        _LOG.warning(failures)
    return found


def _compiled_text(node: Mapping[str, Any], target: Path | None) -> str | None:
    """Returns what dbt wrote to ``target/compiled`` for a node."""
    original, path = str(node.get("original_file_path") or ""), str(node.get("path") or "")
    if target is None or not original or not path:
        return None
    if Path(path).name == Path(original).name:
        # dbt-core puts a snapshot into a folder with the name of its file.
        places = [Path(original), Path(original, path)]
    else:
        # dbt-core puts a generic test under the name of the file that declares it, dbt v2 into one of two folders.
        places = [Path(original, path), Path("generic_tests", path), Path(target.name, "generic_tests", path)]
    for below in places:
        file = target / "compiled" / str(node.get("package_name") or "") / below
        with suppress(OSError, UnicodeDecodeError):
            return file.read_text("utf-8") if file.stat().st_size <= _MOST_BYTES else None
    return None


def pruning_conditions(table: str, nodes: Nodes) -> dict[str, str]:
    """Returns the conditions of the tests ``zlayout_prunes_at_least`` on a table, with the name of the test.

    Args:
        table: ``schema.identifier``, with or without backquotes.
        nodes: ``graph.nodes``, or the nodes of a manifest.
    """
    found: dict[str, str] = {}
    for node in nodes.values():
        metadata: Any = node.get("test_metadata")
        if not isinstance(metadata, Mapping) or metadata.get("name") != _PRUNING_TEST:
            continue
        tested = nodes.get(str(node.get("attached_node")), {})
        given = metadata.get("kwargs") or {}
        condition = {**given, **(given.get("arguments") or {})}.get("predicate")
        of_table = folded_name(f"{tested.get('schema')}.{tested.get('alias')}") == folded_name(table)
        if isinstance(condition, str) and of_table:
            found.setdefault(condition, str(node["name"]))
    return found


def target_folder(config: Any) -> Path | None:
    """Returns the target folder of a dbt project, from dbt's configuration; None if it names no project."""
    root, target = getattr(config, "project_root", None), getattr(config, "target_path", None)
    if not isinstance(root, str) or not isinstance(target, str):
        return None
    return Path(root) / target
