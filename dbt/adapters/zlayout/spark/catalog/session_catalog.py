"""The session catalog: names and locations of tables, and how their entries are created, changed, removed and read.

Entries are created through ``SessionCatalog`` instead of ``CREATE TABLE``. For a folder that already has Spark's
manifest, the statement would drop the schema and partition columns and infer both from the files.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from pyspark.errors import AnalysisException
from pyspark.sql.types import StructType

from dbt.adapters.zlayout.errors import ConfigError, TableNotFoundError, UnsupportedError
from dbt.adapters.zlayout.lazy import cached_property
from dbt.adapters.zlayout.predicate.literals import backquoted
from dbt.adapters.zlayout.spark.jobs.jobs import short_message
from dbt.adapters.zlayout.spark.jvm.hadoop_store import serve_hadoop_stores, store_errors
from dbt.adapters.zlayout.spark.jvm.scala import Jvm, descriptor, members
from dbt.adapters.zlayout.store.opening import has_scheme, place_problem
from dbt.adapters.zlayout.store.uri import without_login

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE_ID_PROPERTY = "zlayout.table_id"
_PLAIN = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_ALLOWED_NAME = re.compile(r"\w+", re.ASCII)
_CATALOG = "org.apache.spark.sql.catalyst.catalog."
_CATALOG_TABLE = f"{_CATALOG}CatalogTable"
_GRANT = "GRANT SELECT ON TABLE a_table TO `somebody`"
_NOT_FOUND = ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND")
# Spark keeps the declared type of a char or varchar column here, because its values are strings.
DECLARED_TYPE = "__CHAR_VARCHAR_TYPE_STRING"


@dataclass(frozen=True)
class TableName:
    """A table's name in the session catalog, always with its schema."""

    schema: str
    identifier: str

    def __str__(self) -> str:
        # Quoted only if necessary; `Catalog.name` can parse it.
        parts = (self.schema, self.identifier)
        return ".".join(part if _PLAIN.fullmatch(part) else backquoted(part) for part in parts)

    @property
    def sql(self) -> str:
        """The name quoted for an SQL statement."""
        return ".".join(map(backquoted, (self.schema, self.identifier)))


@dataclass(frozen=True)
class TablePath:
    """A table's folder in place of its name: the table is opened without its catalog entry.

    Attributes:
        location: Absolute escaped URI of the folder, as a catalog entry would have it.
    """

    location: str

    def __str__(self) -> str:
        # As a user types it: `Catalog.folder` can parse it.
        local = self.location.startswith("file:///")
        return unquote(self.location.removeprefix("file://")) if local else without_login(self.location)


TableRef = TableName | TablePath


def named(table: TableRef, action: str) -> TableName:
    """Returns the name of a table for an action that changes its catalog entry too.

    Args:
        action: What needs the entry, as the subject of a sentence.

    Raises:
        UnsupportedError: The table was opened by its folder.
    """
    if isinstance(table, TableName):
        return table
    raise UnsupportedError(
        f"{table}: {action} needs the table's catalog entry, and the table was opened by its folder; make the entry "
        f"with ZTable.register(spark, 'schema.table', '{table}'), and use the table that it returns"
    )


@dataclass(frozen=True)
class Definition:
    """What the catalog should say about a table."""

    name: TableName
    location: str
    schema_json: str
    partition_by: tuple[str, ...] = ()
    comment: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Entry:
    """What the catalog says about a table.

    Attributes:
        native: Spark's ``CatalogTable`` (Py4J object).
        kind: MANAGED, EXTERNAL or VIEW.
        view_text: The query of a view; None for a table.
    """

    name: TableName
    native: Any
    kind: str
    provider: str | None
    location: str | None
    schema_json: str
    partition_by: tuple[str, ...]
    properties: Mapping[str, str]
    comment: str | None
    view_text: str | None

    @property
    def table_id(self) -> str | None:
        """The id of the managed or indexed table that the entry shows; None for other tables."""
        return self.properties.get(TABLE_ID_PROPERTY)

    def columns(self) -> dict[str, tuple[str, str | None]]:
        """Returns the type of each column, as SQL declares it, and its comment or None, by name."""
        return {
            field.name: (
                field.metadata.get(DECLARED_TYPE) or field.dataType.simpleString(),
                field.metadata.get("comment") or None,
            )
            for field in StructType.fromJson(json.loads(self.schema_json)).fields
        }


# Separate the facts of an entry, and the members of one fact. They occur in none of them.
_BETWEEN_FACTS = "\0zlayout.fact\0"
_BETWEEN = "\0zlayout\0"


