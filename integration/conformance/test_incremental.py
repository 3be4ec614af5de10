"""Incremental models: strategies, keys, predicates, schema changes, batches."""

from typing import Any

import pytest
from dbt.tests.adapter.incremental.test_incremental_merge_exclude_columns import BaseMergeExcludeColumns
from dbt.tests.adapter.incremental.test_incremental_microbatch import BaseMicrobatch
from dbt.tests.adapter.incremental.test_incremental_on_schema_change import BaseIncrementalOnSchemaChange
from dbt.tests.adapter.incremental.test_incremental_predicates import (
    BaseIncrementalPredicates,
)
from dbt.tests.adapter.incremental.test_incremental_predicates import (
    TestPredicatesDeleteInsert as BasePredicatesDeleteInsert,
)
from dbt.tests.adapter.incremental.test_incremental_unique_id import BaseIncrementalUniqueKey


class TestMergeExcludeColumns(BaseMergeExcludeColumns):
    pass


@pytest.mark.slow
class TestMicrobatch(BaseMicrobatch):
    pass


@pytest.mark.slow
class TestIncrementalOnSchemaChange(BaseIncrementalOnSchemaChange):
    pass


@pytest.mark.slow
class TestIncrementalPredicates(BaseIncrementalPredicates):
    pass


@pytest.mark.slow
class TestPredicatesDeleteInsert(BasePredicatesDeleteInsert):
    pass


@pytest.mark.slow
class TestIncrementalUniqueKey(BaseIncrementalUniqueKey):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        # The default is dbt-spark's: append, which knows no key.
        return {"models": {"+incremental_strategy": "merge"}}
