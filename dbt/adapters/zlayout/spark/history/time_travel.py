"""Older versions: which one is meant, its rows, and the way back to it."""

from __future__ import annotations

import datetime as dt
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dbt.adapters.zlayout.errors import ConfigError, UnsupportedError, VersionNotFoundError
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog, TableName, session_zone
from dbt.adapters.zlayout.spark.commit.after_commit import AfterCommit
from dbt.adapters.zlayout.spark.commit.index_update import put_slices
from dbt.adapters.zlayout.spark.commit.publish import Description, publish
from dbt.adapters.zlayout.spark.files.write_summary import CommitSummary
from dbt.adapters.zlayout.spark.index.collected_statistics import collect
from dbt.adapters.zlayout.spark.index.data_statistics import examining
from dbt.adapters.zlayout.spark.read.record_tables import rows_of, table_entry
from dbt.adapters.zlayout.spark.snapshot.table_layout import TableLayout, config_of
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.log.snapshot import Snapshot
from dbt.adapters.zlayout.timeline.log.state import IndexSlices
from dbt.adapters.zlayout.timeline.retention.past import missing_files, snapshot_of, version_at_time, version_of_instant
from dbt.adapters.zlayout.timeline.timeline import Timeline
from dbt.adapters.zlayout.timeline.transactions.change import Change
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Moment = dt.datetime | dt.date | str
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)


@dataclass(frozen=True)
class Past:
    """Which version is meant: at most one of the three.

    Attributes:
        version: Its number.
        instant: The 17 digits of the transaction that made it.
        timestamp: The newest version committed at or before this time; a text, a date or a datetime without zone is
            in the session's time zone, as in Spark's SQL.
    """

    version: int | None = None
    instant: str | None = None
    timestamp: Moment | None = None

    def __post_init__(self) -> None:
        """Checks what is given.

        Raises:
            ConfigError: More than one is given, or one is of a wrong type.
        """
        given = [f"{name}={value!r}" for name, value in vars(self).items() if value is not None]
        if len(given) > 1:
            raise ConfigError([f"{' and '.join(given)} are given; say one of version, instant, timestamp"])
        if self.version is not None and (isinstance(self.version, bool) or not isinstance(self.version, int)):
            raise ConfigError([f"version: {self.version!r} is not a whole number"])
        if self.instant is not None and not isinstance(self.instant, str):
            raise ConfigError([f"instant: {self.instant!r} is not a text of 17 digits; put it in quotes"])
        if self.timestamp is not None and not isinstance(self.timestamp, str | dt.date):
            raise ConfigError([f"timestamp: {self.timestamp!r} is neither a text nor a datetime"])

    @property
    def is_open(self) -> bool:
        """Whether nothing is given."""
        return all(value is None for value in vars(self).values())


def check_managed(opened: TableSnapshot, name: str) -> None:
    """Returns for a table that has versions of its own.

    Raises:
        UnsupportedError: The table is only indexed: its files come and go without a version.
    """
    if not opened.managed:
        raise UnsupportedError(
            f"{name} is only indexed: others write it, and it has no versions; "
            "take it over with ZTable.adopt(..., managed=True)"
        )


def opened_at(catalog: Catalog, opened: TableSnapshot, name: str, past: Past) -> TableSnapshot:
    """The table at the version that is meant, whose files are there; at its own where none is said.

    Raises:
        VersionNotFoundError: There is none, or its files were cleaned.
        UnsupportedError: The table is only indexed.
        ConfigError: The timestamp cannot be read.
    """
    check_managed(opened, name)
    timeline = Timeline(opened.store)
    return opened.at_snapshot(snapshot_of(timeline, _version(catalog, opened, name, past), name))


def rows_at(catalog: Catalog, opened: TableSnapshot, name: str, past: Past) -> DataFrame:
    """The rows of an older version, in the columns that it had."""
    return rows_of(catalog, opened_at(catalog, opened, name, past))


