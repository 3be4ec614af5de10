"""Time travel and rollback: finds an older version, reads its rows, or returns the table to it."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from dbt.adapters.zlayout.config.table_config import PublishingConfig, published_as
from dbt.adapters.zlayout.errors import ConfigError, UnsupportedError, VersionNotFoundError
from dbt.adapters.zlayout.quantities import counted
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog, TableRef, named, session_zone
from dbt.adapters.zlayout.spark.commit.after_commit import AfterCommit, CommitSummary
from dbt.adapters.zlayout.spark.commit.commit_files import put_slices
from dbt.adapters.zlayout.spark.commit.publish import publish_committed
from dbt.adapters.zlayout.spark.index.collected_statistics import collect, examining
from dbt.adapters.zlayout.spark.snapshot.table_layout import TableLayout, config_of
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.log.entry import IndexSlices
from dbt.adapters.zlayout.timeline.log.snapshot import Snapshot, row_count
from dbt.adapters.zlayout.timeline.retention.past import missing_files, snapshot_of, version_at_time, version_of_instant
from dbt.adapters.zlayout.timeline.timeline import Timeline
from dbt.adapters.zlayout.timeline.transactions.change import Change
from dbt.adapters.zlayout.timeline.transactions.transaction import Transaction

Moment = dt.datetime | dt.date | str
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)


@dataclass(frozen=True)
class TimeTravelSpec:
    """Names a version by at most one of three attributes.

    Attributes:
        instant: The 17 digits of the transaction that committed the version.
        timestamp: Names the newest version committed at or before this time. Text, a date or a datetime without a zone
            is in the session's time zone, as in Spark's SQL.
    """

    version: int | None = None
    instant: str | None = None
    timestamp: Moment | None = None

    def __post_init__(self) -> None:
        """Checks the attributes.

        Raises:
            ConfigError: More than one attribute is given, or one has the wrong type.
        """
        given = [f"{name}={value!r}" for name, value in vars(self).items() if value is not None]
        if len(given) > 1:
            raise ConfigError([f"{' and '.join(given)} are given; give only one of version, instant and timestamp"])
        if self.version is not None and (isinstance(self.version, bool) or not isinstance(self.version, int)):
            raise ConfigError([f"version: {self.version!r} is not a whole number"])
        if self.instant is not None and not isinstance(self.instant, str):
            raise ConfigError([f"instant: {self.instant!r} is not text; write its 17 digits in quotes"])
        if self.timestamp is not None and not isinstance(self.timestamp, str | dt.date):
            raise ConfigError([f"timestamp: {self.timestamp!r} is not a time; give text, a date or a datetime"])

    @property
    def is_empty(self) -> bool:
        """Whether no attribute is given."""
        return all(value is None for value in vars(self).values())


def check_managed(opened: TableSnapshot, name: str) -> None:
    """Checks that a table is managed, and so has versions.

    Raises:
        UnsupportedError: The table is only indexed: its files change without a new version.
    """
    if not opened.managed:
        raise UnsupportedError(
            f"{name} is only indexed: other tools write it, so it has no versions; "
            "make it managed with ZTable.adopt(..., managed=True)"
        )


def opened_at(catalog: Catalog, opened: TableSnapshot, name: str, spec: TimeTravelSpec) -> TableSnapshot:
    """Returns the table at the requested version, and checks its files. An empty spec means the version of ``opened``.

    Raises:
        VersionNotFoundError: There is no such version, or a clean deleted some of its files.
        UnsupportedError: The table is only indexed.
        ConfigError: The timestamp cannot be read.
    """
    check_managed(opened, name)
    timeline = opened.timeline
    return opened.at_snapshot(snapshot_of(timeline, _version(catalog, opened, name, spec), name))


def roll_back(
    catalog: Catalog, name: TableRef, opened: TableSnapshot, spec: TimeTravelSpec
) -> tuple[TableSnapshot, CommitSummary]:
    """Commits a new version that equals an older one, and publishes it.

    Deletes nothing and writes no data files. Writes index slices only if a clean deleted those of the older version.

    Raises:
        VersionNotFoundError: There is no such version, or some of its files are missing.
        ConfigError: No version is given.
        ConflictError: Another writer committed in the meantime.
        UnsupportedError: The table is only indexed. Or it was opened by its folder, and its catalog entry would have to
            change.
    """
    started = time.perf_counter()
    subject = str(name)
    check_managed(opened, subject)
    if spec.is_empty:
        raise ConfigError(
            ["no version is given; give the version to roll back to, or its instant or timestamp"], subject
        )
    store = opened.store
    timeline = Timeline(store)
    version = _version(catalog, opened, subject, spec)
    snapshot_of(timeline, version, subject)
    with Transaction.begin(timeline, Action.ROLLBACK, Operation.ROLLBACK, reads_version=version) as transaction:
        # Checked again: from here on, no clean starts to delete the files of this version.
        target = snapshot_of(timeline, version, subject)
        if lost := missing_files(timeline, target.files):
            more = f" and {counted(len(lost) - 1, 'more file')} are" if len(lost) > 1 else " is"
            raise VersionNotFoundError(
                f"{subject}: version {version} cannot be restored: {lost[0]}{more} missing from the folder"
            )
        if transaction.base is not None and _entry_of(target) != _entry_of(transaction.base):
            named(name, f"a rollback to version {version}, which has other columns, partition columns or another type,")
        figures = _figures(timeline, transaction.base, target)
        change = Change(
            adds=target.files,
            schema_json=target.schema_json,
            partition_by=target.partition_by,
            layout=partial(_published_as_now, target),
            curve=target.curve if target.curve is not None and store.exists(target.curve) else None,
            properties=target.properties,
            summary={**figures, "to_version": version},
        )
        commit = transaction.commit(change, index=_index(catalog, opened, target, transaction.instant, subject))
    after = AfterCommit(commit.version)
    opened = publish_committed(catalog, name, opened, after)
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


def _entry_of(snapshot: Snapshot) -> tuple[Any, ...]:
    """Returns what the catalog entry of a version says."""
    return snapshot.schema_json, snapshot.partition_by, config_of(snapshot).table_type.kind


def _published_as_now(target: Snapshot, now: Snapshot | None) -> Mapping[str, Any]:
    """Returns the layout of a version, but with the current formats: other engines' readers must not lose the table."""
    return published_as(target.layout, PublishingConfig() if now is None else config_of(now).publishing)


