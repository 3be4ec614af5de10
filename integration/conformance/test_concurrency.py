"""Several models at once, one of them broken."""

import pytest
from dbt.tests.adapter.concurrency.test_concurrency import BaseConcurrency


@pytest.mark.slow
class TestConcurrency(BaseConcurrency):
    pass
