"""The types of a seed come from its file, also where dbt passes no rows."""

from dbt_common.clients.agate_helper import from_csv

from dbt.adapters.zlayout.adapter.materialize.seed_frame import whole_file
from dbt.adapters.zlayout.impl import ZlayoutAdapter


def test_the_types_of_a_seed_without_rows_are_those_of_its_file(tmp_path):
    path = tmp_path / "prices.csv"
    path.write_text("id;price;code\n1;2.5;007\n")
    config = {"column_types": {"code": "string", "not_there": "int"}, "delimiter": ";"}
    rows = from_csv(path, text_columns=["code"], delimiter=";").limit(0)
    rows.original_abspath = str(path)
    found = [ZlayoutAdapter.convert_type(whole_file(rows, config), number) for number in range(3)]
    assert found == ["bigint", "double", "string"]
    assert ZlayoutAdapter.convert_type(rows, 1) == "bigint"
