"""Spark's error messages are shortened."""

from __future__ import annotations

import pytest

from dbt.adapters.zlayout.spark.jobs.jobs import every_text, short_message

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
def test_stack_traces_and_plans_are_removed(text: str, expected: str) -> None:
    assert short_message(Exception(text)) == expected
    assert short_message(Exception(text), innermost=True) == expected


def test_the_message_of_the_innermost_cause_is_returned_if_asked_for() -> None:
    wrapped = JavaThrowable("java.util.concurrent.ExecutionException: x", JavaThrowable("the disk is full"))
    assert short_message(JavaError(wrapped), innermost=True) == "the disk is full"
    assert short_message(JavaError(JavaThrowable(None))) == "java.lang.NullPointerException"
    assert every_text(JavaError(wrapped)).splitlines()[-1] == "the disk is full"


def test_the_message_of_a_failed_job_is_that_of_its_innermost_cause() -> None:
    reading = JavaThrowable("[FAILED_READ_FILE] cannot read f.parquet", JavaThrowable("not a Parquet file"))
    assert short_message(JavaError(reading)) == "[FAILED_READ_FILE] cannot read f.parquet: not a Parquet file"
    assert short_message(JavaError(JavaThrowable("Job aborted.", reading))) == "not a Parquet file"
    for nothing in ("", "java.io.EOFException: "):
        assert short_message(JavaError(JavaThrowable("[FAILED_READ_FILE] f", JavaThrowable(nothing)))).startswith(
            "[FAILED_READ_FILE] f"
        )


def test_the_last_of_chained_python_errors_is_returned() -> None:
    one = "Traceback (most recent call last):\n  File 'a.py', line 1\n"
    chained = (
        f"{one}KeyError: 1\n\nDuring handling of the above exception, another one occurred:\n\n{one}ValueError: no"
    )
    assert short_message(Exception(chained)) == "ValueError: no"
