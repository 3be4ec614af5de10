"""Access to Scala in the JVM: collections, case classes and bulk transfers through Py4J, without Java code of our own.

A Py4J call costs about 0.1 ms, so work over many files must not take one call per file. Two tools of the JVM reduce it
to one call per list: ``Pattern.splitAsStream`` turns one long string into a stream, and ``MethodHandleProxies`` turns a
method, or a composition of methods, into the function that maps the stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from py4j.java_gateway import JavaPackage

from dbt.adapters.zlayout.lazy import cached_property

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Parameters of ``List.of``.
_MOST_LISTED_AT_ONCE = 10
_OBJECT_TO_OBJECT = "(Ljava/lang/Object;)Ljava/lang/Object;"


@contextmanager
def active_session(spark: SparkSession) -> Iterator[None]:
    """Makes a session the active one of this thread, whose settings the JVM uses while no query is being planned."""
    sessions: Any = Jvm.of(spark).root.org.apache.spark.sql.SparkSession
    before = sessions.getActiveSession()
    sessions.setActiveSession(spark._jsparkSession)
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


class _JavaNames:
    """Cache of packages and classes by name: each is looked up once.

    Py4J asks the JVM at every dot, and the JVM searches every jar on its path before it answers that
    ``org.apache.hadoop`` is not a class. This takes about 1 ms per dot: a sixth of the time of a small merge.

    Args:
        looked_up: Py4J's view of the JVM, or a package.
    """

    def __init__(self, looked_up: Any) -> None:
        self._looked_up = looked_up

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._looked_up, name)
        if isinstance(found, JavaPackage):
            found = _JavaNames(found)
        setattr(self, name, found)
        return found


class Jvm:
    """Access to the driver's JVM for one Spark application.

    Args:
        spark: Any session of the application that has its own JVM (not Spark Connect).
    """

    def __init__(self, spark: SparkSession) -> None:
        context: Any = spark.sparkContext
        self.gateway: Any = context._gateway
        self.root: Any = _JavaNames(context._jvm)
        self.lang: Any = self.root.java.lang
        self.catalyst: Any = self.root.org.apache.spark.sql.catalyst
        self.datasources: Any = self.root.org.apache.spark.sql.execution.datasources
        self.loader: Any = self.lang.Thread.currentThread().getContextClassLoader()
        self._handles: Any = self.lang.invoke.MethodHandles
        self._lookup: Any = self._handles.publicLookup()
        # Py4J also looks up class members at every use. These two are used all the time.
        self._to_seq: Any = self.root.PythonUtils.toSeq
        self._some: Any = self.root.scala.Option.apply
        self._none: Any = self.root.scala.Option.empty()
        self._list_of: Any = self.root.java.util.List.of
        self._no_entries: Any = self.root.PythonUtils.toScalaMap(self.root.java.util.HashMap())
        self._newline: Any = self.root.java.util.regex.Pattern.compile("\n")
        self._made: dict[tuple[str, ...], Any] = {}

    @classmethod
    def of(cls, spark: SparkSession) -> Jvm:
        """Returns the instance of a session's application. It is cached: a new one costs about ten milliseconds."""
        context = spark.sparkContext
        if context not in _KNOWN:
            _KNOWN[context] = cls(spark)
        return _KNOWN[context]

    def once(self, make: Callable[..., Any], *arguments: str) -> Any:
        """Returns what a function or class makes of this JVM. It is called once for the same arguments."""
        return self._cached(lambda: make(self, *arguments), make.__module__, make.__qualname__, *arguments)

    def type(self, name: str) -> Any:
        """Returns the ``java.lang.Class`` with a fully qualified name."""
        return self._cached(lambda: self.lang.Class.forName(name, True, self.loader), "type", name)

    def companion(self, type_name: str) -> Any:
        """Returns the Scala companion object of a class or trait."""
        # Cached because every attribute is a call.
        names = [*f"{type_name}$".split("."), "MODULE$"]
        return self._cached(lambda: reduce(getattr, names, self.root), "companion", type_name)

    def case_class(self, type_name: str, required: Sequence[Any], **later: Any) -> Any:
        """Creates a case class instance: first parameters by position, others as ``p<number>`` (from 1) or defaults."""
        companion, arguments = self.companion(type_name), list(required)
        count = self._cached(
            lambda: int(self.type(type_name).getConstructors()[0].getParameterCount()), "parameter_count", type_name
        )
        for number in range(len(required) + 1, count + 1):
            key = f"p{number}"
            arguments.append(later[key] if key in later else getattr(companion, f"apply$default${number}")())
        return companion.apply(*arguments)

    def copied(self, type_name: str, value: Any, position: int, replacement: Any) -> Any:
        """Returns a copy of a case class instance with one parameter replaced, given by its position from 1."""
        copy = self._cached(lambda: self._copier(type_name, position), "copier", type_name, str(position))
        return copy.apply(value, replacement)

    def _copier(self, type_name: str, position: int) -> Any:
        """Returns a ``BiFunction`` of the instance and the replacement. ``copy`` takes a call for each parameter."""
        kind = self.type(type_name)
        types = kind.getConstructors()[0].getParameterTypes()
        none = self.gateway.new_array(self.lang.Class, 0)
        kept = [
            None if number == position else self._lookup.unreflect(kind.getMethod(f"copy$default${number}", none))
            for number in range(1, len(types) + 1)
        ]
        copy = self.with_filters(self._lookup.unreflect(kind.getMethod("copy", types)), 1, kept)
        signature = f"({descriptor(type_name)}{descriptor(types[position - 1].getName())}){descriptor(type_name)}"
        positions = [int(number == position) for number in range(len(types) + 1)]
        of_both = "(Ljava/lang/Object;Ljava/lang/Object;)Ljava/lang/Object;"
        return self.function(self.reordered(copy, positions, signature), "java.util.function.BiFunction", of_both)

    def seq(self, items: Sequence[Any]) -> Any:
        """Returns a Scala immutable ``Seq`` of the items."""
        return self.seq_of(self.list_of(items))

    def list_of(self, items: Sequence[Any]) -> Any:
        """Returns a ``java.util.List`` of the items, not to be changed and without nulls."""
        if len(items) <= _MOST_LISTED_AT_ONCE:
            return self._list_of(*items)
        result = self.root.java.util.ArrayList(len(items))
        for item in items:
            result.add(item)
        return result

    def seq_of(self, java_list: Any) -> Any:
        """Returns a Scala immutable ``Seq`` for a ``java.util.List``."""
        return self._to_seq(java_list).toList()

    def java_list(self, seq: Any) -> Any:
        """Returns a ``java.util.List`` for a Scala ``Seq``."""
        return self.root.scala.collection.JavaConverters.seqAsJavaList(seq)

    def scala_map(self, items: dict[str, str]) -> Any:
        """Returns a Scala immutable ``Map[String, String]``."""
        if not items:
            return self._no_entries
        result = self.root.java.util.HashMap()
        for key, value in items.items():
            result.put(key, value)
        return self.root.PythonUtils.toScalaMap(result)

    def some(self, value: Any) -> Any:
        """Returns ``Some(value)``."""
        return self._some(value)

    def none(self) -> Any:
        """Returns Scala's ``None``."""
        return self._none

    def objects(self, *items: Any) -> Any:
        """Returns an ``Object[]`` of the items."""
        array = self.gateway.new_array(self.lang.Object, len(items))
        for position, item in enumerate(items):
            array[position] = item
        return array

    def constructor(self, type_name: str, signature: str) -> Any:
        """Returns the method handle of a constructor; ``signature`` is a JVM method descriptor that ends in ``V``."""
        return self._cached(
            lambda: self._lookup.findConstructor(self.type(type_name), self._method_type(signature)),
            *("constructor", type_name, signature),
        )

    def static(self, type_name: str, name: str, signature: str) -> Any:
        """Returns the method handle of a static method."""
        return self._cached(
            lambda: self._lookup.findStatic(self.type(type_name), name, self._method_type(signature)),
            *("static", type_name, name, signature),
        )

    def virtual(self, type_name: str, name: str, signature: str) -> Any:
        """Returns the method handle of an instance method; its first argument is the receiver."""
        return self._cached(
            lambda: self._lookup.findVirtual(self.type(type_name), name, self._method_type(signature)),
            *("virtual", type_name, name, signature),
        )

    def fixed(self, handle: Any, position: int, *values: Any) -> Any:
        """Returns the handle with arguments from ``position`` on bound to values."""
        return self._handles.insertArguments(handle, position, self.objects(*values))

    def then(self, first: Any, *following: Any) -> Any:
        """Returns a handle that calls the handles one after the other, each on the result of the one before."""
        for handle in following:
            first = self._handles.filterReturnValue(first, handle)
        return first

    def with_filters(self, handle: Any, position: int, filters: Sequence[Any]) -> Any:
        """Returns the handle with each parameter from ``position`` on passed through a filter first."""
        array = self.gateway.new_array(self.lang.invoke.MethodHandle, len(filters))
        for index, each in enumerate(filters):
            array[index] = each
        return self._handles.filterArguments(handle, position, array)

    def with_result(self, handle: Any, position: int, inner: Any) -> Any:
        """Returns the handle with its parameter at ``position`` computed by another handle from its own parameters."""
        return self._handles.collectArguments(handle, position, inner)

    def as_object(self, handle: Any, signature: str) -> Any:
        """Returns the handle with another, compatible signature."""
        return handle.asType(self._method_type(signature))

    def of_one_argument(self, handle: Any, filters: Sequence[Any], signature: str) -> Any:
        """Returns a handle of one argument: each filter turns this argument into one parameter of the handle."""
        return self.reordered(self.with_filters(handle, 0, filters), [0] * len(filters), signature)

    def reordered(self, handle: Any, positions: Sequence[int], signature: str) -> Any:
        """Returns a handle with other parameters; ``positions`` says which of them each old parameter is."""
        array = self.gateway.new_array(self.root.int, len(positions))
        for index, position in enumerate(positions):
            array[index] = position
        return self._handles.permuteArguments(handle, self._method_type(signature), array)

    def function(self, handle: Any, interface: str = "java.util.function.Function", signature: str = "") -> Any:
        """Returns the handle as an instance of a functional interface."""
        generic = handle.asType(self._method_type(signature or _OBJECT_TO_OBJECT))
        return self.lang.invoke.MethodHandleProxies.asInterfaceInstance(self.type(interface), generic)

    def collecting(self, handle: Any, count: int, signature: str) -> Any:
        """Returns a handle of ``count`` arguments for a handle that takes an ``Object[]``."""
        objects = self.gateway.new_array(self.lang.Object, 0).getClass()
        return self.as_object(handle.asCollector(objects, count), signature)

    def any_constructor(self, type_name: str) -> Any:
        """Returns the handle of a type's only constructor. Use it if the signature depends on the Scala version."""
        return self._cached(
            lambda: self._lookup.unreflectConstructor(self.type(type_name).getConstructors()[0]),
            *("any_constructor", type_name),
        )

    def to_seq(self) -> tuple[Any, ...]:
        """Returns the method handles that, one after the other, turn a ``java.util.List`` into an immutable ``Seq``."""
        wrap = self.static("org.apache.spark.api.python.PythonUtils", "toSeq", f"(Ljava/util/List;){self.seq_type}")
        to_list = self.virtual("scala.collection.Seq", "toList", "()Lscala/collection/immutable/List;")
        return self.as_object(wrap, "(Ljava/util/List;)Lscala/collection/Seq;"), to_list

    def lines(self, items: pa.Array) -> Any:
        """Returns a ``Stream<String>`` of at least one string, transferred in one call. No string has a line break."""
        whole = pc.binary_join(pa.ListArray.from_arrays([0, len(items)], items), "\n")[0].as_py()
        return self._newline.splitAsStream(whole)

    def pick(self, items: Any, mask: npt.NDArray[np.bool_]) -> Any:
        """Returns, in order, the elements of a ``java.util.List`` where the mask is True."""
        bit_set = self.root.java.util.BitSet.valueOf(bytearray(np.packbits(mask, bitorder="little").tobytes()))
        getter = self.virtual("java.util.List", "get", "(I)Ljava/lang/Object;").bindTo(items)
        mapper = self.function(getter, "java.util.function.IntFunction", "(I)Ljava/lang/Object;")
        return bit_set.stream().mapToObj(mapper).toList()

    @cached_property
    def seq_type(self) -> str:
        """Type descriptor of ``Seq`` in this Spark's Scala: the general one in 2.12, the immutable one since 2.13."""
        version = str(self.root.scala.util.Properties.versionNumberString())
        return "Lscala/collection/Seq;" if version.startswith("2.12.") else "Lscala/collection/immutable/Seq;"

    def _method_type(self, signature: str) -> Any:
        return self._cached(
            lambda: self.lang.invoke.MethodType.fromMethodDescriptorString(signature, self.loader),
            *("method_type", signature),
        )

    def _cached(self, make: Callable[[], Any], *key: str) -> Any:
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]


def descriptor(type_name: str) -> str:
    """Returns how the JVM writes a class in signatures.

    >>> descriptor("java.lang.String")
    'Ljava/lang/String;'
    """
    return f"L{type_name.replace('.', '/')};"


_KNOWN: WeakKeyDictionary[Any, Jvm] = WeakKeyDictionary()


def members(seq: Any) -> Iterator[Any]:
    """Yields the members of a Scala ``Seq``, or the fields of a ``StructType`` (Py4J objects)."""
    return (seq.apply(position) for position in range(seq.size()))