class Catalog:
    """The session catalog of one session."""

    def __init__(self, spark: SparkSession) -> None:
        serve_hadoop_stores()
        self.spark = spark
        self.jvm = Jvm.of(spark)
        self._session: Any = spark._jsparkSession
        self._native: Any = self._session.sessionState().catalog()

    def name(self, text: str) -> TableName:
        """Parses ``schema.table``, which may have backquotes. A name without a schema is in the current schema.

        Raises:
            ConfigError: The text is not a table name of the session catalog.
        """
        try:
            parts = self._session.sessionState().sqlParser().parseMultipartIdentifier(text)
        except Exception as error:
            raise ConfigError([f"table name {text!r} cannot be read; give it as schema.table"]) from error
        words = list(map(str, members(parts)))
        if len(words) == 3 and words[0] == "spark_catalog":
            words = words[1:]
        if len(words) > 2:
            raise ConfigError(
                [f"table name {text!r} names catalog {words[0]!r}; only spark_catalog is supported; give schema.table"]
            )
        schema = words[0] if len(words) == 2 else str(self._native.getCurrentDatabase())
        return TableName(schema, words[-1])

    def find_named(self, text: str) -> Entry | None:
        """Returns the entry of the table or view that a text names, as `name` reads it; None if there is none."""
        return self.find(self.name(text))

    def find(self, name: TableName) -> Entry | None:
        """Returns the entry of a table or view, or None."""
        try:
            # One metastore call instead of two: the table usually exists.
            native = self._native.getTableMetadata(self._identifier(name))
        except AnalysisException as error:
            if any(mark in str(error) for mark in _NOT_FOUND):
                return None
            raise
        # Asking for each fact would take a call for each, and an entry is looked up several times in every write.
        facts = str(self.jvm.once(_entry_facts).apply(native)).split(_BETWEEN_FACTS)
        kind, provider, location, schema_json, columns, keys, values, comment, view_text = facts
        provider_name, uri = _option(provider), _option(location)
        return Entry(
            name=name,
            native=native,
            kind=kind,
            provider=provider_name.lower() if provider_name is not None else None,
            location=canonical(uri) if uri is not None else None,
            schema_json=schema_json,
            partition_by=tuple(columns.split(_BETWEEN)) if columns else (),
            properties=dict(zip(keys.split(_BETWEEN), values.split(_BETWEEN), strict=True)) if keys else {},
            comment=_option(comment) or None,
            view_text=_option(view_text),
        )

    def put(self, definition: Definition, old: Entry | None) -> Entry:
        """Creates the entry, or replaces ``old`` with it if they differ. Never touches files."""
        if old is not None and _is_already(definition, old):
            return old
        native = self._catalog_table(definition)
        if old is not None:
            if old.kind == "MANAGED":
                # Dropping its entry must not delete its files: they stay if the catalog refuses the new one.
                self.disown(old)
            self._native.dropTable(self._identifier(old.name), True, False)
        try:
            self._native.createTable(native, False, False)
        except Exception:
            # The catalog refuses the columns: readers keep what they had.
            if old is not None:
                self._native.createTable(old.native, True, False)
            raise
        found = self.find(definition.name)
        if found is None:
            raise RuntimeError(
                f"{definition.name} is not in the catalog although it was created just now; another process may have "
                "dropped it: run again"
            )
        return found

    def disown(self, entry: Entry) -> None:
        """Turns a table that the catalog owns into an external one. Dropping its entry then keeps its folder."""
        external = self.jvm.companion(_CATALOG + "CatalogTableType").EXTERNAL()
        self._native.alterTable(self.jvm.copied(_CATALOG_TABLE, entry.native, 2, external))

    def entries_of(self, table_id: str) -> list[Entry]:
        """Returns every entry of a table, in all schemas. Takes two metastore calls for each schema."""
        found = []
        for schema in map(str, members(self._native.listDatabases())):
            # Temporary views are in no schema, and Spark refuses to look up names of two schemas at once.
            names = self._native.listTables(schema, "*", False)
            for native in members(self._native.getTablesByName(names)):
                properties = native.properties()
                if properties.contains(TABLE_ID_PROPERTY) and str(properties.apply(TABLE_ID_PROPERTY)) == table_id:
                    entry = self.find(TableName(schema, str(native.identifier().table())))
                    found += [entry] if entry is not None else []
        return found

    def set_property(self, entry: Entry, key: str, value: str) -> None:
        """Adds a property to an entry and changes nothing else."""
        properties = self.jvm.scala_map({**entry.properties, key: value})
        self._native.alterTable(self.jvm.copied(_CATALOG_TABLE, entry.native, 12, properties))

    def remove(self, name: TableName) -> None:
        """Drops the entry of a table or view. Spark deletes the files of its managed tables, not of external ones."""
        self._native.dropTable(self._identifier(name), True, False)

    def rename(self, old: TableName, new: TableName) -> None:
        """Renames the entry."""
        self._native.renameTable(self._identifier(old), self._identifier(new))

    def schema_location(self, schema: str) -> str:
        """Returns the default folder of the schema's tables as a URI.

        Raises:
            TableNotFoundError: There is no such schema.
        """
        if not self._native.databaseExists(schema):
            raise TableNotFoundError(f"there is no schema {schema!r}; create it first: create schema {schema}")
        return canonical(str(self._native.getDatabaseMetadata(schema).locationUri().toString()))

    def qualified(self, path: str) -> str:
        """Returns the absolute URI that Spark makes of a path.

        Raises:
            StoreError: Spark has no file system for its scheme, or finds no server of that name.
        """
        conf = self._session.sessionState().newHadoopConf()
        with store_errors(without_login(path)):
            hadoop_path = self.jvm.root.org.apache.hadoop.fs.Path(path)
            return canonical(str(hadoop_path.getFileSystem(conf).makeQualified(hadoop_path).toUri().toString()))

    def folder(self, path: str | os.PathLike[str]) -> TablePath:
        """Returns the folder that a user names.

        Args:
            path: A local path, taken literally, absolute or relative to the working directory; or a URI, whose percent
                escapes are decoded.

        Raises:
            UnsupportedError: No table can be there.
        """
        text = os.fspath(path)
        if not text:
            raise UnsupportedError("the path is empty; give the folder of a table")
        # Hadoop takes a path literally, with or without a scheme.
        plain = unquote(text) if has_scheme(text) else os.path.abspath(text)  # noqa: PTH100 # "~" stays a name
        if (problem := place_problem(text if has_scheme(text) else plain)) is not None:
            raise UnsupportedError(f"{without_login(text)!r} {problem}")
        return TablePath(self.qualified(plain))

    def with_statistics(
        self, entry: Entry, size_bytes: int, row_count: int, columns: Mapping[str, ColumnFacts]
    ) -> Entry:
        """Gives Spark's optimizer exact sizes, counts and bounds.

        Returns:
            The updated entry, without another metastore call.
        """
        statistics = self.jvm.some(self.jvm.once(_StatisticsBuilder).table(size_bytes, row_count, columns))
        self._native.alterTableStats(self._identifier(entry.name), statistics)
        return replace(entry, native=self.jvm.copied(_CATALOG_TABLE, entry.native, 13, statistics))

    @cached_property
    def _cached_rows(self) -> Any:
        return self._session.sharedState().cacheManager()

    def refresh(self, name: TableName) -> None:
        """Drops everything that the session has cached for the table, including its rows."""
        if self._cached_rows.isEmpty():
            self.forget_relation(name)
        else:
            self.spark.catalog.refreshTable(name.sql)

    def cached_relation(self, name: TableName) -> Any:
        """Returns the plan that the session has cached under the name, or None."""
        return self._native.getCachedTable(self._qualified_name(name))

    def cache_relation(self, name: TableName, plan: Any) -> None:
        """Puts a plan into the session's relation cache, where plain SQL finds it."""
        self._native.cacheTable(self._qualified_name(name), plan)

    def forget_relation(self, name: TableName) -> None:
        """Removes the plan from the relation cache. The next query loads the table as plain Spark does."""
        self._native.invalidateCachedTable(self._qualified_name(name))

    def forget_relations(self) -> None:
        """Removes all plans from the relation cache, and with them what Spark knows of the files of tables."""
        self._native.invalidateAllCachedTables()

    def relation_cache(self) -> Any:
        """Returns the object that caches the session's relations: Spark's ``SessionCatalog`` (Py4J object)."""
        return self._native

    def grant_problem(self) -> str | None:
        """Returns why the session's SQL has no GRANT. Spark's parser has none, but an extension's parser may.

        Returns:
            None if the session knows the statement. Nothing is granted.
        """
        try:
            self._session.sessionState().sqlParser().parsePlan(_GRANT)
        except Exception as error:  # whatever a parser raises
            return short_message(error).splitlines()[0]
        return None

    def data_type(self, type_json: str) -> Any:
        """Returns the Spark ``DataType`` for a JSON text; a ``StructType`` for a schema."""
        return self.jvm.once(_data_types)(type_json)

    def _catalog_table(self, definition: Definition) -> Any:
        uri = self.jvm.root.java.net.URI.create(definition.location)
        no_storage = self.jvm.companion(_CATALOG + "CatalogStorageFormat").empty()
        storage = self.jvm.copied(_CATALOG + "CatalogStorageFormat", no_storage, 1, self.jvm.some(uri))
        external = self.jvm.companion(_CATALOG + "CatalogTableType").EXTERNAL()
        return self.jvm.case_class(
            _CATALOG_TABLE,
            [self._identifier(definition.name), external, storage, self.data_type(definition.schema_json)],
            p5=self.jvm.some("parquet"),
            p6=self.jvm.seq(definition.partition_by),
            p12=self.jvm.scala_map(dict(definition.properties)),
            p15=self.jvm.some(definition.comment) if definition.comment else self.jvm.none(),
        )

    def _identifier(self, name: TableName) -> Any:
        return self.jvm.once(_identifiers)(name)

    def _qualified_name(self, name: TableName) -> Any:
        # Names in Spark's cache are lower case unless the session is case sensitive.
        sensitive = self.spark.conf.get("spark.sql.caseSensitive") == "true"
        cached = name if sensitive else TableName(name.schema.lower(), name.identifier.lower())
        return self.jvm.once(_qualified_names)(cached)


