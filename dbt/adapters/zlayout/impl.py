"""The adapter: what dbt and its macros call; each method takes the session, calls the facade and shapes the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from dbt.adapters.base.impl import ConstraintSupport
from dbt.adapters.base.meta import available
from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.events.types import AdapterEventWarning
from dbt.adapters.spark.column import SparkColumn
from dbt.adapters.spark.impl import SparkAdapter
from dbt_common.contracts.constraints import ConstraintType
from dbt_common.events.functions import fire_event, warn_or_error
from dbt_common.events.types import PrintEvent

from dbt.adapters.zlayout.column import ZlayoutColumn
from dbt.adapters.zlayout.connections import ZlayoutConnectionManager
from dbt.adapters.zlayout.dbt_errors import as_dbt_errors
from dbt.adapters.zlayout.debug import session_report
from dbt.adapters.zlayout.diagnostics import Diagnostics
from dbt.adapters.zlayout.model_config import ZlayoutConfig
from dbt.adapters.zlayout.model_write import read_model, write_model
from dbt.adapters.zlayout.relation import ZlayoutRelation
from dbt.adapters.zlayout.response import ZlayoutAdapterResponse, response_of
from dbt.adapters.zlayout.spark.catalog import Catalog, TableName
from dbt.adapters.zlayout.spark.remove import drop_table, rename_table
from dbt.adapters.zlayout.sql_literals import quoted_identifier

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG = AdapterLogger("Zlayout")


class ZlayoutAdapter(Diagnostics, SparkAdapter):
    """dbt-spark in a session, with tables that are atomic, clustered and indexed."""

    Relation = ZlayoutRelation
    Column = ZlayoutColumn
    ConnectionManager = ZlayoutConnectionManager
    AdapterSpecificConfigs = ZlayoutConfig

    # A zordered_table checks not_null before its commit; a Parquet table has no place for the others.
    CONSTRAINT_SUPPORT = {  # noqa: RUF012 # dbt declares it so
        ConstraintType.check: ConstraintSupport.NOT_SUPPORTED,
        ConstraintType.not_null: ConstraintSupport.ENFORCED,
        ConstraintType.unique: ConstraintSupport.NOT_SUPPORTED,
        ConstraintType.primary_key: ConstraintSupport.NOT_SUPPORTED,
        ConstraintType.foreign_key: ConstraintSupport.NOT_SUPPORTED,
    }

    def session(self) -> SparkSession:
        """The session of the thread's connection, which opens it when it is the first to ask."""
        found: SparkSession = self.connections.get_thread_connection().handle.session
        return found

    @classmethod
    def quote(cls, identifier: str) -> str:
        """A name in backquotes."""
        return quoted_identifier(identifier)

    def get_columns_in_relation(self, relation: BaseRelation) -> list[SparkColumn]:
        """The columns of a table or view."""
        return [ZlayoutColumn(**vars(column)) for column in super().get_columns_in_relation(relation)]

    def debug_query(self) -> None:
        """Runs a statement for ``dbt debug`` and prints what the session is and can do."""
        super().debug_query()
        for line in session_report(self.session(), self.config.credentials.location_root):
            fire_event(PrintEvent(msg=f"  {line}"))

    @available.parse_none
    def check_zordered_model(self, model: dict[str, Any]) -> None:
        """Checks a model's settings, and warns of constraints that nobody enforces.

        Raises:
            CompilationError: Names every wrong setting.
        """
        with as_dbt_errors():
            read_model(model, None)
        if (model["config"].get("contract") or {}).get("enforced"):
            # dbt warns while it renders; the text itself has no place in a Parquet table.
            self.render_raw_columns_constraints(raw_columns=model["columns"])
            self.render_raw_model_constraints(raw_constraints=model["constraints"])

    @available.parse_none
    def write_zordered_table(
        self, relation: ZlayoutRelation, sql: str, model: dict[str, Any]
    ) -> ZlayoutAdapterResponse:
        """Runs a model's query once and makes its rows the table's new version."""
        with as_dbt_errors():
            wanted = read_model(model, self.schema_root(relation.schema))
            _, cursor = self.connections.add_select_query(sql)
            commit = write_model(
                relation.catalog_name,
                cursor.dataframe,
                wanted,
                warn=_warn,
                progress=lambda line: _LOG.info(f"{relation}: {line}"),
            )
            return response_of(commit)

    @available.parse_none
    def drop_table(self, relation: ZlayoutRelation) -> None:
        """Drops a table and removes its folder, if this adapter made it or dbt-spark did under ``location_root``."""
        with as_dbt_errors():
            drop_table(self.session(), *_parts(relation), self.schema_root(relation.schema))

    @available.parse_none
    def drop_tables_in(self, schema_relation: ZlayoutRelation) -> None:
        """Drops the tables of a schema with their folders; other formats and views go with the schema."""
        for relation in self.list_relations_without_caching(schema_relation):
            if isinstance(relation, ZlayoutRelation) and relation.is_plain_table:
                self.drop_table(relation)

    @available.parse_none
    def rename_table(self, old: ZlayoutRelation, new: ZlayoutRelation) -> None:
        """Renames a table; its files stay where they are."""
        with as_dbt_errors():
            rename_table(self.session(), *_parts(old), *_parts(new))

    @available.parse_none
    def is_versioned(self, relation: ZlayoutRelation) -> bool:
        """Whether a table is managed by this adapter: an INSERT of Spark's would add rows that nobody sees."""
        with as_dbt_errors():
            entry = Catalog(self.session()).find(TableName(*_parts(relation)))
            return entry is not None and entry.table_id is not None

    @available.parse_none
    def schema_root(self, schema: str | None) -> str | None:
        """The profile's folder for the tables of a schema, or None."""
        root: str | None = self.config.credentials.schema_root(schema)
        return root

    @available.parse_none
    def place_outside_schema(self, relation: ZlayoutRelation) -> str | None:
        """Where ``location_root`` wants a table whose schema lies elsewhere, or None where its folder will do."""
        schema, identifier = _parts(relation)
        root = self.schema_root(schema)
        if root is None:
            return None
        with as_dbt_errors():
            catalog = Catalog(self.session())
            # Both through Spark's hands: one folder has several spellings as a URI.
            place = catalog.qualified(unquote(catalog.schema_location(schema)))
            return None if place == catalog.qualified(root) else f"{root}/{identifier}"


def _parts(relation: ZlayoutRelation) -> tuple[str, str]:
    return str(relation.schema), str(relation.identifier)


def _warn(sentence: str) -> None:
    warn_or_error(AdapterEventWarning(name="Zlayout", base_msg=sentence, args=[]))