def roll_back(
    catalog: Catalog, name: TableName, opened: TableSnapshot, past: Past
) -> tuple[TableSnapshot, CommitSummary]:
    """Makes a new version that equals an older one, and shows it to Spark.

    Nothing is deleted and no file is written but the index where a clean has taken it.

    Raises:
        VersionNotFoundError: There is no such version, or some of its files are gone.
        ConflictError: Another writer committed meanwhile.
        UnsupportedError: The table is only indexed.
    """
    started = time.perf_counter()
    subject = str(name)
    check_managed(opened, subject)
    if past.is_open:
        raise ConfigError(["say the version to roll back to: version or instant"], subject)
    store = opened.store
    timeline = Timeline(store)
    version = _version(catalog, opened, subject, past)
    snapshot_of(timeline, version, subject)
    with Transaction.begin(timeline, Action.ROLLBACK, Operation.ROLLBACK, reads_version=version) as transaction:
        # Looked at again: from here on no clean begins to take the version's files.
        target = snapshot_of(timeline, version, subject)
        if lost := missing_files(timeline, target.files):
            more = f" and {len(lost) - 1} more files" if len(lost) > 1 else ""
            raise VersionNotFoundError(f"{subject}: version {version} is not whole: {lost[0]}{more} not in the folder")
        figures = _figures(timeline, transaction.base, target)
        change = Change(
            adds=target.files,
            schema_json=target.schema_json,
            partition_by=target.partition_by,
            layout=target.layout,
            curve=target.curve if target.curve is not None and store.exists(target.curve) else None,
            properties=target.properties,
            summary={**figures, "to_version": version},
        )
        commit = transaction.commit(change, index=_index(catalog, opened, target, transaction.instant, subject))
    after = AfterCommit(commit.version)
    with after.needed("readers may not see it yet"):
        opened = opened.at_snapshot(timeline.snapshot(commit.version))
        entry = table_entry(catalog, name)
        description = Description.of(entry) if entry is not None else Description()
        publish(catalog, name, entry, opened, description, None, after)
    done = CommitSummary(
        version=commit.version,
        instant=commit.instant,
        operation=Operation.ROLLBACK.value,
        files_total=len(transaction.base.files) if transaction.base is not None else 0,
        phases={"total": round(time.perf_counter() - started, 3)},
        unfinished=after.unfinished,
        **figures,
    )
    return opened, done


def _version(catalog: Catalog, opened: TableSnapshot, name: str, past: Past) -> int:
    timeline = Timeline(opened.store)
    if past.instant is not None:
        return version_of_instant(timeline, past.instant, name)
    if past.timestamp is not None:
        return version_at_time(timeline, _time_ms(catalog, past.timestamp), name)
    return opened.version if past.version is None else past.version


def _time_ms(catalog: Catalog, moment: Moment) -> int:
    if isinstance(moment, dt.datetime) and moment.tzinfo is not None:
        return (moment - _EPOCH) // dt.timedelta(milliseconds=1)
    # Spark's own cast, so that a text means what it means in SQL.
    jvm = catalog.jvm
    expressions = jvm.catalyst.expressions
    types = jvm.root.org.apache.spark.sql.types.DataTypes
    zone = jvm.some(session_zone(catalog.spark))
    text = expressions.Literal.create(str(moment).strip(), types.StringType)
    cast = expressions.Cast(text, types.TimestampType, zone, expressions.EvalMode.LEGACY())
    micros = cast.eval(jvm.catalyst.InternalRow.empty())
    if micros is None:
        raise ConfigError([f"timestamp: {moment!r} is no time; write it as 2024-01-31 12:30:00"])
    return int(micros) // 1000


def _figures(timeline: Timeline, base: Snapshot | None, target: Snapshot) -> dict[str, Any]:
    before = base.files if base is not None else target.files
    adds, removes = target.files.minus(before["path"]), before.minus(target.files["path"])
    return {
        "rows": target.files.total_rows,
        "files_added": len(adds),
        "files_removed": len(removes),
        "bytes_added": adds.total_bytes,
        "bytes_removed": removes.total_bytes,
        "data_passes": 0,
        "overlap_depth": timeline.read(target.version).summary.get("overlap_depth", 1.0),
    }


def _index(catalog: Catalog, opened: TableSnapshot, target: Snapshot, instant: str, subject: str) -> IndexSlices:
    """The version's index, which a clean may have taken although the data files are there: then made anew."""
    store = opened.store
    if all(store.exists(path) for paths in target.index.values() for path in paths):
        return target.index
    tracked = TableLayout.of(config_of(target), target.schema_json, subject).tracked
    examine = examining(catalog.spark, store, replace(opened, snapshot=target).schema_json, target.partition_by)
    return put_slices(store, instant, target.files, collect(store, target.files, tracked, examine).column_stats)
