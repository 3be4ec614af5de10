"""What a query reads: tables at one version each, other files by a digest, and what makes its rows unpredictable."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dbt.adapters.zlayout.errors import TableNotFoundError
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog, TableName, session_zone
from dbt.adapters.zlayout.spark.jobs.jobs import short_message
from dbt.adapters.zlayout.spark.jvm.scala import Jvm, members
from dbt.adapters.zlayout.spark.read.file_index import IndexedFileIndex
from dbt.adapters.zlayout.spark.read.record_tables import table_of_files
from dbt.adapters.zlayout.spark.read.relations import installed
from dbt.adapters.zlayout.spark.read.session import DEEPEST_VIEW, names_in, prepare_table
from dbt.adapters.zlayout.store import open_store
from dbt.adapters.zlayout.timeline.files.table_file import read_table_file
from dbt.adapters.zlayout.timeline.timeline import Timeline
from dbt.adapters.zlayout.timeline.transactions.row_changes import row_change_after

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LOG = logging.getLogger(__name__)
# A literal, a quoted name or the start of a hint, which stay as they are; or comments and white space, as Spark's lexer
# has them: a backslash at the end of the line continues a comment, and a carriage return ends it.
_PARTS = re.compile(
    r"""((?<!\w)[rR]'[^']*'|(?<!\w)[rR]"[^"]*"|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|/\*\+)"""
    r"""|(?:--(?:\\\n|[^\r\n])*|/\*(?!\+).*?\*/|\s+)+""",
    re.DOTALL,
)
# Comments inside of comments, and text between dollar signs, need more than a regular expression.
_NOT_READ = re.compile(r"/\*(?:(?!\*/).)*/\*|\$\w*\$", re.DOTALL)
_CALL = re.compile(r"([\w`.]+)\s*\(")
# Words before a parenthesis that call no function.
_KEYWORDS = frozenset(
    {
        "all",
        "and",
        "any",
        "array",
        "as",
        "by",
        "case",
        "distinct",
        "else",
        "except",
        "exists",
        "filter",
        "from",
        "group",
        "in",
        "interval",
        "join",
        "map",
        "not",
        "on",
        "or",
        "over",
        "partition",
        "select",
        "some",
        "struct",
        "then",
        "union",
        "using",
        "values",
        "when",
        "where",
        "with",
    }
)
_UNPREDICTABLE_NODE = re.compile(r"^\W*(Sample|ScriptTransformation)\b", re.MULTILINE)
_UNPREDICTABLE = {
    "CURRENT_LIKE": "it uses the current time, user or schema",
    "PYTHON_UDF": "it calls a Python function",
    "SCALA_UDF": "it calls a function that is not Spark's",
}
# Leaves of a plan whose rows are part of the query's text.
_OF_THE_TEXT = frozenset({"OneRowRelation", "Range", "CTERelationRef", "LocalRelation", "ResolvedInlineTable"})
_PAST_VERSION = re.compile(r"`?zlayout_at_\w+`?")
# `ZlayoutFileIndex.toString`. Py4J returns no Python object for a proxy that comes back from the JVM.
_FILE_INDEX = re.compile(r"zlayout\((.*), version (\d+)\)", re.DOTALL)
_ACCESS_TIME = re.compile(r"access_time=\d+")
_MOST_FILES = 100_000


@dataclass(frozen=True)
class TableInput:
    """A table of this package at the version that a query reads."""

    table_id: str
    version: int
    timeline: Timeline

    def to_dict(self) -> dict[str, Any]:
        """Returns the id and the version of the table."""
        return {"table": self.table_id, "version": self.version}

    def difference(self, before: Mapping[str, Any]) -> str | None:
        """Returns how the rows differ from those of an earlier `to_dict`, or None. Another layout is no difference."""
        version = before.get("version")
        if before.get("table") != self.table_id or not isinstance(version, int):
            return "is another table now"
        if self.version == version:
            return None
        if self.version < version:
            return f"is at v{self.version}, but was at v{version}"
        later = row_change_after(self.timeline.headers(), version)
        return None if later is None else f"has other rows since v{later.version} (v{version} was read)"


