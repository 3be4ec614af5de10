"""Runs our own Spark jobs: separate settings from the user's session, progress lines, and short error messages."""

from __future__ import annotations

import contextlib
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.serializers import ArrowStreamSerializer
from pyspark.sql.pandas.types import to_arrow_schema

from dbt.adapters.zlayout.errors import CancelledError, WriteError, ZlayoutError
from dbt.adapters.zlayout.spark.jobs.workers import failed_worker_problem, use_driver_python
from dbt.adapters.zlayout.spark.jvm.lifetime import HAS_ENDED, java_has_ended
from dbt.adapters.zlayout.spark.jvm.session_settings import session_beside

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

Progress = Callable[[str], None]
_T = TypeVar("_T")
_Items = TypeVar("_Items", bound=Sequence[Any])
_POLL_SECONDS = 4.5
_SILENT_SECONDS = 10.0
_STACK = re.compile(r"\n+(?:JVM stacktrace:|Driver stacktrace:|\s+at [\w.$/<>]+\(|'[A-Z][A-Za-z]+ |\s*\+- )")
_TASK_FAILURE = re.compile(r"Job aborted due to stage failure: .*?\(TID \d+\)[^:]*: ", re.DOTALL)
_PYTHON_TRACEBACK = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t]+.*\n)*(?P<last>\S.*)")
_JAVA_CLASS = re.compile(r"^(?:(?:java|javax|scala|org|com|io)\.(?:[\w$]+\.)*[\w$]+(?:Exception|Error): )+")
_DEEPEST_CAUSE = 20
_FAILED_READ, _SQL_STATE = "FAILED_READ_FILE", re.compile(r"[.\s]*(SQLSTATE: \w+)?\s*$")
_DISK_FULL = "No space left on device"
_FILE_IS_GONE = re.compile(r"\.?\s*It is possible the underlying files have been updated\..*", re.DOTALL)
_LOST_FILE = (
    "; if other tools write the table, run REFRESH TABLE; of a dbt-zlayout table, zlayout_verify names the lost files"
)
# Halving finds one bad file of a thousand in about twenty tries. If nothing can be read, it ends soon.
_MOST_TRIES = 24


AS_STORED = {
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.parquet.int96TimestampConversion": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.timeType.enabled": "true",
}
"""Settings of a session that reads a file completely and exactly as it is stored, or fails."""


def rewrite_session(spark: SparkSession) -> SparkSession:
    """Returns a new session with the settings for rewrites. Expressions return what they do in the user's session.

    Spark limits Arrow batches by rows and a blob has megabytes, so a batch holds few rows. Adaptive execution is off
    because it could merge files that were planned separately.
    """
    batches = {"spark.sql.execution.arrow.maxRecordsPerBatch": "16"}
    return session_beside(spark, {**batches, "spark.sql.adaptive.enabled": "false"})


@contextlib.contextmanager
def timed(phases: dict[str, float], name: str) -> Iterator[None]:
    """Adds the seconds that a ``with`` block takes to a phase, also if it fails."""
    start = time.perf_counter()
    try:
        yield
    finally:
        phases[name] = round(phases.get(name, 0.0) + time.perf_counter() - start, 3)


def frame_of_rows(spark: SparkSession, rows: Sequence[tuple[Any, ...]], schema: StructType) -> DataFrame:
    """Returns a few rows as a DataFrame. They are part of the plan.

    With `createDataFrame`, Python workers would reread them in each job.

    Args:
        spark: The session.
        rows: The rows, in values that Arrow takes for the types.
        schema: Names and types of the columns.
    """
    kinds, jvm = to_arrow_schema(schema), spark._jvm
    assert jvm is not None
    columns = zip(*rows, strict=True) if rows else [()] * len(kinds)
    arrays = [pa.array(values, kind) for values, kind in zip(columns, kinds.types, strict=True)]
    batch = pa.RecordBatch.from_arrays(arrays, schema=kinds)
    content = spark.sparkContext._serialize_to_jvm(
        [batch], ArrowStreamSerializer(), jvm.PythonSQLUtils.readArrowStreamFromFile, jvm.ArrowIteratorServer
    )
    return DataFrame(jvm.PythonSQLUtils.toDataFrame(content, schema.json(), spark._jsparkSession), spark)


