"""The comment in front of every query."""

import pytest
from dbt.tests.adapter.query_comment.test_query_comment import (
    BaseEmptyQueryComments,
    BaseMacroArgsQueryComments,
    BaseMacroInvalidQueryComments,
    BaseMacroQueryComments,
    BaseNullQueryComments,
    BaseQueryComments,
)


class TestQueryComments(BaseQueryComments):
    pass


@pytest.mark.exhaustive
class TestMacroQueryComments(BaseMacroQueryComments):
    pass


@pytest.mark.exhaustive
class TestMacroArgsQueryComments(BaseMacroArgsQueryComments):
    pass


@pytest.mark.exhaustive
class TestMacroInvalidQueryComments(BaseMacroInvalidQueryComments):
    pass


@pytest.mark.exhaustive
class TestNullQueryComments(BaseNullQueryComments):
    pass


@pytest.mark.exhaustive
class TestEmptyQueryComments(BaseEmptyQueryComments):
    pass
