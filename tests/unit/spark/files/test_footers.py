"""Footers of files that are there already: what cannot be understood is unreadable, and nothing worse."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt.adapters.zlayout.spark.files.footers import footers_found, read_footers
from dbt.adapters.zlayout.store.local import LocalStore


@pytest.mark.parametrize("text", [b"columnname", b"parquet-cpp-arrow"])
def test_a_footer_whose_texts_are_not_utf8_is_unreadable(tmp_path, text) -> None:
    pq.write_table(pa.table({"columnname": [1, 2]}), tmp_path / "x.parquet", store_schema=False)
    content = (tmp_path / "x.parquet").read_bytes()
    (tmp_path / "x.parquet").write_bytes(content.replace(text, b"\xff\xfe" + text[2:]))
    store = LocalStore(tmp_path)
    assert footers_found(store, ["x.parquet"]) == [None]
    with pytest.raises(pa.ArrowInvalid, match=r"x\.parquet: its footer is damaged"):
        read_footers(store, ["x.parquet"])
