"""``dbt debug``."""

import pytest
from dbt.tests.adapter.dbt_debug.test_dbt_debug import BaseDebugInvalidProjectPostgres, BaseDebugPostgres


class TestDebug(BaseDebugPostgres):
    pass


@pytest.mark.exhaustive
class TestDebugInvalidProject(BaseDebugInvalidProjectPostgres):
    pass
