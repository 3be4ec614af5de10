"""A Spark with the jars of another table format, which the command line gives as settings; see `foreign_engine`."""

import json
import sys

import pyarrow as pa
from foreign_engine import answer_questions
from published_tables import as_arrow
from pyspark.sql import SparkSession


def _session(given):
    settings = {
        **given,
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
    }
    builder = SparkSession.builder.master("local[2]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


SPARK = _session(json.loads(sys.argv[1]))


def answer(query, files=False):
    """The rows of a query, or how many files its scans keep."""
    found = SPARK.sql(query)
    if files:
        return pa.table({"files": [len(found.inputFiles()) or _files_of_iceberg(found)]})
    return as_arrow(found)


def _files_of_iceberg(found):
    """What Iceberg's scans count themselves once they have run: Spark lists the files of its own sources only."""
    found.collect()
    leaves = found._jdf.queryExecution().executedPlan().collectLeaves()
    metrics = [leaves.apply(at).metrics().get("resultDataFiles") for at in range(leaves.size())]
    return sum(each.get().value() for each in metrics if each.isDefined())


answer_questions(answer)
