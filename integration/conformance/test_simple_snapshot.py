"""Snapshots: strategies, hard deletes, new columns, names of dbt's own columns."""

import pytest
from dbt.tests.adapter.simple_snapshot.new_record_check_mode import BaseSnapshotNewRecordCheckMode
from dbt.tests.adapter.simple_snapshot.new_record_dbt_valid_to_current import BaseSnapshotNewRecordDbtValidToCurrent
from dbt.tests.adapter.simple_snapshot.new_record_timestamp_mode import BaseSnapshotNewRecordTimestampMode
from dbt.tests.adapter.simple_snapshot.test_ephemeral_snapshot_hard_deletes import (
    BaseSnapshotEphemeralHardDeletes,
    BaseSnapshotNewColumnSpecificCheckCols,
    BaseSnapshotNewColumnTimestampStrategy,
    BaseSnapshotNewColumnWithDeletes,
)
from dbt.tests.adapter.simple_snapshot.test_snapshot import BaseSimpleSnapshot, BaseSnapshotCheck
from dbt.tests.adapter.simple_snapshot.test_various_configs import (
    BaseSnapshotColumnNames,
    BaseSnapshotColumnNamesFromDbtProject,
    BaseSnapshotDbtValidToCurrent,
    BaseSnapshotInvalidColumnNames,
    BaseSnapshotMultiUniqueKey,
)

# Spark has no databases above schemas.
_NO_DATABASE = {"{{target.database}}.": ""}


pytestmark = pytest.mark.slow


class TestSimpleSnapshot(BaseSimpleSnapshot):
    pass


class TestSnapshotCheck(BaseSnapshotCheck):
    pass


class TestSnapshotNewRecordTimestampMode(BaseSnapshotNewRecordTimestampMode):
    in_spark = _NO_DATABASE


@pytest.mark.exhaustive
class TestSnapshotNewRecordCheckMode(BaseSnapshotNewRecordCheckMode):
    in_spark = _NO_DATABASE


@pytest.mark.exhaustive
class TestSnapshotNewRecordDbtValidToCurrent(BaseSnapshotNewRecordDbtValidToCurrent):
    in_spark = _NO_DATABASE


@pytest.mark.exhaustive
class TestSnapshotEphemeralHardDeletes(BaseSnapshotEphemeralHardDeletes):
    pass


@pytest.mark.exhaustive
class TestSnapshotNewColumnTimestampStrategy(BaseSnapshotNewColumnTimestampStrategy):
    pass


@pytest.mark.exhaustive
class TestSnapshotNewColumnSpecificCheckCols(BaseSnapshotNewColumnSpecificCheckCols):
    pass


@pytest.mark.exhaustive
class TestSnapshotNewColumnWithDeletes(BaseSnapshotNewColumnWithDeletes):
    pass


@pytest.mark.exhaustive
class TestSnapshotColumnNames(BaseSnapshotColumnNames):
    in_spark = _NO_DATABASE


@pytest.mark.exhaustive
class TestSnapshotColumnNamesFromDbtProject(BaseSnapshotColumnNamesFromDbtProject):
    in_spark = _NO_DATABASE


@pytest.mark.exhaustive
class TestSnapshotInvalidColumnNames(BaseSnapshotInvalidColumnNames):
    in_spark = _NO_DATABASE


@pytest.mark.exhaustive
class TestSnapshotDbtValidToCurrent(BaseSnapshotDbtValidToCurrent):
    in_spark = _NO_DATABASE


@pytest.mark.exhaustive
class TestSnapshotMultiUniqueKey(BaseSnapshotMultiUniqueKey):
    in_spark = _NO_DATABASE