def _identifiers(jvm: Jvm) -> Callable[[TableName], Any]:
    """Returns the function from a name to Spark's ``TableIdentifier``."""
    return lru_cache(maxsize=64)(lambda name: jvm.catalyst.TableIdentifier(name.identifier, jvm.some(name.schema)))


def _qualified_names(jvm: Jvm) -> Callable[[TableName], Any]:
    """Returns the function from a name to the key of Spark's relation cache."""
    make = jvm.catalyst.QualifiedTableName
    return lru_cache(maxsize=64)(lambda name: make("spark_catalog", name.schema, name.identifier))


def _data_types(jvm: Jvm) -> Callable[[str], Any]:
    """Returns the function from JSON to ``DataType``. One operation asks for the same schema several times."""
    from_json = jvm.root.org.apache.spark.sql.types.DataType.fromJson

    @lru_cache(maxsize=64)
    def data_type(type_json: str) -> Any:
        return from_json(type_json)

    return data_type


def session_zone(spark: SparkSession) -> str:
    """Returns the session's time zone."""
    return str(spark.conf.get("spark.sql.session.timeZone"))


def check_table_name(name: TableName) -> None:
    """Checks, before a write, that the catalog accepts the name. It is also the name of the table's folder.

    Source: ``SessionCatalog.validateName``.

    Raises:
        ConfigError: The catalog does not accept the name.
    """
    if not _ALLOWED_NAME.fullmatch(name.identifier):
        raise ConfigError(
            [f"table name {name.identifier!r}: allowed are letters a to z, digits and '_'; give another name or alias"]
        )


