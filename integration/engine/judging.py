"""What pruning makes of a whole filter, partition columns and others mixed, as Spark's optimizer leaves it."""

from contextlib import contextmanager
from unittest.mock import patch

from dbt.adapters.zlayout.predicate.expr import Constant
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog
from dbt.adapters.zlayout.spark.catalyst.predicates import to_predicate
from dbt.adapters.zlayout.spark.catalyst.values import ValueConditions
from dbt.adapters.zlayout.spark.jvm.scala import Jvm
from dbt.adapters.zlayout.spark.read.relations import installed


@contextmanager
def rules_alone():
    """Judges by rules alone. Otherwise Spark also evaluates conditions on files with few values."""
    with patch.object(ValueConditions, "of", lambda _, __, read, ___: read):
        yield


def judged_files(spark, name, condition):
    """Paths of a table's files and what is found of them; an optimizer that sees no row at all finds FALSE.

    Spark hands a file index only what partition columns or other columns decide alone; here the whole filter is judged.
    """
    plan = spark.table(name).where(condition)._jdf.queryExecution().optimizedPlan()
    kind = str(plan.getClass().getSimpleName())
    index = installed(Catalog(spark), Catalog(spark).name(name))
    if kind == "Filter":
        schema_json = spark.table(name)._jdf.schema().json()
        predicate = to_predicate(Jvm.of(spark), [plan.condition()], schema_json, len(index.opened.files))
    else:
        assert kind in ("LogicalRelation", "LocalRelation"), plan.toString()
        predicate = Constant(kind == "LogicalRelation")
    opened = index.opened
    report = opened.report(opened.scan(predicate), predicate)
    return opened.files.column("path").to_pylist(), report
