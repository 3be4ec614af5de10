"""How many predicates of tests/fixtures/pruning this adapter, Delta, Iceberg and Hudi can use to leave out files.

usage: python benchmarks/usable_predicates.py
A real session (local[2]) optimizes each predicate; for this adapter the index of the fixture's table is asked, for the
others the rules of anchor_shapes.py. The IS NOT NULL that Spark itself adds counts for nobody. Writes a line for each
predicate to tests/fixtures/pruning/usable.csv and prints the table of docs/comparison.md.
"""

from __future__ import annotations

import csv
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from anchor_shapes import COMPARISONS, delta, hudi, iceberg, is_column, top_conjuncts
from pyspark.sql import SparkSession

from dbt.adapters.zlayout.pruning.statistics.verdict import Verdict
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog
from dbt.adapters.zlayout.spark.catalyst.predicates import to_predicate
from dbt.adapters.zlayout.spark.catalyst.tree import Budget, Node, tree_of
from dbt.adapters.zlayout.spark.jvm.scala import Jvm
from dbt.adapters.zlayout.spark.read.relations import installed
from dbt.adapters.zlayout.table.ztable import ZTable

FOLDER = Path(__file__).parents[1] / "tests" / "fixtures" / "pruning"
sys.path.insert(0, str(Path(__file__).parents[1] / "integration" / "engine"))
WHO = ("ours", "delta", "iceberg", "hudi")
PARTITION = "file"
CONNECTIVE, RANGE = re.compile(r"\b(and|or)\b"), re.compile(r"between .*? and ")
KINDS = {
    "date_add, date_sub": "DateAdd DateSub",
    "trunc": "TruncDate",
    "date_trunc": "TruncTimestamp",
    "last_day": "LastDay",
    "cast": "Cast",
    "x + k, x - k, k - x, -x": "Add Subtract UnaryMinus",
    "x * k, x / k, div": "Multiply Divide IntegralDivide",
    "x % k, pmod": "Remainder Pmod",
    "abs": "Abs",
    "floor, ceil, round": "Floor Ceil RoundFloor RoundCeil Round BRound",
    "left, substring": "Substring Left Right",
    "lower, upper, ILIKE": "Lower Upper ILike",
    "coalesce, nvl, nullif, nanvl": "Coalesce NaNvl",
    "if, case": "If CaseWhen",
    "greatest, least": "Greatest Least",
    "isnan": "IsNaN",
    "year": "Year",
    "concat": "Concat",
    "date_format": "DateFormatClass",
    "datediff": "DateDiff",
    "other LIKE patterns, contains, endswith": "Like EndsWith Contains RLike",
    "months and intervals added": "AddMonths TimestampAddInterval TimeAdd TimestampAddYMInterval DateAddYMInterval "
    "DateAddInterval",
    "quarter, month, day, hour …": "Quarter Month DayOfMonth DayOfYear DayOfWeek WeekDay Hour Minute Second WeekOfYear "
    "HoursOfTime MinutesOfTime",
    "counts since 1970": "UnixTimestamp ToUnixTimestamp UnixSeconds UnixMillis UnixMicros UnixDate SecondsToTimestamp "
    "DateFromUnixDate FromUnixTime",
}
NAMES = {name: kind for kind, names in KINDS.items() for name in names.split()}
OTHERS = "other functions"


def main() -> None:
    """Runs the fixtures."""
    from judging import rules_alone
    from test_pruning_fixtures import Fixture

    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", tempfile.mkdtemp())
        .config("spark.sql.parquet.datetimeRebaseModeInRead", "CORRECTED")
        .config("spark.sql.ansi.enabled", "false")
        .config("spark.hadoop.javax.jdo.option.ConnectionURL", "jdbc:derby:memory:m;create=true")
        .enableHiveSupport()
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    spark.sql("create schema z")
    lines = []
    for path in sorted(FOLDER.glob("*.sql")):
        fixture, name = Fixture.read(path), f"z.{path.stem}"
        spark.conf.set("spark.sql.session.timeZone", fixture.settings.get("spark.sql.session.timeZone", "UTC"))
        ZTable.write(spark, name, spark.sql(fixture.query), zorder=[], partition_by=[PARTITION], stats_columns=50)
        with rules_alone():
            lines += [(path.stem, predicate, *judged(spark, name, predicate)) for predicate, _ in fixture.cases]
    with (FOLDER / "usable.csv").open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(("fixture", "predicate", "kind", *WHO))
        writer.writerows(lines)
    show(lines)
    spark.stop()


def judged(spark: SparkSession, name: str, predicate: str) -> tuple[str, ...]:
    """The kind of a predicate and, for each of `WHO`, 'yes', 'no' or 'wrong'."""
    plan = spark.table(name).where(predicate)._jdf.queryExecution().optimizedPlan()
    if str(plan.getClass().getSimpleName()) != "Filter":
        return ("answered by Spark's optimizer", "yes", "yes", "yes", "yes")
    every = top_conjuncts(tree_of(Jvm.of(spark), plan.condition(), Budget()))
    # Spark adds IS NOT NULL to every comparison; a predicate that is nothing else keeps it.
    parts = [each for each in every if each.kind != "IsNotNull"] or every
    whole = parts[0] if len(parts) == 1 else _conjunction(parts)
    return (
        kind_of(whole, predicate),
        _ours(spark, name, parts),
        *(_others(rule, parts) for rule in (delta, iceberg, hudi)),
    )


