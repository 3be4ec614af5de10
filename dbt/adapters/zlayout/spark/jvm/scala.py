"""The seam to the JVM: Scala collections, case classes and bulk transfers through Py4J, without any Java code of ours.

A Py4J call costs about 0.1 ms, so work over many files must not be a call a file. Two tools of the JVM make it one
call a
list: ``Pattern.splitAsStream`` turns one long string into a stream, and ``MethodHandleProxies`` turns a method, or a
composition of methods, into the function that maps it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.compute as pc
from py4j.java_gateway import JavaPackage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OBJECT_TO_OBJECT = "(Ljava/lang/Object;)Ljava/lang/Object;"


class JavaNames:
    """Packages and classes by name, each looked up once.

    Py4J asks the JVM at every dot, and the JVM goes through every jar on its path before it says that
    ``org.apache.hadoop`` is no class: about 1 ms a dot, a sixth of the time of a small merge.

    Args:
        looked_up: Py4J's view of the JVM, or a package.
    """

    def __init__(self, looked_up: Any) -> None:
        self._looked_up = looked_up

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._looked_up, name)
        if isinstance(found, JavaPackage):
            found = JavaNames(found)
        setattr(self, name, found)
        return found


class Jvm:
    """Access to the driver's JVM for one Spark application.

    Args:
        spark: Any session of the application that has a JVM at hand (not Spark Connect).
    """

    def __init__(self, spark: SparkSession) -> None:
        context: Any = spark.sparkContext
        self.gateway: Any = context._gateway
        self.root: Any = JavaNames(context._jvm)
        self.lang: Any = self.root.java.lang
        self.catalyst: Any = self.root.org.apache.spark.sql.catalyst
        self.datasources: Any = self.root.org.apache.spark.sql.execution.datasources
        self.loader: Any = self.lang.Thread.currentThread().getContextClassLoader()
        self._handles: Any = self.lang.invoke.MethodHandles
        self._lookup: Any = self._handles.publicLookup()
        # A member of a class is asked for at every use, too; these are in use all the time.
        self._to_seq: Any = self.root.PythonUtils.toSeq
        self._some: Any = self.root.scala.Option.apply
        self._companions: dict[str, Any] = {}
        self._parameter_counts: dict[str, int] = {}

    @classmethod
    def of(cls, spark: SparkSession) -> Jvm:
        """The one of a session's application: looking the packages up anew costs some ten milliseconds."""
        context = spark.sparkContext
        if context not in _KNOWN:
            _KNOWN[context] = cls(spark)
        return _KNOWN[context]

    def type(self, name: str) -> Any:
        """``java.lang.Class`` of a fully qualified name."""
        return self.lang.Class.forName(name, True, self.loader)

    def companion(self, type_name: str) -> Any:
        """The Scala companion object of a class or trait."""
        if type_name not in self._companions:
            # Each default below is a call: what does not change is asked for once.
            companion = reduce(getattr, f"{type_name}$".split("."), self.root)
            self._companions[type_name] = getattr(companion, "MODULE$")
        return self._companions[type_name]

    def case_class(self, type_name: str, required: Sequence[Any], **later: Any) -> Any:
        """A new case class: first parameters by position, others as ``p<number>`` (from 1), the rest by default."""
        companion = self.companion(type_name)
        if type_name not in self._parameter_counts:
            self._parameter_counts[type_name] = self.type(type_name).getConstructors()[0].getParameterCount()
        arguments = list(required)
        for number in range(len(required) + 1, self._parameter_counts[type_name] + 1):
            key = f"p{number}"
            arguments.append(later[key] if key in later else getattr(companion, f"apply$default${number}")())
        return companion.apply(*arguments)

    def copied(self, value: Any, **changes: Any) -> Any:
        """A copy of a case class with parameters replaced, each given as ``p<number>`` (from 1)."""
        arguments = [
            changes[f"p{number}"] if f"p{number}" in changes else getattr(value, f"copy$default${number}")()
            for number in range(1, value.productArity() + 1)
        ]
        return value.copy(*arguments)

    def seq(self, items: Sequence[Any]) -> Any:
        """A Scala immutable ``Seq`` of the items."""
        return self.seq_of(self.array_list(items))

    def array_list(self, items: Sequence[Any]) -> Any:
        """A ``java.util.ArrayList`` of the items."""
        result = self.root.java.util.ArrayList(len(items))
        for item in items:
            result.add(item)
        return result

    def seq_of(self, java_list: Any) -> Any:
        """A Scala immutable ``Seq`` of a ``java.util.List``."""
        return self._to_seq(java_list).toList()

    def java_list(self, seq: Any) -> Any:
        """A ``java.util.List`` of a Scala ``Seq``."""
        return self.root.scala.collection.JavaConverters.seqAsJavaList(seq)

    def scala_map(self, items: dict[str, str]) -> Any:
        """A Scala immutable ``Map[String, String]``."""
        result = self.root.java.util.HashMap()
        for key, value in items.items():
            result.put(key, value)
        return self.root.PythonUtils.toScalaMap(result)

    def some(self, value: Any) -> Any:
        """``Some(value)``."""
        return self._some(value)

    def none(self) -> Any:
        """``None`` of Scala."""
        return self.root.scala.Option.empty()

    def objects(self, *items: Any) -> Any:
        """An ``Object[]`` of the items."""
        array = self.gateway.new_array(self.lang.Object, len(items))
        for position, item in enumerate(items):
            array[position] = item
        return array

    def constructor(self, type_name: str, signature: str) -> Any:
        """Method handle of a constructor; ``signature`` is a JVM method descriptor that ends in ``V``."""
        return self._lookup.findConstructor(self.type(type_name), self._method_type(signature))

    def static(self, type_name: str, name: str, signature: str) -> Any:
        """Method handle of a static method."""
        return self._lookup.findStatic(self.type(type_name), name, self._method_type(signature))

    def virtual(self, type_name: str, name: str, signature: str) -> Any:
        """Method handle of an instance method; its first argument is the receiver."""
        return self._lookup.findVirtual(self.type(type_name), name, self._method_type(signature))

    def fixed(self, handle: Any, position: int, *values: Any) -> Any:
        """The handle with arguments from ``position`` on bound to values."""
        return self._handles.insertArguments(handle, position, self.objects(*values))

    def then(self, first: Any, *following: Any) -> Any:
        """The handles one after the other."""
        for handle in following:
            first = self._handles.filterReturnValue(first, handle)
        return first

    def with_filters(self, handle: Any, position: int, filters: Sequence[Any]) -> Any:
        """The handle with each parameter from ``position`` on passed through a filter first."""
        array = self.gateway.new_array(self.lang.invoke.MethodHandle, len(filters))
        for index, each in enumerate(filters):
            array[index] = each
        return self._handles.filterArguments(handle, position, array)

    def as_object(self, handle: Any, signature: str) -> Any:
        """The handle under another, compatible signature."""
        return handle.asType(self._method_type(signature))

    def of_one_argument(self, handle: Any, filters: Sequence[Any], signature: str) -> Any:
        """A handle of one argument that passes it through each filter to the handle's parameters."""
        positions = self.gateway.new_array(self.root.int, len(filters))
        for position in range(len(filters)):
            positions[position] = 0
        return self._handles.permuteArguments(
            self.with_filters(handle, 0, filters), self._method_type(signature), positions
        )

    def function(self, handle: Any, interface: str = "java.util.function.Function", signature: str = "") -> Any:
        """The handle as a functional interface."""
        generic = handle.asType(self._method_type(signature or _OBJECT_TO_OBJECT))
        return self.lang.invoke.MethodHandleProxies.asInterfaceInstance(self.type(interface), generic)

    def collecting(self, handle: Any, count: int, signature: str) -> Any:
        """A handle of an ``Object[]`` as one of so many arguments."""
        objects = self.gateway.new_array(self.lang.Object, 0).getClass()
        return self.as_object(handle.asCollector(objects, count), signature)

    def any_constructor(self, type_name: str) -> Any:
        """Method handle of a type's one constructor, whose signature differs between versions of Scala."""
        return self._lookup.unreflectConstructor(self.type(type_name).getConstructors()[0])

    def to_seq(self) -> tuple[Any, ...]:
        """Method handles that make a Scala immutable ``Seq`` of a ``java.util.List``, one after the other."""
        wrap = self.static("org.apache.spark.api.python.PythonUtils", "toSeq", f"(Ljava/util/List;){self.seq_type}")
        to_list = self.virtual("scala.collection.Seq", "toList", "()Lscala/collection/immutable/List;")
        return self.as_object(wrap, "(Ljava/util/List;)Lscala/collection/Seq;"), to_list

    def lines(self, items: pa.Array) -> Any:
        """A ``Stream<String>`` of strings that hold no line break, at least one, moved in one call."""
        whole = pc.binary_join(pa.ListArray.from_arrays([0, len(items)], items), "\n")[0].as_py()
        return self.root.java.util.regex.Pattern.compile("\n").splitAsStream(whole)

    def pick(self, items: Any, bits: bytes) -> Any:
        """The elements of a ``java.util.List`` at the set bits (least significant first), as a list, in order."""
        bit_set = self.root.java.util.BitSet.valueOf(bytearray(bits))
        getter = self.virtual("java.util.List", "get", "(I)Ljava/lang/Object;").bindTo(items)
        mapper = self.function(getter, "java.util.function.IntFunction", "(I)Ljava/lang/Object;")
        return bit_set.stream().mapToObj(mapper).toList()

    @cached_property
    def seq_type(self) -> str:
        """Descriptor of what ``Seq`` means to this Spark's Scala: any in 2.12, the immutable one since 2.13."""
        return (
            "Lscala/collection/Seq;"
            if ".".join(self._scala_version[:2]) == "2.12"
            else "Lscala/collection/immutable/Seq;"
        )

    @property
    def _scala_version(self) -> list[str]:
        return str(self.root.scala.util.Properties.versionNumberString()).split(".")

    def _method_type(self, signature: str) -> Any:
        return self.lang.invoke.MethodType.fromMethodDescriptorString(signature, self.loader)


_KNOWN: WeakKeyDictionary[Any, Jvm] = WeakKeyDictionary()


def members(seq: Any) -> Iterator[Any]:
    """The members of a Scala ``Seq``, or the fields of a ``StructType`` (Py4J objects)."""
    return (seq.apply(position) for position in range(seq.size()))
