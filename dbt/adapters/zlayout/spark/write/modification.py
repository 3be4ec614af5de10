"""The request for a change of rows, apart from the change itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dbt.adapters.zlayout.config import TableConfig
from dbt.adapters.zlayout.spark.catalog.schema_evolution import OnSchemaChange
from dbt.adapters.zlayout.spark.catalog.session_catalog import TableName
from dbt.adapters.zlayout.spark.commit.publish import Description
from dbt.adapters.zlayout.spark.jobs.jobs import Progress
from dbt.adapters.zlayout.timeline.files.action import Operation
from dbt.adapters.zlayout.timeline.log.snapshot import Batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Modification:
    """A request for a change of rows, apart from the change itself.

    Attributes:
        name: Name of the table.
        operation: Operation, as the log names it.
        frame: Incoming rows. Their query has not run yet. None for a delete.
        settings: Settings for files written from now on. None keeps the table's settings.
        on_schema_change: What to do if the columns differ.
        description: New description of the table. None keeps the current one.
        column_comments: Comment of each column, by name.
        not_null: Top-level columns that must not hold nulls.
        progress: Called with a line of text as the work goes on.
        deleted_when: SQL condition over the incoming columns. A row that meets it is a delete. None if no row is one.
        stored_columns: Columns that are stored even if only this condition reads them.
        batch: Query and number of the stream's batch that holds the rows. A batch is applied only once.
    """

    name: TableName
    operation: Operation
    frame: DataFrame | None
    settings: TableConfig | None = None
    on_schema_change: OnSchemaChange = OnSchemaChange.FAIL
    description: Description | None = None
    column_comments: Mapping[str, str] = field(default_factory=dict)
    not_null: Sequence[str] = ()
    progress: Progress | None = None
    deleted_when: str | None = None
    stored_columns: Sequence[str] = ()
    batch: Batch | None = None
