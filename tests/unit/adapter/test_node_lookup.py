"""Models named on the command line."""

from __future__ import annotations

import pytest

from dbt.adapters.zlayout.adapter.node_lookup import table_of
from dbt.adapters.zlayout.errors import ConfigError

_NODES = {
    unique_id: {"unique_id": unique_id, "resource_type": kind, "name": name, "schema": "s", "alias": alias}
    for unique_id, kind, name, alias in [
        ("model.p.orders", "model", "orders", "orders_v2"),
        ("model.p.twice", "model", "twice", "t1"),
        ("model.q.twice", "model", "twice", "t2"),
        ("seed.p.rates", "seed", "rates", "rates"),
        ("test.p.orders", "test", "orders", "orders"),
    ]
}


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("orders", "`s`.`orders_v2`"),
        ("rates", "`s`.`rates`"),
        ("model.q.twice", "`s`.`t2`"),
        ("other.table", "other.table"),
        ("/lake/orders", "/lake/orders"),
        ("./orders", "./orders"),
        ("s3://lake/orders", "s3://lake/orders"),
    ],
)
def test_a_name_finds_its_table(name: str, table: str) -> None:
    assert table_of(name, _NODES) == table


def test_the_error_without_a_name_lists_the_models_and_how_to_give_one() -> None:
    for name in ("", None):
        with pytest.raises(ConfigError, match=r"--args '\{model: NAME\}', where NAME is orders, rates, twice"):
            table_of(name, _NODES)


@pytest.mark.parametrize(
    ("name", "told"),
    [("twice", r"model\.p\.twice, model\.q\.twice"), ("order", "did you mean 'orders'"), ("zzz", r"schema\.table")],
)
def test_the_error_for_an_unknown_name_suggests_one(name: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        table_of(name, _NODES)
