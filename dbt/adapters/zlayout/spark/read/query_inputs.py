"""What a query reads: tables at one version each, other files by a digest, and what makes its rows unpredictable."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException
from pyspark.sql import functions

from dbt.adapters.zlayout.config.incremental import MergeRules
from dbt.adapters.zlayout.errors import TableNotFoundError
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog, Entry, TableName, session_zone
from dbt.adapters.zlayout.spark.catalyst.predictable import (
    PARTS,
    SQL_FUNCTION,
    casts_to_the_current_time,
    hidden_inputs,
)
from dbt.adapters.zlayout.spark.jobs.jobs import short_message
from dbt.adapters.zlayout.spark.jvm.scala import Jvm, members
from dbt.adapters.zlayout.spark.read.file_index import IndexedFileIndex
from dbt.adapters.zlayout.spark.read.query_scans import with_subqueries
from dbt.adapters.zlayout.spark.read.record_tables import (
    BASE_ROWS_PROPERTY,
    VIEW_PREFIX,
    is_merging_view,
    table_of_files,
)
from dbt.adapters.zlayout.spark.read.relations import installed
from dbt.adapters.zlayout.spark.read.session import prepare_table
from dbt.adapters.zlayout.spark.schema.types import columns_of
from dbt.adapters.zlayout.store import open_store
from dbt.adapters.zlayout.timeline.files.table_file import ManagementLevel, read_table_file
from dbt.adapters.zlayout.timeline.log.entry import TableState
from dbt.adapters.zlayout.timeline.timeline import Timeline
from dbt.adapters.zlayout.timeline.transactions.last_row_change import row_change_after

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LOG = logging.getLogger(__name__)
# Comments inside of comments, and text between dollar signs, need more than a regular expression.
_NOT_READ = re.compile(r"/\*(?:(?!\*/).)*/\*|\$\w*\$", re.DOTALL)
_UNPREDICTABLE = {
    "PYTHON_UDF": "it calls a Python function",
    "SCALA_UDF": "it calls a function that is not Spark's",
}
# Leaves of a plan whose rows are part of the query's text.
_OF_THE_TEXT = frozenset(
    {"OneRowRelation", "Range", "CTERelationRef", "UnionLoopRef", "LocalRelation", "ResolvedInlineTable"}
)
_NAMES_OF_CURRENT_LIKE = re.compile(r"\b(current_\w+|localtimestamp|now|session_user|user)\(")
# What only the text of a plan shows: Spark has no tree pattern for it, or not in every version.
_UNPREDICTABLE_TEXT = {
    re.compile(r"^\W*Sample\b", re.MULTILINE): "it draws a sample of rows",
    re.compile(r"^\W*ScriptTransformation\b", re.MULTILINE): "it runs a script",
    re.compile(r"\b_metadata#\d"): "it reads the file names of rows",
    re.compile(r"variablereference\("): "it uses an SQL variable",
    re.compile(rf"Hive(?:Simple|Generic)?UD(?:A|T)?F|\b{SQL_FUNCTION}"): "it calls a function that is not Spark's",
    # With Spark's random initialization vector; Spark calls it deterministic anyway.
    re.compile(r"\baes_encrypt\("): "it encrypts values, with a different result in each run",
}
_ALL_EXPRESSIONS = 2**31 - 1
# Where it is true, literals end at other places than `PARTS` says.
_NO_ESCAPES = "spark.sql.parser.escapedStringLiterals"
_TREE_STRING = re.compile(r"\.treeString\(boolean,boolean,int((?:,boolean)*)\)")
_VIEW = re.compile(r"\bView \(((?:\.?`(?:[^`]|``)+`)+), ")
_PART_OF_NAME = re.compile(r"`((?:[^`]|``)+)`")
# Temporary views of this package for which the files below them say everything: of an older version, and of records.
_OF_FILES_BELOW = re.compile(rf"zlayout_at_\w+|{VIEW_PREFIX}[0-9a-f]{{32}}")
# `ZlayoutFileIndex.toString`. Py4J returns no Python object for a proxy that comes back from the JVM.
_FILE_INDEX = re.compile(r"zlayout\((.*), version (\d+)\)", re.DOTALL)
# Path, size and modification time in Hadoop's text of a file. Its owner and the time of the last access do not count.
_LISTED_FILE = re.compile(
    r"\w+\{path=(.*); isDirectory=false; length=(\d+); replication=\d+; blocksize=\d+; modification_time=(\d+); .*"
)
_MOST_FILES, _FEW_FILES = 100_000, 1_000
# What a version stores of its inputs stays small.
_MOST_SOURCES, _LONGEST_NAME = 1_000, 300
# Settings that change how fast a query runs, not its rows.
_SAME_MEANING = tuple(
    f"spark.sql.{each}"
    for each in ("adaptive.", "autoBroadcast", "debug.", "files.max", "shuffle.", "ui.", "warehouse.")
)


@dataclass(frozen=True)
class TableInput:
    """A table of this package at the version that a query reads.

    Attributes:
        instant: That of the version. It distinguishes it from one of the same number after the table was restored.
        columns: Digest of their names and types.
    """

    table_id: str
    version: int
    instant: str
    columns: str
    timeline: Timeline

    def to_dict(self) -> dict[str, Any]:
        """Returns all but the timeline."""
        return {"table": self.table_id, "version": self.version, "instant": self.instant, "columns": self.columns}

    def difference(self, before: Mapping[str, Any]) -> str | None:
        """Returns how the rows differ from those of an earlier `to_dict`, or None. Another layout is no difference."""
        version = before.get("version")
        if before.get("table") != self.table_id or not isinstance(version, int):
            return "is another table now"
        if self.version < version:
            return f"is at v{self.version}, but was at v{version}"
        later = row_change_after(self.timeline.headers(), version) if self.version > version else None
        if later is not None:
            return f"has other rows since v{later.version} (v{version} was read)"
        instant = self.instant if self.version == version else self.timeline.read(version).instant
        if before.get("instant") != instant:
            return f"has another v{version} than the one that was read"
        return None if before.get("columns") == self.columns else "has other columns"


@dataclass(frozen=True)
class FilesInput:
    """Files that other tools write, as a query lists them.

    Attributes:
        digest: The digest of their paths, sizes and modification times.
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
        views: Digest of each of these views, by name.
    """

    sources: Mapping[str, TableInput | FilesInput]
    definitions: str
    unknown: tuple[str, ...] = ()
    views: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class TableRead:
    """A table that a query reads through a temporary view of this package.

    Attributes:
        name: ``schema.table``.
        location: The URI of its folder.
        version: The newest version whose rows the view holds.
    """

    name: str
    location: str
    version: int


@dataclass
class _Found:
    sources: dict[str, TableInput | FilesInput] = field(default_factory=dict)
    unknown: dict[str, None] = field(default_factory=dict)
    views: dict[str, Entry] = field(default_factory=dict)

    def doubt(self, sentence: str) -> None:
        """Notes an input that is not known, once."""
        self.unknown[sentence] = None

    reads: Mapping[str, TableRead] = field(default_factory=dict)
    lists_files: bool = True


def query_inputs(
    sql: str,
    frame: DataFrame,
    reads: Mapping[str, TableRead] | None = None,
    *,
    rules: MergeRules | None = None,
    lists_files: bool = True,
) -> QueryInputs:
    """Returns what a query reads, and the conditions by which its rows are merged. The query does not run.

    Args:
        frame: The query, analyzed; so each of its tables is fixed at one version.
        reads: What temporary views of this package read, by their names.
        rules: How the rows are merged, if they are.
        lists_files: Whether to list the files of other tools' tables where that takes long. If not, the inputs of such
            a query are unknown.
    """
    try:
        return _query_inputs(sql, frame, rules or MergeRules(), _Found(reads=reads or {}, lists_files=lists_files))
    except Exception as error:  # what a query reads is advice; the query itself may well run
        _LOG.debug("the inputs of a query are not known", exc_info=True)
        return QueryInputs({}, "", (f"its inputs could not be determined ({short_message(error)})",))


def _query_inputs(sql: str, frame: DataFrame, rules: MergeRules, found: _Found) -> QueryInputs:
    catalog = Catalog(frame.sparkSession)
    plans = [plan for each in (frame, *_met(rules, frame)) for plan in _plans(each)]
    for plan in plans:
        _look_at_plan(catalog, plan, found)
    texts = [sql, *rules.conditions, *(entry.view_text or "" for entry in found.views.values())]
    _look_at_text(catalog, texts, found)
    for plan in plans:
        for leaf in members(plan.collectLeaves()):
            _look_at_leaf(catalog, leaf, found)
    if len(found.sources) > _MOST_SOURCES:
        return QueryInputs({}, "", (f"it reads more than {_MOST_SOURCES:,} tables",))
    views = {name: digest_of(_definition(entry)) for name, entry in sorted(found.views.items())}
    definitions = digest_of([views, frame.schema.json()])
    return QueryInputs(found.sources, definitions, tuple(found.unknown), views)


def _met(rules: MergeRules, frame: DataFrame) -> list[DataFrame]:
    """Returns a query for each condition of a merge: for the incoming rows that meet it, the table's, or pairs.

    There are none, so that the plan holds the condition and what it reads, and nothing else.

    Raises:
        AnalysisException: A condition reads a column that the incoming rows do not have.
    """
    if not rules.conditions:
        return []
    nothing = [functions.lit(None).cast(each.dataType).alias(each.name) for each in frame.schema.fields]
    empty = frame.sparkSession.range(0).select(*nothing)
    incoming, table = empty.alias(rules.source_alias), empty.alias(rules.target_alias)

    def met(condition: str) -> DataFrame:
        for rows in (incoming, table):
            with suppress(AnalysisException):
                return rows.where(condition)
        return incoming.join(table).where(condition)

    return [met(each) for each in rules.conditions]


def temporary_views(frame: DataFrame) -> set[str]:
    """Returns the names of the temporary views that an analyzed query reads, also through other views."""
    flags = Catalog(frame.sparkSession).jvm.once(_last_flags)
    texts = [str(plan.treeString(True, False, 1, *flags)) for plan in _plans(frame)]
    names = [name for text in texts for name in _VIEW.findall(text)]
    return {parts[0] for parts in map(_PART_OF_NAME.findall, names) if len(parts) == 1}


def _plans(frame: DataFrame) -> list[Any]:
    return with_subqueries(frame._jdf.queryExecution().analyzed())


def versions_by_name(frame: DataFrame, location: str) -> set[int]:
    """Returns the versions of a table at which a query reads it by its name, and not as a version of the past."""
    found = set()
    for leaf in (leaf for plan in _plans(frame) for leaf in members(plan.collectLeaves())):
        if str(leaf.getClass().getSimpleName()) == "LogicalRelation" and leaf.catalogTable().isDefined():
            relation = leaf.relation()
            if str(relation.getClass().getSimpleName()) == "HadoopFsRelation":
                ours = _FILE_INDEX.fullmatch(str(relation.location().toString()))
                if ours is not None and ours[1] == location:
                    found.add(int(ours[2]))
    return found


def source_now(spark: SparkSession, name: str) -> TableInput | FilesInput | str:
    """Returns what `query_inputs` would find for a source by its name, or why it finds nothing, such as 'is gone'."""
    found, catalog = _Found(), Catalog(spark)
    entry = catalog.find_named(name)
    if entry is None:
        return "is gone"
    prepare_table(spark, name)
    plan: Any = spark.table(name)._jdf.queryExecution().analyzed()
    _look_at_plan(catalog, plan, found)
    for leaf in members(plan.collectLeaves()):
        _look_at_leaf(catalog, leaf, found)
    source = found.sources.get(str(entry.name))
    if source is None:
        return "is a view now" if entry.kind == "VIEW" else f"cannot be compared: {'; '.join(found.unknown)}"
    return source


def view_now(spark: SparkSession, name: str) -> str | None:
    """Returns the digest that `query_inputs` would give a view; None if there is no such view any more."""
    catalog = Catalog(spark)
    entry = catalog.find_named(name)
    return None if entry is None or entry.kind != "VIEW" else digest_of(_definition(entry))


def session_facts(spark: SparkSession) -> str:
    """Returns a digest of what a session adds to the meaning of a query: Spark's version, the time zone, settings."""
    session: Any = spark._jsparkSession
    settings = str(session.sessionState().conf().getAllConfs().mkString("\n")).split("\n")
    given = sorted(each for each in settings if each.startswith("spark.sql.") and not each.startswith(_SAME_MEANING))
    return digest_of([spark.version, session_zone(spark), str(spark.conf.get("spark.sql.ansi.enabled")), given])


