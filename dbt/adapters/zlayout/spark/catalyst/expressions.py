"""Expressions with statistics of their own: their meaning in a session, and where a query's conditions have them.

Spark analyses and optimizes an expression on the table's columns, as it does with the conditions of a query. A part of
a condition is such an expression if Spark's canonical forms of both are equal; these hold time zone and ANSI mode.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from dbt.adapters.zlayout.index.statistics.tracked import canonical_type
from dbt.adapters.zlayout.predicate.expr import EXPRESSION, Column
from dbt.adapters.zlayout.pruning.statistics.validation import is_ordered
from dbt.adapters.zlayout.spark.catalyst.predictable import (
    CODE_OF_USERS,
    casts_to_the_current_time,
    hidden_inputs,
)
from dbt.adapters.zlayout.spark.catalyst.tree import Budget, Node, NotUnderstoodError, is_of_files, tree_of
from dbt.adapters.zlayout.spark.jvm.scala import Jvm, members
from dbt.adapters.zlayout.spark.jvm.session_settings import settings_of
from dbt.adapters.zlayout.spark.schema.types import raw_fields, schema_json_of, type_word, with_plain_texts

_LOG = logging.getLogger(__name__)
_CATALYST = "org.apache.spark.sql.catalyst.expressions."
_OF_USERS = "it calls a user-defined function, which may change"
_NOT_A_FUNCTION_OF_A_ROW = (
    (re.compile(CODE_OF_USERS), _OF_USERS),
    (re.compile(r".*Subquery.*|Exists|OuterReference"), "it has a subquery"),
    (re.compile("LambdaFunction"), "it has a lambda function, and Spark names the variables of each differently"),
    (
        re.compile(r"Current\w*|Now|LocalTimestamp|VariableReference|InputFile\w*"),
        "its value depends on the time or on the session",
    ),
    (re.compile("AesEncrypt"), "it encrypts values, with a different result each time"),
)
# Spark's canonical form sorts the operands of these. Rounding, overflow and -0.0 depend on their order.
_IN_ORDER = frozenset(("Add", "Multiply", "Greatest", "Least"))
# Parts of an object's text that are not its value: the number of a column in a plan, the address of an object.
_OF_ONE_PLAN = re.compile(r"#\d+L?|@[0-9a-f]+")
_LOCAL_TIME = re.compile(r"timestamp(?!_ntz)")


@dataclass(frozen=True)
class BoundExpression:
    """An expression on the columns of a table, in one session.

    Attributes:
        column: How predicates and statistics name it.
        sources: The top-level columns that it is computed from.
        kind: The Catalyst class at its root.
        form: The Catalyst expression, with the columns and the fields of structs as positions.
        commutes: Whether operands can have any order. Sums of floats or decimals depend on it, for example.
    """

    column: Column
    sources: tuple[str, ...]
    kind: str
    form: Any
    commutes: bool

    def is_form(self, form: Any) -> bool:
        """Returns whether another form, as `form` is, always has the value of this expression."""
        return bool(form.semanticEquals(self.form) if self.commutes else form.equals(self.form))


class ExpressionForms:
    """The expressions of one table, as a session understands them.

    Args:
        native: The session (Py4J object).
        schema_json: Spark's JSON of the columns that they can use.
    """

    def __init__(self, jvm: Jvm, native: Any, schema_json: str) -> None:
        self._jvm = jvm
        fields = raw_fields(schema_json)
        self._names = [str(each["name"]) for each in fields]
        self._types = {str(each["name"]): type_word(each["type"]) for each in fields}
        self._position_of_field = {path: len(fields) + number for number, path in enumerate(_field_paths(fields))}
        plain = schema_json_of([{**each, "nullable": True, "metadata": {}} for each in fields])
        schema = jvm.root.org.apache.spark.sql.types.DataType.fromJson(with_plain_texts(plain))
        context = jvm.root.org.apache.spark.api.java.JavaSparkContext.fromSparkContext(native.sparkContext())
        self._frame = native.createDataFrame(context.emptyRDD(), schema)
        self._settings = settings_of(jvm, native)
        output = members(self._frame.queryExecution().analyzed().output())
        self._output = {str(each.name()): each.withNullability(True) for each in output}

    def known(self, texts: Sequence[str]) -> tuple[BoundExpression, ...]:
        """Returns the expressions that this session understands."""
        return tuple(found for text in texts if (found := self._tried(text)) is not None)

    def _tried(self, text: str) -> BoundExpression | None:
        try:
            return self.of(text)
        except NotUnderstoodError as error:
            _LOG.debug("%s has no statistics in this session: %s", text, error)
            return None

    def of(self, text: str) -> BoundExpression:
        """Returns an expression.

        Raises:
            NotUnderstoodError: Spark does not understand it, or its value does not follow from the row alone.
        """
        analyzed, optimized = self._plans(text)
        named = analyzed.projectList().apply(0)
        written = tree_of(self._jvm, named, Budget())
        for pattern, why in _NOT_A_FUNCTION_OF_A_ROW:
            if any(pattern.fullmatch(each.kind) for each in written.nodes()):
                raise NotUnderstoodError(why)
        if not named.deterministic():
            raise NotUnderstoodError("it is not deterministic")
        kind = str(optimized.getClass().getSimpleName())
        if kind != "Project" or str(optimized.projectList().apply(0).getClass().getSimpleName()) != "Alias":
            raise NotUnderstoodError(
                "it is a column; columns have statistics by stats_columns, and stand in bloom and lookup without "
                "parentheses"
            )
        expression = optimized.projectList().apply(0).child()
        tree = tree_of(self._jvm, expression, Budget())
        sources = tuple(sorted(map(self._as_in_schema, tree.column_names())))
        if not sources:
            raise NotUnderstoodError("it is a constant")
        type_ = canonical_type(tree.type())
        if not is_ordered(type_):
            raise NotUnderstoodError(f"its type {expression.dataType().sql()} has no order that statistics keep")
        # Optimization hides the time zone of some functions, and how a constant was written.
        constants = any(_is_local_time(each) for each in (*written.nodes(), *tree.nodes()))
        zoned = constants or self._has_zoned_function(named) or self._has_zoned_function(expression)
        meaning = self._meaning(sources, _form_of(tree, str(expression)), zoned)
        column = Column((EXPRESSION, text, meaning), type_)
        commutes = not any(each.kind in _IN_ORDER for each in tree.nodes())
        return BoundExpression(column, sources, tree.kind, self.bound(tree), commutes)

    def _plans(self, text: str) -> tuple[Any, Any]:
        """Returns the plans, analyzed and optimized, of a query for an expression.

        Raises:
            NotUnderstoodError: Spark does not understand the expression, or it is no function of one row, or its value
                depends on more than the row and Spark does not say so.
        """
        # Functions of users without a schema are seen in the plan.
        if hidden := hidden_inputs([text], set):
            raise NotUnderstoodError(hidden[0])
        try:
            selected = self._frame.selectExpr(self._jvm.root.PythonUtils.toSeq(self._jvm.list_of([text])))
            execution = selected.queryExecution()
            analyzed, optimized = execution.analyzed(), execution.optimizedPlan()
        except (Py4JJavaError, PySparkException) as error:
            # PySpark has errors of its own for those of Spark that it knows.
            message = error.java_exception.getMessage() if isinstance(error, Py4JJavaError) else error
            raise NotUnderstoodError(str(message).strip().partition("\n")[0]) from error
        nodes = [str(each.getClass().getSimpleName()) for each in (analyzed, *members(analyzed.children()))]
        if nodes == ["Project", "Project"]:
            # Spark has put the body of a function that is written in SQL in place of the call.
            raise NotUnderstoodError(_OF_USERS)
        if nodes != ["Project", "LogicalRDD"] or analyzed.projectList().size() != 1:
            raise NotUnderstoodError(
                "it does not depend on one row alone: it is an aggregate, a window function or a generator"
            )
        if casts_to_the_current_time(self._jvm, analyzed):
            raise NotUnderstoodError("it casts a text such as 'today' to a date or timestamp")
        return analyzed, optimized

    def bound(self, node: Node) -> Any:
        """Returns an expression with columns and fields of structs as positions, whatever the query calls them.

        Raises:
            Py4JJavaError: It has an attribute that may be a field of `_metadata`.
            KeyError: It has a field that no column of the table has.
        """
        expression = self._with_positions_of_fields(node)
        used = {str(each.name()): each for each in members(expression.references().toSeq())}
        own = {
            self._as_in_schema(name): each.withNullability(True)
            for name, each in used.items()
            if not is_of_files(name, not each.qualifier().isEmpty())
        }
        ordered = [own.get(name, self._output[name]) for name in self._names]
        expressions = self._jvm.catalyst.expressions
        attributes = getattr(expressions, "package$AttributeSeq")(self._jvm.seq(ordered))
        return expressions.BindReferences.bindReference(expression, attributes, False)

    def _with_positions_of_fields(self, node: Node) -> Any:
        """Returns an expression with fields of structs as positions: a query reads structs without other fields."""
        if all(each.kind != "GetStructField" for each in node.nodes()):
            return node.jvm()
        if (path := node.path()) is not None:
            position = self._position_of_field[(self._as_in_schema(path[0]), *path[1:])]
            return self._jvm.catalyst.expressions.BoundReference(position, node.jvm().dataType(), True)
        children = [self._with_positions_of_fields(each) for each in node.children]
        return node.jvm().withNewChildren(self._jvm.seq(children))

    def _as_in_schema(self, name: str) -> str:
        """Returns the name of a column as the schema spells it. Spark keeps the spelling of the text."""
        return (
            name if name in self._types else next((each for each in self._names if each.lower() == name.lower()), name)
        )

    def _has_zoned_function(self, expression: Any) -> bool:
        """Returns whether the session's time zone may change what one of an expression's functions returns."""
        aware = self._jvm.type(f"{_CATALYST}TimeZoneAwareExpression")
        is_instance = self._jvm.virtual("java.lang.Class", "isInstance", "(Ljava/lang/Object;)Z").bindTo(aware)
        return bool(expression.find(self._jvm.function(is_instance, "scala.Function1")).isDefined())

    def _meaning(self, sources: Sequence[str], form: str, zoned: bool) -> str:
        """Returns what a value depends on in addition to the row and the text of the expression.

        That is Spark's release and settings, the types of columns, and what the text stands for.

        Args:
            form: What the text stands for.
            zoned: Whether the value depends on the session's time zone.
        """
        types = [f"{name} {self._types[name]}" for name in sources]
        return "; ".join([self._settings.mode(zoned), *types, *self._settings.others, form])


def _field_paths(fields: Sequence[Mapping[str, Any]], parent: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yields the names of all fields of structs, each after those of the structs around it."""
    for each in fields:
        path, kind = (*parent, str(each["name"])), each["type"]
        if parent:
            yield path
        if isinstance(kind, Mapping) and kind.get("type") == "struct":
            yield from _field_paths(kind["fields"], path)


