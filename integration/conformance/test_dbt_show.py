"""``dbt show``."""

import pytest
from dbt.tests.adapter.dbt_show.test_dbt_show import BaseShowDoesNotHandleDoubleLimit, BaseShowLimit, BaseShowSqlHeader


class TestShowLimit(BaseShowLimit):
    pass


@pytest.mark.exhaustive
class TestShowSqlHeader(BaseShowSqlHeader):
    pass


@pytest.mark.exhaustive
class TestShowDoesNotHandleDoubleLimit(BaseShowDoesNotHandleDoubleLimit):
    # Spark's words for it.
    DATABASE_ERROR_MESSAGE = "[PARSE_SYNTAX_ERROR] Syntax error at or near"
