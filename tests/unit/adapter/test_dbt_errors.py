"""Only dbt's errors come out of the edge, and they are short."""

from __future__ import annotations

import pytest
from dbt_common.exceptions import CompilationError, DbtDatabaseError, DbtRuntimeError
from pyspark.errors import AnalysisException

from dbt.adapters.zlayout.adapter.dbt_errors import as_dbt_errors, spark_message
from dbt.adapters.zlayout.errors import ConfigError, ConflictError

_STAGE = (
    "Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 times, most recent failure: Lost task 0.0 in"
    " stage 3.0 (TID 5) (host executor driver): "
)


class JavaThrowable:
    def __init__(self, message: str | None, cause: JavaThrowable | None = None) -> None:
        self._message, self._cause = message, cause

    def getCause(self) -> JavaThrowable | None:  # noqa: N802 # Java's name
        return self._cause

    def getMessage(self) -> str | None:  # noqa: N802 # Java's name
        return self._message

    def toString(self) -> str:  # noqa: N802 # Java's name
        return "java.lang.NullPointerException"


class JavaError(Exception):
    def __init__(self, java_exception: JavaThrowable) -> None:
        self.java_exception = java_exception


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            (
                "[TABLE_OR_VIEW_NOT_FOUND] The table `a` cannot be found.; line 1 pos 14;\n'Project [*]\n"
                "+- 'UnresolvedRelation [a]"
            ),
            "[TABLE_OR_VIEW_NOT_FOUND] The table `a` cannot be found.; line 1 pos 14",
        ),
        (
            "[PARSE] wrong (line 1, pos 0)\n\n== SQL ==\nselec 1\n^^^\n",
            "[PARSE] wrong (line 1, pos 0)\n\n== SQL ==\nselec 1\n^^^",
        ),
        ("short\n\nJVM stacktrace:\norg.apache.spark.X: short\n\tat org.x.Y(Y.scala:1)", "short"),
        (
            _STAGE + "org.apache.spark.SparkArithmeticException: [DIVIDE_BY_ZERO] Division by zero.\n"
            "\tat org.x.Y.z(Y.scala:1)\n\nDriver stacktrace:",
            "[DIVIDE_BY_ZERO] Division by zero.",
        ),
        (
            _STAGE + "org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
            '  File "worker.py", line 1, in main\n    process()\nValueError: no such day\n\n\tat org.x.Y.z(Y.scala:1)',
            "ValueError: no such day",
        ),
    ],
)
def test_stack_traces_and_plans_are_cut_off_what_spark_says(text: str, expected: str) -> None:
    assert spark_message(Exception(text)) == expected


def test_the_cause_of_a_java_error_speaks_for_it() -> None:
    wrapped = JavaThrowable("java.util.concurrent.ExecutionException: x", JavaThrowable("the disk is full"))
    assert spark_message(JavaError(wrapped)) == "the disk is full"
    assert spark_message(JavaError(JavaThrowable(None))) == "java.lang.NullPointerException"


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
def test_each_error_becomes_the_one_that_dbt_has_for_it(
    raised: Exception, expected: type[Exception], text: str
) -> None:
    with pytest.raises(expected) as caught, as_dbt_errors():
        raise raised
    assert type(caught.value) is expected
    assert text in str(caught.value)
