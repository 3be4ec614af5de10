"""Contracts and constraints."""

from collections.abc import Iterator

import pytest
from dbt.tests.adapter.constraints.test_constraints import (
    BaseConstraintQuotedColumn,
    BaseConstraintsRollback,
    BaseConstraintsRuntimeDdlEnforcement,
    BaseIncrementalConstraintsColumnsEqual,
    BaseIncrementalConstraintsRollback,
    BaseIncrementalConstraintsRuntimeDdlEnforcement,
    BaseIncrementalContractSqlHeader,
    BaseIncrementalForeignKeyConstraint,
    BaseModelConstraintsRuntimeEnforcement,
    BaseTableConstraintsColumnsEqual,
    BaseTableContractSqlHeader,
    BaseViewConstraintsColumnsEqual,
)
from pyspark.sql import SparkSession

# Spark has no type text.
_TEXT = {"data_type: text": "data_type: string"}
# It quotes with backquotes.
_TEXT_AND_QUOTES = {**_TEXT, """("from" = 'blue')""": "(`from` = 'blue')", "'\"from\"'": "'`from`'"}
_TEXT_AND_TIME_ZONE = {
    **_TEXT,
    "set session time zone 'Asia/Kolkata'": "set time zone 'Asia/Kolkata'",
    "current_setting('timezone')": "current_timezone()",
}

# A table has no DDL of its own that could name constraints; the query is brought into the contract's order, and what can be
# enforced, not_null, is checked before the commit.
_QUERY_UNDER_CONTRACT = """
select id, color, date_day
from (
    -- depends_on: <foreign_key_model_identifier>
    select
        'blue' as color,
        1 as id,
        '2019-01-01' as date_day
) as model_subq
"""


class _SparkTypes:
    """Spark's names of types."""

    in_spark = _TEXT

    @pytest.fixture
    def string_type(self) -> str:
        return "string"

    @pytest.fixture
    def int_type(self) -> str:
        return "int"

    @pytest.fixture
    def data_types(self) -> list[list[str]]:
        # sql_column_value, schema_data_type, error_data_type
        return [
            ["1", "int", "int"],
            ["'1'", "string", "string"],
            ["true", "boolean", "boolean"],
            ["array('1', '2', '3')", "array<string>", "array"],
            ["array(1, 2, 3)", "array<int>", "array"],
            ["cast('2019-01-01' as date)", "date", "date"],
            ["cast('2019-01-01' as timestamp)", "timestamp", "timestamp"],
            ["cast(1.0 as decimal(4, 2))", "decimal(4, 2)", "decimal(4,2)"],
        ]


class _UnderContract:
    """The query in Spark's words."""

    in_spark = _TEXT

    @pytest.fixture(scope="class")
    def expected_sql(self) -> str:
        return _QUERY_UNDER_CONTRACT


class _NotNull:
    """This adapter's message about a null."""

    in_spark = _TEXT

    @pytest.fixture(scope="class")
    def expected_error_messages(self) -> list[str]:
        return ["not_null", "id"]


@pytest.mark.slow
class TestTableConstraintsColumnsEqual(_SparkTypes, BaseTableConstraintsColumnsEqual):
    pass


@pytest.mark.exhaustive
class TestViewConstraintsColumnsEqual(_SparkTypes, BaseViewConstraintsColumnsEqual):
    pass


@pytest.mark.exhaustive
class TestIncrementalConstraintsColumnsEqual(_SparkTypes, BaseIncrementalConstraintsColumnsEqual):
    pass


class TestConstraintsRuntimeDdlEnforcement(_UnderContract, BaseConstraintsRuntimeDdlEnforcement):
    pass


@pytest.mark.exhaustive
class TestIncrementalConstraintsRuntimeDdlEnforcement(_UnderContract, BaseIncrementalConstraintsRuntimeDdlEnforcement):
    pass


@pytest.mark.exhaustive
class TestModelConstraintsRuntimeEnforcement(_UnderContract, BaseModelConstraintsRuntimeEnforcement):
    pass


@pytest.mark.exhaustive
class TestConstraintQuotedColumn(BaseConstraintQuotedColumn):
    in_spark = _TEXT_AND_QUOTES

    @pytest.fixture(scope="class")
    def expected_sql(self) -> str:
        # As for the others.
        return """
        select id, `from`, date_day
        from (
            select 'blue' as `from`, 1 as id, '2019-01-01' as date_day
        ) as model_subq
        """


class TestConstraintsRollback(_NotNull, BaseConstraintsRollback):
    pass


@pytest.mark.exhaustive
class TestIncrementalConstraintsRollback(_NotNull, BaseIncrementalConstraintsRollback):
    pass


class _TimeZone:
    """Spark's statement and function for the time zone, which the session has back afterwards."""

    in_spark = _TEXT_AND_TIME_ZONE

    @pytest.fixture(scope="class", autouse=True)
    def _utc_again(self) -> Iterator[None]:
        yield
        SparkSession.builder.getOrCreate().conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.exhaustive
class TestTableContractSqlHeader(_TimeZone, BaseTableContractSqlHeader):
    pass


@pytest.mark.exhaustive
class TestIncrementalContractSqlHeader(_TimeZone, BaseIncrementalContractSqlHeader):
    pass


@pytest.mark.exhaustive
class TestIncrementalForeignKeyConstraint(BaseIncrementalForeignKeyConstraint):
    pass
