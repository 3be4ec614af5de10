"""Says what would make models run: compares their code, settings and inputs with those of their last commits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from dbt.adapters.zlayout.adapter.materialize.model_settings import read_model
from dbt.adapters.zlayout.adapter.materialize.origin import FILE_CHANGED, NO_ORIGIN, reasons_to_run, sources_text
from dbt.adapters.zlayout.adapter.node_lookup import Nodes, name_of_node, table_of, table_of_node
from dbt.adapters.zlayout.adapter.output import json_text
from dbt.adapters.zlayout.config.known_keys import with_meta_settings
from dbt.adapters.zlayout.errors import ConfigError
from dbt.adapters.zlayout.predicate.literals import folded_name
from dbt.adapters.zlayout.spark.catalog.session_catalog import Catalog
from dbt.adapters.zlayout.spark.jobs.jobs import short_message
from dbt.adapters.zlayout.table.ztable import ZTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NO_TABLE = "it is materialized as {}, and only tables can be skipped"
_NOT_BUILT = "it has not been built yet"
_WRITTEN = ("table", "incremental", "zordered_table")


def why_run_report(
    session: SparkSession,
    model: str | None,
    nodes: Nodes,
    schema_root: Callable[[str | None], str | None],
    as_json: bool,
) -> str:
    """Says what would make a model, or each model of the project, run.

    Raises:
        ConfigError: There is no such model.
    """
    table = None if model is None else table_of(model, nodes)
    models = [
        node
        for _, node in sorted(nodes.items())
        if node["resource_type"] == "model"
        and (
            node["config"].get("materialized") in _WRITTEN
            if table is None
            else folded_name(table_of_node(node)) == folded_name(table)
        )
    ]
    if table is not None and not models:
        problem = f"model: '{model}' is not a model of this project; only models can be skipped"
        raise ConfigError([problem], "zlayout_why_run")
    found = {name_of_node(node): _why(session, node, schema_root) for node in models}
    if as_json:
        return json_text(found)
    return "\n".join(f"{name}: {_sentence(each)}" for name, each in found.items()) or "The project has no tables."


def _why(
    session: SparkSession, node: Mapping[str, Any], schema_root: Callable[[str | None], str | None]
) -> dict[str, Any]:
    """Returns whether one model can be skipped, its last version, the inputs of that version, and why it would run."""
    found: dict[str, Any] = {"skip_unchanged": False, "version": None, "reads": "", "reasons": []}
    if node["config"].get("materialized") not in _WRITTEN:
        return {**found, "reasons": [_NO_TABLE.format(node["config"].get("materialized"))]}
    try:
        wanted = read_model(node, schema_root(node["schema"]))
        found["skip_unchanged"] = wanted.skip_unchanged
        off = [] if wanted.skip_unchanged else [_why_never_skipped(node["config"])]
        name = table_of_node(node)
        if Catalog(session).find_named(name) is None:
            return {**found, "reasons": [_NOT_BUILT]}
        origin = ZTable.for_name(session, name).made_from()
        if origin is None:
            return {**found, "reasons": [*off, NO_ORIGIN]}
        version, before = origin
        reasons = [*off, *reasons_to_run(session, before, node, wanted)]
        return {**found, "version": version, "reads": sources_text(before), "reasons": reasons}
    except Exception as error:  # one model must not hide the others
        why = f"it cannot be compared with its last run: {short_message(error)}"
    return {**found, "reasons": [why]}


def _why_never_skipped(config: Mapping[str, Any]) -> str:
    """Returns why a model without ``skip_unchanged: true`` is never skipped."""
    if with_meta_settings(config).get("skip_unchanged") is None:
        return "skip_unchanged is not set"
    in_meta = with_meta_settings({"meta": config.get("meta")}).get("skip_unchanged")
    return "skip_unchanged is false" + (" in the config, which takes precedence over meta" if in_meta else "")


def _sentence(found: Mapping[str, Any]) -> str:
    compiled = "runs if variables, macros or ephemeral models change its SQL"
    unchanged = f"unchanged since v{found['version']}: {found['reads']} ({compiled})"
    if not found["skip_unchanged"] and len(found["reasons"]) == 1 and found["version"] is not None:
        return f"would run: {found['reasons'][0]}; with it, {unchanged}"
    if found["reasons"] == [FILE_CHANGED]:
        return f"would run if its compiled SQL has changed too: {FILE_CHANGED} since v{found['version']}"
    return f"would run: {'; '.join(found['reasons'])}" if found["reasons"] else unchanged
