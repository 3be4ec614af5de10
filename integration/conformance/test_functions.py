"""Functions in SQL."""

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


class TestDeterministicUDF(DeterministicUDF):
    def check_function_volatility(self, sql: str) -> None:
        # Spark's word for IMMUTABLE.
        assert "\nDETERMINISTIC" in sql


class TestNonDeterministicUDF(NonDeterministicUDF):
    def check_function_volatility(self, sql: str) -> None:
        # Spark's words for VOLATILE.
        assert "NOT DETERMINISTIC" in sql


class TestStableUDF(StableUDF):
    def check_function_volatility(self, sql: str) -> None:
        # Spark knows nothing between the two: dbt warns and leaves it out.
        assert "STABLE" not in sql
        assert "DETERMINISTIC" not in sql


class TestErrorForUnsupportedType(ErrorForUnsupportedType):
    pass


class TestSqlUDFDefaultArgSupport(SqlUDFDefaultArgSupport):
    pass


class TestPythonUDFNotSupported(PythonUDFNotSupported):
    pass


class TestPythonUDFRuntimeVersionRequired(PythonUDFRuntimeVersionRequired):
    pass


class TestPythonUDFEntryPointRequired(PythonUDFEntryPointRequired):
    pass
