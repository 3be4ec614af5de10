"""The adapter: the methods that dbt and its macros call. Each one takes the session and calls the Python API."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_args
from urllib.parse import unquote

from dbt.adapters.base.impl import ConstraintSupport, FreshnessResponse
from dbt.adapters.base.meta import available
from dbt.adapters.base.relation import BaseRelation, InformationSchema
from dbt.adapters.capability import Capability, CapabilityDict, CapabilitySupport, Support
from dbt.adapters.contracts.connection import AdapterResponse
from dbt.adapters.contracts.macros import MacroResolverProtocol
from dbt.adapters.spark.column import SparkColumn
from dbt.adapters.spark.impl import SparkAdapter
from dbt_common.clients.agate_helper import table_from_data
from dbt_common.contracts.constraints import ConstraintType
from dbt_common.contracts.metadata import CatalogTable
from dbt_common.events.functions import fire_event
from dbt_common.events.types import PrintEvent
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.zlayout.adapter.dbt_errors import as_dbt_errors, prefixing_dbt_errors, warn
from dbt.adapters.zlayout.adapter.materialize.changes_read import changes_relation
from dbt.adapters.zlayout.adapter.materialize.materialization import Materialization
from dbt.adapters.zlayout.adapter.materialize.model_settings import (
    contract_is_enforced,
    model_warnings,
    read_model,
    subject_of,
    unused_settings,
)
from dbt.adapters.zlayout.adapter.materialize.seed_frame import seed_frame, whole_file
from dbt.adapters.zlayout.adapter.node_lookup import Nodes, opened_table, table_of
from dbt.adapters.zlayout.adapter.operations import (
    advising,
    catalog_metadata,
    diagnostics,
    indexes,
    layout_reports,
    linting,
    maintenance,
    publishing,
    time_travel,
    why_run,
)
from dbt.adapters.zlayout.adapter.operations.arguments import reads_switches, whole_number
from dbt.adapters.zlayout.adapter.operations.compiled_queries import target_folder
from dbt.adapters.zlayout.adapter.operations.diagnostics import Columns
from dbt.adapters.zlayout.adapter.operations.locking import LOCK_FILE, check_table, lock_report, read_lock
from dbt.adapters.zlayout.adapter.output import printed_and_error
from dbt.adapters.zlayout.adapter.relation import ZlayoutColumn, ZlayoutRelation, as_dbt_relations, whole_table
from dbt.adapters.zlayout.adapter.response import ZlayoutAdapterResponse, with_clustering
from dbt.adapters.zlayout.adapter.session.connections import ZlayoutConnectionManager
from dbt.adapters.zlayout.adapter.session.launch import session_lines
from dbt.adapters.zlayout.config.settings import StrategyName
from dbt.adapters.zlayout.errors import ConfigError
from dbt.adapters.zlayout.predicate.literals import backquoted
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog, TableName
from dbt.adapters.zlayout.spark.commit.catalog_entries import drop_table, rename_table
from dbt.adapters.zlayout.spark.read.scan_log import SCANS_FOLDER, start_for_project
from dbt.adapters.zlayout.spark.read.values_condition import values_predicate
from dbt.adapters.zlayout.spark.schema.table_schema import string_literal
from dbt.adapters.zlayout.store import check_place
from dbt.adapters.zlayout.table.ztable import explain_query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Rows = list[dict[str, Any]]
_F = TypeVar("_F", bound=Callable[..., Any])


def for_macros(parse: Callable[[Callable[..., Any]], Any] = available.parse_none) -> Callable[[_F], _F]:
    """Gives a method to macros: its switches may be text, and its errors become dbt's.

    Args:
        parse: What macros get while dbt only parses the project: ``available.parse_none`` or ``available.parse_list``.
    """

    def wrapped(method: _F) -> _F:
        return cast(_F, parse(as_dbt_errors()(reads_switches(method))))

    return wrapped


class ZlayoutAdapter(SparkAdapter):
    """dbt-spark in session mode, with tables that are atomic, clustered and indexed."""

    Relation = ZlayoutRelation
    Column = ZlayoutColumn
    ConnectionManager = ZlayoutConnectionManager

    # A write checks not_null before it commits. Parquet tables cannot store the other constraints.
    CONSTRAINT_SUPPORT = {  # noqa: RUF012 # dbt declares it this way
        ConstraintType.check: ConstraintSupport.NOT_SUPPORTED,
        ConstraintType.not_null: ConstraintSupport.ENFORCED,
        ConstraintType.unique: ConstraintSupport.NOT_SUPPORTED,
        ConstraintType.primary_key: ConstraintSupport.NOT_SUPPORTED,
        ConstraintType.foreign_key: ConstraintSupport.NOT_SUPPORTED,
    }
    _capabilities = CapabilityDict(
        dict.fromkeys(
            (
                Capability.TableLastModifiedMetadata,
                Capability.TableLastModifiedMetadataBatch,
                Capability.GetCatalogForSingleRelation,
                Capability.SchemaMetadataByRelations,
                Capability.MicrobatchConcurrency,
            ),
            CapabilitySupport(Support.Full),
        )
    )

    @as_dbt_errors()
    def __init__(self, config: Any, mp_context: Any) -> None:
        super().__init__(config, mp_context)
        self._target = target_folder(config)
        parameters = getattr(config.credentials, "server_side_parameters", None) or {}
        start_for_project(parameters, None if self._target is None else self._target / SCANS_FOLDER)

    def session(self) -> SparkSession:
        """Returns the session of the thread's connection. The first call opens it."""
        found: SparkSession = self.connections.get_thread_connection().handle.session
        return found

    def execute_macro(
        self,
        macro_name: str,
        macro_resolver: Any = None,
        project: str | None = None,
        context_override: dict[str, Any] | None = None,
        kwargs: dict[Any, Any] | None = None,
        needs_conn: bool = False,
    ) -> Any:
        """Runs a macro. YAML reads the argument ``off`` of ``--args '{off: true}'`` as false, which is no name."""
        named = {"off" if name is False else name: value for name, value in (kwargs or {}).items()}
        return super().execute_macro(macro_name, macro_resolver, project, context_override, named, needs_conn)

    @classmethod
    def quote(cls, identifier: str | None) -> str:
        """Returns the name in backquotes. dbt's test tools pass the database, which is None in Spark."""
        return backquoted(str(identifier))

    def get_columns_in_relation(self, relation: BaseRelation) -> list[SparkColumn]:
        """Returns the columns of a table or view."""
        return [ZlayoutColumn(**vars(column)) for column in super().get_columns_in_relation(relation)]

    def valid_incremental_strategies(self) -> list[str]:
        """Returns the strategies that an incremental model can use."""
        return list(get_args(StrategyName))

    def debug_query(self) -> None:
        """Runs a statement for ``dbt debug``, then prints the session's versions, folders and capabilities."""
        super().debug_query()
        with as_dbt_errors():
            for line in session_lines(self.session(), self.config.credentials.location_root):
                fire_event(PrintEvent(msg=f"  {line}"))

    def _build_spark_relation_list(self, row_list: Any, relation_info_func: Callable[..., Any]) -> list[BaseRelation]:
        return as_dbt_relations(super()._build_spark_relation_list(row_list, relation_info_func))

    def calculate_freshness_from_metadata_batch(
        self,
        sources: list[BaseRelation],
        macro_resolver: MacroResolverProtocol | None = None,  # noqa: ARG002 - dbt passes it
    ) -> tuple[list[AdapterResponse | None], dict[BaseRelation, FreshnessResponse]]:
        """Returns when the rows of each source last changed. Leaves out those for which it is not known."""
        found = {}
        for source in sources:
            with suppress(DbtRuntimeError):
                found[source] = self._freshness(source)
        return [], found

    def calculate_freshness_from_metadata(
        self,
        source: BaseRelation,
        macro_resolver: MacroResolverProtocol | None = None,  # noqa: ARG002 - dbt passes it
    ) -> tuple[AdapterResponse | None, FreshnessResponse]:
        """Returns when the rows of a source last changed.

        Raises:
            DbtRuntimeError: It is not known, because dbt-zlayout neither writes nor indexes the source.
        """
        return None, self._freshness(source)

    @as_dbt_errors()
    def _freshness(self, source: BaseRelation) -> FreshnessResponse:
        changed_at = catalog_metadata.rows_changed_at(self.session(), ".".join(map(backquoted, _parts(source))))
        return self._create_freshness_response(changed_at, datetime.now(timezone.utc))

    def get_catalog_for_single_relation(self, relation: BaseRelation) -> CatalogTable | None:
        """Returns the columns and statistics of a table or view; None if it does not exist."""
        return catalog_metadata.catalog_table(self._catalog_rows([relation]))

    def _get_one_catalog_by_relations(
        self,
        information_schema: InformationSchema,  # noqa: ARG002 - dbt passes it
        relations: list[BaseRelation],
        used_schemas: frozenset[tuple[str, str]],  # noqa: ARG002 - dbt passes it
    ) -> Any:
        rows = self._catalog_rows(relations)
        return table_from_data(rows, list(dict.fromkeys(name for row in rows for name in row)))

    def _catalog_rows(self, relations: Iterable[BaseRelation]) -> list[dict[str, Any]]:
        """Returns the rows of dbt's catalog for some relations, one for each column. One statement for each schema."""
        names: dict[str, set[str]] = {}
        for relation in relations:
            schema, identifier = _parts(relation)
            names.setdefault(schema, set()).add(identifier)
        rows: list[dict[str, Any]] = []
        for schema, identifiers in names.items():
            for each in self._listed(schema, identifiers):
                rows += self._get_columns_for_catalog(each)
        return rows

    def _listed(self, schema: str, identifiers: set[str]) -> list[BaseRelation]:
        pattern = string_literal("|".join(sorted(identifiers)))
        try:
            _, found = self.execute(f"show table extended in {backquoted(schema)} like {pattern}", fetch=True)
            return self._build_spark_relation_list(found, self._get_relation_information)
        except DbtRuntimeError:
            # dbt-spark knows what the errors mean: there is no such schema, or its tables are listed in another way.
            listed = self.list_relations_without_caching(self.Relation.create(schema=schema))
            wanted = {identifier.lower() for identifier in identifiers}
            return [each for each in listed if str(each.identifier).lower() in wanted]

    def _get_columns_for_catalog(self, relation: BaseRelation) -> Iterable[dict[str, Any]]:
        """Adds comments and statistics to dbt-spark's catalog, and spells types as in Spark SQL."""
        with as_dbt_errors():
            entry = Catalog(self.session()).find(TableName(*_parts(relation)))
        columns = {} if entry is None else entry.columns()
        statistics = {} if entry is None else catalog_metadata.statistics(self.session(), entry)
        for column in super()._get_columns_for_catalog(relation):
            column_type, comment = columns.get(column["column_name"], (column["column_type"], None))
            yield {
                **column,
                **statistics,
                "table_comment": entry.comment if entry is not None else None,
                "column_type": column_type,
                "column_comment": comment,
            }

    @for_macros()
    def drop_table(self, relation: ZlayoutRelation) -> None:
        """Drops a table. Removes its folder if this adapter, or dbt-spark under ``location_root``, created it."""
        drop_table(self.session(), *_parts(relation), self.schema_root(relation.schema))

    @for_macros()
    def drop_tables_in(self, schema_relation: ZlayoutRelation) -> None:
        """Drops the tables of a schema with their folders. Views and other formats are dropped with the schema."""
        for relation in self.list_relations_without_caching(schema_relation):
            if isinstance(relation, ZlayoutRelation) and relation.is_plain_table:
                self.drop_table(relation)

    @for_macros()
    def rename_table(self, old: ZlayoutRelation, new: ZlayoutRelation) -> None:
        """Renames a table. Its files stay where they are."""
        rename_table(self.session(), *_parts(old), *_parts(new))

    @for_macros()
    def schema_root(self, schema: str | None) -> str | None:
        """Returns the folder that the profile sets for the tables of a schema, or None."""
        root: str | None = self.config.credentials.schema_root(schema)
        return root

    @for_macros()
    def new_schema_root(self, schema: str | None) -> str | None:
        """Returns the folder of a schema that dbt is about to create, or None. Checks that the folder is writable.

        Raises:
            DbtRuntimeError: The folder is not writable.
        """
        root: str | None = self.schema_root(schema)
        if root is not None:
            check_place(root)
        return root

    @for_macros()
    def place_outside_schema(self, relation: ZlayoutRelation) -> str | None:
        """Returns the table's folder under ``location_root``, or None if that is in the schema's own folder."""
        schema, identifier = _parts(relation)
        root = self.schema_root(schema)
        if root is None:
            return None
        catalog = Catalog(self.session())
        # Spark normalizes both, because one folder can be written as several URIs.
        place = catalog.qualified(unquote(catalog.schema_location(schema)))
        return None if place == catalog.qualified(root) else f"{root}/{identifier}"

    @for_macros()
    def check_model(self, model: dict[str, Any]) -> None:
        """Checks the settings of a node and warns about constraints that are not enforced.

        Raises:
            CompilationError: A setting is wrong. The message names every wrong one. Or the node has grants, and the
                session cannot grant.
        """
        self._check_grants(model)
        for sentence in model_warnings(read_model(model, None)):
            warn(f"{subject_of(model)}: {sentence}")
        if contract_is_enforced(model["config"]):
            # dbt warns while it renders the constraints. A Parquet table cannot store the rendered text.
            self.render_raw_columns_constraints(raw_columns=model["columns"])
            self.render_raw_model_constraints(raw_constraints=model["constraints"])

    @for_macros()
    def check_settings_without_files(self, model: dict[str, Any]) -> None:
        """Warns about table settings on a node that this adapter does not write as a table.

        Raises:
            CompilationError: A key looks like a misspelling of one of this adapter's keys. Or the node has grants, and
                the session cannot grant.
        """
        self._check_grants(model)
        for sentence in unused_settings(model):
            warn(f"{subject_of(model)}: {sentence}")

    @for_macros()
    def changes_relation(
        self,
        relation: ZlayoutRelation | str,
        this: ZlayoutRelation,
        model: Mapping[str, Any],
        unique_key: list[str] | str | None,
        is_increment: bool,
    ) -> ZlayoutRelation | str:
        """Returns the changes of a table since the last run of a model, as a temporary view. See `zlayout_changes`."""
        # Jinja's flags lack `sample`.
        takes_all = not any(getattr(self.config.args, flag, None) for flag in ("empty", "sample"))
        return changes_relation(
            self.session(), relation, this, model, unique_key, is_increment=is_increment, takes_all=takes_all
        )

    @for_macros()
    def why_run_report(self, model: str | None, nodes: Nodes, as_json: bool) -> str:
        """Returns the text that zlayout_why_run prints: what would make one model run, or each model of the project."""
        return why_run.why_run_report(self.session(), model, nodes, self.schema_root, as_json)

    @for_macros()
    def write_table(
        self, relation: ZlayoutRelation, code: str, model: dict[str, Any], may_skip: bool = False
    ) -> ZlayoutAdapterResponse:
        """Runs a model's code once. Its rows replace the table in a new version, unless the run may be skipped."""
        return self._materialization(relation, model).write_table(code, may_skip)

    @for_macros()
    def write_increment(self, relation: ZlayoutRelation, code: str, model: dict[str, Any]) -> ZlayoutAdapterResponse:
        """Runs a model's code once and writes its rows by the model's strategy, unless the run may be skipped."""
        return self._materialization(relation, model).write_increment(code)

    @for_macros()
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
        config = model["config"]
        wanted = config.get("column_types") or {}
        typed = rows if len(rows.rows) else whole_file(rows, config)
        found = [str(self.convert_type(typed, number)) for number in range(len(rows.column_names))]
        types = [wanted.get(name, kind) for name, kind in zip(rows.column_names, found, strict=True)]
        names = [self.quote_seed_column(name, config.get("quote_columns")) for name in rows.column_names]
        frame = seed_frame(self.session(), rows, found, types, names)
        return self._materialization(relation, model).write_seed(frame, keeps_columns)

    @for_macros()
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
        return self._materialization(relation, model).write_snapshot(changes_sql, columns)

    @for_macros()
    def explain_pruning(self, relation: ZlayoutRelation | str, predicate: str) -> dict[str, Any]:
        """Returns which files of a table a filter reads, and why, as `Explanation.to_dict`."""
        return opened_table(self.session(), relation).explain(predicate).to_dict()

    @for_macros(available.parse_list)
    def explain_query(self, sql: str) -> Rows:
        """Returns which files each scan of a query reads, and why, as `Explanation.to_dict`."""
        return [explanation.to_dict() for explanation in explain_query(self.session(), sql)]

    @for_macros()
    def explain_report(
        self, sql: str | None, table: str | None, predicate: str | None, as_json: bool, verbose: bool
    ) -> str:
        """Returns the text that the run-operation zlayout_explain prints."""
        return diagnostics.explain_report(
            self.session(), sql=sql, table=table, predicate=predicate, as_json=as_json, verbose=verbose
        )

    @for_macros()
    def clustering_information(
        self, relation: ZlayoutRelation | str, columns: Columns = None, predicate: str | None = None
    ) -> dict[str, Any]:
        """Returns how well a table is laid out, as `ClusteringInformation.to_dict`."""
        return opened_table(self.session(), relation).clustering_information(columns, predicate=predicate).to_dict()

    @for_macros()
    def information_report(self, table: str, columns: Columns, as_json: bool, verbose: bool = False) -> str:
        """Returns the text that zlayout_info prints: the verdict on a table, its state, and its layout."""
        return diagnostics.information_report(self.session(), table, columns, as_json, verbose)

    @for_macros()
    def layout_report(self, title: str, model: str | None, nodes: Nodes, path: str | None, as_json: bool) -> str:
        """Writes the layout report of one table, or of the project. Returns the text that zlayout_report prints."""
        file = None if path is None else str(self._in_project(path))
        return layout_reports.layout_report(self.session(), title, model, nodes, file, as_json, target=self._target)

    @for_macros(available.parse_list)
    def depth_problems(self, relation: ZlayoutRelation | str, most: object, columns: Columns = None) -> Rows:
        """Returns the rows of the test zlayout_depth_at_most: one if the average depth is above ``most``, else none."""
        return diagnostics.depth_problems(self.session(), relation, most, columns)

    @for_macros(available.parse_list)
    def pruning_problems(self, relation: ZlayoutRelation | str, predicate: str, percent: object) -> Rows:
        """Returns the rows of the test zlayout_prunes_at_least: one if a condition skips too few files, else none."""
        return diagnostics.pruning_problems(self.session(), relation, predicate, percent)

    @for_macros(available.parse_list)
    def index_status(self, relation: ZlayoutRelation | str) -> Rows:
        """Returns the problems of a table's index as ``path`` and ``reason``. Empty if the index is fresh."""
        table = opened_table(self.session(), whole_table(relation, "zlayout_index_fresh"))
        rows: Rows = table.index_status().to_pylist()
        diagnostics.log_failures(f"{table.name}: {row['path']}: {row['reason']}" for row in rows)
        return rows

    @for_macros()
    def refresh_index(
        self, relation: ZlayoutRelation | str, take_orphans: bool = False, drop_missing: bool = False
    ) -> dict[str, Any]:
        """Brings the index of a Parquet table up to date with its live files. Creates the index if there is none."""
        return indexes.refresh_index(self.session(), relation, take_orphans, drop_missing)

    @for_macros()
    def refresh_report(
        self, model: str | None, nodes: Nodes, sources: Nodes, take_orphans: bool, drop_missing: bool, as_json: bool
    ) -> str:
        """Refreshes one index, or all in the project. Returns the text that zlayout_refresh_index prints."""
        return indexes.refresh_report(
            self.session(),
            model,
            nodes,
            sources,
            take_orphans=take_orphans,
            drop_missing=drop_missing,
            as_json=as_json,
        )

    @for_macros()
    def index_report(
        self,
        model: str,
        nodes: Nodes,
        bloom: list[str] | str | None,
        lookup: list[str | list[str]] | str | None,
        stats_expressions: list[str] | str | None,
        drop: bool,
        schedule: bool,
        execute: bool,
        as_json: bool,
    ) -> str:
        """Adds optional parts of a table's index or takes them away. Returns the text that zlayout_index prints."""
        return indexes.index_report(
            self.session(),
            model,
            nodes,
            bloom=bloom,
            lookup=lookup,
            stats_expressions=stats_expressions,
            drop=drop,
            schedule=schedule,
            execute=execute,
            as_json=as_json,
        )

    @for_macros(available.parse_list)
    def verify_index(self, relation: ZlayoutRelation | str, data: bool = False) -> Rows:
        """Returns the wrong cells of a table's index: ``path``, ``column``, ``cell``, ``stored``, ``found``."""
        table = opened_table(self.session(), whole_table(relation, "zlayout_index_exact"))
        rows: Rows = table.verify(data).to_pylist()
        diagnostics.log_failures(f"{table.name}: {indexes.cell_text(row)}" for row in rows)
        return rows

    @for_macros()
    def verify_report(self, model: str | None, nodes: Nodes, sources: Nodes, data: bool, as_json: bool) -> str:
        """Verifies one index, or all in the project. Returns the text that zlayout_verify prints."""
        return indexes.verify_report(self.session(), model, nodes, sources, data, as_json)

    @for_macros()
    def advise_report(
        self, model: str | None, nodes: Nodes, predicates: object, min_gain: object, as_json: bool
    ) -> str:
        """Returns the text that the run-operation zlayout_advise prints."""
        return advising.advise_report(
            self.session(), model, nodes, self._target, predicates=predicates, min_gain=min_gain, as_json=as_json
        )

    @for_macros()
    def lint_report(
        self, model: str | None, nodes: Nodes, kind: str, fail: bool, as_json: bool = False
    ) -> tuple[str, str | None]:
        """Returns what zlayout_lint prints, and the error with which it ends; None without one."""
        linting.check_format(kind)
        linted = linting.lint_project(self.session(), model, nodes, self._target)
        kind = "json" if as_json else kind
        text = linting.lint_text(linted, kind)
        error = "zlayout_lint: conditions cannot skip files" if fail and linted.findings else None
        return printed_and_error(text, error, for_programs=kind != "text")

    @for_macros()
    def lock_report(
        self, model: str | None, nodes: Nodes, check: bool, path: str | None, tolerance: object, as_json: bool
    ) -> tuple[str, str | None]:
        """Returns what zlayout_lock prints, and the error with which it ends; None without one."""
        file, target = self._in_project(path or LOCK_FILE), self._target
        text, passes = lock_report(
            self.session(), model, nodes, target, file, check=check, tolerance=tolerance, as_json=as_json
        )
        error = None if passes else "zlayout_lock: the check failed"
        return printed_and_error(text, error, for_programs=as_json)

    @for_macros(available.parse_list)
    def lock_problems(self, relation: ZlayoutRelation | str, path: str | None) -> Rows:
        """Returns the rows of the test zlayout_reads_as_locked: one for each condition that reads more than locked."""
        table = opened_table(self.session(), whole_table(relation, "zlayout_reads_as_locked"))
        names = ("table", "condition", "sentence", "cause")
        found = check_table(table, read_lock(self._in_project(path or LOCK_FILE)))
        diagnostics.log_failures(each.sentence() for each in found)
        return [{name: each.to_dict()[name] for name in names} for each in found]

    @for_macros()
    def cluster(
        self,
        relation: ZlayoutRelation | str,
        config: Mapping[str, Any] | None = None,
        nodes: Nodes | None = None,
        **given: Any,
    ) -> dict[str, Any]:
        """Clusters a table where it pays off.

        Args:
            relation: The table.
            config: The config of its model. Its clustering settings apply unless the call overrides them.
            nodes: Where to find that config if it is not given: the nodes of the project.
            **given: Keywords of ``ZTable.cluster``.

        Returns:
            `ClusterSummary.to_dict`.
        """
        return maintenance.cluster(self.session(), relation, config, nodes or {}, given)

    @available
    def with_clustering(self, response: ZlayoutAdapterResponse, done: Mapping[str, Any]) -> ZlayoutAdapterResponse:
        """Returns the response of a run whose hook clustered its table. The macro zlayout_cluster calls it."""
        return with_clustering(response, done)

    @for_macros()
    def cluster_report(self, model: str | None, nodes: Nodes, as_json: bool, **given: Any) -> str:
        """Clusters one table, or all managed tables of the project. Returns the text that zlayout_cluster prints."""
        return maintenance.cluster_report(self.session(), model, nodes, as_json, given)

    @for_macros()
    def compaction_report(self, model: str | None, nodes: Nodes, as_json: bool, **given: Any) -> str:
        """Compacts one table, or all merge-on-read tables. Returns the text that zlayout_compact prints."""
        return maintenance.compaction_report(self.session(), model, nodes, as_json, given)

    @for_macros(available.parse_list)
    def compaction_problems(
        self, relation: ZlayoutRelation | str, commits: object = None, log_bytes: object = None, hours: object = None
    ) -> Rows:
        """Returns the rows of the test zlayout_compaction_lag_at_most: one for each limit that the logs exceed."""
        return maintenance.compaction_problems(self.session(), relation, commits, log_bytes, hours)

    @for_macros()
    def relation_at(
        self,
        relation: ZlayoutRelation | str,
        model: Mapping[str, Any],
        version: int | str | None,
        instant: int | str | None,
        timestamp: Any,
    ) -> ZlayoutRelation:
        """Returns a version of a table as a temporary view. Limits of the relation (``--empty``) apply to the view too.

        Raises:
            CompilationError: The calling node is itself a view, or not exactly one of the three arguments is given.
            DbtRuntimeError: The version does not exist.
        """
        return time_travel.relation_at(self.session(), relation, model, version, instant, timestamp)

    @for_macros()
    def history_report(self, table: str, limit: int | str | None, as_json: bool) -> str:
        """Returns the text that the run-operation zlayout_history prints."""
        return time_travel.history_report(self.session(), table, limit, as_json)

    @for_macros()
    def rollback_report(
        self, table: str, version: int | str | None, instant: int | str | None, timestamp: Any, as_json: bool
    ) -> str:
        """Rolls a table back. Returns the text that the run-operation zlayout_rollback prints."""
        return time_travel.rollback_report(self.session(), table, version, instant, timestamp, as_json)

    @for_macros()
    def clean_report(
        self,
        model: str | None,
        nodes: Nodes,
        dry_run: bool,
        retain_versions: int | str | None,
        retain_hours: float | str | None,
        as_json: bool,
    ) -> str:
        """Cleans one table, or all managed tables of the project. Returns the text that zlayout_clean prints."""
        return time_travel.clean_report(
            self.session(),
            model,
            nodes,
            dry_run=dry_run,
            retain_versions=retain_versions,
            retain_hours=retain_hours,
            as_json=as_json,
        )

    @for_macros()
    def publish_report(
        self,
        model: str | None,
        nodes: Nodes,
        formats: list[str] | None,
        publish_catalog: str | None,
        off: bool,
        as_json: bool,
    ) -> str:
        """Publishes one table, or all managed tables of the project. Returns the text that zlayout_publish prints."""
        return publishing.publish_report(self.session(), model, nodes, formats, publish_catalog, as_json, off=off)

    @for_macros(available.parse(lambda *_, **__: "true"))
    def prune_by(self, column: str, query: str, max_values: int, max_ranges: int) -> str:
        """Returns a condition that is true wherever a column has one of a query's values, from `values_predicate`.

        Raises:
            CompilationError: A limit is not a whole number of at least 1.
            DbtRuntimeError: The query failed, or the type of its column has no literals.
        """
        values = whole_number("zlayout_prune_by: max_values", max_values, least=1)
        ranges = whole_number("zlayout_prune_by: max_ranges", max_ranges, least=1)
        return values_predicate(self.session(), column, query.strip().rstrip(";"), values, ranges)

    @for_macros()
    def table_named(self, name: str, nodes: Nodes) -> str:
        """Returns the table of a model, given the model's name or ``schema.table``."""
        return table_of(name, nodes)

    @available
    def run_hooks(
        self, run: Callable[..., object], kind: str, hooks: Sequence[Mapping[str, Any]], response: object = None
    ) -> None:
        """Runs the hooks of a model one by one, so that the error of a failed hook names the hook.

        Spark has no transactions, so hooks with ``transaction: false`` run like the others, without the ``commit`` that
        dbt would run first.

        Args:
            run: dbt's macro ``run_hooks``.
            kind: ``pre-hook`` or ``post-hook``.
            hooks: What to run, in this order.
            response: What the model has done; None before it.
        """
        done = f" after the model itself succeeded ({response})"
        outcome = ", so the model did not run" if response is None else done
        for number, hook in enumerate(hooks, 1):
            which = f"{kind} {number} of {len(hooks)}" if len(hooks) > 1 else kind
            with prefixing_dbt_errors(f"{which} failed{outcome}"):
                run([{"sql": hook["sql"], "transaction": True}])

    @available
    def string_literal(self, text: object) -> str:
        """Returns the text as a string literal of Spark SQL."""
        return string_literal(str(text))

    def _check_grants(self, model: Mapping[str, Any]) -> None:
        """Refuses grants before anything is written: dbt grants when the table is complete."""
        if not model["config"].get("grants") or (problem := Catalog(self.session()).grant_problem()) is None:
            return
        advice = (
            "remove the key (for a whole folder, +grants in dbt_project.yml), and manage permissions where the catalog"
            " or the storage keeps them"
        )
        raise ConfigError([f"grants: this Spark cannot grant ({problem}); {advice}"], subject_of(model))

    def _in_project(self, path: str) -> Path:
        return Path(str(self.config.project_root)) / path

    def _materialization(self, relation: ZlayoutRelation, model: Mapping[str, Any]) -> Materialization:
        return Materialization(self.session(), relation, model, self.schema_root(relation.schema), self._query)

    def _query(self, sql: str) -> DataFrame:
        _, cursor = self.connections.add_select_query(sql)
        frame: DataFrame = cursor.dataframe
        return frame


def _parts(relation: BaseRelation) -> tuple[str, str]:
    return str(relation.schema), str(relation.identifier)
