"""The changes of other tables since a model's last run: the view that the model reads, and how far its run gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dbt.adapters.contracts.relation import Path
from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import CompilationError

from dbt.adapters.zlayout.adapter.dbt_errors import warn
from dbt.adapters.zlayout.adapter.materialize.model_settings import ModelSettings, keeps_rows, read_model
from dbt.adapters.zlayout.adapter.relation import ZlayoutRelation, view_name
from dbt.adapters.zlayout.config.column_names import parse_no_expressions
from dbt.adapters.zlayout.config.incremental import IncrementalConfig
from dbt.adapters.zlayout.errors import (
    ConfigError,
    TableNotFoundError,
    UnsupportedError,
    VersionNotFoundError,
    WriteError,
)
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog
from dbt.adapters.zlayout.spark.read.query_inputs import TableRead, temporary_views
from dbt.adapters.zlayout.spark.read.session import holds_table
from dbt.adapters.zlayout.spark.schema.types import columns_of
from dbt.adapters.zlayout.spark.snapshot.table_layout import config_of
from dbt.adapters.zlayout.table.ztable import ZTable
from dbt.adapters.zlayout.timeline.log.positions import ChangesTaken, Position, positions_of
from dbt.adapters.zlayout.timeline.log.snapshot import row_count

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LOG = AdapterLogger("Zlayout")
MACRO = "zlayout_changes"
_KEEPS_ROWS = "materialized='incremental', or zordered_table with an incremental_strategy"


@dataclass(frozen=True)
class ChangesRead:
    """What a temporary view of `changes_relation` holds.

    Attributes:
        source: The table and the version up to which it reads.
        taken: The positions before and after; None if the run must not move them.
        why_all: Why all rows are given to a model that already has rows, or None.
    """

    source: TableRead
    taken: ChangesTaken | None
    why_all: str | None


# By the name of the view, which belongs to one model, one table and one key. dbt compiles a model and runs it in two
# calls that pass nothing on but its SQL.
_READ: dict[str, ChangesRead] = {}


def changes_relation(
    session: SparkSession,
    relation: ZlayoutRelation | str,
    this: ZlayoutRelation,
    model: Mapping[str, Any],
    unique_key: Sequence[str] | str | None,
    *,
    is_increment: bool,
    takes_all: bool,
) -> ZlayoutRelation | str:
    """Returns the changes of a table since a model's last run, as a temporary view.

    Warns if all rows are given to a model that has rows.

    Args:
        this: The table of the model.
        model: The node that calls.
        unique_key: The columns that identify a row of the table. None for those that the model merges by, or else those
            of a merge-on-read table.
        is_increment: Whether the run adds to the rows of the model's table.
        takes_all: Whether the run reads all rows of its inputs, and not a sample.

    Raises:
        CompilationError: The node keeps no rows from run to run, or would add sampled rows twice.
        UnsupportedError: The table has no versions: it is a view, or other tools write it.
    """
    if isinstance(relation, str):
        raise CompilationError(
            f"{MACRO}: {relation!r} is not a relation; write {MACRO}(ref('…')) or {MACRO}(source('…', '…'))"
        )
    if model.get("resource_type") == "unit_test":
        # Rows given to a unit test of an incremental run state their own kind of change.
        change = "" if is_increment else ", 'insert' as _zl_change"
        return f"(select *{change} from {relation.render()})"
    tracked = _keeps_position(model)
    how = read_model(model, None).incremental if tracked else IncrementalConfig()
    if tracked and is_increment and not takes_all and how.only_adds and relation.limit != 0:
        raise CompilationError(
            f"{this}: with --sample, {MACRO} would add rows that the next run adds again; run it without --sample, or "
            "with incremental_strategy='merge' and a unique_key"
        )
    if relation.is_cte:
        raise CompilationError(f"{MACRO}: {relation} is an ephemeral model, which has no versions; make it a table")
    # Read before the table is opened: a position that another run stores in the meantime is not newer than the table.
    own = _own_table(session, this) if tracked and is_increment else None
    positions = positions_of(own.snapshot().properties) if own is not None and own.is_managed else {}
    table = _opened(session, relation)
    if table is None:
        # The query says so if it runs. Compiling alone needs no table.
        return f"(select *, 'insert' as _zl_change from {relation.render()})"
    until = table.position
    since = positions.get(table.name)
    keys = _keys(table, unique_key, how)
    due = since is None or table.rows_changed_after(since.version)
    has_rows = tracked and is_increment and (own is None or row_count(own.snapshot()) > 0)
    frame, given, why_all = _changes(table, since, until, keys, due=due, has_rows=has_rows)
    if why_all is None:
        key = ", ".join(how.unique_key)
        no_key = f"{table.name} has no column {key}" if key else "there is no unique_key"
        as_pairs = f", updates as a delete and an insert: {no_key}"
        unpaired = due and since is not None and how.strategy == "merge" and not keys and unique_key is None
        _LOG.info(f"{this}: {given}{as_pairs if unpaired else ''}")
    elif not (how.only_adds and has_rows):  # `check_no_row_twice` refuses these
        warn(
            f"{this}: all rows of {table.name} v{until.version} are delivered as inserts, because {why_all}. Rows that "
            f"{table.name} no longer has stay in {this}; run the model with --full-refresh to remove them"
        )
    name = view_name(MACRO, table.name, f"{table.name} {table.location} {this} {model.get('unique_id')} {keys}")
    frame.createOrReplaceTempView(name)
    _READ[name] = ChangesRead(
        TableRead(table.name, table.location, until.version),
        ChangesTaken(table.name, since, until, due or why_all is not None) if tracked and takes_all else None,
        why_all,
    )
    return replace(relation, path=Path(identifier=name))


def changes_read_by(frame: DataFrame) -> dict[str, ChangesRead]:
    """Returns the views of `changes_relation` that an analyzed query reads, by their names."""
    if not _READ:
        return {}
    return {name: _READ[name] for name in temporary_views(frame) if name in _READ}


def taken_by(read: Mapping[str, ChangesRead]) -> tuple[ChangesTaken, ...]:
    """Returns the changes that a write of the query takes.

    Raises:
        WriteError: The query reads the changes of a table up to two versions.
    """
    taken = list(dict.fromkeys(each.taken for each in read.values() if each.taken is not None))
    sources = [each.source for each in taken]
    if twice := next((source for source in sources if sources.count(source) > 1), None):
        raise WriteError(
            f"{MACRO}: another writer committed to {twice} between two calls of the macro; nothing is written; run the "
            "model again"
        )
    return tuple(taken)


def check_no_row_twice(read: Mapping[str, ChangesRead], table: ZTable, how: IncrementalConfig) -> None:
    """Checks that a model that only adds rows gets none that it already has.

    Raises:
        ConfigError: It would get some a second time.
    """
    doubled = [each for each in read.values() if each.why_all is not None]
    if how.only_adds and doubled and row_count(table.snapshot()):
        raise ConfigError(
            [
                f"{MACRO}: all rows of {each.source.name} would be added again, because {each.why_all}; run the model "
                "once with --full-refresh, or set incremental_strategy='merge' and a unique_key"
                for each in doubled
            ],
            table.name,
        )


def _keeps_position(model: Mapping[str, Any]) -> bool:
    """Returns whether runs of a node move a position.

    Raises:
        CompilationError: The node is built, but keeps no rows from run to run.
    """
    config, kind = model.get("config") or {}, model.get("resource_type")
    if kind not in ("model", "snapshot"):
        return False
    materialized, strategy = config.get("materialized"), config.get("incremental_strategy")
    file_format = config.get("file_format") or "parquet"
    if kind == "snapshot":
        what = "a snapshot"
    elif not keeps_rows(config):
        without = " without an incremental_strategy" if materialized == "zordered_table" else ""
        what = f"materialized={materialized!r}{without}"
    elif file_format.lower() != "parquet":
        what = f"file_format={file_format!r}"
    elif strategy == "microbatch":
        what = "incremental_strategy='microbatch', which takes rows by their time,"
    elif strategy == "insert_overwrite" and _replaces_all(read_model(model, None)):
        what = "incremental_strategy='insert_overwrite' for the whole table, which removes all other rows,"
    else:
        return True
    raise CompilationError(
        f"{model.get('unique_id')}: {MACRO} needs a model that keeps its rows and its position from run to run: "
        f"{_KEEPS_ROWS}; {what} does not"
    )


def _replaces_all(wanted: ModelSettings) -> bool:
    """Returns whether an ``insert_overwrite`` replaces all rows of the table, not only partitions."""
    return wanted.incremental.partition_overwrite == "static" or not wanted.table_config.partitioning.columns


def _opened(session: SparkSession, relation: ZlayoutRelation) -> ZTable | None:
    """Opens the table of a relation; None if the catalog has nothing of that name.

    Raises:
        UnsupportedError: It has no versions.
    """
    name = relation.catalog_name
    entry = Catalog(session).find_named(name)
    if entry is None:
        return None
    try:
        table = ZTable.for_name(session, name)
    except TableNotFoundError as error:
        if entry.table_id is not None or (entry.location is not None and holds_table(entry.location)):
            raise UnsupportedError(f"{MACRO}: {error}") from error
        what = "is a view" if entry.view_text is not None else "is written by other tools"
        raise UnsupportedError(
            f"{MACRO}: {entry.name} {what}, so it has no versions; build it as a table with dbt-zlayout, or read it "
            f"without {MACRO}"
        ) from error
    if not table.is_managed:
        raise UnsupportedError(
            f"{MACRO}: {table.name} is only indexed: other tools write it, so it has no versions; "
            f"read it without {MACRO}"
        )
    return table


def _own_table(session: SparkSession, this: ZlayoutRelation) -> ZTable | None:
    """Returns the table of a model, None if it is not one of this package."""
    try:
        return ZTable.for_name(session, this.catalog_name)
    except TableNotFoundError:
        return None


def _keys(table: ZTable, unique_key: Sequence[str] | str | None, how: IncrementalConfig) -> tuple[str, ...]:
    problems: list[str] = []
    given = parse_no_expressions(f"{MACRO}: unique_key", unique_key, problems)
    if problems:
        raise ConfigError(problems, table.name)
    if unique_key is not None:
        return given
    own = how.unique_key if how.strategy == "merge" else ()
    have = {name.lower() for name, _ in columns_of(table.snapshot().schema_json)}
    if own and all(each.lower() in have for each in own):
        return own
    # Other strategies recompute keys or partitions, including those that an updated row has left.
    pairs = how.strategy in ("merge", "append")
    return config_of(table.snapshot()).table_type.unique_key if pairs else ()


def _changes(
    table: ZTable, since: Position | None, until: Position, keys: Sequence[str], *, due: bool, has_rows: bool
) -> tuple[DataFrame, str, str | None]:
    """Returns the rows, what they are, and why a model that has rows gets all rows and not only changes."""
    name, version = table.name, until.version
    if since is None:
        why_all = "no run of the model has taken its changes yet" if has_rows else None
        return table.net_changes(None, version, unique_key=keys), f"all rows of {name} v{version}, as inserts", why_all
    try:
        table.check_position(since)
        given = f"changes of {name} from v{since.version} to v{version}"
        if not due:
            given = f"no changes of {name} since v{since.version}"
        return table.net_changes(since.version, version, unique_key=keys), given, None
    except (VersionNotFoundError, UnsupportedError) as error:
        # What follows says what a caller in Python can do.
        why_all = str(error).partition("; ")[0]
        return table.net_changes(None, version, unique_key=keys), "", why_all
