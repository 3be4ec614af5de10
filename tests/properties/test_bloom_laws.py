"""Laws of Bloom filters: no file is skipped that holds a matching row, whatever its values and the predicate are."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.zlayout.index.bloom.file_filters import FilterBuilder, blocks_of, filter_of, filter_table, masks_of
from dbt.adapters.zlayout.index.bloom.filter_slices import FilterSlice, slice_path, write_slices
from dbt.adapters.zlayout.index.bloom.hashing import hashes_of
from dbt.adapters.zlayout.index.bloom.table_filters import FilesFilters, TableFilters
from dbt.adapters.zlayout.index.statistics.tracked import TrackedColumn
from dbt.adapters.zlayout.predicate.normal_form import normal_form
from dbt.adapters.zlayout.pruning.evaluation import verdicts_of_normal
from dbt.adapters.zlayout.store.local import LocalStore
from dbt.adapters.zlayout.timeline.files.data_files import DataFile, DataFiles

# The oracle and the strategies are those of the laws of pruning.
_spec = importlib.util.spec_from_file_location("pruning_laws", Path(__file__).parent / "test_pruning_laws.py")
assert _spec is not None
assert _spec.loader is not None
laws: Any = importlib.util.module_from_spec(_spec)
sys.modules["pruning_laws"] = laws
_spec.loader.exec_module(laws)

INSTANT = "20260131235959999"
many = laws.many


def filters_on_disk(folder: Path, types: Any, files: list[Any], has_filter: list[bool]) -> FilesFilters:
    """Real filters of rows, in a slice in a folder; some files may lack them."""
    names = [f"f{number}" for number in range(len(files))]
    each = zip(names, files, strict=True)
    live = DataFiles.of([DataFile(name, (), len(rows), 1, 1, "0" * 16) for name, rows in each], ())
    columns = [TrackedColumn((name,), kind) for name, kind in types.items()]
    found: dict[tuple[str, ...], list[bytes | None]] = {}
    for column in columns:
        found[column.path] = []
        for rows, wanted in zip(files, has_filter, strict=True):
            builder = FilterBuilder(column.type)
            builder.add(pa.array([row[column.path[0]] for row in rows], column.type))
            found[column.path].append(builder.content() if wanted else None)
    store, paths = LocalStore(folder), []
    for content in write_slices(live, [filter_table(names, columns, found)]):
        paths.append(slice_path(INSTANT, content))
        store.put(paths[-1], content)
    return TableFilters(paths, partial(FilterSlice, store), lambda _: None).of(live)


@many
@given(st.data())
def test_no_file_with_a_matching_row_is_skipped_by_its_filters(data: st.DataObject) -> None:
    types, files, expr = data.draw(laws.cases())
    has_filter = data.draw(st.lists(st.booleans(), min_size=len(files), max_size=len(files)))
    with tempfile.TemporaryDirectory() as folder:
        filters = filters_on_disk(Path(folder), types, files, has_filter)
        statistics = laws.complete(types, files)
        if data.draw(st.booleans()):
            statistics = data.draw(laws.with_losses(statistics))
        normal = normal_form(expr)
        found = verdicts_of_normal(normal, statistics, [filters])
        laws.assert_sound(found.tolist(), files, expr)
        without = verdicts_of_normal(normal, statistics)
        # Filters only add proofs.
        for more, less in zip(found.tolist(), without.tolist(), strict=True):
            assert less in (more, laws.Verdict.READ) or more == laws.Verdict.SKIP


@many
@given(st.data())
def test_every_value_of_a_column_is_in_its_filter(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(list(laws.POOLS)))
    free = {
        pa.int64(): st.integers(-(2**63), 2**63 - 1),
        pa.float64(): st.floats(),
        pa.string(): st.text(max_size=400),
        pa.binary(): st.binary(max_size=400),
    }
    values = data.draw(st.lists(st.none() | st.sampled_from(laws.POOLS[kind]) | free.get(kind, st.nothing())))
    column = pa.array(values, kind)
    words = np.frombuffer(filter_of(hashes_of(column, kind)), "<u4").reshape(-1, 8)
    for value in values:
        hashes = hashes_of(pa.array([value], kind), kind)
        if value is None:
            assert not len(hashes)
        else:
            (block,), (mask,) = words[blocks_of(hashes, np.uint64(len(words)))], masks_of(hashes)
            assert ((block & mask) == mask).all()
