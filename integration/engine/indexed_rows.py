"""Rows with ids that only an index finds, and what explanations of queries for them say."""

ROWS = 4_000


def rows_of(spark, start=0, count=ROWS):
    """Rows with ids that look random: each file has them from end to end."""
    return spark.range(start, start + count).selectExpr(
        "sha2(cast(id as string), 256) as id", "id % 97 as n", "named_struct('k', id * 7919 % 1000003) as s"
    )


def id_of(spark, number):
    return spark.sql(f"select sha2('{number}', 256)").head()[0]


def stage(explanation, name):
    return next(each for each in explanation.stages if each.name == name)


def reads(table, condition):
    return table.explain(condition).kept_files
