"""Hooks of runs, models, seeds and snapshots."""

from typing import Any

import pytest
from dbt.tests.adapter.hooks.test_model_hooks import (
    BaseDuplicateHooksInConfigs,
    BaseHookRefs,
    BaseHooksRefsOnSeeds,
    BasePrePostModelHooks,
    BasePrePostModelHooksInConfig,
    BasePrePostModelHooksInConfigKwargs,
    BasePrePostModelHooksInConfigWithCount,
    BasePrePostModelHooksOnSeeds,
    BasePrePostModelHooksOnSeedsPlusPrefixed,
    BasePrePostModelHooksOnSeedsPlusPrefixedWhitespace,
    BasePrePostModelHooksOnSnapshots,
    BasePrePostSnapshotHooksInConfigKwargs,
)
from dbt.tests.adapter.hooks.test_model_hooks import (
    TestPrePostModelHooksUnderscores as BasePrePostModelHooksUnderscores,
)
from dbt.tests.adapter.hooks.test_run_hooks import BaseAfterRunHooks, BasePrePostRunHooks

# A statement that Spark has, outside of the transaction as the other.
_VACUUM = {"vacuum {{ this.schema }}.on_model_hook": "refresh table {{ this.schema }}.on_model_hook"}
# Spark has no type text.
_TEXT = {"schema text": "schema string", "db text": "db string"}

_UPDATE = "Spark has no UPDATE for Parquet, and a hook's statement is Spark's own; ZTable.merge and replace_where do it"
_NO_UPDATE_OF_SEEDS = {"test_hooks_on_seeds": _UPDATE}
_NO_UPDATE_OF_SNAPSHOTS = {"test_hooks_on_snapshots": _UPDATE}


def _is_of_this_target(row: dict[str, Any], state: str, project: Any) -> None:
    """What the base checks, with the target of this suite instead of Postgres'; Spark has no host, database and user."""
    assert row["test_state"] == state
    assert row["target_name"] == "default"
    assert row["target_schema"] == project.test_schema
    assert row["target_threads"] == 2
    assert row["target_type"] == "zlayout"
    for without in ("target_dbname", "target_host", "target_user", "target_pass"):
        assert row[without] == ""
    assert row["run_started_at"]
    assert row["invocation_id"]
    assert row["thread_id"].startswith("Thread-") or row["thread_id"] == "MainThread"


class _ModelHooks:
    def check_hooks(self, state: str, project: Any, host: object, count: int = 1) -> None:
        for row in self.get_ctx_vars(state, count=count, project=project):  # type: ignore[attr-defined] # of the base
            _is_of_this_target(row, state, project)


class TestPrePostModelHooks(_ModelHooks, BasePrePostModelHooks):
    config_in_spark = _VACUUM


@pytest.mark.exhaustive
class TestPrePostModelHooksUnderscores(_ModelHooks, BasePrePostModelHooksUnderscores):
    config_in_spark = _VACUUM


@pytest.mark.exhaustive
class TestHookRefs(_ModelHooks, BaseHookRefs):
    pass


@pytest.mark.exhaustive
class TestPrePostModelHooksInConfig(_ModelHooks, BasePrePostModelHooksInConfig):
    pass


@pytest.mark.exhaustive
class TestPrePostModelHooksInConfigWithCount(_ModelHooks, BasePrePostModelHooksInConfigWithCount):
    config_in_spark = _VACUUM


@pytest.mark.exhaustive
class TestPrePostModelHooksInConfigKwargs(_ModelHooks, BasePrePostModelHooksInConfigKwargs):
    pass


@pytest.mark.exhaustive
class TestDuplicateHooksInConfigs(BaseDuplicateHooksInConfigs):
    pass


@pytest.mark.exhaustive
class TestHooksRefsOnSeeds(BaseHooksRefsOnSeeds):
    pass


@pytest.mark.exhaustive
class TestPrePostModelHooksOnSeeds(BasePrePostModelHooksOnSeeds):
    cannot = _NO_UPDATE_OF_SEEDS


@pytest.mark.exhaustive
class TestPrePostModelHooksOnSeedsPlusPrefixed(BasePrePostModelHooksOnSeedsPlusPrefixed):
    cannot = _NO_UPDATE_OF_SEEDS


@pytest.mark.exhaustive
class TestPrePostModelHooksOnSeedsPlusPrefixedWhitespace(BasePrePostModelHooksOnSeedsPlusPrefixedWhitespace):
    cannot = _NO_UPDATE_OF_SEEDS


class TestPrePostModelHooksOnSnapshots(BasePrePostModelHooksOnSnapshots):
    cannot = _NO_UPDATE_OF_SNAPSHOTS


@pytest.mark.exhaustive
class TestPrePostSnapshotHooksInConfigKwargs(BasePrePostSnapshotHooksInConfigKwargs):
    cannot = _NO_UPDATE_OF_SNAPSHOTS


class TestPrePostRunHooks(BasePrePostRunHooks):
    config_in_spark = _TEXT

    def check_hooks(self, state: str, project: Any, host: object) -> None:
        _is_of_this_target(self.get_ctx_vars(state, project), state, project)

    def assert_used_schemas(self, project: Any) -> None:
        # As in the base, but for the database: Spark has none above a schema, which Jinja spells None.
        assert project.run_sql(f"select * from {project.test_schema}.schemas", fetch="all") == [(project.test_schema,)]
        found = project.run_sql(f"select * from {project.test_schema}.db_schemas", fetch="all")
        assert found == [("None", project.test_schema)]


@pytest.mark.exhaustive
class TestAfterRunHooks(BaseAfterRunHooks):
    pass
