"""Which manifests are put together: few stay, none is large, and a commit reads few that it does not change."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.zlayout.publish.iceberg_grouping import Sized, cut, full_bytes, grouped

FULL = 100
TABLES = st.lists(st.builds(Sized, st.integers(1, 250), st.booleans()), max_size=40)


def after(manifests: list[Sized]) -> list[int]:
    """The sizes of a table's manifests after a commit."""
    groups = grouped(manifests, FULL)
    put_together = {position for group in groups for position in group}
    stay = [each.size_bytes for position, each in enumerate(manifests) if position not in put_together]
    return [*(sum(manifests[each].size_bytes for each in group) for group in groups), *stay]


@given(TABLES)
def test_what_is_written_is_in_one_group_and_what_is_full_is_not_read(manifests) -> None:
    positions = [position for group in grouped(manifests, FULL) for position in group]
    assert len(positions) == len(set(positions))
    assert {each for each, found in enumerate(manifests) if found.is_written} <= set(positions)
    assert all(manifests[each].is_written or manifests[each].size_bytes < FULL for each in positions)
    assert sum(not manifests[each].is_written for each in positions) <= 8


@given(TABLES)
def test_a_group_of_several_is_below_twice_the_size_of_a_full_one(manifests) -> None:
    for group in grouped(manifests, FULL):
        assert len(group) == 1 or sum(manifests[each].size_bytes for each in group) < 2 * FULL
        assert len(group) > 1 or manifests[group[0]].is_written


@given(st.lists(st.builds(Sized, st.integers(1, 250), st.just(True)), max_size=40), st.integers(0, 8))
def test_at_most_one_manifest_is_not_full_afterwards(written, small) -> None:
    manifests = [*written, *[Sized(40, is_written=False)] * small]
    assert sum(size < FULL for size in after(manifests)) <= 1


@given(st.lists(st.integers(1, 250), max_size=300))
def test_a_table_of_many_small_manifests_has_one_after_some_commits(sizes) -> None:
    for _ in range(len(sizes) // 8 + 2):
        sizes = after([Sized(each, is_written=False) for each in sizes])
    assert sum(size < FULL for size in sizes) <= 1


@given(st.lists(st.integers(1, 60), min_size=1, max_size=300))
def test_commits_of_few_files_write_as_many_bytes_as_fit_in_a_manifest(commits) -> None:
    sizes: list[int] = []
    for added in commits:
        manifests = [Sized(added, is_written=True), *(Sized(each, is_written=False) for each in sizes)]
        groups = grouped(manifests, FULL)
        assert sum(manifests[each].size_bytes for group in groups for each in group) < 2 * FULL
        sizes = after(manifests)
    assert sum(sizes) == sum(commits)
    assert (len(sizes) - 1) * FULL <= sum(commits)


@given(st.lists(st.integers(1, 250), max_size=100))
def test_new_files_are_cut_into_full_parts_in_their_order(sizes) -> None:
    ranges = cut(sizes, FULL)
    assert [each for begin, end in ranges for each in range(begin, end)] == list(range(len(sizes)))
    assert all(1.5 * FULL <= sum(sizes[begin:end]) < 1.5 * FULL + 250 for begin, end in ranges[:-1])


def test_a_full_manifest_of_a_table_of_very_many_files_has_the_root_of_their_number() -> None:
    assert full_bytes(0, 0) == full_bytes(300, 1) == full_bytes(300 * 10_000, 10_000) == 128 << 10
    assert full_bytes(300 * 4_000_000, 4_000_000) == 300 * 2_000
