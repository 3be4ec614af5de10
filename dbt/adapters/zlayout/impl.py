"""The adapter: the methods that dbt and its macros call. Each one takes the session and calls the Python API."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args
from urllib.parse import unquote

from dbt.adapters.base.impl import ConstraintSupport
from dbt.adapters.base.meta import available
from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.spark.column import SparkColumn
from dbt_common.contracts.constraints import ConstraintType
from dbt_common.events.functions import fire_event
from dbt_common.events.types import PrintEvent

from dbt.adapters.zlayout.adapter.catalog.docs_catalog import DocsCatalog
from dbt.adapters.zlayout.adapter.catalog.relation_listing import RecordRelations
from dbt.adapters.zlayout.adapter.column import ZlayoutColumn
from dbt.adapters.zlayout.adapter.dbt_errors import as_dbt_errors
from dbt.adapters.zlayout.adapter.materialize.materializing import Materializing
from dbt.adapters.zlayout.adapter.operations.clustering import ClusterOperations
from dbt.adapters.zlayout.adapter.operations.compaction import CompactionOperations
from dbt.adapters.zlayout.adapter.operations.diagnostics import Diagnostics
from dbt.adapters.zlayout.adapter.operations.indexes import IndexOperations
from dbt.adapters.zlayout.adapter.operations.query_values import QueryValues
from dbt.adapters.zlayout.adapter.operations.time_travel import TimeTravel
from dbt.adapters.zlayout.adapter.relation import ZlayoutRelation
from dbt.adapters.zlayout.adapter.session.connections import ZlayoutConnectionManager
from dbt.adapters.zlayout.adapter.session.debug import session_report
from dbt.adapters.zlayout.adapter.sql_literals import quoted_identifier
from dbt.adapters.zlayout.config.settings import StrategyName
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog
from dbt.adapters.zlayout.spark.write.remove import drop_table, rename_table
from dbt.adapters.zlayout.store import check_place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class ZlayoutAdapter(
    Materializing,
    Diagnostics,
    QueryValues,
    IndexOperations,
    ClusterOperations,
    CompactionOperations,
    TimeTravel,
    RecordRelations,
    DocsCatalog,
):
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

    def session(self) -> SparkSession:
        """The session of the thread's connection. The first call opens it."""
        found: SparkSession = self.connections.get_thread_connection().handle.session
        return found

    @classmethod
    def quote(cls, identifier: str | None) -> str:
        """The name in backquotes. dbt's test tools pass the database, which is None in Spark, hence the ``str()``."""
        return quoted_identifier(str(identifier))

    def get_columns_in_relation(self, relation: BaseRelation) -> list[SparkColumn]:
        """The columns of a table or view."""
        return [ZlayoutColumn(**vars(column)) for column in super().get_columns_in_relation(relation)]

    def valid_incremental_strategies(self) -> list[str]:
        """The strategies that an incremental model can use."""
        return list(get_args(StrategyName))

    def debug_query(self) -> None:
        """Runs a statement for ``dbt debug``, then prints the session's versions, folders and capabilities."""
        super().debug_query()
        with as_dbt_errors():
            for line in session_report(self.session(), self.config.credentials.location_root):
                fire_event(PrintEvent(msg=f"  {line}"))

    @available.parse_none
    def drop_table(self, relation: ZlayoutRelation) -> None:
        """Drops a table. Removes its folder if this adapter, or dbt-spark under ``location_root``, created it."""
        with as_dbt_errors():
            drop_table(self.session(), *_parts(relation), self.schema_root(relation.schema))

    @available.parse_none
    def drop_tables_in(self, schema_relation: ZlayoutRelation) -> None:
        """Drops the tables of a schema with their folders. Views and other formats are dropped with the schema."""
        for relation in self.list_relations_without_caching(schema_relation):
            if isinstance(relation, ZlayoutRelation) and relation.is_plain_table:
                self.drop_table(relation)

    @available.parse_none
    def rename_table(self, old: ZlayoutRelation, new: ZlayoutRelation) -> None:
        """Renames a table. Its files stay where they are."""
        with as_dbt_errors():
            rename_table(self.session(), *_parts(old), *_parts(new))

    @available.parse_none
    def schema_root(self, schema: str | None) -> str | None:
        """The folder that the profile sets for the tables of a schema, or None."""
        root: str | None = self.config.credentials.schema_root(schema)
        return root

    @available.parse_none
    def new_schema_root(self, schema: str | None) -> str | None:
        """The folder of a schema that dbt is about to create, or None. Checks that the folder is writable.

        Raises:
            DbtRuntimeError: The folder is not writable.
        """
        root: str | None = self.schema_root(schema)
        if root is not None:
            with as_dbt_errors():
                check_place(root)
        return root

    @available.parse_none
    def place_outside_schema(self, relation: ZlayoutRelation) -> str | None:
        """The table's folder under ``location_root``, or None if the schema's own folder already is the right one."""
        schema, identifier = _parts(relation)
        root = self.schema_root(schema)
        if root is None:
            return None
        with as_dbt_errors():
            catalog = Catalog(self.session())
            # Spark normalizes both, because one folder can be written as several URIs.
            place = catalog.qualified(unquote(catalog.schema_location(schema)))
            return None if place == catalog.qualified(root) else f"{root}/{identifier}"


def _parts(relation: ZlayoutRelation) -> tuple[str, str]:
    return str(relation.schema), str(relation.identifier)
