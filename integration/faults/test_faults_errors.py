"""The disk is full, the folder may not be written, a call fails once: an error that says so, and a whole version."""

import errno
import os
import random
import shutil
import subprocess
from itertools import cycle, product

import fault_actions
import pytest
from fault_checks import check_as_found, check_next_writer, check_whole
from fault_points import changes
from fault_rows import counted
from fault_runs import Runs

from dbt.adapters.zlayout.errors import CommittedError, ZlayoutError
from dbt.adapters.zlayout.table.ztable import ZTable

SAYS = {"full": errno.ENOSPC, "denied": errno.EACCES, "flaky": errno.EIO}
OTHER_DISKS = sorted(
    set(product(("append_many", "replace", "merge"), (0, 8, 40, 120))) - {("merge", 8), ("append_many", 40)}
)


def fail(bench, fault: str, name: str, number: int, seed: int) -> str | None:
    """One failing writer and the checks; None when it made fewer changes."""
    action = fault_actions.by_name(name)
    bench.restore(action.template)
    (answer,) = bench.write(bench.jobs([(name, seed)], action.template, at=number, fault=fault))
    done = changes(bench.order_file)
    bench.forget_orders()
    if len(done) < number:
        return None
    before = bench.before[action.template]
    after = action.model(before if before is not None else fault_actions.Rows(), seed)
    if "error" in answer:
        assert os.strerror(SAYS[fault]) in answer["message"], answer["trace"]
        assert answer["error"] in ("StoreError", "WriteError", "CommittedError"), answer["trace"]
    check_as_found(bench, action, after)
    then = check_next_writer(bench, action, after, seed)
    return f"{done[number - 1]}: {answer.get('error', 'went on')}, then {then}"


def test_a_writer_that_meets_an_error_leaves_a_whole_version(bench, seed, request):
    rng = random.Random(seed + 1)
    runs = Runs(request.config, "error")
    actions = fault_actions.ACTIONS if runs.full else rng.sample(fault_actions.ACTIONS, runs.count(few=3, sample=8))
    changing = [
        (action.name, number)
        for action in actions
        for number, change in enumerate(bench.dry(action.name, action.template), 1)
        if " catalog " not in change
    ]
    if runs.full:
        # Each change meets one of the errors, in turn.
        wanted = [(fault, *point) for fault, point in zip(cycle(SAYS), changing, strict=False)]
    else:
        wanted = [(rng.choice(list(SAYS)), *point) for point in rng.sample(changing, runs.count(few=3, sample=8))]
    runs.each(wanted, lambda fault, name, number: fail(bench, fault, name, number, rng.randrange(10**6)))
    runs.check()


@pytest.fixture
def small_disk(tmp_path):
    """A file system of two megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    made = subprocess.run(mount, check=False, capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"a small file system takes the right to mount: {made.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.parametrize(
    ("name", "free_kb"),
    [
        ("merge", 8),
        ("append_many", 40),
        *(pytest.param(name, free_kb, marks=pytest.mark.exhaustive) for name, free_kb in OTHER_DISKS),
    ],
)
def test_a_disk_that_runs_full_costs_the_write_and_nothing_else(bench, small_disk, name, free_kb):
    action = fault_actions.by_name(name)
    table = f"disk_{name}_{free_kb}"
    spark, full_name = bench.spark, bench.name(table)
    fault_actions.write(spark, full_name, fault_actions.FIRST, location_root=str(small_disk))
    filler = small_disk / "filler"
    filler.write_bytes(bytes(shutil.disk_usage(small_disk).free - 1024 * free_kb))
    before = counted(fault_actions.FIRST)
    outcomes, said = [action.model(before, 1)], ""
    try:
        action.run(spark, full_name, 1)
    except CommittedError as error:
        said = str(error)
    except ZlayoutError as error:
        outcomes, said = [before], str(error)
    assert not said or os.strerror(errno.ENOSPC) in said
    wanted = bench.named(table)
    assert wanted in outcomes
    filler.unlink()
    fault_actions.by_name("append").run(spark, full_name, 2)
    check_whole(bench, table, [fault_actions.by_name("append").model(wanted, 2)])


def test_a_file_system_that_is_read_only_costs_the_write_and_nothing_else(bench, small_disk):
    spark, name = bench.spark, bench.name("read_only")
    fault_actions.write(spark, name, fault_actions.FIRST, location_root=str(small_disk))
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(ZlayoutError, match=os.strerror(errno.EROFS)):
        fault_actions.by_name("merge").run(spark, name, 1)
    assert bench.named("read_only") == counted(fault_actions.FIRST)
    assert ZTable.for_name(spark, name).index_status().num_rows == 0
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    fault_actions.by_name("merge").run(spark, name, 1)
    check_whole(bench, "read_only", [fault_actions.by_name("merge").model(counted(fault_actions.FIRST), 1)])