def without_comments(sql: str) -> str:
    r"""Returns a query without comments, and with single blanks outside of literals.

    A query with a comment inside of a comment, or with text between dollar signs, is returned as it is.

    >>> without_comments("select 'a  -- b' -- a comment\n  from t /* all */")
    "select 'a  -- b' from t"
    """
    if _NOT_READ.search(sql):
        return sql
    return PARTS.sub(lambda part: " " if part[1] is None else part[1], sql).strip()


def digest_of(content: object) -> str:
    """Returns a digest of a value's ``repr``."""
    return hashlib.sha256(repr(content).encode("utf-8", "surrogatepass")).hexdigest()


def _look_at_text(catalog: Catalog, texts: Sequence[str], found: _Found) -> None:
    if any("\\" in text for text in texts) and catalog.spark.conf.get(_NO_ESCAPES) == "true":
        found.doubt(f"it has a backslash, and {_NO_ESCAPES} is set")
    for sentence in hidden_inputs(texts, partial(_functions_of_users, catalog)):
        found.doubt(sentence)


def _functions_of_users(catalog: Catalog) -> set[str]:
    """Returns the names of temporary functions and of those in the current schema, without the schema."""
    state: Any = catalog.spark._jsparkSession.sessionState()
    registries = state.functionRegistry(), state.tableFunctionRegistry()
    known = catalog.jvm.once(_functions_of_spark)
    lists = [each.listFunction().diff(of_spark) for each, of_spark in zip(registries, known, strict=True)]
    lists.append(state.catalog().externalCatalog().listFunctions(state.catalog().getCurrentDatabase(), "*"))
    names = [name for each in lists for name in str(each.mkString("\n")).split("\n")]
    return {name.rpartition(".")[2].lower() for name in names}


