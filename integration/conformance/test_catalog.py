"""What ``dbt docs generate`` says a relation is."""

import getpass
from typing import Any
from unittest.mock import ANY

import pytest
from dbt.tests.adapter.basic.test_get_catalog_for_single_relation import BaseGetCatalogForSingleRelation
from dbt.tests.adapter.catalog import files
from dbt.tests.adapter.catalog.relation_types import CatalogRelationTypes
from dbt_common.contracts.metadata import CatalogTable, ColumnMetadata, TableMetadata


class TestCatalogRelationTypes(CatalogRelationTypes):
    @pytest.fixture(scope="class", autouse=True)
    def models(self) -> dict[str, str]:
        # Spark has no materialized views.
        return {"my_table.sql": files.MY_TABLE, "my_view.sql": files.MY_VIEW}

    # dbt-spark's words for the kinds of relations.
    @pytest.mark.parametrize(
        ("node_name", "relation_type"),
        [("seed.test.my_seed", "table"), ("model.test.my_table", "table"), ("model.test.my_view", "view")],
    )
    def test_relation_types_populate_correctly(self, docs: Any, node_name: str, relation_type: str) -> None:
        super().test_relation_types_populate_correctly(docs, node_name, relation_type)


class TestGetCatalogForSingleRelation(BaseGetCatalogForSingleRelation):
    @pytest.fixture(scope="class")
    def expected_catalog_my_seed(self, project: Any) -> CatalogTable:
        return self._expected(project, "table", "my_seed")

    @pytest.fixture(scope="class")
    def expected_catalog_my_view_model(self, project: Any) -> CatalogTable:
        return self._expected(project, "view", "my_view_model")

    def _expected(self, project: Any, kind: str, name: str) -> CatalogTable:
        types = {"id": "bigint", "first_name": "string", "email": "string", "ip_address": "string"}
        columns = enumerate({**types, "updated_at": "timestamp"}.items())
        return CatalogTable(
            metadata=TableMetadata(kind, project.test_schema, name, comment=None, owner=getpass.getuser()),
            columns={column: ColumnMetadata(text, index, column) for index, (column, text) in columns},
            # Times and sizes: integration/adapter compares them.
            stats=ANY,
        )