def writing_session(spark: SparkSession) -> SparkSession:
    """Returns a new session in which Spark's own writer writes as Arrow does.

    Timestamps get statistics, which INT96 lacks, and days before 1582 stay the same days as in Spark. Expressions, and
    the names of partition folders, are those of the user's session.
    """
    settings = {
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
        # A frame may carry the ids of the files that it was read from, and they mean other columns there.
        "spark.sql.parquet.fieldId.read.enabled": "false",
        "spark.sql.parquet.fieldId.write.enabled": "false",
        "spark.sql.timeType.enabled": "true",  # or Spark refuses TIME columns that the frame has
    }
    return session_beside(spark, settings)


def reading_session(spark: SparkSession) -> SparkSession:
    """Returns a new session that reads a file completely and exactly as it is stored, or fails.

    It computes no expressions of the user, so it has none of the settings of the given session: the statistics of a
    file are the same whoever collects them.
    """
    use_driver_python(spark)
    session = spark.newSession()
    settings = {
        **AS_STORED,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.caseSensitive": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    }
    for key, value in settings.items():
        session.conf.set(key, value)
    return session


def numbered_tasks(session: SparkSession, count: int) -> DataFrame:
    """Returns the numbers from 0 to ``count`` - 1, each in its own task."""
    return session.range(0, count, 1, count)


def in_session(frame: DataFrame, session: SparkSession) -> DataFrame:
    """Returns the same rows as a DataFrame of another session, whose settings apply to all later steps.

    The query does not run yet, and runs only once.
    """
    native: Any = frame._jdf
    rows = native.queryExecution().toRdd()
    other: Any = session._jsparkSession
    return DataFrame(other.internalCreateDataFrame(rows, native.schema(), False), session)


class _Thread(threading.local):
    cancelled: threading.Event | None = None


_THREAD = _Thread()


def cancel_this_thread_by(cancelled: threading.Event | None) -> None:
    """Sets the event after which this thread begins no Spark job and no commit of this package; None for no event."""
    _THREAD.cancelled = cancelled


def check_not_cancelled() -> None:
    """Checks that nobody has cancelled what this thread does.

    Raises:
        CancelledError: Somebody has.
    """
    if _THREAD.cancelled is not None and _THREAD.cancelled.is_set():
        raise CancelledError("the run was cancelled; this step has written nothing")


def for_other_threads(spark: SparkSession, work: Callable[..., _T]) -> Callable[..., _T]:
    """Returns work for other threads, where it is cancelled together with this thread.

    Spark's local properties go along, so that the tags of this thread's jobs are on the jobs of the work, too.
    """
    cancelled = _THREAD.cancelled
    context: Any = spark.sparkContext
    native = context._jsc.sc()
    properties = native.getLocalProperties()

    def cancelled_with_its_caller(*args: Any) -> _T:
        cancel_this_thread_by(cancelled)
        # A clone for each call: a job sets properties of its own.
        native.setLocalProperties(properties.clone())
        return work(*args)

    return cancelled_with_its_caller


def run(spark: SparkSession, phase: str, progress: Progress | None, action: Callable[[], _T]) -> _T:
    """Runs an action that starts Spark jobs, and reports their progress and the elapsed time every few seconds.

    Args:
        spark: The session whose context runs the jobs.
        phase: The name of the action in progress lines and in Spark's UI.
        progress: Takes one line at a time; None reports nothing.
        action: Starts the jobs and waits for them.

    Raises:
        CancelledError: This thread was cancelled.
    """
    check_not_cancelled()
    context = spark.sparkContext
    group = f"zlayout-{uuid.uuid4().hex[:12]}"
    with _job_group(context, group, f"zlayout: {phase}"):
        if progress is None:
            return action()
        done = threading.Event()
        watcher = threading.Thread(target=_watch, args=(context, group, phase, progress, done), daemon=True)
        watcher.start()
        try:
            return action()
        finally:
            done.set()
            watcher.join()


def in_halves(items: _Items, work: Callable[[_Items], _T], failed: Callable[[_Items, Exception], None]) -> list[_T]:
    """Does work on all items at once or, where that fails, on halves, quarters and so on. Bad items are left out.

    Args:
        items: For example files. Slices of them are of the same type.
        work: Works on some of them.
        failed: Called with the items of each failure.

    Returns:
        What the work that succeeded returned.

    Raises:
        CancelledError: This thread was cancelled.
    """
    found: list[_T] = []
    left = [items]
    for _ in range(_MOST_TRIES):
        if not left:
            break
        some = left.pop()
        try:
            found.append(work(some))
        except CancelledError:
            raise
        except Exception as error:  # the other half may be sound
            failed(some, error)
            half = len(some) // 2
            if half:
                left += [cast(_Items, some[half:]), cast(_Items, some[:half])]
    return found


def short_message(error: BaseException, *, innermost: bool = False) -> str:
    """Returns Spark's error message without stack traces, query plans and the text around a failed task.

    Args:
        error: Any error; a Java error has causes.
        innermost: Whether to return the message of a Java error's innermost cause. A failed job always returns it.
    """
    if java_has_ended(error):
        return HAS_ENDED
    causes = _texts(error)
    if (problem := failed_worker_problem("\n".join([*causes, str(error)]))) is not None:
        return problem
    if not innermost:
        innermost = "Job aborted" in causes[0] or "Task" in causes[0].split(":")[0]
    text = _JAVA_CLASS.sub("", _TASK_FAILURE.sub("", causes[-1 if innermost else 0]).strip())
    tracebacks = _PYTHON_TRACEBACK.findall(text)
    text = tracebacks[-1] if tracebacks else _STACK.split(text, maxsplit=1)[0]
    cause = _JAVA_CLASS.sub("", causes[-1]).strip().partition("\n")[0]
    if _FAILED_READ in text and cause and cause not in text:
        text = f"{_SQL_STATE.sub('', text)}: {cause}"
    return _FILE_IS_GONE.sub(_LOST_FILE, text.strip()).rstrip(";") or type(error).__name__


def every_text(error: BaseException) -> str:
    """Returns the messages of an error and, for a Java error, of all its causes."""
    return "\n".join([str(error), str(getattr(error, "_stackTrace", None) or ""), *_texts(error)])


def _texts(error: BaseException) -> list[str]:
    """Returns the message of an error; for a Java error, those of its causes too, the innermost last."""
    java: Any = getattr(error, "java_exception", None)
    if java is None:
        return [str(getattr(error, "_desc", None) or error)]
    texts: list[str] = []
    while java is not None and len(texts) < _DEEPEST_CAUSE:
        texts.append(str(java.getMessage() or java.toString()))
        java = java.getCause()
    return texts


def why_failed(error: Exception) -> str:
    """Returns the cause of an error in one line, without what a `WriteError` adds about the table."""
    return short_message(error.__cause__ or error).splitlines()[0]


@contextlib.contextmanager
def failing_as_write_error(subject: str) -> Iterator[None]:
    """Turns every error of a write into a short `WriteError`. Errors of this package pass through unchanged.

    Raises:
        WriteError: Something failed with an error that is not from this package.
    """
    try:
        yield
    except ZlayoutError:
        raise
    except Exception as error:
        why = short_message(error)
        if _DISK_FULL in every_text(error):
            why = f"{_DISK_FULL}: make room in the table's folder or in Spark's temporary folder (spark.local.dir)"
        raise WriteError(f"{subject}: {why}; the table is unchanged") from error


@contextlib.contextmanager
def _job_group(context: Any, group: str, description: str) -> Iterator[None]:
    keys = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")
    before = {key: context.getLocalProperty(key) for key in keys}
    context.setJobGroup(group, description, True)
    try:
        yield
    finally:
        for key, value in before.items():
            context.setLocalProperty(key, value)


def _watch(context: Any, group: str, phase: str, progress: Progress, done: threading.Event) -> None:
    """Reports how many tasks have finished: when there are more of them, and at least every `_SILENT_SECONDS`."""
    tracker = context.statusTracker()
    started = reported_at = time.monotonic()
    last: tuple[int, int] | None = None
    while not done.wait(_POLL_SECONDS):
        # Between two jobs, or where the tracker fails, the counts are those of before.
        counts = last or (0, 0)
        with contextlib.suppress(Exception):
            stages = [
                info
                for job in tracker.getJobIdsForGroup(group)
                for stage in tracker.getJobInfo(job).stageIds
                if (info := tracker.getStageInfo(stage)) is not None
            ]
            counts = sum(s.numCompletedTasks for s in stages), sum(s.numTasks for s in stages)
        now = time.monotonic()
        if (counts[1] and counts != last) or now - reported_at > _SILENT_SECONDS - _POLL_SECONDS:
            tasks = f"{counts[0]:,} of {counts[1]:,} tasks, " if counts[1] else ""
            progress(f"{phase}: {tasks}{now - started:,.0f} s")
            last, reported_at = counts, now