def _functions_of_spark(jvm: Jvm) -> list[Any]:
    """Returns the functions that every session has: scalar and aggregate ones, then table functions."""
    analysis = jvm.root.org.apache.spark.sql.catalyst.analysis
    return [each.functionSet().toSeq() for each in (analysis.FunctionRegistry, analysis.TableFunctionRegistry)]


def _look_at_plan(catalog: Catalog, plan: Any, found: _Found) -> None:
    if not plan.deterministic():
        found.doubt("it uses a function such as rand or uuid, which returns other values in each run")
    # Spark's own toString leaves out what comes after the first 25 expressions of a node.
    text = str(plan.treeString(True, False, _ALL_EXPRESSIONS, *catalog.jvm.once(_last_flags)))
    for pattern, why in catalog.jvm.once(_unpredictable_patterns):
        if plan.containsPattern(pattern):
            found.doubt(why)
    if plan.containsPattern(catalog.jvm.once(_current_like)):
        called = ", ".join(sorted(set(_NAMES_OF_CURRENT_LIKE.findall(text)))) or "a function"
        found.doubt(f"it uses the current time, user or schema ({called})")
    if casts_to_the_current_time(catalog.jvm, plan):
        found.doubt("it casts a text such as 'today' to a date or timestamp")
    for node, why in _UNPREDICTABLE_TEXT.items():
        if node.search(text):
            found.doubt(why)
    for name in dict.fromkeys(_VIEW.findall(text)):
        _look_at_view(catalog, name, found)


