"""What a column says of its type."""

from dbt.tests.adapter.column_types.test_column_types import BasePostgresColumnTypes

# Spark's names of the types.
_TYPES = {"::double precision": "::double", "::text": "::string"}


class TestColumnTypes(BasePostgresColumnTypes):
    in_spark = _TYPES
