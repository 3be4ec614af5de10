"""Change feeds: which of the rows that come are deletes, told by a condition on the columns that they come with."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import functions

from dbt.adapters.zlayout.errors import ConfigError
from dbt.adapters.zlayout.spark.jobs.jobs import Progress, short_message
from dbt.adapters.zlayout.spark.schema.log_columns import DELETED
from dbt.adapters.zlayout.spark.schema.table_schema import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class ChangeFeed:
    """Rows of which some are deletes, for a table that is yet to be built.

    Attributes:
        deleted_when: Which rows are deletes, SQL over the columns that they come with.
        unique_key: Columns by which a delete finds its row.
        stored_columns: Columns that only the condition reads and that are stored all the same.
    """

    deleted_when: str
    unique_key: tuple[str, ...]
    stored_columns: tuple[str, ...] = ()


def with_deletes(
    frame: DataFrame, condition: str, stored: Collection[str], subject: str, progress: Progress | None = None
) -> DataFrame:
    """The rows with the column `DELETED`, and without columns that only the condition reads.

    Args:
        frame: Rows as they come; their query has not run yet.
        condition: SQL over their columns; a row of which it is not TRUE is no delete.
        stored: Columns that the table has or shall have, in any case.
        subject: The table, for errors.
        progress: Gets a line about columns that are left out.

    Raises:
        ConfigError: The condition does not fit the rows.
    """
    try:
        # Asked for as a filter, since a filter takes a condition and nothing else.
        frame.where(condition)
        told: Any = frame.select(functions.expr(condition))
    except (AnalysisException, ParseException) as error:
        why = short_message(error).splitlines()[0]
        listed = ", ".join(frame.columns)
        raise ConfigError(
            [f"deleted_when: {condition!r} is no condition over the columns {listed}: {why}; write SQL as after WHERE"],
            subject,
        ) from error
    read = told._jdf.queryExecution().analyzed().references().toSeq()
    known = {name.lower() for name in stored}
    only_read = {read.apply(number).name() for number in range(read.size())} - {
        name for name in frame.columns if name.lower() in known
    }
    left_out = [name for name in frame.columns if name in only_read]
    if left_out and progress is not None:
        progress(f"deleted_when reads {', '.join(left_out)}, which the table does not have; it is not stored")
    deleted = functions.coalesce(functions.expr(condition), functions.lit(False))
    kept = [functions.col(quoted(name)) for name in frame.columns if name not in only_read]
    return frame.select(*kept, deleted.alias(DELETED))


def with_deleted_column(schema_json: str) -> str:
    """A table's columns, as Spark's JSON, and `DELETED` after them."""
    fields = json.loads(schema_json)["fields"]
    deleted = {"name": DELETED, "type": "boolean", "nullable": True, "metadata": {}}
    return json.dumps({"type": "struct", "fields": [*fields, deleted]}, ensure_ascii=False)


def says_deletes(frame: DataFrame) -> bool:
    """Whether some of the rows may be deletes."""
    return DELETED in frame.columns


def upserts_of(frame: DataFrame) -> DataFrame:
    """The rows that are no deletes, without the column that says so."""
    return frame.where(f"not {DELETED}").drop(DELETED) if says_deletes(frame) else frame
