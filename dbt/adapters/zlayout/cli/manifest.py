"""The models of a dbt project, from the manifest that either dbt engine writes to ``target/manifest.json``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dbt.adapters.zlayout.config.known_keys import with_meta_settings
from dbt.adapters.zlayout.errors import ConfigError

_NEEDED = ("resource_type", "name", "unique_id", "schema", "alias")
_TABLES = ("model", "seed", "snapshot")


def read_nodes(path: Path) -> dict[str, dict[str, Any]]:
    """Returns all nodes of a manifest by their unique id, as dbt wrote them.

    Raises:
        ConfigError: The file is not a manifest.
    """
    return {name: node for name, node in _nodes(path).items() if isinstance(node, dict) and "name" in node}


def read_manifest(path: Path) -> dict[str, dict[str, Any]]:
    """Returns the models, seeds and snapshots of a manifest by their unique id, and the tests of this package.

    The config of each also has the settings of its ``meta.zlayout``, which is where dbt's Rust engine accepts them. A
    setting in the config itself takes precedence.

    Raises:
        ConfigError: The file is not a manifest.
    """
    nodes = _nodes(path)
    found = {
        name: node
        for name, node in nodes.items()
        if isinstance(node, dict) and (node.get("resource_type") in _TABLES or _is_own_test(node))
    }
    problems = [
        f"{name}: {key} is {node.get(key)!r}, not text"
        for name, node in found.items()
        for key in _NEEDED
        if not isinstance(node.get(key), str)
    ]
    if problems:
        raise ConfigError(problems, str(path))
    return {name: {**node, "config": _config(node)} for name, node in found.items()}


def _nodes(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(
            [f"cannot be read: {error}; give the target/manifest.json of a dbt project"], str(path)
        ) from error
    nodes = content.get("nodes") if isinstance(content, dict) else None
    if not isinstance(nodes, dict):
        raise ConfigError(["is not a manifest: it has no nodes; give the target/manifest.json of a project"], str(path))
    return nodes


def _is_own_test(node: Mapping[str, Any]) -> bool:
    test = node.get("test_metadata")
    name = test.get("name") if isinstance(test, dict) else None
    return node.get("resource_type") == "test" and isinstance(name, str) and name.startswith("zlayout_")


def _config(node: Mapping[str, Any]) -> dict[str, Any]:
    own = node.get("config")
    own = own if isinstance(own, dict) else {}
    # One engine writes a node's meta into its config, the other beside it.
    return with_meta_settings({**own, "meta": own.get("meta") or node.get("meta")})