def _is_local_time(node: Node) -> bool:
    """Returns whether a node is a timestamp constant: the session's time zone decides which instant its text is."""
    return node.is_literal and _LOCAL_TIME.search(str(node.raw["dataType"])) is not None


def _form_of(tree: Node, text: str) -> str:
    """Returns a digest of what Spark takes an expression for: its functions, columns and constants.

    The same text may stand for something else later, or in another session.

    Args:
        tree: The optimized expression.
        text: The same as Spark's text, which has times in the zone of the session.
    """
    constants = [
        (str(each.raw["dataType"]), _OF_ONE_PLAN.sub("", str(each.jvm().value())))
        for each in tree.nodes()
        if each.is_literal
    ]
    found = repr((_OF_ONE_PLAN.sub("", text), constants))
    return f"form {hashlib.sha256(found.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def session_of_thread(jvm: Jvm) -> Any:
    """Returns the session whose statement is being planned on the calling thread (Py4J object)."""
    return jvm.root.org.apache.spark.sql.SparkSession.active()


@dataclass(frozen=True)
class KnownExpressions:
    """Finds expressions with statistics in the conditions of a query.

    Attributes:
        forms: The table's expressions in this session.
        bound: Those that have statistics.
    """

    forms: ExpressionForms
    bound: tuple[BoundExpression, ...]

    @classmethod
    def of(cls, jvm: Jvm, native: Any, schema_json: str, texts: Sequence[str]) -> KnownExpressions:
        """Returns those of a table's expressions that a session (Py4J object) understands."""
        forms = ExpressionForms(jvm, native, schema_json)
        return cls(forms, forms.known(texts))

    def column(self, node: Node) -> Column | None:
        """Returns the column that stands for an expression; None if it has no statistics."""
        alike = [each for each in self.bound if each.kind == node.kind]
        if not alike:
            return None
        try:
            form = self.forms.bound(node)
            return next((each.column for each in alike if each.is_form(form)), None)
        except (Py4JError, KeyError, NotUnderstoodError):
            return None


def without_qualifiers(text: str, names: Sequence[str]) -> str:
    """Returns SQL of Spark with columns by their bare names.

    >>> without_qualifiers("length(spark_catalog.z.t.city)", ["city"])
    'length(city)'
    """
    for name in names:
        text = re.sub(rf"(?:(?:`[^`]+`|\w+)\.)+(?=`?{re.escape(name)}\b)", "", text)
    return text
