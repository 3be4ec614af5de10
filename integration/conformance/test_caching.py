"""The cache of relations."""

from typing import Any

import pytest
from dbt.tests.adapter.caching.test_caching import (
    BaseCachingLowercaseModel,
    BaseCachingSelectedSchemaOnly,
    BaseCachingUppercaseModel,
    BaseNoPopulateCache,
)
from dbt.tests.util import run_dbt


class _WithoutDatabase:
    """The base's method, but for the database: Spark has none above a schema, and None cannot be lowered."""

    def run_and_inspect_cache(self, project: Any, run_args: list[str] | None = None) -> None:
        found = []
        for _ in range(2):
            run_dbt(list(run_args or ()))
            (relation,) = project.adapter.cache.relations
            assert relation.schema == project.test_schema == project.test_schema.lower()
            found.append((relation.database, relation.schema.lower(), relation.identifier.lower()))
        assert found[0] == found[1]
        assert found[0][0] is None


class TestCachingLowercaseModel(_WithoutDatabase, BaseCachingLowercaseModel):
    pass


@pytest.mark.exhaustive
class TestCachingUppercaseModel(_WithoutDatabase, BaseCachingUppercaseModel):
    pass


@pytest.mark.exhaustive
class TestCachingSelectedSchemaOnly(_WithoutDatabase, BaseCachingSelectedSchemaOnly):
    pass


@pytest.mark.exhaustive
class TestNoPopulateCache(_WithoutDatabase, BaseNoPopulateCache):
    pass
