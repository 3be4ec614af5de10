"""Tables of log entries, index slices and empty data files, made by the core alone: no Spark, no rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from dbt.adapters.zlayout.config.table_config import parse_table_config, stored_settings
from dbt.adapters.zlayout.index.slice_writing import slice_path, write_slices
from dbt.adapters.zlayout.index.statistics.column_stats import column_stats_table, stats_type
from dbt.adapters.zlayout.publish import spark_manifest
from dbt.adapters.zlayout.spark.catalog.session_catalog import TablePath
from dbt.adapters.zlayout.spark.snapshot.table_snapshot import TableSnapshot
from dbt.adapters.zlayout.store.local import LocalStore
from dbt.adapters.zlayout.table.layout_report import TableReport, layout_report
from dbt.adapters.zlayout.timeline.files.action import Action, Operation
from dbt.adapters.zlayout.timeline.files.data_files import DataFiles
from dbt.adapters.zlayout.timeline.files.instant import instant_of
from dbt.adapters.zlayout.timeline.files.table_file import ManagementLevel, TableFile, create_table_file
from dbt.adapters.zlayout.timeline.log.entry import Commit
from dbt.adapters.zlayout.timeline.timeline import Timeline

ROWS, BYTES = 1000, 40_000
_NOW_MS = 1_780_000_000_000
_TYPES = {"long": pa.int64(), "string": pa.string(), "date": pa.date32()}
Bounds = Sequence[tuple[Any, Any]]


class MadeTable:
    """A table in a folder. Each commit says which range of each column its files cover.

    Args:
        folder: The folder, which is created.
        columns: The Spark type of each column: 'long', 'string' or 'date'.
        zorder: The clustering keys.
        with_files: Whether the folder holds a file for each path, empty but of the right size.
    """

    def __init__(
        self, folder: Path, columns: Mapping[str, str], zorder: Sequence[str] = (), *, with_files: bool = True
    ) -> None:
        folder.mkdir(parents=True)
        self.folder, self.columns, self.with_files = folder, columns, with_files
        self.store = LocalStore(folder)
        create_table_file(self.store, TableFile.new(ManagementLevel.MANAGED, "s.t", _NOW_MS))
        keys = [f"`{name.replace('`', '``')}`" for name in zorder]
        config = parse_table_config({"zorder": keys} if keys else {})
        self.layout = stored_settings(config)
        fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in columns.items()]
        self.schema_json = json.dumps({"type": "struct", "fields": fields})
        self.index: dict[str, tuple[str, ...]] = {}
        self.version = -1
        self.timeline = Timeline(self.store)

    def commit(
        self, bounds: Mapping[str, Bounds], operation: Operation = Operation.APPEND, *, replaces: bool = False
    ) -> MadeTable:
        """Adds a file for each pair of bounds, and with ``replaces`` removes all others."""
        before = self.timeline.newest()
        self.version += 1
        committed_ms = _NOW_MS + self.version * 86_400_000
        instant = instant_of(committed_ms)
        count = len(next(iter(bounds.values())))
        files = DataFiles.from_columns(
            (),
            path=[f"{number:016x}_{instant}.parquet" for number in range(count)],
            partition_values=[],
            row_count=[ROWS] * count,
            size_bytes=[BYTES] * count,
            modified_ms=[committed_ms] * count,
            group=[f"{number:016x}" for number in range(count)],
        )
        if self.with_files:
            for path in files["path"].to_pylist():
                with (self.folder / path).open("wb") as file:
                    file.truncate(BYTES)
        stats = column_stats_table(
            files["path"].combine_chunks(),
            [(name,) for name in bounds],
            [_struct(pairs, _TYPES[self.columns[name]]) for name, pairs in bounds.items()],
        )
        for partition, content in write_slices(files, stats).items():
            path = slice_path(partition, instant, content)
            self.store.put(path, content)
            self.index[partition] = (*self.index.get(partition, ()), path)
        after = self.timeline.append(
            Commit(
                version=self.version,
                instant=instant,
                action=Action.REPLACECOMMIT if replaces else Action.COMMIT,
                operation=operation.value,
                committed_ms=committed_ms,
                last_instant=instant,
                schema_json=self.schema_json,
                partition_by=(),
                layout=self.layout,
                index=dict(self.index),
                adds=files,
                removes=tuple(before.files["path"].to_pylist()) if replaces and before is not None else (),
            ),
            before,
        )
        spark_manifest.publish(self.store, after)
        return self

    def opened(self) -> TableSnapshot:
        """Opens the newest version."""
        found = TableSnapshot.newest(self.folder.as_uri(), "UTC")
        assert found is not None
        return found

    def report(self, **options: Any) -> TableReport:
        """What a report says of the table."""
        return layout_report(None, TablePath(self.folder.as_uri()), self.opened(), **options)


def _struct(pairs: Bounds, kind: pa.DataType) -> pa.StructArray:
    lows, highs = (pa.array([each[side] for each in pairs], kind) for side in (0, 1))
    count = len(pairs)
    fields = {"min": lows, "max": highs}
    fields |= {each.name: pa.repeat(True, count) for each in stats_type(kind) if each.type == pa.bool_()}
    fields |= {
        each.name: pa.array([ROWS if each.name == "value_count" else 0] * count, pa.int64())
        for each in stats_type(kind)
        if each.name not in fields
    }
    wanted = stats_type(kind)
    return pa.StructArray.from_arrays([fields[each.name].cast(each.type) for each in wanted], fields=list(wanted))


def grid(across: int, up: int, width: int = 1000) -> tuple[Bounds, Bounds]:
    """Bounds of two keys of a good layout: each file one cell."""
    cells = [(x, y) for x in range(across) for y in range(up)]
    return (
        [(x * width, x * width + width - 1) for x, _ in cells],
        [(y * width, y * width + width - 1) for _, y in cells],
    )


def scattered(count: int, width: int = 1000, seed: int = 1) -> tuple[Bounds, Bounds]:
    """Bounds of two keys of files that overlap nearly all others."""
    random = np.random.default_rng(seed)
    edges = random.integers(0, width, (4, count))
    low_x, high_x, low_y, high_y = edges
    top = width * 9
    return (
        [(int(low), int(top + high)) for low, high in zip(low_x, high_x, strict=True)],
        [(int(low), int(top + high)) for low, high in zip(low_y, high_y, strict=True)],
    )
