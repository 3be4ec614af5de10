"""Writes tables for materializations, SQL and Python models alike, and clusters them afterwards."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
from dbt.adapters.events.logging import AdapterLogger

from dbt.adapters.zlayout.adapter.dbt_errors import warn
from dbt.adapters.zlayout.adapter.materialize.attempts import Attempts, attempts_at
from dbt.adapters.zlayout.adapter.materialize.changes_read import (
    ChangesRead,
    changes_read_by,
    check_no_row_twice,
    taken_by,
)
from dbt.adapters.zlayout.adapter.materialize.model_settings import (
    ModelSettings,
    key_warning,
    partition_warning,
    read_model,
    zone_warning,
)
from dbt.adapters.zlayout.adapter.materialize.origin import NO_ORIGIN, Origin, origin_of, sources_text
from dbt.adapters.zlayout.adapter.materialize.seed_frame import check_seed
from dbt.adapters.zlayout.adapter.materialize.table_writes import (
    managed_table,
    rows_to_merge,
    write_changes,
    write_increment,
    write_model,
)
from dbt.adapters.zlayout.adapter.relation import ZlayoutRelation
from dbt.adapters.zlayout.adapter.response import ZlayoutAdapterResponse, response_of
from dbt.adapters.zlayout.config.clustering import ReclusteringConfig
from dbt.adapters.zlayout.errors import ConflictError, WriteError
from dbt.adapters.zlayout.lazy import cached_property
from dbt.adapters.zlayout.quantities import counted
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog, session_zone
from dbt.adapters.zlayout.spark.cluster.clustering import ClusterSummary
from dbt.adapters.zlayout.spark.commit.after_commit import CommitSummary
from dbt.adapters.zlayout.spark.jobs.jobs import check_not_cancelled, short_message
from dbt.adapters.zlayout.spark.read.record_tables import table_entry
from dbt.adapters.zlayout.spark.read.session import prepare_table
from dbt.adapters.zlayout.store import open_store
from dbt.adapters.zlayout.table.ztable import ZTable
from dbt.adapters.zlayout.timeline.files.action import Operation
from dbt.adapters.zlayout.timeline.timeline import Timeline
from dbt.adapters.zlayout.timeline.transactions.last_row_change import BASE
from dbt.adapters.zlayout.timeline.transactions.transaction import retried
from dbt.adapters.zlayout.timeline.transactions.writer_priority import wait_for_writers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_LOG = AdapterLogger("Zlayout")
MOST_REPEATS = 3
Done = TypeVar("Done")
_WHOLE = (Operation.OVERWRITE.value, Operation.CLUSTERING.value)
_ALLOWED = "a Spark, pandas or pandas-on-Spark DataFrame"


@dataclass(frozen=True)
class Materialization:
    """The materialization of one relation: writes its table, and clusters it afterwards.

    Attributes:
        model: Its node, as Jinja has it.
        schema_root: The folder that the profile sets for the tables of the relation's schema, or None.
        query: Hands a query to dbt's connection and returns its rows. The query does not run yet.
    """

    session: SparkSession
    relation: ZlayoutRelation
    model: Mapping[str, Any]
    schema_root: str | None
    query: Callable[[str], DataFrame]

    def write_table(self, code: str, may_skip: bool) -> ZlayoutAdapterResponse:
        """Runs a model's code once. Its rows replace the table in a new version.

        Args:
            code: The model's code, compiled.
            may_skip: Whether the table may stay as it is if nothing has changed since the last run.
        """

        def replace() -> CommitSummary | ZlayoutAdapterResponse:
            rows = self._rows_of(code)
            read = changes_read_by(rows)
            origin = self._origin(code, rows, read)
            if may_skip and (unchanged := self._unchanged(origin)) is not None:
                return unchanged
            self._warn(key_warning(self._wanted, rows.columns))
            is_unknown = self._wanted.keeps_rows and not self._has_entry()
            done = write_model(
                self.relation.catalog_name,
                rows,
                self._wanted,
                progress=self._tell,
                made_from=_stored(origin),
                changes_taken=taken_by(read),
            )
            if (sentence := partition_warning(self._wanted, done.rows, done.files_added)) is not None:
                self._warn_after_commit(sentence)
            if is_unknown and done.version > 0:
                self._warn_after_commit(
                    f"its folder already held a table, up to v{done.version - 1}, which the catalog did not know; this "
                    f"run replaced the rows. zlayout_rollback to v{done.version - 1} restores them"
                )
            return done

        return self._committed(replace, Operation.OVERWRITE)

    def write_increment(self, code: str) -> ZlayoutAdapterResponse:
        """Runs a model's code once and writes its rows to the table by the model's strategy."""

        def add() -> CommitSummary | ZlayoutAdapterResponse:
            table = managed_table(self.session, self.relation.catalog_name, self._wanted, self._tell)
            rows = self._rows_of(code)
            read = changes_read_by(rows)
            origin = self._origin(code, rows, read)
            if (unchanged := self._unchanged(origin)) is not None:
                return unchanged
            snapshot = table.snapshot()
            self._warn(zone_warning(snapshot.schema_json, snapshot.partition_by, session_zone(self.session)))
            check_no_row_twice(read, table, self._wanted.incremental)
            return write_increment(
                table,
                rows,
                self._wanted,
                batch=self.model.get("batch"),
                progress=self._tell,
                made_from=_stored(origin, table.version),
                changes_taken=taken_by(read),
            )

        return self._committed(add, Operation.MERGE, waits=not self._wanted.incremental.runs_beside_others)

    def write_seed(self, rows: DataFrame, keeps_columns: bool) -> ZlayoutAdapterResponse:
        """Replaces the table with the rows of a file, from `seed_frame`."""

        def load() -> CommitSummary:
            if keeps_columns:
                check_seed(self.session.table(self.relation.catalog_name), rows, self.model["name"])
            return write_model(self.relation.catalog_name, rows, self._wanted, progress=self._tell)

        return self._committed(load, Operation.OVERWRITE)

    def write_snapshot(self, changes_sql: str, columns: Mapping[str, str]) -> ZlayoutAdapterResponse:
        """Runs a snapshot's staging query once and writes its changes to the table."""

        def merge() -> CommitSummary:
            table = managed_table(self.session, self.relation.catalog_name, self._wanted, self._tell)
            rows = rows_to_merge(self.query(changes_sql), columns)
            valid_to_current = self.model["config"].get("dbt_valid_to_current")
            return write_changes(
                table, rows, self._wanted, columns=columns, valid_to_current=valid_to_current, progress=self._tell
            )

        return self._committed(merge, Operation.MERGE)

    def _has_entry(self) -> bool:
        return Catalog(self.session).find_named(self.relation.catalog_name) is not None

    @cached_property
    def _wanted(self) -> ModelSettings:
        return read_model(self.model, self.schema_root)

    def _tell(self, line: str) -> None:
        _LOG.info(f"{self.relation}: {line}")

    def _warn(self, sentence: str | None) -> None:
        if sentence is not None:
            warn(f"{self.relation}: {sentence}")

    def _warn_after_commit(self, sentence: str) -> None:
        """Warns after a commit. With --warn-error a warning can raise; the next run would then add the rows again."""
        try:
            _LOG.warning(f"{self.relation}: {sentence}")
        except Exception:  # dbt-core 1.12 also raises for what an adapter logs as a warning
            self._tell(f"warning: {sentence}")

    def _committed(
        self,
        write: Callable[[], CommitSummary | ZlayoutAdapterResponse],
        operation: Operation,
        *,
        waits: bool = True,
    ) -> ZlayoutAdapterResponse:
        """Waits for other writers, writes until there is no conflict, and clusters the table if rows were added."""

        def wait() -> None:
            _wait_for_writers_of(self.session, self.relation.catalog_name, operation, self._tell)

        if waits:
            wait()
        done = until_committed(write, self._tell, wait, attempts_at(self.relation.catalog_name))
        if isinstance(done, ZlayoutAdapterResponse):
            return done
        return response_of(done, self._clustered() if operation is Operation.MERGE else None)

    def _clustered(self) -> ClusterSummary | None:
        """Clusters after a write if the model asks for it. The rows are committed already, so a failure only warns."""
        reclustering = self._wanted.table_config.reclustering
        if reclustering.mode == "off":
            return None
        try:
            table = ZTable.for_name(self.session, self.relation.catalog_name)
            done = _recluster(table, reclustering, self._wanted.cluster_settings, self._tell)
        except Exception as error:
            why = short_message(error, innermost=True)
            self._warn_after_commit(f"the rows are written, but clustering failed: {why}")
            return None
        if done is not None and done.groups_failed:
            why = "\n".join(done.failed_lines())
            self._warn_after_commit(f"the rows are written, but some groups of files could not be clustered:\n{why}")
        return done

    def _unchanged(self, origin: Origin | None) -> ZlayoutAdapterResponse | None:
        """Returns the response of a run that has nothing to do. None if the model runs, after a line that says why."""
        if not self._wanted.skip_unchanged or self._wanted.incremental.strategy == "microbatch":
            return None  # batches always run, and a line for each of them would say so
        try:
            found = ZTable.for_name(self.session, self.relation.catalog_name).made_from()
            if found is None:
                why = [NO_ORIGIN]
            elif origin is None:
                why = ["its inputs are not known"]
            else:
                why = origin.differences(found[1])
        except Exception as error:  # of an earlier version; it does not hinder this run
            found, why = None, [f"it cannot be compared with its last run ({short_message(error)})"]
        if found is None or why:
            self._tell(f"runs, because {'; '.join(why)}")
            return None
        version, before = found
        message = f"unchanged since v{version}: {sources_text(before)}"
        return ZlayoutAdapterResponse(_message=message, rows_affected=0, version=version)

    def _origin(self, code: str, rows: DataFrame, read: Mapping[str, ChangesRead]) -> Origin | None:
        """Returns what a model's rows are made from, by which a later run may be skipped. None if it is not known."""
        if self.model["resource_type"] != "model":
            return None
        try:
            reads = {name: each.source for name, each in read.items()}
            return origin_of(code, rows, self.model, self._wanted, reads)
        except Exception as error:  # the next run is then not skipped
            _LOG.debug(f"{self.relation}: its inputs are not known: {error!r}")
            return None

    def _rows_of(self, code: str) -> DataFrame:
        if self.model.get("language") == "python":
            return _python_frame(self.session, code, str(self.model["name"]))
        return self.query(code)


