"""The cuts in SQL send every row where the cuts in Python send it, for keys of every type."""

import pyarrow as pa
import pytest
from test_write_and_read import ALL_TYPES, KEYS

from dbt.adapters.zlayout.curve.model import CurveModel
from dbt.adapters.zlayout.spark.rewrite.spark_rows import numbers_sql
from dbt.adapters.zlayout.spark.rewrite.stage import RESULT_SCHEMA, StageTask
from dbt.adapters.zlayout.spark.schema.arrow_columns import table_of
from dbt.adapters.zlayout.spark.schema.types import arrow_schema


@pytest.fixture(scope="module")
def frame(spark):
    return spark.sql(ALL_TYPES.format(rows=3000)).cache()


@pytest.mark.parametrize("key", KEYS)
def test_leaves_in_sql_are_leaves_in_python(spark, frame, key, tmp_path):
    rows = frame.selectExpr(f"`{key}` c0")
    schema = arrow_schema(rows.schema.json())
    stage = StageTask(schema, str(tmp_path), "s", (("c0",),), (), 10_000, None, 0, keeps_rows=False)
    answers = rows.mapInArrow(stage.__call__, RESULT_SCHEMA).collect()
    sample = pa.concat_tables([table_of(bytes(each.sample)) for each in answers if each.sample])
    model = CurveModel.build(
        sample, [("c0",)], "zorder", total_rows=3000, bytes_per_row=1, target_file_bytes=100, row_group_rows=25
    )
    expected = sorted(model.place([sample.column(0)]).leaf.tolist())
    import numpy as np

    sql = numbers_sql(model, model.tree, ["`c0`"], [schema.field(0).type], np.arange(model.tree.leaf_count))
    found = sorted(row[0] for row in rows.selectExpr(f"{sql} n").collect())
    assert found == expected
