"""Rows with ids that only an index finds, and what explanations of queries for them say."""

from dbt.adapters.zlayout.table.ztable import ZTable

ROWS = 4_000
MIXED = """
  select id, id % 97 as n, date_add(date'2024-01-01', int(id % 11)) as day,
    case when id % 50 = 0 then null when id = 1 then '' when id = 2 then 'É@X' when id = 3 then 'ẞİ@X'
      when id % 2 = 0 then upper(sha2(string(id), 224)) else sha2(string(id), 224) end as email,
    if(id % 3 = 0, -0.0D, cast(id * 7919 as double)) as d, timestamp_seconds(id * 100003) as ts
  from range(BEGIN, END)
"""


def rows_of(spark, start=0, count=ROWS):
    """Rows with ids that look random: each file has them from end to end."""
    return spark.range(start, start + count).selectExpr(
        "sha2(cast(id as string), 256) as id", "id % 97 as n", "named_struct('k', id * 7919 % 1000003) as s"
    )


def id_of(spark, number):
    return spark.sql(f"select sha2('{number}', 256)").head()[0]


def mixed(spark, begin, end):
    return spark.sql(MIXED.replace("BEGIN", str(begin)).replace("END", str(end)))


def lowered(spark, number):
    return spark.sql(f"select sha2('{number}', 224)").head()[0]


def stage(explanation, name):
    return next(each for each in explanation.stages if each.name == name)


def reads(table, condition):
    return table.explain(condition).kept_files


def without_a_slice(spark, table, partition, condition):
    """Loses the one slice of an index partition, in parts and whole: all files are read, and the one row is found."""
    total = len(table.snapshot().files)
    (path,) = table.snapshot().index[partition]
    local = table._opened.store.local_path(path)
    content = local.read_bytes()
    for damage in (content[:-3], b"", None):
        local.unlink()
        if damage is not None:
            local.write_bytes(damage)
        explanation = ZTable.for_name(spark, table.name).explain(condition)
        assert explanation.kept_files == total
        assert explanation.problems
        assert spark.table(table.name).where(condition).count() == 1
    return ZTable.for_name(spark, table.name)
