"""``--empty``."""

import pytest
from dbt.tests.adapter.empty.test_empty import (
    BaseTestEmpty,
    BaseTestEmptyInlineSourceRef,
    BaseTestEmptySeedFlag,
    MetadataWithEmptyFlag,
)

_NO_COLUMN_GOES = {
    "test_run": "one of its models drops a column with dbt's macro, which dbt-spark refuses for plain Spark as soon as it parses"
}


@pytest.mark.exhaustive
class TestEmpty(BaseTestEmpty):
    pass


@pytest.mark.exhaustive
class TestEmptyInlineSourceRef(BaseTestEmptyInlineSourceRef):
    pass


class TestMetadataWithEmptyFlag(MetadataWithEmptyFlag):
    cannot = _NO_COLUMN_GOES


class TestEmptySeedFlag(BaseTestEmptySeedFlag):
    needs_dbt = "1.12"
