"""``dbt clone``."""

from collections.abc import Iterator
from typing import Any

import pytest
from dbt.tests.adapter.dbt_clone.test_dbt_clone import (
    BaseCloneNotPossible,
    BaseCloneSameSourceAndTarget,
    BaseCloneSameTargetAndState,
)


@pytest.mark.slow
class TestCloneNotPossible(BaseCloneNotPossible):
    @pytest.fixture(autouse=True)
    def clean_up(self, project: Any) -> Iterator[None]:
        yield
        with project.adapter.connection_named("__test"):
            for schema in (f"{project.test_schema}_seeds", project.test_schema):
                project.adapter.drop_schema(project.adapter.Relation.create(schema=schema))


@pytest.mark.exhaustive
class TestCloneSameSourceAndTarget(BaseCloneSameSourceAndTarget):
    pass


@pytest.mark.exhaustive
class TestCloneSameTargetAndState(BaseCloneSameTargetAndState):
    pass
