from __future__ import annotations

import io
import json
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dbt.adapters.zlayout.curve.model import CurveModel
from dbt.adapters.zlayout.curve.query_boxes import QueryBoxes
from dbt.adapters.zlayout.errors import CorruptError

RNG = np.random.default_rng(5)
COLUMNS = (("day",), ("part", "key"))
MB = 1 << 20


def keys(rows: int) -> pa.Table:
    return pa.table(
        {"0": pa.array(RNG.integers(0, 2500, rows), pa.int32()), "1": RNG.integers(0, 10**9, rows).astype(str)}
    )


def build(sample: pa.Table, curve: str = "zorder", **changes: Any) -> CurveModel:
    facts: dict[str, Any] = {
        "total_rows": 4_000_000,
        "bytes_per_row": 40.0,
        "target_file_bytes": 16 * MB,
        "row_group_rows": None,
    }
    return CurveModel.build(sample, COLUMNS[: sample.num_columns], curve, **{**facts, **changes})


def stored_again(model: CurveModel) -> CurveModel:
    return CurveModel.from_bytes(model.to_bytes())


@pytest.mark.parametrize("curve", ["zorder", "hilbert", "linear"])
def test_a_stored_model_places_and_orders_as_before(curve: str) -> None:
    sample = keys(20_000)
    partitions = [("2024-01-01", None) if number % 3 else ("x/y", "") for number in range(20_000)]
    for model in (build(sample, curve), build(sample, curve, partition_keys=partitions)):
        again = stored_again(model)
        for key in (None, ("x/y", ""), ("unseen", "z")):
            first, second = model.place(sample.columns, key), again.place(sample.columns, key)
            assert (first.leaf == second.leaf).all()
            assert (first.file == second.file).all()
        assert (model.curve_values(sample.columns) == again.curve_values(sample.columns)).all()
        assert again.to_bytes() == model.to_bytes()
        assert again.fits(COLUMNS, (pa.int32(), pa.string()), curve)
        assert again.shares == model.shares


@pytest.mark.parametrize("curve", ["zorder", "hilbert", "linear"])
def test_rows_are_placed_as_by_their_ranks_among_all_boundaries(curve: str) -> None:
    sample = keys(20_000)
    some = RNG.random(20_000) < 0.1
    sample = pa.table([pa.array(column.to_pylist(), mask=some) for column in sample.columns], names=sample.column_names)
    partitions = [("few" if number < 300 else "many",) for number in range(20_000)]
    model = build(sample, curve, partition_keys=partitions)
    ranks = [each.ranks_of(key) for each, key in zip(model.boundaries, sample.columns, strict=True)]
    for name, tree in (
        ("few", model.partition_trees["few",]),
        ("many", model.partition_trees["many",]),
        ("", model.tree),
    ):
        for columns in (sample.columns, [column.dictionary_encode() for column in sample.columns]):
            assert (model.place(columns, (name,)).leaf == tree.leaf_of(ranks)).all()


