"""dbt's unit tests."""

import pytest
from dbt.tests.adapter.unit_testing.test_case_insensitivity import BaseUnitTestCaseInsensivity
from dbt.tests.adapter.unit_testing.test_invalid_input import BaseUnitTestInvalidInput
from dbt.tests.adapter.unit_testing.test_quoted_reserved_word_column_names import (
    BaseUnitTestQuotedReservedWordColumnNames,
)
from dbt.tests.adapter.unit_testing.test_types import BaseUnitTestingTypes, BaseUnitTestingVarcharFixtureNoTruncation

# Spark quotes with backquotes.
_BACKQUOTED = {'"GROUP"': "`GROUP`"}


@pytest.mark.exhaustive
class TestUnitTestCaseInsensitivity(BaseUnitTestCaseInsensivity):
    pass


@pytest.mark.exhaustive
class TestUnitTestInvalidInput(BaseUnitTestInvalidInput):
    pass


@pytest.mark.exhaustive
class TestUnitTestQuotedReservedWordColumnNames(BaseUnitTestQuotedReservedWordColumnNames):
    in_spark = _BACKQUOTED


@pytest.mark.slow
class TestUnitTestingTypes(BaseUnitTestingTypes):
    @pytest.fixture
    def data_types(self) -> list[list[str]]:
        # sql_value, yaml_value; Spark has no json, and literals of its own for arrays, maps and structs.
        return [
            ["1", "1"],
            ["'1'", "1"],
            ["2.0", "2.0"],
            ["true", "true"],
            ["date '2020-01-02'", "2020-01-02"],
            ["timestamp '2013-11-03 00:00:00-0'", "2013-11-03 00:00:00-0"],
            ["cast('1' as numeric)", "1"],
            ["array(1, 2, 3)", "'array(1, 2, 3)'"],
            ["map('10', 't', '15', 'f', '20', NULL)", """'map("10", "t", "15", "f", "20", NULL)'"""],
            ["named_struct('a', 1, 'b', 2, 'c', 3)", """'named_struct("a", 1, "b", 2, "c", 3)'"""],
        ]


@pytest.mark.exhaustive
class TestUnitTestingVarcharFixtureNoTruncation(BaseUnitTestingVarcharFixtureNoTruncation):
    pass