def _stored(origin: Origin | None, base: int | None = None) -> Mapping[str, Any] | None:
    """Returns what a version stores of its origin.

    Args:
        base: The version of the model's table that the run adds to; None if it replaces all rows.
    """
    return None if origin is None else {**origin.to_dict(), BASE: base}


def _wait_for_writers_of(
    session: SparkSession, name: str, operation: Operation, progress: Callable[[str], None]
) -> None:
    """Waits for other processes and models that are writing a table, with a line for each of them."""
    catalog = Catalog(session)
    entry = table_entry(catalog, catalog.name(name))
    if entry is not None and entry.table_id is not None and entry.location is not None:
        wait_for_writers(Timeline(open_store(entry.location)), operation, progress, check_not_cancelled)


def until_committed(
    run: Callable[[], Done], progress: Callable[[str], None], wait: Callable[[], None], attempts: Attempts
) -> Done:
    """Runs a query and its write. Runs both again when a concurrent commit conflicts with them.

    Nothing is retried after the commit: a later failure is a `CommittedError`, not a conflict.

    Args:
        run: Evaluates the query on the current tables and commits.
        progress: Receives a sentence before each retry.
        wait: Waits for other writers. Called before each retry, when no other attempt of this process runs.
        attempts: This process's attempts to write the table.

    Raises:
        ConflictError: Every attempt met a conflict. The table is as the other writers left it.
    """
    repeats = 0

    def attempt() -> Done:
        if not repeats:
            with attempts.first(progress):
                return run()
        with attempts.repeated(progress):
            wait()
            return run()

    def tell(conflict: ConflictError, repeat: int) -> None:
        nonlocal repeats
        repeats = repeat
        progress(f"another writer committed first ({conflict.what}); rerunning the query ({repeat} of {MOST_REPEATS})")

    return retried(attempt, MOST_REPEATS + 1, tell)


