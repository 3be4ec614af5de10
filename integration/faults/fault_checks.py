"""What must hold after a fault, before and after the next writer."""

import random

import fault_actions
from fault_bench import Bench
from fault_rows import Rows, difference

from dbt.adapters.zlayout.errors import TableNotFoundError
from dbt.adapters.zlayout.index.bloom.filter_slices import BLOOM_FILTERS
from dbt.adapters.zlayout.publish.spark_manifest import published_version
from dbt.adapters.zlayout.store import open_store
from dbt.adapters.zlayout.table.ztable import ZTable
from dbt.adapters.zlayout.timeline.files.naming import INDEX_FOLDER, STAGING_FOLDER, is_data_path, is_scratch
from dbt.adapters.zlayout.timeline.log.positions import positions_of
from dbt.adapters.zlayout.timeline.timeline import Timeline
from dbt.adapters.zlayout.timeline.transactions.pending import list_pending

# Columns come, or move into folder names: then the log, Spark's manifest and the catalog's entry change one after the
# other. The folder shows a whole version always; the name may show none, or not all columns, until the next writer.
RESHAPING = frozenset({"append_column", "reshape", "adopt"})
# The name is given, or taken away.
NAMING = frozenset({"create", "drop", "rename"})


def check_as_found(bench: Bench, action: fault_actions.Action, after: Rows | None) -> None:
    """Before anybody repairs anything, a Spark that knows nothing of the package reads one whole version."""
    check_position(bench, action.template)
    before = bench.before[action.template]
    # A Spark without the package sees a version when it is published, and the next writer does that.
    whole = [rows for rows in (before, bench.published[action.template], after) if rows is not None]
    folder = bench.folder(action.template)
    if action.name != "drop" and (before is not None or (folder / "_spark_metadata").exists()):
        # Without a catalog Spark takes the columns of some file.
        keys = [_keys(rows) for rows in whole]
        found = _keys(bench.plain(action.template))
        assert found in keys, f"the folder shows neither version: {difference(found, keys[0])}"
    if action.template == "shared":
        for name, shared in bench.shared(action.template).items():
            assert shared is None or shared in whole, (
                f"readers of {name} see neither version: {difference(shared, whole[0])}"
            )
    if action.name in RESHAPING:
        return
    named = bench.named(action.template)
    if action.name == "rename" and named is None:
        named = bench.named(f"{action.template}_new")
        assert named is not None, "both names are gone"
    assert named is not None or action.name in NAMING, "the catalog lost the table"
    assert named is None or named in whole, f"the name shows neither version: {difference(named, whole[0])}"


def check_next_writer(bench: Bench, action: fault_actions.Action, after: Rows | None, seed: int) -> str:
    """The next writer finishes or removes what it finds, and its own rows come on top of one whole version.

    Returns:
        What it did.
    """
    before = bench.before[action.template]
    name, spark = bench.name(action.template), bench.spark
    if bench.named(action.template) is None:
        assert action.name in NAMING | RESHAPING
        next_action, starts = fault_actions.by_name("create"), [fault_actions.Rows()]
    else:
        choices = ("append", "merge", "replace", "delete_insert")
        if action.template == "records":
            choices = ("upsert", "delete_records", "compact", "compact_logs")
        if action.template in fault_actions.FOREIGN and not _managed(bench, action.template):
            choices = ("adopt",)
        if action.template in fault_actions.FOLLOWING:
            # The run that is repeated takes what is left: all changes, or none.
            choices, starts = (action.name,), [after]
        next_action = fault_actions.by_name(random.Random(seed).choice(choices))
        starts = [rows for rows in (before, after) if rows is not None]
    renamed = bench.named(f"{action.template}_new")
    next_action.run(spark, name, seed)
    assert bench.named(f"{action.template}_new") == renamed, "the new table took the renamed one's rows"
    wanted = [next_action.model(rows, seed) for rows in starts]
    check_whole(bench, action.template, wanted)
    return next_action.name


def check_position(bench: Bench, template: str) -> None:
    """A model that reads changes has taken them if, and only if, it has their rows."""
    if template in fault_actions.FOLLOWING:
        name = bench.name(template)
        source = fault_actions.source_of(name)
        taken = positions_of(ZTable.for_name(bench.spark, name).snapshot().properties)[source].version
        newest = ZTable.for_name(bench.spark, source).version
        assert taken == (0 if bench.newest(template) == bench.before[template] else newest)


def check_whole(bench: Bench, template: str, wanted: list[Rows]) -> None:
    """A table at rest: rows as wanted for every reader, index fresh, nothing pending, and no file too many."""
    named = bench.named(template)
    assert named in wanted, f"the name shows {difference(named, wanted[0])}"
    table = ZTable.for_name(bench.spark, bench.name(template))
    assert bench.newest(template) == named
    check_position(bench, template)
    assert table.index_status().to_pylist() == []
    store = open_store(table.location)
    assert list_pending(store) == []
    assert published_version(store) == Timeline(store).latest_version()
    shared = dict.fromkeys(("Delta", "Iceberg"), named if table.snapshot().layout.get("publish") else None)
    assert bench.shared(template) == shared, "readers of a published format see other rows"
    table.clean(retain_versions=1, retain_hours=0)
    assert bench.shared(template) == shared, "the clean took a file that such readers need"
    assert table.index_status().to_pylist() == []
    assert bench.named(template) == named, "the clean took a file that is needed"
    live = set(table.snapshot().files["path"].to_pylist())
    assert {file.path for file in store.list("", recursive=True) if is_data_path(file.path)} == live
    left = [each.path for each in store.list(STAGING_FOLDER, recursive=True) if not is_scratch(each.path)]
    assert left == [], f"left behind: {left}"
    slices = {path for paths in table.snapshot().index.values() for path in paths}
    assert {each.path for each in store.list(INDEX_FOLDER, recursive=True) if not is_scratch(each.path)} == slices
    if BLOOM_FILTERS in table.snapshot().index:
        assert table.verify(data=True).to_pylist() == []


def _managed(bench: Bench, template: str) -> bool:
    try:
        return ZTable.for_name(bench.spark, bench.name(template)).is_managed
    except TableNotFoundError:
        return False


def _keys(rows: Rows) -> Rows:
    found = Rows()
    for (k, v, _), count in rows.items():
        found[k, v] += count
    return found
