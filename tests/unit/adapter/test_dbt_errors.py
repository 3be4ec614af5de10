"""The adapter only raises dbt's errors."""

from __future__ import annotations

import pytest
from dbt_common.exceptions import CompilationError, DbtDatabaseError, DbtRuntimeError
from pyspark.errors import AnalysisException

from dbt.adapters.zlayout.adapter.dbt_errors import as_dbt_errors, one_line
from dbt.adapters.zlayout.errors import ConfigError, ConflictError


@pytest.mark.parametrize(
    ("raised", "expected", "text"),
    [
        (ConfigError(["zorder: missing", "curve: wrong"]), CompilationError, "2 configuration problems"),
        (ConflictError("somebody was first"), DbtRuntimeError, "somebody was first"),
        (AnalysisException("no such table"), DbtDatabaseError, "no such table"),
        (KeyError("x"), DbtRuntimeError, "KeyError: 'x'"),
        (DbtDatabaseError("as it was"), DbtDatabaseError, "as it was"),
    ],
)
def test_each_error_becomes_the_matching_error_of_dbt(raised: Exception, expected: type[Exception], text: str) -> None:
    with pytest.raises(expected) as caught, as_dbt_errors():
        raise raised
    assert type(caught.value) is expected
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("raised", "text"),
    [
        (
            ConfigError(["zorder: missing", "curve: wrong"], "t"),
            "t: 2 configuration problems - zorder: missing - curve: wrong",
        ),
        (DbtRuntimeError("no profile\n  here"), "Runtime Error no profile here"),
        (AnalysisException("no such\n table"), "no such table"),
        (KeyError("x"), "'x'"),
        (ValueError(), "ValueError"),
    ],
)
def test_any_error_fits_one_line(raised: Exception, text: str) -> None:
    assert one_line(raised) == text