def _recluster(
    table: ZTable, wanted: ReclusteringConfig, settings: Mapping[str, Any], progress: Callable[[str], None]
) -> ClusterSummary | None:
    """Clusters a table after a write, or only writes a plan, as its model asks.

    Args:
        table: The table at its newest version.
        wanted: When to cluster. Its mode is not 'off'.
        settings: From `cluster_settings`.

    Returns:
        What was done; None if no clustering is due, no rewrite pays off, or only a plan was written.
    """
    if _commits_since_clustering(table, wanted.every) < wanted.every:
        return None
    if wanted.mode == "deferred":
        planned = table.cluster(schedule=True, progress=progress, **settings)
        if planned.groups:
            files = counted(planned.files_removed, "file")
            progress(f"planned a clustering of {files}; run zlayout_cluster with execute: true")
        return None
    done = table.cluster(progress=progress, **settings)
    return done if done.groups_done or done.groups_dropped else None


def _commits_since_clustering(table: ZTable, most: int) -> int:
    operations = table.history(most).column("operation").to_pylist()
    return next((number for number, each in enumerate(operations) if each in _WHOLE), len(operations))


def _python_frame(session: SparkSession, code: str, name: str) -> DataFrame:
    """Runs a model's function.

    Args:
        session: The session that is passed to the function. Its tables skip files.
        code: The model's file with the code that dbt adds to it (``dbtObj``).
        name: The model's name, for messages.

    Returns:
        The model's rows. A Spark DataFrame has not run yet.

    Raises:
        WriteError: The code failed (the message gives the line), or it did not return a DataFrame.
    """
    namespace: dict[str, Any] = {"__name__": f"dbt_model_{name}", "spark": session}
    file = f"<{name}>"
    try:
        exec(compile(code, file, "exec"), namespace)
        result = namespace["model"](namespace["dbtObj"](_loader(session)), session)
    except Exception as error:
        raise WriteError(f"{name}: {_message(error, file)}") from error
    return _spark_frame(session, result, name)