@dataclass(frozen=True)
class FilesInput:
    """Files that other tools write, as a query lists them.

    Attributes:
        digest: Of their paths, sizes and modification times.
        count: How many there are.
    """

    digest: str
    count: int

    def to_dict(self) -> dict[str, Any]:
        """Returns the attributes."""
        return {"files": self.digest, "count": self.count}

    def difference(self, before: Mapping[str, Any]) -> str | None:
        """Returns how the files differ from those of an earlier `to_dict`, or None."""
        return None if before.get("files") == self.digest else "has other files"


@dataclass(frozen=True)
class QueryInputs:
    """What a query reads.

    Attributes:
        sources: By ``schema.table``, or by folder where a table has no name.
        definitions: Digest of the views that the query reads through, and of the columns that it returns.
        unknown: Why the same sources may give other rows, a sentence each. Empty if they cannot.
    """

    sources: Mapping[str, TableInput | FilesInput]
    definitions: str
    unknown: tuple[str, ...] = ()


@dataclass
class _Found:
    sources: dict[str, TableInput | FilesInput] = field(default_factory=dict)
    unknown: dict[str, None] = field(default_factory=dict)


def query_inputs(sql: str, frame: DataFrame, own: TableName) -> QueryInputs:
    """Returns what a query reads. The query does not run.

    Args:
        sql: The query.
        frame: The query, analyzed; so each of its tables is fixed at one version.
        own: The table that the rows go to. It is no input.
    """
    try:
        return _query_inputs(sql, frame, own)
    except Exception as error:  # what a query reads is advice; the query itself may well run
        _LOG.debug("the inputs of a query are not known", exc_info=True)
        return QueryInputs({}, "", (f"what it reads could not be found out ({short_message(error)})",))


def _query_inputs(sql: str, frame: DataFrame, own: TableName) -> QueryInputs:
    catalog, found = Catalog(frame.sparkSession), _Found()
    views = dict(_views(catalog, sql, found, DEEPEST_VIEW))
    _look_at_text(catalog, [sql, *views.values()], found)
    analyzed: Any = frame._jdf.queryExecution().analyzed()
    for plan in (analyzed, *members(analyzed.subqueriesAll())):
        _look_at_plan(catalog.jvm, plan, found)
        for leaf in members(plan.collectLeaves()):
            _look_at_leaf(catalog, leaf, own, found)
    return QueryInputs(found.sources, digest_of([sorted(views.items()), frame.schema.json()]), tuple(found.unknown))


def source_now(spark: SparkSession, name: str) -> TableInput | FilesInput | None:
    """Returns what `query_inputs` would find for a source by its name; None if there is no such table any more."""
    found, catalog = _Found(), Catalog(spark)
    entry = catalog.find(catalog.name(name))
    if entry is None:
        return None
    prepare_table(spark, name)
    plan: Any = spark.table(name)._jdf.queryExecution().analyzed()
    for leaf in members(plan.collectLeaves()):
        _look_at_leaf(catalog, leaf, None, found)
    return found.sources.get(str(entry.name))


def session_facts(spark: SparkSession) -> str:
    """Returns what a session adds to the meaning of a query: Spark's version, the time zone, the dialect."""
    keys = ("ansi.enabled", "caseSensitive", "legacy.timeParserPolicy", "parser.escapedStringLiterals")
    return " ".join([spark.version, session_zone(spark), *(str(spark.conf.get(f"spark.sql.{key}")) for key in keys)])


def without_comments(sql: str) -> str:
    r"""Returns a query without comments, and with single blanks outside of literals.

    A query with a comment inside of a comment, or with text between dollar signs, is returned as it is.

    >>> without_comments("select 'a  -- b' -- a comment\n  from t /* all */")
    "select 'a  -- b' from t"
    """
    if _NOT_READ.search(sql):
        return sql
    return _PARTS.sub(lambda part: " " if part[1] is None else part[1], sql).strip()


def digest_of(content: object) -> str:
    """Returns a digest of a value's ``repr``."""
    return hashlib.sha256(repr(content).encode("utf-8", "surrogatepass")).hexdigest()


def _views(catalog: Catalog, sql: str, found: _Found, depth: int) -> Iterator[tuple[str, str]]:
    """Yields name and definition of each view below a query. The definition of a temporary view is not known."""
    for name in dict.fromkeys(names_in(catalog.spark, sql)):
        if catalog.is_temporary_view(name):
            if not _PAST_VERSION.fullmatch(name):
                found.unknown[f"it reads the temporary view {name.replace('`', '')}"] = None
            continue
        entry = catalog.find(catalog.name(name))
        if entry is not None and entry.kind == "VIEW" and entry.view_text:
            yield str(entry.name), entry.view_text
            if depth:
                yield from _views(catalog, entry.view_text, found, depth - 1)


