"""A small project from seeds to models, twice."""

from pathlib import Path
from typing import Any

import pytest
from dbt.tests.adapter.simple_copy.test_copy_uppercase import BaseSimpleCopyUppercase
from dbt.tests.adapter.simple_copy.test_simple_copy import EmptyModelsArentRunBase, SimpleCopyBase
from spark_project import profile_target


@pytest.mark.slow
class TestSimpleCopy(SimpleCopyBase):
    pass


@pytest.mark.exhaustive
class TestEmptyModelsArentRun(EmptyModelsArentRunBase):
    pass


@pytest.mark.exhaustive
class TestSimpleCopyUppercase(BaseSimpleCopyUppercase):
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, lake: Path) -> dict[str, Any]:
        # The base's target is Postgres, with a database in mixed case; Spark has no databases above schemas.
        return profile_target(lake)