def _loader(session: SparkSession) -> Callable[[str], DataFrame]:
    def load(relation: str) -> DataFrame:
        prepare_table(session, relation)
        return session.table(relation)

    return load


def _spark_frame(session: SparkSession, result: Any, name: str) -> DataFrame:
    # Compares module names, so that neither library is imported for models that do not use it.
    module = type(result).__module__
    if type(result).__name__ == "DataFrame":
        if module.startswith("pyspark.pandas."):
            return result.to_spark()  # type: ignore[no-any-return] # untyped on this side
        if module.startswith("pyspark.sql."):
            return result  # type: ignore[no-any-return] # the same
        if module.startswith("pandas."):
            return _from_pandas(session, result)
    kind = f"{module}.{type(result).__qualname__}"
    raise WriteError(f"{name}: model(dbt, session) returned {kind}; it must return {_ALLOWED}")


def _from_pandas(session: SparkSession, result: Any) -> DataFrame:
    if session.version.startswith("3."):
        return session.createDataFrame(result)
    # Arrow turns the NaN and NaT of pandas into null, which is what they mean in pandas.
    return session.createDataFrame(pa.Table.from_pandas(result, preserve_index=False))


def _message(error: Exception, file: str) -> str:
    if isinstance(error, SyntaxError):
        return f"line {error.lineno}: {error.msg}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    where = f"line {lines[-1]}: " if lines else ""
    return f"{where}{type(error).__name__}: {error}"
