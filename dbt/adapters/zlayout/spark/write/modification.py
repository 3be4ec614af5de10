"""What is asked of a change of rows besides the change itself."""

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
from dbt.adapters.zlayout.timeline.log.properties import Batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Modification:
    """What is asked for besides the change itself.

    Attributes:
        name: Of the table.
        operation: What the log calls it.
        frame: Rows that come; their query has not run yet. None for a delete.
        settings: Of the files written from now on; None for the table's own.
        on_schema_change: What becomes of columns that differ.
        description: What people read about the table from now on; None leaves it.
        column_comments: What people read about its columns, by name.
        not_null: Top-level columns that may hold no null.
        progress: Takes a line now and then.
        deleted_when: Which rows are deletes, SQL over the columns that they come with; None for none.
        stored_columns: Columns that only this condition reads and that are stored all the same.
        batch: Query and number of the batch of a stream that the rows are; it is taken once.
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
