"""Finds the table of a model that is named on the command line."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from dbt.adapters.zlayout.adapter.sql_literals import quoted_identifier
from dbt.adapters.zlayout.errors import ConfigError

_RELATIONAL = ("model", "seed", "snapshot")
_MOST_NAMES = 10


def tables_of(nodes: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The tables of all models, seeds and snapshots, spelled as in `table_of`.

    Args:
        nodes: ``graph.nodes``.
    """
    return [table_of(name, nodes) for name, node in sorted(nodes.items()) if node["resource_type"] in _RELATIONAL]


def table_of(name: str, nodes: Mapping[str, Mapping[str, Any]]) -> str:
    """The table of a node. A name with a dot that no node has is returned as it is.

    Args:
        name: The name of a model, seed or snapshot, or ``schema.table``. Empty or undefined (Jinja) if none was given.
        nodes: ``graph.nodes``.

    Returns:
        ``schema.identifier``, in backquotes if it comes from a node.

    Raises:
        ConfigError: No node has the name, or several nodes have it.
    """
    relational = [node for node in nodes.values() if node["resource_type"] in _RELATIONAL]
    if not name:
        raise ConfigError(
            [f"model: none is given; add --args '{{model: NAME}}' with {_some_of(relational)}schema.table"]
        )
    found = [node for node in relational if name in (node["name"], node["unique_id"])]
    if len(found) == 1:
        return f"{quoted_identifier(found[0]['schema'])}.{quoted_identifier(found[0]['alias'])}"
    if found:
        ids = ", ".join(sorted(node["unique_id"] for node in found))
        raise ConfigError([f"model: '{name}' matches {ids}; give one of these"])
    if "." in name:
        return name
    near = difflib.get_close_matches(name, [node["name"] for node in relational], n=1)
    hint = f"did you mean '{near[0]}'?" if near else "give the name of a model of this project, or schema.table"
    raise ConfigError([f"model: there is no model '{name}'; {hint}"])


def _some_of(nodes: Sequence[Mapping[str, Any]]) -> str:
    """The names of the first few nodes, as a list of choices that more can follow."""
    names = sorted(node["name"] for node in nodes)
    more = f"one of {len(names) - _MOST_NAMES:,} more, " if len(names) > _MOST_NAMES else ""
    return "".join(f"{name}, " for name in names[:_MOST_NAMES]) + more + ("or " if names else "")


def config_of_table(table: str, nodes: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    """The config of the node that builds a table. Empty if no node builds it.

    Args:
        table: ``schema.identifier``, with or without backquotes.
        nodes: ``graph.nodes``.
    """
    plain = table.replace("`", "").lower()
    for node in nodes.values():
        if node["resource_type"] in _RELATIONAL and f"{node['schema']}.{node['alias']}".lower() == plain:
            config: Mapping[str, Any] = node.get("config") or {}
            return config
    return {}