def _unpredictable_patterns(jvm: Jvm) -> list[tuple[Any, str]]:
    return [(_tree_pattern(jvm, pattern), why) for pattern, why in _UNPREDICTABLE.items()]


def _current_like(jvm: Jvm) -> Any:
    return _tree_pattern(jvm, "CURRENT_LIKE")


def _tree_pattern(jvm: Jvm, name: str) -> Any:
    return getattr(jvm.companion("org.apache.spark.sql.catalyst.trees.TreePattern"), name)()


def _last_flags(jvm: Jvm) -> list[bool]:
    """Returns the arguments of ``treeString`` after the number of expressions. How many they are depends on Spark."""
    methods = jvm.type("org.apache.spark.sql.catalyst.trees.TreeNode").getMethods()
    (flags,) = set(_TREE_STRING.findall(str(jvm.root.scala.runtime.ScalaRunTime.stringOf(methods))))
    return [False] * flags.count("boolean")


def _look_at_view(catalog: Catalog, name: str, found: _Found) -> None:
    """Notes a view that a plan reads through, by the name that the plan has. A view without schema is temporary."""
    parts = _PART_OF_NAME.findall(name)
    if len(parts) == 1 or parts[-2] == "global_temp":
        read = found.reads.get(parts[-1])
        if read is not None:
            _note_table(catalog, read.location, read.version, catalog.name(read.name), found)
        elif not _OF_FILES_BELOW.fullmatch(parts[-1]):
            found.doubt(f"it reads the temporary view {parts[-1]}")
        return
    entry = catalog.find(TableName(parts[-2], parts[-1]))
    if entry is None or entry.kind != "VIEW":
        found.doubt(f"it reads the view {'.'.join(parts)}, which is gone")
        return
    found.views[str(entry.name)] = entry
    if BASE_ROWS_PROPERTY in entry.properties:
        found.doubt(f"it reads base rows only ({entry.name}), which a compaction changes")


