"""The adapter methods that write tables. Materializations call them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dbt.adapters.base.meta import available
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.events.types import AdapterEventWarning
from dbt_common.events.functions import warn_or_error

from dbt.adapters.zlayout.adapter.dbt_errors import as_dbt_errors, spark_message
from dbt.adapters.zlayout.adapter.materialize.conflict_retry import until_committed
from dbt.adapters.zlayout.adapter.materialize.incremental_write import managed_table, write_increment
from dbt.adapters.zlayout.adapter.materialize.model_warnings import (
    key_warning,
    model_warnings,
    partition_warning,
    unused_settings,
    zone_warning,
)
from dbt.adapters.zlayout.adapter.materialize.model_write import (
    ModelWrite,
    contract_is_enforced,
    read_model,
    subject_of,
    write_model,
)
from dbt.adapters.zlayout.adapter.materialize.python_model import python_frame
from dbt.adapters.zlayout.adapter.materialize.recluster import recluster
from dbt.adapters.zlayout.adapter.materialize.seed_frame import checked_seed, seed_frame
from dbt.adapters.zlayout.adapter.materialize.snapshot_write import changed_rows, write_changes
from dbt.adapters.zlayout.adapter.relation import ZlayoutRelation
from dbt.adapters.zlayout.adapter.reports.clustering import failed_lines
from dbt.adapters.zlayout.adapter.response import ZlayoutAdapterResponse, response_of
from dbt.adapters.zlayout.adapter.session.holder import SessionHolder
from dbt.adapters.zlayout.spark.catalog.session_catalog import session_zone
from dbt.adapters.zlayout.table.ztable import ZTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from dbt.adapters.zlayout.spark.cluster.summary import ClusterSummary
    from dbt.adapters.zlayout.spark.files.write_summary import CommitSummary

_LOG = AdapterLogger("Zlayout")


class Materializing(SessionHolder):
    """Writes relations. A mixin of the adapter, which provides the session and the connections."""

    connections: Any

    def schema_root(self, schema: str | None) -> str | None:
        """The folder that the profile sets for the tables of a schema, or None."""
        raise NotImplementedError

    @available.parse_none
    def check_model(self, model: dict[str, Any]) -> None:
        """Checks the settings of a node and warns about constraints that are not enforced.

        Raises:
            CompilationError: A setting is wrong. The message names every wrong one.
        """
        with as_dbt_errors():
            wanted = read_model(model, None)
        for sentence in model_warnings(wanted):
            _warn(f"{subject_of(model)}: {sentence}")
        if contract_is_enforced(model["config"]):
            # dbt warns while it renders the constraints. A Parquet table cannot store the rendered text.
            adapter: Any = self
            adapter.render_raw_columns_constraints(raw_columns=model["columns"])
            adapter.render_raw_model_constraints(raw_constraints=model["constraints"])

    @available.parse_none
    def check_settings_without_files(self, model: dict[str, Any]) -> None:
        """Warns about table settings on a node that this adapter does not write as a table.

        Raises:
            CompilationError: A key looks like a misspelling of one of this adapter's keys.
        """
        with as_dbt_errors():
            for sentence in unused_settings(model):
                _warn(f"{subject_of(model)}: {sentence}")

    @available.parse_none
    def write_table(self, relation: ZlayoutRelation, code: str, model: dict[str, Any]) -> ZlayoutAdapterResponse:
        """Runs a model's code once. Its rows replace the table in a new version."""

        def replace(wanted: ModelWrite, progress: Callable[[str], None]) -> CommitSummary:
            rows = self._rows_of(code, model)
            if (sentence := key_warning(wanted, rows.columns)) is not None:
                _warn(f"{relation}: {sentence}")
            done = write_model(relation.catalog_name, rows, wanted, warn=_warn, progress=progress)
            if (sentence := partition_warning(wanted, done.rows, done.files_added)) is not None:
                _tell(f"{relation}: {sentence}")
            return done

        return self._committed(relation, model, replace)

    @available.parse_none
    def write_increment(self, relation: ZlayoutRelation, code: str, model: dict[str, Any]) -> ZlayoutAdapterResponse:
        """Runs a model's code once and writes its rows to the table by the model's strategy."""

        def add(wanted: ModelWrite, progress: Callable[[str], None]) -> CommitSummary:
            table = managed_table(self.session(), relation.catalog_name, wanted, progress)
            snapshot, zone = table.snapshot(), session_zone(self.session())
            if (sentence := zone_warning(snapshot.schema_json, snapshot.partition_by, zone)) is not None:
                _warn(f"{relation}: {sentence}")
            return write_increment(table, self._rows_of(code, model), wanted, model.get("batch"), progress)

        return self._committed(relation, model, add, clusters=True)

    @available.parse_none
    def write_seed(
        self, relation: ZlayoutRelation, rows: Any, model: dict[str, Any], keeps_columns: bool
    ) -> ZlayoutAdapterResponse:
        """Replaces the table with the rows of a file, in a new version.

        Args:
            relation: The table.
            rows: The file as dbt read it, an agate table.
            model: The seed's node.
            keeps_columns: Whether the table exists and its columns must not change.

        Raises:
            CompilationError: A value does not fit its type, or the columns differ from those of the table.
        """

        def load(wanted: ModelWrite, progress: Callable[[str], None]) -> CommitSummary:
            frame = seed_frame(self.session(), rows, *self._seed_columns(rows, model["config"]))
            if keeps_columns:
                checked_seed(self.session().table(relation.catalog_name), frame, model["name"])
            return write_model(relation.catalog_name, frame, wanted, warn=_warn, progress=progress)

        return self._committed(relation, model, load)

    @available.parse_none
    def write_snapshot(
        self, relation: ZlayoutRelation, changes_sql: str, model: dict[str, Any], columns: Mapping[str, str]
    ) -> ZlayoutAdapterResponse:
        """Runs a snapshot's staging query once and writes its changes to the table.

        Args:
            relation: The table.
            changes_sql: dbt's staging query.
            model: The snapshot's node.
            columns: The actual names of dbt's own columns, keyed by their default names.
        """

        def merge(wanted: ModelWrite, progress: Callable[[str], None]) -> CommitSummary:
            table = managed_table(self.session(), relation.catalog_name, wanted, progress)
            rows = changed_rows(self._query(changes_sql), columns)
            return write_changes(table, rows, wanted, columns, model["config"].get("dbt_valid_to_current"), progress)

        return self._committed(relation, model, merge, clusters=True)

    def _committed(
        self,
        relation: ZlayoutRelation,
        model: Mapping[str, Any],
        write: Callable[[ModelWrite, Callable[[str], None]], CommitSummary],
        *,
        clusters: bool = False,
    ) -> ZlayoutAdapterResponse:
        def tell(line: str) -> None:
            _LOG.info(f"{relation}: {line}")

        with as_dbt_errors():
            wanted = read_model(model, self.schema_root(relation.schema))
            done = until_committed(lambda: write(wanted, tell), tell)
            return response_of(done, self._clustered(relation, wanted, tell) if clusters else None)

    def _clustered(
        self, relation: ZlayoutRelation, wanted: ModelWrite, tell: Callable[[str], None]
    ) -> ClusterSummary | None:
        """Clusters after a write if the model asks for it. The rows are committed already, so a failure only warns."""
        reclustering = wanted.table_config.reclustering
        if reclustering.mode == "off":
            return None
        try:
            table = ZTable.for_name(self.session(), relation.catalog_name)
            done = recluster(table, reclustering, wanted.cluster_settings, tell)
        except Exception as error:
            _tell(f"{relation}: the rows are written, but clustering failed: {spark_message(error)}")
            return None
        if done is not None and done.groups_failed:
            why = "\n".join(failed_lines(done))
            _tell(f"{relation}: the rows are written, but some groups of files could not be clustered:\n{why}")
        return done

    def _rows_of(self, code: str, model: Mapping[str, Any]) -> DataFrame:
        if model.get("language") == "python":
            return python_frame(self.session(), code, str(model["name"]))
        return self._query(code)

    def _query(self, sql: str) -> DataFrame:
        _, cursor = self.connections.add_select_query(sql)
        frame: DataFrame = cursor.dataframe
        return frame

    def _seed_columns(self, rows: Any, config: Mapping[str, Any]) -> tuple[Sequence[str], Sequence[str], Sequence[str]]:
        adapter: Any = self
        found = [adapter.convert_type(rows, number) for number in range(len(rows.column_names))]
        wanted = config.get("column_types") or {}
        types = [wanted.get(name, kind) for name, kind in zip(rows.column_names, found, strict=True)]
        names = [adapter.quote_seed_column(name, config.get("quote_columns")) for name in rows.column_names]
        return found, types, names


def _tell(sentence: str) -> None:
    """Warns after a commit. dbt's own warnings can raise (--warn-error); the next run would then add the rows again."""
    _LOG.warning(sentence)


def _warn(sentence: str) -> None:
    warn_or_error(AdapterEventWarning(name="Zlayout", base_msg=sentence, args=[]))