def _look_at_text(catalog: Catalog, texts: Sequence[str], found: _Found) -> None:
    if any("${" in text for text in texts):
        found.unknown["its text has ${…}, which Spark replaces"] = None
    code = " ".join(
        _PARTS.sub(lambda part: " " if part[1] is None or part[1][0] != "`" else part[1], text) for text in texts
    )
    called = {name.replace("`", "").lower() for name in _CALL.findall(code)}
    called -= _KEYWORDS | catalog.jvm.once(_builtin_functions)
    if called:
        defined = {str(row[0]).lower() for row in catalog.spark.sql("show user functions").collect()}
        own = {name.rpartition(".")[2] for name in defined}
        for name in sorted(each for each in called if "." in each.strip(".") or each in own):
            found.unknown[f"it calls {name}, which is not a function of Spark"] = None


def _builtin_functions(jvm: Jvm) -> frozenset[str]:
    registry = jvm.companion("org.apache.spark.sql.catalyst.analysis.FunctionRegistry").builtin()
    return frozenset(str(registry.listFunction().mkString("\n")).lower().split("\n"))


def _look_at_plan(jvm: Jvm, plan: Any, found: _Found) -> None:
    if not plan.deterministic():
        found.unknown["it uses a function such as rand or uuid, which returns other values in each run"] = None
    patterns = jvm.companion("org.apache.spark.sql.catalyst.trees.TreePattern")
    for pattern, why in _UNPREDICTABLE.items():
        if plan.containsPattern(getattr(patterns, pattern)()):
            found.unknown[why] = None
    text = str(plan.toString())
    if "variablereference(" in text:
        found.unknown["it uses an SQL variable"] = None
    node = _UNPREDICTABLE_NODE.search(text)
    if node is not None:
        found.unknown["it draws a sample of rows" if node[1] == "Sample" else "it runs a script"] = None


def _look_at_leaf(catalog: Catalog, leaf: Any, own: TableName | None, found: _Found) -> None:
    kind = str(leaf.getClass().getSimpleName())
    if kind in _OF_THE_TEXT:
        return
    if kind == "LogicalRelation":
        relation, entry = leaf.relation(), leaf.catalogTable()
        kind = str(relation.getClass().getSimpleName())
        if kind == "HadoopFsRelation":
            name = _name_of(entry.get().identifier()) if entry.isDefined() else None
            _look_at_files(catalog, relation.location(), name, own, found)
            return
    found.unknown[f"it reads a source whose changes Spark does not know ({kind})"] = None


def _name_of(identifier: Any) -> TableName:
    return TableName(str(identifier.database().get()), str(identifier.table()))


def _look_at_files(
    catalog: Catalog, location: Any, name: TableName | None, own: TableName | None, found: _Found
) -> None:
    if own is not None and name is not None and own in (name, table_of_files(name)):
        return
    ours = _FILE_INDEX.fullmatch(str(location.toString()))
    index = installed(catalog, name) if ours is not None and name is not None else None
    if ours is not None and not isinstance(index, IndexedFileIndex):
        place, version = ours[1], int(ours[2])
        store = open_store(place)
        table_file = read_table_file(store)
        if table_file is None:
            raise TableNotFoundError(f"{place} holds no table any more")
        # A table without a name is a version of the past.
        told = f"{place} v{version}" if name is None else str(table_of_files(name) or name)
        found.sources[told] = TableInput(table_file.table_id, version, Timeline(store))
        return
    listing = index.base if isinstance(index, IndexedFileIndex) else location
    told = str(name or listing.rootPaths().mkString(", "))
    if str(listing.getClass().getSimpleName()) == "CatalogFileIndex":
        listing = listing.filterPartitions(catalog.jvm.seq([]))
    files = listing.allFiles()
    count = int(files.size())
    if count > _MOST_FILES:
        found.unknown[f"it reads {told}, which has more than {_MOST_FILES:,} files"] = None
        return
    listed = sorted(_ACCESS_TIME.sub("", str(files.mkString("\n"))).split("\n"))
    found.sources[told] = FilesInput(digest_of(listed), count)
