"""Laws of lookup indexes: no file is skipped that holds a matching row, whatever is damaged, and none is kept else."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from dbt.adapters.zlayout.index.lookup.lookup_key import HashCollector, LookupKey, run_bytes
from dbt.adapters.zlayout.index.lookup.lookup_slices import LookupSlice
from dbt.adapters.zlayout.index.lookup.table_lookups import FilesLookups, TableLookups
from dbt.adapters.zlayout.index.statistics.tracked import TrackedColumn
from dbt.adapters.zlayout.predicate.expr import And, Column, Compare, Expr, Op
from dbt.adapters.zlayout.predicate.normal_form import normal_form
from dbt.adapters.zlayout.pruning.evaluation import verdicts_of_normal
from dbt.adapters.zlayout.pruning.reasons import explained_verdicts
from dbt.adapters.zlayout.spark.commit import optional_slices
from dbt.adapters.zlayout.spark.commit.optional_slices import NewLookups, lookups_after
from dbt.adapters.zlayout.store.local import LocalStore
from dbt.adapters.zlayout.timeline.files.data_files import DataFile, DataFiles

# The oracle and the strategies are those of the laws of pruning.
_spec = importlib.util.spec_from_file_location("pruning_laws", Path(__file__).parent / "test_pruning_laws.py")
assert _spec is not None
assert _spec.loader is not None
laws: Any = importlib.util.module_from_spec(_spec)
sys.modules["pruning_laws"] = laws
_spec.loader.exec_module(laws)

INSTANT = 20260131235959000
many = settings(max_examples=50, deadline=None)


def entries_on_disk(data: st.DataObject, folder: Path, types: Any, files: list[Any], *, damage: bool) -> FilesLookups:
    """Real entries of rows for each column and each two of them, in slices that commits left in a folder."""
    names = [f"f{number}" for number in range(len(files))]
    each = zip(names, files, strict=True)
    live = DataFiles.of([DataFile(name, (), len(rows), 1, 1, "0" * 16) for name, rows in each], ())
    columns = [TrackedColumn((name,), kind) for name, kind in types.items()]
    keys = [LookupKey.of(each) for count in (1, 2) for each in combinations(columns, count)]
    store, paths, pieces = LocalStore(folder), (), []
    for number, rows in enumerate(files):
        if damage and data.draw(st.integers(0, 4)) == 0:
            continue
        runs = {}
        for key in keys:
            collector = HashCollector(key)
            collector.add([pa.array([row[each.path[0]] for row in rows], each.type) for each in key.columns])
            runs[key] = collector.hashes()
        pieces.append(run_bytes(names[number], runs))
        if not damage and number < len(files) - 1:
            continue
        instant = str(INSTANT + number)
        new = NewLookups(tuple(pieces)).put(store, instant, live)
        paths, pieces = (*lookups_after(store, instant, paths, live, removes=damage), *new), []
    for path in paths if damage else ():
        if data.draw(st.integers(0, 4)) == 0:
            local = folder / path
            content = bytearray(local.read_bytes())
            content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
            local.write_bytes(content)
    return TableLookups(paths, partial(LookupSlice, store), lambda _: None).of(live)


def also_together(data: st.DataObject, types: Any, files: list[Any], expr: Expr) -> Expr:
    """The predicate, or one that asks for values of several columns of some row."""
    rows = [row for each in files for row in each]
    if not rows or data.draw(st.booleans()):
        return expr
    names = data.draw(st.lists(st.sampled_from(list(types)), min_size=1, max_size=3, unique=True))
    row, other = data.draw(st.sampled_from(rows)), data.draw(st.sampled_from(rows))
    values = {name: data.draw(st.sampled_from([row[name], row[name], other[name]])) for name in names}
    parts = [
        Compare(Op.EQ_NULL_SAFE, Column((name,), types[name]), pa.scalar(value, types[name]))
        for name, value in values.items()
    ]
    return And(tuple(parts)) if len(parts) > 1 else parts[0]


@many
@given(st.data())
def test_no_file_with_a_matching_row_is_skipped_by_its_entries(data: st.DataObject) -> None:
    types, files, expr = data.draw(laws.cases())
    expr = also_together(data, types, files, expr)
    small = data.draw(st.sampled_from([2, 100]))
    before = optional_slices._BUCKET_PAIRS, optional_slices._MOST_SMALL
    optional_slices._BUCKET_PAIRS, optional_slices._MOST_SMALL = small, data.draw(st.sampled_from([2, 10]))
    try:
        with tempfile.TemporaryDirectory() as folder:
            found = entries_on_disk(data, Path(folder), types, files, damage=data.draw(st.booleans()))
            statistics = laws.complete(types, files)
            if data.draw(st.booleans()):
                statistics = data.draw(laws.with_losses(statistics))
            normal = normal_form(expr)
            verdicts = verdicts_of_normal(normal, statistics, [found])
            laws.assert_sound(verdicts.tolist(), files, expr)
            explained = explained_verdicts(expr, statistics, reasons=True, memberships=[found.anew()])
            assert explained.verdict.tolist() == verdicts.tolist()
            without = verdicts_of_normal(normal, statistics)
            # Entries only add proofs.
            for more, less in zip(verdicts.tolist(), without.tolist(), strict=True):
                assert less in (more, laws.Verdict.READ) or more == laws.Verdict.SKIP
    finally:
        optional_slices._BUCKET_PAIRS, optional_slices._MOST_SMALL = before


@many
@given(st.data())
def test_exactly_the_files_that_hold_a_value_are_kept(data: st.DataObject) -> None:
    """Equality is Spark's: every NaN equals NaN, -0.0 equals 0.0, and null equals null by ``<=>``."""
    types, files, _ = data.draw(laws.cases())
    name = data.draw(st.sampled_from(list(types)))
    values = [row[name] for rows in files for row in rows]
    asked = data.draw(st.sampled_from([None, *values, *laws.POOLS[types[name]]]))
    with tempfile.TemporaryDirectory() as folder:
        found = entries_on_disk(data, Path(folder), types, files, damage=False)
        flags = found.may_hold(Column((name,), types[name]), pa.scalar(asked, types[name]))
    held = [any(_equal(row[name], asked) for row in rows) for rows in files]
    assert (flags.tolist() if flags is not None else [True] * len(files)) == held


def _equal(left: object, right: object) -> bool:
    both_nan = left != left and right != right  # noqa: PLR0124 - only NaN differs from itself
    return both_nan or left == right
