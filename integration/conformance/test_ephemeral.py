"""Ephemeral models."""

import re
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.adapter.ephemeral.test_ephemeral import (
    BaseEphemeralErrorHandling,
    BaseEphemeralMulti,
    BaseEphemeralNested,
)
from dbt.tests.util import check_relations_equal, run_dbt


def _written(model: str) -> str:
    """What dbt ran for a model, without blanks; the numbers of the schema are left out."""
    return "".join(re.sub(r"\d+", "", Path(f"target/run/test/models/{model}.sql").read_text()).split())


class TestEphemeralMulti(BaseEphemeralMulti):
    # The base's text is Postgres': Spark replaces a view in one statement, without a second name and without quotes.
    def test_ephemeral_multi(self, project: Any) -> None:
        run_dbt(["seed"])
        assert len(run_dbt(["run"])) == 3
        for model in ("dependent", "double_dependent", "super_dependent"):
            check_relations_equal(project.adapter, ["seed", model])
        assert _written("double_dependent") == "".join(
            [
                "create",
                "or",
                "replace",
                "view",
                "test_test_ephemeral.double_dependent",
                "as",
                "with",
                "__dbt__cte__base",
                "as",
                "(select",
                "*",
                "from",
                "test_test_ephemeral.seed),",
                "__dbt__cte__base_copy",
                "as",
                "(select",
                "*",
                "from",
                "__dbt__cte__base)",
                "--",
                "base_copy",
                "just",
                "pulls",
                "from",
                "base.",
                "Make",
                "sure",
                "the",
                "listed",
                "--",
                "graph",
                "of",
                "CTEs",
                "all",
                "share",
                "the",
                "same",
                "dbt_cte__base",
                "cte",
                "select",
                "*",
                "from",
                "__dbt__cte__base",
                "where",
                "gender",
                "=",
                "'Male'",
                "union",
                "all",
                "select",
                "*",
                "from",
                "__dbt__cte__base_copy",
                "where",
                "gender",
                "=",
                "'Female'",
            ]
        )


@pytest.mark.exhaustive
class TestEphemeralNested(BaseEphemeralNested):
    # As above.
    def test_ephemeral_nested(self, project: Any) -> None:
        assert len(run_dbt(["run"])) == 2
        assert _written("root_view") == "".join(
            [
                "create",
                "or",
                "replace",
                "view",
                "test_test_ephemeral.root_view",
                "as",
                "with",
                "__dbt__cte__ephemeral_level_two",
                "as",
                "(select",
                "*",
                "from",
                "test_test_ephemeral.source_table),",
                "__dbt__cte__ephemeral",
                "as",
                "(select",
                "*",
                "from",
                "__dbt__cte__ephemeral_level_two)",
                "select",
                "*",
                "from",
                "__dbt__cte__ephemeral",
            ]
        )


@pytest.mark.exhaustive
class TestEphemeralErrorHandling(BaseEphemeralErrorHandling):
    pass