def canonical(uri: str) -> str:
    """Returns a location in one spelling: Java writes the empty host of a local file only sometimes.

    >>> canonical("file:/warehouse/t")
    'file:///warehouse/t'
    """
    return "file:///" + uri.removeprefix("file:").lstrip("/") if uri.startswith("file:") else uri


def unescaped(uri: str) -> str:
    """Returns a file's location in one spelling: writers differ in what they escape in a URI.

    >>> unescaped("file:/warehouse/t/p=%C3%BC/1.parquet")
    'file:///warehouse/t/p=ü/1.parquet'
    """
    return unquote(canonical(uri))


def _is_already(definition: Definition, entry: Entry) -> bool:
    """Returns whether an entry says what the definition wants. The entry may have further properties."""
    return (
        (entry.kind, entry.provider, entry.location) == ("EXTERNAL", "parquet", canonical(definition.location))
        and json.loads(entry.schema_json) == json.loads(definition.schema_json)
        and entry.partition_by == tuple(definition.partition_by)
        and entry.comment == (definition.comment or None)
        and definition.properties.items() <= entry.properties.items()
    )


def _entry_facts(jvm: Jvm) -> Any:
    """Returns a ``java.util.function.Function`` from Spark's ``CatalogTable`` to the texts of its facts, joined."""
    option, text, iterable = "Lscala/Option;", "Ljava/lang/String;", "Lscala/collection/Iterable;"
    properties = "Lscala/collection/immutable/Map;"
    option_text = jvm.as_object(jvm.virtual("java.lang.Object", "toString", f"(){text}"), f"({option}){text}")
    members_text = jvm.fixed(jvm.virtual("scala.collection.Iterable", "mkString", f"({text}){text}"), 1, _BETWEEN)

    def fact(name: str, kind: str, *following: Any) -> Any:
        return jvm.then(jvm.virtual(_CATALOG_TABLE, name, f"(){kind}"), *following)

    def joined(kind: str) -> Any:
        return jvm.as_object(members_text, f"({kind}){text}")

    def of_properties(name: str) -> Any:
        part = jvm.virtual("scala.collection.Map", name, f"(){iterable}")
        return jvm.as_object(jvm.then(part, members_text), f"({properties}){text}")

    storage, table_type, schema = (
        f"{_CATALOG}CatalogStorageFormat",
        f"{_CATALOG}CatalogTableType",
        "org.apache.spark.sql.types.StructType",
    )
    facts = [
        fact("tableType", descriptor(table_type), jvm.virtual(table_type, "name", f"(){text}")),
        fact("provider", option, option_text),
        fact("storage", descriptor(storage), jvm.virtual(storage, "locationUri", f"(){option}"), option_text),
        fact("schema", descriptor(schema), jvm.virtual(schema, "json", f"(){text}")),
        fact("partitionColumnNames", jvm.seq_type, joined(jvm.seq_type)),
        fact("properties", properties, of_properties("keys")),
        fact("properties", properties, of_properties("values")),
        fact("comment", option, option_text),
        fact("viewText", option, option_text),
    ]
    as_list = jvm.static("java.util.Arrays", "asList", "([Ljava/lang/Object;)Ljava/util/List;").asFixedArity()
    join = jvm.static("java.lang.String", "join", f"(Ljava/lang/CharSequence;Ljava/lang/Iterable;){text}")
    joined_list = jvm.as_object(jvm.fixed(join, 0, _BETWEEN_FACTS), f"(Ljava/util/List;){text}")
    together = jvm.collecting(jvm.then(as_list, joined_list), len(facts), f"({text * len(facts)}){text}")
    return jvm.function(jvm.of_one_argument(together, facts, f"({descriptor(_CATALOG_TABLE)}){text}"))