def _conjunction(parts: list[Node]) -> Node:
    node = Node({"class": "And"}, parts[0].tree, parts[0].position)
    node.children = parts
    return node


def _ours(spark: SparkSession, name: str, parts: list[Node]) -> str:
    opened = installed(Catalog(spark), Catalog(spark).name(name)).opened  # type: ignore[union-attr]
    schema_json = spark.table(name)._jdf.schema().json()
    for part in parts:
        if _columns(part) == {PARTITION}:
            return "yes"
        if _mixes_partitions(part) and part.kind == "Or" and not _each_side_by_partition(part):
            continue
        predicate = to_predicate(Jvm.of(spark), [part.jvm()], schema_json, len(opened.files))
        report = opened.report(opened.scan(predicate), predicate)
        decides = bool((report.verdict != Verdict.READ).any())
        if decides and any(each.usable for each in report.conjuncts):
            return "yes"
    return "no"


def _others(rule: Any, parts: list[Node]) -> str:
    """A conjunction is used if a part of it is, and wrongly if one part is used wrongly."""
    found = []
    for part in parts:
        mixed = _mixes_partitions(part) and part.kind == "Or"
        if _columns(part) == {PARTITION} and rule is not iceberg:
            found.append("yes")
        elif not mixed or rule is iceberg:
            found.append(rule(part))
        else:
            found.append("yes" if rule is hudi and _each_side_by_partition(part) else "no")
    return next((each for each in ("wrong", "yes") if each in found), "no")


def _columns(node: Node) -> set[str]:
    if node.kind.endswith("AttributeReference"):
        return {str(node.raw["name"])}
    return set().union(*map(_columns, node.children))


def _mixes_partitions(node: Node) -> bool:
    return PARTITION in _columns(node) and len(_columns(node)) > 1


def _each_side_by_partition(node: Node) -> bool:
    """Whether Spark can take a condition on partition columns out of an OR: each side has one."""
    if node.kind == "Or":
        return all(_each_side_by_partition(each) for each in node.children)
    return any(_columns(each) == {PARTITION} for each in top_conjuncts(node))


def kind_of(node: Node, predicate: str) -> str:
    """What the table of docs/comparison.md calls a predicate."""
    functions, columns = _functions(node), _columns(node)
    if PARTITION in columns:
        return "partition columns, alone or with others"
    if CONNECTIVE.search(RANGE.sub("", predicate)):
        return "AND, OR, one part of no use" if OTHERS in functions else "AND, OR, NOT of these"
    if len(columns) > 1 and set(functions) <= {"cast"}:
        return "two columns compared"
    if functions:
        likes = "other LIKE patterns, contains, endswith"
        return likes if likes in functions else functions[0]
    if "GetStructField" in str(node.jvm().toJSON()):
        return "fields of structs"
    return _plain_kind(node, columns)


def _plain_kind(node: Node, columns: set[str]) -> str:  # noqa: PLR0911 - one return a kind
    """The kind of a condition on a column by itself."""
    inner = node.children[0] if node.kind == "Not" else node
    if inner.kind == "Or":
        return "other LIKE patterns, contains, endswith"
    if inner.kind in ("IsNull", "IsNotNull"):
        return "IS NULL, IS NOT NULL" if is_column(inner.children[0]) else "(condition) IS NULL"
    if is_column(inner) or columns == {"bo"}:
        return "boolean column"
    negated = inner is not node
    if inner.kind in ("In", "InSet"):
        return "NOT IN" if negated else "IN"
    if inner.kind == "StartsWith":
        return "NOT LIKE 'x%'" if negated else "LIKE 'x%', startswith"
    if inner.kind == "EqualNullSafe":
        return "<=>, IS DISTINCT FROM"
    if columns == {"b"} and "binary" in node.jvm().toJSON():
        return "comparison of binary"
    return "<>" if negated else "= < <= > >=, BETWEEN"


def _functions(node: Node) -> list[str]:
    """Names of the functions of columns, the outermost first."""
    known = {"And", "Or", "Not", "IsNull", "IsNotNull", "In", "InSet", "StartsWith", "Literal", *COMPARISONS}
    if is_column(node):
        return []
    short = node.kind.rsplit(".", 1)[-1]
    here = [] if short in known else [NAMES.get(short, OTHERS)]
    return here + [each for child in node.children for each in _functions(child)]


def show(lines: list[tuple[str, ...]]) -> None:
    """Prints the table by kind."""
    kinds = Counter(line[2] for line in lines)
    print("| kind | predicates | dbt-zlayout | Delta | Iceberg | Hudi |\n|---|---|---|---|---|---|")
    for kind, count in kinds.most_common():
        print(
            "|",
            " | ".join([kind, str(count), *(cell([line for line in lines if line[2] == kind], who) for who in WHO)]),
            "|",
        )
    print("|", " | ".join(["**all**", str(len(lines)), *(cell(lines, who) for who in WHO)]), "|")


def cell(lines: list[tuple[str, ...]], who: str) -> str:
    """How many of some lines one of `WHO` uses, and how many of these wrongly."""
    values = Counter(line[3 + WHO.index(who)] for line in lines)
    return f"{values['yes'] + values['wrong']}" + (f" ({values['wrong']} wrongly)" if values["wrong"] else "")


if __name__ == "__main__":
    main()
