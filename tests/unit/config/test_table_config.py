"""The settings as a version of a table stores them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from dbt.adapters.zlayout.config.clustering import ReclusteringConfig
from dbt.adapters.zlayout.config.table_config import TableConfig, parse_table_config, read_stored, stored_settings

CONFIGS = (
    {},
    {"zorder": ["a", "b.c"], "curve": "linear", "partition_by": "p", "stats_columns": "a, b.c", "compression": "gzip"},
    {"target_file_size": "1mb", "row_group_rows": 7, "stats_columns": 5, "retain_versions": 9, "retain_hours": 0.5},
    {"writer": "spark", "bloom": ["a", "b.c"], "lookup": ["a", ["b.c", "d"]]},
    {"table_type": "merge_on_read", "unique_key": ["a", "`b.c`"], "ordering": "o", "compaction_max_bytes": "2gb"},
)


@pytest.mark.parametrize("raw", CONFIGS)
def test_what_a_version_stores_is_what_was_set(raw: dict[str, object]) -> None:
    config = parse_table_config(raw)
    layout = json.loads(json.dumps(stored_settings(config)))
    assert read_stored(layout, config.partitioning.columns) == replace(config, reclustering=ReclusteringConfig())


def test_a_version_without_settings_and_one_with_keys_that_nobody_knows_are_read() -> None:
    assert read_stored({}, ()) == TableConfig()
    assert read_stored({"drift": 0.5, "quagga": {"columns": ["a"]}}, ()) == TableConfig()