def test_rows_are_compared_only_with_the_cuts_when_they_are_placed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row costs the steps of a search, and a map task places every row of the table."""
    rows = pa.table({"0": keys(50_000).column("0"), "1": keys(50_000).column("1").cast(pa.int64())})
    model = build(rows)
    searched: list[int] = []
    search = np.searchsorted

    def counted(starts: Any, values: Any, **options: Any) -> Any:
        if np.size(values) >= rows.num_rows:
            searched.append(len(starts))
        return search(starts, values, **options)

    monkeypatch.setattr(np, "searchsorted", counted)
    model.place(rows.columns)
    assert len(model.boundaries[1].values) > 1_000
    assert 0 < max(searched) < model.tree.leaf_count


def test_files_follow_the_bytes_and_row_groups_the_rows() -> None:
    model = build(keys(50_000))
    assert model.files_of() == round(4_000_000 * 40 / (16 * MB)) == 10
    assert model.row_group_rows == -(-model.sizing.rows_per_file // 8)
    assert model.tree.leaf_count == 80


def test_row_groups_are_neither_tiny_nor_huge_unless_asked_for() -> None:
    assert build(keys(100), bytes_per_row=4000).row_group_rows == 32_768
    assert build(keys(100), target_file_bytes=1 << 30, total_rows=10**9).row_group_rows == 1 << 20
    assert build(keys(100), row_group_rows=500).row_group_rows == 500


def test_each_partition_has_files_by_its_own_size_and_unknown_ones_have_one() -> None:
    partitions = [("big",)] * 9_000 + [(None,)] * 1_000
    model = build(keys(10_000), partition_keys=partitions)
    assert (model.files_of(("big",)), model.files_of((None,)), model.files_of(("new",))) == (9, 1, 1)
    placement = model.place(keys(5_000).columns, ("new",))
    assert set(placement.file.tolist()) == {0}
    assert len(set(placement.leaf.tolist())) > 1


def test_rows_of_one_value_are_dealt_to_several_files() -> None:
    sample = pa.table({"0": np.where(RNG.random(20_000) < 0.9, 5, RNG.integers(0, 1000, 20_000))})
    model = build(sample)
    heavy = int(model.place([pa.array([5])]).file[0])
    assert model.shares[(), heavy] == 9


def test_an_even_table_is_dealt_to_no_further_files() -> None:
    assert build(keys(20_000)).shares == {}


def test_a_table_of_many_files_can_be_cut_by_one_key() -> None:
    sample = pa.table({"0": RNG.random(100_000)})
    model = build(sample, total_rows=1_000_000_000)
    counts = np.bincount(model.place(sample.columns).file)
    assert model.files_of() == len(counts) == 2384
    assert counts.max() < 2 * counts.mean()


@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize("curve", ["zorder", "hilbert", "linear"])
def test_hardly_any_sample_still_makes_a_model(rows: int, curve: str) -> None:
    model = stored_again(build(keys(rows), curve, total_rows=rows))
    later = keys(100)
    assert set(model.place(later.columns).file.tolist()) == {0}
    assert len(model.curve_values(later.columns)) == 100


def test_keys_of_only_nulls_make_one_place() -> None:
    sample = pa.table({"0": pa.nulls(50, pa.int32()), "1": pa.nulls(50, pa.string())})
    model = stored_again(build(sample))
    assert (model.files_of(), model.bits) == (1, (0, 0))
    assert model.curve_values(sample.columns).tolist() == [0] * 50


def test_a_sample_of_no_known_size_makes_one_file() -> None:
    assert build(keys(10), total_rows=10, bytes_per_row=0.0).files_of() == 1


@pytest.mark.parametrize("curve", ["zorder", "hilbert", "linear"])
def test_eight_wide_keys_fit_into_sixty_three_bits(curve: str) -> None:
    sample = pa.table({str(number): RNG.random(5_000) for number in range(8)})
    columns = [(f"c{number}",) for number in range(8)]
    model = CurveModel.build(
        sample, columns, curve, total_rows=5_000, bytes_per_row=64, target_file_bytes=MB, row_group_rows=None
    )
    assert sum(model.bits) <= 63
    values = model.curve_values(sample.columns)
    assert len(np.unique(values)) > 4_900
    assert int(values.max()) < 1 << 63


def test_linear_values_sort_as_the_columns_do() -> None:
    sample = pa.table({"0": RNG.integers(0, 30, 3_000), "1": RNG.integers(0, 500, 3_000).astype(str)})
    values = build(sample, "linear").curve_values(sample.columns)
    expected = np.lexsort((sample.column("1").to_numpy(), sample.column("0").to_numpy()))
    assert (np.argsort(values, kind="stable") == expected).all()


def test_a_model_fits_its_own_keys_whatever_their_encoding() -> None:
    model = build(keys(100))
    assert model.fits(COLUMNS, (pa.int32(), pa.dictionary(pa.int32(), pa.large_string())), "zorder")
    assert not model.fits(COLUMNS, (pa.int64(), pa.string()), "zorder")
    assert not model.fits(COLUMNS[::-1], (pa.int32(), pa.string()), "zorder")
    assert not model.fits(COLUMNS, (pa.int32(), pa.string()), "hilbert")


def test_garbage_and_truncated_content_are_corrupt() -> None:
    content = build(keys(500)).to_bytes()
    for damaged in (b"", b"ARROW1", b"{}", content[:-10], content[: len(content) // 2], content[100:]):
        with pytest.raises(CorruptError, match="stored curve"):
            CurveModel.from_bytes(damaged)


@pytest.mark.parametrize("rounds", [200, pytest.param(11_500, marks=pytest.mark.exhaustive)])
def test_damage_of_any_bytes_is_corrupt_or_a_curve_that_places_every_row(rounds: int) -> None:
    sample = keys(600)
    partitions = [("2024-01-01", None) if number % 3 else ("x/y", "") for number in range(600)]
    models = [build(sample, curve, partition_keys=partitions) for curve in ("zorder", "hilbert", "linear")]
    contents, rng = [each.to_bytes() for each in models], random.Random(15)
    refused = 0
    for _ in range(rounds):
        try:
            model = CurveModel.from_bytes(damaged(rng.choice(contents), rng))
        except CorruptError:
            refused += 1
            continue
        for key in (None, ("x/y", ""), ("unseen", "z")):
            if model.fits(COLUMNS, (pa.int32(), pa.string()), model.curve):
                placed = model.place(sample.columns, key)
                assert placed.leaf.min() >= 0
                assert placed.file.min() >= 0
    assert rounds > refused > rounds // 10


def damaged(content: bytes, rng: random.Random) -> bytes:
    """A few bytes are others; of some the end is missing."""
    changed = bytearray(content)
    for _ in range(rng.randint(1, 8)):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed[: rng.randrange(len(changed))] if rng.random() < 0.2 else changed)


def with_changes(content: bytes, facts: dict[str, Any], **arrays: list[float]) -> bytes:
    table = pa.ipc.open_file(content).read_all()
    stored = json.loads(table.schema.metadata[b"zlayout.curve"])
    for name, values in arrays.items():
        index = table.schema.get_field_index(name)
        table = table.set_column(index, name, pa.array([values], table.schema.field(name).type))
    table = table.replace_schema_metadata({b"zlayout.curve": json.dumps({**stored, **facts}).encode()})
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


SMALL = build(pa.table({"0": np.arange(1000)}), total_rows=1_000_000)


def test_the_changing_of_nothing_is_accepted() -> None:
    assert CurveModel.from_bytes(with_changes(SMALL.to_bytes(), {})).files_of() == SMALL.files_of()


@pytest.mark.parametrize(
    ("facts", "arrays"),
    [
        ({"format_version": 99}, {}),
        ({"curve": "spiral"}, {}),
        ({"columns": []}, {}),
        ({"columns": [["a"], ["b"]]}, {}),
        ({"columns": 3}, {}),
        ({"partitions": [["x"]]}, {}),
        ({"nullable": []}, {}),
        ({"sizing": {"rows_per_file": 0, "row_group_rows": 1, "total_rows": 1, "sampled_rows": 1}}, {}),
        ({"sizing": {}}, {}),
        ({}, {"left": [0] * len(SMALL.tree.left)}),
        ({}, {"left": [0, *SMALL.tree.left[1:].tolist()]}),
        ({}, {"right": [10**6] * len(SMALL.tree.left)}),
        ({}, {"left": [-1] * len(SMALL.tree.left)}),
        ({}, {"column": [1] * len(SMALL.tree.left)}),
        ({}, {"threshold": [-1] * len(SMALL.tree.left)}),
        ({}, {"nodes": [2]}),
        ({}, {"nodes": [], "leaves": []}),
        ({}, {"leaves": [-1]}),
        ({}, {"file_of_leaf": [7] * SMALL.tree.leaf_count}),
        ({}, {"leaf_size": [float("nan")] * SMALL.tree.leaf_count}),
        ({}, {"boundaries_0": [3, 2, 1]}),
    ],
    ids=repr,
)
def test_content_that_contradicts_itself_is_corrupt(facts: dict[str, Any], arrays: dict[str, list[float]]) -> None:
    with pytest.raises(CorruptError, match="stored curve"):
        CurveModel.from_bytes(with_changes(SMALL.to_bytes(), facts, **arrays))


def asked() -> QueryBoxes:
    low = (pa.array([2400, None], pa.int32()), pa.array([None, "5"], pa.string()))
    high = (pa.array([2450, None], pa.int32()), pa.array([None, "6"], pa.string()))
    return QueryBoxes(low, high, np.array([0.75, 0.25]))


def test_what_queries_ask_is_stored_with_the_curve_and_later_cuts_follow_it() -> None:
    sample = keys(20_000)
    model = stored_again(build(sample, asked=asked()))
    assert model.asked is not None
    assert model.asked.key_weights() == (1.0, pytest.approx(1 / 3))
    later = keys(20_000)
    follows, plain = build(later, along=model), build(later, along=build(sample))
    day = later.column(0).to_numpy()
    hot = (day >= 2400) & (day <= 2450)
    files = [len(np.unique(each.place(later.columns).file[hot])) for each in (follows, plain)]
    assert files[0] < files[1]
    assert stored_again(follows).asked is not None
    assert plain.asked is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("asked_weights", [[0.5, float("nan")]]),
        ("asked_weights", [[1.0]]),
        ("asked_weights", [[]]),
        ("asked_low_0", [["a", "b"]]),
        ("asked_high_1", [["a"]]),
    ],
)
def test_damaged_queries_are_corrupt(name: str, value: list[list[Any]]) -> None:
    content = build(keys(2_000), asked=asked()).to_bytes()
    table = pa.ipc.open_file(content).read_all()
    number = table.schema.names.index(name)
    table = table.set_column(number, name, pa.array(value)).replace_schema_metadata(table.schema.metadata)
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(CorruptError, match="the stored curve cannot be understood"):
        CurveModel.from_bytes(sink.getvalue())
