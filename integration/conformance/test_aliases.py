"""Aliases."""

import pytest
from dbt.tests.adapter.aliases.test_aliases import (
    BaseAliasErrors,
    BaseAliases,
    BaseSameAliasDifferentDatabases,
    BaseSameAliasDifferentSchemas,
)

# Spark has no type text; a literal is a string anyway.
_LITERAL = {"::text": ""}


@pytest.mark.slow
class TestAliases(BaseAliases):
    in_spark = _LITERAL


@pytest.mark.exhaustive
class TestAliasErrors(BaseAliasErrors):
    in_spark = _LITERAL


class TestSameAliasDifferentSchemas(BaseSameAliasDifferentSchemas):
    in_spark = _LITERAL


@pytest.mark.exhaustive
class TestSameAliasDifferentDatabases(BaseSameAliasDifferentDatabases):
    in_spark = _LITERAL
