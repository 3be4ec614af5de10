"""Finds the tables that an operation is about: of a model, of a relation, or of the whole project."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dbt.adapters.zlayout.adapter.relation import ZlayoutRelation, name_of
from dbt.adapters.zlayout.config.known_keys import with_meta_settings
from dbt.adapters.zlayout.errors import ConfigError, TableLostError, TableNotFoundError
from dbt.adapters.zlayout.predicate.literals import backquoted, folded_name
from dbt.adapters.zlayout.quantities import counted
from dbt.adapters.zlayout.table.ztable import ZTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Nodes = Mapping[str, Mapping[str, Any]]
_RELATIONAL = ("model", "seed", "snapshot")
_MOST_NAMES = 10


def opened_table(session: SparkSession, relation: ZlayoutRelation | str) -> ZTable:
    """Opens the table of a relation, of a name, or in a folder.

    Raises:
        TableNotFoundError: The table does not exist, or it has no index.
    """
    name = name_of(relation)
    return ZTable.for_path(session, name) if is_path(name) else ZTable.for_name(session, name)


def is_path(text: str) -> bool:
    """Returns whether a text names a folder, and not a table: it has a slash and is not quoted, or is ``.`` or ``..``.

    >>> is_path("/lake/orders"), is_path("./orders"), is_path("s3://lake/orders"), is_path("shop.orders")
    (True, True, True, False)
    """
    return ("/" in text and "`" not in text) or text in (".", "..")


def chosen_tables(session: SparkSession, model: str | None, nodes: Nodes) -> list[ZTable]:
    """Opens the table of a model or, without a model, all dbt-zlayout tables of the project.

    A project also has views, tables of other formats, and models that were never built. They are left out.

    Raises:
        ZlayoutError: A table cannot be opened.
    """
    if model is not None:
        return [opened_table(session, table_of(model, nodes))]
    opened = (table_if_there(session, name) for name in tables_of(nodes))
    return [table for table in opened if table is not None]


def table_if_there(session: SparkSession, name: str) -> ZTable | None:
    """Opens a table. Returns None if it does not exist or has no index.

    Raises:
        ZlayoutError: It cannot be opened.
    """
    try:
        return ZTable.for_name(session, name)
    except TableLostError:
        raise
    except TableNotFoundError:
        return None


def tables_of(nodes: Nodes) -> list[str]:
    """Returns the tables of all models, seeds and snapshots, spelled as in `table_of`."""
    return [table_of_node(node) for _, node in sorted(nodes.items()) if node["resource_type"] in _RELATIONAL]


def table_of_node(node: Mapping[str, Any]) -> str:
    """Returns the table that a node builds: ``schema.identifier``, in backquotes."""
    return f"{backquoted(node['schema'])}.{backquoted(node['alias'])}"


def name_of_node(node: Mapping[str, Any]) -> str:
    """Returns the name of a node, with its version if it has one, because all versions of a model share its name.

    >>> name_of_node({"name": "orders", "version": 2}), name_of_node({"name": "orders"})
    ('orders.v2', 'orders')
    """
    version = node.get("version")
    return str(node["name"]) if version is None else f"{node['name']}.v{version}"


def table_of(name: str, nodes: Nodes) -> str:
    """Returns the table of a node. A name with a dot that no node has is returned as it is.

    Args:
        name: The name of a model, seed or snapshot, ``schema.table``, or a folder. Empty or undefined (Jinja) if none
            was given.

    Returns:
        ``schema.identifier``, in backquotes if it comes from a node.

    Raises:
        ConfigError: No node has the name, or several nodes have it.
    """
    relational = [node for node in nodes.values() if node["resource_type"] in _RELATIONAL]
    if not name:
        raise ConfigError(
            [f"model: missing; add --args '{{model: NAME}}', where NAME is {_some_of(relational)}schema.table"]
        )
    found = [node for node in relational if name in (node["name"], node["unique_id"])]
    if len(found) == 1:
        return table_of_node(found[0])
    if found:
        ids = ", ".join(sorted(node["unique_id"] for node in found))
        raise ConfigError([f"model: '{name}' matches {ids}; give one of these"])
    if "." in name or is_path(name):
        return name
    near = difflib.get_close_matches(name, [node["name"] for node in relational], n=1)
    hint = (
        f"did you mean '{near[0]}'?" if near else "give the name of a model of this project, schema.table or a folder"
    )
    raise ConfigError([f"model: there is no model '{name}'; {hint}"])


def _some_of(nodes: Sequence[Mapping[str, Any]]) -> str:
    """Returns the names of the first few nodes, as a list of choices that more can follow."""
    names = sorted(node["name"] for node in nodes)
    more = f"{counted(len(names) - _MOST_NAMES, 'other name')}, " if len(names) > _MOST_NAMES else ""
    return "".join(f"{name}, " for name in names[:_MOST_NAMES]) + more + ("or " if names else "")


def config_of_table(table: str, nodes: Nodes) -> Mapping[str, Any]:
    """Returns the config of the node that builds a table. Empty if no node builds it.

    Args:
        table: ``schema.identifier``, with or without backquotes.
    """
    plain = folded_name(table)
    for node in nodes.values():
        if node["resource_type"] in _RELATIONAL and f"{node['schema']}.{node['alias']}".lower() == plain:
            return with_meta_settings(node.get("config") or {})
    return {}