def _option(text: str) -> str | None:
    """Returns the value of an ``Option`` from its text.

    >>> _option("Some(parquet)"), _option("None")
    ('parquet', None)
    """
    return text.removeprefix("Some(").removesuffix(")") if text.startswith("Some(") else None


@dataclass(frozen=True)
class ColumnFacts:
    """Exact facts about one column, in the text form of Spark's catalog. Unknown bounds are None."""

    minimum: str | None
    maximum: str | None
    null_count: int


class _StatisticsBuilder:
    """Builds ``CatalogStatistics`` inside the JVM, because Py4J would turn a Scala ``BigInt`` into a Python int."""

    def __init__(self, jvm: Jvm) -> None:
        self._jvm = jvm
        self._column_type = jvm.companion(_CATALOG + "CatalogColumnStat")
        self._none = jvm.none()
        self._version = getattr(self._column_type, "apply$default$8")()
        big = jvm.static("scala.math.BigInt", "apply", "(J)Lscala/math/BigInt;")
        some = jvm.static("scala.Option", "apply", "(Ljava/lang/Object;)Lscala/Option;")
        self._some_big = jvm.then(jvm.as_object(big, "(J)Ljava/lang/Object;"), some)
        make = jvm.constructor(
            _CATALOG + "CatalogStatistics", "(Lscala/math/BigInt;Lscala/Option;Lscala/collection/immutable/Map;)V"
        )
        self._make = jvm.with_filters(make, 0, [big])

    def table(self, size_bytes: int, row_count: int, columns: Mapping[str, ColumnFacts]) -> Any:
        """Returns the ``CatalogStatistics`` of a table."""
        native = self._jvm.root.java.util.HashMap()
        for name, facts in columns.items():
            native.put(name, self._column(facts))
        columns_map = self._jvm.root.PythonUtils.toScalaMap(native)
        return self._make.invokeWithArguments(self._jvm.list_of([size_bytes, self._count(row_count), columns_map]))

    def _column(self, facts: ColumnFacts) -> Any:
        some, none = self._jvm.some, self._none
        low = some(facts.minimum) if facts.minimum is not None else none
        high = some(facts.maximum) if facts.maximum is not None else none
        nulls = self._count(facts.null_count)
        return self._column_type.apply(none, low, high, nulls, none, none, none, self._version)

    def _count(self, value: int) -> Any:
        return self._some_big.invokeWithArguments(self._jvm.list_of([value]))