def _definition(entry: Entry) -> object:
    """Returns what decides the rows of a view, apart from the tables below it."""
    # The merging view changes with its table, whose version counts.
    if is_merging_view(entry):
        return None
    return [entry.view_text, sorted(each for each in entry.properties.items() if each[0].startswith("view."))]


def _look_at_leaf(catalog: Catalog, leaf: Any, found: _Found) -> None:
    kind = str(leaf.getClass().getSimpleName())
    if kind in _OF_THE_TEXT:
        return
    if kind == "LogicalRelation":
        relation, entry = leaf.relation(), leaf.catalogTable()
        kind = str(relation.getClass().getSimpleName())
        if kind == "HadoopFsRelation":
            _look_at_files(catalog, relation, _name_of(entry.get().identifier()) if entry.isDefined() else None, found)
            return
    found.doubt(f"it reads a source whose changes Spark does not know ({kind})")


def _name_of(identifier: Any) -> TableName:
    return TableName(str(identifier.database().get()), str(identifier.table()))


def _look_at_files(catalog: Catalog, relation: Any, name: TableName | None, found: _Found) -> None:
    location = relation.location()
    shown = str(location.toString())
    ours = _FILE_INDEX.fullmatch(shown)
    if ours is not None:
        index = installed(catalog, name) if name is not None else None
        if not isinstance(index, IndexedFileIndex):
            # The tables below a view of `reads` are noted by the view.
            if name is not None or all(each.location != ours[1] for each in found.reads.values()):
                _note_table(catalog, ours[1], int(ours[2]), name, found)
            return
        if index.toString() != shown:
            found.doubt(f"the index of {name} was refreshed while the query was analyzed")
            return
        location = index.base
    label = str(name or location.rootPaths().mkString(", "))
    if len(label) > _LONGEST_NAME:
        label = f"{label[:_LONGEST_NAME]}… {digest_of(label)[:8]}"
    # Spark has listed the files of other tables already.
    if str(location.getClass().getSimpleName()) == "CatalogFileIndex":
        if not found.lists_files:
            found.doubt(f"{label} has partitions, which are listed only with skip_unchanged")
            return
        location = location.filterPartitions(catalog.jvm.seq([]))
    files = location.allFiles()
    count = int(files.size())
    most = _MOST_FILES if found.lists_files else _FEW_FILES
    if count > most:
        found.doubt(f"it reads {label}, which has more than {most:,} files")
        return
    listed = sorted(_LISTED_FILE.sub(r"\1 \2 \3", each) for each in str(files.mkString("\n")).split("\n"))
    # How the files are read: as which partitions, in which format, with which options and columns.
    how = sorted(str(relation.options().mkString("\n")).split("\n"))
    how += [str(relation.fileFormat().getClass().getName()), str(relation.schema().json())]
    _note(label, FilesInput(digest_of([listed, str(location.partitionSpec().toString()), how]), count), found)


def _note_table(catalog: Catalog, place: str, version: int, name: TableName | None, found: _Found) -> None:
    store = open_store(place)
    table_file = read_table_file(store)
    if table_file is None:
        raise TableNotFoundError(f"{place} holds no table any more")
    if table_file.level is not ManagementLevel.MANAGED:
        found.doubt(f"the index of {name or place} was refreshed while the query was analyzed")
        return
    # A table without a name is a version of the past. A merge-on-read table has the name of its merging view.
    merging = None if name is None else table_of_files(name)
    if merging is not None and str(merging) in found.views:
        name = merging
    elif merging is not None and is_merging_view(catalog.find(merging)):
        found.doubt(f"it reads the files of {merging}, which a compaction changes")
    label = str(name or f"{place} v{version}")
    timeline = Timeline(store)
    index = None if name is None else installed(catalog, name)
    known = index is not None and (index.opened.location, index.opened.version) == (place, version)
    state: TableState = index.opened.snapshot if index is not None and known else timeline.read(version)
    # A column that comes without rows can change what a name in the query means.
    columns = digest_of(columns_of(state.schema_json))
    _note(label, TableInput(table_file.table_id, version, state.instant, columns, timeline), found)


def _note(label: str, source: TableInput | FilesInput, found: _Found) -> None:
    known = found.sources.setdefault(label, source)
    if known.to_dict() != source.to_dict():
        found.doubt(f"it reads {label} in two ways")
