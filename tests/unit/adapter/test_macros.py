"""Macros, rendered without Spark."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any

import pytest
from dbt.artifacts.schemas.batch_results import BatchResults

from dbt.adapters.zlayout.adapter.relation import ZlayoutRelation
from dbt.adapters.zlayout.spark.schema.table_schema import string_literal

_DAY = datetime(2024, 3, 1, tzinfo=timezone.utc)
_ROWS = "utils/zlayout_rows.sql"
_TABLE = ZlayoutRelation.create(schema="s", identifier="t", type="table")
_VIEW = ZlayoutRelation.create(schema="s", identifier="t", type="view")


class Recorder:
    """Records every call and returns values from ``answers``."""

    def __init__(self, **answers: Any) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self._answers = answers

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def record(*args: Any, **_: Any) -> Any:
            self.calls.append((name, *args))
            answer = self._answers.get(name)
            return answer(*args) if callable(answer) else answer

        return record


@pytest.mark.parametrize("macro", ["zlayout__drop_relation"])
def test_a_table_is_dropped_with_its_folder_and_a_view_by_spark(macro_stage: Any, macro: str) -> None:
    adapter = Recorder()
    stage = macro_stage("adapters/drop_and_rename.sql", adapter=adapter, spark__drop_relation=lambda _: "spark drops")
    stage.call(macro, _TABLE)
    assert adapter.calls == [("drop_table", _TABLE)]
    assert stage.call(macro, _VIEW) == "spark drops"


def test_a_table_is_renamed_by_the_adapter_and_a_view_by_spark(macro_stage: Any) -> None:
    adapter = Recorder()
    stage = macro_stage(
        "adapters/drop_and_rename.sql", adapter=adapter, spark__rename_relation=lambda *_: "spark renames"
    )
    stage.call("zlayout__rename_relation", _TABLE, _VIEW)
    assert adapter.calls == [("rename_table", _TABLE, _VIEW)]
    assert stage.call("zlayout__rename_relation", _VIEW, _VIEW) == "spark renames"


@pytest.mark.parametrize(
    ("root", "statement"),
    [
        (None, "create schema if not exists s"),
        ("/it's/s", "create schema if not exists s location '/it\\'s/s'"),
    ],
)
def test_a_schema_gets_its_folder_under_the_location_root(macro_stage: Any, root: str | None, statement: str) -> None:
    adapter = Recorder(new_schema_root=root, string_literal=string_literal)
    stage = macro_stage("adapters/schema.sql", adapter=adapter)
    stage.call("zlayout__create_schema", ZlayoutRelation.create(schema="s"))
    assert stage.statements == [statement]


def test_dropping_a_schema_drops_its_tables_first(macro_stage: Any) -> None:
    adapter = Recorder()
    stage = macro_stage("adapters/schema.sql", adapter=adapter, spark__drop_schema=lambda _: "spark drops")
    schema = ZlayoutRelation.create(schema="s")
    assert stage.call("zlayout__drop_schema", schema) == "spark drops"
    assert adapter.calls == [("drop_tables_in", schema)]


@pytest.mark.parametrize("table_format", ["is_delta", "is_iceberg", "is_hudi"])
def test_a_table_of_a_table_format_is_dropped_by_spark(macro_stage: Any, table_format: str) -> None:
    adapter = Recorder()
    stage = macro_stage("adapters/drop_and_rename.sql", adapter=adapter, spark__drop_relation=lambda _: "spark drops")
    relation = ZlayoutRelation.create(schema="s", identifier="t", type="table", **{table_format: True})
    assert stage.call("zlayout__drop_relation", relation) == "spark drops"
    assert adapter.calls == []


def test_the_freshness_test_selects_each_stale_file_with_its_reason(macro_stage: Any) -> None:
    rows = [{"path": "a'b", "reason": "no index row"}, {"path": "c", "reason": "size"}]
    adapter = Recorder(index_status=rows, string_literal=string_literal)
    stage = macro_stage(_ROWS, "tests/zlayout_index_fresh.sql", adapter=adapter)
    assert stage.call("test_zlayout_index_fresh", model=_TABLE) == (
        "select `path`, `reason` from values (cast('a\\'b' as string), cast('no index row' as string)), "
        "(cast('c' as string), cast('size' as string)) as found (`path`, `reason`)"
    )


def test_the_freshness_test_of_a_fresh_table_selects_nothing(macro_stage: Any) -> None:
    stage = macro_stage(_ROWS, "tests/zlayout_index_fresh.sql", adapter=Recorder(index_status=[]))
    assert stage.call("test_zlayout_index_fresh", model=_TABLE).endswith("where false")


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        ({"sql": "select {{ x }}"}, ("select x", None, None, False, False)),
        ({"sql": "select 1", "verbose": True}, ("select 1", None, None, False, True)),
        ({"model": "m", "predicate": "a = 1", "json": True}, (None, "s.m", "a = 1", True, False)),
    ],
)
def test_the_explain_operation_renders_its_query_and_prints_the_report(
    macro_stage: Any, arguments: dict[str, Any], reported: tuple[Any, ...]
) -> None:
    printed: list[str] = []
    adapter = Recorder(table_named=lambda name, _: f"s.{name}", explain_report="the report")
    stage = macro_stage(
        "operations/zlayout_explain.sql",
        adapter=adapter,
        graph=SimpleNamespace(nodes={}),
        render=lambda text: text.replace("{{ x }}", "x"),
        print=printed.append,
    )
    stage.call("zlayout_explain", **arguments)
    assert adapter.calls[-1] == ("explain_report", *reported)
    assert printed == ["the report"]


def test_the_info_operation_prints_the_report_of_the_models_table(macro_stage: Any) -> None:
    printed: list[str] = []
    adapter = Recorder(table_named="`s`.`m`", information_report="the report")
    stage = macro_stage(
        "operations/zlayout_info.sql", adapter=adapter, graph=SimpleNamespace(nodes={}), print=printed.append
    )
    stage.call("zlayout_info", "m")
    assert adapter.calls[-1] == ("information_report", "`s`.`m`", None, False, False)
    stage.call("zlayout_info", "m", columns=["a"], json=True, verbose=True)
    assert adapter.calls[-1] == ("information_report", "`s`.`m`", ["a"], True, True)
    assert printed == ["the report"] * 2


def test_the_report_operation_prints_what_the_adapter_wrote(macro_stage: Any) -> None:
    printed: list[str] = []
    adapter = Recorder(layout_report="written")
    graph = SimpleNamespace(nodes={}, exposures={})
    context = {"adapter": adapter, "graph": graph, "print": printed.append, "project_name": "shop"}
    stage = macro_stage("operations/zlayout_report.sql", **context)
    stage.call("zlayout_report", "r.html")
    assert adapter.calls[-1] == ("layout_report", "shop", None, {}, "r.html", False)
    stage.call("zlayout_report", model="m", json=True)
    assert adapter.calls[-1] == ("layout_report", "shop", "m", {}, None, True)
    assert printed == ["written"] * 2


@pytest.mark.parametrize(
    ("arguments", "asked"),
    [({}, None), ({"columns": ["a", "b"]}, ["a", "b"]), ({"column_name": "a"}, "a")],
)
def test_the_depth_test_selects_what_was_measured(macro_stage: Any, arguments: dict[str, Any], asked: Any) -> None:
    row = {"columns": "a", "average_depth": 7.5, "at_most": 2.0, "what_to_do": "it's time to rebuild"}
    adapter = Recorder(depth_problems=[row], string_literal=string_literal)
    stage = macro_stage(_ROWS, "tests/zlayout_depth_at_most.sql", adapter=adapter)
    assert stage.call("test_zlayout_depth_at_most", model=_TABLE, max=2, **arguments) == (
        "select `columns`, `average_depth`, `at_most`, `what_to_do` from values (cast('a' as string), "
        "cast(7.5 as double), cast(2.0 as double), cast('it\\'s time to rebuild' as string)) "
        "as found (`columns`, `average_depth`, `at_most`, `what_to_do`)"
    )
    assert adapter.calls[0] == ("depth_problems", _TABLE, 2, asked)


def test_the_pruning_test_selects_what_was_skipped(macro_stage: Any) -> None:
    row = {
        "predicate": "a = 'x'",
        "skipped_percent": 12.5,
        "at_least": 90.0,
        "kept_files": 7,
        "total_files": 8,
        "what_to_do": "cluster it",
    }
    adapter = Recorder(pruning_problems=[row], string_literal=string_literal)
    stage = macro_stage(_ROWS, "tests/zlayout_prunes_at_least.sql", adapter=adapter)
    found = stage.call("test_zlayout_prunes_at_least", model=_TABLE, predicate="a = 'x'", percent=90)
    assert (
        "(cast('a = \\'x\\'' as string), cast(12.5 as double), cast(90.0 as double), cast(7 as bigint), "
        "cast(8 as bigint), cast('cluster it' as string)) as found"
    ) in found
    assert adapter.calls[0] == ("pruning_problems", _TABLE, "a = 'x'", 90)


@pytest.mark.parametrize(
    ("test", "arguments"),
    [
        ("zlayout_depth_at_most", {"max": 2}),
        ("zlayout_prunes_at_least", {"predicate": "true", "percent": 90}),
        ("zlayout_compaction_lag_at_most", {"commits": 1}),
    ],
)
def test_the_layout_tests_select_nothing_if_they_pass(macro_stage: Any, test: str, arguments: dict[str, Any]) -> None:
    adapter = Recorder(depth_problems=[], pruning_problems=[], compaction_problems=[])
    stage = macro_stage(_ROWS, f"tests/{test}.sql", adapter=adapter)
    assert stage.call(f"test_{test}", model=_TABLE, **arguments).endswith("where false")


def test_the_lag_test_selects_a_row_for_each_exceeded_limit(macro_stage: Any) -> None:
    rows = [
        {"measure": measure, "found": found, "at_most": 1, "what_to_do": "it's time"}
        for measure, found in (("commits", 7), ("hours", 2.5))
    ]
    adapter = Recorder(compaction_problems=rows, string_literal=string_literal)
    stage = macro_stage(_ROWS, "tests/zlayout_compaction_lag_at_most.sql", adapter=adapter)
    found = stage.call("test_zlayout_compaction_lag_at_most", model=_TABLE, commits=1, hours=1)
    values = ", ".join(
        f"(cast('{measure}' as string), cast({value} as double), cast(1 as double), cast('it\\'s time' as string))"
        for measure, value in (("commits", 7), ("hours", 2.5))
    )
    assert f"from values {values} as found" in found
    assert adapter.calls[0] == ("compaction_problems", _TABLE, 1, None, 1)


def test_the_compact_operation_prints_the_report(macro_stage: Any) -> None:
    printed: list[str] = []
    adapter = Recorder(compaction_report="the report")
    stage = macro_stage(
        "operations/zlayout_compact.sql", adapter=adapter, graph=SimpleNamespace(nodes={}), print=printed.append
    )
    stage.call("zlayout_compact", model="m", schedule=True)
    stage.call("zlayout_compact", json=True)
    assert adapter.calls == [("compaction_report", "m", {}, False), ("compaction_report", None, {}, True)]
    assert printed == ["the report"] * 2


@pytest.mark.parametrize(
    ("root", "place", "clause"),
    [("/mine", "/other", "spark's clause"), (None, None, "spark's clause"), (None, "/it's/t", "location '/it\\'s/t'")],
)
def test_a_table_has_a_location_clause_only_if_its_schema_is_elsewhere(
    macro_stage: Any, config_of: Any, root: str | None, place: str | None, clause: str
) -> None:
    stage = macro_stage(
        "adapters/schema.sql",
        adapter=Recorder(place_outside_schema=place, string_literal=string_literal),
        config=config_of(location_root=root),
        this=_TABLE,
        spark__location_clause=lambda: "spark's clause",
    )
    assert stage.call("zlayout__location_clause") == clause


@pytest.mark.parametrize(
    ("enforced", "file_format", "constraints", "warned", "done"),
    [
        (False, "orc", ["c"], 0, ""),
        (True, "delta", ["c"], 0, "spark persists"),
        (True, "orc", ["c"], 1, ""),
        (True, "orc", [], 0, ""),
    ],
)
def test_constraints_on_a_table_of_another_format_are_a_warning(
    macro_stage: Any, config_of: Any, enforced: bool, file_format: str, constraints: list[str], warned: int, done: str
) -> None:
    warnings: list[str] = []
    stage = macro_stage(
        "adapters/constraints.sql",
        config=config_of(contract=SimpleNamespace(enforced=enforced), file_format=file_format),
        exceptions=SimpleNamespace(warn=warnings.append),
        spark__persist_constraints=lambda *_: "spark persists",
    )
    model = SimpleNamespace(constraints=[], columns={"a": {"constraints": constraints}})
    assert stage.call("zlayout__persist_constraints", _TABLE, model) == done
    assert len(warnings) == warned


_DELTA = ZlayoutRelation.create(schema="s", identifier="t", type="table", is_delta=True)


@pytest.mark.parametrize("old", [_VIEW, _DELTA])
def test_a_relation_that_must_be_dropped_is_dropped_after_the_write(macro_stage: Any, old: Any) -> None:
    adapter = Recorder(write_table="the response")
    whole = ZlayoutRelation.create(schema="s", identifier="t__dbt_tmp", type="table")
    stage = macro_stage(
        "materializations/materialize.sql",
        adapter=adapter,
        model={},
        make_intermediate_relation=lambda _: whole,
    )
    assert stage.call("zlayout_write", old, _TABLE, "select 1") == "the response"
    assert adapter.calls == [
        ("write_table", whole, "select 1", {}),
        ("drop_relation", old),
        ("rename_relation", whole, _TABLE),
    ]


_STAGED = (
    "materializations/steps.sql",
    "materializations/materialize.sql",
    "materializations/zordered_table.sql",
    "materializations/table.sql",
    "materializations/incremental.sql",
)


class Run:
    """One run of a materialization: its settings, its runtime and the order of its calls."""

    def __init__(
        self, macro_stage: Any, config: Any, *, existing: Any = None, full_refresh: bool = False, language: str = "sql"
    ) -> None:
        self.order: list[str] = []
        order = self.order
        hooks = {
            "pre_hooks": [{"sql": "pre inside", "transaction": True}, {"sql": "pre outside", "transaction": False}],
            "post_hooks": [{"sql": "post outside", "transaction": False}, {"sql": "post inside", "transaction": True}],
        }
        adapter = Recorder(
            check_model=lambda _: order.append("check"),
            check_settings_without_files=lambda _: order.append("check of another format"),
            write_table=lambda _, sql, __: order.append(f"write {sql}"),
            write_increment=lambda _, sql, __: order.append(f"add {sql}"),
            get_relation=lambda *_: existing,
            run_hooks=lambda run, _, hooks, response=None: run(hooks),
        )
        self.stage = macro_stage(
            *_STAGED,
            adapter=adapter,
            config=config,
            model=SimpleNamespace(name="m", language=language, config=config),
            this=_TABLE,
            execute=True,
            compiled_code="select 1 as a",
            load_cached_relation=lambda _: existing,
            should_full_refresh=lambda: full_refresh,
            run_hooks=lambda hooks: order.extend(f"hook {hook['sql']}" for hook in hooks),
            write=lambda _: "",
            store_result=lambda name, response: order.append(f"store {name}"),
            load_result=lambda name: SimpleNamespace(response=f"response of {name}"),
            should_revoke=lambda *_, full_refresh_mode: order.append(f"revoke {full_refresh_mode}"),
            apply_grants=lambda *_: order.append("grants"),
            get_assert_columns_equivalent=lambda _: "",
            get_select_subquery=lambda sql: f"select a from ({sql})",
            exceptions=SimpleNamespace(raise_compiler_error=refused),
            materialization_table_spark=lambda: "spark goes on",
            materialization_incremental_spark=lambda: "spark goes on",
            **hooks,
        )

    def of(self, materialization: str) -> Any:
        return self.stage.call(f"materialization_{materialization}_zlayout")


def refused(message: str) -> None:
    raise ValueError(message)


@pytest.mark.parametrize("materialization", ["zordered_table", "table", "incremental"])
def test_a_model_is_checked_before_its_hooks_and_written_between_them(
    macro_stage: Any, config_of: Any, materialization: str
) -> None:
    run = Run(macro_stage, config_of())
    assert run.of(materialization) == {"relations": [_TABLE]}
    assert run.order == [
        "check",
        "hook pre outside",
        "hook pre inside",
        "write select 1 as a",
        "store main",
        "revoke True",
        "grants",
        "hook post inside",
        "hook post outside",
    ]


def test_an_enforced_contract_shapes_the_query(macro_stage: Any, config_of: Any) -> None:
    run = Run(macro_stage, config_of(contract=SimpleNamespace(enforced=True)))
    run.of("zordered_table")
    assert "write select a from (select 1 as a)" in run.order


def test_the_code_of_a_python_model_stays_as_it_is_under_a_contract(macro_stage: Any, config_of: Any) -> None:
    run = Run(macro_stage, config_of(contract=SimpleNamespace(enforced=True)), language="python")
    run.of("table")
    assert "write select 1 as a" in run.order


def test_a_header_runs_before_the_query(macro_stage: Any, config_of: Any) -> None:
    run = Run(macro_stage, config_of(sql_header="set x = 1;"))
    run.of("table")
    assert run.stage.statements == ["set x = 1;"]


@pytest.mark.parametrize(
    ("materialization", "strategy", "existing", "full_refresh", "adds"),
    [
        ("incremental", None, None, False, False),
        ("incremental", None, _VIEW, False, False),
        ("incremental", None, _TABLE, True, False),
        ("incremental", None, _TABLE, False, True),
        ("zordered_table", None, _TABLE, False, False),
        ("zordered_table", "merge", _TABLE, False, True),
        ("zordered_table", "merge", _TABLE, True, False),
        ("table", "merge", _TABLE, False, False),
    ],
)
def test_rows_are_added_if_the_model_keeps_rows_and_the_table_exists(
    macro_stage: Any,
    config_of: Any,
    materialization: str,
    strategy: str | None,
    existing: Any,
    full_refresh: bool,
    adds: bool,
) -> None:
    config = config_of(incremental_strategy=strategy)
    config.materialized = materialization
    run = Run(macro_stage, config, existing=existing, full_refresh=full_refresh)
    run.stage.context["make_intermediate_relation"] = lambda _: _TABLE
    run.of(materialization)
    assert ("add select 1 as a" in run.order) == adds
    assert f"revoke {not adds}" in run.order
    assert run.stage.call("is_incremental") == adds


@pytest.mark.parametrize("repeated", [True, False])
def test_a_retry_of_some_batches_adds_them_also_after_a_full_refresh(
    macro_stage: Any, config_of: Any, repeated: bool
) -> None:
    config = config_of(incremental_strategy="microbatch")
    config.model.previous_batch_results = BatchResults(successful=[(_DAY, _DAY)], failed=[]) if repeated else None
    run = Run(macro_stage, config, existing=_TABLE, full_refresh=True)
    run.of("incremental")
    assert ("add select 1 as a" in run.order) == repeated
    assert f"revoke {not repeated}" in run.order


@pytest.mark.parametrize("materialization", ["table", "incremental"])
def test_another_format_is_left_to_spark(macro_stage: Any, config_of: Any, materialization: str) -> None:
    assert Run(macro_stage, config_of(file_format="delta")).of(materialization) == "spark goes on"
    assert Run(macro_stage, config_of(file_format="Parquet")).of(materialization) == {"relations": [_TABLE]}
    with pytest.raises(ValueError, match="leave the key out"):
        Run(macro_stage, config_of(file_format="delta"), language="python").of(materialization)


def test_a_table_of_another_format_cannot_be_written(macro_stage: Any, config_of: Any) -> None:
    with pytest.raises(ValueError, match="--full-refresh"):
        Run(macro_stage, config_of(), existing=_DELTA).of("incremental")


def test_a_clone_is_a_view_on_the_other_table(macro_stage: Any, config_of: Any) -> None:
    stage = macro_stage(
        "materializations/clone.sql",
        adapter=Recorder(),
        this=_TABLE,
        defer_relation="prod.t",
        config=config_of(),
        flags=SimpleNamespace(FULL_REFRESH=False),
        load_cached_relation=lambda _: None,
    )
    returned = stage.call("materialization_clone_zlayout")
    assert stage.statements == ["create or replace view s.t as select * from prod.t"]
    assert [relation.is_view for relation in returned["relations"]] == [True]


@pytest.mark.parametrize(
    ("execute", "empty", "asks"), [(True, False, True), (False, False, False), (True, True, False)]
)
def test_prune_by_only_queries_when_a_model_runs(macro_stage: Any, execute: bool, empty: bool, asks: bool) -> None:
    adapter = Recorder(prune_by="a in (1)")
    stage = macro_stage(
        "layout/zlayout_prune_by.sql", adapter=adapter, execute=execute, flags=SimpleNamespace(EMPTY=empty)
    )
    assert stage.call("zlayout_prune_by", "a", "select 1") == ("a in (1)" if asks else "true")
    assert adapter.calls == ([("prune_by", "a", "select 1", 1000, 100)] if asks else [])
