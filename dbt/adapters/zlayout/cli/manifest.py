"""The models of a dbt project, from the manifest that either dbt engine writes to ``target/manifest.json``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbt.adapters.zlayout.config.known_keys import with_meta_settings
from dbt.adapters.zlayout.errors import ConfigError

_NEEDED = ("resource_type", "name", "unique_id", "schema", "alias")
_TABLES = ("model", "seed", "snapshot")


@dataclass(frozen=True)
class Manifest:
    """The content of a manifest. It is read once: it may have many megabytes.

    Attributes:
        path: The file, for messages.
        nodes: Its nodes by their unique id, as dbt wrote them.
        exposures: Its exposures.
    """

    path: Path
    nodes: Mapping[str, Any]
    exposures: Mapping[str, Any]

    @classmethod
    def read(cls, path: Path) -> Manifest:
        """Reads a manifest.

        Raises:
            ConfigError: The file is not a manifest.
        """
        try:
            content = json.loads(path.read_bytes())
        except (OSError, ValueError, RecursionError) as error:
            raise ConfigError(
                [f"cannot be read: {error}; give the target/manifest.json of a dbt project"], str(path)
            ) from error
        if not isinstance(content, dict) or not isinstance(content.get("nodes"), dict):
            why = "is not a manifest: it has no nodes; give the target/manifest.json of a project"
            raise ConfigError([why], str(path))
        exposures = content.get("exposures")
        return cls(path, content["nodes"], exposures if isinstance(exposures, dict) else {})

    def named(self) -> dict[str, dict[str, Any]]:
        """Returns all nodes and exposures by their unique id, as dbt wrote them."""
        found = {**self.nodes, **self.exposures}
        return {name: node for name, node in found.items() if isinstance(node, dict) and "name" in node}

    def tables(self) -> dict[str, dict[str, Any]]:
        """Returns the models, seeds and snapshots by their unique id, and the tests of this package.

        The config of each also has the settings of its ``meta.zlayout``, which is where dbt's Rust engine accepts them.
        A setting in the config itself takes precedence.

        Raises:
            ConfigError: A node lacks what each has.
        """
        found = {
            name: node
            for name, node in self.nodes.items()
            if isinstance(node, dict) and (node.get("resource_type") in _TABLES or _is_own_test(node))
        }
        problems = [
            f"{name}: {key} is {node.get(key)!r}, not text"
            for name, node in found.items()
            for key in _NEEDED
            if not isinstance(node.get(key), str)
        ]
        if problems:
            raise ConfigError(problems, str(self.path))
        return {name: {**node, "config": _config(node)} for name, node in found.items()}


def _is_own_test(node: Mapping[str, Any]) -> bool:
    test = node.get("test_metadata")
    name = test.get("name") if isinstance(test, dict) else None
    return node.get("resource_type") == "test" and isinstance(name, str) and name.startswith("zlayout_")


def _config(node: Mapping[str, Any]) -> dict[str, Any]:
    own = node.get("config")
    own = own if isinstance(own, dict) else {}
    # One engine writes a node's meta into its config, the other beside it.
    return with_meta_settings({**own, "meta": own.get("meta") or node.get("meta")})
