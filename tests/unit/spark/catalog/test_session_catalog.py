"""One spelling of a file's location, whoever wrote its URI."""

from __future__ import annotations

import pytest

from dbt.adapters.zlayout.spark.catalog.session_catalog import unescaped


@pytest.mark.parametrize(
    ("metadata_column", "ours"),
    [
        ("file:/w/a%2520b%7Bc%7D/p=a%252520b/1.parquet", "file:///w/a%2520b%7Bc%7D/p=a%252520b/1.parquet"),
        ("file:/w/é/p=ü~ß/1.parquet", "file:///w/%C3%A9/p=%C3%BC~%C3%9F/1.parquet"),
        ("file:/w/p=x%20%257By%7D+1/1.parquet", "file:///w/p=x%20%257By%7D+1/1.parquet"),
        ("s3a://bucket/p=a%252Fb/1.parquet", "s3a://bucket/p=a%252Fb/1.parquet"),
    ],
)
def test_the_uris_of_the_metadata_column_and_of_the_table_have_one_spelling(metadata_column: str, ours: str) -> None:
    assert unescaped(metadata_column) == unescaped(ours)


def test_an_escape_in_a_file_name_is_not_decoded() -> None:
    assert unescaped("file:/w/p=a%2520b/1.parquet") != unescaped("file:/w/p=a%20b/1.parquet")
