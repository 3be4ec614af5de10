"""What a model says of its way of writing: spellings, defaults and all problems."""

from __future__ import annotations

import pytest

from dbt.adapters.zlayout.config.incremental import IncrementalConfig, parse_incremental


def parsed(**raw: object) -> IncrementalConfig:
    problems: list[str] = []
    config = parse_incremental(raw, problems)
    assert problems == []
    return config


def problems_of(**raw: object) -> str:
    problems: list[str] = []
    parse_incremental(raw, problems)
    assert problems
    return "\n".join(problems)


def test_nothing_set_appends_and_leaves_new_columns_out() -> None:
    assert parsed() == IncrementalConfig()
    assert parsed(incremental_strategy="default") == IncrementalConfig()
    assert (IncrementalConfig().strategy, IncrementalConfig().on_schema_change) == ("append", "ignore")


@pytest.mark.parametrize(
    ("spelled", "strategy"),
    [
        ("Merge", "merge"),
        ("delete+insert", "delete+insert"),
        ("delete_insert", "delete+insert"),
        (" append ", "append"),
    ],
)
def test_strategies_are_words_in_any_case(spelled: str, strategy: str) -> None:
    assert parsed(incremental_strategy=spelled).strategy == strategy


def test_a_merge_on_read_table_takes_rows_by_their_key() -> None:
    assert parsed(table_type="merge_on_read").strategy == "merge"
    assert parsed(table_type="merge_on_read", incremental_strategy="default").strategy == "merge"
    assert parsed(table_type="copy_on_write").strategy == "append"
    assert "'append' uses no key" in problems_of(table_type="merge_on_read", incremental_strategy="append")


@pytest.mark.parametrize("spelled", ["a", ["a"], "`a`"])
def test_one_key_is_text_or_a_list(spelled: object) -> None:
    assert parsed(unique_key=spelled).unique_key == ("a",)


@pytest.mark.parametrize("spelled", ["a, `b.c`", ["a", "`b.c`"], "a,`b.c`"])
def test_several_keys_are_text_with_commas_or_a_list(spelled: object) -> None:
    assert parsed(unique_key=spelled).unique_key == ("a", "b.c")


@pytest.mark.parametrize("spelled", ["coalesce(a, b)", "a || b", ["a", "cast(b as int)"], "a + 1", "'a'"])
def test_an_expression_is_no_key_and_the_way_out_is_told(spelled: object) -> None:
    found = problems_of(unique_key=spelled)
    assert "is an expression" in found
    assert "compute the expression as a column" in found


def test_a_field_of_a_struct_is_no_key() -> None:
    assert "'a.b' is a field of a struct" in problems_of(unique_key="a.b")


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ({"incremental_strategy": "upsert"}, "'upsert' is not one of append, delete+insert, insert_overwrite, merge"),
        ({"merge_update_columns": ["a"], "merge_exclude_columns": "b"}, "a model can have one of them"),
        ({"incremental_predicates": [3]}, "is not a list of conditions"),
        ({"predicates": {"a": 1}}, "predicates: "),
        ({"matched_condition": 3}, "matched_condition: 3"),
        (
            {"incremental_strategy": "merge", "unique_key": "k", "deleted_when": True},
            "deleted_when: True is not a condition (write \"op = 'D'\")",
        ),
        ({"deleted_when": "op = 'D'"}, "incremental_strategy 'append' does not support deletes"),
        (
            {"incremental_strategy": "delete+insert", "unique_key": "k", "deleted_when": "op = 'D'"},
            "set incremental_strategy to 'merge'",
        ),
        ({"incremental_strategy": "merge", "deleted_when": "op = 'D'"}, "finds its row by the key; set unique_key"),
        (
            {
                "incremental_strategy": "merge",
                "unique_key": "k",
                "deleted_when": "op = 'D'",
                "skip_matched_step": True,
            },
            "skip_matched_step leaves matching rows unchanged",
        ),
        ({"skip_matched_step": "perhaps"}, "'perhaps' is not true or false"),
        ({"source_alias": "a b"}, "source_alias: 'a b' is not a plain name"),
        ({"on_schema_change": "grow"}, "'grow' is not one of ignore, fail, append_new_columns, sync_all_columns"),
        ({"partition_overwrite": "some"}, "'some' is not one of dynamic, static"),
        ({"incremental_strategy": "microbatch"}, "event_time: None"),
        (
            {"incremental_strategy": "microbatch", "event_time": "t", "materialized": "zordered_table"},
            "materialized='incremental'",
        ),
    ],
)
def test_what_is_wrong_is_told_with_what_is_allowed(raw: dict[str, object], words: str) -> None:
    assert words in problems_of(**raw)


def test_conditions_and_steps_are_read() -> None:
    config = parsed(
        incremental_strategy="merge",
        unique_key="id",
        predicates="t.day > '2024-01-01'",
        matched_condition="s.n > t.n",
        not_matched_condition="s.n > 0",
        skip_matched_step="false",
        skip_not_matched_step=True,
        source_alias="s",
        target_alias="t",
        merge_update_columns="n",
    )
    assert config.predicates == ("t.day > '2024-01-01'",)
    assert (config.matched_condition, config.not_matched_condition) == ("s.n > t.n", "s.n > 0")
    assert (config.skip_matched_step, config.skip_not_matched_step) == (False, True)
    assert (config.source_alias, config.target_alias) == ("s", "t")
    assert config.update_columns == ("n",)


def test_which_rows_are_deletes_is_a_rule_of_a_merge() -> None:
    config = parsed(incremental_strategy="merge", unique_key="id", deleted_when="op = 'D'")
    assert config.merge_rules["deleted_when"] == "op = 'D'"