def _version(catalog: Catalog, opened: TableSnapshot, name: str, spec: TimeTravelSpec) -> int:
    timeline = opened.timeline
    if spec.instant is not None:
        return version_of_instant(timeline, spec.instant, name)
    if spec.timestamp is not None:
        return version_at_time(timeline, _time_ms(catalog, spec.timestamp), name)
    return opened.version if spec.version is None else spec.version


def _time_ms(catalog: Catalog, moment: Moment) -> int:
    if isinstance(moment, dt.datetime) and moment.tzinfo is not None:
        return (moment - _EPOCH) // dt.timedelta(milliseconds=1)
    # Uses Spark's own cast, so that a text has the same meaning as in SQL.
    jvm = catalog.jvm
    expressions = jvm.catalyst.expressions
    types = jvm.root.org.apache.spark.sql.types.DataTypes
    zone = jvm.some(session_zone(catalog.spark))
    text = expressions.Literal.create(str(moment).strip(), types.StringType)
    cast = expressions.Cast(text, types.TimestampType, zone, expressions.EvalMode.LEGACY())
    micros = cast.eval(jvm.catalyst.InternalRow.empty())
    if micros is None:
        raise ConfigError([f"timestamp: {moment!r} is not a time; write it as 2024-01-31 12:30:00"])
    return int(micros) // 1000


def _figures(timeline: Timeline, base: Snapshot | None, target: Snapshot) -> dict[str, Any]:
    before = base.files if base is not None else target.files
    adds, removes = target.files.minus(before["path"]), before.minus(target.files["path"])
    return {
        "rows": row_count(target),
        "files_added": len(adds),
        "files_removed": len(removes),
        "bytes_added": adds.total_bytes,
        "bytes_removed": removes.total_bytes,
        "data_passes": 0,
        "overlap_depth": timeline.read(target.version).summary.get("overlap_depth", 1.0),
    }


def _index(catalog: Catalog, opened: TableSnapshot, target: Snapshot, instant: str, subject: str) -> IndexSlices:
    """Returns the index slices of a version. Writes new ones if a clean deleted them but kept the data files."""
    store = opened.store
    if all(store.exists(path) for paths in target.index.values() for path in paths):
        return target.index
    tracked = TableLayout.of(config_of(target), target.schema_json, subject).tracked
    examine = examining(catalog.spark, store, replace(opened, snapshot=target).schema_json, target.partition_by)
    return put_slices(store, instant, target.files, collect(store, target.files, tracked, examine).column_stats)
