"""Functions in SQL."""

import pytest
from dbt.tests.adapter.functions.test_udfs import (
    DeterministicUDF,
    ErrorForUnsupportedType,
    NonDeterministicUDF,
    PythonUDFEntryPointRequired,
    PythonUDFNotSupported,
    PythonUDFRuntimeVersionRequired,
    SqlUDFDefaultArgSupport,
    StableUDF,
    UDFsBasic,
)


class TestUDFs(UDFsBasic):
    pass


@pytest.mark.exhaustive
class TestDeterministicUDF(DeterministicUDF):
    def check_function_volatility(self, sql: str) -> None:
        # Spark's word for IMMUTABLE.
        assert "\nDETERMINISTIC" in sql


@pytest.mark.exhaustive
class TestNonDeterministicUDF(NonDeterministicUDF):
    def check_function_volatility(self, sql: str) -> None:
        # Spark's words for VOLATILE.
        assert "NOT DETERMINISTIC" in sql


@pytest.mark.exhaustive
class TestStableUDF(StableUDF):
    def check_function_volatility(self, sql: str) -> None:
        # Spark knows nothing between the two: dbt warns and leaves it out.
        assert "STABLE" not in sql
        assert "DETERMINISTIC" not in sql


@pytest.mark.exhaustive
class TestErrorForUnsupportedType(ErrorForUnsupportedType):
    pass


@pytest.mark.exhaustive
class TestSqlUDFDefaultArgSupport(SqlUDFDefaultArgSupport):
    pass


@pytest.mark.exhaustive
class TestPythonUDFNotSupported(PythonUDFNotSupported):
    pass


@pytest.mark.exhaustive
class TestPythonUDFRuntimeVersionRequired(PythonUDFRuntimeVersionRequired):
    pass


@pytest.mark.exhaustive
class TestPythonUDFEntryPointRequired(PythonUDFEntryPointRequired):
    pass
